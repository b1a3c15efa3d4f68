/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/take.c - waits until an absolute time for something that can be taken:
 * semaphores, mutexes, read/write locks, places and messages in queues.
 *
 * The C library takes it at once or says that a time in the past has come, so
 * it is asked that each time before virtual time moves.  Where the wait cannot
 * be virtual it is the C library's, until the same moment of the real clock.
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
	const char *call;
	clockid_t clock;
	bool interruptible;
	/* The C library's, until a real time: what it returned, or the errno. */
	int (*until)(struct take *take, const struct timespec *until);
	void *object;
	/* Of a message: */
	mqd_t queue;
	size_t len;
	unsigned int *priority;
	ssize_t taken;
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

	take->wait = (struct polycm_wait){
		.call = take->call,
		.ask = ask,
		.timeout_ns = ns,
	};
	r = ns ? polycm_wait(&take->wait) : polycm_wait_not(&take->wait);
	if (r > 0)
		return take->err;
	return r ? -r : ETIMEDOUT;
}

/* 0 or an errno. */
static int take_until(struct take *take, const struct timespec *until)
{
	struct timespec real;
	int state, r = ENODEV;

	/* Without a time a queue is waited for like any descriptor: really. */
	if (!until || !polycm_shown_can_wait(take->clock, until))
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

static bool never_moved(void)
{
	return __builtin_expect(!polycm_shown_is(POLYCM_SHOWN_MOVED), 1);
}

/* 0 or -1 with errno. */
static int posix_return(int err)
{
	if (!err)
		return 0;
	errno = err;
	return -1;
}

/* ------------------------------------------------------------------------
 * Semaphores.
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

POLYCM_EXPORT int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict until)
{
	struct take take = { .call = "sem_timedwait", .clock = CLOCK_REALTIME,
			     .interruptible = true, .until = sem_until, .object = sem };

	if (never_moved())
		return polycm_libc()->sem_timedwait(sem, until);
	return posix_return(take_until(&take, until));
}

POLYCM_EXPORT int sem_clockwait(sem_t *restrict sem, clockid_t clock,
				const struct timespec *restrict until)
{
	struct take take = { .call = "sem_clockwait", .clock = clock,
			     .interruptible = true, .until = sem_until, .object = sem };

	if (never_moved())
		return polycm_libc()->sem_clockwait(sem, clock, until);
	return posix_return(take_until(&take, until));
}

/* ------------------------------------------------------------------------
 * Mutexes.
 */

static int mutex_until(struct take *take, const struct timespec *until)
{
	if (take->clock == CLOCK_REALTIME)
		return polycm_libc()->mutex_timedlock(take->object, until);
	return polycm_libc()->mutex_clocklock(take->object, take->clock, until);
}

POLYCM_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex,
					  const struct timespec *restrict until)
{
	struct take take = { .call = "pthread_mutex_timedlock", .clock = CLOCK_REALTIME,
			     .until = mutex_until, .object = mutex };

	if (never_moved())
		return polycm_libc()->mutex_timedlock(mutex, until);
	return take_until(&take, until);
}

POLYCM_EXPORT int pthread_mutex_clocklock(pthread_mutex_t *restrict mutex, clockid_t clock,
					  const struct timespec *restrict until)
{
	struct take take = { .call = "pthread_mutex_clocklock", .clock = clock,
			     .until = mutex_until, .object = mutex };

	if (never_moved())
		return polycm_libc()->mutex_clocklock(mutex, clock, until);
	return take_until(&take, until);
}

static int mtx_until(struct take *take, const struct timespec *until)
{
	switch (polycm_libc()->mtx_timedlock(take->object, until)) {
	case thrd_success:
		return 0;
	case thrd_timedout:
		return ETIMEDOUT;
	default:
		return EINVAL;
	}
}

POLYCM_EXPORT int mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict until)
{
	struct take take = { .call = "mtx_timedlock", .clock = CLOCK_REALTIME,
			     .until = mtx_until, .object = mutex };
	int err;

	if (never_moved())
		return polycm_libc()->mtx_timedlock(mutex, until);
	err = take_until(&take, until);
	if (err)
		return err == ETIMEDOUT ? thrd_timedout : thrd_error;
	return thrd_success;
}

/* ------------------------------------------------------------------------
 * Read/write locks.
 */

static int read_until(struct take *take, const struct timespec *until)
{
	if (take->clock == CLOCK_REALTIME)
		return polycm_libc()->rwlock_timedrdlock(take->object, until);
	return polycm_libc()->rwlock_clockrdlock(take->object, take->clock, until);
}

static int write_until(struct take *take, const struct timespec *until)
{
	if (take->clock == CLOCK_REALTIME)
		return polycm_libc()->rwlock_timedwrlock(take->object, until);
	return polycm_libc()->rwlock_clockwrlock(take->object, take->clock, until);
}

POLYCM_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *restrict lock,
					     const struct timespec *restrict until)
{
	struct take take = { .call = "pthread_rwlock_timedrdlock", .clock = CLOCK_REALTIME,
			     .until = read_until, .object = lock };

	if (never_moved())
		return polycm_libc()->rwlock_timedrdlock(lock, until);
	return take_until(&take, until);
}

POLYCM_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *restrict lock,
					     const struct timespec *restrict until)
{
	struct take take = { .call = "pthread_rwlock_timedwrlock", .clock = CLOCK_REALTIME,
			     .until = write_until, .object = lock };

	if (never_moved())
		return polycm_libc()->rwlock_timedwrlock(lock, until);
	return take_until(&take, until);
}

POLYCM_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *restrict lock, clockid_t clock,
					     const struct timespec *restrict until)
{
	struct take take = { .call = "pthread_rwlock_clockrdlock", .clock = clock,
			     .until = read_until, .object = lock };

	if (never_moved())
		return polycm_libc()->rwlock_clockrdlock(lock, clock, until);
	return take_until(&take, until);
}

POLYCM_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *restrict lock, clockid_t clock,
					     const struct timespec *restrict until)
{
	struct take take = { .call = "pthread_rwlock_clockwrlock", .clock = clock,
			     .until = write_until, .object = lock };

	if (never_moved())
		return polycm_libc()->rwlock_clockwrlock(lock, clock, until);
	return take_until(&take, until);
}

/* ------------------------------------------------------------------------
 * Message queues.
 */

static int send_until(struct take *take, const struct timespec *until)
{
	return polycm_libc()->mq_timedsend(take->queue, take->object, take->len, *take->priority,
					   until) ? errno : 0;
}

static int receive_until(struct take *take, const struct timespec *until)
{
	take->taken = polycm_libc()->mq_timedreceive(take->queue, take->object, take->len,
						     take->priority, until);
	return take->taken < 0 ? errno : 0;
}

POLYCM_EXPORT int mq_timedsend(mqd_t queue, const char *message, size_t len,
			       unsigned int priority, const struct timespec *until)
{
	struct take take = { .call = "mq_timedsend", .clock = CLOCK_REALTIME,
			     .interruptible = true, .until = send_until, .queue = queue,
			     .object = (void *)(uintptr_t)message, .len = len,
			     .priority = &priority };

	if (never_moved())
		return polycm_libc()->mq_timedsend(queue, message, len, priority, until);
	return posix_return(take_until(&take, until));
}

POLYCM_EXPORT ssize_t mq_timedreceive(mqd_t queue, char *restrict message, size_t len,
				      unsigned int *restrict priority,
				      const struct timespec *restrict until)
{
	struct take take = { .call = "mq_timedreceive", .clock = CLOCK_REALTIME,
			     .interruptible = true, .until = receive_until, .queue = queue,
			     .object = message, .len = len, .priority = priority };

	if (never_moved())
		return polycm_libc()->mq_timedreceive(queue, message, len, priority, until);
	return posix_return(take_until(&take, until)) ? -1 : take.taken;
}
