/* SPDX-License-Identifier: BSD-2-Clause */
/* What the clocks that a program reads show, and where they begin in virtual time. */
#include "config.h"

#include <errno.h>
#include <sys/time.h>
#include <time.h>

#include "core/base/clock.h"
#include "interpose/shown.h"
#include "wait_fake.h"

static const clockid_t clocks[] = {
	CLOCK_REALTIME,
	CLOCK_REALTIME_COARSE,
	CLOCK_REALTIME_ALARM,
	CLOCK_TAI,
	CLOCK_MONOTONIC,
	CLOCK_MONOTONIC_COARSE,
	CLOCK_MONOTONIC_RAW,
	CLOCK_BOOTTIME,
	CLOCK_BOOTTIME_ALARM,
};

/* Not every system has clocks that wake it. */
static const clockid_t really[ARRAY_SIZE(clocks)] = {
	CLOCK_REALTIME, CLOCK_REALTIME, CLOCK_REALTIME, CLOCK_TAI, CLOCK_MONOTONIC, CLOCK_MONOTONIC,
	CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_BOOTTIME,
};

static uint64_t ns_of(clockid_t clock)
{
	struct timespec time;

	assert_int_equal(clock_gettime(clock, &time), 0);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Before the tests' own framework has read a clock: where virtual time began, and where really. */
static uint64_t first[ARRAY_SIZE(clocks)], first_real[ARRAY_SIZE(clocks)];

static int read_first(void)
{
	void *none = NULL;
	int r = fakes_install(&none);

	/* What counts the processor's work tells nobody the time. */
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &(struct timespec){ 0 });
	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++)
		first_real[i] = polycm_libc_ns(really[i]);
	begin(NEVER, 0, 0);
	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++)
		first[i] = ns_of(clocks[i]);
	return r || fakes_remove(&none);
}

static void virtual_time_begins_with_a_full_second(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
		assert_int_equal(first[i] % (1000 * MS), 0);
		assert_in_range(first[i], first_real[i], first_real[i] + 60000 * MS);
	}
}

static void or_millisecond_if_clocks_were_read_before(void **state)
{
	uint64_t before[ARRAY_SIZE(clocks)];

	(void)state;
	for (int round = 0; round < 3; round++) {
		polycm_shown_switch(false);
		for (size_t i = 0; i < ARRAY_SIZE(clocks); i++)
			before[i] = ns_of(clocks[i]);
		begin(NEVER, 0, 0);
		for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
			assert_int_equal(ns_of(clocks[i]) % MS, 0);
			assert_in_range(ns_of(clocks[i]), before[i], UINT64_MAX);
		}
	}
}

static void clocks_move_with_virtual_time_alone(void **state)
{
	uint64_t before;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
		begin(NEVER, 0, 0);
		scene.now = 5;
		before = ns_of(clocks[i]);
		assert_int_equal(ns_of(clocks[i]), before);
		scene.now += 3600000 * MS + 1;
		assert_int_equal(ns_of(clocks[i]), before + 3600000 * MS + 1);
		assert_int_equal(scene.reads, 3);
	}
}

/* Whatever virtual time did, and when it began anew. */
static void clocks_never_go_back(void **state)
{
	static const uint64_t passes[] = { 0, 1, 3600000 * MS, 0, 7 };
	uint64_t last[ARRAY_SIZE(clocks)] = { 0 }, now;

	(void)state;
	for (size_t round = 0; round < 2 * ARRAY_SIZE(passes); round++) {
		if (round % 2)
			polycm_shown_switch(false);
		else
			begin(NEVER, 0, 0);
		for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
			now = ns_of(clocks[i]);
			assert_in_range(now, last[i], UINT64_MAX);
			last[i] = now;
		}
		scene.now += passes[round / 2];
	}
	/* Real time passes after it. */
	now = ns_of(CLOCK_MONOTONIC);
	while (ns_of(CLOCK_MONOTONIC) == now)
		;
}

static void all_calls_show_the_same(void **state)
{
	struct timeval timeval;
	struct timespec timespec;
	struct timezone zone = { .tz_minuteswest = 4711 };
	uint64_t now;
	time_t seconds;

	(void)state;
	begin(NEVER, 0, 0);
	scene.now = 3600000 * MS + 123456789;
	now = ns_of(CLOCK_REALTIME);
	assert_int_equal(gettimeofday(&timeval, NULL), 0);
	assert_int_equal(timeval.tv_sec, now / 1000000000u);
	assert_int_equal(timeval.tv_usec, now % 1000000000u / 1000u);
	assert_int_equal(gettimeofday(&timeval, &zone), 0);
	assert_int_equal(zone.tz_minuteswest, 0);
	assert_int_equal(time(NULL), timeval.tv_sec);
	assert_int_equal(time(&seconds), timeval.tv_sec);
	assert_int_equal(seconds, timeval.tv_sec);
	assert_int_equal(timespec_get(&timespec, TIME_UTC), TIME_UTC);
	assert_int_equal(timespec.tv_sec, timeval.tv_sec);
	assert_int_equal(timespec.tv_nsec, now % 1000000000u);
	assert_int_equal(timespec_get(&timespec, 4711), 0);
	assert_int_equal(scene.reads, 6);
}

static void other_clocks_are_the_systems(void **state)
{
	static const clockid_t others[] = { CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID };
	struct timespec time;

	(void)state;
	begin(NEVER, 0, 0);
	scene.now = 3600000 * MS;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		assert_int_equal(clock_gettime(others[i], &time), 0);
		assert_in_range(time.tv_sec, 0, 3599);
	}
	errno = 0;
	assert_int_equal(clock_gettime(4711, &time), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(scene.reads, 0);
}

/* It says whether the same place reads again. */
__attribute__((noinline)) static uintptr_t frame_of_a_read(void)
{
	ns_of(CLOCK_MONOTONIC);
	return (uintptr_t)scene.frame;
}

__attribute__((noinline)) static uintptr_t frame_further_in(void)
{
	volatile char room[200];

	room[0] = 0;
	return frame_of_a_read() + (unsigned char)room[0];
}

static void the_clock_is_told_who_reads(void **state)
{
	uintptr_t frames[2];

	(void)state;
	begin(NEVER, 0, 0);
	for (int i = 0; i < 2; i++)
		frames[i] = frame_of_a_read();
	assert_int_equal(frames[0], frames[1]);
	assert_true(frame_further_in() < frames[0]);
}

/* A deadline is as far away by the system's clock as by the one that the program reads. */
static void deadlines_are_told_in_real_time(void **state)
{
	static const int64_t distances[] = { 3600000000000, 1, 0, -1, -3600000000000 };
	struct timespec time;
	uint64_t real, expected;

	(void)state;
	begin(NEVER, 0, 0);
	scene.now = 86400000 * MS;
	for (size_t i = 0; i < ARRAY_SIZE(distances); i++) {
		uint64_t until = ns_of(CLOCK_REALTIME) + (uint64_t)distances[i];

		time.tv_sec = (time_t)(until / 1000000000u);
		time.tv_nsec = (long)(until % 1000000000u);
		assert_int_equal(polycm_shown_until(CLOCK_REALTIME, &time),
				 distances[i] > 0 ? distances[i] : 0);
		expected = polycm_libc_ns(CLOCK_REALTIME) + (uint64_t)distances[i];
		time = polycm_shown_to_real(CLOCK_REALTIME, &time);
		real = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
		assert_in_range(real, expected, expected + 60000 * MS);
	}
	/* Long ago is not at 0, which is no time for timers. */
	time = (struct timespec){ .tv_sec = 1 };
	time = polycm_shown_to_real(CLOCK_MONOTONIC, &time);
	assert_int_equal(time.tv_sec, 0);
	assert_int_equal(time.tv_nsec, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		VIRTUAL(virtual_time_begins_with_a_full_second),
		VIRTUAL(or_millisecond_if_clocks_were_read_before),
		VIRTUAL(clocks_move_with_virtual_time_alone),
		VIRTUAL(clocks_never_go_back),
		VIRTUAL(all_calls_show_the_same),
		VIRTUAL(other_clocks_are_the_systems),
		VIRTUAL(the_clock_is_told_who_reads),
		VIRTUAL(deadlines_are_told_in_real_time),
	};

	if (read_first())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
