/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the capture knows of messages that another process sends in fragments: a
 * packet of the wire may lie across two, whatever came in between.
 */
#include "config.h"

#include <string.h>

#include "providers/soft/nic/rc_internal.h"
#include "providers/soft/watch/pcap/pcap_internal.h"
#include "sim_fake.h"
#include "tests/cmocka_all.h"

#define FRAGMENT 1000u
#define NUM_FRAGMENTS 4u
#define ACROSS 300u	/* bytes on each side of a border */

/* Senders that differ in one thing each. */
static struct sim_port ports[2] = { { .fabric_index = 0 }, { .fabric_index = 1 } };
static const struct flow {
	const struct sim_port *from;
	uint32_t qpn, psn;
	enum rc_op op;
} flows[] = {
	{ &ports[0], 0x101, 7, RC_SEND },
	{ &ports[0], 0x102, 7, RC_SEND },
	{ &ports[0], 0x101, 7, RC_READ_DATA },
	{ &ports[1], 0x101, 7, RC_WRITE },
};
#define NUM_FLOWS ((unsigned int)ARRAY_SIZE(flows))

static uint8_t bytes[sizeof(struct rc_header) + FRAGMENT];

static uint8_t byte_at(unsigned int flow, uint32_t offset)
{
	return (uint8_t)(flow * 67 + offset * 31 + offset / 256);
}

static struct sim_packet fragment(unsigned int flow, unsigned int number)
{
	const struct rc_header h = {
		.src_qpn = flows[flow].qpn,
		.psn = flows[flow].psn,
		.op = (uint8_t)flows[flow].op,
		.length = NUM_FRAGMENTS * FRAGMENT,
		.offset = number * FRAGMENT,
	};

	memcpy(bytes, &h, sizeof(h));
	for (uint32_t i = 0; i < FRAGMENT; i++)
		bytes[sizeof(h) + i] = byte_at(flow, h.offset + i);
	return (struct sim_packet){
		.type = SIM_PACKET_RC,
		.from = (struct sim_port *)(uintptr_t)flows[flow].from,
		.from_slot = 5,
		.data = bytes,
		.len = sizeof(bytes),
	};
}

static void expect(const struct sim_packet *packet, unsigned int flow, uint32_t from, uint32_t len)
{
	struct iovec data;

	assert_true(sim_pcap_foreign_data(packet, from, len, &data));
	assert_int_equal(data.iov_len, len);
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(((const uint8_t *)data.iov_base)[i], byte_at(flow, from + i));
}

static void fragments_of_several_flows_come_in_turns(void **state)
{
	(void)state;
	for (unsigned int number = 0; number < NUM_FRAGMENTS; number++)
		for (unsigned int flow = 0; flow < NUM_FLOWS; flow++) {
			struct sim_packet packet = fragment(flow, number);
			uint32_t border = number * FRAGMENT;

			expect(&packet, flow, border, FRAGMENT);
			if (number)
				expect(&packet, flow, border - ACROSS, 2 * ACROSS);
			sim_pcap_keep_foreign(&packet);
		}
}

/* Nothing is made up where the fragment before did not come. */
static void what_is_missing_is_not_shown(void **state)
{
	struct sim_packet packet;
	struct iovec data;

	(void)state;
	packet = fragment(0, 0);
	sim_pcap_keep_foreign(&packet);
	packet = fragment(0, 2);
	assert_false(sim_pcap_foreign_data(&packet, 2 * FRAGMENT - ACROSS, 2 * ACROSS, &data));
	packet = fragment(1, 1);
	assert_false(sim_pcap_foreign_data(&packet, FRAGMENT - ACROSS, 2 * ACROSS, &data));
	/* Of a message that is complete nothing is left. */
	for (unsigned int number = 0; number < NUM_FRAGMENTS; number++) {
		packet = fragment(0, number);
		sim_pcap_keep_foreign(&packet);
	}
	packet = fragment(0, 1);
	assert_false(sim_pcap_foreign_data(&packet, FRAGMENT - ACROSS, 2 * ACROSS, &data));
}

static int forget(void **state)
{
	(void)state;
	sim_pcap_forget();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(fragments_of_several_flows_come_in_turns, forget),
		cmocka_unit_test_teardown(what_is_missing_is_not_shown, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
