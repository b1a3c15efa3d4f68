/* SPDX-License-Identifier: BSD-2-Clause */
/* interpose/read.c - read(), which waits for a timerfd in virtual time. */
#undef _FORTIFY_SOURCE	/* its inline functions have the names of ours */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "core/base/export.h"
#include "host.h"
#include "libc.h"
#include "shown.h"
#include "timers.h"
#include "wait.h"

struct timer_wait {
	struct polycm_wait wait;
	int fd;
};

static int ask(struct polycm_wait *wait, const struct timespec *limit, const sigset_t *mask)
{
	struct pollfd pfd = { .fd = ((struct timer_wait *)wait)->fd, .events = POLLIN };
	int n = polycm_libc()->ppoll(&pfd, 1, limit, mask);

	return n < 0 ? -errno : n;
}

/* 8, or a negative errno; -ENODEV: the C library reads the descriptor. */
static ssize_t read_timer(int fd, void *buf)
{
	struct timer_wait self = {
		.wait = { .call = "read", .timeout_ns = POLYCM_FOREVER, .ask = ask },
		.fd = fd,
	};
	uint64_t num;
	int r;

	for (;;) {
		if (!polycm_timerfd_take(fd, &num))
			return -ENODEV;
		if (num) {
			memcpy(buf, &num, sizeof(num));
			return sizeof(num);
		}
		if (polycm_libc()->fcntl(fd, F_GETFL) & O_NONBLOCK) {
			polycm_wait_spin();
			return -EAGAIN;
		}
		r = time_is_real() ? -ENODEV : polycm_wait(&self.wait);
		if (r < 0)
			return r;
	}
}

static ssize_t read_any(int fd, void *buf, size_t size)
{
	uint64_t num;
	ssize_t r = -ENODEV;

	/* Time is real for a signal handler that interrupted the clock: it must not call the clock. */
	if (!time_is_real() && buf)
		r = read_timer(fd, buf);
	if (r != -ENODEV)
		return polycm_wait_return((int)r);
	r = polycm_libc()->read(fd, buf, size);
	/* It may have been set while this call waited. */
	if (r == (ssize_t)sizeof(num) && !time_is_real() && polycm_timerfd_take(fd, &num) && num)
		memcpy(buf, &num, sizeof(num));
	return r;
}

static bool may_be_timer(size_t size)
{
	return size >= sizeof(uint64_t) && __builtin_expect(polycm_shown_is(POLYCM_SHOWN_MOVED), 0);
}

POLYCM_EXPORT ssize_t read(int fd, void *buf, size_t size)
{
	return may_be_timer(size) ? read_any(fd, buf, size) : polycm_libc()->read(fd, buf, size);
}

/* The C library's ends the program if the buffer is too short. */
POLYCM_EXPORT ssize_t __read_chk(int fd, void *buf, size_t size, size_t room)
{
	if (size > room)
		return polycm_libc()->__read_chk(fd, buf, size, room);
	return read(fd, buf, size);
}
