/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_modify_qp(): every pair of states with every single attribute given or
 * left out, for RC, UC and UD; values out of range; iWARP.
 */
#include "config.h"

#include <errno.h>

#include "providers/soft/nic/qp.h"
#include "nic_pair.h"

#define RESET IBV_QPS_RESET
#define INIT IBV_QPS_INIT
#define RTR IBV_QPS_RTR
#define RTS IBV_QPS_RTS
#define SQD IBV_QPS_SQD
#define SQE IBV_QPS_SQE
#define ERR IBV_QPS_ERR

/* From the tables of ibv_modify_qp(3) and IBTA vol. 1, table 91. */
struct legal {
	enum ibv_qp_type type;
	enum ibv_qp_state from, to;
	int required, optional;
};

static const struct legal legal[] = {
	{ IBV_QPT_RC, RESET, INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0 },
	{ IBV_QPT_RC, INIT, INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS },
	{ IBV_QPT_RC, INIT, RTR,
	  IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	  IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH },
	{ IBV_QPT_RC, RTR, RTS,
	  IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	  IBV_QP_MAX_QP_RD_ATOMIC,
	  IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH |
	  IBV_QP_PATH_MIG_STATE },
	{ IBV_QPT_RC, RTS, RTS, 0,
	  IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH |
	  IBV_QP_PATH_MIG_STATE },
	{ IBV_QPT_RC, RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPT_RC, SQD, RTS, 0,
	  IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH |
	  IBV_QP_PATH_MIG_STATE },
	{ IBV_QPT_RC, SQD, SQD, 0,
	  IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	  IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ALT_PATH |
	  IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE },
	{ IBV_QPT_UC, RESET, INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0 },
	{ IBV_QPT_UC, INIT, INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS },
	{ IBV_QPT_UC, INIT, RTR,
	  IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	  IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH },
	{ IBV_QPT_UC, RTR, RTS, IBV_QP_SQ_PSN,
	  IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE },
	{ IBV_QPT_UC, RTS, RTS, 0,
	  IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE },
	{ IBV_QPT_UC, RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPT_UC, SQD, RTS, 0,
	  IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE },
	{ IBV_QPT_UC, SQD, SQD, 0,
	  IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
	  IBV_QP_PATH_MIG_STATE },
	{ IBV_QPT_UC, SQE, RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS },
	{ IBV_QPT_UD, RESET, INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0 },
	{ IBV_QPT_UD, INIT, INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY },
	{ IBV_QPT_UD, INIT, RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPT_UD, RTR, RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPT_UD, RTS, RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPT_UD, RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPT_UD, SQD, RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPT_UD, SQD, SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPT_UD, SQE, RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
};

/* Values that are right for every attribute. */
static struct ibv_qp_attr good_attr(enum ibv_qp_state from, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = {
		.qp_state = to,
		.cur_qp_state = from,
		.path_mtu = IBV_MTU_1024,
		.path_mig_state = IBV_MIG_REARM,
		.qkey = 0x1234,
		.rq_psn = 5,
		.sq_psn = 6,
		.dest_qp_num = 7,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ,
		.max_rd_atomic = 3,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 8,
		.port_num = 1,
		.timeout = 9,
		.retry_cnt = 2,
		.rnr_retry = 1,
		.alt_port_num = 1,
		.alt_timeout = 10,
		.en_sqd_async_notify = 1,
		.ah_attr = { .is_global = 1, .port_num = 1 },
	};

	attr.ah_attr.grh.dgid = b.device->ports[0].gids[0].gid;
	return attr;
}

static struct ibv_qp *new_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = a.cq, .recv_cq = a.cq, .qp_type = type,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};
	struct ibv_qp *qp = sim_verbs.create_qp(a.pd, &init);

	assert_non_null(qp);
	return qp;
}

static int step(struct ibv_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = good_attr(from, to);

	return sim_verbs.modify_qp(qp, &attr, mask);
}

/* A datagram with a wrong key stops the send queue. */
static void to_sqe(struct ibv_qp *qp)
{
	struct ibv_ah_attr ah_attr = good_attr(RTS, RTS).ah_attr;
	struct ibv_ah *ah = sim_verbs.create_ah(a.pd, &ah_attr);
	struct ibv_sge sge = { .addr = (uintptr_t)a.buf, .length = 1, .lkey = 1 };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .wr.ud = { .ah = ah },
	}, *bad;
	struct ibv_wc wc;

	assert_non_null(ah);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(ibv_poll_cq(a.cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(sim_verbs.destroy_ah(ah), 0);
}

static const struct legal *find(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to)
{
	for (size_t i = 0; i < ARRAY_SIZE(legal); i++)
		if (legal[i].type == type && legal[i].from == from && legal[i].to == to)
			return &legal[i];
	return NULL;
}

static struct ibv_qp *qp_in(enum ibv_qp_type type, enum ibv_qp_state state)
{
	static const enum ibv_qp_state way[] = { RESET, INIT, RTR, RTS, SQD };
	struct ibv_qp *qp = new_qp(type);

	if (state == ERR) {
		assert_int_equal(step(qp, RESET, ERR, IBV_QP_STATE), 0);
		return qp;
	}
	for (size_t i = 1; i < ARRAY_SIZE(way); i++) {
		enum ibv_qp_state at = qp->state;

		if (at == state || (at == RTS && state == SQE))
			break;
		assert_int_equal(step(qp, at, way[i],
				      IBV_QP_STATE | find(type, at, way[i])->required), 0);
	}
	if (state == SQE)
		to_sqe(qp);
	assert_int_equal(pair_state(qp), state);
	return qp;
}

static void try(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask,
		int expected)
{
	struct ibv_qp *qp = qp_in(type, from);
	int err = step(qp, from, to, mask);

	if (err != expected)
		fail_msg("%s: from %d to %d with mask 0x%x: %d instead of %d",
			 type == IBV_QPT_RC ? "RC" : type == IBV_QPT_UC ? "UC" : "UD", from, to,
			 (unsigned int)mask, err, expected);
	assert_int_equal(pair_state(qp), expected ? from : to);
	assert_int_equal(qp->state, expected ? from : to);
	assert_int_equal(sim_verbs.destroy_qp(qp), 0);
}

static void try_legal(const struct legal *l)
{
	int base = IBV_QP_STATE | l->required;

	try(l->type, l->from, l->to, base, 0);
	try(l->type, l->from, l->to, base | l->optional, 0);
	for (unsigned int bit = 1; bit < 27; bit++) {
		int attr = 1 << bit;

		if (l->required & attr)
			try(l->type, l->from, l->to, base & ~attr, EINVAL);
		else
			try(l->type, l->from, l->to, base | attr, l->optional & attr ? 0 : EINVAL);
	}
	/* The state may be left out where it does not change. */
	if (l->from == l->to)
		try(l->type, l->from, l->to, l->optional, 0);
}

static void every_transition_with_every_attribute(void **state)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
	const int everything = (1 << 26) - 1;

	(void)state;
	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		for (enum ibv_qp_state from = RESET; from <= ERR; from++) {
			if (from == SQE && types[t] == IBV_QPT_RC)
				continue;
			for (enum ibv_qp_state to = RESET; to <= IBV_QPS_UNKNOWN; to++) {
				const struct legal *l = find(types[t], from, to);

				if (l) {
					try_legal(l);
				} else if (to == RESET || to == ERR) {
					try(types[t], from, to, IBV_QP_STATE, 0);
					try(types[t], from, to, IBV_QP_STATE | IBV_QP_PORT, EINVAL);
				} else {
					try(types[t], from, to, IBV_QP_STATE, EINVAL);
					try(types[t], from, to, everything, EINVAL);
				}
			}
		}
	}
}

#define BAD(name, member, value) { name, offsetof(struct ibv_qp_attr, member), \
	sizeof(((struct ibv_qp_attr *)0)->member), value }

/* One wrong value in an attribute that is otherwise right. */
static const struct {
	int attr;
	size_t offset, size;
	uint32_t value;
} bad_values[] = {
	BAD(IBV_QP_CUR_STATE, cur_qp_state, IBV_QPS_INIT),
	BAD(IBV_QP_PKEY_INDEX, pkey_index, 1),
	BAD(IBV_QP_PORT, port_num, 0),
	BAD(IBV_QP_PORT, port_num, 2),
	BAD(IBV_QP_ACCESS_FLAGS, qp_access_flags, 1 << 10),
	BAD(IBV_QP_PATH_MTU, path_mtu, 0),
	BAD(IBV_QP_PATH_MTU, path_mtu, 6),
	BAD(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, 129),
	BAD(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic, 129),
	BAD(IBV_QP_MIN_RNR_TIMER, min_rnr_timer, 32),
	BAD(IBV_QP_TIMEOUT, timeout, 32),
	BAD(IBV_QP_RETRY_CNT, retry_cnt, 8),
	BAD(IBV_QP_RNR_RETRY, rnr_retry, 8),
	BAD(IBV_QP_ALT_PATH, alt_port_num, 0),
	BAD(IBV_QP_ALT_PATH, alt_timeout, 32),
	BAD(IBV_QP_ALT_PATH, alt_pkey_index, 1),
	BAD(IBV_QP_PATH_MIG_STATE, path_mig_state, 3),
	BAD(IBV_QP_AV, ah_attr.port_num, 0),
	BAD(IBV_QP_AV, ah_attr.port_num, 2),
	BAD(IBV_QP_AV, ah_attr.grh.sgid_index, 200),
	BAD(IBV_QP_AV, ah_attr.is_global, 0),
};

static void values_out_of_range(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad_values); i++) {
		const struct legal *l = NULL;
		struct ibv_qp_attr attr;
		struct ibv_qp *qp;

		for (size_t n = 0; n < ARRAY_SIZE(legal) && !l; n++)
			if (legal[n].type == IBV_QPT_RC &&
			    (legal[n].required | legal[n].optional) & bad_values[i].attr)
				l = &legal[n];
		assert_non_null(l);
		qp = qp_in(IBV_QPT_RC, l->from);
		attr = good_attr(l->from, l->to);
		memcpy((char *)&attr + bad_values[i].offset, &bad_values[i].value, bad_values[i].size);
		if (sim_verbs.modify_qp(qp, &attr, IBV_QP_STATE | l->required | bad_values[i].attr) !=
		    EINVAL)
			fail_msg("bad value %zu was taken", i);
		assert_int_equal(pair_state(qp), l->from);
		assert_int_equal(sim_verbs.destroy_qp(qp), 0);
	}
}

static void query_gives_what_was_set(void **state)
{
	struct ibv_qp *qp = qp_in(IBV_QPT_RC, RTS);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr, set = good_attr(RTR, RTS);

	(void)state;
	assert_int_equal(sim_verbs.query_qp(qp, &attr, 0, &init), 0);
	assert_int_equal(attr.qp_state, RTS);
	assert_int_equal(attr.cur_qp_state, RTS);
	assert_int_equal(attr.path_mtu, set.path_mtu);
	assert_int_equal(attr.rq_psn, set.rq_psn);
	assert_int_equal(attr.sq_psn, set.sq_psn);
	assert_int_equal(attr.dest_qp_num, set.dest_qp_num);
	assert_int_equal(attr.qp_access_flags, set.qp_access_flags);
	assert_int_equal(attr.max_rd_atomic, set.max_rd_atomic);
	assert_int_equal(attr.max_dest_rd_atomic, set.max_dest_rd_atomic);
	assert_int_equal(attr.min_rnr_timer, set.min_rnr_timer);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.timeout, set.timeout);
	assert_int_equal(attr.retry_cnt, set.retry_cnt);
	assert_int_equal(attr.rnr_retry, set.rnr_retry);
	assert_int_equal(attr.sq_draining, 0);
	assert_memory_equal(&attr.ah_attr, &set.ah_attr, sizeof(set.ah_attr));
	assert_int_equal(attr.cap.max_send_wr, 1);
	assert_int_equal(init.qp_type, IBV_QPT_RC);
	assert_ptr_equal(init.send_cq, a.cq);
	assert_ptr_equal(init.recv_cq, a.cq);
	assert_null(init.srq);
	assert_int_equal(init.cap.max_send_sge, 1);
	assert_int_equal(sim_verbs.destroy_qp(qp), 0);
}

/* The device moves an iWARP QP; what is no end is either nothing or refused. */
static const struct {
	enum ibv_qp_state from, to;
	int err;
	enum ibv_qp_state after;
	unsigned int told;		/* the stream's owner */
} iwarp[] = {
	{ RESET, INIT, 0, INIT, 0 },
	{ RESET, RTR, 0, INIT, 0 },
	{ RESET, RTS, EINVAL, INIT, 0 },
	{ RESET, SQD, 0, INIT, 0 },
	{ RESET, ERR, 0, ERR, 0 },
	{ INIT, INIT, 0, INIT, 0 },
	{ INIT, RTR, 0, INIT, 0 },
	{ INIT, RTS, EINVAL, INIT, 0 },
	{ INIT, SQD, 0, INIT, 0 },
	{ INIT, SQE, EINVAL, INIT, 0 },
	{ INIT, ERR, 0, ERR, 0 },
	{ RTS, INIT, 0, RTS, 0 },
	{ RTS, RTR, 0, RTS, 0 },
	{ RTS, RTS, 0, RTS, 0 },
	{ RTS, SQD, 0, SQD, 1 },
	{ RTS, ERR, 0, ERR, 1 },
	{ RTS, RESET, 0, RTS, 0 },
	{ ERR, SQD, 0, ERR, 0 },
	{ ERR, ERR, 0, ERR, 0 },
	{ ERR, INIT, 0, ERR, 0 },
	{ ERR, RTR, 0, ERR, 0 },
	{ ERR, RTS, 0, ERR, 0 },
	{ ERR, RESET, 0, ERR, 0 },
};

static void iwarp_transitions(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(iwarp); i++) {
		struct pair_conn conn = pair_defaults();
		struct ibv_qp_attr attr = { .qp_state = iwarp[i].to };

		pair_open(PAIR_IWARP);
		if (iwarp[i].from == RTS) {
			pair_connect(&conn);
		} else {
			a.qp = pair_qp(&a, &conn);
			if (iwarp[i].from != RESET)
				assert_int_equal(pair_modify(a.qp, iwarp[i].from), 0);
		}
		if (pair_modify(a.qp, iwarp[i].to) != iwarp[i].err)
			fail_msg("iWARP from %d to %d", iwarp[i].from, iwarp[i].to);
		assert_int_equal(pair_state(a.qp), iwarp[i].after);
		assert_int_equal(pair_closed_by_program, iwarp[i].told);
		assert_int_equal(pair_closed_by_nic, 0);
		/* The connection manager asks for nothing to be changed. */
		assert_int_equal(sim_verbs.modify_qp(a.qp, &attr, 0), 0);
		assert_int_equal(pair_state(a.qp), iwarp[i].after);
		pair_close();
	}
}

/* As with libibverbs: it is what a call named, not what became of the QP since. */
static void the_state_that_is_seen(void **state)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	(void)state;
	pair_connect(&conn);
	assert_int_equal(a.qp->state, IBV_QPS_RTS);
	sim_lock();
	nic_qp_error(nic_real_qp(a.qp), false);
	sim_unlock();
	assert_int_equal(a.qp->state, IBV_QPS_RTS);
	assert_int_equal(sim_verbs.query_qp(a.qp, &attr, IBV_QP_CAP, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	assert_int_equal(a.qp->state, IBV_QPS_RTS);
	assert_int_equal(sim_verbs.query_qp(a.qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(a.qp->state, IBV_QPS_ERR);
	pair_disconnect();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_transition_with_every_attribute, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(values_out_of_range, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(query_gives_what_was_set, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(the_state_that_is_seen, open_roce, close_pair),
		cmocka_unit_test(iwarp_transitions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
