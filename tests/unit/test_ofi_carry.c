/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets on a carrier: providers/ofi/carry*.c. */
#include "config.h"

#include <errno.h>

#include "carry_world.h"

static void in_any_order(void **state)
{
	(void)state;
	/* Theirs is open first: nothing happens before ours is. */
	say(OFI_CARRIER_READY, WINDOW, THEIR_TOKEN);
	assert_uint_equal(num_said, 0);
	assert_false(send_one());
	open_memory();
	expect_ready();
	assert_uint_equal(memory.num_sent, 1);
	/* Their probe. */
	arrive(our_token, 0, 0, 0);
	assert_true(ofi_carry_poll());
	assert_uint_equal(last_said()->what, OFI_CARRIER_HEARD);
	/* They may have changed before we did. */
	packet(1);
	assert_delivered(0);
	say(OFI_CARRIER_CHANGED, WINDOW, 0);
	assert_delivered(1);
	assert_false(send_one());
	say(OFI_CARRIER_HEARD, WINDOW, 0);
	assert_true(send_one());
	/* And what is not for carriers never goes there. */
	assert_false(send_type(SIM_PACKET_MAD));
	assert_false(send_type(SIM_PACKET_STREAM));
	assert_true(send_type(SIM_PACKET_UD));
	assert_uint_equal(memory.num_sent, 3);
	assert_uint_equal(memory.sent[2].sequence, 2);
	assert_uint_equal(memory.sent[2].packet.type, SIM_PACKET_UD);
}

static void reordered(void **state)
{
	(void)state;
	change(WINDOW);
	packet(3);
	packet(2);
	packet(2);
	assert_delivered(0);
	packet(1);
	assert_delivered(3);
	packet(1);
	packet(3);
	assert_delivered(3);
	/* All that may be under way, backwards. */
	for (unsigned int i = WINDOW; i; i--)
		packet(3 + i);
	assert_delivered(3 + WINDOW);
}

static void not_allowed(void **state)
{
	(void)state;
	change(WINDOW);
	arrive(our_token ^ 1, 1, 1, 0);
	arrive(our_token ^ 0x100, 1, 1, 0);
	arrive(0, 1, 1, 0);
	arrive(our_token, 1, 1, 0);
	memory.arrived[3].len = OFI_CARRIED_HEADER - 1;
	arrive(our_token, 1, 1, 0);
	memory.arrived[4].bytes[28] = SIM_PACKET_MAD;
	/* More than the window. */
	arrive(our_token, WINDOW + 1, 1, 0);
	(void)ofi_carry_poll();
	assert_delivered(0);
	packet(1);
	assert_delivered(1);
	assert_uint_equal(num_said, 0);
}

static void window(void **state)
{
	(void)state;
	change(2);
	assert_true(send_one());
	assert_true(send_one());
	assert_true(send_one());
	assert_true(send_one());
	assert_uint_equal(memory.num_sent, 2);
	say(OFI_CARRIER_WINDOW, 3, 0);
	assert_uint_equal(memory.num_sent, 3);
	/* An old one takes nothing back. */
	say(OFI_CARRIER_WINDOW, 1, 0);
	say(OFI_CARRIER_WINDOW, 3, 0);
	assert_uint_equal(memory.num_sent, 3);
	/* That of a packet counts, too. */
	arrive(our_token, 1, 1, 5);
	(void)ofi_carry_poll();
	assert_uint_equal(memory.num_sent, 4);
	assert_true(send_one());
	assert_uint_equal(memory.num_sent, 5);
	for (unsigned int i = 0; i < 5; i++)
		assert_uint_equal(memory.sent[i].packet.number, i + 1);
	/* What we let them send goes along with what we send. */
	assert_uint_equal(memory.sent[3].window, WINDOW + 1);
}

static void window_is_told(void **state)
{
	(void)state;
	change(WINDOW);
	for (unsigned int i = 1; i < WINDOW / 2; i++)
		packet(i);
	assert_uint_equal(num_said, 0);
	packet(WINDOW / 2);
	assert_uint_equal(num_said, 1);
	assert_uint_equal(said[0].what, OFI_CARRIER_WINDOW);
	assert_uint_equal(said[0].window, WINDOW + WINDOW / 2);
}

static void refuses(void **state)
{
	(void)state;
	change(WINDOW);
	memory.refuse = -EAGAIN;
	assert_true(send_one());
	assert_true(send_one());
	(void)ofi_carry_poll();
	memory.refuse = 0;
	/* Not past those that wait. */
	assert_true(send_one());
	assert_uint_equal(memory.num_sent, 0);
	(void)ofi_carry_poll();
	assert_uint_equal(memory.num_sent, 3);
	for (unsigned int i = 0; i < 3; i++)
		assert_uint_equal(memory.sent[i].packet.number, i + 1);
	assert_uint_equal(num_streamed, 0);
}

static void assert_on_stream(unsigned int num)
{
	assert_uint_equal(num_streamed, num);
	for (unsigned int i = 0; i < num; i++)
		assert_uint_equal(streamed[i], i + 1);
	assert_false(send_one());
	assert_uint_equal(memory.num_peers, 0);
}

/* What waits goes to the stream, in order, behind the word that it does. */
static void fails(void **state)
{
	(void)state;
	change(WINDOW);
	memory.refuse = -EAGAIN;
	assert_true(send_one());
	assert_true(send_one());
	memory.fails = -ENETUNREACH;
	(void)ofi_carry_poll();
	assert_uint_equal(num_said, 1);
	assert_uint_equal(said[0].what, OFI_CARRIER_LOST);
	assert_uint_equal(said[0].number, 1);
	assert_on_stream(2);
	/* What is still on its way is not delivered behind what comes on the stream. */
	packet(1);
	assert_delivered(0);
	/* Never again on this session; but on the next one. */
	say(OFI_CARRIER_READY, WINDOW, THEIR_TOKEN);
	assert_uint_equal(num_said, 1);
	ofi_carry_stop(&peer);
	ofi_carry_start(&peer);
	expect_ready();
}

static void fails_at_once(void **state)
{
	(void)state;
	change(WINDOW);
	assert_true(send_one());
	memory.refuse = -EHOSTUNREACH;
	assert_false(send_one());
	assert_uint_equal(last_said()->what, OFI_CARRIER_LOST);
	assert_on_stream(0);
}

static void peer_says_lost(void **state)
{
	(void)state;
	change(1);
	assert_true(send_one());
	last_number = 0;
	assert_true(send_one());
	say(OFI_CARRIER_LOST, 0, 1);
	assert_on_stream(1);
	assert_uint_equal(num_said, 0);
}

static void dies(void **state)
{
	(void)state;
	change(WINDOW);
	memory.dies = true;
	assert_true(ofi_carry_poll());
	assert_true(memory.closed);
	assert_uint_equal(last_said()->what, OFI_CARRIER_LOST);
	assert_on_stream(0);
	assert_false(ofi_carry_poll());
}

static void nonsense_comes(void **state)
{
	(void)state;
	change(WINDOW);
	nonsense = true;
	packet(1);
	assert_uint_equal(last_said()->what, OFI_CARRIER_LOST);
	assert_on_stream(0);
}

/* A message of the CM does not overtake data that was sent before it. */
static void stream_waits(void **state)
{
	uint8_t mad[OFI_PACKET_HEADER + 256] = { 0 };

	(void)state;
	change(WINDOW);
	ofi_packet_encode(&(struct ofi_packet){ .number = 3, .type = SIM_PACKET_MAD }, mad);
	assert_false(ofi_carry_holds(&peer, mad, sizeof(mad)));
	say(OFI_CARRIER_BEFORE, WINDOW, 2);
	assert_true(ofi_carry_holds(&peer, mad, sizeof(mad)));
	packet(1);
	assert_delivered(1);
	packet(2);
	assert_delivered(3);
	assert_false(ofi_carry_holds(&peer, mad, sizeof(mad)));
	/* It says so once. */
	assert_true(send_one());
	assert_true(send_one());
	assert_false(send_type(SIM_PACKET_MAD));
	assert_uint_equal(num_said, 1);
	assert_uint_equal(said[0].what, OFI_CARRIER_BEFORE);
	assert_uint_equal(said[0].number, 2);
	assert_false(send_type(SIM_PACKET_MAD));
	assert_uint_equal(num_said, 1);
	/* What does not come is not waited for, once it is known. */
	say(OFI_CARRIER_BEFORE, WINDOW, 3);
	assert_true(ofi_carry_holds(&peer, mad, sizeof(mad)));
	say(OFI_CARRIER_LOST, 0, 1);
	assert_uint_equal(num_delivered, 4);
}

/* The stream broke, and the other side began anew: so do we. */
static void begins_anew(void **state)
{
	uint64_t old;

	(void)state;
	change(1);
	assert_true(send_one());
	last_number = 0;
	assert_true(send_one());
	old = our_token;
	say(OFI_CARRIER_READY, WINDOW, THEIR_TOKEN + 1);
	assert_uint_equal(num_streamed, 1);
	expect_ready();
	assert_uint_not_equal(our_token, old);
	assert_uint_equal(memory.num_peers, 1);
	arrive(old, 1, 1, 0);
	(void)ofi_carry_poll();
	packet(1);
	assert_delivered(0);
	say(OFI_CARRIER_CHANGED, WINDOW, 0);
	assert_delivered(1);
	say(OFI_CARRIER_HEARD, WINDOW, 0);
	assert_true(send_one());
	assert_uint_equal(memory.sent[memory.num_sent - 1].sequence, 1);
	assert_uint_equal(memory.sent[memory.num_sent - 1].token, THEIR_TOKEN + 1);
}

/* The session ends: what waits is the peer's, for the next one. */
static void stops(void **state)
{
	(void)state;
	change(1);
	assert_true(send_one());
	assert_true(send_one());
	/* What has arrived is delivered first. */
	arrive(our_token, 1, 1, 1);
	ofi_carry_stop(&peer);
	assert_delivered(1);
	assert_non_null(peer.waiting.first);
	ofi_queue_clear(&peer.waiting);
	assert_uint_equal(memory.num_peers, 0);
	assert_false(send_one());
}

static void other_protocol(void **state)
{
	struct ofi_carrier_name other = name;

	(void)state;
	other.format++;
	ofi_carry_opened(&memory_ops, NULL, &other);
	say(OFI_CARRIER_READY, WINDOW, THEIR_TOKEN);
	assert_uint_equal(last_said()->what, OFI_CARRIER_LOST);
	assert_on_stream(0);
}

/* A carrier that is not free at first, and one over which nothing arrives. */
static void probes(void **state)
{
	(void)state;
	open_memory();
	memory.refuse = -EAGAIN;
	say(OFI_CARRIER_READY, WINDOW, THEIR_TOKEN);
	pass(SIM_MS(100));
	assert_uint_equal(memory.num_sent, 0);
	memory.refuse = 0;
	pass(SIM_MS(10));
	assert_uint_equal(memory.num_sent, 1);
	pass(SIM_MS(9000));
	assert_uint_equal(memory.num_sent, 1);
	assert_uint_equal(num_said, 1);
	pass(SIM_MS(1000));
	assert_uint_equal(last_said()->what, OFI_CARRIER_LOST);
	assert_on_stream(0);
}

/* It takes nothing more, for ever, as libfabric's do when a peer is gone. */
static void stuck(void **state)
{
	(void)state;
	change(WINDOW);
	memory.refuse = -EAGAIN;
	assert_true(send_one());
	pass(SIM_MS(1999));
	assert_uint_equal(num_said, 0);
	memory.refuse = 0;
	(void)ofi_carry_poll();
	memory.refuse = -EAGAIN;
	last_number = 0;
	assert_true(send_one());
	pass(SIM_MS(1999));
	assert_uint_equal(num_said, 0);
	pass(SIM_MS(2));
	assert_uint_equal(last_said()->what, OFI_CARRIER_LOST);
	assert_on_stream(1);
}

/* Whoever is stopped takes nothing, and neither does the carrier that leads there. */
static void peer_stopped(void **state)
{
	(void)state;
	change(1);
	stands_still = true;
	for (unsigned int i = 0; i < 3; i++)
		assert_true(send_one());
	pass(SIM_MS(20000));
	assert_uint_equal(num_said, 0);
	/* It goes on, and has as much time as ever to take something. */
	stands_still = false;
	pass(SIM_MS(1));
	assert_uint_equal(num_said, 0);
	say(OFI_CARRIER_WINDOW, 3, 0);
	assert_uint_equal(memory.num_sent, 3);
	assert_uint_equal(num_streamed, 0);
	/* It goes on, and takes nothing. */
	assert_true(send_one());
	pass(SIM_MS(4000));
	assert_uint_equal(last_said()->what, OFI_CARRIER_LOST);
}

/* This process did not run for a while, or the carrier is slow: data is what came first. */
static void waits_while_it_comes(void **state)
{
	uint8_t mad[OFI_PACKET_HEADER + 256] = { 0 };

	(void)state;
	change(WINDOW);
	ofi_packet_encode(&(struct ofi_packet){ .number = 4, .type = SIM_PACKET_MAD }, mad);
	say(OFI_CARRIER_BEFORE, WINDOW, 3);
	assert_true(ofi_carry_holds(&peer, mad, sizeof(mad)));
	pass(SIM_MS(40));
	arrive(our_token, 1, 1, WINDOW);
	pass(SIM_MS(50));
	assert_delivered(1);
	packet(2);
	pass(SIM_MS(40));
	assert_delivered(2);
	arrive(our_token, 3, 3, WINDOW);
	pass(SIM_MS(50));
	assert_delivered(4);
}

/* Who names a packet of the far future, and goes on sending, does not cost all memory. */
static void what_waits_is_bounded(void **state)
{
	static uint8_t mad[OFI_PACKET_HEADER + SIM_LINK_MAX_PACKET];
	unsigned int held = 0;

	(void)state;
	change(WINDOW);
	ofi_packet_encode(&(struct ofi_packet){ .number = 999, .type = SIM_PACKET_MAD }, mad);
	say(OFI_CARRIER_BEFORE, WINDOW, 1ull << 60);
	for (unsigned int i = 1; i <= 20; i++) {
		for (unsigned int n = 0; n < 1000; n++)
			held += ofi_carry_holds(&peer, mad, sizeof(mad));
		pass(SIM_MS(40));
		packet(i);
	}
	assert_in_range(held, 1, 100);
}

/* A message of the CM is not kept for data that does not come. */
static void waits_not_for_ever(void **state)
{
	uint8_t mad[OFI_PACKET_HEADER + 256] = { 0 };

	(void)state;
	change(WINDOW);
	ofi_packet_encode(&(struct ofi_packet){ .number = 1, .type = SIM_PACKET_MAD }, mad);
	say(OFI_CARRIER_BEFORE, WINDOW, 1);
	assert_true(ofi_carry_holds(&peer, mad, sizeof(mad)));
	pass(SIM_MS(49));
	assert_delivered(0);
	pass(SIM_MS(1));
	assert_delivered(1);
	assert_false(ofi_carry_holds(&peer, mad, sizeof(mad)));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		TEST(in_any_order),
		TEST(reordered),
		TEST(not_allowed),
		TEST(window),
		TEST(window_is_told),
		TEST(refuses),
		TEST(fails),
		TEST(fails_at_once),
		TEST(peer_says_lost),
		TEST(dies),
		TEST(nonsense_comes),
		TEST(stream_waits),
		TEST(begins_anew),
		TEST(stops),
		TEST(other_protocol),
		TEST(probes),
		TEST(stuck),
		TEST(peer_stopped),
		TEST(waits_while_it_comes),
		TEST(what_waits_is_bounded),
		TEST(waits_not_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
