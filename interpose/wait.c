/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/wait.c - a wait of the program in virtual time.
 *
 * The clock moves time from one event to the next.  After each the kernel is asked, without
 * waiting, whether a descriptor is ready.  When nothing is left that could happen, the wait
 * becomes a real one if a descriptor is not ours; else it is a deadlock.
 *
 * Signals are blocked except while the kernel is asked, so that a signal in between interrupts
 * the call as it would interrupt the C library's.
 */
#include "config.h"

#include "host.h"
#include "wait.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "held_signals.h"
#include "libc.h"

/* Real time between checks whether other threads moved virtual time. */
#define SLICE_NS 2000000
#define HANDLER_POLLS 1000u	/* unsuccessful ones in handlers, in a row, before time moves */

static const struct timespec at_once;

static void end_wait(void *arg)
{
	const struct polycm_wait *wait = arg;

	release_signals(&wait->before);
}

static void ask(struct polycm_wait *wait, const struct timespec *limit, const sigset_t *mask)
{
	if (wait->ask)
		wait->result = wait->ask(wait, limit, mask);
	else
		wait->result = polycm_libc()->ppoll(NULL, 0, limit, mask) < 0 ? -errno : 0;
}

static bool look(void *arg)
{
	struct polycm_wait *wait = arg;

	ask(wait, &at_once, &wait->while_waiting);
	return wait->result != 0;
}

/* Only the kernel can end the wait now, or another thread of the program if there is one. */
static void really_wait(struct polycm_wait *wait, bool alone)
{
	static const struct timespec slice = { .tv_nsec = SLICE_NS };

	ask(wait, alone ? NULL : &slice, &wait->while_waiting);
}

static void log_deadlock(const struct polycm_wait *wait, const struct polycm_waited *waited)
{
	polycm_host()->log(POLYCM_LOG_ERROR, NULL, "%s waits for what can never happen: %s", wait->call,
		   waited->text);
}

static void find_waited(struct polycm_wait *wait, struct polycm_waited *waited)
{
	memset(waited, 0, sizeof(*waited));
	if (wait->waited)
		wait->waited(wait, waited);
}

/*
 * Descriptors may be added to an epoll set while a thread waits on it, so they are checked each
 * time.  A wait without descriptors is one for a signal.
 */
static int wait_until(struct polycm_wait *wait, uint64_t deadline)
{
	struct polycm_clock_wait request = {
		.size = sizeof(request),
		.deadline_ns = deadline,
		.look = look,
		.arg = wait,
	};
	struct polycm_waited waited;
	int err;

	for (;;) {
		request.only_ours = false;
		err = polycm_host()->clock_wait(&request);
		if (err != -EAGAIN && err != -EDEADLK)
			return err;
		find_waited(wait, &waited);
		if (waited.others || !waited.ours) {
			really_wait(wait, err == -EDEADLK);
			if (wait->result)
				return 0;
		} else if (err == -EDEADLK) {
			log_deadlock(wait, &waited);
			return err;
		} else {
			request.only_ours = true;
			err = polycm_host()->clock_wait(&request);
			if (err != -EDEADLK)
				return err;
		}
	}
}

static uint64_t deadline_of(uint64_t start, uint64_t timeout_ns)
{
	if (timeout_ns == POLYCM_FOREVER)
		return POLYCM_FOREVER;
	return timeout_ns < POLYCM_FOREVER - 1 - start ? start + timeout_ns : POLYCM_FOREVER - 1;
}

static int wait_for_something(struct polycm_wait *wait)
{
	uint64_t start = polycm_host()->now_ns(), passed;
	int err;

	wait->result = 0;
	hold_signals(&wait->before);
	wait->while_waiting = wait->mask ? *wait->mask : wait->before;
	pthread_cleanup_push(end_wait, wait);
	err = wait_until(wait, deadline_of(start, wait->timeout_ns));
	pthread_cleanup_pop(1);

	passed = polycm_host()->now_ns() - start;
	wait->left_ns = wait->timeout_ns > passed ? wait->timeout_ns - passed : 0;
	if (err == -ETIMEDOUT)
		return 0;
	return err ? err : wait->result;
}

/* Is a signal blocked that has a handler?  It is while the handler runs. */
static bool is_handling(void)
{
	struct sigaction action;
	sigset_t held;

	if (pthread_sigmask(SIG_BLOCK, NULL, &held))
		return false;
	for (int number = 1; number < NSIG; number++)
		if (sigismember(&held, number) == 1 && !sigaction(number, NULL, &action) &&
		    (action.sa_flags & SA_SIGINFO ||
		     (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN)))
			return true;
	return false;
}

/*
 * Unsuccessful polls in a row move time, which takes memory and locks that a signal handler may
 * have interrupted.  A program that polls very often blocks a signal for another reason.
 */
void polycm_wait_spin(void)
{
	static unsigned int polls;	/* atomic */

	if (is_handling() && __atomic_add_fetch(&polls, 1, __ATOMIC_RELAXED) < HANDLER_POLLS)
		return;
	__atomic_store_n(&polls, 0, __ATOMIC_RELAXED);
	polycm_host()->clock_spin();
}

static int ask_once(struct polycm_wait *wait)
{
	wait->left_ns = 0;
	ask(wait, &at_once, wait->mask);
	if (!wait->result)
		polycm_wait_spin();
	return wait->result;
}

int polycm_wait(struct polycm_wait *wait)
{
	int saved_errno = errno;
	int r = wait->timeout_ns ? wait_for_something(wait) : ask_once(wait);

	errno = saved_errno;
	return r;
}

void polycm_hold(struct polycm_held *ret_held)
{
	hold_signals(&ret_held->signals);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &ret_held->cancel_state);
}

void polycm_release(const struct polycm_held *held)
{
	pthread_setcancelstate(held->cancel_state, NULL);
	release_signals(&held->signals);
}

int polycm_wait_return(int result)
{
	if (result >= 0)
		return result;
	errno = -result;
	return -1;
}

bool polycm_wait_valid(const struct timespec *time)
{
	return time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < (long)POLYCM_NS_PER_S;
}

uint64_t polycm_wait_ns(const struct timespec *time)
{
	uint64_t seconds = (uint64_t)time->tv_sec;

	if (seconds >= POLYCM_FOREVER / POLYCM_NS_PER_S)
		return POLYCM_FOREVER;
	return seconds * POLYCM_NS_PER_S + (uint64_t)time->tv_nsec;
}

struct timespec polycm_wait_timespec(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / POLYCM_NS_PER_S),
		.tv_nsec = (long)(ns % POLYCM_NS_PER_S),
	};
}
