/* SPDX-License-Identifier: BSD-2-Clause */
/* wait_fake.c - see wait_fake.h. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "interpose/shown.h"
#include "wait_fake.h"

struct scene scene;
struct polycm_libc real_libc;
volatile sig_atomic_t signals;

/* ------------------------------------------------------------------------
 * The kernel.
 */

/* It was held back until now. */
static bool signal_is_let_in(const sigset_t *mask)
{
	sigset_t pending;

	return scene.raises && mask && !sigpending(&pending) && sigismember(&pending, SIGUSR1) &&
	       !sigismember(mask, SIGUSR1);
}

static int answer(const struct timespec *limit, const sigset_t *mask)
{
	if (!limit)
		scene.for_ever++;
	else if (limit->tv_sec || limit->tv_nsec)
		scene.slices++;
	else
		scene.at_once++;
	scene.has_mask = mask != NULL;
	if (mask)
		scene.mask = *mask;
	if (signal_is_let_in(mask)) {
		errno = EINTR;
		return -1;
	}
	if (scene.asked++ < scene.ready_after)
		return 0;
	if (scene.answer >= 0)
		return scene.answer;
	errno = -scene.answer;
	return -1;
}

static int fake_ppoll(struct pollfd *fds, nfds_t nfds, const struct timespec *limit,
		      const sigset_t *mask)
{
	int n = answer(limit, mask);

	for (nfds_t i = 0; i < nfds; i++)
		fds[i].revents = n > 0 ? POLLIN : 0;
	return n;
}

static int fake_pselect(int nfds, fd_set *readable, fd_set *writable, fd_set *other,
			const struct timespec *limit, const sigset_t *mask)
{
	int n = answer(limit, mask);

	(void)nfds;
	if (n >= 0 && writable)
		FD_ZERO(writable);
	if (n >= 0 && other)
		FD_ZERO(other);
	if (!n && readable)
		FD_ZERO(readable);
	return n;
}

static int fake_epoll_pwait(int set, struct epoll_event *events, int max, int timeout,
			    const sigset_t *mask)
{
	static const struct timespec at_once;

	(void)set;
	(void)events;
	assert_int_equal(timeout, 0);
	return max > 0 ? answer(&at_once, mask) : real_libc.epoll_pwait(set, events, max, 0, mask);
}

/* What was found ready a moment ago. */
static int fake_epoll_wait(int set, struct epoll_event *events, int max, int timeout)
{
	(void)set;
	assert_int_equal(timeout, 0);
	assert_in_range(max, 1, INT_MAX);
	events[0] = (struct epoll_event){ .events = EPOLLIN };
	return scene.answer;
}

/* ------------------------------------------------------------------------
 * The clock.
 */

static uint64_t clock_now(void *ctx)
{
	(void)ctx;
	return scene.now;
}

static int clock_timer_start(void *ctx, uint64_t deadline_ns, void (*fn)(void *arg), void *arg,
			     struct polycm_timer **ret_timer)
{
	(void)ctx, (void)deadline_ns, (void)fn, (void)arg, (void)ret_timer;
	return -ENOSYS;
}

static void clock_timer_cancel(void *ctx, struct polycm_timer *timer)
{
	(void)ctx, (void)timer;
}

static bool clock_is_virtual(void *ctx)
{
	(void)ctx;
	return scene.is_virtual;
}

static int clock_wait(void *ctx, const struct polycm_clock_wait *wait)
{
	unsigned int end = scene.ends < ARRAY_SIZE(scene.end) ? scene.ends : 2;

	(void)ctx;
	for (;; scene.steps--) {
		if (wait->look(wait->arg))
			return 0;
		if (!scene.steps || scene.now + STEP > wait->deadline_ns)
			break;
		scene.now += STEP;
		if (scene.raises && scene.now == STEP)
			raise(SIGUSR1);
		if (scene.happens && scene.now == 3 * STEP)
			scene.happens();
	}
	if (wait->deadline_ns != UINT64_MAX && scene.end[end] != -ENODEV) {
		scene.now = wait->deadline_ns;
		return wait->look(wait->arg) ? 0 : -ETIMEDOUT;
	}
	scene.ends++;
	return scene.end[end];
}

static void clock_spin(void *ctx)
{
	(void)ctx;
	scene.spins++;
}

static uint64_t clock_read(void *ctx, const void *frame)
{
	(void)ctx;
	scene.reads++;
	scene.frame = frame;
	return scene.now;
}

static bool clock_owns_fd(void *ctx, int fd, char *text, size_t size)
{
	(void)ctx;
	snprintf(text, size, "thing %d", fd);
	return fd >= OURS;
}

static const struct polycm_clock fake_clock = {
	.size = sizeof(fake_clock),
	.now_ns = clock_now,
	.timer_start = clock_timer_start,
	.timer_cancel = clock_timer_cancel,
	.is_virtual = clock_is_virtual,
	.wait = clock_wait,
	.spin = clock_spin,
	.owns_fd = clock_owns_fd,
	.read_ns = clock_read,
};

/* ------------------------------------------------------------------------ */

void begin(unsigned int ready_after, int what, unsigned int steps)
{
	polycm_shown_switch(false);
	memset(&scene, 0, sizeof(scene));
	scene.is_virtual = true;
	polycm_shown_switch(true);
	scene.ready_after = ready_after;
	scene.answer = what;
	scene.steps = steps;
}

int fakes_install(void **state)
{
	(void)state;
	if (!real_libc.poll)
		real_libc = *polycm_libc();
	polycm_libc_found.ppoll = fake_ppoll;
	polycm_libc_found.pselect = fake_pselect;
	polycm_libc_found.epoll_pwait = fake_epoll_pwait;
	polycm_libc_found.epoll_wait = fake_epoll_wait;
	return polycm_clock_install(&fake_clock, NULL);
}

int fakes_remove(void **state)
{
	(void)state;
	polycm_libc_found = real_libc;
	polycm_shown_switch(false);
	return 0;
}

static void count_signal(int number)
{
	(void)number;
	signals++;
}

void handle_signal(void)
{
	struct sigaction action = { .sa_handler = count_signal };

	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	signals = 0;
}
