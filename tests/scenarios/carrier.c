/* SPDX-License-Identifier: BSD-2-Clause */
/* carrier.c - scenarios of a link that doubles or delays packets, and of one that goes down. */
#include "scene_data.h"

static void connect_and_end(void)
{
	struct rdma_conn_param with = param_data(10);

	server_listens(0);
	client_resolves();
	make_qp(client);
	TRY(rdma_connect(client, &with));
	next(server_events);
	make_qp(child);
	MUST(post_recv(child, 11, 64));
	TRY(rdma_accept(child, &with));
	next(client_events);
	next(server_events);
	MUST(post_send(client, 1, 10));
	sent(client, 1);
	received(child, 1);
	TRY(rdma_disconnect(client));
	next(server_events);
	TRY(rdma_disconnect(child));
	rest(client_events);
	rest(server_events);
	completions_rest(child);
}

static void link_duplicated(void)
{
	open_scene(RDMA_PS_TCP);
	link_duplicates();
	connect_and_end();
}

/* --- Down. --- */

static void end_after(void)
{
	rest(client_events);
	rest(server_events);
	show_qp(client);
	show_qp(child);
	TRY(rdma_disconnect(client));
	next(server_events);
	TRY(rdma_disconnect(child));
	rest(client_events);
	rest(server_events);
}

static void link_down_idle(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	link_down();
	rest(client_events);
	rest(server_events);
	show_qp(client);
	link_up();
	end_after();
}

static void link_cut_send(void)
{
	struct rdma_conn_param with = param();
	uint64_t start;

	open_scene(RDMA_PS_TCP);
	with.retry_count = 1;
	request(&with);
	make_qp(child);
	MUST(rdma_accept(child, &with));
	expect(client_events, ESTABLISHED);
	expect(server_events, ESTABLISHED);
	if (client->verbs->device->transport_type != IBV_TRANSPORT_IB)
		end_skipped("TCP repeats for a quarter of an hour");
	MUST(post_recv(child, 11, 64));
	MUST(post_recv(client, 11, 64));
	link_cut();
	start = now_ms();
	TRY(post_send(client, 1, 10));
	sent(client, 1);
	show_lapse("that", start, 1074);
	show_qp(client);
	rest(client_events);
	link_mended();
	completions_rest(client);
	end_after();
	completions_rest(child);
}

const struct scenario carrier_scenarios[] = {
	{"link-duplicated", link_duplicated, "every packet comes twice", LINK},
	{"link-down-idle", link_down_idle, "down and up while connected", LINK},
	{"link-cut-send", link_cut_send, "a message that nobody acknowledges", LINK},
	{NULL, NULL, NULL, 0},
};
