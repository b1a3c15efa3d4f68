/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets whose payload is read straight to where it belongs (rc_place()): where that is, which
 * packets have no such place, and what completes when the payload is there.
 */
#include "config.h"

#include <stdlib.h>

#include "nic_pair.h"
#include "providers/soft/link/link_internal.h"
#include "providers/soft/nic/rc_internal.h"

#define LEN 30000u			/* of the message, and of its first packet */
#define FIRST 20000u
#define FIRST_PSN 0xfffffeu		/* of A */

static struct iovec to[SIM_PLACE_PARTS];

static struct sim_packet packet_of(struct pair_side *from, struct pair_side *at, struct rc_header *h,
				   size_t placed)
{
	h->src_qpn = from->qp->qp_num;
	h->dst_qpn = at->qp->qp_num;
	return (struct sim_packet){
		.type = SIM_PACKET_RC,
		.from = &from->device->ports[0],
		.to = &at->device->ports[0],
		.from_slot = sim_self_slot(),
		.data = (const uint8_t *)h,
		.len = sizeof(*h),
		.placed = placed,
	};
}

/* The next message of A, before anything was sent. */
static struct rc_header request(enum rc_op op)
{
	return (struct rc_header){
		.op = (uint8_t)op,
		.psn = FIRST_PSN,
		.length = LEN,
		.rkey = b.mr->rkey,
		.remote_addr = (uintptr_t)b.buf + 64,
	};
}

static unsigned int place(struct pair_side *from, struct pair_side *at, struct rc_header h, size_t len)
{
	const struct sim_packet packet = packet_of(from, at, &h, len);
	unsigned int parts;

	sim_lock();
	parts = sim_link_place(&packet, to);
	sim_unlock();
	return parts;
}

/* The payload is put there, and the packet handed on. */
static void arrive(struct pair_side *from, struct pair_side *at, struct rc_header h, size_t len)
{
	struct sim_packet packet = packet_of(from, at, &h, len);
	size_t off = 0;

	sim_lock();
	assert_int_not_equal(sim_link_place(&packet, to), 0);
	for (unsigned int i = 0; off < len; off += to[i++].iov_len)
		for (size_t n = 0; n < to[i].iov_len; n++)
			((uint8_t *)to[i].iov_base)[n] = (uint8_t)(h.offset + off + n);
	sim_link_deliver(&packet);
	sim_unlock();
}

static void assert_arrived(const uint8_t *memory)
{
	for (size_t i = 0; i < LEN; i++)
		assert_int_equal(memory[i], (uint8_t)i);
}

static void connect_pair(void)
{
	struct pair_conn conn = pair_defaults();

	pair_connect(&conn);
}

static void a_write_goes_to_its_region(void **state)
{
	struct rc_header h = request(RC_WRITE);

	(void)state;
	connect_pair();
	assert_int_equal(place(&a, &b, h, FIRST), 1);
	assert_ptr_equal(to[0].iov_base, b.buf + 64);
	assert_int_equal(to[0].iov_len, FIRST);
	arrive(&a, &b, h, FIRST);
	h.offset = FIRST;
	arrive(&a, &b, h, LEN - FIRST);
	assert_arrived(b.buf + 64);
	/* The next message has another number. */
	assert_int_equal(place(&a, &b, h, LEN - FIRST), 0);
	pair_disconnect();
}

static void a_send_goes_to_the_receive(void **state)
{
	struct ibv_sge sge[2] = { pair_sge(&b, 100, 5000), pair_sge(&b, 8000, LEN) };
	struct ibv_recv_wr wr = { .wr_id = 7, .sg_list = sge, .num_sge = 2 }, *bad;
	struct pair_conn conn = pair_defaults();
	struct rc_header h = request(RC_SEND);
	struct ibv_wc wc;

	(void)state;
	conn.cap.max_recv_sge = 2;
	pair_connect(&conn);
	/* None is posted: that is said of the whole packet. */
	assert_int_equal(place(&a, &b, h, FIRST), 0);
	assert_int_equal(ibv_post_recv(b.qp, &wr, &bad), 0);
	assert_int_equal(place(&a, &b, h, FIRST), 2);
	assert_ptr_equal(to[0].iov_base, b.buf + 100);
	assert_int_equal(to[0].iov_len, 5000);
	assert_ptr_equal(to[1].iov_base, b.buf + 8000);
	assert_int_equal(to[1].iov_len, FIRST - 5000);
	arrive(&a, &b, h, FIRST);
	assert_int_equal(ibv_poll_cq(b.cq, 1, &wc), 0);
	h.offset = FIRST;
	arrive(&a, &b, h, LEN - FIRST);
	assert_int_equal(ibv_poll_cq(b.cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.byte_len, LEN);
	pair_disconnect();
}

static bool swallow(const struct sim_packet *packet)
{
	(void)packet;
	return false;
}

static void an_answer_goes_to_the_readers_memory(void **state)
{
	struct rc_header h = { .op = RC_READ_DATA, .psn = FIRST_PSN, .length = LEN };
	struct ibv_wc wc;

	(void)state;
	connect_pair();
	assert_int_equal(place(&b, &a, h, FIRST), 0);	/* nothing was asked for */
	pair_filter = swallow;
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_READ, 3, 200, LEN, 0), 0);
	pair_filter = NULL;
	assert_int_equal(place(&b, &a, h, FIRST), 1);
	assert_ptr_equal(to[0].iov_base, a.buf + 200);
	arrive(&b, &a, h, FIRST);
	h.offset = FIRST;
	arrive(&b, &a, h, LEN - FIRST);
	assert_int_equal(ibv_poll_cq(a.cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 3);
	assert_arrived(a.buf + 200);
	pair_disconnect();
}

/* What is not the next packet of a message, or may not go there, is handed on whole, and answered. */
static void packets_without_a_place(void **state)
{
	static const struct {
		const char *what;
		size_t at;
		uint64_t value;
		unsigned int size;
	} wrong[] = {
#define FIELD(field, value) { #field, offsetof(struct rc_header, field), value, \
			      sizeof(((struct rc_header *)0)->field) }
		FIELD(psn, FIRST_PSN + 1), FIELD(psn, FIRST_PSN - 1), FIELD(psn, UINT32_MAX),
		FIELD(op, RC_READ), FIELD(op, RC_ACK), FIELD(op, RC_ATOMIC_WRITE),
		FIELD(op, RC_OPS), FIELD(op, 255), FIELD(flags, RC_F_LOCAL),
		FIELD(flags, RC_F_REF), FIELD(flags, RC_F_UNRELIABLE), FIELD(length, 0),
		FIELD(length, FIRST - 1), FIELD(length, UINT32_MAX), FIELD(offset, 1),
		FIELD(offset, LEN), FIELD(offset, UINT32_MAX), FIELD(rkey, 0),
		FIELD(remote_addr, 0), FIELD(xrc_srqn, RC_XRC | 1),
	};

	(void)state;
	connect_pair();
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct rc_header h = request(RC_WRITE);

		assert_int_equal(place(&a, &b, h, FIRST), 1);
		memcpy((char *)&h + wrong[i].at, &wrong[i].value, wrong[i].size);
		if (place(&a, &b, h, FIRST))
			fail_msg("%s 0x%llx has a place", wrong[i].what,
				 (unsigned long long)wrong[i].value);
	}
	/* More than the message has; and a QP that receives no more. */
	assert_int_equal(place(&a, &b, request(RC_WRITE), LEN + 1), 0);
	pair_modify(b.qp, IBV_QPS_ERR);
	assert_int_equal(place(&a, &b, request(RC_WRITE), FIRST), 0);
	pair_disconnect();
}

static void ignore_sent(const struct sim_packet *packet, unsigned int slot)
{
	(void)packet;
	(void)slot;
}

static void ignore_received(const struct sim_packet *packet)
{
	(void)packet;
}

/* A tap sees whole packets. */
static void none_while_somebody_looks_on(void **state)
{
	static struct sim_tap tap = { .sent = ignore_sent, .received = ignore_received };

	(void)state;
	connect_pair();
	sim_tap_add(&tap);
	assert_int_equal(place(&a, &b, request(RC_WRITE), FIRST), 0);
	sim_tap_remove(&tap);
	assert_int_equal(place(&a, &b, request(RC_WRITE), FIRST), 1);
	pair_disconnect();
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_roce, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_write_goes_to_its_region),
		TEST(a_send_goes_to_the_receive),
		TEST(an_answer_goes_to_the_readers_memory),
		TEST(packets_without_a_place),
		TEST(none_while_somebody_looks_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
