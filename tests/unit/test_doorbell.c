/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a packet from another process wakes the NIC thread although the program
 * polls: it may have gone over to its memory.  The clock is the test's own, and
 * an hour ahead, so that no time-out of the NIC thread comes to anybody's help.
 */
#include "config.h"

#include <sched.h>
#include <unistd.h>

#include "core/base/interposer.h"
#include "providers/soft/engine/engine_internal.h"
#include "providers/sim/fabric_open.h"
#include "providers/soft/host/host.h"
#include "providers/soft/shm/doorbell.h"
#include "providers/soft/shm/trust.h"
#include "sim_fake.h"
#include "tests/cmocka_all.h"

#define PEER	 7u  /* a slot that no process has */
#define TOO_LONG 20u /* s: only what hangs takes that long */

static struct polycm_clock_services own_clock;
static atomic_uint_fast64_t ahead;
static uint64_t began;

static uint64_t read_clock(clockid_t clock)
{
	return clock == CLOCK_MONOTONIC ? began + atomic_load(&ahead) : polycm_real_ns(clock);
}

static void pass(uint64_t ns)
{
	atomic_fetch_add(&ahead, ns);
}

/* ------------------------------------------------------------------------
 * What one can rely on.
 */

static void polls_in_a_row_can_be_relied_on(void **state)
{
	static const struct {
		unsigned int polls;
		uint64_t gap; /* from look to look */
		bool steady;
	} rows[] = {
		{16, SIM_US(1), true},
		{16, 16 * SIM_TRUST_GAP, true},
		{16, 16 * SIM_TRUST_GAP + 1, false},
		{1, SIM_TRUST_GAP, true},
		{1, SIM_MS(1), false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sim_poll_row row = {0};
		uint64_t now = SIM_MS(1);
		unsigned int polls = 0;

		assert_false(sim_poll_row_add(&row, 1, now));
		while (polls + rows[i].polls < SIM_TRUST_POLLS) {
			now += rows[i].gap;
			polls += rows[i].polls;
			assert_false(sim_poll_row_add(&row, rows[i].polls, now));
		}
		now += rows[i].gap;
		assert_int_equal(sim_poll_row_add(&row, rows[i].polls, now), rows[i].steady);
		sim_poll_row_end(&row);
		assert_false(sim_poll_row_add(&row, 1, now));
	}
}

/* For one that polls its memory between two completions there is soon none. */
static void patience_follows_what_the_program_does(void **state)
{
	static const struct {
		unsigned int fetched, missed; /* again and again */
		uint32_t patience; /* in the end: the most there is, or no more than this */
	} programs[] = {
		{1, 1, 2 * SIM_PATIENCE_MIN}, {0, 1, SIM_PATIENCE_MIN},
		{2, 1, 2 * SIM_PATIENCE_MIN}, {8, 1, SIM_PATIENCE_MAX},
		{1, 0, SIM_PATIENCE_MAX},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		bool much = programs[i].patience == SIM_PATIENCE_MAX;
		uint32_t patience = much ? SIM_PATIENCE_MIN : SIM_PATIENCE_MAX;

		for (unsigned int round = 0; round < 64; round++) {
			for (unsigned int j = 0; j < programs[i].missed; j++)
				patience = sim_patience_learn(patience, false);
			for (unsigned int j = 0; j < programs[i].fetched; j++)
				patience = sim_patience_learn(patience, true);
			assert_in_range(patience, SIM_PATIENCE_MIN, SIM_PATIENCE_MAX);
		}
		if (much)
			assert_int_equal(patience, SIM_PATIENCE_MAX);
		else
			assert_in_range(patience, SIM_PATIENCE_MIN, programs[i].patience);
	}
	/* Whatever the slot has. */
	assert_int_equal(sim_patience_learn(UINT32_MAX, true), SIM_PATIENCE_MAX);
	assert_int_equal(sim_patience_learn(0, true), SIM_PATIENCE_MIN);
}

static void looks_become_rare_while_the_program_polls_and_end_with_that(void **state)
{
	struct sim_trust trust = {0};
	uint64_t now = SIM_MS(50);

	(void)state;
	for (uint64_t length = SIM_TRUST_MIN; length < 4 * SIM_TRUST_MAX; length *= 2) {
		assert_true(sim_trust_go_on(&trust, now, now, false));
		assert_int_equal(trust.look_at - now,
				 length < SIM_TRUST_MAX ? length : SIM_TRUST_MAX);
		/* Woken meanwhile. */
		assert_true(sim_trust_go_on(&trust, now + 1, now, true));
		now = trust.look_at;
	}
	assert_true(sim_trust_go_on(&trust, now, now - SIM_US(60), true));
	assert_int_equal(trust.look_at - now, SIM_TRUST_MIN);
	assert_true(sim_trust_go_on(&trust, trust.look_at, trust.look_at - SIM_TRUST_END, false));
	assert_false(
		sim_trust_go_on(&trust, trust.look_at, trust.look_at - SIM_TRUST_END - 1, false));
}

/* ------------------------------------------------------------------------
 * The sender.
 */

static struct sim_slot *peer(enum sim_sleep sleeping, uint64_t polled_ago, uint32_t patience)
{
	struct sim_slot *slot = sim_segment_peer(PEER);

	atomic_store(&slot->inbox[sim_self_slot() / 64], 0);
	atomic_store(&slot->summary, 0);
	atomic_store(&slot->doorbell, 1);
	atomic_store(&slot->sleeping, sleeping);
	atomic_store(&slot->polled_at, sim_now() - polled_ago);
	atomic_store(&slot->patience, patience);
	atomic_store(&slot->watches, 0);
	return slot;
}

static bool was_rung(struct sim_slot *slot)
{
	return atomic_exchange(&slot->doorbell, 1) != 1;
}

static bool is_unread(unsigned int slot)
{
	assert_int_equal(slot, PEER);
	return true;
}

static bool is_read(unsigned int slot)
{
	(void)slot;
	return false;
}

static void who_does_not_poll_is_rung(void **state)
{
	static const struct {
		enum sim_sleep sleeping;
		uint64_t polled_ago;
		bool rung;
	} receivers[] = {
		{SIM_AWAKE, SIM_MS(1), false},
		{SIM_SLEEPS, 0, true},
		{SIM_RELIES, 0, false},
		{SIM_RELIES, SIM_US(10) - 1, false},
		{SIM_RELIES, SIM_US(10), true},
		{SIM_RELIES, SIM_MS(100), true},
		{SIM_RELIES, UINT64_C(0) - SIM_US(5), false}, /* our clock is some time ago */
		{(enum sim_sleep)77, 0, true},
	};

	(void)state;
	sim_lock();
	for (size_t i = 0; i < ARRAY_SIZE(receivers); i++) {
		struct sim_slot *slot =
			peer(receivers[i].sleeping, receivers[i].polled_ago, SIM_US(10));

		sim_segment_notify(PEER, sim_self_slot());
		assert_int_equal(was_rung(slot), receivers[i].rung);
		assert_int_equal(atomic_load(&slot->sleeping),
				 receivers[i].rung ? SIM_AWAKE : receivers[i].sleeping);
		assert_int_not_equal(atomic_load(&slot->inbox[sim_self_slot() / 64]), 0);
	}
	sim_shm_remind_now(is_unread);
	sim_unlock();
}

static void mail_that_is_left_unread_is_rung_for(void **state)
{
	struct sim_slot *slot;

	(void)state;
	sim_lock();
	slot = peer(SIM_RELIES, SIM_US(1), SIM_US(10));
	sim_segment_notify(PEER, sim_self_slot());
	pass(SIM_US(9) - 1);
	sim_shm_remind(sim_now());
	assert_false(was_rung(slot));
	/* It has polled again. */
	atomic_store(&slot->polled_at, sim_now());
	pass(SIM_US(9));
	sim_shm_remind(sim_now());
	assert_false(was_rung(slot));
	pass(SIM_US(1));
	sim_shm_remind(sim_now());
	assert_true(was_rung(slot));
	pass(SIM_MS(1));
	sim_shm_remind(sim_now());
	assert_false(was_rung(slot));

	/* It has read it. */
	slot = peer(SIM_RELIES, 0, SIM_US(10));
	sim_segment_notify(PEER, sim_self_slot());
	atomic_store(&slot->inbox[sim_self_slot() / 64], 0);
	pass(SIM_MS(1));
	sim_shm_remind(sim_now());
	assert_false(was_rung(slot));

	/* We go to sleep. */
	slot = peer(SIM_RELIES, 0, SIM_US(10));
	sim_segment_notify(PEER, sim_self_slot());
	sim_shm_remind_now(is_unread);
	assert_true(was_rung(slot));
	slot = peer(SIM_RELIES, 0, SIM_US(10));
	sim_segment_notify(PEER, sim_self_slot());
	sim_shm_remind_now(is_read);
	assert_false(was_rung(slot));
	sim_unlock();
}

static bool has_mail(const struct sim_slot *slot)
{
	return sim_slot_has_mail(slot, sim_self_slot()) || atomic_load(&slot->summary);
}

/* It needs no mail while it polls, and is rung if it does not. */
static void who_looks_at_our_ring_is_left_alone(void **state)
{
	struct sim_slot *slot;

	(void)state;
	sim_lock();
	slot = peer(SIM_RELIES, 0, SIM_US(10));
	atomic_store(&slot->watches, sim_self_slot() + 2);
	sim_segment_sent(PEER);
	assert_true(has_mail(slot));

	slot = peer(SIM_RELIES, 0, SIM_US(10));
	atomic_store(&slot->watches, sim_self_slot() + 1);
	sim_segment_sent(PEER);
	assert_false(has_mail(slot));
	assert_false(was_rung(slot));
	/* But for what is not in the ring: room in its own ring, a death, a change. */
	sim_segment_notify(PEER, sim_self_slot());
	assert_true(has_mail(slot));
	atomic_store(&slot->inbox[sim_self_slot() / 64], 0);
	pass(SIM_PATIENCE_MIN);
	atomic_store(&slot->polled_at, sim_now());
	sim_shm_remind(sim_now());
	assert_false(was_rung(slot));
	pass(SIM_US(10));
	sim_shm_remind(sim_now());
	assert_true(was_rung(slot));

	/* It has ceased to look, and to poll. */
	slot = peer(SIM_SLEEPS, SIM_MS(1), SIM_US(10));
	atomic_store(&slot->watches, 0);
	sim_segment_sent(PEER);
	assert_true(has_mail(slot));
	assert_true(was_rung(slot));
	sim_unlock();
}

/* What comes while we cease to look at a ring is found, as mail. */
static void nothing_in_a_ring_that_is_looked_at_is_missed(void **state)
{
	struct sim_slot *self = sim_segment_self();
	uint32_t length = 0;

	(void)state;
	sim_lock();
	assert_int_equal(sim_doorbell_watched(), SIM_NOBODY);
	sim_doorbell_watch(PEER, &length);
	assert_int_equal(sim_doorbell_watched(), PEER);
	assert_int_equal(atomic_load(&self->watches), PEER + 1);
	assert_false(sim_shm_pending());
	assert_false(sim_doorbell_has_mail(PEER));
	length = 8;
	assert_true(sim_shm_pending());
	assert_true(sim_doorbell_has_mail(PEER));
	assert_false(sim_doorbell_has_mail(PEER + 1));
	length = 0;

	sim_doorbell_watch(PEER + 1, &length);
	assert_int_equal(atomic_load(&self->watches), PEER + 2);
	assert_true(sim_slot_has_mail(self, PEER));
	assert_true(sim_shm_pending());
	atomic_store(&self->inbox[PEER / 64], 0);
	atomic_store(&self->summary, 0);

	sim_doorbell_unwatch();
	assert_int_equal(sim_doorbell_watched(), SIM_NOBODY);
	assert_int_equal(atomic_load(&self->watches), 0);
	assert_true(sim_slot_has_mail(self, PEER + 1));
	atomic_store(&self->inbox[PEER / 64], 0);
	atomic_store(&self->summary, 0);

	/* The NIC thread does not rely on the program any more: it is to be rung. */
	sim_doorbell_watch(PEER, &length);
	(void)sim_shm_prepare_wait(true);
	assert_int_equal(sim_doorbell_watched(), PEER);
	(void)sim_shm_prepare_wait(false);
	assert_int_equal(sim_doorbell_watched(), SIM_NOBODY);
	assert_true(sim_slot_has_mail(self, PEER));
	(void)sim_shm_awake();
	atomic_store(&self->inbox[PEER / 64], 0);
	atomic_store(&self->summary, 0);
	sim_unlock();
}

/* ------------------------------------------------------------------------
 * The receiver: a program that polls a while, then its memory.
 */

/* The NIC thread sleeps in trust of the program. */
static bool is_trusted(void)
{
	bool asleep;

	sim_lock();
	asleep = sim_engine.asleep && relaxed_load(&sim_engine.hot) &&
		 sim_engine.sleep_until != SIM_NEVER;
	sim_unlock();
	return asleep;
}

static void poll_until_trusted(void)
{
	sim_lock();
	assert_int_equal(sim_engine_need_thread(), 0);
	sim_unlock();
	while (!is_trusted()) {
		sim_progress();
		sched_yield();
	}
}

/* From a process that has the slot PEER, as that does it. */
static void get_mail(void)
{
	(void)sim_now(); /* as for the timer of its packet */
	sim_segment_notify(sim_self_slot(), PEER);
}

static void mail_of_a_program_that_polls_its_memory_is_fetched(void **state)
{
	(void)state;
	alarm(TOO_LONG);
	for (unsigned int round = 0; round < 3; round++) {
		poll_until_trusted();
		pass(SIM_MS(2));
		sim_lock();
		get_mail();
		sim_unlock();
		while (sim_shm_pending())
			sched_yield();
	}
	alarm(0);
}

static void mail_of_a_program_that_polls_is_left_to_it(void **state)
{
	struct sim_slot *self = sim_segment_self();
	uint32_t doorbell;

	(void)state;
	alarm(TOO_LONG);
	poll_until_trusted();
	for (unsigned int i = 0; i < 64; i++) {
		pass(SIM_US(1));
		sim_progress();
	}
	assert_true(sim_doorbell_polled(self, sim_now()));
	doorbell = atomic_load(&self->doorbell);
	sim_lock();
	get_mail();
	sim_unlock();
	assert_int_equal(atomic_load(&self->doorbell), doorbell);
	assert_true(sim_shm_pending());
	while (sim_shm_pending())
		sim_progress();
	alarm(0);
}

static int set_up(void **state)
{
	(void)state;
	sim_fake_init();
	sim_fake_make_runtime_dir();
	own_clock = *sim_time;
	began = polycm_real_ns(CLOCK_MONOTONIC) + SIM_MS(3600000);
	own_clock.real_ns = read_clock;
	sim_time = &own_clock;
	assert_int_equal(sim_engine_start(SIM_CLOCK_REAL, 1), 0);
	sim_lock();
	assert_int_equal(sim_fabric_open_default(), 0);
	sim_unlock();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	sim_lock();
	sim_fabric_close();
	sim_unlock();
	sim_engine_stop();
	sim_fake_remove_runtime_dir();
	return 0;
}

#define with_fabric(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(polls_in_a_row_can_be_relied_on),
		cmocka_unit_test(patience_follows_what_the_program_does),
		cmocka_unit_test(looks_become_rare_while_the_program_polls_and_end_with_that),
		with_fabric(who_does_not_poll_is_rung),
		with_fabric(mail_that_is_left_unread_is_rung_for),
		with_fabric(who_looks_at_our_ring_is_left_alone),
		with_fabric(nothing_in_a_ring_that_is_looked_at_is_missed),
		with_fabric(mail_of_a_program_that_polls_its_memory_is_fetched),
		with_fabric(mail_of_a_program_that_polls_is_left_to_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
