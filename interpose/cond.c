/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/cond.c - waits on conditions until an absolute time.
 *
 * The C library does not know of a thread that waits so in virtual time: the thread is in
 * our list, has unlocked its mutex, and waits as for any other time-out.  A signal of the
 * condition wakes a thread of our list, and one that waits in the C library, without a
 * time: both may wake, since a wait may always end for no reason.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include <utlist.h>

#include "core/base/export.h"
#include "host.h"
#include "libc.h"
#include "shown.h"
#include "wait.h"

/* ------------------------------------------------------------------------
 * Which clock a condition was made with, and whether processes share it.  The C library
 * does not tell; where it stores this is learnt from two conditions that differ in it.
 */

struct trait {
	size_t at;
	unsigned char bits, value;	/* bits 0: it is not known where */
};

static struct trait is_monotonic, is_shared;

static struct trait learn(int (*set)(pthread_condattr_t *attr, int value), int value)
{
	union {
		pthread_cond_t cond;
		unsigned char bytes[sizeof(pthread_cond_t)];
	} plain, other;
	struct trait trait = { .at = 0 };
	pthread_condattr_t attr;

	memset(&plain, 0, sizeof(plain));
	memset(&other, 0, sizeof(other));
	pthread_condattr_init(&attr);
	set(&attr, value);
	pthread_cond_init(&plain.cond, NULL);
	pthread_cond_init(&other.cond, &attr);
	for (size_t i = 0; i < sizeof(plain.bytes) && !trait.bits; i++) {
		trait.at = i;
		trait.bits = plain.bytes[i] ^ other.bytes[i];
		trait.value = other.bytes[i] & trait.bits;
	}
	pthread_cond_destroy(&plain.cond);
	pthread_cond_destroy(&other.cond);
	pthread_condattr_destroy(&attr);
	return trait;
}

static void learn_traits(void)
{
	is_monotonic = learn(pthread_condattr_setclock, CLOCK_MONOTONIC);
	is_shared = learn(pthread_condattr_setpshared, PTHREAD_PROCESS_SHARED);
}

static bool has(const void *cond, const struct trait *trait)
{
	const unsigned char *byte = (const unsigned char *)cond + trait->at;

	return trait->bits && (__atomic_load_n(byte, __ATOMIC_RELAXED) & trait->bits) == trait->value;
}

static clockid_t clock_of(const void *cond)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, learn_traits);
	return has(cond, &is_monotonic) ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

/* ------------------------------------------------------------------------
 * Who waits.
 */

struct waiter {
	struct polycm_wait wait;
	const void *cond;
	void *mutex;
	bool is_c11;			/* the mutex is an mtx_t */
	pthread_t thread;
	bool signalled;			/* atomic */
	struct waiter *prev, *next;
};

/* ThreadSanitizer does not see the locks that a thread takes inside a wait. */
#define LIST_LOCKED __attribute__((no_sanitize("thread")))

static pthread_mutex_t waiters_lock = PTHREAD_MUTEX_INITIALIZER;
static struct waiter *waiters;		/* who waits longest is first */
static unsigned int num_waiters;	/* atomic */

static void lock_waiters(void)
{
	pthread_mutex_lock(&waiters_lock);
}

static void unlock_waiters(void)
{
	pthread_mutex_unlock(&waiters_lock);
}

/* A child of fork() has only the thread that forked, in a signal handler if it waits. */
static void forget_other_threads(void)
{
	struct waiter *waiter, *next;

	DL_FOREACH_SAFE(waiters, waiter, next) {
		if (pthread_equal(waiter->thread, pthread_self()))
			continue;
		DL_DELETE(waiters, waiter);
		num_waiters--;
	}
	unlock_waiters();
}

static void watch_forks(void)
{
	pthread_atfork(lock_waiters, unlock_waiters, forget_other_threads);
}

LIST_LOCKED static void join_list(struct waiter *waiter)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct polycm_held held;

	pthread_once(&once, watch_forks);
	polycm_hold(&held);
	lock_waiters();
	DL_APPEND(waiters, waiter);
	__atomic_add_fetch(&num_waiters, 1, __ATOMIC_SEQ_CST);
	unlock_waiters();
	polycm_release(&held);
}

LIST_LOCKED static void leave_list(struct waiter *waiter)
{
	struct polycm_held held;

	polycm_hold(&held);
	lock_waiters();
	DL_DELETE(waiters, waiter);
	__atomic_sub_fetch(&num_waiters, 1, __ATOMIC_SEQ_CST);
	unlock_waiters();
	polycm_release(&held);
}

LIST_LOCKED static void wake_listed(const void *cond, bool all)
{
	struct polycm_held held;
	struct waiter *waiter;

	polycm_hold(&held);
	lock_waiters();
	DL_FOREACH(waiters, waiter) {
		if (waiter->cond != cond || waiter->signalled)
			continue;
		__atomic_store_n(&waiter->signalled, true, __ATOMIC_RELEASE);
		if (!all)
			break;
	}
	unlock_waiters();
	polycm_release(&held);
}

static void wake(const void *cond, bool all)
{
	if (__builtin_expect(__atomic_load_n(&num_waiters, __ATOMIC_RELAXED) != 0, 0))
		wake_listed(cond, all);
}

int polycm_cond_signal(pthread_cond_t *cond)
{
	wake(cond, false);
	return polycm_libc()->pthread_cond_signal(cond);
}

int polycm_cond_broadcast(pthread_cond_t *cond)
{
	wake(cond, true);
	return polycm_libc()->pthread_cond_broadcast(cond);
}

POLYCM_EXPORT int cnd_signal(cnd_t *cond)
{
	wake(cond, false);
	return polycm_libc()->cnd_signal(cond);
}

POLYCM_EXPORT int cnd_broadcast(cnd_t *cond)
{
	wake(cond, true);
	return polycm_libc()->cnd_broadcast(cond);
}

/* ------------------------------------------------------------------------
 * Waiting.
 */

/* Signals are handled, and do not end the wait. */
static int ask(struct polycm_wait *wait, const struct timespec *limit, const sigset_t *mask)
{
	struct waiter *self = (struct waiter *)wait;

	if (__atomic_load_n(&self->signalled, __ATOMIC_ACQUIRE))
		return 1;
	if (polycm_libc()->ppoll(NULL, 0, limit, mask) < 0 && errno != EINTR)
		return -errno;
	return __atomic_load_n(&self->signalled, __ATOMIC_ACQUIRE);
}

/*
 * With the calls that the program uses: ThreadSanitizer knows only those of POSIX, and
 * would report that the mutex of an mtx_lock() was never locked.
 */
static int lock(const struct waiter *self)
{
	if (!self->is_c11)
		return pthread_mutex_lock(self->mutex);
	return mtx_lock(self->mutex) == thrd_success ? 0 : EINVAL;
}

static int unlock(const struct waiter *self)
{
	if (!self->is_c11)
		return pthread_mutex_unlock(self->mutex);
	return mtx_unlock(self->mutex) == thrd_success ? 0 : EPERM;
}

/* The thread is cancelled: its clean-up handlers expect the mutex locked. */
static void cancelled(void *arg)
{
	struct waiter *self = arg;

	leave_list(self);
	/* It passes its signal on to another thread. */
	if (self->signalled)
		wake(self->cond, false);
	(void)lock(self);
}

static int wait_in_virtual_time(struct waiter *self)
{
	int r, err;

	join_list(self);
	err = unlock(self);
	if (err) {
		leave_list(self);
		return err;
	}
	pthread_cleanup_push(cancelled, self);
	r = polycm_wait(&self->wait);
	pthread_cleanup_pop(0);
	leave_list(self);
	err = lock(self);
	if (err)
		return err;
	/* If time has become real, the wait ends for no reason and the program waits again. */
	return r || self->signalled ? 0 : ETIMEDOUT;
}

/*
 * clock NULL: the one that the condition was made with.  Returns an errno; ENODEV: the C
 * library has to wait, until *ret_until.
 */
static int wait_until(const char *call, void *cond, void *mutex, bool is_c11,
		      const clockid_t *clock, const struct timespec *until,
		      struct timespec *ret_until)
{
	struct waiter waiter;
	clockid_t by;

	*ret_until = *until;
	if (__builtin_expect(!polycm_shown_is(POLYCM_SHOWN_MOVED), 1) ||
	    polycm_cond_waits_really() ||
	    !polycm_shown_can_wait(clock ? *clock : CLOCK_REALTIME, until))
		return ENODEV;
	by = clock_of(cond);
	if (clock)
		by = *clock;
	if (time_is_real() || has(cond, &is_shared)) {
		*ret_until = polycm_shown_to_real(by, until);
		return ENODEV;
	}
	waiter = (struct waiter){
		.wait = { .call = call, .ask = ask, .timeout_ns = polycm_shown_until(by, until) },
		.cond = cond,
		.mutex = mutex,
		.is_c11 = is_c11,
		.thread = pthread_self(),
	};
	return wait_in_virtual_time(&waiter);
}

int polycm_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
			  const struct timespec *until)
{
	struct timespec real;
	int r = wait_until("pthread_cond_timedwait", cond, mutex, false, NULL, until, &real);

	return r == ENODEV ? polycm_libc()->pthread_cond_timedwait(cond, mutex, &real) : r;
}

POLYCM_EXPORT int pthread_cond_clockwait(pthread_cond_t *restrict cond,
					 pthread_mutex_t *restrict mutex, clockid_t clock,
					 const struct timespec *restrict until)
{
	struct timespec real;
	int r = wait_until("pthread_cond_clockwait", cond, mutex, false, &clock, until, &real);

	return r == ENODEV ? polycm_libc()->pthread_cond_clockwait(cond, mutex, clock, &real) : r;
}

/* The C library's cnd_t and mtx_t are the types of POSIX under other names. */
POLYCM_EXPORT int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex,
				const struct timespec *restrict until)
{
	struct timespec real;
	int r = wait_until("cnd_timedwait", cond, mutex, true, NULL, until, &real);

	if (r == ENODEV)
		return polycm_libc()->cnd_timedwait(cond, mutex, &real);
	if (r == ETIMEDOUT)
		return thrd_timedout;
	return r ? thrd_error : thrd_success;
}
