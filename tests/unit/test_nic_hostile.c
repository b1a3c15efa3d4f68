/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of a peer that does not keep to the protocol, and messages in
 * fragments, which is how data goes where nothing can be read directly.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "nic_pair.h"
#include "providers/soft/nic/rc_internal.h"

static uint8_t bytes[SIM_LINK_MAX_PACKET];

static struct rc_header header_of(const struct sim_packet *packet)
{
	struct rc_header h;

	memcpy(&h, packet->data, sizeof(h));
	return h;
}

/* --- Each byte changed. --- */

static unsigned int at_byte;
static uint8_t change;
static bool requests;		/* or responses */

static bool mutate(const struct sim_packet *packet)
{
	struct sim_packet changed = *packet;

	if (requests != (packet->to == &b.device->ports[0]))
		return true;
	memcpy(bytes, packet->data, packet->len);
	changed.data = bytes;
	if (at_byte < sizeof(struct rc_header))
		bytes[at_byte] ^= change;
	else
		changed.len = at_byte - sizeof(struct rc_header);	/* cut off there */
	if (changed.len <= packet->len)
		pair_deliver(&changed);
	return false;
}

static const struct { enum ibv_wr_opcode op; size_t len; } operations[] = {
	{ IBV_WR_SEND, 8 }, { IBV_WR_SEND, 20000 }, { IBV_WR_RDMA_WRITE, 8 },
	{ IBV_WR_RDMA_WRITE, 20000 }, { IBV_WR_RDMA_READ, 8 }, { IBV_WR_RDMA_READ, 20000 },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, 8 },
};

static void try_operation(size_t i)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_wc wc;

	conn.timeout = 8;
	conn.retry_cnt = 1;
	conn.rnr_retry = 1;
	pair_connect(&conn);
	assert_int_equal(pair_recv(&b, 1, 0, 30000), 0);
	pair_filter = mutate;
	if (operations[i].op == IBV_WR_SEND)
		assert_int_equal(pair_send(&a, 1, 0, operations[i].len), 0);
	else
		assert_int_equal(pair_rdma(&a, operations[i].op, 1, 0, operations[i].len, 0), 0);
	/* It ends, one way or the other, and not more than once. */
	while (!ibv_poll_cq(a.cq, 1, &wc))
		assert_int_equal(sim_idle(NULL), 1);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(sim_advance(SIM_MS(10)), 0);
	assert_int_equal(ibv_poll_cq(a.cq, 1, &wc), 0);
	pair_filter = NULL;
	pair_disconnect();
	while (ibv_poll_cq(b.cq, 1, &wc))
		;
}

static void every_byte_of_every_packet(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++) {
		for (at_byte = 0; at_byte < 2 * sizeof(struct rc_header) + 9; at_byte++) {
			static const uint8_t changes[] = { 0x01, 0x80, 0xff, 0x04, 0x08, 0x0c };
			size_t num = at_byte < sizeof(struct rc_header) ? ARRAY_SIZE(changes) : 1;

			for (size_t c = 0; c < num; c++) {
				change = changes[c];
				requests = true;
				try_operation(i);
				requests = false;
				try_operation(i);
			}
		}
	}
}

/* --- Packets out of nothing. --- */

static void inject(struct pair_side *from, struct pair_side *to, struct rc_header h, size_t len)
{
	struct sim_packet packet = {
		.type = SIM_PACKET_RC,
		.from = &from->device->ports[0],
		.to = &to->device->ports[0],
		.from_slot = sim_self_slot(),
		.data = bytes,
		.len = sizeof(h) + len,
	};

	h.src_qpn = from->qp->qp_num;
	h.dst_qpn = to->qp->qp_num;
	memcpy(bytes, &h, sizeof(h));
	sim_lock();
	rc_receive(&packet);
	sim_unlock();
}

static uint32_t field(unsigned int *seed)
{
	static const uint32_t special[] = { 0, 1, 7, 8, 8192, 8193, 0x7fffffff, 0x80000000, UINT32_MAX };
	uint32_t n = (uint32_t)rand_r(seed);

	return n & 1 ? special[n / 2 % ARRAY_SIZE(special)] : n & 2 ? n % 20000 : n * 2654435761u;
}

static void random_packets(void **state)
{
	unsigned int seed = 5;
	struct ibv_wc wc;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct pair_conn conn = pair_defaults();
		struct rc_header h = {
			.psn = 0xfffffe + (uint32_t)rand_r(&seed) % 3,
			.op = (uint8_t)((uint32_t)rand_r(&seed) % (RC_OPS + 1)),
			.flags = (uint8_t)rand_r(&seed),
			.syndrome = (uint8_t)((uint32_t)rand_r(&seed) % (RC_SYNDROMES + 1)),
			.rnr_timer = (uint8_t)rand_r(&seed),
			.length = field(&seed),
			.offset = field(&seed),
			.rkey = rand_r(&seed) & 1 ? b.mr->rkey : field(&seed),
			.remote_addr = (uintptr_t)b.buf + field(&seed),
			.parts = (uint16_t)((uint32_t)rand_r(&seed) % 40),
			.rd_depth = (uint8_t)((uint32_t)rand_r(&seed) % 20),
		};
		size_t len = (size_t)rand_r(&seed) % 5 * 16;

		conn.timeout = 0;
		if (!a.qp)
			pair_connect(&conn);
		if (i & 1)
			assert_int_equal(pair_recv(&b, 1, 0, 100) & ~ENOMEM, 0);
		if (i & 2)
			(void)pair_rdma(&a, i & 4 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 1, 0,
					i & 8 ? 9000 : 8, 0);
		h.psn &= 0xffffff;
		inject(&a, &b, h, len);
		inject(&b, &a, h, len);
		while (ibv_poll_cq(a.cq, 1, &wc))
			;
		while (ibv_poll_cq(b.cq, 1, &wc))
			;
		if (pair_state(a.qp) == IBV_QPS_ERR || pair_state(b.qp) == IBV_QPS_ERR || i % 64 == 63)
			pair_disconnect();
	}
	while (ibv_poll_cq(a.cq, 1, &wc) || ibv_poll_cq(b.cq, 1, &wc))
		;
}

static void packets_of_strangers_are_ignored(void **state)
{
	struct pair_conn conn = pair_defaults();
	struct rc_header h = { .psn = 0xfffffe, .op = RC_WRITE };
	struct sim_packet packet = {
		.type = SIM_PACKET_RC, .from = &a.device->ports[0], .to = &b.device->ports[0],
		.data = bytes,
	};

	(void)state;
	pair_connect(&conn);
	/* Too short, another QP, another port, another process. */
	for (int i = 0; i < 5; i++) {
		struct sim_packet p = packet;

		h.src_qpn = a.qp->qp_num + (i == 1);
		h.dst_qpn = b.qp->qp_num + (i == 2);
		memcpy(bytes, &h, sizeof(h));
		p.len = sizeof(h) - (i == 0);
		p.from = i == 3 ? &b.device->ports[0] : packet.from;
		p.from_slot = i == 4;
		sim_lock();
		rc_receive(&p);
		sim_unlock();
	}
	/* The sequence is where it was. */
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, 1, 0, 8, 0), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
}

/* --- Fragments. --- */

static bool say_no_ref(const struct sim_packet *packet)
{
	struct rc_header h = header_of(packet);

	if (!(h.flags & RC_F_LOCAL))
		return true;
	if (h.op < RC_ACK) {
		struct rc_header nak = {
			.dst_qpn = h.src_qpn, .src_qpn = h.dst_qpn, .psn = h.psn, .op = RC_NAK,
			.syndrome = RC_NAK_NO_REF,
		};
		struct sim_packet answer = {
			.type = SIM_PACKET_RC, .from = packet->to, .to = packet->from,
			.from_slot = packet->from_slot, .data = (uint8_t *)&nak, .len = sizeof(nak),
		};

		pair_deliver(&answer);
	} else {
		struct sim_packet changed = *packet;

		/* A reference that cannot be read. */
		h.flags = RC_F_REF;
		h.parts = 0;
		memcpy(bytes, &h, sizeof(h));
		changed.data = bytes;
		pair_deliver(&changed);
	}
	return false;
}

static bool (*beneath)(const struct sim_packet *packet);

static bool by_value_only(const struct sim_packet *packet)
{
	return say_no_ref(packet) && (!beneath || beneath(packet));
}

static unsigned int random_state;

static bool bad_link(const struct sim_packet *packet)
{
	uint32_t r = (uint32_t)rand_r(&random_state) % 1000;

	if (r < 30)
		return false;
	if (r < 60)
		pair_deliver(packet);
	return true;
}

enum { BIG = 3 << 20 };

/* Three megabytes each way, more than a window and more than a chunk. */
static void large_messages_in_fragments(void **state)
{
	uint8_t *mine = malloc(BIG), *theirs = malloc(BIG);
	struct ibv_mr *my_mr, *their_mr;

	(void)state;
	assert_non_null(mine);
	assert_non_null(theirs);
	my_mr = sim_verbs.reg_mr(a.pd, mine, BIG, (uintptr_t)mine, PAIR_ALL);
	their_mr = sim_verbs.reg_mr(b.pd, theirs, BIG, (uintptr_t)theirs, PAIR_ALL);
	for (int round = 0; round < 2; round++) {
		static const enum ibv_wr_opcode ops[] = {
			IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
		};
		struct pair_conn conn = pair_defaults();
		struct ibv_sge mine_sge = { .addr = (uintptr_t)mine, .length = BIG,
					    .lkey = my_mr->lkey };
		struct ibv_sge their_sge = { .addr = (uintptr_t)theirs, .length = BIG,
					     .lkey = their_mr->lkey };
		struct ibv_recv_wr recv = { .wr_id = 1, .sg_list = &their_sge, .num_sge = 1 }, *bad;
		struct ibv_send_wr wr = {
			.sg_list = &mine_sge, .num_sge = 1,
			.wr.rdma = { .remote_addr = (uintptr_t)theirs, .rkey = their_mr->rkey },
		};

		conn.timeout = 6;
		beneath = round ? bad_link : NULL;
		random_state = 1;
		pair_connect(&conn);
		pair_filter = by_value_only;
		for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
			for (size_t n = 0; n < BIG; n++) {
				mine[n] = (uint8_t)(n * 5 + (n >> 9) + i);
				theirs[n] = (uint8_t)(n * 3 + (n >> 10) + i);
			}
			wr.opcode = ops[i];
			wr.wr_id = i;
			if (ops[i] == IBV_WR_SEND)
				assert_int_equal(ibv_post_recv(b.qp, &recv, &bad), 0);
			assert_int_equal(pair_post(&a, &wr), 0);
			/* Something small behind it, and a read that must wait for its turn. */
			assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, 100, 0, 8, 0), 0);
			assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_READ, 101, 0, 20000, 0), 0);
			pair_expect(&a, i, IBV_WC_SUCCESS);
			if (ops[i] == IBV_WR_SEND)
				assert_int_equal(pair_expect(&b, 1, IBV_WC_SUCCESS).byte_len, BIG);
			assert_memory_equal(mine, theirs, BIG);
			pair_expect(&a, 100, IBV_WC_SUCCESS);
			pair_expect(&a, 101, IBV_WC_SUCCESS);
		}
		pair_none(&a, SIM_MS(1));
		pair_none(&b, SIM_MS(1));
		pair_filter = NULL;
		pair_disconnect();
	}
	assert_int_equal(sim_verbs.dereg_mr(my_mr), 0);
	assert_int_equal(sim_verbs.dereg_mr(their_mr), 0);
	free(mine);
	free(theirs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_byte_of_every_packet, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(random_packets, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(packets_of_strangers_are_ignored, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(large_messages_in_fragments, open_roce, close_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
