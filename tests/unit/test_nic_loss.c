/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connected QPs on a link that loses every fifth packet, and doubles and
 * reorders others: all that was sent arrives once, whole and in order, in
 * whichever form it travels.
 */
#include "config.h"

#include <stdlib.h>

#include "providers/soft/nic/objects.h"
#include "providers/soft/nic/rc_internal.h"
#include "nic_pair.h"

enum {
	LOSE = 200, REPEAT = 100, REORDER = 100,	/* of 1000 packets */
	SEEDS = 8, ROUNDS = 40,
	/* Where things are in both buffers. */
	WRITTEN = 0, READ = 30000, SENT = 60000, COUNTER = 64000, OLD = 64100,
	MAX_LEN = 29000, MAX_SENT = 2000,
};

static unsigned int random_state;
static bool by_value;		/* nobody can read the other's memory */
static unsigned int lost, doubled, reordered;

/*
 * So much may go wrong until the requester gets its next answer: it has seven
 * retries, and that they can be used up is not the point here.
 */
static unsigned int patience;
static uint32_t best_psn, best_offset;

static struct sim_packet held;
static uint8_t held_data[SIM_LINK_MAX_PACKET];
static bool holding;

static uint32_t below(uint32_t bound)
{
	return (uint32_t)rand_r(&random_state) % bound;
}

static bool bad_luck(uint32_t of_1000, unsigned int *counter)
{
	if (!patience || below(1000) >= of_1000)
		return false;
	patience--;
	++*counter;
	return true;
}

static void tell_sender(const struct sim_packet *packet, const struct rc_header *h)
{
	const struct rc_header nak = {
		.dst_qpn = h->src_qpn, .src_qpn = h->dst_qpn, .psn = h->psn,
		.op = RC_NAK, .syndrome = RC_NAK_NO_REF,
	};
	const struct sim_packet answer = {
		.type = SIM_PACKET_RC, .from = packet->to, .to = packet->from,
		.from_slot = packet->from_slot, .data = (const uint8_t *)&nak, .len = sizeof(nak),
	};

	pair_deliver(&answer);
}

/* As between processes that must not read each other's memory. */
static void deliver(const struct sim_packet *packet)
{
	struct sim_packet changed = *packet;
	struct rc_header h;

	memcpy(&h, packet->data, sizeof(h));
	if (h.op >= RC_ACK && h.op != RC_NAK) {
		uint32_t offset = h.op == RC_ACK ? UINT32_MAX : h.offset;
		int32_t ahead = rc_ahead(h.psn, best_psn);

		if (ahead > 0 || (!ahead && offset > best_offset)) {
			best_psn = h.psn;
			best_offset = offset;
			patience = 6;
		}
	}
	if (by_value && h.op < RC_ACK && h.flags & RC_F_LOCAL) {
		tell_sender(packet, &h);
	} else if (by_value && h.op == RC_READ) {
		h.flags |= RC_F_NO_REF;
		changed.data = (const uint8_t *)&h;
		pair_deliver(&changed);
	} else {
		pair_deliver(packet);
	}
}

static bool bad_link(const struct sim_packet *packet)
{
	if (bad_luck(LOSE, &lost))
		return false;
	if (!holding && bad_luck(REORDER, &reordered)) {
		held = *packet;
		memcpy(held_data, packet->data, packet->len);
		held.data = held_data;
		holding = true;
		return false;
	}
	deliver(packet);
	if (bad_luck(REPEAT, &doubled))
		deliver(packet);
	if (holding && below(2)) {
		holding = false;
		deliver(&held);
	}
	return false;
}

/* Several requests at once; sizes of one packet and of several. */
static void round_of_requests(uint64_t round, bool atomics)
{
	size_t written = below(MAX_LEN), read = below(MAX_LEN), sent = below(MAX_SENT);
	uint64_t old;

	pair_fill(&a, WRITTEN, written, (uint8_t)round);
	pair_fill(&b, READ, read, (uint8_t)(round + 1));
	memset(a.buf + READ, 0, read);
	pair_fill(&a, SENT, sent, (uint8_t)(round + 2));
	assert_int_equal(pair_recv(&b, round, SENT, MAX_SENT), 0);
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, 1, WRITTEN, written, WRITTEN), 0);
	if (atomics)
		assert_int_equal(pair_rdma(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, OLD, 8, COUNTER), 0);
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_READ, 3, READ, read, READ), 0);
	assert_int_equal(pair_send(&a, 4, SENT, sent), 0);

	pair_expect(&a, 1, IBV_WC_SUCCESS);
	if (atomics)
		pair_expect(&a, 2, IBV_WC_SUCCESS);
	pair_expect(&a, 3, IBV_WC_SUCCESS);
	assert_int_equal(pair_expect(&b, round, IBV_WC_SUCCESS).byte_len, sent);
	pair_expect(&a, 4, IBV_WC_SUCCESS);
	pair_check(&b, WRITTEN, written, (uint8_t)round);
	pair_check(&a, READ, read, (uint8_t)(round + 1));
	pair_check(&b, SENT, sent, (uint8_t)(round + 2));
	memcpy(&old, a.buf + OLD, sizeof(old));
	if (atomics)
		assert_int_equal(old, round);	/* the one before was done, once */
}

static void play(enum pair_transport transport, unsigned int seed)
{
	struct pair_conn conn = pair_defaults();

	random_state = seed;
	holding = false;
	patience = 6;
	best_psn = 0xfffffe - 1;	/* what nic_pair.c begins with, less one */
	if (transport == PAIR_IWARP)
		best_psn = NIC_PSN_MASK;
	best_offset = UINT32_MAX;
	conn.timeout = 4;		/* 65 us */
	conn.min_rnr_timer = 1;
	memset(b.buf + COUNTER, 0, 8);
	pair_connect(&conn);
	pair_filter = bad_link;
	for (uint64_t round = 0; round < ROUNDS; round++)
		round_of_requests(round, transport != PAIR_IWARP);
	pair_filter = NULL;
	pair_none(&a, SIM_MS(1000));
	pair_none(&b, SIM_MS(1000));
	pair_disconnect();
}

static void all_arrives_once(void **state)
{
	(void)state;
	for (enum pair_transport t = 0; t < PAIR_TRANSPORTS; t++) {
		for (int value = 0; value < 2; value++) {
			lost = doubled = reordered = 0;
			by_value = value;
			pair_open(t);
			for (unsigned int seed = 1; seed <= SEEDS; seed++)
				play(t, seed);
			pair_close();
			assert_true(lost > 100 && doubled > 50 && reordered > 50);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_arrives_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
