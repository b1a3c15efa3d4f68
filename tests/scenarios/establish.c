/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * establish.c - scenarios of programs with QPs of their own: what rdma_init_qp_attr() tells them in each
 * state, QPs moved by hand, rdma_establish() at wrong times.
 */
#include "scene_internal.h"

/* --- QPs by hand. --- */

static struct ibv_qp *own_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp;

	attr.send_cq = attr.recv_cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	qp = attr.send_cq ? ibv_create_qp(id->pd, &attr) : NULL;
	if (!qp)
		end_failed("ibv_create_qp");
	know_qp(qp);
	return qp;
}

#define SHOW_IF(bit, ...)                                                                          \
	do {                                                                                       \
		if (mask & (bit))                                                                  \
			say("  " __VA_ARGS__);                                                     \
	} while (0)

static void show_attr(const struct ibv_qp_attr *attr, int mask)
{
	say("  mask 0x%x, state %d", (unsigned int)mask, attr->qp_state);
	SHOW_IF(IBV_QP_ACCESS_FLAGS, "access 0x%x", attr->qp_access_flags);
	SHOW_IF(IBV_QP_PKEY_INDEX, "pkey index %u", attr->pkey_index);
	SHOW_IF(IBV_QP_PORT, "port %s", attr->port_num ? "yes" : "no");
	SHOW_IF(IBV_QP_QKEY, "qkey 0x%x", attr->qkey);
	SHOW_IF(IBV_QP_AV, "global %u dgid %s hop %u tc %u sl %u port %s", attr->ah_attr.is_global,
		gid_text(&attr->ah_attr.grh.dgid), attr->ah_attr.grh.hop_limit,
		attr->ah_attr.grh.traffic_class, attr->ah_attr.sl,
		attr->ah_attr.port_num ? "yes" : "no");
	SHOW_IF(IBV_QP_PATH_MTU, "mtu %u", attr->path_mtu);
	SHOW_IF(IBV_QP_DEST_QPN, "dest qpn %s", knows_qp(attr->dest_qp_num) ? "known" : "another");
	SHOW_IF(IBV_QP_RQ_PSN, "rq psn %s", attr->rq_psn >> 24 ? "of more than 24 bits" : "yes");
	SHOW_IF(IBV_QP_SQ_PSN, "sq psn %s", attr->sq_psn >> 24 ? "of more than 24 bits" : "yes");
	SHOW_IF(IBV_QP_MAX_DEST_RD_ATOMIC, "dest rd %u", attr->max_dest_rd_atomic);
	SHOW_IF(IBV_QP_MAX_QP_RD_ATOMIC, "rd %u", attr->max_rd_atomic);
	SHOW_IF(IBV_QP_MIN_RNR_TIMER, "min rnr %u", attr->min_rnr_timer);
	SHOW_IF(IBV_QP_TIMEOUT, "timeout %u", attr->timeout);
	SHOW_IF(IBV_QP_RETRY_CNT, "retry %u", attr->retry_cnt);
	SHOW_IF(IBV_QP_RNR_RETRY, "rnr %u", attr->rnr_retry);
}

/* What is told for the state, and that applied to the QP. */
static void move(const char *who, struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask = 0;

	say("%s to state %d", who, state);
	if (TRY(rdma_init_qp_attr(id, &attr, &mask)))
		return;
	show_attr(&attr, mask);
	if (qp)
		say("  ibv_modify_qp: %s", ibv_modify_qp(qp, &attr, mask) ? "an error" : "0");
}

static void move_all(const char *who, struct rdma_cm_id *id, struct ibv_qp *qp)
{
	move(who, id, qp, IBV_QPS_INIT);
	move(who, id, qp, IBV_QPS_RTR);
	move(who, id, qp, IBV_QPS_RTS);
}

/* The request of a client with a QP of its own. */
static void ask(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	with.qp_num = own_qp(client)->qp_num;
	MUST(rdma_connect(client, &with));
	expect(server_events, CONNECT_REQUEST);
}

/* --- The way it is meant. --- */

static void establish_by_hand(void)
{
	struct rdma_conn_param with = param_data(4);
	struct ibv_qp *qp, *child_qp;

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	qp = own_qp(client);
	move("client", client, qp, IBV_QPS_INIT);
	with.qp_num = qp->qp_num;
	with.responder_resources = 2;
	with.rnr_retry_count = 3;
	TRY(rdma_connect(client, &with));
	next(server_events);
	child_qp = own_qp(child);
	move_all("child", child, child_qp);
	with.qp_num = child_qp->qp_num;
	with.responder_resources = 1;
	with.rnr_retry_count = 5;
	TRY(rdma_accept(child, &with));
	next(client_events);
	move_all("client", client, qp);
	TRY(rdma_establish(client));
	next(server_events);
	rest(client_events);
	TRY(rdma_disconnect(client));
	next(server_events);
	TRY(rdma_disconnect(child));
	rest(client_events);
	rest(server_events);
}

/* --- Attributes in each state. --- */

static void establish_attr_early(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask = 0;

	open_scene(RDMA_PS_TCP);
	TRY_CRASH(rdma_init_qp_attr(client, &attr, &mask));
	MUST(rdma_bind_addr(client, at(CLIENT4, ANY_PORT)));
	say("bound");
	move_all("client", client, NULL);
	MUST(rdma_listen(client, 0));
	say("listening");
	move_all("client", client, NULL);
}

static void establish_attr_resolved(void)
{
	open_scene(RDMA_PS_TCP);
	client_finds();
	say("with an address");
	move_all("client", client, NULL);
	MUST(rdma_resolve_route(client, 2000));
	expect(client_events, ROUTE_RESOLVED);
	say("with a route");
	move_all("client", client, NULL);
	move("client", client, NULL, IBV_QPS_RESET);
	move("client", client, NULL, IBV_QPS_SQD);
	move("client", client, NULL, IBV_QPS_ERR);
	move("client", client, NULL, (enum ibv_qp_state)99);
}

static void establish_attr_asked(void)
{
	ask();
	move_all("client", client, NULL);
	move_all("child", child, NULL);
	move("child", child, NULL, IBV_QPS_RESET);
	move("child", child, NULL, IBV_QPS_ERR);
}

static void establish_attr_ended(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	move_all("client", client, NULL);
	TRY(rdma_disconnect(client));
	next(server_events);
	say("disconnecting");
	move_all("client", client, NULL);
	move_all("child", child, NULL);
	TRY(rdma_disconnect(child));
	rest(client_events);
	say("disconnected");
	move_all("client", client, NULL);
	move_all("child", child, NULL);
}

static void establish_attr_rejected(void)
{
	ask();
	TRY(rdma_reject(child, NULL, 0));
	next(client_events);
	move_all("client", client, NULL);
	move_all("child", child, NULL);
}

static void establish_attr_ud(void)
{
	open_scene(RDMA_PS_UDP);
	client_finds();
	move_all("client", client, NULL);
	server_listens(0);
	move_all("server", server, NULL);
}

/* --- Wrong times, other ends. --- */

static void establish_unconnected(void)
{
	open_scene(RDMA_PS_TCP);
	TRY_CRASH(rdma_establish(client));
	server_listens(0);
	TRY_CRASH(rdma_establish(server));
	client_resolves();
	TRY(rdma_establish(client));
	rest(client_events);
	rest(server_events);
}

static void establish_too_early(void)
{
	struct rdma_conn_param with = param();

	ask();
	TRY(rdma_establish(client));
	rest(client_events);
	make_qp(child);
	TRY(rdma_accept(child, &with));
	rest(client_events);
	rest(server_events);
}

static void establish_destroyed(void)
{
	struct rdma_conn_param with = param();

	ask();
	make_qp(child);
	MUST(rdma_accept(child, &with));
	next(client_events);
	DESTROY(client);
	rest(server_events);
}

const struct scenario establish_scenarios[] = {
	{ "establish", establish_by_hand, "both QPs by hand, all attributes", 0 },
	{ "establish-attr-early", establish_attr_early, "rdma_init_qp_attr(), new to listening", 0 },
	{ "establish-attr-resolved", establish_attr_resolved, "rdma_init_qp_attr(), resolved", 0 },
	{ "establish-attr-asked", establish_attr_asked, "rdma_init_qp_attr(), asked", 0 },
	{ "establish-attr-ended", establish_attr_ended, "rdma_init_qp_attr(), established and not", 0 },
	{ "establish-attr-rejected", establish_attr_rejected, "rdma_init_qp_attr(), rejected", 0 },
	{ "establish-attr-ud", establish_attr_ud, "rdma_init_qp_attr() of datagrams", 0 },
	{ "establish-unconnected", establish_unconnected, "rdma_establish() without a request", 0 },
	{ "establish-too-early", establish_too_early, "rdma_establish() before the answer", SLOW },
	{ "establish-destroyed", establish_destroyed, "rdma_destroy_id() at CONNECT_RESPONSE", 0 },
	{ NULL, NULL, NULL, 0 },
};
