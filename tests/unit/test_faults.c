/* SPDX-License-Identifier: BSD-2-Clause */
/* Fault rules: what they match, what they do to packets, calls and lookups, and which cannot be. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "link_world.h"
#include "providers/soft/wire/mad.h"
#include "providers/soft/fabric/world.h"
#include "rule_counts.h"
#include "tests/cmocka_all.h"

#define RULE(...) POLYCM_SIM_FAULT(__VA_ARGS__)
#define HANDLE(node) ((struct polycm_sim_node *)(node))

static uint32_t add(const struct polycm_sim_fault_rule *rule)
{
	uint32_t number = 0;
	char why[200] = "";

	assert_int_equal(sim_fault_add(rule, &number, why, sizeof(why)), 0);
	assert_string_equal(why, "");
	assert_true(sim_faults_on);
	return number;
}

static unsigned int hits(uint32_t number)
{
	unsigned int n = UINT32_MAX;

	assert_int_equal(sim_fault_hits(number, &n), 0);
	return n;
}

static void advance(uint64_t ns)
{
	sim_unlock();
	assert_int_equal(sim_advance(ns), 0);
	sim_lock();
}

/* ------------------------------------------------------------------------
 * Matching.
 */

/* Ten REQs from a to b, 10 ns apart, the first at 0: those that arrive, by number. */
static void test_count_and_window(void **state)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(rule_counts); i++) {
		const struct rule_count *row = &rule_counts[i];
		uint32_t number;

		link_world_close(state);
		link_world_open(state);
		number = add(RULE(.action = POLYCM_SIM_LOSE, .nth = row->nth, .times = row->times,
				  .probability = row->probability, .from_ns = row->from_ns,
				  .until_ns = row->until_ns));
		for (uint32_t n = 0; n < 10; n++) {
			send_mad(port_a, port_b, CM_REQ, n);
			advance(10);
		}
		assert_string_equal(arrivals(), row->others);
		assert_int_equal(hits(number), row->hits);
	}
}

/* One of each message, both ways. */
static void send_all(void)
{
	for (uint16_t attr = CM_REQ; attr <= CM_APR; attr++)
		send_mad(port_a, port_b, attr, attr - CM_REQ);
	send_number(port_a, port_b, 11, 4);
	send_mad(port_b, port_a, CM_REQ, 20);
	send_number(port_b, port_a, 21, 4);
	send_mad(port_a, port_a, CM_REQ, 30);
}

static void test_message_and_place(void **state)
{
	const struct {
		struct polycm_sim_fault_rule rule;
		const char *arrive;
	} rows[] = {
		{ { .message = "REQ" }, "1 2 3 4 5 6 7 8 9 10 11 21" },
		{ { .message = "rtu" }, "0 1 2 3 5 6 7 8 9 10 11 20 21 30" },
		{ { .message = "SIDR_rep" }, "0 1 2 3 4 5 6 7 9 10 11 20 21 30" },
		{ { .message = "cm" }, "11 21" },
		{ { .message = NULL }, "11 21" },
		{ { .message = "data" }, "0 1 2 3 4 5 6 7 8 9 10 20 30" },
		{ { .message = "UD" }, "0 1 2 3 4 5 6 7 8 9 10 20 30" },
		{ { .message = "any" }, "" },
		{ { .message = "MPA_REQ" }, "0 1 2 3 4 5 6 7 8 9 10 11 20 21 30" },
		{ { .message = "any", .from = HANDLE(node_b) }, "0 1 2 3 4 5 6 7 8 9 10 11 30" },
		{ { .message = "any", .to = HANDLE(node_a) }, "0 1 2 3 4 5 6 7 8 9 10 11" },
		{ { .message = "any", .from = HANDLE(node_a), .to = HANDLE(node_a) },
		  "0 1 2 3 4 5 6 7 8 9 10 11 20 21" },
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct polycm_sim_fault_rule rule = rows[i].rule;
		uint32_t number;

		rule.size = sizeof(rule);
		rule.action = POLYCM_SIM_LOSE;
		number = add(&rule);
		send_all();
		assert_string_equal(arrivals(), rows[i].arrive);
		assert_int_equal(sim_fault_remove(number), 0);
	}
	assert_false(sim_faults_on);
	send_all();
	assert_string_equal(arrivals(), "0 1 2 3 4 5 6 7 8 9 10 11 20 21 30");
}

/* Each rule counts what was sent, whatever the others do to it. */
static void test_rules_count_what_is_sent(void **state)
{
	uint32_t first = add(RULE(.action = POLYCM_SIM_LOSE, .message = "REQ", .nth = 1));
	uint32_t second = add(RULE(.action = POLYCM_SIM_LOSE, .message = "REQ", .nth = 2));
	uint32_t copies = add(RULE(.action = POLYCM_SIM_DUPLICATE, .message = "REQ"));

	(void)state;
	for (uint32_t n = 1; n <= 3; n++)
		send_mad(port_a, port_b, CM_REQ, n);
	assert_string_equal(arrivals(), "3 3");
	assert_int_equal(hits(first), 1);
	assert_int_equal(hits(second), 1);
	assert_int_equal(hits(copies), 1);
}

/* What a rule was made of may be gone; the rule itself, too. */
static void test_rules_are_copies(void **state)
{
	char message[] = "REQ";
	struct polycm_sim_fault_rule rule = {
		.size = sizeof(rule), .action = POLYCM_SIM_LOSE, .message = message,
	};
	uint32_t number = add(&rule);
	unsigned int n;

	(void)state;
	memset(message, 'x', 3);
	memset(&rule, 0xff, sizeof(rule));
	send_mad(port_a, port_b, CM_REQ, 1);
	assert_string_equal(arrivals(), "");
	assert_int_equal(hits(number), 1);
	assert_int_equal(sim_fault_remove(number), 0);
	assert_int_equal(sim_fault_remove(number), -ENOENT);
	assert_int_equal(sim_fault_hits(number, &n), -ENOENT);
	assert_int_equal(sim_fault_remove(0), -ENOENT);
}

/* ------------------------------------------------------------------------
 * Actions on packets.
 */

static void test_delay_is_overtaken(void **state)
{
	(void)state;
	add(RULE(.action = POLYCM_SIM_DELAY, .nth = 2, .delay_ns = 500));
	for (uint32_t n = 1; n <= 4; n++)
		send_mad(port_a, port_b, CM_REQ, n);
	assert_string_equal(arrivals(), "1 3 4 2");
	assert_int_equal(seen[0].time, 1000);
	assert_int_equal(seen[2].time, 1000);
	assert_int_equal(seen[3].time, 1500);
}

static void test_copies_at_intervals(void **state)
{
	(void)state;
	add(RULE(.action = POLYCM_SIM_DUPLICATE, .nth = 1, .count = 3, .delay_ns = 100));
	send_mad(port_a, port_b, CM_REQ, 1);
	send_mad(port_a, port_b, CM_REQ, 2);
	assert_string_equal(arrivals(), "1 2 1 1 1");
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(seen[2 + i].time, 1100 + 100 * i);
}

static void test_reorder_waits_for_the_next(void **state)
{
	(void)state;
	add(RULE(.action = POLYCM_SIM_REORDER, .message = "REQ"));
	send_mad(port_a, port_b, CM_REQ, 1);
	advance(SIM_MS(5));
	send_mad(port_b, port_a, CM_REP, 2);		/* the other direction */
	assert_int_equal(num_seen, 0);
	send_mad(port_a, port_b, CM_RTU, 3);
	assert_string_equal(arrivals(), "2 3 1");
	assert_int_equal(seen[2].time, SIM_MS(5) + 1000);
}

static void test_reorder_of_the_last_packet(void **state)
{
	(void)state;
	add(RULE(.action = POLYCM_SIM_REORDER, .message = "REQ"));
	send_mad(port_a, port_b, CM_REQ, 1);
	assert_string_equal(arrivals(), "1");
	assert_int_equal(seen[0].time, SIM_MS(100) + 1000);
}

static void test_reorder_of_two_in_a_row(void **state)
{
	(void)state;
	add(RULE(.action = POLYCM_SIM_REORDER, .message = "REQ"));
	send_mad(port_a, port_b, CM_REQ, 1);
	send_mad(port_a, port_b, CM_REQ, 2);
	send_mad(port_a, port_b, CM_RTU, 3);
	assert_string_equal(arrivals(), "2 1 3");
}

static void test_corrupt_a_byte(void **state)
{
	static const struct {
		int offset;
		uint8_t value;
	} rows[] = { { 0, 0x80 }, { 100, 0x01 }, { 255, 0xff } };

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		link_world_close(state);
		link_world_open(state);
		add(RULE(.action = POLYCM_SIM_CORRUPT, .nth = 1, .offset = rows[i].offset,
			 .value = rows[i].value));
		send_mad(port_a, port_b, CM_REQ, 1);
		send_mad(port_a, port_b, CM_REQ, 1);
		assert_string_equal(arrivals(), "1 1");
		for (int at = 0; at < 256; at++)
			assert_int_equal(seen[0].data[at] ^ seen[1].data[at],
					 at == rows[i].offset ? rows[i].value : 0);
	}
}

static void test_corrupt_anywhere(void **state)
{
	unsigned int changed;

	(void)state;
	add(RULE(.action = POLYCM_SIM_CORRUPT, .times = 50, .offset = -1));
	for (uint32_t n = 0; n < 51; n++)
		send_mad(port_a, port_b, CM_REQ, 0);
	(void)arrivals();
	for (unsigned int i = 0; i < 50; i++) {
		changed = 0;
		for (int at = 0; at < 256; at++)
			changed += seen[i].data[at] != seen[50].data[at];
		assert_int_equal(changed, 1);
	}
}

/* The checksum of the wire: nothing of it comes through.  Nor is there a byte behind the end. */
static void test_corrupt_data(void **state)
{
	uint32_t number = add(RULE(.action = POLYCM_SIM_CORRUPT, .message = "data", .offset = 8));

	(void)state;
	send_number(port_a, port_b, 1, 9);
	send_number(port_a, port_b, 2, 8);
	assert_string_equal(arrivals(), "2");
	assert_int_equal(hits(number), 1);
}

/* ------------------------------------------------------------------------
 * Calls, lookups, backlogs.
 */

static void test_calls(void **state)
{
	uint32_t qp = add(RULE(.action = POLYCM_SIM_FAIL, .message = "create_qp", .nth = 2));
	uint32_t of_b = add(RULE(.action = POLYCM_SIM_FAIL, .message = "connect",
				 .from = HANDLE(node_b), .error = ECONNREFUSED));

	(void)state;
	assert_int_equal(sim_fault_call(node_a, SIM_CALL_CREATE_QP), 0);
	assert_int_equal(sim_fault_call(node_a, SIM_CALL_CREATE_CQ), 0);
	assert_int_equal(sim_fault_call(node_b, SIM_CALL_CREATE_QP), -ENOMEM);
	assert_int_equal(sim_fault_call(node_b, SIM_CALL_CREATE_QP), 0);
	assert_int_equal(sim_fault_call(node_a, SIM_CALL_CONNECT), 0);
	assert_int_equal(sim_fault_call(node_b, SIM_CALL_CONNECT), -ECONNREFUSED);
	assert_int_equal(sim_fault_call(NULL, SIM_CALL_CONNECT), 0);
	assert_int_equal(hits(qp), 1);
	assert_int_equal(hits(of_b), 1);
}

static void test_lookups(void **state)
{
	(void)state;
	assert_int_equal(sim_fault_delay(5, node_a, SIM_LOOKUP_PATH), 5);
	add(RULE(.action = POLYCM_SIM_ANSWER_LATE, .message = "path", .delay_ns = 70, .times = 2));
	add(RULE(.action = POLYCM_SIM_ANSWER_LATE, .delay_ns = 100, .times = 1));
	add(RULE(.action = POLYCM_SIM_ANSWER_NEVER, .message = "neighbour", .from = HANDLE(node_b)));
	assert_int_equal(sim_fault_delay(5, node_a, SIM_LOOKUP_PATH), 175);
	assert_int_equal(sim_fault_delay(5, node_a, SIM_LOOKUP_PATH), 75);
	assert_int_equal(sim_fault_delay(5, node_a, SIM_LOOKUP_PATH), 5);
	assert_int_equal(sim_fault_delay(5, node_a, SIM_LOOKUP_NEIGHBOUR), 5);
	assert_int_equal(sim_fault_delay(5, node_b, SIM_LOOKUP_NEIGHBOUR), SIM_NEVER);
	assert_int_equal(sim_fault_delay(5, node_b, SIM_LOOKUP_PATH), 5);
}

static void test_backlog(void **state)
{
	(void)state;
	add(RULE(.action = POLYCM_SIM_FULL_BACKLOG, .on = HANDLE(node_a), .from_ns = 100,
		 .delay_ns = 50));
	assert_false(sim_fault_backlog_full(node_a));
	advance(100);
	assert_true(sim_fault_backlog_full(node_a));
	assert_false(sim_fault_backlog_full(node_b));
	advance(50);
	assert_false(sim_fault_backlog_full(node_a));
}

/* By the linker (--wrap): no memory for the simulator. */
static bool no_memory;
void *__real_calloc(size_t num, size_t size);
void *__wrap_calloc(size_t num, size_t size);

void *__wrap_calloc(size_t num, size_t size)
{
	return no_memory ? NULL : __real_calloc(num, size);
}

/* Nobody tells it again: several at a time, and over and over. */
static void test_what_others_did_needs_no_memory(void **state)
{
	struct sim_change change = { .node = node_a->number };
	uint64_t number = 0;

	(void)state;
	no_memory = true;
	for (unsigned int round = 0; round < 4; round++) {
		for (unsigned int i = 0; i < 100; i++) {
			change.action = i ? POLYCM_SIM_PORT_DOWN : POLYCM_SIM_FULL_BACKLOG;
			change.at = sim_now();
			change.delay = 50;
			sim_fault_change(++number, &change);
		}
		assert_false(sim_port_carries(&node_a->devices->ports[0]));
		assert_true(sim_fault_backlog_full(node_a));
		assert_false(sim_fault_backlog_full(node_b));
		advance(60);
		assert_true(sim_port_carries(&node_a->devices->ports[0]));
		assert_false(sim_fault_backlog_full(node_a));
	}
	change.action = POLYCM_SIM_CRASH;
	sim_fault_change(++number, &change);
	no_memory = false;
	assert_false(sim_port_carries(&node_a->devices->ports[0]));
}

/* ------------------------------------------------------------------------
 * Nodes.
 */

/* The packet that a rule matches goes its way; what follows meets the change. */
static void test_actions_follow_what_they_match(void **state)
{
	static const struct {
		enum polycm_sim_action action;
		bool lasts;
	} rows[] = {
		{ POLYCM_SIM_FREEZE, false }, { POLYCM_SIM_PORT_DOWN, false },
		{ POLYCM_SIM_CRASH, true }, { POLYCM_SIM_REMOVE_DEVICE, true },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		uint32_t number;

		link_world_close(state);
		link_world_open(state);
		number = add(RULE(.action = rows[i].action, .message = "REQ", .nth = 2,
				  .to = HANDLE(node_b), .delay_ns = SIM_MS(1)));
		send_mad(port_a, port_b, CM_REQ, 1);
		send_mad(port_a, port_b, CM_REQ, 2);	/* on its way while b changes */
		advance(0);
		assert_int_equal(hits(number), 1);
		assert_false(sim_port_carries(port_b));
		assert_true(sim_port_carries(port_a));
		send_mad(port_a, port_b, CM_REQ, 3);
		advance(SIM_MS(1));
		assert_int_equal(sim_port_carries(port_b), !rows[i].lasts);
		send_mad(port_a, port_b, CM_REQ, 4);
		assert_string_equal(arrivals(), rows[i].lasts ? "" : "4");
	}
}

/* What a rule may do once is not done twice because its time has not come yet. */
static void test_actions_are_counted_when_they_begin(void **state)
{
	uint32_t number = add(RULE(.action = POLYCM_SIM_CHANGE_MAC, .message = "REQ", .times = 1,
				   .on = HANDLE(node_b), .address = "10.0.0.2"));

	(void)state;
	for (unsigned int i = 1; i <= 3; i++)
		send_mad(port_a, port_b, CM_REQ, i);
	advance(SIM_MS(1));
	assert_int_equal(hits(number), 1);
}

static void test_actions_at_a_time(void **state)
{
	uint32_t down = add(RULE(.action = POLYCM_SIM_PORT_DOWN, .on = HANDLE(node_b),
				 .from_ns = 1000));
	uint32_t up = add(RULE(.action = POLYCM_SIM_PORT_UP, .on = HANDLE(node_b), .device = "sim1",
			       .from_ns = 3000));
	uint32_t never = add(RULE(.action = POLYCM_SIM_CRASH, .on = HANDLE(node_a), .from_ns = 2000));

	(void)state;
	advance(999);
	assert_true(sim_port_carries(port_b));
	advance(1);
	assert_false(sim_port_carries(port_b));
	assert_int_equal(sim_fault_remove(never), 0);
	advance(2000);
	assert_true(sim_port_carries(port_b));
	assert_true(sim_port_carries(port_a));
	assert_int_equal(hits(down), 1);
	assert_int_equal(hits(up), 1);
}

/* Removing a rule does not take back what it did, nor its end. */
static void test_removed_while_down(void **state)
{
	uint32_t down = add(RULE(.action = POLYCM_SIM_PORT_DOWN, .on = HANDLE(node_b),
				 .delay_ns = 500));

	(void)state;
	advance(1);
	assert_false(sim_port_carries(port_b));
	assert_int_equal(sim_fault_remove(down), 0);
	advance(498);
	assert_false(sim_port_carries(port_b));
	advance(1);
	assert_true(sim_port_carries(port_b));
}

/* ------------------------------------------------------------------------
 * Rules that cannot be.
 */

static void test_impossible_rules(void **state)
{
	const struct {
		struct polycm_sim_fault_rule rule;
		const char *why;
	} rows[] = {
		{ { 0 }, "there is no action 0" },
		{ { .action = 99 }, "there is no action 99" },
		{ { .action = POLYCM_SIM_LOSE, .message = "REK" },
		  "there is no message, call or lookup 'REK'; nearest: 'REQ'" },
		{ { .action = POLYCM_SIM_FAIL, .message = "creat_qp" },
		  "there is no message, call or lookup 'creat_qp'; nearest: 'create_qp'" },
		{ { .action = POLYCM_SIM_FAIL, .message = "rdma_connect" },
		  "there is no message, call or lookup 'rdma_connect'; nearest: 'connect'" },
		{ { .action = POLYCM_SIM_FAIL, .message = "ibv_reg_mr" },
		  "there is no message, call or lookup 'ibv_reg_mr'; nearest: 'reg_mr'" },
		{ { .action = POLYCM_SIM_LOSE, .message = "create_qp" },
		  "lose is for messages, not for 'create_qp'" },
		{ { .action = POLYCM_SIM_FAIL, .message = "REQ" },
		  "fail is for calls such as create_qp, not for 'REQ'" },
		{ { .action = POLYCM_SIM_ANSWER_NEVER, .message = "listen" },
		  "answer_never is for the lookups path and neighbour, not for 'listen'" },
		{ { .action = POLYCM_SIM_REJECT, .message = "RTU", .reason = 8 },
		  "reject is for REQ, REP, MPA_REQ, SEND, WRITE, READ, ATOMIC, TCP_SYN, TCP_SYN_ACK and "
		  "TCP_DATA, not for 'RTU'" },
		{ { .action = POLYCM_SIM_REJECT, .message = "REQ" },
		  "reject needs a reason from 1 on" },
		{ { .action = POLYCM_SIM_REJECT, .message = "WRITE", .reason = 4 },
		  "data is rejected for reason 1 (invalid request), 2 (remote access error) or 3 "
		  "(remote operational error)" },
		{ { .action = POLYCM_SIM_CORRUPT, .message = "REQ", .offset = 256 },
		  "there is no byte 256: the offset is -1 (anywhere) or 0 to 255" },
		{ { .action = POLYCM_SIM_CORRUPT, .message = "any", .offset = 16384 },
		  "there is no byte 16384: the offset is -1 (anywhere) or 0 to 16383" },
		{ { .action = POLYCM_SIM_CORRUPT, .offset = -2 },
		  "there is no byte -2: the offset is -1 (anywhere) or 0 to 16383" },
		{ { .action = POLYCM_SIM_LOSE, .probability = 2 },
		  "the probability 2 is not from 0 to 1" },
		{ { .action = POLYCM_SIM_LOSE, .probability = -0.5 },
		  "the probability -0.5 is not from 0 to 1" },
		{ { .action = POLYCM_SIM_LOSE, .probability = NAN },
		  "the probability nan is not from 0 to 1" },
		{ { .action = POLYCM_SIM_LOSE, .from_ns = 5, .until_ns = 5 },
		  "the time window ends before it begins" },
		{ { .action = POLYCM_SIM_FAIL, .message = "connect", .to = HANDLE(node_a) },
		  "'to' is for messages: calls and lookups have no receiver" },
		{ { .action = POLYCM_SIM_FAIL, .message = "connect", .error = -5 },
		  "-5 is no errno" },
		{ { .action = POLYCM_SIM_DELAY }, "delay needs a delay" },
		{ { .action = POLYCM_SIM_ANSWER_LATE }, "answer_late needs a delay" },
		{ { .action = POLYCM_SIM_DELAY, .delay_ns = UINT64_MAX },
		  "a delay of more than 73 years" },
		{ { .action = POLYCM_SIM_DUPLICATE, .count = 65536 },
		  "65536 copies are more than 65535" },
		{ { .action = POLYCM_SIM_LOSE, .on = HANDLE(node_a) },
		  "lose happens to no node or device" },
		{ { .action = POLYCM_SIM_CRASH }, "crash needs a node that it happens to" },
		{ { .action = POLYCM_SIM_PORT_DOWN, .on = HANDLE(node_a), .device = "sim1" },
		  "node a has no device 'sim1'" },
		{ { .action = POLYCM_SIM_CHANGE_ADDRESS, .on = HANDLE(node_a) },
		  "change_address needs an address, a new address or both" },
		{ { .action = POLYCM_SIM_CHANGE_ADDRESS, .on = HANDLE(node_a), .address = "ten" },
		  "'ten' is no address" },
		{ { .action = POLYCM_SIM_CHANGE_MAC, .on = HANDLE(node_a) },
		  "change_mac needs the address of a port" },
	};
	uint32_t number;
	char why[200];

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct polycm_sim_fault_rule rule = rows[i].rule;

		rule.size = sizeof(rule);
		assert_int_equal(sim_fault_add(&rule, &number, why, sizeof(why)), -EINVAL);
		assert_string_equal(why, rows[i].why);
	}
	assert_false(sim_faults_on);
}

/* Every name means something, one thing only, and stands in the table as it is written. */
static void test_names(void **state)
{
	uint64_t all = 0;

	(void)state;
	for (unsigned int i = 0; i < SIM_WHATS; i++) {
		const char *name = sim_what_name(i);

		if (!name)
			continue;
		assert_int_equal(sim_what_mask(name), UINT64_C(1) << i);
		all |= UINT64_C(1) << i;
	}
	assert_int_equal(__builtin_popcountll(all), 29 + 15 + 2);
	assert_null(sim_what_name(SIM_WHATS));
	assert_int_equal(sim_what_mask(""), 0);
	for (enum polycm_sim_action action = POLYCM_SIM_LOSE; action <= POLYCM_SIM_FULL_BACKLOG;
	     action++)
		assert_int_equal(sim_action_of(sim_action_name(action)), action);
	assert_int_equal(sim_action_of("loose"), 0);
	assert_string_equal(sim_action_hint("loose"), "; nearest: 'lose'");
	assert_non_null(strstr(sim_action_hint("nonsense"), "; there are: lose, delay, "));
}

#define test(f) cmocka_unit_test_setup_teardown(f, link_world_open, link_world_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_count_and_window),
		test(test_message_and_place),
		test(test_rules_count_what_is_sent),
		test(test_rules_are_copies),
		test(test_delay_is_overtaken),
		test(test_copies_at_intervals),
		test(test_reorder_waits_for_the_next),
		test(test_reorder_of_the_last_packet),
		test(test_reorder_of_two_in_a_row),
		test(test_corrupt_a_byte),
		test(test_corrupt_anywhere),
		test(test_corrupt_data),
		test(test_calls),
		test(test_lookups),
		test(test_backlog),
		test(test_what_others_did_needs_no_memory),
		test(test_actions_follow_what_they_match),
		test(test_actions_are_counted_when_they_begin),
		test(test_actions_at_a_time),
		test(test_removed_while_down),
		test(test_impossible_rules),
		test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
