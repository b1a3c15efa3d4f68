/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_xrc.c - ids of XRC: the active side is an initiator (XRC_SEND), the passive side a target
 * (XRC_RECV) with an SRQ, whose number the acceptance carries.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#include "steps.h"

#define MESSAGE 16

/* Who makes the target's domain and SRQ, and how the initiator posts. */
enum way { LIBRARYS_DOMAIN, OWN_DOMAIN, BUILT_REQUESTS, NUM_WAYS };

struct ends {
	struct pair pair;		/* its client is the initiator, its server the target */
	struct ibv_xrcd *domain;	/* the program's own; NULL: the library's */
	struct ibv_mr *sent_mr, *got_mr;
	char sent[MESSAGE], got[MESSAGE];
	__be32 srqn;
};

static struct ibv_qp_init_attr_ex initiator_attr(const struct rdma_cm_id *id, bool built)
{
	return (struct ibv_qp_init_attr_ex) {
		.qp_type = IBV_QPT_XRC_SEND, .sq_sig_all = 1, .pd = id->pd,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | (built ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.send_ops_flags = built ? IBV_QP_EX_WITH_SEND : 0,
	};
}

static struct ibv_qp_init_attr_ex target_attr(struct ibv_xrcd *domain)
{
	return (struct ibv_qp_init_attr_ex) {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = domain ? IBV_QP_INIT_ATTR_XRCD : 0,
		.xrcd = domain,
	};
}

static struct rdma_addrinfo *info_of(int flags, enum ibv_qp_type type)
{
	struct rdma_addrinfo hints = {
		.ai_flags = flags | RAI_NUMERICHOST, .ai_port_space = RDMA_PS_IB,
		.ai_qp_type = (int)type,
	};
	struct rdma_addrinfo *info = NULL;
	char port[8];

	(void)snprintf(port, sizeof(port), "%d", SERVER_PORT);
	assert_int_equal(rdma_getaddrinfo(SERVER_ADDRESS, port, &hints, &info), 0);
	return info;
}

/* An end point that reports its events on the channel from now on. */
static struct rdma_cm_id *endpoint(int flags, enum ibv_qp_type type, struct ibv_qp_init_attr *attr,
				   struct rdma_event_channel *channel)
{
	struct rdma_addrinfo *info = info_of(flags, type);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_ep(&id, info, NULL, attr), 0);
	rdma_freeaddrinfo(info);
	assert_int_equal(id->qp_type, type);
	assert_int_equal(rdma_migrate_id(id, channel), 0);
	return id;
}

static struct polycm_sim_counts live(void)
{
	struct polycm_sim_counts counts = { .size = sizeof(counts) };

	assert_int_equal(polycm_sim_live(&counts), 0);
	return counts;
}

/* Both ends up to the CONNECT_REQUEST. */
static void open_ends(struct ends *ends, enum transport transport, bool built)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_send_sge = 1 }, .sq_sig_all = 1,
	};
	struct ibv_qp_init_attr_ex ex;
	struct pair *pair = &ends->pair;
	struct rdma_cm_event *event;

	*ends = (struct ends) { .sent = "to a shared one" };
	pair_open(pair, transport, RDMA_PS_IB);
	assert_int_equal(rdma_destroy_id(pair->listener), 0);
	assert_int_equal(rdma_destroy_id(pair->client), 0);
	pair->listener = endpoint(RAI_PASSIVE, IBV_QPT_XRC_RECV, NULL, pair->server_channel);
	assert_int_equal(rdma_listen(pair->listener, 1), 0);
	pair->client = endpoint(0, IBV_QPT_XRC_SEND, built ? NULL : &attr, pair->client_channel);
	if (built) {
		ex = initiator_attr(pair->client, true);
		assert_int_equal(rdma_create_qp_ex(pair->client, &ex), 0);
	}
	assert_int_equal(pair->client->qp->qp_type, IBV_QPT_XRC_SEND);
	assert_non_null(pair->client->send_cq);
	assert_null(pair->client->recv_cq);
	assert_int_equal(rdma_connect(pair->client, NULL), 0);
	event = pair_expect(pair->server_channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	pair->server = event->id;
	assert_int_equal(pair->server->qp_type, IBV_QPT_XRC_RECV);
	rdma_ack_cm_event(event);
}

static int make_srq(struct ends *ends)
{
	struct rdma_cm_id *id = ends->pair.server;
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq_init_attr_ex ex = {
		.attr = attr.attr, .srq_type = IBV_SRQT_XRC, .xrcd = ends->domain, .pd = id->pd,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_PD,
	};

	return ends->domain ? rdma_create_srq_ex(id, &ex) : rdma_create_srq(id, NULL, &attr);
}

static void open_domain(struct ends *ends)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1,
		.oflags = O_CREAT,
	};

	assert_int_equal(live().xrcds, 0);
	ends->domain = ibv_open_xrcd(ends->pair.server->verbs, &attr);
	assert_non_null(ends->domain);
	assert_int_equal(live().xrcds, 1);
}

/* The target's QP and SRQ with a receive, and the acceptance with the SRQ's number. */
static void accept_request(struct ends *ends)
{
	struct ibv_qp_init_attr_ex attr = target_attr(ends->domain);
	struct rdma_cm_id *id = ends->pair.server;
	struct rdma_conn_param param;
	struct rdma_cm_event *event;
	uint32_t number;

	assert_int_equal(rdma_create_qp_ex(id, &attr), 0);
	assert_int_equal(id->qp->qp_type, IBV_QPT_XRC_RECV);
	assert_int_equal(make_srq(ends), 0);
	assert_non_null(id->recv_cq);
	assert_int_equal(ibv_get_srq_num(id->srq, &number), 0);
	ends->srqn = htobe32(number);
	ends->got_mr = rdma_reg_msgs(id, ends->got, MESSAGE);
	assert_non_null(ends->got_mr);
	assert_int_equal(rdma_post_recv(id, ends->got, ends->got, MESSAGE, ends->got_mr), 0);
	param = pair_param(&ends->srqn, sizeof(ends->srqn));
	assert_int_equal(rdma_accept(id, &param), 0);

	event = pair_expect(ends->pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_true(event->param.conn.private_data_len >= sizeof(ends->srqn));
	assert_memory_equal(event->param.conn.private_data, &ends->srqn, sizeof(ends->srqn));
	rdma_ack_cm_event(event);
	pair_take(ends->pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
}

static void post(struct ends *ends, bool built)
{
	struct rdma_cm_id *id = ends->pair.client;
	struct ibv_sge sge = { .addr = (uintptr_t)ends->sent, .length = MESSAGE };
	struct ibv_send_wr wr = {
		.wr_id = (uintptr_t)ends->sent, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.qp_type.xrc.remote_srqn = be32toh(ends->srqn),
	}, *bad;
	struct ibv_qp_ex *ex;

	ends->sent_mr = rdma_reg_msgs(id, ends->sent, MESSAGE);
	assert_non_null(ends->sent_mr);
	sge.lkey = ends->sent_mr->lkey;
	if (!built) {
		assert_int_equal(ibv_post_send(id->qp, &wr, &bad), 0);
		return;
	}
	ex = ibv_qp_to_qp_ex(id->qp);
	ex->wr_id = wr.wr_id;
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_xrc_srqn(ex, be32toh(ends->srqn));
	ibv_wr_set_sge(ex, sge.lkey, sge.addr, sge.length);
	assert_int_equal(ibv_wr_complete(ex), 0);
}

static void close_ends(struct ends *ends)
{
	struct pair *pair = &ends->pair;

	if (ends->sent_mr)
		assert_int_equal(rdma_dereg_mr(ends->sent_mr), 0);
	if (ends->got_mr)
		assert_int_equal(rdma_dereg_mr(ends->got_mr), 0);
	rdma_destroy_ep(pair->client);
	rdma_destroy_ep(pair->server);
	rdma_destroy_ep(pair->listener);
	pair->client = pair->server = pair->listener = NULL;
	if (ends->domain)
		assert_int_equal(ibv_close_xrcd(ends->domain), 0);
	/* The library's domain stays with the device, and is none of the program's. */
	assert_int_equal(live().xrcds, 0);
	pair_close(pair);
}

static void initiators_and_targets(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		for (enum way way = 0; way < NUM_WAYS; way++) {
			struct ends ends;
			struct ibv_wc wc;

			open_ends(&ends, t, way == BUILT_REQUESTS);
			if (way == OWN_DOMAIN)
				open_domain(&ends);
			accept_request(&ends);
			post(&ends, way == BUILT_REQUESTS);
			assert_int_equal(rdma_get_send_comp(ends.pair.client, &wc), 1);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(rdma_get_recv_comp(ends.pair.server, &wc), 1);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_ptr_equal(wc.wr_id, ends.got);
			assert_int_equal(wc.qp_num, ends.pair.server->qp->qp_num);
			assert_string_equal(ends.got, ends.sent);

			assert_int_equal(rdma_disconnect(ends.pair.client), 0);
			assert_int_equal(step_qp_state(ends.pair.client), IBV_QPS_ERR);
			pair_take(ends.pair.server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
			assert_int_equal(rdma_disconnect(ends.pair.server), 0);
			assert_int_equal(step_qp_state(ends.pair.server), IBV_QPS_ERR);
			pair_take(ends.pair.client_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
			close_ends(&ends);
		}
	}
}

/* What a rule makes of the initiator's message. */
static void faults_on_the_wire(void **state)
{
	static const struct {
		enum polycm_sim_action action;
		const char *message;
		uint16_t reason;
		enum ibv_wc_status sent;
	} faults[] = {
		{ POLYCM_SIM_LOSE, "SEND", 0, IBV_WC_SUCCESS },
		{ POLYCM_SIM_LOSE, "ACK", 0, IBV_WC_SUCCESS },
		{ POLYCM_SIM_DUPLICATE, "SEND", 0, IBV_WC_SUCCESS },
		{ POLYCM_SIM_REJECT, "SEND", 1, IBV_WC_REM_INV_REQ_ERR },
		{ POLYCM_SIM_REJECT, "SEND", 3, IBV_WC_REM_OP_ERR },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		struct polycm_sim_fault *fault;
		unsigned int hits = 0;
		struct ends ends;
		struct ibv_wc wc;

		open_ends(&ends, IB, false);
		accept_request(&ends);
		assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(
			.action = faults[i].action, .message = faults[i].message, .nth = 1, .count = 1,
			.reason = faults[i].reason), &fault), 0);
		post(&ends, false);
		assert_int_equal(rdma_get_send_comp(ends.pair.client, &wc), 1);
		assert_int_equal(wc.status, faults[i].sent);
		assert_int_equal(polycm_sim_fault_hits(fault, &hits), 0);
		assert_int_equal(hits, 1);
		if (wc.status == IBV_WC_SUCCESS) {
			assert_int_equal(rdma_get_recv_comp(ends.pair.server, &wc), 1);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_string_equal(ends.got, ends.sent);
		}
		close_ends(&ends);
	}
}

/* A call that fails leaves nothing, and may succeed the next time. */
static void faults_of_calls(void **state)
{
	static const char *const calls[] = { "create_qp", "create_srq", "create_cq" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		struct polycm_sim_counts before, after;
		struct ibv_qp_init_attr_ex attr;
		struct ends ends;
		bool qp = i == 0;

		open_ends(&ends, ROCE, false);
		attr = target_attr(NULL);
		if (!qp)
			assert_int_equal(rdma_create_qp_ex(ends.pair.server, &attr), 0);
		before = live();
		assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(
			.action = POLYCM_SIM_FAIL, .message = calls[i], .nth = 1,
			.error = ENOSPC), NULL), 0);
		attr = target_attr(NULL);
		assert_errno(qp ? rdma_create_qp_ex(ends.pair.server, &attr) : make_srq(&ends), ENOSPC);
		after = live();
		assert_memory_equal(&after, &before, sizeof(before));
		assert_null(ends.pair.server->srq);
		attr = target_attr(NULL);
		assert_int_equal(qp ? rdma_create_qp_ex(ends.pair.server, &attr) : make_srq(&ends), 0);
		close_ends(&ends);
	}
}

static void iwarp_has_none(void **state)
{
	struct ibv_qp_init_attr attr = { .cap = { .max_send_wr = 1, .max_send_sge = 1 } };
	struct ibv_qp_init_attr_ex initiator, target = target_attr(NULL);
	struct pair pair;

	(void)state;
	pair_open(&pair, IWARP, RDMA_PS_TCP);
	pair_resolve(&pair);
	initiator = initiator_attr(pair.client, false);
	assert_errno(rdma_create_qp_ex(pair.client, &initiator), EOPNOTSUPP);
	assert_errno(rdma_create_qp_ex(pair.client, &target), EOPNOTSUPP);
	attr.qp_type = IBV_QPT_XRC_SEND;
	assert_errno(rdma_create_qp(pair.client, NULL, &attr), EOPNOTSUPP);
	assert_null(pair.client->qp);
	assert_null(pair.client->send_cq);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(initiators_and_targets),
		cmocka_unit_test(faults_on_the_wire),
		cmocka_unit_test(faults_of_calls),
		cmocka_unit_test(iwarp_has_none),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
