/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * response.c - scenarios of connections whose QPs are the program's own: CONNECT_RESPONSE,
 * rdma_init_qp_attr(), rdma_establish(), rdma_notify().
 */
#include "scene.h"

/* The client asks and the server answers, both with a QP number only. */
static void responded(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	with.qp_num = own_qp_num(1);
	if (TRY(rdma_connect(client, &with)))
		end_here();
	expect(server_events, CONNECT_REQUEST);
	with.qp_num = own_qp_num(2);
	with.responder_resources = 2;
	with.initiator_depth = 4;
	with.private_data = counting;
	with.private_data_len = 5;
	TRY(rdma_accept(child, &with));
	next(client_events);
}

static void response_usual(void)
{
	responded();
	rest(server_events);
	TRY(rdma_establish(client));
	next(server_events);
	rest(client_events);
	TRY(rdma_disconnect(client));
	next(server_events);
	TRY(rdma_disconnect(child));
	next(client_events);
}

static void response_twice(void)
{
	responded();
	TRY(rdma_establish(client));
	TRY(rdma_establish(client));
	next(server_events);
	rest(server_events);
	rest(client_events);
}

static void response_reject(void)
{
	responded();
	TRY(rdma_reject(client, counting, 4));
	next(server_events);
	rest(client_events);
	TRY(rdma_establish(client));
	TRY(rdma_disconnect(child));
}

static void response_with_qp(void)
{
	open_scene(RDMA_PS_TCP);
	accepted(NULL);
	arrived(client_events);
	TRY(rdma_establish(client));
	next(client_events);
	TRY(rdma_establish(client));
	next(server_events);
	TRY(rdma_establish(child));
}

static void response_by_server(void)
{
	responded();
	TRY(rdma_establish(child));
	rest(client_events);
	rest(server_events);
}

static void response_request(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	request(NULL);
	TRY(rdma_establish(child));
	rest(client_events);
	with.qp_num = own_qp_num(2);
	TRY(rdma_accept(child, &with));
	rest(client_events);
	rest(server_events);
}

static void response_disconnect_before(void)
{
	responded();
	TRY(rdma_disconnect(client));
	rest(server_events);
	TRY(rdma_establish(client));
	rest(server_events);
	rest(client_events);
}

/* --- rdma_init_qp_attr(): what the library would move the QP with. --- */

static void show_init_attr(struct rdma_cm_id *id, const char *name, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr;
	int mask = 0;

	memset(&attr, 0, sizeof(attr));
	attr.qp_state = state;
	if (rdma_init_qp_attr(id, &attr, &mask)) {
		say("%s rdma_init_qp_attr to %d = -1 %s", name, (int)state, errno_text(errno));
		return;
	}
	say("%s to %d: mask 0x%x, access 0x%x pkey %u port %s mtu %u rnr timer %u rnr %u retry %u "
	    "timeout %u rd %u dest rd %u, dest qpn %s, psn %s",
	    name, (int)attr.qp_state, (unsigned int)mask, (unsigned int)attr.qp_access_flags,
	    attr.pkey_index, attr.port_num ? "yes" : "no", attr.path_mtu, attr.min_rnr_timer,
	    attr.rnr_retry, attr.retry_cnt, attr.timeout, attr.max_rd_atomic,
	    attr.max_dest_rd_atomic, attr.dest_qp_num ? "yes" : "no",
	    attr.rq_psn || attr.sq_psn ? "yes" : "no");
}

static void show_all_attr(struct rdma_cm_id *id, const char *name)
{
	show_init_attr(id, name, IBV_QPS_INIT);
	show_init_attr(id, name, IBV_QPS_RTR);
	show_init_attr(id, name, IBV_QPS_RTS);
}

static void response_attr_client(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_finds();
	show_all_attr(client, "address resolved");
	MUST(rdma_resolve_route(client, 2000));
	next(client_events);
	show_all_attr(client, "route resolved");
	with.qp_num = own_qp_num(1);
	with.responder_resources = 2;
	with.initiator_depth = 4;
	if (TRY(rdma_connect(client, &with)))
		return;
	next(server_events);
	show_all_attr(client, "connecting");
	with.qp_num = own_qp_num(2);
	with.retry_count = 5;
	with.rnr_retry_count = 3;
	MUST(rdma_accept(child, &with));
	next(client_events);
	show_all_attr(client, "response");
	MUST(rdma_establish(client));
	next(server_events);
	show_all_attr(client, "established");
	MUST(rdma_disconnect(client));
	next(server_events);
	show_all_attr(client, "disconnecting");
}

static void response_attr_server(void)
{
	open_scene(RDMA_PS_TCP);
	server_listens(0);
	show_all_attr(server, "listening");
	DESTROY(server);
	server = make_id("server", server_events, RDMA_PS_TCP);
	request(NULL);
	show_all_attr(child, "request");
	make_qp(child);
	MUST(rdma_accept(child, NULL));
	show_all_attr(child, "accepted");
	next(client_events);
	next(server_events);
	show_all_attr(child, "established");
	MUST(rdma_disconnect(child));
	next(client_events);
	show_all_attr(child, "disconnecting");
}

static void response_attr_unbound(void)
{
	open_scene(RDMA_PS_TCP);
	show_all_attr(client, "new");
	MUST(rdma_bind_addr(client, at(CLIENT4, 0)));
	show_all_attr(client, "bound");
	show_init_attr(client, "bound", IBV_QPS_RESET);
	show_init_attr(client, "bound", IBV_QPS_ERR);
}

/* --- rdma_notify() --- */

static void response_notify(void)
{
	responded();
	TRY(rdma_notify(child, IBV_EVENT_COMM_EST));
	next(server_events);
	TRY(rdma_notify(child, IBV_EVENT_COMM_EST));
	say("the RTU comes after that");
	TRY(rdma_establish(client));
	rest(server_events);
	rest(client_events);
}

static void response_notify_client(void)
{
	responded();
	TRY(rdma_notify(client, IBV_EVENT_COMM_EST));
	rest(client_events);
	TRY(rdma_establish(client));
	next(server_events);
}

static void response_notify_other(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	TRY(rdma_notify(child, IBV_EVENT_PATH_MIG));
	TRY(rdma_notify(child, IBV_EVENT_QP_FATAL));
	TRY(rdma_notify(child, IBV_EVENT_PORT_ERR));
	TRY(rdma_notify(server, IBV_EVENT_COMM_EST));
	rest(server_events);
}

const struct scenario response_scenarios[] = {
	{ "response", response_usual, "no QP: CONNECT_RESPONSE, rdma_establish()", 0 },
	{ "response-twice", response_twice, "rdma_establish() again", 0 },
	{ "response-reject", response_reject, "the client rejects the response", 0 },
	{ "response-with-qp", response_with_qp, "on ids that have a QP", 0 },
	{ "response-by-server", response_by_server, "on the passive side", SLOW },
	{ "response-request", response_request, "on a request that is not answered", 0 },
	{ "response-disconnect", response_disconnect_before, "rdma_disconnect() instead", 0 },
	{ "response-attr", response_attr_client, "rdma_init_qp_attr() of the client", 0 },
	{ "response-attr-server", response_attr_server, "rdma_init_qp_attr() of the server", 0 },
	{ "response-attr-unbound", response_attr_unbound, "rdma_init_qp_attr() too early", 0 },
	{ "response-notify", response_notify, "COMM_EST instead of the RTU", 0 },
	{ "response-notify-client", response_notify_client, "COMM_EST on the client", 0 },
	{ "response-notify-other", response_notify_other, "other events, other ids", 0 },
	{ NULL, NULL, NULL, 0 },
};
