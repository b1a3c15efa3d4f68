/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program's own waits for descriptors: poll(), select(), epoll_wait() and
 * their like.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "capture.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "wait_fake.h"

#define OTHER 100		/* a descriptor that the clock does not own */

int __poll_chk(struct pollfd *fds, nfds_t nfds, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t nfds, const struct timespec *timeout,
		const sigset_t *mask, size_t size);

/* ------------------------------------------------------------------------
 * The calls, all in the same way: on one descriptor, with a time-out in ns.
 */

#define FOR_EVER UINT64_MAX

static struct pollfd one;
static fd_set readable;
static struct epoll_event events[2];
static int epoll_sets[2];	/* with OTHER in it, with OURS */

static int ms_of(uint64_t ns)
{
	return ns == FOR_EVER ? -1 : (int)(ns / MS);
}

static const struct timespec *timespec_of(uint64_t ns)
{
	static struct timespec time;

	time.tv_sec = (time_t)(ns / 1000000000u);
	time.tv_nsec = (long)(ns % 1000000000u);
	return ns == FOR_EVER ? NULL : &time;
}

static struct pollfd *pollfd_of(int fd)
{
	one = (struct pollfd){ .fd = fd, .events = POLLIN };
	return &one;
}

static fd_set *set_of(int fd)
{
	FD_ZERO(&readable);
	FD_SET(fd, &readable);
	return &readable;
}

static int epoll_set_of(int fd)
{
	return epoll_sets[fd >= OURS];
}

static struct timeval select_left;

static int call_poll(int fd, uint64_t ns, const sigset_t *mask)
{
	(void)mask;
	return poll(pollfd_of(fd), 1, ms_of(ns));
}

static int call_poll_chk(int fd, uint64_t ns, const sigset_t *mask)
{
	(void)mask;
	return __poll_chk(pollfd_of(fd), 1, ms_of(ns), sizeof(one));
}

static int call_ppoll(int fd, uint64_t ns, const sigset_t *mask)
{
	return ppoll(pollfd_of(fd), 1, timespec_of(ns), mask);
}

static int call_ppoll_chk(int fd, uint64_t ns, const sigset_t *mask)
{
	return __ppoll_chk(pollfd_of(fd), 1, timespec_of(ns), mask, sizeof(one));
}

static int call_select(int fd, uint64_t ns, const sigset_t *mask)
{
	(void)mask;
	select_left.tv_sec = (time_t)(ns / 1000000000u);
	select_left.tv_usec = (suseconds_t)(ns % 1000000000u / 1000u);
	return select(fd + 1, set_of(fd), NULL, NULL, ns == FOR_EVER ? NULL : &select_left);
}

static int call_pselect(int fd, uint64_t ns, const sigset_t *mask)
{
	return pselect(fd + 1, NULL, NULL, set_of(fd), timespec_of(ns), mask);
}

static int call_epoll_wait(int fd, uint64_t ns, const sigset_t *mask)
{
	(void)mask;
	return epoll_wait(epoll_set_of(fd), events, 2, ms_of(ns));
}

static int call_epoll_pwait(int fd, uint64_t ns, const sigset_t *mask)
{
	return epoll_pwait(epoll_set_of(fd), events, 2, ms_of(ns), mask);
}

static int call_epoll_pwait2(int fd, uint64_t ns, const sigset_t *mask)
{
	return epoll_pwait2(epoll_set_of(fd), events, 2, timespec_of(ns), mask);
}

static const struct call {
	const char *name;		/* as in the log */
	int (*call)(int fd, uint64_t ns, const sigset_t *mask);
	bool has_mask;
	bool looks_first;		/* asks once before it waits */
} calls[] = {
	{ "poll", call_poll, false, false },
	{ "poll", call_poll_chk, false, false },
	{ "ppoll", call_ppoll, true, false },
	{ "ppoll", call_ppoll_chk, true, false },
	{ "select", call_select, false, false },
	{ "pselect", call_pselect, true, false },
	{ "epoll_wait", call_epoll_wait, false, true },
	{ "epoll_pwait", call_epoll_pwait, true, true },
	{ "epoll_pwait2", call_epoll_pwait2, true, true },
};

/* ------------------------------------------------------------------------
 * Waits on descriptors.
 */

static const struct {
	const char *what;
	int fd;
	uint64_t timeout;
	unsigned int steps, ready_after;
	int answer;
	int end[3];
	int result, error;		/* what the call returns */
	uint64_t now;			/* at the end, from 0 */
	unsigned int slices, for_ever, spins;
} waits[] = {
	{ "ready at once", OURS, FOR_EVER, 5, 0, 1, {0}, 1, 0, 0, 0, 0, 0 },
	{ "ready at once, no wait", OURS, 0, 5, 0, 1, {0}, 1, 0, 0, 0, 0, 0 },
	{ "not ready, no wait", OURS, 0, 5, NEVER, 0, {0}, 0, 0, 0, 0, 0, 1 },
	{ "a bad descriptor", OURS, FOR_EVER, 5, 0, -EBADF, {0}, -1, EBADF, 0, 0, 0, 0 },
	{ "comes later", OURS, FOR_EVER, 5, 3, 1, {0}, 1, 0, 3 * STEP, 0, 0, 0 },
	{ "in time", OURS, 35 * MS, 5, 3, 1, {0}, 1, 0, 3 * STEP, 0, 0, 0 },
	{ "too late", OURS, 25 * MS, 5, 9, 1, {0}, 0, 0, 25 * MS, 0, 0, 0 },
	{ "never, with a time-out", OURS, 3600000 * MS, 2, NEVER, 0, {0}, 0, 0, 3600000 * MS,
	  0, 0, 0 },
	{ "another's, with a time-out", OTHER, 70 * MS, 2, NEVER, 0, {0}, 0, 0, 70 * MS, 0, 0, 0 },
	{ "a signal", OURS, 70 * MS, 5, 2, -EINTR, {0}, -1, EINTR, 2 * STEP, 0, 0, 0 },
	{ "never", OURS, FOR_EVER, 2, NEVER, 0, { -EDEADLK, -EDEADLK, -EDEADLK }, -1, EDEADLK,
	  2 * STEP, 0, 0, 0 },
	{ "another thread acts, then never", OURS, FOR_EVER, 1, NEVER, 0,
	  { -EAGAIN, -EDEADLK, -EDEADLK }, -1, EDEADLK, STEP, 0, 0, 0 },
	{ "another's comes after 1 real wait", OTHER, FOR_EVER, 1, 3, 1, { -EDEADLK }, 1, 0, STEP,
	  0, 1, 0 },
	{ "another's, while threads act", OTHER, FOR_EVER, 1, 4, 1,
	  { -EAGAIN, -EAGAIN, -EDEADLK }, 1, 0, STEP, 2, 0, 0 },
	{ "a signal during a real wait", OTHER, FOR_EVER, 0, 2, -EINTR, { -EDEADLK }, -1, EINTR, 0,
	  0, 1, 0 },
};

static void run_wait(const struct call *call, size_t i)
{
	unsigned int ready_after = waits[i].ready_after;
	struct capture capture;
	int result;

	/* The question before the wait is one more. */
	if (call->looks_first && ready_after && ready_after != NEVER)
		ready_after++;
	begin(ready_after, waits[i].answer, waits[i].steps);
	memcpy(scene.end, waits[i].end, sizeof(scene.end));
	if (!scene.end[1])
		scene.end[1] = scene.end[2] = scene.end[0];
	capture_begin(&capture);
	errno = 4711;
	result = call->call(waits[i].fd, waits[i].timeout, NULL);
	capture_end(&capture);
	assert_int_equal(result, waits[i].result);
	assert_int_equal(errno, result < 0 ? waits[i].error : 4711);
	assert_int_equal(scene.now, waits[i].now);
	assert_int_equal(scene.slices, waits[i].slices);
	assert_int_equal(scene.for_ever, waits[i].for_ever);
	assert_int_equal(scene.spins, waits[i].spins);
	if (result < 0 && waits[i].error == EDEADLK) {
		char line[128];

		snprintf(line, sizeof(line), "%s waits for what can never happen: thing %d\n",
			 call->name, OURS);
		assert_non_null(strstr(capture.text, line));
	} else {
		assert_string_equal(capture.text, "");
	}
}

static void each_call_waits_in_virtual_time(void **state)
{
	(void)state;
	for (size_t c = 0; c < ARRAY_SIZE(calls); c++)
		for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
			print_message("%s: %s\n", calls[c].name, waits[i].what);
			run_wait(&calls[c], i);
		}
}

/* The mask of the call holds while it waits; without one, the thread's. */
static void masks_hold(void **state)
{
	sigset_t own, given, now;

	(void)state;
	sigemptyset(&own);
	sigaddset(&own, SIGUSR1);
	sigemptyset(&given);
	sigaddset(&given, SIGUSR2);
	assert_int_equal(sigprocmask(SIG_SETMASK, &own, NULL), 0);
	for (size_t c = 0; c < ARRAY_SIZE(calls); c++) {
		bool theirs = calls[c].has_mask;

		begin(3, 1, 5);
		assert_int_equal(calls[c].call(OURS, FOR_EVER, &given), 1);
		assert_true(scene.has_mask);
		assert_int_equal(sigismember(&scene.mask, SIGUSR1), !theirs);
		assert_int_equal(sigismember(&scene.mask, SIGUSR2), theirs);
		assert_int_equal(sigismember(&scene.mask, SIGTERM), 0);
		assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &now), 0);
		assert_int_equal(sigismember(&now, SIGUSR1), 1);
		assert_int_equal(sigismember(&now, SIGUSR2), 0);
		assert_int_equal(sigismember(&now, SIGTERM), 0);
	}
	sigemptyset(&own);
	assert_int_equal(sigprocmask(SIG_SETMASK, &own, NULL), 0);
}

/* One that comes between two looks at the kernel is no less one that comes during the call. */
static void signals_interrupt(void **state)
{
	(void)state;
	handle_signal();
	for (size_t c = 0; c < ARRAY_SIZE(calls); c++) {
		begin(NEVER, 0, 5);
		scene.raises = true;
		assert_int_equal(calls[c].call(OURS, 1000 * MS, NULL), -1);
		assert_int_equal(errno, EINTR);
		assert_int_equal(signals, c + 1);
		assert_int_equal(scene.now, STEP);
	}
}

static void select_gives_sets_and_time_back(void **state)
{
	struct timeval left = { .tv_sec = 1 };
	fd_set in, out;

	(void)state;
	/* Comes after 20 ms of a second. */
	begin(2, 1, 5);
	assert_int_equal(call_select(OURS, 1000 * MS, NULL), 1);
	assert_true(FD_ISSET(OURS, &readable));
	assert_int_equal(select_left.tv_sec, 0);
	assert_int_equal(select_left.tv_usec, 980000);
	/* Nothing came. */
	begin(NEVER, 0, 5);
	assert_int_equal(call_select(OURS, 1000 * MS, NULL), 0);
	assert_false(FD_ISSET(OURS, &readable));
	assert_int_equal(select_left.tv_sec, 0);
	assert_int_equal(select_left.tv_usec, 0);
	/* A signal: sets are as they were. */
	begin(2, -EINTR, 5);
	assert_int_equal(call_select(OURS, 1000 * MS, NULL), -1);
	assert_true(FD_ISSET(OURS, &readable));
	assert_int_equal(select_left.tv_usec, 980000);
	/* Larger numbers than a set is long are none that the kernel looks at. */
	begin(1, 1, 5);
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(OURS, &in);
	FD_SET(OURS, &out);
	assert_int_equal(select(1 << 20, &in, &out, NULL, &left), 1);
	assert_true(FD_ISSET(OURS, &in));
	assert_false(FD_ISSET(OURS, &out));
	/* Only a time-out. */
	begin(NEVER, 0, 5);
	left = (struct timeval){ .tv_usec = 30000 };
	assert_int_equal(select(0, NULL, NULL, NULL, &left), 0);
	assert_int_equal(scene.now, 30 * MS);
}

/* Nested sets count for what is in them; nothing at all is a wait for a signal. */
static void sets_stand_for_what_is_in_them(void **state)
{
	struct epoll_event event = { .events = EPOLLIN };
	int outer = epoll_create1(EPOLL_CLOEXEC), inner = epoll_create1(EPOLL_CLOEXEC);
	struct pollfd fds[3] = { { .fd = outer }, { .fd = -1 }, { .fd = OURS + 1 } };
	struct capture capture;

	(void)state;
	assert_int_equal(epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event), 0);

	begin(2, -EINTR, 0);
	scene.end[0] = -EDEADLK;
	assert_int_equal(epoll_wait(outer, events, 1, -1), -1);
	assert_int_equal(errno, EINTR);
	assert_int_equal(scene.for_ever, 1);
	begin(1, -EINTR, 0);
	scene.end[0] = -EDEADLK;
	assert_int_equal(poll(NULL, 0, -1), -1);
	assert_int_equal(errno, EINTR);
	assert_int_equal(scene.for_ever, 1);

	assert_int_equal(epoll_ctl(inner, EPOLL_CTL_ADD, OURS, &event), 0);
	begin(NEVER, 0, 0);
	scene.end[0] = -EDEADLK;
	capture_begin(&capture);
	assert_int_equal(poll(fds, 3, -1), -1);
	capture_end(&capture);
	assert_int_equal(errno, EDEADLK);
	assert_non_null(strstr(capture.text, "poll waits for what can never happen: thing 600; "
					     "thing 601\n"));

	assert_int_equal(epoll_ctl(inner, EPOLL_CTL_ADD, OTHER, &event), 0);
	begin(1, 1, 0);
	scene.end[0] = -EDEADLK;
	assert_int_equal(poll(fds, 3, -1), 1);
	assert_int_equal(scene.for_ever, 1);
	close(inner);
	close(outer);
}

static void arguments_that_cannot_be_are_refused(void **state)
{
	struct timespec bad = { .tv_nsec = 1000000000 };
	struct timeval negative = { .tv_sec = -1 };

	(void)state;
	polycm_libc_found = real_libc;
	begin(0, 1, 0);
#define REFUSED(call) \
	do { \
		errno = 0; \
		assert_int_equal((call), -1); \
		assert_int_equal(errno, EINVAL); \
	} while (0)
	REFUSED(ppoll(pollfd_of(OURS), 1, &bad, NULL));
	REFUSED(select(-1, NULL, NULL, NULL, NULL));
	REFUSED(select(0, NULL, NULL, NULL, &negative));
	REFUSED(pselect(0, NULL, NULL, NULL, &bad, NULL));
	REFUSED(epoll_wait(epoll_sets[0], events, 0, -1));
	REFUSED(epoll_pwait(epoll_sets[0], events, 0, -1, NULL));
	REFUSED(epoll_pwait2(epoll_sets[0], events, 1, &bad, NULL));
	REFUSED(nanosleep(&bad, NULL));
	assert_int_equal(clock_nanosleep(CLOCK_MONOTONIC, 0, &bad, NULL), EINVAL);
	assert_int_equal(clock_nanosleep(4711, 0, &bad, NULL), EINVAL);
	assert_int_equal(scene.asked, 0);
}

/* ------------------------------------------------------------------------
 * Time that becomes real.
 */

static int real_poll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	(void)fds, (void)nfds;
	scene.passed_on += timeout == 70;
	return 42;
}

static void a_clock_may_be_real(void **state)
{
	(void)state;
	begin(0, 1, 0);
	scene.is_virtual = false;
	polycm_libc_found.poll = real_poll;
	assert_int_equal(poll(pollfd_of(OURS), 1, 70), 42);
	assert_int_equal(scene.passed_on, 1);
	polycm_clock_spin();
	assert_int_equal(scene.spins, 0);
	assert_int_equal(scene.asked, 0);
}

/* The fabric goes while the call waits. */
static void time_may_become_real_during_a_wait(void **state)
{
	(void)state;
	begin(NEVER, 0, 2);
	scene.end[0] = -ENODEV;
	polycm_libc_found.poll = real_poll;
	assert_int_equal(poll(pollfd_of(OURS), 1, 70), 42);
	assert_int_equal(scene.passed_on, 1);
}

/* ------------------------------------------------------------------------ */

static void make_descriptor(int number)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	assert_int_equal(dup2(fd, number), number);
	close(fd);
}

static int start(void **state)
{
	struct epoll_event event = { .events = EPOLLIN };

	(void)state;
	make_descriptor(OTHER);
	make_descriptor(OURS);
	make_descriptor(OURS + 1);
	for (int i = 0; i < 2; i++) {
		epoll_sets[i] = epoll_create1(EPOLL_CLOEXEC);
		assert_int_equal(epoll_ctl(epoll_sets[i], EPOLL_CTL_ADD, i ? OURS : OTHER, &event),
				 0);
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		VIRTUAL(each_call_waits_in_virtual_time),
		VIRTUAL(masks_hold),
		VIRTUAL(signals_interrupt),
		VIRTUAL(select_gives_sets_and_time_back),
		VIRTUAL(sets_stand_for_what_is_in_them),
		VIRTUAL(arguments_that_cannot_be_are_refused),
		VIRTUAL(a_clock_may_be_real),
		VIRTUAL(time_may_become_real_during_a_wait),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
