/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/poll.c - poll(), ppoll() and what fortified programs call for them.
 */
#undef _FORTIFY_SOURCE	/* its inline functions have the names of ours */
#include "config.h"

#include "host.h"
#include "libc.h"
#include "wait.h"

#include <errno.h>

#include "core/base/export.h"

struct poll_wait {
	struct polycm_wait wait;
	struct pollfd *fds;
	nfds_t num;
};

static int ask(struct polycm_wait *wait, const struct timespec *limit, const sigset_t *mask)
{
	struct poll_wait *self = (struct poll_wait *)wait;
	int n = polycm_libc()->ppoll(self->fds, self->num, limit, mask);

	return n < 0 ? -errno : n;
}

static void waited(struct polycm_wait *wait, struct polycm_waited *all)
{
	struct poll_wait *self = (struct poll_wait *)wait;

	for (nfds_t i = 0; i < self->num; i++)
		if (self->fds[i].fd >= 0)
			polycm_waited_add(all, self->fds[i].fd);
}

static int virtual_poll(const char *call, struct pollfd *fds, nfds_t num, uint64_t timeout_ns,
			const sigset_t *mask)
{
	struct poll_wait self = {
		.wait = {
			.call = call,
			.timeout_ns = timeout_ns,
			.mask = mask,
			.ask = ask,
			.waited = waited,
		},
		.fds = fds,
		.num = num,
	};

	return polycm_wait(&self.wait);
}

POLYCM_EXPORT int poll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	int r = time_is_real() ? -ENODEV :
		virtual_poll("poll", fds, nfds, polycm_wait_milliseconds(timeout), NULL);

	return r == -ENODEV ? polycm_libc()->poll(fds, nfds, timeout) : polycm_wait_return(r);
}

POLYCM_EXPORT int ppoll(struct pollfd *fds, nfds_t nfds, const struct timespec *timeout,
			const sigset_t *mask)
{
	int r = polycm_wait_is_real(timeout) ? -ENODEV :
		virtual_poll("ppoll", fds, nfds, polycm_wait_timeout(timeout), mask);

	return r == -ENODEV ? polycm_libc()->ppoll(fds, nfds, timeout, mask) :
			      polycm_wait_return(r);
}

/* The C library's ends the program where the array is too short. */
POLYCM_EXPORT int __poll_chk(struct pollfd *fds, nfds_t nfds, int timeout, size_t size)
{
	if (time_is_real() || size / sizeof(*fds) < nfds)
		return polycm_libc()->__poll_chk(fds, nfds, timeout, size);
	return poll(fds, nfds, timeout);
}

POLYCM_EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t nfds, const struct timespec *timeout,
			      const sigset_t *mask, size_t size)
{
	if (time_is_real() || size / sizeof(*fds) < nfds)
		return polycm_libc()->__ppoll_chk(fds, nfds, timeout, mask, size);
	return ppoll(fds, nfds, timeout, mask);
}
