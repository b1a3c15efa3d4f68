/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/signal.c - waits for a signal: sigtimedwait(); and pause(), sigsuspend(), sigwait()
 * and sigwaitinfo() while a timer of the program sends a signal in virtual time.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "core/base/export.h"
#include "host.h"
#include "libc.h"
#include "timers.h"
#include "wait.h"

static bool is_virtual(void)
{
	return __builtin_expect(__atomic_load_n(&polycm_alarms_set, __ATOMIC_RELAXED) != 0, 0) &&
	       !time_is_real();
}

/* ------------------------------------------------------------------------
 * Until a handler has run.
 */

static int wait_handled(const char *call, const sigset_t *mask)
{
	struct polycm_wait wait = { .call = call, .timeout_ns = POLYCM_FOREVER, .mask = mask };

	return polycm_wait(&wait);
}

POLYCM_EXPORT int pause(void)
{
	int r = is_virtual() ? wait_handled("pause", NULL) : -ENODEV;

	return r == -ENODEV ? polycm_libc()->pause() : polycm_wait_return(r);
}

POLYCM_EXPORT int sigsuspend(const sigset_t *mask)
{
	const sigset_t *volatile given = mask;
	int r = given && is_virtual() ? wait_handled("sigsuspend", given) : -ENODEV;

	return r == -ENODEV ? polycm_libc()->sigsuspend(given) : polycm_wait_return(r);
}

/* ------------------------------------------------------------------------
 * Until a signal is there to be taken.
 */

struct signal_wait {
	struct polycm_wait wait;
	const sigset_t *set;
	siginfo_t *info;
};

/* Others are handled meanwhile. */
static int ask(struct polycm_wait *wait, const struct timespec *limit, const sigset_t *mask)
{
	static const struct timespec at_once;
	struct signal_wait *self = (struct signal_wait *)wait;
	sigset_t held;
	int n;

	n = polycm_libc()->sigtimedwait(self->set, self->info, &at_once);
	if (n < 0 && errno != EAGAIN)
		return -errno;
	if (n > 0)
		return n;
	if (polycm_libc()->ppoll(NULL, 0, &at_once, mask) < 0)
		return -errno;
	if (limit && !limit->tv_sec && !limit->tv_nsec)
		return 0;
	pthread_sigmask(SIG_SETMASK, mask, &held);
	n = limit ? polycm_libc()->sigtimedwait(self->set, self->info, limit) :
		    polycm_libc()->sigwaitinfo(self->set, self->info);
	if (n < 0)
		n = errno == EAGAIN ? 0 : -errno;
	pthread_sigmask(SIG_SETMASK, &held, NULL);
	return n;
}

/* The signal; -EAGAIN after the time-out. */
static int wait_signal(const char *call, const sigset_t *set, siginfo_t *info, uint64_t ns)
{
	struct signal_wait self = {
		.wait = { .call = call, .timeout_ns = ns, .ask = ask },
		.set = set,
		.info = info,
	};
	int r = polycm_wait(&self.wait);

	return r ? r : -EAGAIN;
}

POLYCM_EXPORT int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
			       const struct timespec *restrict timeout)
{
	const sigset_t *volatile given = set;
	int r = -ENODEV;

	if (!time_is_real() && given && timeout && polycm_wait_valid(timeout))
		r = wait_signal("sigtimedwait", given, info, polycm_wait_ns(timeout));
	if (r == -ENODEV)
		return timeout ? polycm_libc()->sigtimedwait(given, info, timeout) :
				 sigwaitinfo(given, info);
	return polycm_wait_return(r);
}

POLYCM_EXPORT int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info)
{
	const sigset_t *volatile given = set;
	int r = -ENODEV;

	if (given && is_virtual())
		r = wait_signal("sigwaitinfo", given, info, POLYCM_FOREVER);
	return r == -ENODEV ? polycm_libc()->sigwaitinfo(given, info) : polycm_wait_return(r);
}

/* Signals that are handled meanwhile do not end it. */
POLYCM_EXPORT int sigwait(const sigset_t *restrict set, int *restrict signal)
{
	const sigset_t *volatile given = set;
	int r = -ENODEV;

	while (given && is_virtual()) {
		r = wait_signal("sigwait", given, NULL, POLYCM_FOREVER);
		if (r != -EINTR)
			break;
	}
	if (r < 0)
		return polycm_libc()->sigwait(given, signal);
	*signal = r;
	return 0;
}
