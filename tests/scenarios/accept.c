/* SPDX-License-Identifier: BSD-2-Clause */
/* accept.c - scenarios of rdma_accept(): what reaches the peer, lengths, depths, wrong moments. */
#include "scene.h"

static void accept_usual(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	request(NULL);
	make_qp(child);
	show_qp(child);
	show_addresses(child);
	TRY(rdma_accept(child, &with));
	show_qp_attr(child);
	next(client_events);
	show_qp_attr(client);
	next(server_events);
}

static void accept_null(void)
{
	open_scene(RDMA_PS_TCP);
	request(NULL);
	make_qp(child);
	TRY(rdma_accept(child, NULL));
	next(client_events);
	next(server_events);
	show_qp_attr(client);
	show_qp_attr(child);
}

static void accept_null_without_qp(void)
{
	open_scene(RDMA_PS_TCP);
	request(NULL);
	TRY_CRASH(rdma_accept(child, NULL));
}

static void accept_without_qp(void)
{
	struct rdma_conn_param with = param();

	with.qp_num = own_qp_num(1);
	open_scene(RDMA_PS_TCP);
	request(NULL);
	TRY(rdma_accept(child, &with));
	rest(client_events);
	rest(server_events);
}

static void accept_with(size_t len)
{
	struct rdma_conn_param with = param_data(len);

	open_scene(RDMA_PS_TCP);
	request(NULL);
	make_qp(child);
	say("%zu bytes", len);
	TRY(rdma_accept(child, &with));
	rest(client_events);
	rest(server_events);
	show_qp(child);
	show_qp(client);
}

static void accept_data(void)
{
	accept_with(10);
}

static void accept_longest(void)
{
	accept_with(196);
}

/* Whether the peer hears at once or when the request ends: accept_too_long_told(). */
static void accept_in_vain_with(size_t len)
{
	struct rdma_conn_param with = param_data(len);

	open_scene(RDMA_PS_TCP);
	request(NULL);
	make_qp(child);
	say("%zu bytes", len);
	TRY(rdma_accept(child, &with));
	rdma_destroy_qp(child);
	TRY(rdma_destroy_id(child));
	forget_id(child);
	rest(client_events);
	rest(server_events);
	show_qp(client);
}

static void accept_too_long(void)
{
	accept_in_vain_with(197);
}

static void accept_255(void)
{
	accept_in_vain_with(255);
}

/* The call fails after librdmacm has moved the QP, and the kernel rejects the peer for it. */
static void accept_too_long_told(void)
{
	struct rdma_conn_param with = param_data(197), less = param_data(196);

	open_scene(RDMA_PS_TCP);
	request(NULL);
	make_qp(child);
	TRY(rdma_accept(child, &with));
	show_qp(child);
	rest(client_events);
	show_qp(client);
	TRY(rdma_accept(child, &less));
	rest(client_events);
	rest(server_events);
	show_qp(child);
}

static void accept_twice(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	accepted(NULL);
	/* Linux's iw_cm takes a second one meanwhile, and crashes (BUG_ON) when ESTABLISHED comes. */
	if (child->verbs->device->transport_type == IBV_TRANSPORT_IWARP)
		arrived(server_events);
	TRY(rdma_accept(child, &with));
	rest(client_events);
	rest(server_events);
}

static void accept_on_listener(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	TRY_CRASH(rdma_accept(server, &with));
}

static void accept_after_reject(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	request(NULL);
	make_qp(child);
	TRY(rdma_reject(child, NULL, 0));
	TRY(rdma_accept(child, &with));
	rest(client_events);
	rest(server_events);
}

/* The QP has moved before the kernel says no. */
static void accept_on_client(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	request(NULL);
	TRY(rdma_accept(client, &with));
	show_qp_attr(client);
	rest(client_events);
	rest(server_events);
	TRY(rdma_reject(child, NULL, 0));
	rest(client_events);
	show_qp_attr(client);
}

const struct scenario accept_scenarios[] = {
	{ "accept", accept_usual, "the usual way, QPs with all that was agreed", 0 },
	{ "accept-null", accept_null, "no parameters: those of the request", 0 },
	{ "accept-null-without-qp", accept_null_without_qp, "no parameters and no QP", 0 },
	{ "accept-without-qp", accept_without_qp, "a QP number instead of a QP", 0 },
	{ "accept-data", accept_data, "10 bytes of private data", 0 },
	{ "accept-longest", accept_longest, "196 bytes of private data", 0 },
	{ "accept-too-long", accept_too_long, "197 bytes of private data", 0 },
	{ "accept-too-long-told", accept_too_long_told,
	  "197 bytes: the peer is told at once, and less is too late", 0 },
	{ "accept-255", accept_255, "255 bytes of private data", 0 },
	{ "accept-twice", accept_twice, "rdma_accept() again", 0 },
	{ "accept-on-listener", accept_on_listener, "rdma_accept() on a listening id", 0 },
	{ "accept-after-reject", accept_after_reject, "rdma_accept() after rdma_reject()", 0 },
	{ "accept-on-client", accept_on_client, "rdma_accept() by the one that asked", 0 },
	{ NULL, NULL, NULL, 0 },
};
