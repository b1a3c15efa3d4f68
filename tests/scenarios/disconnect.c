/* SPDX-License-Identifier: BSD-2-Clause */
/* disconnect.c - scenarios of rdma_disconnect(): who sees what, and when. */
#include "scene.h"

static void disconnect_by_client(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	TRY(rdma_disconnect(client));
	show_qp(client);
	next(server_events);
	show_qp(child);
	say("the other side answers");
	TRY(rdma_disconnect(child));
	show_qp(child);
	next(client_events);
	rest(client_events);
	rest(server_events);
}

static void disconnect_by_server(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	TRY(rdma_disconnect(child));
	show_qp(child);
	next(client_events);
	show_qp(client);
	TRY(rdma_disconnect(client));
	next(server_events);
	rest(server_events);
	rest(client_events);
}

static void disconnect_twice(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	TRY(rdma_disconnect(client));
	TRY(rdma_disconnect(client));
	next(server_events);
	TRY(rdma_disconnect(child));
	TRY(rdma_disconnect(child));
	rest(client_events);
	rest(server_events);
	TRY(rdma_disconnect(client));
}

static void disconnect_both(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	TRY(rdma_disconnect(client));
	arrived(server_events);
	TRY(rdma_disconnect(child));
	rest(client_events);
	rest(server_events);
	say("both once more");
	TRY(rdma_disconnect(client));
	TRY(rdma_disconnect(child));
	rest(client_events);
	rest(server_events);
}

static void disconnect_unanswered(void)
{
	uint64_t start;

	open_scene(RDMA_PS_TCP);
	established();
	start = now_ms();
	TRY(rdma_disconnect(client));
	next(client_events);
	show_lapse("that", start, 73728);
	rest(client_events);
	rest(server_events);
}

static void disconnect_unanswered_by_client(void)
{
	uint64_t start;

	open_scene(RDMA_PS_TCP);
	established();
	start = now_ms();
	TRY(rdma_disconnect(child));
	next(server_events);
	show_lapse("that", start, 65536);
	rest(server_events);
	rest(client_events);
}

static void disconnect_answered_by_destroying(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	TRY(rdma_disconnect(client));
	next(server_events);
	rdma_destroy_qp(child);
	TRY(rdma_destroy_id(child));
	forget_id(child);
	next(client_events);
	rest(client_events);
}

static void disconnect_before_connecting(void)
{
	open_scene(RDMA_PS_TCP);
	TRY_CRASH(rdma_disconnect(client));
	client_finds();
	TRY(rdma_disconnect(client));
	MUST(rdma_resolve_route(client, 2000));
	next(client_events);
	TRY(rdma_disconnect(client));
	make_qp(client);
	TRY(rdma_disconnect(client));
	show_qp(client);
}

static void disconnect_listener(void)
{
	open_scene(RDMA_PS_TCP);
	server_listens(0);
	TRY(rdma_disconnect(server));
}

static void disconnect_while_connecting(void)
{
	open_scene(RDMA_PS_TCP);
	request(NULL);
	TRY(rdma_disconnect(client));
	show_qp(client);
	rest(server_events);
	say("the request is accepted now");
	make_qp(child);
	TRY(rdma_accept(child, NULL));
	rest(client_events);
	rest(server_events);
}

static void disconnect_request(void)
{
	open_scene(RDMA_PS_TCP);
	request(NULL);
	TRY(rdma_disconnect(child));
	rest(client_events);
	say("and accepted after all");
	make_qp(child);
	TRY(rdma_accept(child, NULL));
	rest(client_events);
	rest(server_events);
}

static void disconnect_before_established(void)
{
	open_scene(RDMA_PS_TCP);
	accepted(NULL);
	TRY(rdma_disconnect(child));
	show_qp(child);
	rest(client_events);
	rest(server_events);
}

static void disconnect_after_reject(void)
{
	open_scene(RDMA_PS_TCP);
	request(NULL);
	MUST(rdma_reject(child, NULL, 0));
	next(client_events);
	TRY(rdma_disconnect(client));
	TRY(rdma_disconnect(child));
	rest(client_events);
}

static void disconnect_timewait(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	TRY(rdma_disconnect(client));
	next(server_events);
	TRY(rdma_disconnect(child));
	next(client_events);
	rest(client_events);
	rest(server_events);
	say("timewait is over");
	TRY(rdma_disconnect(client));
	TRY(rdma_disconnect(child));
}

static void disconnect_qp_in_error(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	open_scene(RDMA_PS_TCP);
	established();
	say("ibv_modify_qp to ERR = %d", ibv_modify_qp(client->qp, &attr, IBV_QP_STATE));
	rest(client_events);
	rest(server_events);
}

static void disconnect_qp_destroyed(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	rdma_destroy_qp(client);
	rest(client_events);
	rest(server_events);
	TRY(rdma_disconnect(client));
	rest(server_events);
}

const struct scenario disconnect_scenarios[] = {
	{ "disconnect", disconnect_by_client, "by the client, answered", 0 },
	{ "disconnect-by-server", disconnect_by_server, "by the server, answered", 0 },
	{ "disconnect-twice", disconnect_twice, "each side twice and once more", 0 },
	{ "disconnect-both", disconnect_both, "by both before either takes its event", 0 },
	{ "disconnect-unanswered", disconnect_unanswered, "the server does not answer", SLOW },
	{ "disconnect-unanswered-by-client", disconnect_unanswered_by_client,
	  "the client does not answer", SLOW },
	{ "disconnect-destroy", disconnect_answered_by_destroying, "answered by destroying the id", 0 },
	{ "disconnect-too-early", disconnect_before_connecting,
	  "in all states before rdma_connect()", 0 },
	{ "disconnect-listener", disconnect_listener, "of a listening id", 0 },
	{ "disconnect-connecting", disconnect_while_connecting, "while the request waits", SLOW },
	{ "disconnect-request", disconnect_request, "of a request that is not answered", 0 },
	{ "disconnect-before-established", disconnect_before_established,
	  "by the server, which has accepted", 0 },
	{ "disconnect-after-reject", disconnect_after_reject, "of a rejected connection", 0 },
	{ "disconnect-timewait", disconnect_timewait, "again after TIMEWAIT_EXIT", 0 },
	{ "disconnect-qp-in-error", disconnect_qp_in_error, "QP to ERR: does the peer notice?", 0 },
	{ "disconnect-qp-destroyed", disconnect_qp_destroyed, "QP destroyed: does the peer notice?", 0 },
	{ NULL, NULL, NULL, 0 },
};
