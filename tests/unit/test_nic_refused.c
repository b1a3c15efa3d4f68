/* SPDX-License-Identifier: BSD-2-Clause */
/* A call that the NIC refuses is one line at `warn' that names the call, the reason and the errno. */
#include "config.h"

#include <errno.h>
#include <string.h>

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

static int attach_rc(void)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_qp *qp = pair_qp(&a, &conn);
	union ibv_gid gid = { .raw = { 0xff, 0x0e } };
	int err = sim_verbs.attach_mcast(qp, &gid, 0);

	assert_int_equal(sim_verbs.destroy_qp(qp), 0);
	return err;
}

static void refused_calls_are_told(void **state)
{
	static const struct {
		int (*call)(void);
		int err;
		const char *text;
	} cases[] = {
		{ qp_without_cq, EINVAL, "ibv_create_qp refused: it needs two CQs" },
		{ qp_too_long, EINVAL, "ibv_create_qp refused: max_send_wr is 10000000, the device" },
		{ qp_too_wide, EINVAL, "ibv_create_qp refused: max_recv_sge is 10000, the device has" },
		{ qp_unknown, EINVAL, "ibv_create_qp refused: 99 is no type of QP" },
		{ qp_raw, EOPNOTSUPP, "ibv_create_qp refused: the simulator has no QPs of type 8" },
		{ qps_of_another_device, EINVAL, "ibv_create_qp refused: a CQ is of another context" },
		{ cq_too_long, EINVAL, "ibv_create_cq refused: cqe is 0" },
		{ cq_vector, EINVAL, "ibv_create_cq refused: comp_vector is 10000" },
		{ cq_channel, EINVAL, "ibv_create_cq refused: the channel is of another context" },
		{ cq_resize, EINVAL, "ibv_resize_cq refused: cqe is 0" },
		{ srq_too_long, EINVAL, "ibv_create_srq refused: max_wr is 100000000" },
		{ srq_too_wide, EINVAL, "ibv_create_srq refused: max_sge is 10000" },
		{ srq_limit, EINVAL, "ibv_modify_srq refused: srq_limit is 1000000" },
		{ srq_attribute, EINVAL, "ibv_modify_srq refused: attributes 0x400" },
		{ mr_access, EINVAL, "ibv_reg_mr refused: access 0x2: who may write from afar" },
		{ mr_nowhere, EFAULT, "ibv_reg_mr refused: 10 bytes at 0x1000" },
		{ ah_port, EINVAL, "ibv_create_ah refused: port 77" },
		{ move_too_far, EINVAL, "it cannot go from RESET to RTS" },
		{ move_incomplete, EINVAL, "RESET to INIT needs the attributes 0x18, too" },
		{ move_with_more, EINVAL, "RESET to ERR does not take the attributes 0x20" },
		{ move_to_nowhere, EINVAL, "port_num has no value that fits" },
		{ attach_rc, EINVAL, "ibv_attach_mcast refused: QP " },
	};

	(void)state;
	pair_open(PAIR_ROCE);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned int before = pair_warnings;

		print_message("case %zu\n", i);
		errno = 0;
		assert_int_equal(cases[i].call(), cases[i].err);
		if (pair_warnings != before + 1)
			fail_msg("%u lines: %s", pair_warnings - before, pair_log());
		if (!strstr(pair_log(), cases[i].text) || !strstr(pair_log(), strerror(cases[i].err)))
			fail_msg("%s", pair_log());
		assert_true(pair_warned(cases[i].text));
	}
	pair_close();
}

static void iwarp_tells_its_own(void **state)
{
	static const struct {
		int (*call)(void);
		int err;
		const char *text;
	} cases[] = {
		{ ah_port, EOPNOTSUPP, "ibv_create_ah refused: iWARP has no datagrams" },
		{ move_too_far, EINVAL, "the connection manager brings a QP of iWARP to RTS" },
	};

	(void)state;
	pair_open(PAIR_IWARP);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned int before = pair_warnings;

		assert_int_equal(cases[i].call(), cases[i].err);
		assert_int_equal(pair_warnings, before + 1);
		assert_true(pair_warned(cases[i].text));
	}
	pair_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_calls_are_told),
		cmocka_unit_test(iwarp_tells_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
