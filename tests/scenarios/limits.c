/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits.c - scenarios of how much rdma_connect() carries: private data, depths,
 * retries, and what of it the other side sees.
 */
#include "scene.h"

/* --- Private data of rdma_connect(). --- */

static void connect_with(size_t len)
{
	struct rdma_conn_param with = param_data(len);

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	make_qp(client);
	say("%zu bytes", len);
	if (!TRY(rdma_connect(client, &with))) {
		rest(server_events);
		return;
	}
	rest(server_events);
	say("again with one byte");
	with.private_data_len = 1;
	if (!TRY(rdma_connect(client, &with)))
		next(server_events);
}

static void limits_none(void)
{
	connect_with(0);
}

static void limits_56(void)
{
	connect_with(56);
}

static void limits_57(void)
{
	connect_with(57);
}

static void limits_219(void)
{
	connect_with(219);
}

static void limits_220(void)
{
	connect_with(220);
}

static void limits_251(void)
{
	connect_with(251);
}

static void limits_255(void)
{
	connect_with(255);
}

static void limits_length_without_data(void)
{
	struct rdma_conn_param with = param();

	with.private_data_len = 20;
	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	make_qp(client);
	TRY(rdma_connect(client, &with));
	next(server_events);
}

/* --- Depths. --- */

static void connect_depths(uint8_t resources, uint8_t depth)
{
	struct rdma_conn_param with = param();

	with.responder_resources = resources;
	with.initiator_depth = depth;
	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	make_qp(client);
	say("responder_resources %u, initiator_depth %u", resources, depth);
	if (TRY(rdma_connect(client, &with)))
		return;
	next(server_events);
	make_qp(child);
}

static void limits_depths(void)
{
	struct rdma_conn_param with = param();

	connect_depths(5, 3);
	with.responder_resources = 3;
	with.initiator_depth = 5;
	TRY(rdma_accept(child, &with));
	show_qp_attr(child);
	next(client_events);
	show_qp_attr(client);
	next(server_events);
}

static void limits_depths_zero(void)
{
	struct rdma_conn_param with = { .retry_count = 7, .rnr_retry_count = 7 };

	connect_depths(0, 0);
	TRY(rdma_accept(child, &with));
	show_qp_attr(child);
	next(client_events);
	show_qp_attr(client);
	next(server_events);
}

static void limits_depths_max(void)
{
	struct rdma_conn_param with = param();

	connect_depths(RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH);
	with.responder_resources = RDMA_MAX_RESP_RES;
	with.initiator_depth = RDMA_MAX_INIT_DEPTH;
	TRY(rdma_accept(child, &with));
	next(client_events);
	next(server_events);
}

static void limits_depths_null(void)
{
	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	make_qp(client);
	TRY(rdma_connect(client, NULL));
	next(server_events);
}

static void limits_null_without_qp(void)
{
	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	TRY(rdma_connect(client, NULL));
	rest(server_events);
}

static void limits_resources_too_deep(void)
{
	connect_depths(254, 1);
}

static void limits_initiator_too_deep(void)
{
	connect_depths(1, 254);
}

static void accept_depths(uint8_t resources, uint8_t depth)
{
	struct rdma_conn_param with = param();

	connect_depths(4, 4);
	with.responder_resources = resources;
	with.initiator_depth = depth;
	say("accepted with %u, %u", resources, depth);
	if (TRY(rdma_accept(child, &with))) {
		rest(client_events);
		return;
	}
	next(client_events);
	show_qp_attr(client);
	show_qp_attr(child);
	next(server_events);
}

static void limits_accept_more(void)
{
	accept_depths(6, 8);
}

static void limits_accept_less(void)
{
	accept_depths(1, 2);
}

static void limits_accept_none(void)
{
	accept_depths(0, 0);
}

static void limits_accept_too_deep(void)
{
	accept_depths(254, 1);
}

static void limits_accept_too_deep_initiator(void)
{
	accept_depths(1, 254);
}

/* --- Retries, flow control, QP numbers. --- */

static void limits_retries(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	make_qp(client);
	with.retry_count = 3;
	with.rnr_retry_count = 2;
	with.flow_control = 1;
	TRY(rdma_connect(client, &with));
	next(server_events);
	make_qp(child);
	with.retry_count = 6;
	with.rnr_retry_count = 5;
	with.flow_control = 3;
	TRY(rdma_accept(child, &with));
	next(client_events);
	next(server_events);
	show_qp_attr(client);
	show_qp_attr(child);
}

static void limits_retries_too_many(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	make_qp(client);
	with.retry_count = 8;
	with.rnr_retry_count = 255;
	with.flow_control = 2;
	TRY(rdma_connect(client, &with));
	next(server_events);
	make_qp(child);
	with.retry_count = 9;
	with.rnr_retry_count = 14;
	TRY(rdma_accept(child, &with));
	next(client_events);
	next(server_events);
	show_qp_attr(client);
	show_qp_attr(child);
}

static void limits_own_numbers(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	with.srq = 1;
	with.qp_num = 0x12000000 | own_qp_num(1);
	if (!TRY(rdma_connect(client, &with)))
		next(server_events);
}

static void limits_numbers_of_qp(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	make_qp(client);
	with.srq = 1;
	with.qp_num = own_qp_num(1);
	TRY(rdma_connect(client, &with));
	next(server_events);
}

const struct scenario limits_scenarios[] = {
	{ "limits-data-none", limits_none, "no private data: what the peer sees", 0 },
	{ "limits-data-56", limits_56, "56 bytes of private data", 0 },
	{ "limits-data-57", limits_57, "57 bytes, then one", 0 },
	{ "limits-data-219", limits_219, "219 bytes", 0 },
	{ "limits-data-220", limits_220, "220 bytes", 0 },
	{ "limits-data-251", limits_251, "251 bytes", 0 },
	{ "limits-data-255", limits_255, "255 bytes", 0 },
	{ "limits-data-null", limits_length_without_data, "a length without data", 0 },
	{ "limits-depths", limits_depths, "depths of both sides, in events and QPs", 0 },
	{ "limits-depths-zero", limits_depths_zero, "depths 0", 0 },
	{ "limits-depths-max", limits_depths_max, "as deep as the device can", 0 },
	{ "limits-depths-null", limits_depths_null, "no parameters: what the peer sees", 0 },
	{ "limits-null-without-qp", limits_null_without_qp, "no parameters, no QP", 0 },
	{ "limits-resources-too-deep", limits_resources_too_deep, "more than the device has", 0 },
	{ "limits-initiator-too-deep", limits_initiator_too_deep, "more than the device has", 0 },
	{ "limits-accept-more", limits_accept_more, "accepted with more than offered", 0 },
	{ "limits-accept-less", limits_accept_less, "accepted with less than offered", 0 },
	{ "limits-accept-none", limits_accept_none, "accepted with depths 0", 0 },
	{ "limits-accept-too-deep", limits_accept_too_deep, "more than the device has", 0 },
	{ "limits-accept-too-deep-initiator", limits_accept_too_deep_initiator,
	  "more than the device has", 0 },
	{ "limits-retries", limits_retries, "retry counts and flow control", 0 },
	{ "limits-retries-too-many", limits_retries_too_many, "retry counts above 7", 0 },
	{ "limits-own-numbers", limits_own_numbers, "SRQ and QP number of the caller", 0 },
	{ "limits-numbers-of-qp", limits_numbers_of_qp, "those of the QP win", 0 },
	{ NULL, NULL, NULL, 0 },
};
