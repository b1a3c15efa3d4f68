/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sockets/sockets.h - the C library's calls for sockets, over rsockets.
 *
 * A socket's number is a duplicate of its rsocket's number.  So each is a real
 * descriptor, dup() gives another number for the same rsocket, and libpolycm may use the
 * rsocket's own number in poll() without coming back here.  Calls on numbers that are
 * not in the table go on to the C library.
 */
#ifndef POLYCM_SOCKETS_SOCKETS_H
#define POLYCM_SOCKETS_SOCKETS_H

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "core/base/export.h"
#include "core/base/rsockets.h"

/* Not in every version of its headers. */
int __poll_chk(struct pollfd *fds, nfds_t nfds, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t nfds, const struct timespec *timeout,
		const sigset_t *mask, size_t size);
ssize_t __read_chk(int fd, void *buf, size_t size, size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t size, size_t room, int flags,
		       struct sockaddr *addr, socklen_t *len);
int epoll_pwait2(int epfd, struct epoll_event *events, int max, const struct timespec *timeout,
		 const sigset_t *mask);

/* libpolycm's, if the program has loaded it. */
#define SOCKETS_OURS(OURS) \
	OURS(rsocket) OURS(rbind) OURS(rlisten) OURS(raccept) OURS(rconnect) OURS(rshutdown) \
	OURS(rclose) OURS(rgetpeername) OURS(rgetsockname) OURS(rgetsockopt) OURS(rsetsockopt) \
	OURS(rrecv) OURS(rrecvfrom) OURS(rrecvmsg) OURS(rread) OURS(rreadv) OURS(rsend) OURS(rsendto) \
	OURS(rsendmsg) OURS(rwrite) OURS(rwritev) OURS(rfcntl) OURS(repoll_create) OURS(repoll_ctl) \
	OURS(polycm_rsocket_ppoll) OURS(polycm_rsocket_pselect) OURS(polycm_rsocket_epoll_pwait)
#define SOCKETS_WEAK(name) extern __typeof__(name) name __attribute__((weak));
SOCKETS_OURS(SOCKETS_WEAK)

/* --- next.c: the calls behind ours --- */

#define SOCKETS_CALLS(CALL) \
	CALL(socket) CALL(bind) CALL(listen) CALL(accept) CALL(accept4) CALL(connect) CALL(shutdown) \
	CALL(close) CALL(getpeername) CALL(getsockname) CALL(getsockopt) CALL(setsockopt) \
	CALL(recv) CALL(recvfrom) CALL(recvmsg) CALL(read) CALL(readv) CALL(__recv_chk) \
	CALL(__recvfrom_chk) CALL(__read_chk) CALL(send) CALL(sendto) CALL(sendmsg) CALL(write) \
	CALL(writev) CALL(fcntl) CALL(fcntl64) CALL(ioctl) CALL(dup) CALL(dup2) CALL(dup3) CALL(poll) \
	CALL(ppoll) CALL(__poll_chk) CALL(__ppoll_chk) CALL(select) CALL(pselect) CALL(epoll_ctl) \
	CALL(epoll_wait) CALL(epoll_pwait) CALL(epoll_pwait2)

#define SOCKETS_MEMBER(name) __typeof__(name) *name;
struct sockets_next {
	SOCKETS_CALLS(SOCKETS_MEMBER)
};

const struct sockets_next *sockets_next(void);

/* --- numbers.c: which number is which rsocket --- */

enum sockets_kind {
	SOCKETS_RSOCKET,
	SOCKETS_SET,			/* of epoll: of repoll_create(), with its rsockets */
};

/* The rsocket or the set behind a number of the program's; -1: neither. */
int sockets_find(int fd, enum sockets_kind kind);
/* Before the first rsocket is made. */
void sockets_reserve(void);
/* The program closes or replaces this number: it is not for a new rsocket. */
void sockets_unreserve(int fd);
/* A number for a new rsocket, or -1 with errno and the rsocket closed. */
int sockets_add(int rs, bool cloexec);
/* `fd' has rsockets now.  -1 with errno, and the set closed. */
int sockets_add_set(int fd, int set);
/* `to' is a new number for what `from' is, which it may have been before. */
void sockets_copy(int from, int to);
/* As close(). */
int sockets_close(int fd);

/* In ms, rounded up; NULL: -1. */
int sockets_milliseconds(const struct timespec *timeout);

#endif
