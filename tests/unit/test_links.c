/* SPDX-License-Identifier: BSD-2-Clause */
/* Links: when packets arrive, in which order, and which do not. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "link_world.h"
#include "providers/soft/link/block.h"
#include "providers/soft/link/left.h"
#include "providers/soft/wire/mad.h"
#include "tests/cmocka_all.h"
#include "tests/nth/nth.h"

#define LINK(...)                                                                                  \
	(&(const struct polycm_sim_link){ .size = sizeof(struct polycm_sim_link), __VA_ARGS__ })

static void set(const struct sim_node *a, const struct sim_node *b,
		const struct polycm_sim_link *link)
{
	char why[80] = "";

	assert_int_equal(sim_shape_set(a, b, link, why, sizeof(why)), 0);
	assert_string_equal(why, "");
}

/* How long a packet takes now. */
static uint64_t takes(struct sim_port *from, struct sim_port *to, size_t len)
{
	uint64_t start = sim_now();

	num_seen = 0;
	send_number(from, to, 1, len);
	assert_string_equal(arrivals(), "1");
	return seen[0].time - start;
}

/* ------------------------------------------------------------------------
 * Time.
 */

static void test_a_microsecond_where_nothing_is_said(void **state)
{
	(void)state;
	assert_int_equal(takes(port_a, port_b, 4), 1000);
	set(node_a, node_a, LINK(.latency_ns = 5));
	assert_int_equal(takes(port_a, port_b, 4), 1000);
	assert_int_equal(takes(port_a, port_a, 4), 5);
}

static void test_latency_is_the_same_in_both_directions(void **state)
{
	(void)state;
	set(node_b, node_a, LINK(.latency_ns = 12345));
	assert_int_equal(takes(port_a, port_b, 4), 12345);
	assert_int_equal(takes(port_b, port_a, 4000), 12345);
	assert_int_equal(takes(port_b, port_b, 4), 1000);
	set(node_a, node_b, LINK(.latency_ns = 0));
	assert_int_equal(takes(port_a, port_b, 4), 0);
}

static void test_the_last_call_counts(void **state)
{
	static const struct {
		uint64_t ab, aa, bb;
	} expected[] = { { 1, 1, 1 }, { 2, 2, 1 }, { 3, 2, 1 }, { 4, 4, 4 }, { 4, 4, 5 } };
	unsigned int i = 0;

	(void)state;
	for (i = 0; i < 5; i++) {
		const struct sim_node *ends[5][2] = {
			{ NULL, NULL }, { node_a, NULL }, { node_b, node_a }, { NULL, NULL },
			{ node_b, node_b },
		};

		set(ends[i][0], ends[i][1], LINK(.latency_ns = i + 1));
		assert_int_equal(takes(port_a, port_b, 4), expected[i].ab);
		assert_int_equal(takes(port_b, port_a, 4), expected[i].ab);
		assert_int_equal(takes(port_a, port_a, 4), expected[i].aa);
		assert_int_equal(takes(port_b, port_b, 4), expected[i].bb);
	}
}

/* 1000 bytes at 8 Mbit/s are a millisecond; both directions have all of it. */
static void test_bandwidth(void **state)
{
	(void)state;
	set(NULL, NULL, LINK(.latency_ns = 7, .bandwidth = 8000000));
	for (uint32_t i = 0; i < 3; i++) {
		send_number(port_a, port_b, i, 1000);
		send_number(port_b, port_a, i + 10, 500);
	}
	assert_string_equal(arrivals(), "10 0 11 12 1 2");
	assert_int_equal(seen[0].time, 500007);
	assert_int_equal(seen[1].time, 1000007);
	assert_int_equal(seen[2].time, 1000007);
	assert_int_equal(seen[3].time, 1500007);
	assert_int_equal(seen[5].time, 3000007);
	/* The line is free again. */
	assert_int_equal(takes(port_a, port_b, 1000), 1000007);
}

static void test_bandwidth_rounds_up(void **state)
{
	(void)state;
	set(NULL, NULL, LINK(.bandwidth = 3000000000));
	assert_int_equal(takes(port_a, port_b, 4), 11);		/* 32 bits: 10.7 ns */
	set(NULL, NULL, LINK(.bandwidth = UINT64_MAX));
	assert_int_equal(takes(port_a, port_b, 16384), 0);
	set(NULL, NULL, LINK(.bandwidth = 1));
	assert_int_equal(takes(port_a, port_b, 4), UINT64_C(32000000000));
}

static void test_jitter_keeps_the_order(void **state)
{
	uint64_t least = UINT64_MAX, most = 0, lapse, start;

	(void)state;
	set(NULL, NULL, LINK(.latency_ns = 1000, .jitter_ns = 5000));
	start = sim_now();
	for (uint32_t i = 0; i < 200; i++)
		send_number(port_a, port_b, i, 4);
	(void)arrivals();
	for (uint32_t i = 0; i < 200; i++) {
		assert_int_equal(seen[i].number, i);
		assert_in_range(seen[i].time - start, 1000, 6000);
	}
	for (uint32_t i = 0; i < 500; i++) {
		lapse = takes(port_a, port_b, 4);
		least = lapse < least ? lapse : least;
		most = lapse > most ? lapse : most;
	}
	assert_in_range(least, 1000, 1100);
	assert_in_range(most, 5900, 6000);
}

/* ------------------------------------------------------------------------
 * Loss, copies, order.
 */

/* How many of 1000 arrive; the numbers are the seed's and never change. */
static void test_loss_is_the_seeds(void **state)
{
	static const struct {
		double loss;
		unsigned int arrive;
	} cases[] = { { 0, 1000 }, { 0.01, 993 }, { 0.5, 507 }, { 0.9, 93 }, { 1, 0 } };

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		sim_unlock();
		sim_engine_stop();
		assert_int_equal(sim_engine_start(SIM_CLOCK_VIRTUAL, 1), 0);
		sim_lock();
		set(NULL, NULL, LINK(.latency_ns = 1, .loss = cases[i].loss));
		num_seen = 0;
		for (uint32_t n = 0; n < 1000; n++)
			send_number(port_a, port_b, n, 4);
		sim_unlock();
		assert_int_equal(sim_advance(1), 0);
		sim_lock();
		assert_int_equal(num_seen, cases[i].arrive);
	}
}

static void test_copies_come_after_the_packet(void **state)
{
	(void)state;
	set(NULL, NULL, LINK(.latency_ns = 10, .duplication = 1));
	send_number(port_a, port_b, 1, 4);
	send_number(port_a, port_b, 2, 4);
	assert_string_equal(arrivals(), "1 2 1 2");
	assert_int_equal(seen[3].time, 10);
}

static void test_reordering(void **state)
{
	unsigned int overtaken = 0;

	(void)state;
	set(NULL, NULL, LINK(.latency_ns = 1000, .reordering = 0.1));
	for (uint32_t i = 0; i < 1000; i++) {
		send_number(port_a, port_b, i, 4);
		sim_unlock();
		assert_int_equal(sim_advance(1000), 0);
		sim_lock();
	}
	(void)arrivals();
	for (uint32_t i = 1; i < 1000; i++)
		overtaken += seen[i].number < seen[i - 1].number;
	assert_in_range(overtaken, 60, 130);
}

/* The same, however long that is: afterwards there is no time left. */
static uint64_t takes_ever(struct sim_port *from, struct sim_port *to)
{
	uint64_t start = sim_now();

	num_seen = 0;
	send_number(from, to, 1, 100);
	sim_unlock();
	assert_int_equal(sim_advance(UINT64_MAX), 0);
	sim_lock();
	assert_int_equal(num_seen, 1);
	return seen[0].time - start;
}

/* The largest numbers do not wrap: what is late is late. */
static void test_the_end_of_time(void **state)
{
	static const struct polycm_sim_link links[] = {
		{ .latency_ns = SIM_LONGEST, .jitter_ns = SIM_LONGEST, .reordering = 1 },
		{ .latency_ns = SIM_LONGEST, .reordering = 1 },
		{ .latency_ns = SIM_LONGEST, .bandwidth = 1 },
		{ .latency_ns = SIM_LONGEST, .bandwidth = UINT64_MAX },
	};

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		struct polycm_sim_link link = links[i];

		link_world_close(state);
		link_world_open(state);
		link.size = sizeof(link);
		set(NULL, NULL, &link);
		assert_true(takes_ever(port_a, port_b) >= (link.reordering > 0 ? 2 : 1) * SIM_LONGEST);
		assert_int_equal(takes_ever(port_a, port_b), 0);
	}
}

/* A process that has ended said so of a packet: its end waits for that, but not for ever. */
static void test_a_packet_left_for_ever(void **state)
{
	struct { struct sim_left about; uint32_t number; } __attribute__((packed)) bytes = {
		.about = { .at = UINT64_MAX, .how = SIM_LEFT_IN_ORDER, .type = SIM_PACKET_UD },
	};
	const struct sim_packet packet = {
		.type = SIM_PACKET_LEFT, .from = port_a, .to = port_b, .from_slot = 1,
		.data = (const uint8_t *)&bytes, .len = sizeof(bytes),
	};

	(void)state;
	sim_left_read(&packet);
	assert_true(sim_left_take_over(1, false));
	sim_unlock();
	assert_int_equal(sim_advance(SIM_LONGEST), 0);
	sim_lock();
	assert_int_equal(num_seen, 1);
	assert_false(sim_left_take_over(1, false));
}

/* A link that does nothing draws no random number: what else is drawn stays as it was. */
static void test_draws_nothing_without_need(void **state)
{
	uint64_t without, with;

	(void)state;
	without = sim_random();
	sim_unlock();
	sim_engine_stop();
	assert_int_equal(sim_engine_start(SIM_CLOCK_VIRTUAL, 1), 0);
	sim_lock();
	set(NULL, NULL, LINK(.latency_ns = 1, .bandwidth = 1000000, .loss = 0, .duplication = 1));
	send_number(port_a, port_b, 1, 4);
	(void)arrivals();
	with = sim_random();
	assert_int_equal(with, without);
}

/* ------------------------------------------------------------------------
 * Bad input.
 */

static void test_impossible_links(void **state)
{
	static const struct {
		struct polycm_sim_link link;
		const char *why;
	} cases[] = {
		{ { .size = 0 }, "the size of the link is not set" },
		{ { .size = 8 }, "the size of the link is not set" },
		{ { .size = sizeof(cases[0].link), .loss = 1.01 }, "loss is not from 0 to 1" },
		{ { .size = sizeof(cases[0].link), .loss = -1 }, "loss is not from 0 to 1" },
		{ { .size = sizeof(cases[0].link), .loss = NAN }, "loss is not from 0 to 1" },
		{ { .size = sizeof(cases[0].link), .duplication = 2 },
		  "duplication is not from 0 to 1" },
		{ { .size = sizeof(cases[0].link), .reordering = INFINITY },
		  "reordering is not from 0 to 1" },
		{ { .size = sizeof(cases[0].link), .latency_ns = UINT64_MAX },
		  "a latency or jitter of more than 73 years" },
	};
	char why[80];

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(sim_shape_set(NULL, NULL, &cases[i].link, why, sizeof(why)),
				 -EINVAL);
		assert_string_equal(why, cases[i].why);
	}
	assert_false(sim_shape_on);
}

/* A program that was built with fewer members. */
static void test_smaller_struct(void **state)
{
	struct polycm_sim_link link;

	(void)state;
	memset(&link, 0xff, sizeof(link));
	link.size = offsetof(struct polycm_sim_link, jitter_ns);
	link.latency_ns = 3;
	set(NULL, NULL, &link);
	assert_int_equal(takes(port_a, port_b, 16384), 3);
}

/* What comes back says no more than that nobody listens. */
static void test_iwarp_and_another_are_told_once(void **state)
{
	struct sim_device *iwarp;
	struct sim_port *port;

	(void)state;
	assert_int_equal(sim_device_add(node_b, "simw", &sim_fake_iwarp, &iwarp), 0);
	assert_int_equal(sim_device_add_address(iwarp, NULL, "10.0.0.99/24"), 0);
	port = &iwarp->ports[0];
	send_mad(port_a, port_b, CM_REQ, 1);
	send_number(port_a, port, 2, 4);
	assert_int_equal(sim_fake_log_count(POLYCM_LOG_WARN), 0);
	send_mad(port_a, port, CM_REQ, 3);
	send_mad(port_a, port, CM_REQ, 4);
	send_mad(port, port_a, CM_REJ, 5);
	assert_int_equal(sim_fake_log_count(POLYCM_LOG_WARN), 1);
	assert_non_null(strstr(sim_fake_log(POLYCM_LOG_WARN),
			       "is roce, and node b, device simw, iwarp: they cannot connect"));
}

static void test_closing_drops_what_is_under_way(void **state)
{
	(void)state;
	set(NULL, NULL, LINK(.latency_ns = 1000000, .duplication = 1));
	send_number(port_a, port_b, 1, 4);
	assert_int_equal(sim_link_under_way(), 2);
	sim_link_drop_all();
	assert_int_equal(sim_link_under_way(), 0);
	assert_string_equal(arrivals(), "");
}

/* Packets of that type that are taken while there is no memory. */
static unsigned int taken_without_memory(enum sim_packet_type type)
{
	static const uint8_t data[256];
	unsigned int num = 0;
	int r;

	nth_in("");
	nth_arm(NTH_ALLOC, 1, 0);
	while (!(r = sim_link_send(port_a, port_b, 0, type, data, sizeof(data), NULL, 0, 0)) &&
	       num <= SIM_BLOCKS)
		num++;
	(void)nth_disarm(NULL);
	assert_int_equal(r, -ENOMEM);
	return num;
}

/* What nobody would send again does not wait for memory, nor for data that took the rest. */
static void test_messages_have_memory(void **state)
{
	(void)state;
	for (unsigned int shaped = 0; shaped < 2; shaped++) {
		if (shaped)
			set(NULL, NULL, LINK(.latency_ns = 1000));
		takes(port_a, port_b, 4);	/* the link itself is known, and the engine has room */
		for (unsigned int again = 0; again < 2; again++) {
			assert_int_equal(taken_without_memory(SIM_PACKET_UD), SIM_BLOCKS / 2);
			assert_int_equal(taken_without_memory(SIM_PACKET_MAD), SIM_BLOCKS / 2);
			sim_link_drop_all();
			assert_int_equal(taken_without_memory(SIM_PACKET_STREAM), SIM_BLOCKS);
			sim_link_drop_all();
		}
	}
}

#define test(f) cmocka_unit_test_setup_teardown(f, link_world_open, link_world_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_a_microsecond_where_nothing_is_said),
		test(test_latency_is_the_same_in_both_directions),
		test(test_the_last_call_counts),
		test(test_bandwidth),
		test(test_bandwidth_rounds_up),
		test(test_jitter_keeps_the_order),
		test(test_loss_is_the_seeds),
		test(test_copies_come_after_the_packet),
		test(test_reordering),
		test(test_the_end_of_time),
		test(test_a_packet_left_for_ever),
		test(test_draws_nothing_without_need),
		test(test_impossible_links),
		test(test_smaller_struct),
		test(test_iwarp_and_another_are_told_once),
		test(test_closing_drops_what_is_under_way),
		test(test_messages_have_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
