/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits until an absolute time for what another thread does: conditions,
 * semaphores, mutexes, read/write locks, message queues.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "interpose/shown.h"
#include "interpose/wait.h"
#include "wait_fake.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, by_monotonic, shared;
static cnd_t c11_cond;
static mtx_t c11_mutex, c11_held;
static pthread_rwlock_t rwlock;
static sem_t sem;
static mqd_t queue;
static char text[16];

/* ------------------------------------------------------------------------
 * Each returns 0 or an errno.
 */

static int errno_of(int result)
{
	return result < 0 ? errno : 0;
}

static int errno_of_c11(int result)
{
	return result == thrd_success ? 0 : result == thrd_timedout ? ETIMEDOUT : EINVAL;
}

static int in_mutex(pthread_cond_t *on, const struct timespec *until, clockid_t clock)
{
	int r;

	pthread_mutex_lock(&mutex);
	r = clock < 0 ? polycm_cond_timedwait(on, &mutex, until) :
			pthread_cond_clockwait(on, &mutex, clock, until);
	/* It is ours again. */
	assert_int_equal(pthread_mutex_trylock(&mutex), EBUSY);
	pthread_mutex_unlock(&mutex);
	return r;
}

static int cond_until(const struct timespec *until)
{
	return in_mutex(&cond, until, -1);
}

static int cond_until_monotonic(const struct timespec *until)
{
	return in_mutex(&by_monotonic, until, -1);
}

static int cond_until_by_clock(const struct timespec *until)
{
	return in_mutex(&cond, until, CLOCK_MONOTONIC);
}

static int cnd_until(const struct timespec *until)
{
	int r;

	mtx_lock(&c11_mutex);
	r = cnd_timedwait(&c11_cond, &c11_mutex, until);
	mtx_unlock(&c11_mutex);
	return errno_of_c11(r);
}

static int sem_until(const struct timespec *until)
{
	return errno_of(sem_timedwait(&sem, until));
}

static int sem_until_by_clock(const struct timespec *until)
{
	return errno_of(sem_clockwait(&sem, CLOCK_MONOTONIC, until));
}

static int mutex_until(const struct timespec *until)
{
	return pthread_mutex_timedlock(&held, until);
}

static int mutex_until_by_clock(const struct timespec *until)
{
	return pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, until);
}

static int mtx_until(const struct timespec *until)
{
	return errno_of_c11(mtx_timedlock(&c11_held, until));
}

static int read_until(const struct timespec *until)
{
	return pthread_rwlock_timedrdlock(&rwlock, until);
}

static int read_until_by_clock(const struct timespec *until)
{
	return pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, until);
}

static int write_until(const struct timespec *until)
{
	return pthread_rwlock_timedwrlock(&rwlock, until);
}

static int write_until_by_clock(const struct timespec *until)
{
	return pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, until);
}

static int receive_until(const struct timespec *until)
{
	int n = (int)mq_timedreceive(queue, text, sizeof(text), NULL, until);

	assert_true(n == -1 || n == 3);
	return errno_of(n);
}

static int send_until(const struct timespec *until)
{
	return errno_of(mq_timedsend(queue, "new", 3, 0, until));
}

/* What another thread does. */
static void signal_cond(void)
{
	polycm_cond_signal(&cond);
}

static void signal_monotonic(void)
{
	polycm_cond_signal(&by_monotonic);
}

static void broadcast_cond(void)
{
	polycm_cond_broadcast(&cond);
}

static void signal_cnd(void)
{
	cnd_signal(&c11_cond);
}

static void post_sem(void)
{
	sem_post(&sem);
}

static void unlock_mutex(void)
{
	pthread_mutex_unlock(&held);
}

static void unlock_mtx(void)
{
	mtx_unlock(&c11_held);
}

static void unlock_rwlock(void)
{
	pthread_rwlock_unlock(&rwlock);
}

static void send_message(void)
{
	assert_int_equal(mq_send(queue, "old", 3, 0), 0);
}

static void receive_message(void)
{
	assert_int_equal(mq_receive(queue, text, sizeof(text), NULL), 3);
}

/* Before it, so that it has to wait; and after it came. */
static void nothing(void)
{
}

static void lock_held(void)
{
	pthread_mutex_lock(&held);
}

static void lock_c11_held(void)
{
	mtx_lock(&c11_held);
}

static void lock_to_read(void)
{
	pthread_rwlock_rdlock(&rwlock);
}

/* Who has written may not wait to read, so that is another. */
static struct {
	pthread_t thread;
	sem_t has, shall_end;
	bool writes;
} writer;

static void *write_for_a_while(void *unused)
{
	(void)unused;
	pthread_rwlock_wrlock(&rwlock);
	sem_post(&writer.has);
	sem_wait(&writer.shall_end);
	pthread_rwlock_unlock(&rwlock);
	return NULL;
}

static void begin_to_write(void)
{
	assert_int_equal(pthread_create(&writer.thread, NULL, write_for_a_while, NULL), 0);
	sem_wait(&writer.has);
	writer.writes = true;
}

static void end_writing(void)
{
	sem_post(&writer.shall_end);
	pthread_join(writer.thread, NULL);
	writer.writes = false;
}

static void end_reading_or_writing(void)
{
	if (writer.writes)
		end_writing();
	else
		unlock_rwlock();
}

static const struct way {
	const char *name;
	int (*until)(const struct timespec *until);
	clockid_t clock;
	void (*before)(void), (*happens)(void), (*after)(void);
	bool interruptible;
} ways[] = {
	{ "pthread_cond_timedwait", cond_until, CLOCK_REALTIME, nothing, signal_cond, nothing, false },
	{ "pthread_cond_timedwait by CLOCK_MONOTONIC", cond_until_monotonic, CLOCK_MONOTONIC, nothing,
	  signal_monotonic, nothing, false },
	{ "pthread_cond_clockwait", cond_until_by_clock, CLOCK_MONOTONIC, nothing, broadcast_cond,
	  nothing, false },
	{ "cnd_timedwait", cnd_until, CLOCK_REALTIME, nothing, signal_cnd, nothing, false },
	{ "sem_timedwait", sem_until, CLOCK_REALTIME, nothing, post_sem, nothing, true },
	{ "sem_clockwait", sem_until_by_clock, CLOCK_MONOTONIC, nothing, post_sem, nothing, true },
	{ "pthread_mutex_timedlock", mutex_until, CLOCK_REALTIME, lock_held, unlock_mutex,
	  unlock_mutex, false },
	{ "pthread_mutex_clocklock", mutex_until_by_clock, CLOCK_MONOTONIC, lock_held, unlock_mutex,
	  unlock_mutex, false },
	{ "mtx_timedlock", mtx_until, CLOCK_REALTIME, lock_c11_held, unlock_mtx, unlock_mtx, false },
	{ "pthread_rwlock_timedrdlock", read_until, CLOCK_REALTIME, begin_to_write, end_writing,
	  end_reading_or_writing, false },
	{ "pthread_rwlock_clockrdlock", read_until_by_clock, CLOCK_MONOTONIC, begin_to_write,
	  end_writing, end_reading_or_writing, false },
	{ "pthread_rwlock_timedwrlock", write_until, CLOCK_REALTIME, lock_to_read, unlock_rwlock,
	  unlock_rwlock, false },
	{ "pthread_rwlock_clockwrlock", write_until_by_clock, CLOCK_MONOTONIC, lock_to_read,
	  unlock_rwlock, unlock_rwlock, false },
	{ "mq_timedreceive", receive_until, CLOCK_REALTIME, nothing, send_message, nothing, true },
	{ "mq_timedsend", send_until, CLOCK_REALTIME, send_message, receive_message, receive_message,
	  true },
};

static struct timespec in(clockid_t clock, int64_t ns)
{
	struct timespec time;

	clock_gettime(clock, &time);
	ns += time.tv_nsec;
	time.tv_sec += ns / 1000000000;
	time.tv_nsec = ns % 1000000000;
	if (time.tv_nsec < 0) {
		time.tv_nsec += 1000000000;
		time.tv_sec--;
	}
	return time;
}

static const struct {
	const char *what;
	int64_t ns;
	bool at_once, later;		/* when what it waits for comes: before, after 3 steps */
	int result;
	uint64_t now;
	unsigned int spins;
} waits[] = {
	{ "comes later", 3600000 * (int64_t)MS, false, true, 0, 3 * STEP, 0 },
	{ "too late", 25 * (int64_t)MS, false, true, ETIMEDOUT, 25 * MS, 0 },
	{ "just in time", 30 * (int64_t)MS, false, true, 0, 3 * STEP, 0 },
	{ "never", 86400000 * (int64_t)MS, false, false, ETIMEDOUT, 86400000 * MS, 0 },
	{ "the time is past", -5, false, false, ETIMEDOUT, 0, 1 },
	{ "it is there", 86400000 * (int64_t)MS, true, false, 0, 0, 0 },
	{ "it is there, and the time is past", -5, true, false, 0, 0, 0 },
};

static void each_call_waits_in_virtual_time(void **state)
{
	(void)state;
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++)
		for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
			bool is_cond = ways[w].before == nothing && !ways[w].interruptible;
			struct timespec until;
			int r;

			/* Conditions do not remember. */
			if (is_cond && waits[i].at_once)
				continue;
			print_message("%s: %s\n", ways[w].name, waits[i].what);
			begin(NEVER, 0, 5);
			ways[w].before();
			if (waits[i].at_once)
				ways[w].happens();
			if (waits[i].later)
				scene.happens = ways[w].happens;
			until = in(ways[w].clock, waits[i].ns);
			r = ways[w].until(&until);
			assert_int_equal(r, waits[i].result);
			assert_int_equal(scene.now, waits[i].now);
			assert_int_equal(scene.spins, waits[i].spins);
			assert_int_equal(scene.slices + scene.for_ever, 0);
			ways[w].after();
		}
}

/* What came too late is still there. */
static void tidy_up(void)
{
	while (!sem_trywait(&sem))
		;
}

static void signals_end_only_some(void **state)
{
	(void)state;
	handle_signal();
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		struct timespec until;

		print_message("%s\n", ways[w].name);
		tidy_up();
		begin(NEVER, 0, 5);
		ways[w].before();
		scene.raises = true;
		until = in(ways[w].clock, 1000 * (int64_t)MS);
		assert_int_equal(ways[w].until(&until), ways[w].interruptible ? EINTR : ETIMEDOUT);
		assert_int_equal(signals, w + 1);
		assert_int_equal(scene.now, ways[w].interruptible ? STEP : 1000 * MS);
		ways[w].after();
	}
}

/* The fabric goes while the call waits: it goes on in real time, or ends for no reason. */
static void time_may_become_real_during_a_wait(void **state)
{
	(void)state;
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		bool is_cond = ways[w].before == nothing && !ways[w].interruptible;
		struct timespec until;

		print_message("%s\n", ways[w].name);
		begin(NEVER, 0, 0);
		scene.now = 86400000 * MS;
		ways[w].before();
		scene.end[0] = -ENODEV;
		until = in(ways[w].clock, 1);
		assert_int_equal(ways[w].until(&until), is_cond ? 0 : ETIMEDOUT);
		ways[w].after();
	}
}

/* Days of virtual time are over, and a deadline is no further away than it was. */
static void real_waits_end_as_well(void **state)
{
	(void)state;
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		struct timespec until;

		print_message("%s\n", ways[w].name);
		begin(NEVER, 0, 0);
		scene.now = 86400000 * MS;
		scene.is_virtual = false;
		polycm_shown_switch(false);
		ways[w].before();
		until = in(ways[w].clock, 1);
		assert_int_equal(ways[w].until(&until), ETIMEDOUT);
		ways[w].after();
	}
	/* Who else may signal it nobody here knows. */
	begin(NEVER, 0, 5);
	assert_int_equal(in_mutex(&shared, &(struct timespec){ .tv_sec = 1 }, -1), ETIMEDOUT);
	assert_int_equal(scene.spins + scene.asked, 0);
}

static void what_makes_no_sense_is_refused(void **state)
{
	struct timespec bad = { .tv_sec = 1, .tv_nsec = 1000000000 }, good = { .tv_sec = 1 };

	(void)state;
	begin(NEVER, 0, 5);
	assert_int_equal(cond_until(&bad), EINVAL);
	assert_int_equal(cond_until_by_clock(&bad), EINVAL);
	assert_int_equal(in_mutex(&cond, &good, CLOCK_BOOTTIME), EINVAL);
	assert_int_equal(sem_until(&bad), EINVAL);
	assert_int_equal(sem_clockwait(&sem, CLOCK_TAI, &good), -1);
	assert_int_equal(errno, EINVAL);
	lock_held();
	assert_int_equal(mutex_until(&bad), EINVAL);
	unlock_mutex();
	/* A mutex that is not ours. */
	good = in(CLOCK_REALTIME, 1000 * (int64_t)MS);
	pthread_mutexattr_t attr;
	pthread_mutex_t checked;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&checked, &attr);
	assert_int_equal(polycm_cond_timedwait(&cond, &checked, &good), EPERM);
	pthread_mutex_lock(&checked);
	assert_int_equal(pthread_mutex_timedlock(&checked, &good), EDEADLK);
	pthread_mutex_unlock(&checked);
	pthread_mutex_destroy(&checked);
	pthread_mutexattr_destroy(&attr);
	assert_int_equal(scene.now, 0);
}

/* polycm's own waits are real. */
static void our_own_waits_are_real(void **state)
{
	(void)state;
	begin(NEVER, 0, 5);
	scene.now = 86400000 * MS;
	pthread_mutex_lock(&mutex);
	assert_int_equal(polycm_libc_cond_wait(&by_monotonic, &mutex,
					       polycm_libc_ns(CLOCK_MONOTONIC) + 1), ETIMEDOUT);
	pthread_mutex_unlock(&mutex);
	assert_int_equal(scene.asked + scene.spins, 0);
	assert_false(polycm_cond_waits_really());
}

/* ------------------------------------------------------------------------ */

static int start(void **state)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = sizeof(text) };
	pthread_condattr_t condattr;
	char name[32];

	(void)state;
	pthread_condattr_init(&condattr);
	pthread_condattr_setclock(&condattr, CLOCK_MONOTONIC);
	pthread_cond_init(&by_monotonic, &condattr);
	pthread_condattr_setpshared(&condattr, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&shared, &condattr);
	pthread_condattr_destroy(&condattr);
	pthread_rwlock_init(&rwlock, NULL);
	cnd_init(&c11_cond);
	mtx_init(&c11_mutex, mtx_plain);
	mtx_init(&c11_held, mtx_timed);
	sem_init(&sem, 0, 0);
	sem_init(&writer.has, 0, 0);
	sem_init(&writer.shall_end, 0, 0);
	snprintf(name, sizeof(name), "/polycm-%d", (int)getpid());
	queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, &attr);
	if (queue != (mqd_t)-1)
		mq_unlink(name);
	return queue == (mqd_t)-1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		VIRTUAL(each_call_waits_in_virtual_time),
		VIRTUAL(signals_end_only_some),
		VIRTUAL(time_may_become_real_during_a_wait),
		VIRTUAL(real_waits_end_as_well),
		VIRTUAL(what_makes_no_sense_is_refused),
		VIRTUAL(our_own_waits_are_real),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
