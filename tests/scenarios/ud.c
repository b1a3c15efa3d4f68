/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ud.c - scenarios of datagram ids (SIDR): answers of all kinds, lengths, requests that nobody
 * answers.
 */
#include "scene.h"

static void ud_usual(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_UDP);
	request(NULL);
	show_qp_attr(client);
	show_addresses(child);
	make_qp(child);
	show_qp_attr(child);
	TRY(rdma_accept(child, &with));
	rest(client_events);
	rest(server_events);
	show_addresses(client);
}

static void ud_without_qp(void)
{
	struct rdma_conn_param with = param_data(5);

	open_scene(RDMA_PS_UDP);
	server_listens(0);
	client_resolves();
	with.qp_num = own_qp_num(1);
	if (TRY(rdma_connect(client, &with)))
		return;
	next(server_events);
	TRY(rdma_accept(child, &with));
	rest(client_events);
	rest(server_events);
}

static void ud_null_without_qp(void)
{
	open_scene(RDMA_PS_UDP);
	server_listens(0);
	client_resolves();
	if (TRY(rdma_connect(client, NULL)))
		return;
	next(server_events);
	TRY_CRASH(rdma_accept(child, NULL));
	rest(client_events);
}

static void ud_qp_number_zero(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_UDP);
	request(NULL);
	TRY(rdma_accept(child, &with));
	rest(client_events);
}

static void ud_null(void)
{
	open_scene(RDMA_PS_UDP);
	server_listens(0);
	client_resolves();
	make_qp(client);
	if (TRY(rdma_connect(client, NULL)))
		return;
	next(server_events);
	make_qp(child);
	TRY(rdma_accept(child, NULL));
	rest(client_events);
}

static void ud_reject(void)
{
	open_scene(RDMA_PS_UDP);
	request(NULL);
	TRY(rdma_reject(child, counting, 10));
	TRY(rdma_reject(child, counting, 10));
	rest(client_events);
	rest(server_events);
	show_qp(client);
	TRY(rdma_resolve_route(client, 2000));
}

static void ud_nobody_listens(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_UDP);
	client_resolves();
	make_qp(client);
	TRY(rdma_connect(client, &with));
	rest(client_events);
	show_qp(client);
	TRY(rdma_connect(client, &with));
}

static void ud_other_port_space(void)
{
	struct rdma_conn_param with = param();

	open_channels();
	server = make_id("server", server_events, RDMA_PS_TCP);
	client = make_id("client", client_events, RDMA_PS_UDP);
	server_listens(0);
	client_resolves();
	make_qp(client);
	TRY(rdma_connect(client, &with));
	rest(client_events);
	rest(server_events);
}

/* --- Lengths. --- */

static void connect_with(size_t len)
{
	struct rdma_conn_param with = param_data(len);

	open_scene(RDMA_PS_UDP);
	server_listens(0);
	client_resolves();
	make_qp(client);
	say("%zu bytes", len);
	if (!TRY(rdma_connect(client, &with))) {
		next(server_events);
		return;
	}
	rest(server_events);
	say("again with 3");
	with.private_data_len = 3;
	TRY(rdma_connect(client, &with));
	next(server_events);
}

static void ud_connect_longest(void)
{
	connect_with(180);
}

static void ud_connect_too_long(void)
{
	connect_with(181);
}

static void accept_with(size_t len)
{
	struct rdma_conn_param with = param_data(len);

	open_scene(RDMA_PS_UDP);
	request(NULL);
	make_qp(child);
	say("%zu bytes", len);
	TRY(rdma_accept(child, &with));
	rest(client_events);
	show_qp(child);
}

static void ud_accept_longest(void)
{
	accept_with(136);
}

/* Whether the peer hears at once or when the request ends is left open. */
static void ud_accept_too_long(void)
{
	struct rdma_conn_param with = param_data(137);

	open_scene(RDMA_PS_UDP);
	request(NULL);
	make_qp(child);
	say("137 bytes");
	TRY(rdma_accept(child, &with));
	rdma_destroy_qp(child);
	TRY(rdma_destroy_id(child));
	forget_id(child);
	rest(client_events);
}

static void ud_reject_longest(void)
{
	open_scene(RDMA_PS_UDP);
	request(NULL);
	TRY(rdma_reject(child, counting, 137));
	rest(client_events);
	TRY(rdma_reject(child, counting, 136));
	rest(client_events);
}

/* --- Wrong moments. --- */

static void ud_again(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_UDP);
	request(NULL);
	make_qp(child);
	TRY(rdma_connect(client, &with));
	TRY(rdma_accept(child, &with));
	TRY(rdma_accept(child, &with));
	TRY(rdma_reject(child, NULL, 0));
	next(client_events);
	TRY(rdma_connect(client, &with));
	TRY(rdma_establish(client));
	TRY(rdma_notify(child, IBV_EVENT_COMM_EST));
	rest(client_events);
	rest(server_events);
}

static void ud_two_clients(void)
{
	struct rdma_conn_param with = param();
	struct rdma_cm_id *first;

	open_scene(RDMA_PS_UDP);
	request(NULL);
	first = child;
	client = make_id("client2", client_events, RDMA_PS_UDP);
	client_resolves();
	make_qp(client);
	TRY(rdma_connect(client, &with));
	next(server_events);
	make_qp(child);
	TRY(rdma_accept(child, &with));
	next(client_events);
	TRY(rdma_reject(first, NULL, 0));
	next(client_events);
	rest(server_events);
}

static void ud_disconnect(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_UDP);
	request(NULL);
	make_qp(child);
	TRY(rdma_accept(child, &with));
	next(client_events);
	TRY(rdma_disconnect(client));
	show_qp(client);
	TRY(rdma_disconnect(child));
	show_qp(child);
	rest(client_events);
	rest(server_events);
	TRY(rdma_disconnect(client));
	TRY(rdma_disconnect(server));
}

/* --- Not answered. --- */

static void ud_destroyed(void)
{
	open_scene(RDMA_PS_UDP);
	request(NULL);
	DESTROY(child);
	rest(client_events);
}

static void ud_listener_destroyed(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_UDP);
	server_listens(0);
	client_resolves();
	make_qp(client);
	MUST(rdma_connect(client, &with));
	arrived(server_events);
	say("the request is there, but not taken");
	DESTROY(server);
	rest(client_events);
}

static void ud_backlog(void)
{
	struct rdma_conn_param with = param();
	const char *const names[] = { "client1", "client2", "client3" };
	size_t i;

	open_scene(RDMA_PS_UDP);
	server_listens(1);
	for (i = 0; i < ARRAY_LEN(names); i++) {
		client = make_id(names[i], client_events, RDMA_PS_UDP);
		client_resolves();
		make_qp(client);
		TRY(rdma_connect(client, &with));
		rest(client_events);
	}
	rest(server_events);
	client = make_id("client4", client_events, RDMA_PS_UDP);
	client_resolves();
	make_qp(client);
	TRY(rdma_connect(client, &with));
	rest(server_events);
	rest(client_events);
}

static void ud_no_answer(void)
{
	struct rdma_conn_param with = param();
	uint64_t start;

	open_scene(RDMA_PS_UDP);
	request(NULL);
	start = now_ms();
	next(client_events);
	show_lapse("that", start, 65536);
	make_qp(child);
	TRY(rdma_accept(child, &with));
	rest(client_events);
	rest(server_events);
}

const struct scenario ud_scenarios[] = {
	{ "ud", ud_usual, "the usual way", 0 },
	{ "ud-without-qp", ud_without_qp, "a QP number instead of a QP, both sides", 0 },
	{ "ud-qp-number-zero", ud_qp_number_zero, "accepted with neither QP nor number", 0 },
	{ "ud-null", ud_null, "no parameters, both sides", 0 },
	{ "ud-null-without-qp", ud_null_without_qp, "no parameters, no QPs", 0 },
	{ "ud-reject", ud_reject, "rdma_reject() with data, and again", 0 },
	{ "ud-nobody-listens", ud_nobody_listens, "nobody listens on the port", 0 },
	{ "ud-other-port-space", ud_other_port_space, "the listener is one of RDMA_PS_TCP", 0 },
	{ "ud-connect-longest", ud_connect_longest, "180 bytes of private data", 0 },
	{ "ud-connect-too-long", ud_connect_too_long, "181 bytes, then fewer", 0 },
	{ "ud-accept-longest", ud_accept_longest, "136 bytes of private data", 0 },
	{ "ud-accept-too-long", ud_accept_too_long, "137 bytes of private data", 0 },
	{ "ud-reject-longest", ud_reject_longest, "137 bytes, then 136", 0 },
	{ "ud-again", ud_again, "each call a second time, and calls of connections", 0 },
	{ "ud-two-clients", ud_two_clients, "two requests, the second answered first", 0 },
	{ "ud-disconnect", ud_disconnect, "rdma_disconnect() on both, twice, on the listener", 0 },
	{ "ud-destroyed", ud_destroyed, "the request's id is destroyed", 0 },
	{ "ud-listener-destroyed", ud_listener_destroyed,
	  "the listener is destroyed with a request not taken", 0 },
	{ "ud-backlog", ud_backlog, "more requests than the backlog", 0 },
	{ "ud-no-answer", ud_no_answer, "nobody answers", SLOW },
	{ NULL, NULL, NULL, 0 },
};
