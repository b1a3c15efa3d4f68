/* SPDX-License-Identifier: BSD-2-Clause */
/* reject.c - scenarios of refused connections: by the program, by nobody there. */
#include "scene.h"

static void reject_with(size_t len)
{
	open_scene(RDMA_PS_TCP);
	request(NULL);
	say("%zu bytes", len);
	TRY(rdma_reject(child, counting, (uint8_t)len));
	rest(client_events);
	rest(server_events);
	show_qp(client);
}

static void reject_usual(void)
{
	reject_with(0);
}

static void reject_data(void)
{
	reject_with(10);
}

static void reject_longest(void)
{
	reject_with(148);
}

static void reject_too_long(void)
{
	reject_with(149);
	say("again with less");
	TRY(rdma_reject(child, counting, 3));
	rest(client_events);
}

static void reject_twice(void)
{
	open_scene(RDMA_PS_TCP);
	request(NULL);
	TRY(rdma_reject(child, NULL, 0));
	TRY(rdma_reject(child, NULL, 0));
	rest(client_events);
}

static void reject_then_connect_again(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	request(NULL);
	TRY(rdma_reject(child, NULL, 0));
	next(client_events);
	TRY(rdma_connect(client, &with));
	TRY(rdma_resolve_addr(client, NULL, at(SERVER4, 0), 2000));
	TRY(rdma_resolve_route(client, 2000));
	TRY(rdma_disconnect(client));
	rest(client_events);
}

static void reject_nobody_listens(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	client_resolves();
	make_qp(client);
	TRY(rdma_connect(client, &with));
	rest(client_events);
	show_qp(client);
}

static void reject_on_client(void)
{
	uint64_t start;

	open_scene(RDMA_PS_TCP);
	request(NULL);
	TRY(rdma_reject(client, NULL, 0));
	rest(client_events);
	rest(server_events);
	if (client->verbs->device->transport_type == IBV_TRANSPORT_IWARP) {
		/* Linux 6.12 has a BUG() for those who destroy the id now. */
		TRY(rdma_reject(child, NULL, 0));
		next(client_events);
	}
	start = now_ms();
	TRY(rdma_destroy_id(client));
	forget_id(client);
	show_lapse("that", start, 70000);
}

/* The answer goes on being repeated, though the client has heard that it is void. */
static void reject_after_accept(void)
{
	uint64_t start;

	open_scene(RDMA_PS_TCP);
	accepted(NULL);
	if (child->verbs->device->transport_type == IBV_TRANSPORT_IWARP)
		arrived(server_events);
	TRY(rdma_reject(child, NULL, 0));
	rest(client_events);
	rest(server_events);
	if (child->qp)
		rdma_destroy_qp(child);
	start = now_ms();
	TRY(rdma_destroy_id(child));
	forget_id(child);
	show_lapse("that", start, 61800);
}

static void reject_by_destroying(void)
{
	open_scene(RDMA_PS_TCP);
	request(NULL);
	TRY(rdma_destroy_id(child));
	forget_id(child);
	rest(client_events);
}

/* siw counts in a byte what it sends, its own 4 included; from 253 on, the peer sees garbage. */
static void reject_lengths(void)
{
	static const uint8_t lengths[] = { 251, 252 };
	struct rdma_conn_param with = param();
	size_t i;

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	for (i = 0; i < ARRAY_LEN(lengths); i++) {
		say("-- %u bytes", lengths[i]);
		client = make_id("client", client_events, RDMA_PS_TCP);
		client_resolves();
		make_qp(client);
		MUST(rdma_connect(client, &with));
		next(server_events);
		if (TRY(rdma_reject(child, counting, lengths[i])))
			TRY(rdma_reject(child, NULL, 0));
		next(client_events);
		show_qp(client);
		DESTROY(child);
	}
}

static void reject_by_destroying_listener(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	make_qp(client);
	MUST(rdma_connect(client, &with));
	arrived(server_events);
	say("the request is there, but not taken");
	TRY(rdma_destroy_id(server));
	forget_id(server);
	rest(client_events);
}

const struct scenario reject_scenarios[] = {
	{ "reject", reject_usual, "rdma_reject() without data", 0 },
	{ "reject-data", reject_data, "10 bytes of private data", 0 },
	{ "reject-longest", reject_longest, "148 bytes of private data", 0 },
	{ "reject-too-long", reject_too_long, "149 bytes, then fewer", 0 },
	{ "reject-lengths", reject_lengths, "251 and 252 bytes", 0 },
	{ "reject-twice", reject_twice, "rdma_reject() again", 0 },
	{ "reject-then-connect", reject_then_connect_again, "the rejected id used again", 0 },
	{ "reject-nobody-listens", reject_nobody_listens, "nobody listens on the port", 0 },
	{ "reject-on-client", reject_on_client, "rdma_reject() by the one that asked", SLOW },
	{ "reject-after-accept", reject_after_accept, "rdma_reject() after one's own rdma_accept()",
	  SLOW },
	{ "reject-by-destroying", reject_by_destroying, "the request's id is destroyed", 0 },
	{ "reject-by-destroying-listener", reject_by_destroying_listener,
	  "the listener is destroyed with a request not taken", 0 },
	{ NULL, NULL, NULL, 0 },
};
