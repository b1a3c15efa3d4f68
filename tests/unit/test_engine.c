/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine: order of timers, the virtual clock, chance, start and stop. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "engine_probe.h"

/* The linker sends the simulator's maps through here: none of more than a page when `short_of_maps'. */
static bool short_of_maps;
void *__real_mmap(void *at, size_t len, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t len, int protection, int flags, int fd, off_t offset);
void *__real_mremap(void *at, size_t len, size_t new_len, int flags);
void *__wrap_mremap(void *at, size_t len, size_t new_len, int flags);

void *__wrap_mmap(void *at, size_t len, int protection, int flags, int fd, off_t offset)
{
	errno = ENOMEM;
	return short_of_maps && len > 4096 ? MAP_FAILED :
	       __real_mmap(at, len, protection, flags, fd, offset);
}

void *__wrap_mremap(void *at, size_t len, size_t new_len, int flags)
{
	errno = ENOMEM;
	return short_of_maps ? MAP_FAILED : __real_mremap(at, len, new_len, flags);
}

static const struct {
	uint64_t deadlines[5];		/* of a, b, c ...; 0: the end */
	const char *order;
	uint64_t end;
} orders[] = {
	{ { 10, 20, 30 }, "abc", 30 },
	{ { 30, 20, 10 }, "cba", 30 },
	{ { 20, 10, 20, 10, 20 }, "bdace", 20 },
	{ { 7, 7, 7, 7, 7 }, "abcde", 7 },
	{ { SIM_NEVER - 1, 1 }, "ba", SIM_NEVER - 1 },
};

static void timers_fire_by_deadline_then_by_arming(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		if (i) {
			sim_engine_stop();
			assert_int_equal(sim_engine_start(SIM_CLOCK_VIRTUAL, 1), 0);
		}
		init_probes(probes, 5);
		for (unsigned int j = 0; j < 5 && orders[i].deadlines[j]; j++)
			arm(&probes[j], orders[i].deadlines[j]);
		while (sim_idle(NULL) == 1)
			;
		assert_string_equal(fired, orders[i].order);
		assert_int_equal(sim_now(), orders[i].end);
	}
}

#define SHORT_OF 1000u

static struct sim_timer waiting[SHORT_OF];
static const struct sim_timer *last_fired;
static unsigned int many_fired;

static void note_order(struct sim_timer *timer)
{
	assert_int_equal(timer->deadline, sim_now());
	if (last_fired && last_fired->deadline == timer->deadline)
		assert_true(last_fired->seq < timer->seq);
	else if (last_fired)
		assert_true(last_fired->deadline < timer->deadline);
	last_fired = timer;
	many_fired++;
}

static uint64_t twice_as_late(const struct sim_timer *timer, void *arg)
{
	(void)arg;
	return timer - waiting < 20 ? SIM_NEVER : 2 * timer->deadline;
}

/* More timers than there is memory for: none is lost, and they fire in order. */
static void timers_need_no_memory(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 3; round++) {
		sim_engine_stop();
		short_of_maps = true;
		assert_int_equal(sim_engine_start(SIM_CLOCK_VIRTUAL, 1), 0);
		sim_lock();
		for (unsigned int i = 0; i < SHORT_OF; i++) {
			if (i == SHORT_OF / 2)
				short_of_maps = round != 1;	/* memory is back */
			sim_timer_init(&waiting[i], note_order);
			sim_timer_arm(&waiting[i], 1 + i * 7919 % 331);
		}
		for (unsigned int i = 0; i < SHORT_OF; i += 10)
			sim_timer_disarm(&waiting[i]);
		for (unsigned int i = 5; i < SHORT_OF; i += 10)
			sim_timer_arm(&waiting[i], 500);
		if (round == 2)
			sim_timers_move(twice_as_late, NULL);
		sim_unlock();
		last_fired = NULL;
		many_fired = 0;
		assert_int_equal(sim_advance(2000), 0);
		assert_int_equal(many_fired, SHORT_OF - SHORT_OF / 10 - (round == 2 ? 18 : 0));
		for (unsigned int i = 0; i < SHORT_OF; i++)
			assert_false(sim_timer_armed(&waiting[i]));
	}
	sim_lock();
	for (unsigned int i = 0; i < SHORT_OF; i++)
		sim_timer_arm(&waiting[i], SIM_MS(1000));
	sim_unlock();
	sim_engine_stop();
	for (unsigned int i = 0; i < SHORT_OF; i++)
		assert_false(sim_timer_armed(&waiting[i]));
	short_of_maps = false;
	assert_int_equal(sim_engine_start(SIM_CLOCK_VIRTUAL, 1), 0);
}

static void rearming_moves_a_timer_behind_its_equals(void **state)
{
	(void)state;
	init_probes(probes, 3);
	for (unsigned int i = 0; i < 3; i++)
		arm(&probes[i], 10);
	arm(&probes[0], 10);
	arm(&probes[1], 5);
	arm(&probes[1], 20);
	assert_int_equal(sim_advance(100), 0);
	assert_string_equal(fired, "cab");
	assert_int_equal(probes[1].at, 20);
}

static void disarmed_timers_do_not_fire(void **state)
{
	(void)state;
	init_probes(probes, 3);
	for (unsigned int i = 0; i < 3; i++)
		arm(&probes[i], 10 + i);
	sim_lock();
	assert_true(sim_timer_armed(&probes[1].timer));
	sim_timer_disarm(&probes[1].timer);
	assert_false(sim_timer_armed(&probes[1].timer));
	sim_timer_disarm(&probes[1].timer);
	sim_unlock();
	assert_int_equal(sim_advance(100), 0);
	assert_string_equal(fired, "ac");
	assert_false(sim_timer_armed(&probes[0].timer));
}

static void deadlines_in_the_past_fire_in_order_of_arming(void **state)
{
	(void)state;
	assert_int_equal(sim_advance(1000), 0);
	init_probes(probes, 3);
	arm(&probes[0], 500);
	arm(&probes[1], 100);
	arm(&probes[2], 1000);
	assert_int_equal(sim_advance(0), 0);
	assert_string_equal(fired, "abc");
	assert_int_equal(probes[1].at, 1000);
}

static void advance_fires_all_in_between_and_no_more(void **state)
{
	(void)state;
	init_probes(probes, 4);
	probes[0].arms = &probes[3];
	arm(&probes[0], 10);
	arm(&probes[1], 50);
	arm(&probes[2], 51);
	assert_int_equal(sim_advance(50), 0);
	assert_string_equal(fired, "adb");
	assert_int_equal(probes[3].at, 10);
	assert_int_equal(sim_now(), 50);
	assert_int_equal(sim_advance(UINT64_MAX), 0);
	assert_string_equal(fired, "adbc");
	assert_int_equal(sim_now(), SIM_NEVER - 1);
}

#define MANY 100000u

static struct sim_timer many[MANY];

static void a_hundred_thousand_timers_keep_their_order(void **state)
{
	unsigned int expected = MANY;

	(void)state;
	last_fired = NULL;
	many_fired = 0;
	sim_lock();
	for (unsigned int i = 0; i < MANY; i++) {
		sim_timer_init(&many[i], note_order);
		sim_timer_arm(&many[i], sim_random_below(1000));
	}
	for (unsigned int i = 0; i < MANY; i += 3) {
		sim_timer_disarm(&many[i]);
		expected--;
	}
	for (unsigned int i = 1; i < MANY; i += 3)
		sim_timer_arm(&many[i], 500 + sim_random_below(1000));
	sim_unlock();
	assert_int_equal(sim_advance(5000), 0);
	assert_int_equal(many_fired, expected);
}

static void waiting_moves_virtual_time(void **state)
{
	unsigned int never = 0;

	(void)state;
	init_probes(probes, 2);
	arm(&probes[0], 100);
	arm(&probes[1], 300);
	sim_lock();
	assert_int_equal(sim_wait(is_true, &num_fired, SIM_NEVER), 0);
	assert_int_equal(sim_now(), 100);
	assert_int_equal(sim_wait(is_true, &never, 200), -ETIMEDOUT);
	assert_int_equal(sim_now(), 200);
	assert_string_equal(fired, "a");
	assert_int_equal(sim_wait(is_true, &never, 150), -ETIMEDOUT);
	assert_int_equal(sim_now(), 200);
	assert_int_equal(sim_wait(is_true, &never, SIM_NEVER), -EDEADLK);
	assert_int_equal(sim_now(), 300);
	sim_unlock();
	assert_string_equal(fired, "ab");
}

static void idling_takes_one_timer_at_a_time(void **state)
{
	(void)state;
	init_probes(probes, 2);
	arm(&probes[0], 10);
	arm(&probes[1], 10);
	assert_int_equal(sim_idle(NULL), 1);
	assert_string_equal(fired, "a");
	assert_int_equal(sim_idle(NULL), 1);
	assert_string_equal(fired, "ab");
	assert_int_equal(sim_idle(NULL), -EDEADLK);
	assert_int_equal(sim_now(), 10);
}

#define LETTERS 200u

static struct {
	struct sim_timer timer;
	unsigned int written, read;	/* under the engine's lock */
	uint64_t written_at;
	bool late, failed;
} post_box;

static void write_letter(struct sim_timer *timer)
{
	post_box.written++;
	post_box.written_at = sim_now();
	if (post_box.written < LETTERS)
		sim_timer_arm(timer, sim_now() + SIM_US(1));
}

/* Reads each letter, and takes its time before it looks for the next one. */
static void *read_letters(void *arg)
{
	bool again, end = false;

	(void)arg;
	while (!end) {
		sim_lock();
		again = post_box.read < post_box.written;
		if (again) {
			post_box.late |= sim_now() != post_box.written_at ||
					 post_box.written != post_box.read + 1;
			end = ++post_box.read == LETTERS;
		}
		sim_unlock();
		for (unsigned int i = 0; again && i < 20000; i++)
			__asm__ volatile("");
		if (!again && sim_idle(NULL) < 0) {
			post_box.failed = true;
			break;
		}
	}
	return NULL;
}

static void time_stands_still_while_another_thread_computes(void **state)
{
	pthread_t thread;
	bool done = false;

	(void)state;
	memset(&post_box, 0, sizeof(post_box));
	sim_timer_init(&post_box.timer, write_letter);
	assert_int_equal(pthread_create(&thread, NULL, read_letters, NULL), 0);
	sim_lock();
	sim_timer_arm(&post_box.timer, SIM_US(1));
	sim_unlock();
	while (!done) {
		done = sim_idle(NULL) < 0;	/* the thread may have ended already */
		sim_lock();
		done |= post_box.read == LETTERS || post_box.failed;
		sim_unlock();
	}
	pthread_join(thread, NULL);
	assert_false(post_box.failed);
	assert_false(post_box.late);
	assert_int_equal(post_box.written, LETTERS);
	assert_int_equal(sim_now(), SIM_US(LETTERS));
}

static void polling_in_vain_counts_as_waiting(void **state)
{
	unsigned int polls = 0;

	(void)state;
	init_probes(probes, 2);
	arm(&probes[0], 10);
	arm(&probes[1], 20);
	for (; !num_fired; polls++)
		sim_spin();
	assert_string_equal(fired, "a");
	assert_in_range(polls, 2, 1000);
	while (num_fired < 2)
		sim_spin();
	for (unsigned int i = 0; i < 3 * polls; i++)
		sim_spin();
	assert_int_equal(sim_now(), 20);
	assert_int_equal(sim_fake_log_count(POLYCM_LOG_WARN), 1);
}

static void calls_between_polls_are_no_waiting(void **state)
{
	(void)state;
	init_probes(&probe, 1);
	arm(&probe, 10);
	for (unsigned int i = 0; i < 1000; i++) {
		sim_spin();
		sim_lock();
		sim_unlock();
	}
	assert_int_equal(num_fired, 0);
	assert_int_equal(sim_now(), 0);
}

/* ------------------------------------------------------------------------
 * Chance, start and stop.
 */

static const struct {
	uint64_t seed, values[4];
} vectors[] = {		/* computed from the authors' definitions */
	{ 0, { 0x99ec5f36cb75f2b4, 0xbf6e1f784956452a, 0x1a5f849d4933e6e0, 0x6aa594f1262d2d2c } },
	{ 1, { 0xb3f2af6d0fc710c5, 0x853b559647364cea, 0x92f89756082a4514, 0x642e1c7bc266a3a7 } },
	{ 0x123456789abcdef,
	  { 0xa2c2a42038d4ec3d, 0x05fc25d0738e7b0f, 0x625e7bff938e701e, 0x1ba4ddc6fe2b5726 } },
};

static void chance_follows_from_the_seed(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
		assert_int_equal(sim_engine_start(SIM_CLOCK_VIRTUAL, vectors[i].seed), 0);
		for (unsigned int j = 0; j < 4; j++)
			assert_true(sim_random() == vectors[i].values[j]);
		sim_engine_stop();
	}
}

static void chance_below_a_bound_is_even(void **state)
{
	unsigned int counts[6] = { 0 };

	(void)state;
	assert_int_equal(sim_random_below(0), 0);
	assert_int_equal(sim_random_below(1), 0);
	for (unsigned int i = 0; i < 60000; i++) {
		uint32_t value = sim_random_below(6);

		assert_in_range(value, 0, 5);
		counts[value]++;
	}
	for (unsigned int i = 0; i < 6; i++)
		assert_in_range(counts[i], 9600, 10400);
	for (unsigned int i = 0; i < 1000; i++)
		assert_in_range(sim_random_below(0x80000001u), 0, 0x80000000u);
}

static void stopping_forgets_timers_and_time(void **state)
{
	(void)state;
	sim_fake_init();
	assert_int_equal(sim_engine_start(SIM_CLOCK_VIRTUAL, 5), 0);
	assert_int_equal(sim_engine_start(SIM_CLOCK_VIRTUAL, 5), -EBUSY);
	assert_true(sim_is_virtual());
	init_probes(&probe, 1);
	assert_int_equal(sim_advance(70), 0);
	arm(&probe, 100);
	sim_engine_stop();
	sim_engine_stop();
	assert_false(sim_timer_armed(&probe.timer));
	assert_int_equal(sim_engine_start(SIM_CLOCK_VIRTUAL, 5), 0);
	assert_int_equal(sim_now(), 0);
	assert_int_equal(sim_idle(NULL), -EDEADLK);
	sim_engine_stop();
	assert_int_equal(sim_engine_start(SIM_CLOCK_REAL, 5), 0);
	assert_false(sim_is_virtual());
	assert_int_equal(sim_advance(1), -EINVAL);
	sim_engine_stop();
	assert_int_equal(num_fired, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		VIRTUAL(timers_fire_by_deadline_then_by_arming),
		VIRTUAL(rearming_moves_a_timer_behind_its_equals),
		VIRTUAL(timers_need_no_memory),
		VIRTUAL(disarmed_timers_do_not_fire),
		VIRTUAL(deadlines_in_the_past_fire_in_order_of_arming),
		VIRTUAL(advance_fires_all_in_between_and_no_more),
		VIRTUAL(a_hundred_thousand_timers_keep_their_order),
		VIRTUAL(waiting_moves_virtual_time),
		VIRTUAL(idling_takes_one_timer_at_a_time),
		VIRTUAL(time_stands_still_while_another_thread_computes),
		VIRTUAL(polling_in_vain_counts_as_waiting),
		VIRTUAL(calls_between_polls_are_no_waiting),
		VIRTUAL(chance_below_a_bound_is_even),
		cmocka_unit_test(chance_follows_from_the_seed),
		cmocka_unit_test(stopping_forgets_timers_and_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
