/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>

#include "nic_pair.h"
#include "providers/soft/nic/rc_internal.h"

#define QKEY 0x11112222u

static struct ibv_ah *ah;

static void open_ud(enum pair_transport transport)
{
	struct ibv_ah_attr attr = { .port_num = 1 };

	pair_open(transport);
	a.qp = pair_ud_qp(&a, QKEY);
	b.qp = pair_ud_qp(&b, QKEY);
	if (transport == PAIR_IB) {
		attr.dlid = b.device->ports[0].lid;
	} else {
		attr.is_global = 1;
		attr.grh.dgid = b.device->ports[0].gids[3].gid;
		attr.grh.sgid_index = 3;
	}
	ah = sim_verbs.create_ah(a.pd, &attr);
	assert_non_null(ah);
}

static void close_ud(void)
{
	assert_int_equal(sim_verbs.destroy_ah(ah), 0);
	pair_close();
}

static int send_to(uint32_t qpn, uint32_t qkey, enum ibv_wr_opcode opcode, size_t len,
		   unsigned int flags)
{
	struct ibv_sge sge = pair_sge(&a, 0, len);
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = flags,
		.imm_data = htonl(77), .wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = qkey },
	};

	return pair_post(&a, &wr);
}

static void datagrams_arrive_with_a_header(void **state)
{
	static const enum pair_transport transports[] = { PAIR_ROCE, PAIR_IB };
	static const size_t lens[] = { 0, 1, 32, 1024 };

	(void)state;
	for (size_t t = 0; t < ARRAY_SIZE(transports); t++) {
		struct ibv_wc wc;

		open_ud(transports[t]);
		for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
			memset(b.buf, 0xee, 2000);
			pair_fill(&a, 0, lens[i], (uint8_t)i);
			assert_int_equal(pair_recv(&b, 5, 0, 1064), 0);
			assert_int_equal(send_to(b.qp->qp_num, QKEY, IBV_WR_SEND, lens[i],
						 lens[i] == 32 ? IBV_SEND_INLINE : 0), 0);
			/* Complete when sent. */
			pair_expect(&a, 1, IBV_WC_SUCCESS);
			wc = pair_expect(&b, 5, IBV_WC_SUCCESS);
			assert_int_equal(wc.byte_len, lens[i] + 40);
			assert_int_equal(wc.src_qp, a.qp->qp_num);
			assert_int_equal(wc.wc_flags, transports[t] == PAIR_IB ? 0 : IBV_WC_GRH);
			assert_int_equal(wc.slid, transports[t] == PAIR_IB ? a.device->ports[0].lid : 0);
			pair_check(&b, 40, lens[i], (uint8_t)i);
		}
		assert_int_equal(pair_recv(&b, 6, 0, 1064), 0);
		assert_int_equal(send_to(b.qp->qp_num, QKEY, IBV_WR_SEND_WITH_IMM, 8, 0), 0);
		pair_expect(&a, 1, IBV_WC_SUCCESS);
		wc = pair_expect(&b, 6, IBV_WC_SUCCESS);
		assert_int_equal(wc.wc_flags & ~(unsigned int)IBV_WC_GRH, IBV_WC_WITH_IMM);
		assert_int_equal(ntohl(wc.imm_data), 77);
		close_ud();
	}
}

static void header_names_both_ends(void **state)
{
	static const uint8_t v4[8] = { 10, 0, 0, 1, 10, 0, 0, 2 };
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };

	(void)state;
	open_ud(PAIR_ROCE);
	assert_int_equal(pair_recv(&b, 5, 0, 100), 0);
	assert_int_equal(send_to(b.qp->qp_num, QKEY, IBV_WR_SEND, 10, 0), 0);
	pair_expect(&b, 5, IBV_WC_SUCCESS);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	assert_int_equal(b.buf[20], 0x45);
	assert_memory_equal(b.buf + 32, v4, 8);
	close_ud();

	open_ud(PAIR_IB);
	assert_int_equal(sim_verbs.destroy_ah(ah), 0);
	attr.grh.dgid = b.device->ports[0].gids[0].gid;
	ah = sim_verbs.create_ah(a.pd, &attr);
	assert_non_null(ah);
	assert_int_equal(pair_recv(&b, 5, 0, 100), 0);
	assert_int_equal(send_to(b.qp->qp_num, QKEY, IBV_WR_SEND, 10, 0), 0);
	pair_expect(&b, 5, IBV_WC_SUCCESS);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	assert_int_equal(b.buf[0], 0x60);
	assert_memory_equal(b.buf + 8, &a.device->ports[0].gids[0].gid, 16);
	assert_memory_equal(b.buf + 24, &b.device->ports[0].gids[0].gid, 16);
	close_ud();
}

/* Nobody hears of these but the sender, who is told nothing either. */
static void what_is_dropped(void **state)
{
	(void)state;
	open_ud(PAIR_ROCE);
	/* No receive posted. */
	assert_int_equal(send_to(b.qp->qp_num, QKEY, IBV_WR_SEND, 8, 0), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_none(&b, SIM_MS(1));
	assert_int_equal(pair_recv(&b, 5, 0, 100), 0);
	pair_none(&b, SIM_MS(1));
	/* Wrong Q_Key, no such QP. */
	assert_int_equal(send_to(b.qp->qp_num, QKEY + 1, IBV_WR_SEND, 8, 0), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_none(&b, SIM_MS(1));
	assert_int_equal(send_to(b.qp->qp_num + 1, QKEY, IBV_WR_SEND, 8, 0), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_none(&b, SIM_MS(1));
	/* A Q_Key with the high bit stands for the sender's own. */
	assert_int_equal(send_to(b.qp->qp_num, 0x80000000, IBV_WR_SEND, 8, 0), 0);
	pair_expect(&b, 5, IBV_WC_SUCCESS);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	close_ud();
}

static void longer_than_the_mtu_or_the_receive(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };

	(void)state;
	open_ud(PAIR_ROCE);
	assert_int_equal(pair_recv(&b, 5, 0, 2000), 0);
	assert_int_equal(send_to(b.qp->qp_num, QKEY, IBV_WR_SEND, 1025, 0), 0);
	pair_expect(&a, 1, IBV_WC_LOC_LEN_ERR);
	/* Only sending stops. */
	assert_int_equal(pair_state(a.qp), IBV_QPS_SQE);
	assert_int_equal(send_to(b.qp->qp_num, QKEY, IBV_WR_SEND, 8, 0), 0);
	pair_expect(&a, 1, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(sim_verbs.modify_qp(a.qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(send_to(b.qp->qp_num, QKEY, IBV_WR_SEND, 8, 0), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_expect(&b, 5, IBV_WC_SUCCESS);

	/* Dropped; the request is the next one's. */
	assert_int_equal(pair_recv(&b, 6, 0, 47), 0);
	assert_int_equal(send_to(b.qp->qp_num, QKEY, IBV_WR_SEND, 8, 0), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_none(&b, SIM_MS(1));
	assert_int_equal(pair_state(b.qp), IBV_QPS_RTS);
	assert_int_equal(send_to(b.qp->qp_num, QKEY, IBV_WR_SEND, 7, 0), 0);
	assert_int_equal(pair_expect(&b, 6, IBV_WC_SUCCESS).byte_len, 47);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	close_ud();
}

/* A request that was taken out of a shared queue cannot stay: it tells, and the QP goes on. */
static void longer_than_the_receive_of_a_shared_queue(void **state)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_wc wc;

	(void)state;
	open_ud(PAIR_ROCE);
	assert_int_equal(sim_verbs.destroy_qp(b.qp), 0);
	b.srq = sim_verbs.create_srq(b.pd, &srq);
	assert_non_null(b.srq);
	b.qp = pair_ud_qp(&b, QKEY);
	assert_int_equal(pair_recv(&b, 6, 0, 47), 0);
	assert_int_equal(pair_recv(&b, 7, 0, 48), 0);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(send_to(b.qp->qp_num, QKEY, IBV_WR_SEND, 8, 0), 0);
		pair_expect(&a, 1, IBV_WC_SUCCESS);
		wc = pair_expect(&b, 6 + i, i ? IBV_WC_SUCCESS : IBV_WC_REM_INV_REQ_ERR);
		assert_int_equal(wc.qp_num, b.qp->qp_num);
	}
	assert_int_equal(pair_state(b.qp), IBV_QPS_RTS);
	close_ud();
}

/* What waited in SQD completes within the call that goes on: so is it told. */
static void going_on_overruns_the_cq(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD, .sq_sig_all = 1,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 2 },
	};
	struct ibv_qp *qp, *ours;
	struct ibv_cq *cq;

	(void)state;
	open_ud(PAIR_ROCE);
	ours = a.qp;
	cq = sim_verbs.create_cq(a.context, 1, NULL, NULL, 0);
	init.send_cq = init.recv_cq = cq;
	qp = sim_verbs.create_qp(a.pd, &init);
	assert_non_null(qp);
	pair_ud_to_rts(qp, QKEY);
	assert_int_equal(pair_modify(qp, IBV_QPS_SQD), 0);
	a.qp = qp;
	assert_int_equal(send_to(b.qp->qp_num, QKEY, IBV_WR_SEND, 8, 0), 0);
	assert_int_equal(send_to(b.qp->qp_num, QKEY, IBV_WR_SEND, 8, 0), 0);
	assert_int_equal(sim_verbs.modify_qp(qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(pair_state(qp), IBV_QPS_ERR);
	pair_async(&a, IBV_EVENT_CQ_ERR);
	pair_async(&a, IBV_EVENT_QP_FATAL);
	a.qp = ours;
	assert_int_equal(sim_verbs.destroy_qp(qp), 0);
	assert_int_equal(sim_verbs.destroy_cq(cq), 0);
	close_ud();
}

static void only_sends(void **state)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	(void)state;
	open_ud(PAIR_ROCE);
	assert_int_equal(pair_post(&a, &wr), EINVAL);
	assert_int_equal(send_to(b.qp->qp_num, QKEY, IBV_WR_RDMA_WRITE, 8, 0), EINVAL);
	assert_int_equal(send_to(b.qp->qp_num, QKEY, IBV_WR_RDMA_READ, 8, 0), EINVAL);
	assert_int_equal(send_to(b.qp->qp_num, QKEY, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0), EINVAL);
	close_ud();
}

/* Every byte of a datagram's header takes other values: no crash, nothing but a datagram. */
static unsigned int at_byte;
static uint8_t value;

static bool mutate(const struct sim_packet *packet)
{
	static uint8_t copy[SIM_LINK_MAX_PACKET];
	struct sim_packet changed = *packet;

	memcpy(copy, packet->data, packet->len);
	changed.data = copy;
	if (at_byte < packet->len)
		copy[at_byte] ^= value;
	else
		changed.len = at_byte - packet->len;
	if (changed.len <= packet->len)
		pair_deliver(&changed);
	return false;
}

static void hostile_datagrams(void **state)
{
	struct ibv_wc wc;

	(void)state;
	open_ud(PAIR_ROCE);
	pair_filter = mutate;
	for (at_byte = 0; at_byte < 140; at_byte++) {
		for (unsigned int bit = 0; bit < 8; bit++) {
			value = (uint8_t)(1 << bit);
			(void)pair_recv(&b, 5, 0, 100);
			assert_int_equal(send_to(b.qp->qp_num, QKEY, IBV_WR_SEND, 8, 0), 0);
			pair_expect(&a, 1, IBV_WC_SUCCESS);
			assert_int_equal(sim_advance(SIM_US(2)), 0);
			while (ibv_poll_cq(b.cq, 1, &wc))
				assert_int_equal(wc.status, IBV_WC_SUCCESS);
		}
	}
	assert_int_equal(pair_state(b.qp), IBV_QPS_RTS);
	close_ud();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(datagrams_arrive_with_a_header),
		cmocka_unit_test(header_names_both_ends),
		cmocka_unit_test(what_is_dropped),
		cmocka_unit_test(longer_than_the_mtu_or_the_receive),
		cmocka_unit_test(longer_than_the_receive_of_a_shared_queue),
		cmocka_unit_test(going_on_overruns_the_cq),
		cmocka_unit_test(only_sends),
		cmocka_unit_test(hostile_datagrams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
