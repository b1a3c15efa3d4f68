/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP under iWARP, and that of programs: what a link loses comes late, in order and once.  Tests are
 * run with both.
 */
#include "config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/soft/host/host.h"
#include "providers/soft/wire/segment.h"
#include "providers/soft/wire/tcp.h"
#include "providers/soft/link/link.h"
#include "providers/soft/link/shape.h"
#include "providers/soft/fabric/world.h"
#include "sim_fake.h"
#include "tests/cmocka_all.h"

#define SEEN_MAX 128u
#define QPN_OFFSET 12u
#define FIRST SIM_MS(200)
#define LATENCY SIM_US(1)

static bool is_of_programs;
static struct sim_port *port_a, *port_b;
static struct {
	uint64_t time;
	const struct sim_port *at;
	uint8_t number;
	bool is_end;			/* a RST, or that it gives up */
} seen[SEEN_MAX];
static unsigned int num_seen;

static void see(const struct sim_packet *packet)
{
	assert_in_range(num_seen, 0, SEEN_MAX - 1);
	seen[num_seen].time = sim_now();
	seen[num_seen].at = packet->to;
	seen[num_seen].is_end = packet->data[0] == SEG_RST;
	seen[num_seen++].number = packet->data[packet->len - 1];
}

static void see_of_programs(const struct sim_packet *packet)
{
	struct tcp_header h;

	assert_in_range(num_seen, 0, SEEN_MAX - 1);
	assert_int_equal(packet->len, sizeof(h));
	memcpy(&h, packet->data, sizeof(h));
	seen[num_seen].time = sim_now();
	seen[num_seen].at = packet->to;
	seen[num_seen].is_end = h.kind == POLYCM_TCP_GIVES_UP;
	seen[num_seen++].number = h.kind == POLYCM_TCP_GIVES_UP ? 0 : (uint8_t)h.len;
}

static struct sim_port *make_port(const char *name, const char *device_name, const char *address)
{
	struct sim_device *device;
	struct sim_node *node;

	assert_int_equal(sim_node_add(name, &node), 0);
	assert_int_equal(sim_device_add(node, device_name,
					is_of_programs ? &sim_fake_roce : &sim_fake_iwarp,
					&device), 0);
	assert_int_equal(sim_device_add_address(device, NULL, address), 0);
	return &device->ports[0];
}

static int open_world(void **state)
{
	sim_fake_open(state);
	port_a = make_port("a", "sim0", "10.0.0.1/24");
	port_b = make_port("b", "sim1", "10.0.0.2/24");
	sim_link_set_handler(SIM_PACKET_STREAM, see);
	sim_link_set_handler(SIM_PACKET_TCP, see_of_programs);
	num_seen = 0;
	return 0;
}

static int close_world(void **state)
{
	(void)state;
	sim_link_set_handler(SIM_PACKET_STREAM, NULL);
	sim_link_set_handler(SIM_PACKET_TCP, NULL);
	sim_fabric_close();
	assert_int_equal(sim_link_under_way(), 0);
	sim_unlock();
	sim_engine_stop();
	return 0;
}

/* The length is the number. */
static void send_of_programs(uint32_t connection, enum segment_type type, uint8_t number)
{
	static const enum polycm_tcp_kind kinds[] = {
		[SEG_SYN_ACK] = POLYCM_TCP_SYN_ACK, [SEG_DATA] = POLYCM_TCP_DATA,
		[SEG_FIN] = POLYCM_TCP_FIN,
	};
	const struct tcp_header h = {
		.kind = kinds[type], .connection = connection, .to_server = true, .len = number,
	};

	assert_int_equal(sim_link_send(port_a, port_b, 0, SIM_PACKET_TCP, &h, sizeof(h), NULL, 0, 0),
			 0);
}

/* A segment of the connection of this queue pair, or number; its last byte is the number. */
static void send_segment(uint32_t qpn, enum segment_type type, uint8_t number)
{
	uint8_t bytes[SEG_HEADER + 1] = { (uint8_t)type, SEG_VERSION };
	uint32_t word = htonl(qpn);

	if (is_of_programs) {
		send_of_programs(qpn, type, number);
		return;
	}
	memcpy(bytes + QPN_OFFSET, &word, sizeof(word));
	bytes[SEG_HEADER] = number;
	assert_int_equal(sim_link_send(port_a, port_b, 0, SIM_PACKET_STREAM, bytes, sizeof(bytes),
				       NULL, 0, 0), 0);
}

static uint32_t lose(unsigned int nth, unsigned int times)
{
	uint32_t number;
	char why[100];

	assert_int_equal(sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE, .message = "any",
							.nth = nth, .times = times), &number, why,
				       sizeof(why)), 0);
	return number;
}

static void run(uint64_t ns)
{
	sim_unlock();
	assert_int_equal(sim_advance(ns), 0);
	sim_lock();
}

/* All that arrives: "1 2 3". */
static const char *arrivals(void)
{
	static char text[4 * SEEN_MAX];
	size_t len = 0;

	run(SIM_MS(2000000));
	assert_int_equal(sim_link_under_way(), 0);
	text[0] = '\0';
	for (unsigned int i = 0; i < num_seen; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u", i ? " " : "",
					seen[i].number);
	return text;
}

/* What was sent meanwhile comes right behind the one that was lost; other connections do not wait. */
static void test_later_segments_wait(void **state)
{
	(void)state;
	lose(2, 1);
	for (uint8_t n = 1; n <= 4; n++)
		send_segment(7, SEG_DATA, n);
	send_segment(8, SEG_DATA, 11);
	run(SIM_MS(100));
	send_segment(7, SEG_FIN, 5);
	assert_string_equal(arrivals(), "1 11 2 3 4 5");
	assert_int_equal(seen[1].time, LATENCY);
	for (unsigned int i = 2; i < 6; i++)
		assert_int_equal(seen[i].time, FIRST + LATENCY);
}

/* Each repetition may be lost as well; the waits double, up to two minutes. */
static void test_waits_double(void **state)
{
	static const uint64_t ms[] = { 0, 200, 600, 1400, 3000, 6200, 12600, 25400, 51000, 102200,
				       204600, 324600, 444600, 564600, 684600, 804600 };

	for (unsigned int times = 1; times <= 15; times++) {
		uint32_t rule;
		unsigned int hits;

		close_world(state);
		open_world(state);
		rule = lose(0, times);
		send_segment(7, SEG_DATA, 1);
		assert_string_equal(arrivals(), "1");
		assert_int_equal(seen[0].time, SIM_MS(ms[times]) + LATENCY);
		assert_int_equal(sim_fault_hits(rule, &hits), 0);
		assert_int_equal(hits, times);
	}
}

static void test_gives_up(void **state)
{
	uint32_t rule = lose(0, 0);
	unsigned int hits;

	(void)state;
	send_segment(7, SEG_DATA, 1);
	send_segment(7, SEG_DATA, 2);
	/* Only its own end hears of it: 120 s after the last repetition. */
	assert_string_equal(arrivals(), "0");
	assert_true(seen[0].is_end);
	assert_ptr_equal(seen[0].at, port_a);
	assert_int_equal(seen[0].time, SIM_MS(924600));
	assert_int_equal(sim_fault_hits(rule, &hits), 0);
	assert_int_equal(hits, 17);	/* the first one 16 times, the second one once */
	assert_int_equal(sim_fault_remove(rule), 0);
	/* Nothing of it is left. */
	send_segment(7, SEG_DATA, 3);
	assert_string_equal(arrivals(), "0 3");
}

/* SYNs are repeated by the one who connects, a RST by nobody; a SYN-ACK after a second. */
static void test_opening(void **state)
{
	static const struct {
		enum segment_type type;
		uint64_t late;
	} rows[] = { { SEG_SYN, 0 }, { SEG_RST, 0 }, { SEG_SYN_ACK, SIM_MS(1000) } };

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		close_world(state);
		open_world(state);
		lose(1, 0);
		send_segment(0, rows[i].type, 1);
		assert_string_equal(arrivals(), rows[i].late ? "1" : "");
		if (rows[i].late)
			assert_int_equal(seen[0].time, rows[i].late + LATENCY);
	}
}

/* Copies and order are not seen, and what is late holds up what follows. */
static void test_order(void **state)
{
	uint32_t number;
	char why[100];

	(void)state;
	assert_int_equal(sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_DUPLICATE,
							.message = "any"), &number, why,
				       sizeof(why)), 0);
	assert_int_equal(sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_REORDER,
							.message = "any", .nth = 1), &number, why,
				       sizeof(why)), 0);
	assert_int_equal(sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_DELAY,
							.message = "any", .nth = 2,
							.delay_ns = 500), &number, why,
				       sizeof(why)), 0);
	for (uint8_t n = 1; n <= 3; n++)
		send_segment(7, SEG_DATA, n);
	assert_string_equal(arrivals(), "1 2 3");
	assert_int_equal(seen[0].time, LATENCY);
	assert_int_equal(seen[1].time, LATENCY + 500);
	assert_int_equal(seen[2].time, LATENCY + 500);
}

/* A cable that is out for a second. */
static void test_port_down(void **state)
{
	struct sim_port *ports[2] = { port_a, port_b };

	for (unsigned int i = 0; i < 2; i++) {
		close_world(state);
		open_world(state);
		ports[0] = port_a;
		ports[1] = port_b;
		sim_port_set_state(ports[i], false);
		send_segment(7, SEG_DATA, 1);
		run(SIM_MS(1000));
		assert_int_equal(num_seen, 0);
		sim_port_set_state(ports[i], true);
		assert_string_equal(arrivals(), "1");
		assert_int_equal(seen[0].time, SIM_MS(1400) + LATENCY);
	}
}

/* What is under way when the cable goes, or the host, is lost as well. */
static void test_lost_under_way(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		close_world(state);
		open_world(state);
		if (i & 1)	/* on links that are shaped, though not this packet */
			lose(0, 1);
		send_segment((i & 1) ? 8 : 7, SEG_SYN_ACK, 1);
		if (i & 1)
			send_segment(7, SEG_DATA, 1);
		num_seen = 0;
		if (i & 2)
			sim_node_freeze_until(port_b->device->node, sim_now() + SIM_MS(900));
		else
			sim_port_set_state(port_b, false);
		run(SIM_MS(900));
		assert_int_equal(num_seen, 0);
		sim_port_set_state(port_b, true);
		if (i & 1) {
			assert_string_equal(arrivals(), "1 1");
			assert_int_equal(seen[1].time, SIM_MS(1400) + LATENCY);
		} else {
			assert_string_equal(arrivals(), "1");
		}
		assert_int_equal(seen[0].time, SIM_MS(1000) + LATENCY);
	}
}

/*
 * Those behind it may be lost, too, come in time to wait for it, or leave when all is
 * well again.  It is not repeated while some of them are under way.
 */
static void test_lost_under_way_keeps_the_order(void **state)
{
	static const struct {
		uint64_t latency;	/* 0: nothing is said about the link */
		bool up;		/* before the third one comes */
		const char *arrive;
		uint64_t first;
	} rows[] = {
		{ 0, false, "11 1 2 3 4 5", FIRST + LATENCY },
		{ 0, true, "11 1 2 3 4 5", FIRST + LATENCY },
		{ LATENCY, false, "11 1 2 3 4 5", FIRST + LATENCY },
		{ LATENCY, true, "11 1 2 3 4 5", FIRST + LATENCY },
		{ SIM_MS(1000), false, "11 1 2 3 4 5", SIM_MS(2900) },
		{ SIM_MS(1000), true, "1 11 2 3 4 5", SIM_MS(2500) },
	};
	char why[100];

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t latency = rows[i].latency ? rows[i].latency : LATENCY;
		struct polycm_sim_link link = { .size = sizeof(link), .latency_ns = latency };

		close_world(state);
		open_world(state);
		if (rows[i].latency)
			assert_int_equal(sim_shape_set(NULL, NULL, &link, why, sizeof(why)), 0);
		send_segment(7, SEG_DATA, 1);
		send_segment(7, SEG_DATA, 2);
		run(latency / 2);
		send_segment(7, SEG_DATA, 3);
		sim_port_set_state(port_b, false);
		run(latency / 4);
		send_segment(7, SEG_DATA, 4);
		run(latency / 2);
		if (rows[i].up)
			sim_port_set_state(port_b, true);
		run(latency / 4);
		sim_port_set_state(port_b, true);
		assert_int_equal(num_seen, 0);
		send_segment(7, SEG_DATA, 5);
		send_segment(8, SEG_DATA, 11);
		assert_string_equal(arrivals(), rows[i].arrive);
		assert_int_equal(seen[seen[0].number == 1 ? 0 : 1].time, rows[i].first);
	}
}

/* What the link breaks, it breaks in each repetition once. */
static void test_lost_under_way_and_broken(void **state)
{
	uint32_t rule;
	char why[100];

	(void)state;
	assert_int_equal(sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_CORRUPT,
							.message = "any", .value = 0x80),
				       &rule, why, sizeof(why)), 0);
	send_segment(7, SEG_DATA, 1);
	sim_port_set_state(port_b, false);
	run(SIM_MS(100));
	sim_port_set_state(port_b, true);
	assert_string_equal(arrivals(), "129");
	assert_int_equal(seen[0].time, FIRST + LATENCY);
}

/* Each repetition leaves, and the port goes down before it comes: it does not go on for ever. */
static void test_lost_under_way_each_time(void **state)
{
	uint32_t rule;
	unsigned int hits;
	char why[100];

	(void)state;
	assert_int_equal(sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_PORT_DOWN,
							.message = "any",
							.on = (void *)port_b->device->node,
							.delay_ns = SIM_MS(100)),
				       &rule, why, sizeof(why)), 0);
	send_segment(7, SEG_DATA, 1);
	assert_string_equal(arrivals(), "0");
	assert_true(seen[0].is_end);
	assert_ptr_equal(seen[0].at, port_a);
	assert_int_equal(seen[0].time, SIM_MS(924600));
	assert_int_equal(sim_fault_hits(rule, &hits), 0);
	assert_int_equal(hits, 16);
}

/* Many losses in a row of packets: all arrive, in order. */
static void test_bad_link(void **state)
{
	struct polycm_sim_link link = {
		.size = sizeof(link), .latency_ns = 1000, .jitter_ns = 300, .loss = 0.4,
		.duplication = 0.3, .reordering = 0.3,
	};
	char why[100];

	(void)state;
	assert_int_equal(sim_shape_set(NULL, NULL, &link, why, sizeof(why)), 0);
	for (uint8_t n = 0; n < SEEN_MAX; n++) {
		send_segment(7, SEG_DATA, n);
		run(700);
	}
	(void)arrivals();
	assert_int_equal(num_seen, SEEN_MAX);
	for (unsigned int i = 0; i < SEEN_MAX; i++)
		assert_int_equal(seen[i].number, i);
}

/* --- Without memory.  The linker sends the simulator's allocations through here. --- */

static unsigned int fail_from, fail_num;	/* the n-th from now on, 0: none; and so many after it */

static bool fails(void)
{
	if (!fail_from)
		return false;
	if (fail_from > 1) {
		fail_from--;
		return false;
	}
	if (!--fail_num)
		fail_from = 0;
	return true;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t num, size_t size);
void *__wrap_calloc(size_t num, size_t size);

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t num, size_t size)
{
	return fails() ? NULL : __real_calloc(num, size);
}

static unsigned int then_from, then_num;

/* From here on there is no memory. */
static void send_four(void)
{
	fail_from = then_from;
	fail_num = then_num;
	for (uint8_t n = 1; n <= 4; n++)
		send_segment(7, SEG_DATA, n);
	send_segment(8, SEG_DATA, 11);
}

static void loses_one(void)
{
	lose(2, 1);
	send_four();
}

static void port_is_down(void)
{
	sim_port_set_state(port_a, false);
	send_four();
	run(SIM_MS(1000));
	sim_port_set_state(port_a, true);
}

static void port_goes_down(void)
{
	send_four();
	sim_port_set_state(port_b, false);
	run(SIM_MS(300));
	sim_port_set_state(port_b, true);
}

static void port_goes_down_on_a_long_link(void)
{
	struct polycm_sim_link link = { .size = sizeof(link), .latency_ns = SIM_MS(50) };
	char why[100];

	assert_int_equal(sim_shape_set(NULL, NULL, &link, why, sizeof(why)), 0);
	port_goes_down();
}

static void link_reorders(void)
{
	uint32_t number;
	char why[100];

	assert_int_equal(sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_DELAY,
							.message = "any", .nth = 1,
							.delay_ns = SIM_MS(1)), &number, why,
				       sizeof(why)), 0);
	send_four();
}

static void in_order(const char *what, unsigned int n)
{
	unsigned int next = 1, others = 0;

	(void)arrivals();
	for (unsigned int i = 0; i < num_seen; i++) {
		if (seen[i].number == 11)
			others++;
		else if (seen[i].number != next++)
			break;
	}
	if (num_seen != 5 || others != 1 || next != 5)
		fail_msg("%s, allocation %u fails: %s", what, n, arrivals());
}

/* Each allocation fails once, and all of them from it on while there is a reserve. */
static void test_without_memory(void **state)
{
	static const struct {
		const char *what;
		void (*happens)(void);
	} rows[] = {
		{ "a segment is lost", loses_one },
		{ "the port is down", port_is_down },
		{ "the port goes down", port_goes_down },
		{ "the port goes down on a long link", port_goes_down_on_a_long_link },
		{ "a segment is late", link_reorders },
	};
	unsigned int left;

	for (unsigned int i = 0; i < 2 * ARRAY_SIZE(rows); i++) {
		unsigned int n = 0;

		do {
			close_world(state);
			open_world(state);
			then_from = ++n;
			then_num = i % 2 ? 1000 : 1;
			rows[i / 2].happens();
			in_order(rows[i / 2].what, n);
			left = fail_from;
			fail_from = 0;
		} while (left < 2);
		assert_true(n > 4);
	}
}

/* Not even reserved memory, when they arrive at a port that is down: they arrive later. */
static void test_without_any_memory(void **state)
{
	(void)state;
	for (uint8_t n = 0; n < SEEN_MAX; n++)
		send_segment(7, SEG_DATA, n);
	sim_port_set_state(port_b, false);
	fail_from = 1;
	fail_num = UINT32_MAX;
	run(SIM_MS(1));
	fail_from = 0;
	sim_port_set_state(port_b, true);
	(void)arrivals();
	assert_int_equal(num_seen, SEEN_MAX);
	for (unsigned int i = 0; i < SEEN_MAX; i++)
		assert_int_equal(seen[i].number, i);
}

#define test(f) cmocka_unit_test_setup_teardown(f, open_world, close_world)

static int of_programs(void **state)
{
	(void)state;
	is_of_programs = true;
	return 0;
}

int main(void)
{
	const struct CMUnitTest both[] = {
		test(test_later_segments_wait),
		test(test_waits_double),
		test(test_gives_up),
		test(test_order),
		test(test_port_down),
		test(test_lost_under_way),
		test(test_lost_under_way_keeps_the_order),
		test(test_lost_under_way_each_time),
		test(test_bad_link),
		test(test_without_memory),
		test(test_without_any_memory),
	};
	const struct CMUnitTest iwarp[] = {
		test(test_opening),
		test(test_lost_under_way_and_broken),
	};

	return cmocka_run_group_tests_name("iWARP", both, NULL, NULL) +
	       cmocka_run_group_tests(iwarp, NULL, NULL) +
	       cmocka_run_group_tests_name("programs", both, of_programs, NULL);
}
