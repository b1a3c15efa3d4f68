/* SPDX-License-Identifier: BSD-2-Clause */
/* A device that plays a profile enforces what it shows: the limit is allowed, one more is refused. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>

#include "providers/soft/fabric/profile.h"
#include "nic_pair.h"

#define QKEY 0x11112222u

/* An adapter that can do what the simulator can, and more. */
static const struct sim_profile adapter = {
	.name = "card_0",
	.attr = {
		.max_mr_size = 1 << 20, .max_qp = 100, .max_qp_wr = 100, .max_sge = 30,
		.max_sge_rd = 30, .max_cq = 100, .max_cqe = 1000, .max_mr = 100, .max_pd = 100,
		.max_qp_rd_atom = 16, .max_qp_init_rd_atom = 16, .max_res_rd_atom = 1600,
		.atomic_cap = IBV_ATOMIC_HCA, .max_mw = 100, .max_mcast_grp = 100,
		.max_mcast_qp_attach = 100, .max_total_mcast_qp_attach = 10000, .max_ah = 100,
		.max_srq = 100, .max_srq_wr = 100, .max_srq_sge = 30, .max_pkeys = 4,
		.vendor_id = 0x2c9, .device_cap_flags = ~0u, .max_raw_ethy_qp = 100,
		.max_raw_ipv6_qp = 100, .max_ee = 100, .max_rdd = 100,
	},
	.num_comp_vectors = 3,
	.num_ports = 1,
	.ports[0] = {
		.max_mtu = IBV_MTU_4096, .active_mtu = IBV_MTU_1024, .max_msg_sz = 20000,
		.gid_tbl_len = 8, .pkey_tbl_len = 4,
	},
};

static struct sim_profile profile;

static void play(struct pair_side *side)
{
	sim_lock();
	assert_int_equal(sim_device_set_profile(side->device, &profile), 0);
	sim_unlock();
}

static int result(const void *object)
{
	return object ? 0 : errno;
}

/* --- Calls.  Each returns 0 or an errno; n says which. --- */

static int window(int type)
{
	return result(ibv_alloc_mw(a.pd, (enum ibv_mw_type)type));
}

static int handle(int n)
{
	struct ibv_ah_attr attr = { .port_num = 1, .is_global = 1, .grh.sgid_index = 3 };

	(void)n;
	return result(sim_verbs.create_ah(a.pd, &attr));
}

static int vector(int n)
{
	return result(sim_verbs.create_cq(a.context, 1, NULL, NULL, n));
}

static int region(int length)
{
	return result(sim_verbs.reg_mr(a.pd, a.buf, (size_t)length, (uintptr_t)a.buf, 0));
}

static int shared(int max_wr)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = (uint32_t)max_wr, .max_sge = 1 } };

	return result(sim_verbs.create_srq(a.pd, &attr));
}

static int shared_ex(int n)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 1, .max_sge = 1 }, .comp_mask = IBV_SRQ_INIT_ATTR_PD, .pd = a.pd,
	};

	(void)n;
	return result(verbs_get_ctx(a.context)->create_srq_ex(a.context, &attr));
}

static int resize(int max_wr)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_srq_attr attr = { .max_wr = (uint32_t)max_wr };

	return sim_verbs.modify_srq(sim_verbs.create_srq(a.pd, &init), &attr, IBV_SRQ_MAX_WR);
}

static int domain(int n)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1,
		.oflags = O_CREAT,
	};

	(void)n;
	return result(ibv_open_xrcd(a.context, &attr));
}

static int queue_pair(int type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = a.cq, .recv_cq = a.cq, .qp_type = (enum ibv_qp_type)type,
	};

	return result(sim_verbs.create_qp(a.pd, &attr));
}

static int extended(int ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = a.cq, .recv_cq = a.cq, .qp_type = IBV_QPT_RC, .pd = a.pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = (uint64_t)ops,
	};

	return result(verbs_get_ctx(a.context)->create_qp_ex(a.context, &attr));
}

/* Of a connected QP. */
static int post(enum ibv_wr_opcode opcode, int num_sge)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_sge sge[8];
	struct ibv_send_wr wr = {
		.opcode = opcode, .sg_list = sge, .num_sge = num_sge,
		.wr.atomic = { .remote_addr = (uintptr_t)b.buf, .rkey = b.mr->rkey },
	};

	for (int i = 0; i < num_sge; i++)
		sge[i] = pair_sge(&a, 0, 8);
	if (!a.qp)
		pair_connect(&conn);
	return pair_post(&a, &wr);
}

static int read_into(int num_sge)
{
	return post(IBV_WR_RDMA_READ, num_sge);
}

static int operation(int opcode)
{
	return post((enum ibv_wr_opcode)opcode, opcode != IBV_WR_LOCAL_INV);
}

static int pkey_index(int index)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .pkey_index = (uint16_t)index,
	};
	struct pair_conn conn = pair_defaults();

	return sim_verbs.modify_qp(pair_qp(&a, &conn), &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
				   IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int query_pkey(int index)
{
	__be16 pkey;

	if (sim_verbs.query_pkey(a.context, 1, index, &pkey))
		return errno;
	assert_int_equal(ntohs(pkey), index ? 0 : 0xffff);
	return 0;
}

/* 0 is in the table's second entry. */
static int find_pkey(int pkey)
{
	int index = sim_verbs.get_pkey_index(a.context, 1, htons((uint16_t)pkey));

	assert_true(index == -1 || index == !pkey);
	return index < 0 ? errno : 0;
}

static int query_gid(int index)
{
	union ibv_gid gid;

	return sim_verbs.query_gid(a.context, 1, index, &gid) ? errno : 0;
}

static int depths(int responder, int initiator)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_qp *qp = pair_qp(&a, &conn);
	int err;

	conn.max_dest_rd_atomic = (uint8_t)responder;
	conn.max_rd_atomic = (uint8_t)initiator;
	assert_int_equal(pair_to_init(&a, qp, &conn), 0);
	err = pair_to_rtr(&a, qp, &b, 1000, &conn);
	return err ? err : pair_to_rts(qp, &conn);
}

static int responder(int depth)
{
	return depths(depth, 1);
}

static int initiator(int depth)
{
	return depths(1, depth);
}

/* QPs, each once in group 0, 1, ... */
static int attach_to(int group)
{
	union ibv_gid mgid = { .raw = { [10] = 0xff, 0xff, 239, 1, 1, (uint8_t)group } };

	if (!a.qp)
		a.qp = pair_ud_qp(&a, QKEY);
	return sim_verbs.attach_mcast(a.qp, &mgid, 0);
}

static int attach_other(int n)
{
	a.qp = NULL;
	return attach_to(n);
}

/* --- Limits. --- */

static const struct row {
	const char *name;
	size_t offset, size;		/* of what is set to value, in struct sim_profile */
	uint64_t value;
	int (*call)(int n);
	int accepted;			/* with this n once; NEVER: not at all */
	int refused;			/* with this; NEVER: not at all */
	int err;
} rows[] = {
#define NEVER (-1)
#define OF(member) #member, offsetof(struct sim_profile, member), sizeof(profile.member)
	{ OF(attr.max_sge_rd), 2, read_into, 2, 3, EINVAL },
	{ OF(attr.max_mw), 1, window, IBV_MW_TYPE_1, IBV_MW_TYPE_1, ENOMEM },
	{ OF(attr.max_mw), 0, window, IBV_MW_TYPE_2, NEVER, 0 },
	{ OF(attr.device_cap_flags), IBV_DEVICE_MEM_WINDOW, window, 1, 2, EOPNOTSUPP },
	{ OF(attr.device_cap_flags), IBV_DEVICE_MEM_WINDOW_TYPE_2B, window, 2, 1, EOPNOTSUPP },
	{ OF(attr.device_cap_flags), 0, extended, IBV_QP_EX_WITH_SEND, IBV_QP_EX_WITH_BIND_MW,
	  EOPNOTSUPP },
	{ OF(attr.device_cap_flags), 0, operation, IBV_WR_SEND, IBV_WR_SEND_WITH_INV, EINVAL },
	{ OF(attr.device_cap_flags), 0, operation, IBV_WR_SEND, IBV_WR_LOCAL_INV, EINVAL },
	{ OF(attr.atomic_cap), IBV_ATOMIC_NONE, operation, IBV_WR_SEND, IBV_WR_ATOMIC_FETCH_AND_ADD,
	  EINVAL },
	{ OF(attr.atomic_cap), IBV_ATOMIC_NONE, operation, IBV_WR_SEND, IBV_WR_ATOMIC_CMP_AND_SWP,
	  EINVAL },
	{ OF(attr.atomic_cap), IBV_ATOMIC_NONE, extended, IBV_QP_EX_WITH_SEND,
	  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, EOPNOTSUPP },
	{ OF(attr.max_ah), 1, handle, 0, 0, ENOMEM },
	{ OF(attr.max_ah), 0, handle, 0, NEVER, 0 },
	{ OF(attr.max_mr_size), 100, region, 100, 101, EINVAL },
	{ OF(attr.max_srq), 0, shared, NEVER, 1, EOPNOTSUPP },
	{ OF(attr.max_srq), 0, shared_ex, NEVER, 1, EOPNOTSUPP },
	{ OF(attr.max_srq), 0, domain, NEVER, 1, EOPNOTSUPP },
	{ OF(attr.max_srq), 1, shared, 1, 1, ENOMEM },
	{ OF(attr.max_srq_wr), 7, shared, 7, 8, EINVAL },
	{ OF(attr.max_srq_wr), 7, resize, 7, 8, EINVAL },
	{ OF(attr.device_cap_flags), IBV_DEVICE_XRC, domain, 0, NEVER, 0 },
	{ OF(attr.device_cap_flags), IBV_DEVICE_XRC, resize, NEVER, 1, EINVAL },
	{ OF(attr.device_cap_flags), ~(uint32_t)IBV_DEVICE_XRC, domain, NEVER, 0, EOPNOTSUPP },
	{ OF(attr.device_cap_flags), IBV_DEVICE_XRC, queue_pair, IBV_QPT_XRC_SEND, NEVER, 0 },
	{ OF(attr.device_cap_flags), 0, queue_pair, IBV_QPT_UC, IBV_QPT_XRC_SEND, EOPNOTSUPP },
	{ OF(attr.max_qp_rd_atom), 5, responder, 5, 6, EINVAL },
	{ OF(attr.max_qp_init_rd_atom), 5, initiator, 5, 6, EINVAL },
	{ OF(attr.max_mcast_grp), 1, attach_to, 0, 1, ENOMEM },
	{ OF(attr.max_mcast_qp_attach), 1, attach_to, 0, NEVER, 0 },
	{ OF(attr.max_mcast_qp_attach), 1, attach_other, 0, 0, ENOMEM },
	{ OF(attr.max_total_mcast_qp_attach), 1, attach_to, 0, 1, ENOMEM },
	{ OF(attr.max_mcast_grp), 0, attach_to, NEVER, 1, EOPNOTSUPP },
	{ OF(attr.max_mcast_qp_attach), 0, attach_to, NEVER, 1, EOPNOTSUPP },
	{ OF(attr.max_total_mcast_qp_attach), 0, attach_to, NEVER, 1, EOPNOTSUPP },
	{ OF(num_comp_vectors), 3, vector, 2, 3, EINVAL },
	{ OF(ports[0].gid_tbl_len), 8, query_gid, 7, 8, EINVAL },
	{ OF(ports[0].pkey_tbl_len), 4, query_pkey, 3, 4, EINVAL },
	{ OF(ports[0].pkey_tbl_len), 4, pkey_index, 3, 4, EINVAL },
	{ OF(ports[0].pkey_tbl_len), 2, find_pkey, 0, 0x7fff, EINVAL },
	{ OF(ports[0].pkey_tbl_len), 1, find_pkey, 0xffff, 0, EINVAL },
#undef OF
};

static void once(const struct row *row, int n, int err)
{
	unsigned int before = pair_warnings;
	int got;

	errno = 0;
	got = row->call(n);
	if (got != err)
		fail_msg("%s %llu, %d: %s in place of %s: %s", row->name,
			 (unsigned long long)row->value, n, strerror(got),
			 strerror(err), pair_log());
	if (pair_warnings != before + !!err)
		fail_msg("%s %llu, %d: %u lines: %s", row->name,
			 (unsigned long long)row->value, n, pair_warnings - before,
			 pair_log());
}

static void the_limit_and_one_more(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		profile = adapter;
		memcpy((char *)&profile + rows[i].offset, &rows[i].value, rows[i].size);
		pair_open(PAIR_ROCE);
		play(&a);
		if (rows[i].accepted != NEVER)
			once(&rows[i], rows[i].accepted, 0);
		if (rows[i].refused != NEVER)
			once(&rows[i], rows[i].refused, rows[i].err);
		pair_abandon();
	}
}

static void open_with(struct pair_side *side, void (*change)(struct sim_profile *profile))
{
	profile = adapter;
	if (change)
		change(&profile);
	pair_open(PAIR_ROCE);
	play(side);
}

static void messages_are_so_long(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };
	struct pair_conn conn = pair_defaults();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
		open_with(&a, NULL);
		pair_connect(&conn);
		assert_int_equal(pair_recv(&b, 9, 0, 30000), 0);
		assert_int_equal(pair_rdma(&a, opcodes[i], 1, 0, 20000, 0), 0);
		pair_expect(&a, 1, IBV_WC_SUCCESS);
		assert_int_equal(pair_rdma(&a, opcodes[i], 2, 0, 20001, 0), 0);
		pair_expect(&a, 2, IBV_WC_LOC_LEN_ERR);
		assert_true(pair_warned("20001 bytes are more than a message may have (20000)"));
		pair_abandon();
	}
}

static void without_atomics(struct sim_profile *changed)
{
	changed->attr.atomic_cap = IBV_ATOMIC_NONE;
}

static void the_responder_has_no_atomics(void **state)
{
	struct pair_conn conn = pair_defaults();

	(void)state;
	open_with(&b, without_atomics);
	pair_connect(&conn);
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_READ, 1, 0, 8, 0), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	assert_int_equal(pair_rdma(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0, 8, 0), 0);
	pair_expect(&a, 2, IBV_WC_REM_INV_REQ_ERR);
	pair_async(&b, IBV_EVENT_QP_REQ_ERR);
	pair_close();
}

/* Neither what A sends arrives, nor what B sends. */
static void an_empty_pkey_reaches_nobody(void **state)
{
	struct ibv_qp_attr attr = { .pkey_index = 3 };
	struct pair_conn conn = pair_defaults();

	(void)state;
	conn.retry_cnt = 1;
	open_with(&a, NULL);
	a.qp = pair_qp(&a, &conn);
	b.qp = pair_qp(&b, &conn);
	assert_int_equal(pair_to_init(&a, a.qp, &conn), 0);
	assert_int_equal(pair_to_init(&b, b.qp, &conn), 0);
	assert_int_equal(sim_verbs.modify_qp(a.qp, &attr, IBV_QP_PKEY_INDEX), 0);
	assert_int_equal(pair_to_rtr(&a, a.qp, &b, b.qp->qp_num, &conn), 0);
	assert_int_equal(pair_to_rtr(&b, b.qp, &a, a.qp->qp_num, &conn), 0);
	assert_int_equal(pair_to_rts(a.qp, &conn), 0);
	assert_int_equal(pair_to_rts(b.qp, &conn), 0);
	assert_int_equal(pair_recv(&a, 8, 0, 100), 0);
	assert_int_equal(pair_recv(&b, 9, 0, 100), 0);
	assert_int_equal(pair_send(&a, 1, 0, 100), 0);
	assert_int_equal(pair_send(&b, 2, 0, 100), 0);
	pair_expect(&a, 1, IBV_WC_RETRY_EXC_ERR);
	pair_expect(&b, 2, IBV_WC_RETRY_EXC_ERR);
	pair_expect(&a, 8, IBV_WC_WR_FLUSH_ERR);
	pair_expect(&b, 9, IBV_WC_WR_FLUSH_ERR);
	pair_close();
}

static struct ibv_qp *ud_qp(uint16_t pkey_index)
{
	struct ibv_qp_attr attr = { .pkey_index = pkey_index };
	struct ibv_qp *qp = pair_ud_qp(&a, QKEY);

	assert_int_equal(pair_modify(qp, IBV_QPS_SQD), 0);
	assert_int_equal(sim_verbs.modify_qp(qp, &attr, IBV_QP_PKEY_INDEX), 0);
	assert_int_equal(pair_modify(qp, IBV_QPS_RTS), 0);
	return qp;
}

static void datagrams_need_a_pkey(void **state)
{
	static const struct { uint16_t sender, receiver; } indices[] = { { 0, 0 }, { 1, 0 }, { 0, 1 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(indices); i++) {
		struct ibv_ah_attr to = { .port_num = 1, .is_global = 1, .grh.sgid_index = 3 };
		struct ibv_sge sge;
		struct ibv_send_wr wr = {
			.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		};

		open_with(&a, NULL);
		sge = pair_sge(&a, 0, 8);
		to.grh.dgid = a.device->ports[0].gids[3].gid;
		a.qp = ud_qp(indices[i].receiver);
		assert_int_equal(pair_recv(&a, 2, 100, 100), 0);
		wr.wr.ud.ah = sim_verbs.create_ah(a.pd, &to);
		wr.wr.ud.remote_qpn = a.qp->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
		a.qp = ud_qp(indices[i].sender);
		assert_int_equal(pair_post(&a, &wr), 0);
		pair_expect(&a, 1, IBV_WC_SUCCESS);
		if (i)
			pair_none(&a, SIM_MS(1));
		else
			pair_expect(&a, 2, IBV_WC_SUCCESS);
		pair_abandon();
	}
}

static void what_is_not_simulated_is_0(void **state)
{
	struct ibv_device_attr_ex ex, only = { 0 };

	(void)state;
	open_with(&a, NULL);
	memset(&ex, 0xff, sizeof(ex));
	assert_int_equal(verbs_get_ctx(a.context)->query_device_ex(a.context, NULL, &ex, sizeof(ex)), 0);
	assert_int_equal(ex.orig_attr.max_raw_ethy_qp + ex.orig_attr.max_raw_ipv6_qp, 0);
	assert_int_equal(ex.orig_attr.max_ee + ex.orig_attr.max_rdd, 0);
	assert_int_equal(ex.orig_attr.max_mw, 100);
	assert_int_equal(ex.orig_attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING, 0);
	/* But for what every device has. */
	only.orig_attr = ex.orig_attr;
	only.device_cap_flags_ex = ex.orig_attr.device_cap_flags;
	only.phys_port_cnt_ex = 1;
	only.completion_timestamp_mask = ex.completion_timestamp_mask;
	only.hca_core_clock = ex.hca_core_clock;
	only.max_dm_size = ex.max_dm_size;
	assert_memory_equal(&ex, &only, sizeof(ex));
	pair_close();
}

/* As the kernel: the member has 8 bits, and newer speeds are the fastest of those. */
static void speeds_beyond_8_bits(void **state)
{
	static const struct { uint32_t speed; uint8_t shown; } cases[] = {
		{ 64, 64 }, { 128, 128 }, { 256, 128 }, { 0, 32 },
	};
	struct ibv_port_attr attr;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		profile = adapter;
		profile.ports[0].active_speed = cases[i].speed;
		pair_open(PAIR_ROCE);
		play(&a);
		assert_int_equal(sim_verbs.query_port(a.context, 1, &attr), 0);
		assert_int_equal(attr.active_speed, cases[i].shown);
		pair_close();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_limit_and_one_more),
		cmocka_unit_test(messages_are_so_long),
		cmocka_unit_test(the_responder_has_no_atomics),
		cmocka_unit_test(an_empty_pkey_reaches_nobody),
		cmocka_unit_test(datagrams_need_a_pkey),
		cmocka_unit_test(what_is_not_simulated_is_0),
		cmocka_unit_test(speeds_beyond_8_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
