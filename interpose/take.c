/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/take.c - waits until an absolute time for something that can be taken:
 * semaphores, mutexes, read/write locks, places and messages in queues.
 *
 * Before virtual time moves, the C library is called with a time in the past: it takes the
 * thing at once, or returns ETIMEDOUT.  If the wait cannot be virtual, the C library waits
 * until the same moment of the real clock.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>

#include "core/base/export.h"
#include "host.h"
#include "libc.h"
#include "shown.h"
#include "wait.h"

struct take {
	struct polycm_wait wait;
	/* The C library's wait until a real time.  Returns 0 or an errno. */
	int (*until)(struct take *take, const struct timespec *until);
	void *object;
	clockid_t clock;
	bool interruptible;		/* by a signal handler, with EINTR */
	struct {
		mqd_t queue;
		size_t len;
		unsigned int *priority;
		ssize_t taken;
	} message;
	int err;
};

static int ask(struct polycm_wait *wait, const struct timespec *limit, const sigset_t *mask)
{
	static const struct timespec past;
	struct take *self = (struct take *)wait;

	self->err = self->until(self, &past);
	if (self->err != ETIMEDOUT)
		return 1;
	if (polycm_libc()->ppoll(NULL, 0, limit, mask) < 0 && (errno != EINTR || self->interruptible))
		return -errno;
	return 0;
}

static int wait_in_virtual_time(struct take *take, uint64_t ns)
{
	int r;

	take->wait.ask = ask;
	take->wait.timeout_ns = ns;
	r = polycm_wait(&take->wait);
	if (r > 0)
		return take->err;
	return r ? -r : ETIMEDOUT;
}

/* Returns 0 or an errno. */
static int take_until(struct take *take, const struct timespec *until)
{
	struct timespec real;
	int state, r = ENODEV;

	/* A wait without a time, for a message, is one for a descriptor: in real time. */
	if (__builtin_expect(!polycm_shown_is(POLYCM_SHOWN_MOVED), 1) || !until ||
	    !polycm_shown_can_wait(take->clock, until))
		return take->until(take, until);
	if (!time_is_real()) {
		if (!take->interruptible)
			pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
		r = wait_in_virtual_time(take, polycm_shown_until(take->clock, until));
		if (!take->interruptible)
			pthread_setcancelstate(state, NULL);
	}
	if (r != ENODEV)
		return r;
	real = polycm_shown_to_real(take->clock, until);
	return take->until(take, &real);
}

/* ------------------------------------------------------------------------
 * Mutexes and read/write locks.
 */

static int take_lock(const char *call, int (*lock_until)(struct take *, const struct timespec *),
		     void *lock, clockid_t clock, const struct timespec *until)
{
	struct take take = { .wait = { .call = call }, .until = lock_until, .object = lock,
			     .clock = clock };

	return take_until(&take, until);
}

/* A call that waits until a time of CLOCK_REALTIME, and the same for any clock. */
#define LOCK_CALLS(lock_type, timed, clocked)                                                      \
	static int timed##_until(struct take *take, const struct timespec *until)                  \
	{                                                                                          \
		if (take->clock == CLOCK_REALTIME)                                                 \
			return polycm_libc()->timed(take->object, until);                          \
		return polycm_libc()->clocked(take->object, take->clock, until);                   \
	}                                                                                          \
                                                                                                   \
	POLYCM_EXPORT int timed(lock_type *restrict lock, const struct timespec *restrict until)   \
	{                                                                                          \
		return take_lock(#timed, timed##_until, lock, CLOCK_REALTIME, until);              \
	}                                                                                          \
                                                                                                   \
	POLYCM_EXPORT int clocked(lock_type *restrict lock, clockid_t clock,                       \
				  const struct timespec *restrict until)                           \
	{                                                                                          \
		return take_lock(#clocked, timed##_until, lock, clock, until);                     \
	}

LOCK_CALLS(pthread_mutex_t, pthread_mutex_timedlock, pthread_mutex_clocklock)
LOCK_CALLS(pthread_rwlock_t, pthread_rwlock_timedrdlock, pthread_rwlock_clockrdlock)
LOCK_CALLS(pthread_rwlock_t, pthread_rwlock_timedwrlock, pthread_rwlock_clockwrlock)

static int mtx_until(struct take *take, const struct timespec *until)
{
	int r = polycm_libc()->mtx_timedlock(take->object, until);

	if (r == thrd_timedout)
		return ETIMEDOUT;
	return r == thrd_success ? 0 : EINVAL;
}

POLYCM_EXPORT int mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict until)
{
	int err = take_lock("mtx_timedlock", mtx_until, mutex, CLOCK_REALTIME, until);

	if (err == ETIMEDOUT)
		return thrd_timedout;
	return err ? thrd_error : thrd_success;
}

/* ------------------------------------------------------------------------
 * Semaphores and message queues, whose waits signals interrupt.
 */

static int sem_until(struct take *take, const struct timespec *until)
{
	int r;

	if (take->clock == CLOCK_REALTIME)
		r = polycm_libc()->sem_timedwait(take->object, until);
	else
		r = polycm_libc()->sem_clockwait(take->object, take->clock, until);
	return r ? errno : 0;
}

static int take_sem(const char *call, sem_t *sem, clockid_t clock, const struct timespec *until)
{
	struct take take = { .wait = { .call = call }, .until = sem_until, .object = sem,
			     .clock = clock, .interruptible = true };

	return polycm_wait_return(-take_until(&take, until));
}

POLYCM_EXPORT int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict until)
{
	return take_sem("sem_timedwait", sem, CLOCK_REALTIME, until);
}

POLYCM_EXPORT int sem_clockwait(sem_t *restrict sem, clockid_t clock,
				const struct timespec *restrict until)
{
	return take_sem("sem_clockwait", sem, clock, until);
}

static int send_until(struct take *take, const struct timespec *until)
{
	return polycm_libc()->mq_timedsend(take->message.queue, take->object, take->message.len,
					   *take->message.priority, until) ? errno : 0;
}

static int receive_until(struct take *take, const struct timespec *until)
{
	take->message.taken = polycm_libc()->mq_timedreceive(take->message.queue, take->object,
							     take->message.len,
							     take->message.priority, until);
	return take->message.taken < 0 ? errno : 0;
}

POLYCM_EXPORT int mq_timedsend(mqd_t queue, const char *message, size_t len,
			       unsigned int priority, const struct timespec *until)
{
	struct take take = {
		.wait = { .call = "mq_timedsend" },
		.until = send_until,
		.object = (void *)(uintptr_t)message,
		.clock = CLOCK_REALTIME,
		.interruptible = true,
		.message = { .queue = queue, .len = len, .priority = &priority },
	};

	return polycm_wait_return(-take_until(&take, until));
}

POLYCM_EXPORT ssize_t mq_timedreceive(mqd_t queue, char *restrict message, size_t len,
				      unsigned int *restrict priority,
				      const struct timespec *restrict until)
{
	struct take take = {
		.wait = { .call = "mq_timedreceive" },
		.until = receive_until,
		.object = message,
		.clock = CLOCK_REALTIME,
		.interruptible = true,
		.message = { .queue = queue, .len = len, .priority = priority },
	};

	return polycm_wait_return(-take_until(&take, until)) ? -1 : take.message.taken;
}
