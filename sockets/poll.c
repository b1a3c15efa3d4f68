/* SPDX-License-Identifier: BSD-2-Clause */
/* sockets/poll.c - poll(), ppoll(), select(), pselect(). */
#undef _FORTIFY_SOURCE
#include "config.h"
#include "sockets.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/time.h>

#define ON_STACK 16

static int number_behind(int fd)
{
	int rs = sockets_find(fd, SOCKETS_RSOCKET);

	return rs < 0 ? fd : rs;
}

/* Not const: glibc declares the array of poll() write-only, and gcc warns of one who reads it. */
static bool has_any(struct pollfd *fds, nfds_t num)
{
	for (nfds_t i = 0; i < num; i++)
		if (sockets_find(fds[i].fd, SOCKETS_RSOCKET) >= 0)
			return true;
	return false;
}

/* As ppoll(), with the rsockets behind the numbers. */
static int poll_behind(struct pollfd *fds, nfds_t num, int timeout, const sigset_t *mask)
{
	struct pollfd few[ON_STACK], *behind = few, *allocated = NULL;
	int ret;

	if (num > ON_STACK)
		behind = allocated = calloc(num, sizeof(*behind));
	if (!behind) {
		errno = ENOMEM;
		return -1;
	}
	for (nfds_t i = 0; i < num; i++) {
		behind[i] = fds[i];
		behind[i].fd = number_behind(fds[i].fd);
	}
	pthread_cleanup_push(free, allocated);
	ret = polycm_rsocket_ppoll(behind, num, timeout, mask);
	for (nfds_t i = 0; ret >= 0 && i < num; i++)
		fds[i].revents = behind[i].revents;
	pthread_cleanup_pop(1);
	return ret;
}

POLYCM_EXPORT int poll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	return has_any(fds, nfds) ? poll_behind(fds, nfds, timeout, NULL) :
				    sockets_next()->poll(fds, nfds, timeout);
}

POLYCM_EXPORT int ppoll(struct pollfd *fds, nfds_t nfds, const struct timespec *timeout,
			const sigset_t *mask)
{
	return has_any(fds, nfds) ? poll_behind(fds, nfds, sockets_milliseconds(timeout), mask) :
				    sockets_next()->ppoll(fds, nfds, timeout, mask);
}

/* Of fortified programs.  The C library's end the program where the array is too short. */
POLYCM_EXPORT int __poll_chk(struct pollfd *fds, nfds_t nfds, int timeout, size_t size)
{
	return size / sizeof(*fds) >= nfds && has_any(fds, nfds) ?
		poll_behind(fds, nfds, timeout, NULL) :
		sockets_next()->__poll_chk(fds, nfds, timeout, size);
}

POLYCM_EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t nfds, const struct timespec *timeout,
			      const sigset_t *mask, size_t size)
{
	return size / sizeof(*fds) >= nfds && has_any(fds, nfds) ?
		poll_behind(fds, nfds, sockets_milliseconds(timeout), mask) :
		sockets_next()->__ppoll_chk(fds, nfds, timeout, mask, size);
}

/* --- select() --- */

#define ALL_PLAIN -2

/*
 * Its sets with the rsockets behind the numbers; returns one more than the highest.  -1 with
 * errno: the number of an rsocket does not fit into a set.
 */
static int to_behind(int num, fd_set *const sets[3], fd_set behind[3], bool *ret_any)
{
	int highest = 0;

	*ret_any = false;
	for (int i = 0; i < 3; i++) {
		FD_ZERO(&behind[i]);
		for (int fd = 0; sets[i] && fd < num; fd++) {
			int number = number_behind(fd);

			if (!FD_ISSET(fd, sets[i]))
				continue;
			if (number >= FD_SETSIZE) {
				errno = EINVAL;
				return -1;
			}
			FD_SET(number, &behind[i]);
			*ret_any |= number != fd;
			highest = number >= highest ? number + 1 : highest;
		}
	}
	return highest;
}

/* Keeps what was found; returns how many. */
static int from_behind(int num, fd_set *const sets[3], const fd_set behind[3])
{
	int count = 0;

	for (int i = 0; i < 3; i++) {
		for (int fd = 0; sets[i] && fd < num; fd++) {
			if (!FD_ISSET(fd, sets[i]))
				continue;
			if (FD_ISSET(number_behind(fd), &behind[i]))
				count++;
			else
				FD_CLR(fd, sets[i]);
		}
	}
	return count;
}

static int select_behind(int num, fd_set *const sets[3], const struct timespec *timeout,
			 const sigset_t *mask)
{
	fd_set behind[3];
	int highest, ret;
	bool any;

	if (num < 0 || num > FD_SETSIZE)
		return ALL_PLAIN;
	highest = to_behind(num, sets, behind, &any);
	if (highest < 0)
		return -1;
	if (!any)
		return ALL_PLAIN;
	ret = polycm_rsocket_pselect(highest, (fd_set *[]){ sets[0] ? &behind[0] : NULL,
							    sets[1] ? &behind[1] : NULL,
							    sets[2] ? &behind[2] : NULL },
				     timeout, mask);
	return ret < 0 ? ret : from_behind(num, sets, behind);
}

POLYCM_EXPORT int select(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
			 struct timeval *timeout)
{
	struct timespec limit;
	int ret;

	if (timeout)
		TIMEVAL_TO_TIMESPEC(timeout, &limit);
	ret = select_behind(nfds, (fd_set *[]){ readfds, writefds, exceptfds },
			    timeout ? &limit : NULL, NULL);
	return ret == ALL_PLAIN ?
		sockets_next()->select(nfds, readfds, writefds, exceptfds, timeout) : ret;
}

POLYCM_EXPORT int pselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
			  const struct timespec *timeout, const sigset_t *mask)
{
	int ret = select_behind(nfds, (fd_set *[]){ readfds, writefds, exceptfds }, timeout, mask);

	return ret == ALL_PLAIN ?
		sockets_next()->pselect(nfds, readfds, writefds, exceptfds, timeout, mask) : ret;
}
