/* SPDX-License-Identifier: BSD-2-Clause */
/* A call that the NIC refuses is one line at `warn': the call, the reason and the errno. */
#include "config.h"

#include <errno.h>

#include "nic_pair.h"

static struct ibv_qp_init_attr qp_attr(void)
{
	return (struct ibv_qp_init_attr){
		.send_cq = a.cq, .recv_cq = a.cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
}

static int made(const void *object)
{
	return object ? 0 : errno;
}

static int qp_without_cq(void)
{
	struct ibv_qp_init_attr attr = qp_attr();

	attr.recv_cq = NULL;
	return made(sim_verbs.create_qp(a.pd, &attr));
}

static int qp_too_long(void)
{
	struct ibv_qp_init_attr attr = qp_attr();

	attr.cap.max_send_wr = 10000000;
	return made(sim_verbs.create_qp(a.pd, &attr));
}

static int qp_too_wide(void)
{
	struct ibv_qp_init_attr attr = qp_attr();

	attr.cap.max_recv_sge = 10000;
	return made(sim_verbs.create_qp(a.pd, &attr));
}

static int qp_unknown(void)
{
	struct ibv_qp_init_attr attr = qp_attr();

	attr.qp_type = (enum ibv_qp_type)99;
	return made(sim_verbs.create_qp(a.pd, &attr));
}

static int qp_raw(void)
{
	struct ibv_qp_init_attr attr = qp_attr();

	attr.qp_type = IBV_QPT_RAW_PACKET;
	return made(sim_verbs.create_qp(a.pd, &attr));
}

static int qps_of_another_device(void)
{
	struct ibv_qp_init_attr attr = qp_attr();

	attr.send_cq = b.cq;
	return made(sim_verbs.create_qp(a.pd, &attr));
}

static int cq_too_long(void)
{
	return made(sim_verbs.create_cq(a.context, 0, NULL, NULL, 0));
}

static int cq_vector(void)
{
	return made(sim_verbs.create_cq(a.context, 1, NULL, NULL, 10000));
}

static int cq_channel(void)
{
	return made(sim_verbs.create_cq(a.context, 1, NULL, b.channel, 0));
}

static int cq_resize(void)
{
	return sim_verbs.resize_cq(a.cq, 0);
}

static int srq_too_long(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 100000000, .max_sge = 1 } };

	return made(sim_verbs.create_srq(a.pd, &attr));
}

static int srq_too_wide(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1, .max_sge = 10000 } };

	return made(sim_verbs.create_srq(a.pd, &attr));
}

static int modify_srq(int mask)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_srq_attr attr = { .max_wr = 1, .srq_limit = 1000000 };
	struct ibv_srq *srq = sim_verbs.create_srq(a.pd, &init);
	int err;

	assert_non_null(srq);
	err = sim_verbs.modify_srq(srq, &attr, mask);
	assert_int_equal(sim_verbs.destroy_srq(srq), 0);
	return err;
}

static int srq_limit(void)
{
	return modify_srq(IBV_SRQ_LIMIT);
}

static int srq_attribute(void)
{
	return modify_srq(1 << 10);
}

static int mr_access(void)
{
	return made(sim_verbs.reg_mr(a.pd, a.buf, 10, (uintptr_t)a.buf, IBV_ACCESS_REMOTE_WRITE));
}

static int mr_nowhere(void)
{
	return made(sim_verbs.reg_mr(a.pd, (void *)4096, 10, 4096, 0));
}

static int ah_port(void)
{
	struct ibv_ah_attr attr = { .port_num = 77 };

	return made(sim_verbs.create_ah(a.pd, &attr));
}

static int ah_gid(void)
{
	struct ibv_ah_attr attr = { .port_num = 1, .is_global = 1, .grh.sgid_index = 99 };

	return made(sim_verbs.create_ah(a.pd, &attr));
}

static int ah_lid(void)
{
	struct ibv_ah_attr attr = { .port_num = 1, .dlid = 1 };

	return made(sim_verbs.create_ah(a.pd, &attr));
}

static int modify(enum ibv_qp_state state, int mask)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_qp *qp = pair_qp(&a, &conn);
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 77 };
	int err = sim_verbs.modify_qp(qp, &attr, IBV_QP_STATE | mask);

	assert_int_equal(sim_verbs.destroy_qp(qp), 0);
	return err;
}

static int move_too_far(void)
{
	return modify(IBV_QPS_RTS, 0);
}

static int move_incomplete(void)
{
	return modify(IBV_QPS_INIT, IBV_QP_PORT);
}

static int move_with_more(void)
{
	return modify(IBV_QPS_ERR, IBV_QP_PORT);
}

static int move_to_nowhere(void)
{
	return modify(IBV_QPS_INIT, IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS);
}

static int move_without_grh(void)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_qp *qp = pair_qp(&a, &conn);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	int err = sim_verbs.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				      IBV_QP_ACCESS_FLAGS);

	assert_int_equal(err, 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
				     .ah_attr = { .port_num = 1, .dlid = 1 } };
	err = sim_verbs.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER);
	assert_int_equal(sim_verbs.destroy_qp(qp), 0);
	return err;
}

/* --- Calls for a group: an RC QP, a GID that is not a group's, a QP that is not in it. --- */

static int group_call(int (*call)(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid), bool ud,
		      uint8_t first)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_qp *qp = ud ? pair_ud_qp(&a, 1) : pair_qp(&a, &conn);
	union ibv_gid gid = { .raw = { first, 0x0e } };
	int err = call(qp, &gid, 0);

	assert_int_equal(errno, err);
	assert_int_equal(sim_verbs.destroy_qp(qp), 0);
	return err;
}

static int attach_rc(void)
{
	return group_call(sim_verbs.attach_mcast, false, 0xff);
}

static int attach_to_host(void)
{
	return group_call(sim_verbs.attach_mcast, true, 0xfe);
}

static int detach_rc(void)
{
	return group_call(sim_verbs.detach_mcast, false, 0xff);
}

static int detach_stranger(void)
{
	return group_call(sim_verbs.detach_mcast, true, 0xff);
}

static int alloc_mw(void)
{
	return made(ibv_alloc_mw(a.pd, (enum ibv_mw_type)9));
}

static int srq_busy(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct pair_conn conn = pair_defaults();
	struct ibv_qp *qp;
	int err;

	a.srq = sim_verbs.create_srq(a.pd, &init);
	qp = pair_qp(&a, &conn);
	err = sim_verbs.destroy_srq(a.srq);
	assert_int_equal(sim_verbs.destroy_qp(qp), 0);
	assert_int_equal(sim_verbs.destroy_srq(a.srq), 0);
	a.srq = NULL;
	return err;
}

static int cq_busy(void)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_qp *qp = pair_qp(&a, &conn);
	int err = sim_verbs.destroy_cq(a.cq);

	assert_int_equal(sim_verbs.destroy_qp(qp), 0);
	return err;
}

static int channel_busy(void)
{
	return sim_verbs.destroy_comp_channel(a.channel);
}

static int pd_busy(void)
{
	return sim_verbs.dealloc_pd(a.pd);
}

static int rereg(void)
{
	errno = 0;
	assert_int_equal(sim_verbs.rereg_mr(a.mr, 0, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	return errno;
}

static int query_port(void)
{
	struct ibv_port_attr attr;

	return sim_verbs.query_port(a.context, 9, &attr);
}

static int query_gid(void)
{
	union ibv_gid gid;

	return sim_verbs.query_gid(a.context, 1, -1, &gid) ? errno : 0;
}

static int query_pkey(void)
{
	__be16 pkey;

	return sim_verbs.query_pkey(a.context, 1, 1, &pkey) ? errno : 0;
}

static int find_pkey(void)
{
	return sim_verbs.get_pkey_index(a.context, 1, 7) < 0 ? errno : 0;
}

/* --- Extended calls. --- */

static int create_ex(struct ibv_qp_init_attr_ex attr)
{
	return made(verbs_get_ctx(a.context)->create_qp_ex(a.context, &attr));
}

static struct ibv_qp_init_attr_ex ex_attr(void)
{
	return (struct ibv_qp_init_attr_ex){
		.send_cq = a.cq, .recv_cq = a.cq, .qp_type = IBV_QPT_RC, .pd = a.pd,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
}

static int ex_wide(void)
{
	struct ibv_qp_init_attr_ex attr = ex_attr();

	attr.cap.max_send_sge = 1000;
	return create_ex(attr);
}

static int ex_mask(void)
{
	struct ibv_qp_init_attr_ex attr = ex_attr();

	attr.comp_mask |= IBV_QP_INIT_ATTR_RX_HASH;
	return create_ex(attr);
}

static int ex_ops(void)
{
	struct ibv_qp_init_attr_ex attr = ex_attr();

	attr.send_ops_flags = IBV_QP_EX_WITH_TSO;
	return create_ex(attr);
}

static int cq_ex(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 0 };

	return made(verbs_get_ctx(a.context)->create_cq_ex(a.context, &attr));
}

static int cq_ex_flags(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 1, .wc_flags = 1ull << 60 };

	return made(verbs_get_ctx(a.context)->create_cq_ex(a.context, &attr));
}

static int srq_ex(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 0 }, .comp_mask = IBV_SRQ_INIT_ATTR_PD, .pd = a.pd,
	};

	return made(verbs_get_ctx(a.context)->create_srq_ex(a.context, &attr));
}

static int srq_ex_tags(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE, .pd = a.pd,
		.srq_type = IBV_SRQT_TM,
	};

	return made(verbs_get_ctx(a.context)->create_srq_ex(a.context, &attr));
}

static int xrc_without_file(void)
{
	struct ibv_xrcd_init_attr attr = { .comp_mask = 0 };

	return made(verbs_get_ctx(a.context)->open_xrcd(a.context, &attr));
}

static int device_ex(void)
{
	struct ibv_query_device_ex_input input = { .comp_mask = 1 };
	struct ibv_device_attr_ex attr;

	return verbs_get_ctx(a.context)->query_device_ex(a.context, &input, &attr, sizeof(attr));
}

static void refused_calls_are_told(void **state)
{
	static const struct pair_refusal cases[] = {
		{ qp_without_cq, EINVAL, "ibv_create_qp", "recv_cq is NULL" },
		{ qp_too_long, EINVAL, "ibv_create_qp", "max_send_wr is 10000000, the device" },
		{ qp_too_wide, EINVAL, "ibv_create_qp", "max_recv_sge is 10000, the device has" },
		{ qp_unknown, EINVAL, "ibv_create_qp", "99 is no type of QP" },
		{ qp_raw, EOPNOTSUPP, "ibv_create_qp", "the simulator has no QPs of type RAW_PACKET" },
		{ qps_of_another_device, EINVAL, "ibv_create_qp", "send_cq is of another context" },
		{ cq_too_long, EINVAL, "ibv_create_cq", "cqe is 0" },
		{ cq_vector, EINVAL, "ibv_create_cq", "comp_vector is 10000" },
		{ cq_channel, EINVAL, "ibv_create_cq", "the channel is of another context" },
		{ cq_resize, EINVAL, "ibv_resize_cq", "cqe is 0" },
		{ srq_too_long, EINVAL, "ibv_create_srq", "max_wr is 100000000" },
		{ srq_too_wide, EINVAL, "ibv_create_srq", "max_sge is 10000" },
		{ srq_limit, EINVAL, "ibv_modify_srq", "srq_limit is 1000000" },
		{ srq_attribute, EINVAL, "ibv_modify_srq", "attributes 0x400" },
		{ mr_access, EINVAL, "ibv_reg_mr", "access 0x2: who may write from afar" },
		{ mr_nowhere, EFAULT, "ibv_reg_mr", "10 bytes at 0x1000" },
		{ ah_port, EINVAL, "ibv_create_ah", "port_num is 77, the device has 1" },
		{ ah_gid, EINVAL, "ibv_create_ah", "sgid_index is 99, port 1 has " },
		{ ah_lid, EINVAL, "ibv_create_ah", "is_global is 0, and Ethernet has no LIDs" },
		{ move_too_far, EINVAL, "ibv_modify_qp", "it cannot go from RESET to RTS" },
		{ move_incomplete, EINVAL, "ibv_modify_qp",
		  "RESET to INIT needs the attributes ACCESS_FLAGS, PKEY_INDEX, too" },
		{ move_with_more, EINVAL, "ibv_modify_qp",
		  "RESET to ERR does not take the attributes PORT" },
		{ move_to_nowhere, EINVAL, "ibv_modify_qp", "port_num is 77, and can be 1 to 1" },
		{ move_without_grh, EINVAL, "ibv_modify_qp", "ah_attr: is_global is 0, and Ethernet" },
		{ attach_rc, EINVAL, "ibv_attach_mcast", "QP " },
		{ attach_to_host, EINVAL, "ibv_attach_mcast", "the GID is not that of a group" },
		{ detach_rc, EINVAL, "ibv_detach_mcast", "QP " },
		{ detach_stranger, EINVAL, "ibv_detach_mcast", "is not attached to that group" },
		{ alloc_mw, EINVAL, "ibv_alloc_mw", "9 is no type" },
		{ srq_busy, EBUSY, "ibv_destroy_srq", "QPs that receive from it are left: 1" },
		{ cq_busy, EBUSY, "ibv_destroy_cq", "queues of QPs" },
		{ channel_busy, EBUSY, "ibv_destroy_comp_channel", "CQs on it are left: 1" },
		{ pd_busy, EBUSY, "ibv_dealloc_pd", "MRs, QPs" },
		{ rereg, EINVAL, "ibv_rereg_mr", "flags 0x0" },
		{ query_port, EINVAL, "ibv_query_port", "port 9, the device has 1" },
		{ query_gid, EINVAL, "ibv_query_gid", "index -1" },
		{ query_pkey, EINVAL, "ibv_query_pkey", "index 1, port 1 has 1" },
		{ find_pkey, EINVAL, "ibv_get_pkey_index", "port 1 has the P_Key 0xffff only" },
		{ ex_wide, EINVAL, "ibv_create_qp_ex", "max_send_sge is 1000" },
		{ ex_mask, EOPNOTSUPP, "ibv_create_qp_ex", "the simulator does not know" },
		{ ex_ops, EOPNOTSUPP, "ibv_create_qp_ex", "the QP has not all of send_ops_flags" },
		{ cq_ex, EINVAL, "ibv_create_cq_ex", "cqe is 0" },
		{ cq_ex_flags, EOPNOTSUPP, "ibv_create_cq_ex",
		  "the device has not all of wc_flags" },
		{ srq_ex, EINVAL, "ibv_create_srq_ex", "max_wr is 0" },
		{ srq_ex_tags, EOPNOTSUPP, "ibv_create_srq_ex", "the simulator has basic" },
		{ xrc_without_file, EINVAL, "ibv_open_xrcd", "it needs fd and oflags" },
		{ device_ex, EINVAL, "ibv_query_device_ex", "comp_mask of the input" },
	};

	(void)state;
	pair_open(PAIR_ROCE);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		pair_refused(&cases[i]);
	pair_close();
}

static int null_region(void)
{
	return made(ibv_alloc_null_mr(a.pd));
}

static int flow_counters(void)
{
	struct ibv_counters_init_attr attr = { 0 };

	return made(ibv_create_counters(a.context, &attr));
}

static int flow(void)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_qp *qp = pair_qp(&a, &conn);
	struct ibv_flow_attr attr = { .port = 1 };
	int err = made(ibv_create_flow(qp, &attr));

	assert_int_equal(sim_verbs.destroy_qp(qp), 0);
	return err;
}

static int ipsec(void)
{
	return made(ibv_create_flow_action_esp(a.context, &(struct ibv_flow_action_esp_attr){ 0 }));
}

static int work_queue(void)
{
	return made(ibv_create_wq(a.context, &(struct ibv_wq_init_attr){ .pd = a.pd, .cq = a.cq }));
}

static int indirection(void)
{
	return made(ibv_create_rwq_ind_table(a.context, &(struct ibv_rwq_ind_table_init_attr){ 0 }));
}

static int moderation(void)
{
	return ibv_modify_cq(a.cq, &(struct ibv_modify_cq_attr){ .attr_mask = IBV_CQ_ATTR_MODERATE });
}

static int rate_limit(void)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_qp *qp = pair_qp(&a, &conn);
	int err = ibv_modify_qp_rate_limit(qp, &(struct ibv_qp_rate_limit_attr){ .rate_limit = 1 });

	assert_int_equal(sim_verbs.destroy_qp(qp), 0);
	return err;
}

static int tag_matching(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_srq *srq = sim_verbs.create_srq(a.pd, &attr);
	struct ibv_ops_wr wr = { .opcode = IBV_WR_TAG_SYNC }, *bad = NULL;
	int err = ibv_post_srq_ops(srq, &wr, &bad);

	assert_ptr_equal(bad, &wr);
	assert_int_equal(sim_verbs.destroy_srq(srq), 0);
	return err;
}

static void absent_calls_are_told(void **state)
{
	static const struct {
		int (*call)(void);
		const char *text;
	} cases[] = {
		{ null_region, "ibv_alloc_null_mr refused: simulated devices have no null regions" },
		{ flow_counters, "ibv_create_counters refused: simulated devices have no counters" },
		{ flow, "ibv_create_flow refused: simulated devices have no raw packets" },
		{ ipsec, "ibv_create_flow_action_esp refused: simulated devices have no IPsec" },
		{ work_queue, "ibv_create_wq refused: simulated devices have no raw packets" },
		{ indirection, "ibv_create_rwq_ind_table refused: simulated devices have no raw" },
		{ moderation, "ibv_modify_cq refused: simulated devices have no moderation" },
		{ rate_limit, "ibv_modify_qp_rate_limit refused: simulated devices have no rate" },
		{ tag_matching, "ibv_post_srq_ops refused: simulated devices have no tag matching" },
	};

	(void)state;
	pair_open(PAIR_ROCE);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned int before = pair_warnings;

		print_message("case %zu\n", i);
		assert_int_equal(cases[i].call(), EOPNOTSUPP);
		assert_int_equal(pair_warnings, before + 1);
		assert_true(pair_warned(cases[i].text));
	}
	pair_close();
}

static void iwarp_tells_its_own(void **state)
{
	static const struct pair_refusal cases[] = {
		{ ah_port, EOPNOTSUPP, "ibv_create_ah", "iWARP has no datagrams" },
		{ move_too_far, EINVAL, "ibv_modify_qp",
		  "the connection manager brings a QP of iWARP to RTS" },
	};

	(void)state;
	pair_open(PAIR_IWARP);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		pair_refused(&cases[i]);
	pair_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_calls_are_told),
		cmocka_unit_test(absent_calls_are_told),
		cmocka_unit_test(iwarp_tells_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
