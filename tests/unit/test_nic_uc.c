/* SPDX-License-Identifier: BSD-2-Clause */
/* Unreliable connected QPs: what arrives, what is lost and what nobody is told. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>

#include "providers/soft/nic/rc_internal.h"
#include "nic_pair.h"

static struct ibv_qp *make(struct pair_side *side, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = side->cq, .recv_cq = side->cq, .srq = srq, .qp_type = IBV_QPT_UC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2,
			 .max_recv_sge = 2, .max_inline_data = 64 },
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	struct ibv_qp *qp = sim_verbs.create_qp(side->pd, &init);

	assert_non_null(qp);
	assert_int_equal(sim_verbs.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					     IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	return qp;
}

static void lead_to(struct ibv_qp *qp, struct pair_side *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num, .rq_psn = 0xffffff, .sq_psn = 0xffffff,
		.ah_attr = { .port_num = 1, .is_global = 1, .grh.sgid_index = 3 },
	};

	attr.ah_attr.grh.dgid = peer->device->ports[0].gids[3].gid;
	assert_int_equal(sim_verbs.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV |
					     IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(sim_verbs.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static void open_with(bool srq)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 16, .max_sge = 2 } };

	pair_open(PAIR_ROCE);
	if (srq) {
		b.srq = sim_verbs.create_srq(b.pd, &init);
		assert_non_null(b.srq);
	}
	a.qp = make(&a, NULL);
	b.qp = make(&b, b.srq);
	lead_to(a.qp, &b);
	lead_to(b.qp, &a);
}

static int open_uc(void **state)
{
	(void)state;
	open_with(false);
	return 0;
}

static const size_t sizes[] = { 0, 1, 1000, RC_FRAGMENT, RC_FRAGMENT + 1, 30000 };

static void messages_arrive(void **state)
{
	struct ibv_send_wr wr = { .wr_id = 9, .opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htonl(7) };
	struct ibv_wc wc;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		pair_fill(&a, 0, sizes[i], (uint8_t)i);
		memset(b.buf, 0, PAIR_BUF);
		assert_int_equal(pair_recv(&b, i, 0, 30000), 0);
		assert_int_equal(pair_send(&a, i, 0, sizes[i]), 0);
		/* Complete when it is sent. */
		assert_int_equal(ibv_poll_cq(a.cq, 1, &wc), 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(pair_expect(&b, i, IBV_WC_SUCCESS).byte_len, sizes[i]);
		pair_check(&b, 0, sizes[i], (uint8_t)i);

		assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, i, 0, sizes[i], 30000), 0);
		pair_expect(&a, i, IBV_WC_SUCCESS);
		pair_none(&b, SIM_MS(1));
		pair_check(&b, 30000, sizes[i], (uint8_t)i);

		assert_int_equal(pair_recv(&b, i, 0, 0), 0);
		assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE_WITH_IMM, i, 0, sizes[i], 100), 0);
		pair_expect(&a, i, IBV_WC_SUCCESS);
		wc = pair_expect(&b, i, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(wc.byte_len, sizes[i]);
		pair_check(&b, 100, sizes[i], (uint8_t)i);
	}
	assert_int_equal(pair_recv(&b, 9, 0, 0), 0);
	assert_int_equal(pair_post(&a, &wr), 0);
	pair_expect(&a, 9, IBV_WC_SUCCESS);
	wc = pair_expect(&b, 9, IBV_WC_SUCCESS);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM | IBV_WC_GRH);
	assert_int_equal(ntohl(wc.imm_data), 7);
}

static unsigned int seen, lose, twice;

/* Loses, or doubles, the packet of that number, counted from 1. */
static bool nth(const struct sim_packet *packet)
{
	seen++;
	if (seen == twice)
		pair_deliver(packet);
	return seen != lose;
}

static const struct {
	unsigned int lose, twice;
	unsigned int arrive;		/* bits: of three messages of three packets each */
} losses[] = {
	{ 0, 0, 7 },
	{ 1, 0, 6 }, { 2, 0, 6 }, { 3, 0, 6 },
	{ 4, 0, 5 }, { 5, 0, 5 }, { 6, 0, 5 },
	{ 9, 0, 3 },
	/* The first packet begins the message again; the second is not what comes next. */
	{ 0, 1, 7 }, { 0, 5, 5 },
	/* A last packet of no message. */
	{ 0, 3, 7 },
};

static void a_message_arrives_whole_or_not_at_all(void **state)
{
	const size_t size = 2 * RC_FRAGMENT + 10;

	(void)state;
	pair_filter = nth;
	for (size_t i = 0; i < ARRAY_SIZE(losses); i++) {
		uint64_t next = 0;

		seen = 0;
		lose = losses[i].lose;
		twice = losses[i].twice;
		for (uint64_t n = 0; n < 3; n++)
			assert_int_equal(pair_recv(&b, n, 0, size), 0);
		for (uint64_t n = 0; n < 3; n++) {
			pair_fill(&a, 0, size, (uint8_t)n);
			assert_int_equal(pair_send(&a, n, 0, size), 0);
			pair_expect(&a, n, IBV_WC_SUCCESS);
			/* The request of a lost message is the next one's. */
			if (losses[i].arrive & 1u << n) {
				pair_expect(&b, next++, IBV_WC_SUCCESS);
				pair_check(&b, 0, size, (uint8_t)n);
			} else {
				pair_none(&b, SIM_MS(1));
			}
		}
		lose = twice = 0;
		for (; next < 3; next++) {
			assert_int_equal(pair_send(&a, next, 0, size), 0);
			pair_expect(&a, next, IBV_WC_SUCCESS);
			pair_expect(&b, next, IBV_WC_SUCCESS);
		}
	}
	assert_int_equal(pair_state(b.qp), IBV_QPS_RTS);
}

static void what_is_dropped(void **state)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .wr_id = 4, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE };

	(void)state;
	/* No receive; one that is too short, which the next message gets. */
	assert_int_equal(pair_send(&a, 1, 0, 20000), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_none(&b, SIM_MS(1));
	assert_int_equal(pair_recv(&b, 2, 0, 10), 0);
	assert_int_equal(pair_send(&a, 1, 0, 20000), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_none(&b, SIM_MS(1));
	assert_int_equal(pair_send(&a, 1, 0, 10), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_expect(&b, 2, IBV_WC_SUCCESS);
	/* A wrong key. */
	sge = pair_sge(&a, 0, 20000);
	wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
	wr.wr.rdma.rkey = b.mr->rkey + 1;
	assert_int_equal(pair_post(&a, &wr), 0);
	pair_expect(&a, 4, IBV_WC_SUCCESS);
	pair_none(&b, SIM_MS(1));
	assert_int_equal(pair_state(a.qp), IBV_QPS_RTS);
	assert_int_equal(pair_state(b.qp), IBV_QPS_RTS);
	pair_no_async(&b);
}

/* A request that was taken out of a shared queue cannot stay. */
static void too_long_for_a_shared_queue(void **state)
{
	(void)state;
	open_with(true);
	assert_int_equal(pair_recv(&b, 2, 0, 10), 0);
	assert_int_equal(pair_recv(&b, 3, 0, 20000), 0);
	assert_int_equal(pair_send(&a, 1, 0, 20000), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_expect(&b, 2, IBV_WC_REM_INV_REQ_ERR);
	pair_none(&b, SIM_MS(1));
	assert_int_equal(pair_send(&a, 1, 0, 20000), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_expect(&b, 3, IBV_WC_SUCCESS);
	assert_int_equal(pair_state(b.qp), IBV_QPS_RTS);
	pair_close();
}

static void local_errors_stop_sending_only(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct ibv_sge sge = pair_sge(&a, 0, 8);
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND };

	(void)state;
	sge.lkey++;
	assert_int_equal(pair_post(&a, &wr), 0);
	pair_expect(&a, 1, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(pair_state(a.qp), IBV_QPS_SQE);
	assert_int_equal(pair_send(&a, 2, 0, 8), 0);
	pair_expect(&a, 2, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(pair_recv(&a, 3, 0, 8), 0);
	assert_int_equal(pair_send(&b, 4, 0, 8), 0);
	pair_expect(&a, 3, IBV_WC_SUCCESS);
	pair_expect(&b, 4, IBV_WC_SUCCESS);
	assert_int_equal(sim_verbs.modify_qp(a.qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(pair_recv(&b, 5, 0, 8), 0);
	assert_int_equal(pair_send(&a, 6, 0, 8), 0);
	pair_expect(&a, 6, IBV_WC_SUCCESS);
	pair_expect(&b, 5, IBV_WC_SUCCESS);
}

static void a_wrong_local_key_of_a_receive(void **state)
{
	struct ibv_sge sge = pair_sge(&b, 0, 8);
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;

	(void)state;
	sge.lkey++;
	assert_int_equal(ibv_post_recv(b.qp, &wr, &bad), 0);
	assert_int_equal(pair_send(&a, 2, 0, 8), 0);
	pair_expect(&a, 2, IBV_WC_SUCCESS);
	pair_expect(&b, 1, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(pair_state(b.qp), IBV_QPS_ERR);
}

static void no_reads_and_no_atomics(void **state)
{
	(void)state;
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_READ, 1, 0, 8, 0), EINVAL);
	assert_int_equal(pair_rdma(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8, 0), EINVAL);
}

static void iwarp_has_none(void **state)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UC };

	(void)state;
	pair_open(PAIR_IWARP);
	init.send_cq = init.recv_cq = a.cq;
	errno = 0;
	assert_null(sim_verbs.create_qp(a.pd, &init));
	assert_int_equal(errno, EOPNOTSUPP);
	pair_close();
}

/* Every bit of a packet's header takes its other value: no crash, no answer. */
static unsigned int at_bit;

static bool mutate(const struct sim_packet *packet)
{
	static uint8_t copy[SIM_LINK_MAX_PACKET];
	struct sim_packet changed = *packet;

	if (packet->to != &b.device->ports[0])
		fail_msg("somebody answers");
	memcpy(copy, packet->data, packet->len);
	changed.data = copy;
	copy[at_bit / 8] ^= (uint8_t)(1 << at_bit % 8);
	pair_deliver(&changed);
	return false;
}

static void hostile_packets(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE };
	struct ibv_wc wc;

	(void)state;
	pair_filter = mutate;
	for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
		for (at_bit = 0; at_bit < 8 * sizeof(struct rc_header); at_bit++) {
			(void)pair_recv(&b, 5, 0, 100);
			assert_int_equal(pair_rdma(&a, opcodes[i], 1, 0, 8, 0), 0);
			pair_expect(&a, 1, IBV_WC_SUCCESS);
			assert_int_equal(sim_advance(SIM_US(2)), 0);
			while (ibv_poll_cq(b.cq, 1, &wc))
				assert_int_equal(wc.status, IBV_WC_SUCCESS);
		}
	}
	assert_int_equal(pair_state(b.qp), IBV_QPS_RTS);
}

#define UC_TEST(test) cmocka_unit_test_setup_teardown(test, open_uc, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UC_TEST(messages_arrive),
		UC_TEST(a_message_arrives_whole_or_not_at_all),
		UC_TEST(what_is_dropped),
		cmocka_unit_test(too_long_for_a_shared_queue),
		UC_TEST(local_errors_stop_sending_only),
		UC_TEST(a_wrong_local_key_of_a_receive),
		UC_TEST(no_reads_and_no_atomics),
		cmocka_unit_test(iwarp_has_none),
		UC_TEST(hostile_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
