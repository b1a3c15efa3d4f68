/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic_xrc.h - a pair connected by XRC, for tests: A sends (XRC_SEND), B receives (XRC_RECV) into
 * two SRQs of an XRC domain.
 */
#ifndef TESTS_UNIT_NIC_XRC_H
#define TESTS_UNIT_NIC_XRC_H

#include <errno.h>
#include <fcntl.h>

#include "nic_pair.h"

#define UNUSED __attribute__((unused))

static struct ibv_xrcd *domain UNUSED;
static struct ibv_srq *first UNUSED, *second UNUSED;	/* of the domain */
static uint32_t first_number UNUSED, second_number UNUSED;

static inline struct ibv_xrcd *open_domain(struct pair_side *side, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	errno = 0;
	return ibv_open_xrcd(side->context, &attr);
}

static inline struct ibv_srq *make_srq(struct ibv_xrcd *xrcd, uint32_t *ret_number)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 8, .max_sge = 2 },
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = b.pd,
		.xrcd = xrcd,
		.cq = b.cq,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(b.context, &attr);

	assert_non_null(srq);
	assert_int_equal(ibv_get_srq_num(srq, ret_number), 0);
	return srq;
}

static inline struct ibv_qp *make_qp(struct pair_side *side, enum ibv_qp_type type)
{
	bool sends = type == IBV_QPT_XRC_SEND;
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = type,
		.send_cq = sends ? side->cq : NULL,
		.cap = { .max_send_wr = sends ? 16 : 0, .max_send_sge = sends ? 2 : 0 },
		.sq_sig_all = 1,
		.comp_mask = sends ? IBV_QP_INIT_ATTR_PD : IBV_QP_INIT_ATTR_XRCD,
		.pd = sends ? side->pd : NULL,
		.xrcd = sends ? NULL : domain,
	};
	struct ibv_qp *qp = verbs_get_ctx(side->context)->create_qp_ex(side->context, &attr);

	assert_non_null(qp);
	return qp;
}

#define RTR_SEND (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RTR_RECV (RTR_SEND | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_RECV (IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN)
#define RTS_SEND (RTS_RECV | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

static inline int to_rtr(struct pair_side *side, struct pair_side *peer, int mask)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.ah_attr = { .port_num = 1, .is_global = 1, .grh.sgid_index = 3 },
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 1,
	};

	attr.ah_attr.grh.dgid = peer->device->ports[0].gids[3].gid;
	return sim_verbs.modify_qp(side->qp, &attr, mask);
}

static inline int to_rts(struct pair_side *side, int mask, uint8_t rnr_retry)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 3, .rnr_retry = rnr_retry,
		.max_rd_atomic = 16,
	};

	return sim_verbs.modify_qp(side->qp, &attr, mask);
}

static inline void connect_qp(struct ibv_qp *sender, uint8_t rnr_retry)
{
	struct pair_conn conn = pair_defaults();

	domain = open_domain(&b, -1, O_CREAT);
	assert_non_null(domain);
	first = make_srq(domain, &first_number);
	second = make_srq(domain, &second_number);
	assert_int_not_equal(first_number, second_number);
	a.qp = sender;
	b.qp = make_qp(&b, IBV_QPT_XRC_RECV);
	assert_int_equal(pair_to_init(&a, a.qp, &conn), 0);
	assert_int_equal(pair_to_init(&b, b.qp, &conn), 0);
	/* Attributes of the other direction are ignored, and those of its own are needed. */
	assert_int_equal(to_rtr(&b, &a, RTR_SEND), EINVAL);
	assert_int_equal(to_rtr(&a, &b, RTR_RECV), 0);
	assert_int_equal(to_rtr(&b, &a, RTR_RECV), 0);
	assert_int_equal(to_rts(&a, RTS_RECV, 7), EINVAL);
	assert_int_equal(to_rts(&a, RTS_SEND, rnr_retry), 0);
	assert_int_equal(to_rts(&b, RTS_SEND, 7), 0);
}

static inline void connect_xrc(uint8_t rnr_retry)
{
	connect_qp(make_qp(&a, IBV_QPT_XRC_SEND), rnr_retry);
}

static inline void end(void)
{
	assert_int_equal(sim_verbs.destroy_qp(a.qp), 0);
	assert_int_equal(sim_verbs.destroy_qp(b.qp), 0);
	a.qp = b.qp = NULL;
	if (first)
		assert_int_equal(sim_verbs.destroy_srq(first), 0);
	assert_int_equal(ibv_close_xrcd(domain), EBUSY);
	assert_int_equal(sim_verbs.destroy_srq(second), 0);
	assert_int_equal(ibv_close_xrcd(domain), 0);
}

static inline void receive(struct ibv_srq *srq, uint64_t wr_id, size_t offset, size_t len)
{
	struct ibv_sge sge = pair_sge(&b, offset, len);
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

static inline int request(enum ibv_wr_opcode opcode, uint32_t number, uint64_t wr_id, size_t offset,
		   size_t len)
{
	struct ibv_sge sge = pair_sge(&a, offset, len);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.opcode = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.qp_type.xrc.remote_srqn = number,
	};

	if (opcode != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
		wr.wr.rdma.rkey = b.mr->rkey;
	}
	return pair_post(&a, &wr);
}

#define ROCE(test) cmocka_unit_test_setup_teardown(test, open_roce, close_pair)

#endif
