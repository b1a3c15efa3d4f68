/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/cond.c - waits on conditions until an absolute time.
 *
 * A thread that waits so in virtual time is none that the C library knows of:
 * it is in a list of ours, has let go of its mutex, and waits as for any other
 * time-out.  Who signals the condition looks into the list and then asks the
 * C library too, whose waiters are those without a time: one may be woken of
 * each, as a wait may always end for no reason.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "core/base/export.h"
#include "host.h"
#include "cond.h"
#include "libc.h"
#include "shown.h"
#include "wait.h"

/* ------------------------------------------------------------------------
 * Which clock a condition was made with, and whether other processes may
 * signal it: it is written in it, and two of which it is known say where.
 */

struct trait {
	size_t at;
	unsigned char bits, value;	/* no bits: not to be seen */
};

static struct trait is_monotonic, is_shared;

static struct trait learn(int (*set)(pthread_condattr_t *attr, int value), int value)
{
	struct trait trait = { .at = 0 };
	unsigned char plain[sizeof(pthread_cond_t)], other[sizeof(pthread_cond_t)];
	pthread_condattr_t attr;
	pthread_cond_t cond;

	memset(&cond, 0, sizeof(cond));
	pthread_cond_init(&cond, NULL);
	memcpy(plain, &cond, sizeof(cond));
	pthread_cond_destroy(&cond);
	memset(&cond, 0, sizeof(cond));
	pthread_condattr_init(&attr);
	set(&attr, value);
	pthread_cond_init(&cond, &attr);
	memcpy(other, &cond, sizeof(cond));
	pthread_cond_destroy(&cond);
	pthread_condattr_destroy(&attr);
	for (size_t i = 0; i < sizeof(cond); i++) {
		if (plain[i] == other[i])
			continue;
		trait = (struct trait){ .at = i, .bits = plain[i] ^ other[i] };
		trait.value = other[i] & trait.bits;
		break;
	}
	return trait;
}

static void learn_traits(void)
{
	is_monotonic = learn(pthread_condattr_setclock, CLOCK_MONOTONIC);
	is_shared = learn(pthread_condattr_setpshared, PTHREAD_PROCESS_SHARED);
}

static bool has(const pthread_cond_t *cond, const struct trait *trait)
{
	const unsigned char *byte = (const unsigned char *)cond + trait->at;

	return trait->bits && (__atomic_load_n(byte, __ATOMIC_RELAXED) & trait->bits) == trait->value;
}

static clockid_t clock_of(const pthread_cond_t *cond)
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
	const pthread_cond_t *cond;
	pthread_mutex_t *mutex;
	bool is_c11;			/* the mutex is an mtx_t, under the same name */
	pthread_t thread;
	bool signalled;			/* atomic */
	struct waiter *next, **before;
};

/* ThreadSanitizer does not see the locks that a thread takes inside a wait. */
#define LIST_LOCKED __attribute__((no_sanitize("thread")))

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct waiter *list, **list_end = &list;	/* who waits longest is first */
static unsigned int num_waiters;		/* atomic */

static void lock_list(void)
{
	pthread_mutex_lock(&list_lock);
}

static void unlock_list(void)
{
	pthread_mutex_unlock(&list_lock);
}

static void append(struct waiter *waiter)
{
	waiter->next = NULL;
	waiter->before = list_end;
	*list_end = waiter;
	list_end = &waiter->next;
	__atomic_add_fetch(&num_waiters, 1, __ATOMIC_SEQ_CST);
}

/* A child of fork() has the thread alone that forked, in a signal handler if it waits. */
static void forget_waiters(void)
{
	struct waiter *waiter = list, *next;

	list = NULL;
	list_end = &list;
	num_waiters = 0;
	for (; waiter; waiter = next) {
		next = waiter->next;
		if (pthread_equal(waiter->thread, pthread_self()))
			append(waiter);
	}
	unlock_list();
}

/* A handler may fork, which takes the lock, and who is cancelled must not keep it. */
struct list_held {
	sigset_t signals;
	int cancel_state;
};

static void hold_list(struct list_held *held)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &held->signals);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &held->cancel_state);
	lock_list();
}

static void release_list(const struct list_held *held)
{
	unlock_list();
	pthread_setcancelstate(held->cancel_state, NULL);
	pthread_sigmask(SIG_SETMASK, &held->signals, NULL);
}

static void watch_forks(void)
{
	pthread_atfork(lock_list, unlock_list, forget_waiters);
}

LIST_LOCKED static void join_list(struct waiter *waiter)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct list_held held;

	pthread_once(&once, watch_forks);
	hold_list(&held);
	append(waiter);
	release_list(&held);
}

LIST_LOCKED static void leave_list(struct waiter *waiter)
{
	struct list_held held;

	hold_list(&held);
	*waiter->before = waiter->next;
	if (waiter->next)
		waiter->next->before = waiter->before;
	else
		list_end = waiter->before;
	__atomic_sub_fetch(&num_waiters, 1, __ATOMIC_SEQ_CST);
	release_list(&held);
}

LIST_LOCKED static void wake(const void *cond, bool all)
{
	struct list_held held;
	bool woken = false;

	hold_list(&held);
	for (struct waiter *waiter = list; waiter && (all || !woken); waiter = waiter->next) {
		if (waiter->cond != cond || waiter->signalled)
			continue;
		__atomic_store_n(&waiter->signalled, true, __ATOMIC_RELEASE);
		woken = true;
	}
	release_list(&held);
}

static bool somebody_waits(void)
{
	return __builtin_expect(__atomic_load_n(&num_waiters, __ATOMIC_RELAXED) != 0, 0);
}

int polycm_cond_signal(pthread_cond_t *cond)
{
	if (somebody_waits())
		wake(cond, false);
	return polycm_libc()->cond_signal(cond);
}

int polycm_cond_broadcast(pthread_cond_t *cond)
{
	if (somebody_waits())
		wake(cond, true);
	return polycm_libc()->cond_broadcast(cond);
}

POLYCM_EXPORT int cnd_signal(cnd_t *cond)
{
	if (somebody_waits())
		wake(cond, false);
	return polycm_libc()->cnd_signal(cond);
}

POLYCM_EXPORT int cnd_broadcast(cnd_t *cond)
{
	if (somebody_waits())
		wake(cond, true);
	return polycm_libc()->cnd_broadcast(cond);
}

/* ------------------------------------------------------------------------
 * Waiting.
 */

/* A signal is handled and the wait goes on. */
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
 * By the calls that the program locks it with: ThreadSanitizer knows of POSIX'
 * alone, and would say that the mutex of mtx_lock() was never locked.
 */
static int lock(const struct waiter *self)
{
	if (!self->is_c11)
		return pthread_mutex_lock(self->mutex);
	return mtx_lock((mtx_t *)self->mutex) == thrd_success ? 0 : EINVAL;
}

static int unlock(const struct waiter *self)
{
	if (!self->is_c11)
		return pthread_mutex_unlock(self->mutex);
	return mtx_unlock((mtx_t *)self->mutex) == thrd_success ? 0 : EPERM;
}

/* The thread is cancelled: its handlers find the mutex locked. */
static void cancelled(void *arg)
{
	struct waiter *self = arg;

	leave_list(self);
	/* A signal that it got was for one that goes on. */
	if (self->signalled)
		wake(self->cond, false);
	(void)lock(self);
}

static int wait_in_virtual_time(struct waiter *self, uint64_t ns)
{
	int r, err;

	self->wait.timeout_ns = ns;
	join_list(self);
	err = unlock(self);
	if (err) {
		leave_list(self);
		return err;
	}
	pthread_cleanup_push(cancelled, self);
	r = ns ? polycm_wait(&self->wait) : polycm_wait_not(&self->wait);
	pthread_cleanup_pop(0);
	leave_list(self);
	err = lock(self);
	if (err)
		return err;
	/* Where time is not virtual any more it ends for no reason, and the program waits again. */
	return r || self->signalled ? 0 : ETIMEDOUT;
}

static bool is_virtual(const pthread_cond_t *cond)
{
	return !time_is_real() && !has(cond, &is_shared);
}

static int wait_until(const char *call, pthread_cond_t *cond, pthread_mutex_t *mutex, bool is_c11,
		      clockid_t clock, const struct timespec *until)
{
	struct waiter waiter = {
		.wait = { .call = call, .ask = ask },
		.cond = cond,
		.mutex = mutex,
		.is_c11 = is_c11,
		.thread = pthread_self(),
	};

	return wait_in_virtual_time(&waiter, polycm_shown_until(clock, until));
}

/* It is the C library's where time never moved, and for us. */
static bool is_real(clockid_t clock, const struct timespec *until)
{
	return __builtin_expect(!polycm_shown_is(POLYCM_SHOWN_MOVED), 1) ||
	       polycm_cond_waits_really() || !polycm_shown_can_wait(clock, until);
}

int polycm_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
			  const struct timespec *until)
{
	struct timespec real;
	clockid_t clock;

	if (is_real(CLOCK_REALTIME, until))
		return polycm_libc()->cond_timedwait(cond, mutex, until);
	clock = clock_of(cond);
	if (is_virtual(cond))
		return wait_until("pthread_cond_timedwait", cond, mutex, false, clock, until);
	real = polycm_shown_to_real(clock, until);
	return polycm_libc()->cond_timedwait(cond, mutex, &real);
}

POLYCM_EXPORT int pthread_cond_clockwait(pthread_cond_t *restrict cond,
					 pthread_mutex_t *restrict mutex, clockid_t clock,
					 const struct timespec *restrict until)
{
	struct timespec real;

	if (is_real(clock, until))
		return polycm_libc()->cond_clockwait(cond, mutex, clock, until);
	clock_of(cond);
	if (is_virtual(cond))
		return wait_until("pthread_cond_clockwait", cond, mutex, false, clock, until);
	real = polycm_shown_to_real(clock, until);
	return polycm_libc()->cond_clockwait(cond, mutex, clock, &real);
}

POLYCM_EXPORT int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex,
				const struct timespec *restrict until)
{
	struct timespec real;
	int err;

	if (is_real(CLOCK_REALTIME, until))
		return polycm_libc()->cnd_timedwait(cond, mutex, until);
	if (time_is_real()) {
		real = polycm_shown_to_real(CLOCK_REALTIME, until);
		return polycm_libc()->cnd_timedwait(cond, mutex, &real);
	}
	/* The C library's are those of POSIX under other names. */
	err = wait_until("cnd_timedwait", (pthread_cond_t *)cond, (pthread_mutex_t *)mutex,
			 true, CLOCK_REALTIME, until);
	if (err)
		return err == ETIMEDOUT ? thrd_timedout : thrd_error;
	return thrd_success;
}
