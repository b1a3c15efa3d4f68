/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP connections of programs over the simulated network (POLYCM_TCP_EXTENSION): the test is who
 * carries them, and sees when segments arrive.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "providers/sim/provider.h"
#include "providers/soft/fabric/build.h"
#include "providers/soft/fabric/world.h"
#include "providers/soft/faults/fault.h"
#include "providers/soft/host/host.h"
#include "providers/soft/link/link.h"
#include "providers/soft/link/shape.h"
#include "providers/soft/wire/tcp.h"
#include "sim_fake.h"
#include "tests/cmocka_all.h"

#define CLIENT "10.0.0.1"
#define SERVER "10.0.0.2"
#define BESIDE "10.1.0.3"		/* of an interface of a third node, beside its device */
#define NO_DEVICE "10.1.0.4"		/* of a fourth node, which has none */

static struct sim_node *client, *server;

static struct sim_node *make_node(const char *name, const char *device_name, const char *address)
{
	struct sim_device *device;
	struct sim_node *node;

	assert_int_equal(sim_node_add(name, &node), 0);
	if (device_name) {
		assert_int_equal(sim_device_add(node, device_name, &sim_fake_roce, &device), 0);
		assert_int_equal(sim_device_add_address(device, NULL, address), 0);
	}
	return node;
}

static int open_fabric(void)
{
	struct sim_node *third, *fourth;
	const char *why = NULL;

	assert_int_equal(sim_fabric_begin(), 0);
	client = make_node("client", "sim0", CLIENT "/24");
	server = make_node("server", "sim1", SERVER "/24");
	third = make_node("third", "sim2", "10.0.0.3/24");
	fourth = make_node("fourth", NULL, NULL);
	assert_int_equal(sim_build_interface(third, "beside", BESIDE "/24", &why), 0);
	assert_int_equal(sim_build_interface(fourth, "alone", NO_DEVICE "/24", &why), 0);
	return 0;
}

/* ------------------------------------------------------------------------
 * Who carries: all that it is told, as "DATA>1:100@0.001": with its direction (> is to the server),
 * connection, length if it has one, and milliseconds.
 */

static char told[8192];

static const char *const kinds[] = {
	[POLYCM_TCP_SYN] = "SYN", [POLYCM_TCP_SYN_ACK] = "SYN_ACK", [POLYCM_TCP_ACK] = "ACK",
	[POLYCM_TCP_DATA] = "DATA", [POLYCM_TCP_FIN] = "FIN", [POLYCM_TCP_RST] = "RST",
	[POLYCM_TCP_REFUSED] = "REFUSED", [POLYCM_TCP_GIVES_UP] = "GIVES_UP",
};

static void arrived(const struct polycm_tcp_segment *segment)
{
	const size_t len = strlen(told);
	const uint64_t us = sim_now() / 1000;
	char bytes[16] = "";

	if (segment->len)
		snprintf(bytes, sizeof(bytes), ":%u", segment->len);
	snprintf(told + len, sizeof(told) - len, "%s%s%c%u%s@%llu.%03llu", len ? " " : "",
		 segment->kind <= POLYCM_TCP_GIVES_UP ? kinds[segment->kind] : "?",
		 segment->to_server ? '>' : '<', segment->connection, bytes,
		 (unsigned long long)us / 1000, (unsigned long long)us % 1000);
}

static int begin(void **state)
{
	const struct sim_start how = { .clock = SIM_CLOCK_VIRTUAL, .open_fabric = open_fabric };

	(void)state;
	sim_fake_init();
	assert_int_equal(sim_start(&how), 0);
	assert_int_equal(sim_tcp_ops.open(arrived), 0);
	told[0] = '\0';
	return 0;
}

static int end(void **state)
{
	(void)state;
	sim_lock();
	assert_int_equal(sim_link_under_way(), 0);
	sim_unlock();
	sim_down_forced();
	sim_link_set_handler(SIM_PACKET_TCP, NULL);
	sim_link_set_rejecter(SIM_PACKET_TCP, NULL);
	return 0;
}

static void again(void **state)
{
	end(state);
	begin(state);
}

static union sim_sockaddr address(const char *text)
{
	union sim_sockaddr addr;
	uint8_t prefix_len;

	assert_int_equal(sim_addr_parse(text, &addr, &prefix_len), 0);
	return addr;
}

static int try_to_send(const struct polycm_tcp_segment *segment, const char *from, const char *to)
{
	const union sim_sockaddr source = address(from), target = address(to);

	return sim_tcp_ops.send(segment, &source.sa, &target.sa);
}

/* '>': to the server. */
static void send_len(uint32_t connection, char direction, enum polycm_tcp_kind kind, uint32_t len)
{
	const struct polycm_tcp_segment segment = {
		.connection = connection, .to_server = direction == '>', .kind = kind, .len = len,
	};

	assert_int_equal(try_to_send(&segment, segment.to_server ? CLIENT : SERVER,
				     segment.to_server ? SERVER : CLIENT), 0);
}

static void send_kind(uint32_t connection, char direction, enum polycm_tcp_kind kind)
{
	send_len(connection, direction, kind, kind == POLYCM_TCP_DATA ? 100 : 0);
}

static void advance(uint64_t ns)
{
	assert_int_equal(sim_advance(ns), 0);
}

/* All that there is to tell, in that much time. */
static const char *all_told(void)
{
	advance(SIM_MS(2000000));
	return told;
}

static int try_to_add(const struct polycm_sim_fault_rule *given, char *why, size_t size)
{
	struct polycm_sim_fault_rule rule = *given;
	uint32_t number;
	int r;

	rule.size = sizeof(rule);
	sim_lock();
	r = sim_fault_add(&rule, &number, why, size);
	sim_unlock();
	return r;
}

static void add(const struct polycm_sim_fault_rule *rule)
{
	char why[200] = "";

	assert_int_equal(try_to_add(rule, why, sizeof(why)), 0);
	assert_string_equal(why, "");
}

#define RULE(...) (&(const struct polycm_sim_fault_rule){ __VA_ARGS__ })

static void set_link(const struct polycm_sim_link *given)
{
	struct polycm_sim_link link = *given;
	char why[200];

	link.size = sizeof(link);
	sim_lock();
	assert_int_equal(sim_shape_set(NULL, NULL, &link, why, sizeof(why)), 0);
	sim_unlock();
}

/* ------------------------------------------------------------------------
 * Opening, and who can send.
 */

static void test_before_the_simulator_is_up(void **state)
{
	(void)state;
	assert_int_equal(sim_tcp_ops.size, sizeof(sim_tcp_ops));
	assert_false(sim_is_up());
	assert_int_equal(sim_tcp_ops.open(arrived), -ENETDOWN);
	begin(state);
	assert_true(sim_is_up());
	end(state);
	assert_int_equal(sim_tcp_ops.open(arrived), -ENETDOWN);
}

static void test_addresses(void **state)
{
	static const struct {
		const char *from, *to;
		int result;
		const char *told;
	} rows[] = {
		{ CLIENT, SERVER, 0, "DATA>1:100@0.001" },
		{ SERVER, CLIENT, 0, "DATA>1:100@0.001" },
		{ CLIENT, CLIENT, 0, "DATA>1:100@0.001" },
		{ BESIDE, SERVER, 0, "DATA>1:100@0.001" },
		{ CLIENT, BESIDE, 0, "DATA>1:100@0.001" },
		{ "10.0.0.3", BESIDE, 0, "DATA>1:100@0.001" },
		{ NO_DEVICE, SERVER, -EADDRNOTAVAIL, "" },
		{ CLIENT, NO_DEVICE, -EADDRNOTAVAIL, "" },
		{ "10.0.0.99", SERVER, -EADDRNOTAVAIL, "" },
		{ CLIENT, "10.0.0.99", -EADDRNOTAVAIL, "" },
		{ CLIENT, "0.0.0.0", -EADDRNOTAVAIL, "" },
		{ CLIENT, "::", -EADDRNOTAVAIL, "" },
		{ CLIENT, "fd00::1", -EADDRNOTAVAIL, "" },
	};
	const struct polycm_tcp_segment segment = {
		.connection = 1, .to_server = true, .kind = POLYCM_TCP_DATA, .len = 100,
	};
	const struct sockaddr_un no_address = { .sun_family = AF_UNIX };
	const union sim_sockaddr from = address(CLIENT);

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		again(state);
		assert_int_equal(try_to_send(&segment, rows[i].from, rows[i].to), rows[i].result);
		assert_string_equal(all_told(), rows[i].told);
	}
	assert_int_equal(sim_tcp_ops.send(&segment, &from.sa, (const void *)&no_address),
			 -EADDRNOTAVAIL);
}

/* Its node's first device counts. */
static void test_interface_beside_a_device(void **state)
{
	const struct polycm_tcp_segment segment = { .connection = 1, .to_server = true };
	const union sim_sockaddr beside = address(BESIDE);
	struct sim_node *third;

	(void)state;
	sim_lock();
	third = sim_node_of_address(&beside.sa);
	sim_port_set_state(&third->devices->ports[0], false);
	sim_unlock();
	assert_int_equal(try_to_send(&segment, CLIENT, BESIDE), 0);
	assert_string_equal(all_told(), "GIVES_UP>1@127000.000");
}

/* ------------------------------------------------------------------------
 * What is no segment of a connection that is carried.
 */

static void send_bytes(const void *bytes, size_t len)
{
	sim_lock();
	assert_int_equal(sim_link_send(&client->devices->ports[0], &server->devices->ports[0],
				       sim_self_slot(), SIM_PACKET_TCP, bytes, len, NULL, 0, 0), 0);
	sim_unlock();
}

static void test_no_segments(void **state)
{
	static const uint32_t unknown[] = { POLYCM_TCP_GIVES_UP + 1, 1000, UINT32_MAX };
	struct tcp_header h = { .kind = POLYCM_TCP_DATA, .connection = 1, .to_server = 1, .len = 5 };

	for (unsigned int shaped = 0; shaped < 2; shaped++) {
		again(state);
		if (shaped)
			set_link(&(struct polycm_sim_link){ .latency_ns = SIM_MS(1) });
		send_bytes(&h, sizeof(h) - 1);
		send_bytes(&h, 1);
		send_bytes(&h, 0);
		for (unsigned int i = 0; i < ARRAY_SIZE(unknown); i++) {
			h.kind = unknown[i];
			send_bytes(&h, sizeof(h));
		}
		h.kind = POLYCM_TCP_DATA;
		sim_lock();
		assert_int_equal(sim_link_send_as(&client->devices->ports[0],
						  &server->devices->ports[0], sim_self_slot() + 1,
						  SIM_PACKET_TCP, &h, sizeof(h)), 0);
		sim_unlock();
		assert_string_equal(all_told(), "");
	}
}

/* Rules are asked about all of that, too. */
static void test_no_segments_are_rejected(void **state)
{
	struct tcp_header h = { .kind = POLYCM_TCP_GIVES_UP, .connection = 1 };

	(void)state;
	add(RULE(.action = POLYCM_SIM_REJECT, .message = "tcp"));
	add(RULE(.action = POLYCM_SIM_REJECT, .message = "any", .reason = 1));
	send_bytes(&h, sizeof(h) - 1);
	h.kind = UINT32_MAX;
	send_bytes(&h, sizeof(h));
	assert_string_equal(all_told(), "");
}

/* Nobody can send it: the sender is told. */
static void test_giving_up_is_not_sent(void **state)
{
	(void)state;
	for (unsigned int kind = POLYCM_TCP_GIVES_UP; kind < POLYCM_TCP_GIVES_UP + 3; kind++) {
		const struct polycm_tcp_segment segment = { .kind = (enum polycm_tcp_kind)kind };

		assert_int_equal(try_to_send(&segment, CLIENT, SERVER), -EINVAL);
	}
	assert_string_equal(all_told(), "");
}

/* ------------------------------------------------------------------------
 * Losses.
 */

/* Those that open a connection are repeated after 1, 2, 4 ... seconds, six times. */
static void test_opening(void **state)
{
	static const struct {
		enum polycm_tcp_kind kind;
		char direction;
	} rows[] = {
		{ POLYCM_TCP_SYN, '>' }, { POLYCM_TCP_SYN_ACK, '<' }, { POLYCM_TCP_ACK, '>' },
		{ POLYCM_TCP_REFUSED, '<' },
	};
	char expected[64];

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		for (unsigned int times = 0; times <= 7; times++) {
			again(state);
			if (times)
				add(RULE(.action = POLYCM_SIM_LOSE, .message = "tcp",
					 .times = times));
			send_kind(1, rows[i].direction, rows[i].kind);
			snprintf(expected, sizeof(expected), "%s%c1@%u.001", kinds[rows[i].kind],
				 rows[i].direction, ((1u << times) - 1) * 1000);
			/* An ACK is repeated for whoever asks for it, not for its sender. */
			if (times == 7 && rows[i].kind == POLYCM_TCP_ACK)
				*expected = '\0';
			else if (times == 7)
				snprintf(expected, sizeof(expected), "GIVES_UP%c1@127000.000",
					 rows[i].direction);
			assert_string_equal(all_told(), expected);
		}
	}
}

/* The sender is told when a segment is given up. The receiver is not. */
static void test_gives_up(void **state)
{
	static const enum polycm_tcp_kind rows[] = { POLYCM_TCP_DATA, POLYCM_TCP_FIN };

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		again(state);
		add(RULE(.action = POLYCM_SIM_LOSE, .message = "tcp",
			 .from = (struct polycm_sim_node *)server));
		send_kind(1, '<', rows[i]);
		send_kind(1, '<', POLYCM_TCP_FIN);	/* lost with it */
		send_kind(1, '>', POLYCM_TCP_DATA);
		assert_string_equal(all_told(), i ? "DATA>1:100@0.001 GIVES_UP<1@924600.000" :
				    "DATA>1:100@0.001 GIVES_UP<1:100@924600.000");
	}
}

/* RSTs are not repeated, and wait for nothing. */
static void test_reset(void **state)
{
	(void)state;
	add(RULE(.action = POLYCM_SIM_LOSE, .message = "TCP_DATA", .nth = 1));
	add(RULE(.action = POLYCM_SIM_LOSE, .message = "TCP_RST", .nth = 1));
	send_kind(1, '>', POLYCM_TCP_RST);
	send_kind(1, '>', POLYCM_TCP_DATA);
	send_kind(1, '>', POLYCM_TCP_RST);
	assert_string_equal(all_told(), "RST>1@0.001 DATA>1:100@200.001");
}

/* Data ends the opening as well as the ACK does, and does not wait for it. */
static void test_data_in_place_of_the_ack(void **state)
{
	(void)state;
	add(RULE(.action = POLYCM_SIM_LOSE, .message = "TCP_ACK", .times = 1));
	send_kind(1, '>', POLYCM_TCP_ACK);
	send_kind(1, '>', POLYCM_TCP_DATA);
	send_kind(1, '>', POLYCM_TCP_FIN);
	assert_string_equal(all_told(), "DATA>1:100@0.001 FIN>1@0.001 ACK>1@1000.001");
}

/* What one loses holds up no other: neither the other direction, nor another connection. */
static void test_directions_and_connections(void **state)
{
	(void)state;
	add(RULE(.action = POLYCM_SIM_LOSE, .message = "TCP_DATA", .nth = 1));
	send_len(1, '>', POLYCM_TCP_DATA, 1);
	send_len(1, '<', POLYCM_TCP_DATA, 2);
	send_len(2, '>', POLYCM_TCP_DATA, 3);
	send_len(1, '>', POLYCM_TCP_DATA, 4);
	send_len(2, '<', POLYCM_TCP_DATA, 5);
	send_kind(1, '>', POLYCM_TCP_FIN);
	send_kind(2, '>', POLYCM_TCP_FIN);
	assert_string_equal(all_told(), "DATA<1:2@0.001 DATA>2:3@0.001 DATA<2:5@0.001 FIN>2@0.001 "
			    "DATA>1:1@200.001 DATA>1:4@200.001 FIN>1@200.001");
}

/* A port that is down at either end, or a node that stands still, for two seconds. */
static void test_out_for_a_while(void **state)
{
	for (unsigned int i = 0; i < 4; i++) {
		struct sim_node *at;

		again(state);
		at = i % 2 ? client : server;
		sim_lock();
		if (i / 2)
			sim_node_freeze_until(at, sim_now() + SIM_MS(2000));
		else
			sim_port_set_state(&at->devices->ports[0], false);
		sim_unlock();
		send_kind(1, '>', POLYCM_TCP_SYN);
		send_kind(2, '>', POLYCM_TCP_DATA);
		send_kind(3, '<', POLYCM_TCP_REFUSED);
		send_kind(4, '<', POLYCM_TCP_RST);
		advance(SIM_MS(2000));
		assert_string_equal(told, "");
		sim_lock();
		sim_port_set_state(&at->devices->ports[0], true);
		sim_unlock();
		assert_string_equal(all_told(), "SYN>1@3000.001 REFUSED<3@3000.001 "
				    "DATA>2:100@3000.001");
	}
}

/* ------------------------------------------------------------------------
 * Rules and links.
 */

static void test_rules(void **state)
{
	static const struct {
		struct polycm_sim_fault_rule rule;
		enum polycm_tcp_kind kind;
		char direction;
		const char *told;
	} rows[] = {
		{ { .action = POLYCM_SIM_LOSE, .message = "TCP_SYN", .times = 1 },
		  POLYCM_TCP_SYN, '>', "SYN>1@1000.001" },
		{ { .action = POLYCM_SIM_LOSE, .message = "tcp_syn", .times = 1 },
		  POLYCM_TCP_SYN_ACK, '<', "SYN_ACK<1@0.001" },
		{ { .action = POLYCM_SIM_LOSE, .message = "tcp", .times = 1 },
		  POLYCM_TCP_DATA, '<', "DATA<1:100@200.001" },
		{ { .action = POLYCM_SIM_LOSE, .message = "any", .times = 1 },
		  POLYCM_TCP_DATA, '<', "DATA<1:100@200.001" },
		/* Those of RDMA. */
		{ { .action = POLYCM_SIM_LOSE, .message = "data" },
		  POLYCM_TCP_DATA, '<', "DATA<1:100@0.001" },
		{ { .action = POLYCM_SIM_LOSE }, POLYCM_TCP_SYN, '>', "SYN>1@0.001" },
		/* Both kinds of RST have one name. */
		{ { .action = POLYCM_SIM_LOSE, .message = "TCP_RST", .times = 1 },
		  POLYCM_TCP_RST, '<', "" },
		{ { .action = POLYCM_SIM_LOSE, .message = "TCP_RST", .times = 1 },
		  POLYCM_TCP_REFUSED, '<', "REFUSED<1@1000.001" },
		{ { .action = POLYCM_SIM_CORRUPT, .message = "TCP_DATA", .times = 1, .value = 1 },
		  POLYCM_TCP_DATA, '>', "DATA>1:100@200.001" },
		{ { .action = POLYCM_SIM_CORRUPT, .message = "TCP_SYN", .times = 1, .value = 1 },
		  POLYCM_TCP_SYN, '>', "SYN>1@1000.001" },
		{ { .action = POLYCM_SIM_CORRUPT, .message = "tcp", .times = 1, .offset = -1 },
		  POLYCM_TCP_FIN, '>', "FIN>1@200.001" },
		{ { .action = POLYCM_SIM_CORRUPT, .message = "tcp", .times = 1, .value = 1 },
		  POLYCM_TCP_RST, '>', "" },
		{ { .action = POLYCM_SIM_DELAY, .message = "TCP_SYN", .delay_ns = SIM_MS(5) },
		  POLYCM_TCP_SYN, '>', "SYN>1@5.001" },
		{ { .action = POLYCM_SIM_DELAY, .message = "TCP_DATA", .delay_ns = SIM_MS(5) },
		  POLYCM_TCP_DATA, '<', "DATA<1:100@5.001" },
		{ { .action = POLYCM_SIM_DELAY, .message = "TCP_FIN", .delay_ns = SIM_MS(5) },
		  POLYCM_TCP_FIN, '<', "FIN<1@5.001" },
		{ { .action = POLYCM_SIM_DELAY, .message = "TCP_RST", .delay_ns = SIM_MS(5) },
		  POLYCM_TCP_RST, '<', "RST<1@5.001" },
		{ { .action = POLYCM_SIM_DUPLICATE, .message = "tcp", .count = 3 },
		  POLYCM_TCP_DATA, '>', "DATA>1:100@0.001" },
		{ { .action = POLYCM_SIM_REORDER, .message = "tcp" },
		  POLYCM_TCP_DATA, '>', "DATA>1:100@0.001" },
		/* The client is refused; who is connected, is reset, and so is the other end. */
		{ { .action = POLYCM_SIM_REJECT, .message = "TCP_SYN" },
		  POLYCM_TCP_SYN, '>', "REFUSED<1@0.002" },
		{ { .action = POLYCM_SIM_REJECT, .message = "TCP_SYN_ACK" },
		  POLYCM_TCP_SYN_ACK, '<', "RST<1@0.001 RST>1@0.002" },
		{ { .action = POLYCM_SIM_REJECT, .message = "TCP_DATA" },
		  POLYCM_TCP_DATA, '>', "RST>1@0.001 RST<1@0.002" },
		{ { .action = POLYCM_SIM_REJECT, .message = "tcp" },
		  POLYCM_TCP_DATA, '<', "RST<1@0.001 RST>1@0.002" },
		{ { .action = POLYCM_SIM_REJECT, .message = "any", .reason = 8 },
		  POLYCM_TCP_SYN, '>', "REFUSED<1@0.002" },
		{ { .action = POLYCM_SIM_REJECT, .message = "tcp" },
		  POLYCM_TCP_FIN, '<', "FIN<1@0.001" },
		{ { .action = POLYCM_SIM_REJECT, .message = "tcp" },
		  POLYCM_TCP_RST, '<', "RST<1@0.001" },
		/* It does not arrive: the server's port is down by then. */
		{ { .action = POLYCM_SIM_PORT_DOWN, .message = "TCP_SYN", .delay_ns = SIM_MS(10) },
		  POLYCM_TCP_SYN, '>', "SYN>1@1000.001" },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct polycm_sim_fault_rule rule = rows[i].rule;

		again(state);
		if (rule.action == POLYCM_SIM_PORT_DOWN) {
			rule.on = (struct polycm_sim_node *)server;
			rule.times = 1;
		}
		add(&rule);
		send_kind(1, rows[i].direction, rows[i].kind);
		assert_string_equal(all_told(), rows[i].told);
	}
}

/* The answer is the rejected segment's, with its connection, and later ones are not touched. */
static void test_rejected_in_order(void **state)
{
	(void)state;
	add(RULE(.action = POLYCM_SIM_REJECT, .message = "TCP_DATA", .nth = 2));
	for (uint32_t connection = 1; connection <= 3; connection++)
		send_kind(connection, '>', POLYCM_TCP_DATA);
	assert_string_equal(all_told(), "DATA>1:100@0.001 RST>2@0.001 DATA>3:100@0.001 RST<2@0.002");
}

static void test_rules_that_cannot_be(void **state)
{
	static const char no_reason[] = "a TCP connection is reset without a reason: leave it out";
	static const char subjects[] = "reject is for REQ, REP, MPA_REQ, SEND, WRITE, READ, ATOMIC, "
				       "TCP_SYN, TCP_SYN_ACK and TCP_DATA, not for ";
	static const struct {
		const char *message;
		uint16_t reason;
		const char *why;	/* "": it can */
	} rows[] = {
		{ "TCP_SYN", 0, "" },
		{ "TCP_SYN_ACK", 0, "" },
		{ "TCP_DATA", 0, "" },
		{ "tcp", 0, "" },
		{ "any", 1, "" },
		{ "any", 0, "reject needs a reason from 1 on" },
		{ "TCP_SYN", 1, no_reason },
		{ "TCP_SYN_ACK", 3, no_reason },
		{ "TCP_DATA", UINT16_MAX, no_reason },
		{ "tcp", 1, no_reason },
		{ "TCP_ACK", 0, subjects },
		{ "TCP_FIN", 0, subjects },
		{ "TCP_RST", 0, subjects },
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct polycm_sim_fault_rule rule = {
			.action = POLYCM_SIM_REJECT, .message = rows[i].message,
			.reason = rows[i].reason,
		};
		char why[200] = "", expected[200];

		assert_int_equal(try_to_add(&rule, why, sizeof(why)), *rows[i].why ? -EINVAL : 0);
		snprintf(expected, sizeof(expected), rows[i].why == subjects ? "%s'%s'" : "%s",
			 rows[i].why, rows[i].message);
		assert_string_equal(why, expected);
	}
}

/* A byte takes a microsecond, and so do those of the headers, 66. */
static void test_bandwidth(void **state)
{
	(void)state;
	set_link(&(struct polycm_sim_link){ .bandwidth = 8000000, .latency_ns = SIM_MS(1) });
	send_kind(1, '>', POLYCM_TCP_SYN);
	send_len(1, '>', POLYCM_TCP_DATA, 934);
	send_len(1, '>', POLYCM_TCP_DATA, 16384);
	send_kind(1, '>', POLYCM_TCP_FIN);
	send_kind(1, '<', POLYCM_TCP_RST);
	assert_string_equal(all_told(), "SYN>1@1.066 RST<1@1.066 DATA>1:934@2.066 "
			    "DATA>1:16384@18.516 FIN>1@18.582");
}

/* Each segment once and in order, in both directions of two connections. */
static void test_bad_link(void **state)
{
	uint32_t next[4] = { 1, 1, 1, 1 };
	unsigned int num = 0;

	(void)state;
	set_link(&(struct polycm_sim_link){
		.latency_ns = 1000, .jitter_ns = 5000, .loss = 0.3, .duplication = 0.3,
		.reordering = 0.3,
	});
	for (uint32_t n = 1; n <= 50; n++) {
		for (unsigned int way = 0; way < 4; way++)
			send_len(1 + way / 2, way % 2 ? '>' : '<', POLYCM_TCP_DATA, n);
		advance(700);
	}
	for (const char *at = all_told(); *at; num++) {
		uint32_t connection, len;
		char direction;
		int read;

		assert_int_equal(sscanf(at, "DATA%c%u:%u@%*[0-9.]%n ", &direction, &connection, &len,
					&read), 3);
		assert_int_equal(len, next[2 * (connection - 1) + (direction == '>')]++);
		at += read + (at[read] == ' ');
	}
	assert_int_equal(num, 200);
}

#define test(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before_the_simulator_is_up),
		test(test_addresses),
		test(test_interface_beside_a_device),
		test(test_no_segments),
		test(test_no_segments_are_rejected),
		test(test_giving_up_is_not_sent),
		test(test_opening),
		test(test_gives_up),
		test(test_reset),
		test(test_data_in_place_of_the_ack),
		test(test_directions_and_connections),
		test(test_out_for_a_while),
		test(test_rules),
		test(test_rejected_in_order),
		test(test_rules_that_cannot_be),
		test(test_bandwidth),
		test(test_bad_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
