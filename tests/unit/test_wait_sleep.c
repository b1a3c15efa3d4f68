/* SPDX-License-Identifier: BSD-2-Clause */
/* The program's own sleep: sleep(), usleep(), nanosleep(), clock_nanosleep(), thrd_sleep(). */
#include "config.h"

#include <errno.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "wait_fake.h"

static void sleeping_moves_virtual_time(void **state)
{
	struct timespec time = { .tv_sec = 2, .tv_nsec = 5000 }, left = { .tv_sec = 4711 };

	(void)state;
	begin(NEVER, 0, 3);
	assert_int_equal(nanosleep(&time, &left), 0);
	assert_int_equal(scene.now, 2000 * MS + 5000);
	assert_int_equal(left.tv_sec, 4711);
	assert_int_equal(clock_nanosleep(CLOCK_REALTIME, 0, &time, &left), 0);
	assert_int_equal(scene.now, 4000 * MS + 10000);
	assert_int_equal(usleep(250), 0);
	assert_int_equal(scene.now, 4000 * MS + 260000);
	assert_int_equal(sleep(3600), 0);
	assert_int_equal(scene.now, 3604000 * MS + 260000);
	assert_int_equal(scene.slices + scene.for_ever, 0);
	assert_int_equal(thrd_sleep(&time, NULL), 0);
	assert_int_equal(scene.now, 3606000 * MS + 265000);
	/* No wait at all is a vain look. */
	time = (struct timespec){ 0 };
	assert_int_equal(nanosleep(&time, NULL), 0);
	assert_int_equal(usleep(0), 0);
	assert_int_equal(sleep(0), 0);
	assert_int_equal(scene.spins, 3);
	assert_int_equal(scene.now, 3606000 * MS + 265000);
}

static void signals_end_sleep(void **state)
{
	struct timespec time = { .tv_sec = 2 }, left;

	(void)state;
	begin(3, -EINTR, 5);
	assert_int_equal(nanosleep(&time, &left), -1);
	assert_int_equal(errno, EINTR);
	assert_int_equal(left.tv_sec, 1);
	assert_int_equal(left.tv_nsec, 970 * MS);
	begin(3, -EINTR, 5);
	assert_int_equal(nanosleep(&time, NULL), -1);
	begin(3, -EINTR, 5);
	errno = 0;
	assert_int_equal(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &left), EINTR);
	assert_int_equal(errno, 0);
	assert_int_equal(left.tv_nsec, 970 * MS);
	begin(3, -EINTR, 5);
	assert_int_equal(thrd_sleep(&time, &left), -1);
	assert_int_equal(left.tv_nsec, 970 * MS);
	begin(3, -EINTR, 5);
	assert_int_equal(usleep(2000000), -1);
	assert_int_equal(errno, EINTR);
	begin(3, -EINTR, 5);
	assert_int_equal(sleep(2), 2);
	/* One that comes between two looks at the kernel, too. */
	handle_signal();
	begin(NEVER, 0, 5);
	scene.raises = true;
	assert_int_equal(nanosleep(&time, &left), -1);
	assert_int_equal(errno, EINTR);
	assert_int_equal(signals, 1);
	assert_int_equal(left.tv_nsec, 990 * MS);
}

/* A program that sleeps until 10, 20, 30 s from now sleeps 10 s each time, and its clock says so. */
static void absolute_times_are_those_that_clocks_show(void **state)
{
	static const clockid_t clocks[] = {
		CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI,
	};
	struct timespec until, now, past = { .tv_sec = 1 };
	uint64_t before;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
		begin(NEVER, 0, 0);
		scene.now = 1000000 * MS;
		assert_int_equal(clock_gettime(clocks[i], &until), 0);
		for (int round = 0; round < 5; round++) {
			before = scene.now;
			until.tv_sec += 10;
			assert_int_equal(clock_nanosleep(clocks[i], TIMER_ABSTIME, &until, NULL), 0);
			assert_int_equal(scene.now, before + 10000 * MS);
			assert_int_equal(clock_gettime(clocks[i], &now), 0);
			assert_memory_equal(&now, &until, sizeof(now));
		}
		/* What is past ends no sleep later. */
		before = scene.now;
		assert_int_equal(clock_nanosleep(clocks[i], TIMER_ABSTIME, &past, NULL), 0);
		assert_int_equal(clock_nanosleep(clocks[i], TIMER_ABSTIME, &until, NULL), 0);
		assert_int_equal(scene.now, before);
		assert_int_equal(scene.spins, 2);
		/* Virtual time that passes otherwise counts. */
		scene.now += 4000 * MS;
		until.tv_sec += 10;
		assert_int_equal(clock_nanosleep(clocks[i], TIMER_ABSTIME, &until, NULL), 0);
		assert_int_equal(scene.now, before + 10000 * MS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		VIRTUAL(sleeping_moves_virtual_time),
		VIRTUAL(signals_end_sleep),
		VIRTUAL(absolute_times_are_those_that_clocks_show),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
