/* SPDX-License-Identifier: BSD-2-Clause */
/* scene_steps.c - owns the usual way to a situation, without a word as long as nothing fails. */
#include "scene_internal.h"

const uint8_t counting[256] = {
#define ROW(n) n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7
#define BLOCK(n) ROW(n), ROW(n + 8), ROW(n + 16), ROW(n + 24)
	BLOCK(1), BLOCK(33), BLOCK(65), BLOCK(97), BLOCK(129), BLOCK(161), BLOCK(193), ROW(225),
	ROW(233), ROW(241), 249, 250, 251, 252, 253, 254, 255, 1,
};

struct rdma_conn_param param(void)
{
	return (struct rdma_conn_param){
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

struct rdma_conn_param param_data(size_t len)
{
	struct rdma_conn_param with_data = param();

	with_data.private_data = counting;
	with_data.private_data_len = (uint8_t)len;
	return with_data;
}

void server_listens(int backlog)
{
	MUST(rdma_bind_addr(server, at(SERVER4, 0)));
	MUST(rdma_listen(server, backlog));
}

/* Takes an event of a step; shown only if it is another one. */
static void step_event(struct rdma_event_channel *events, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	quiet();
	event = next(events);
	loud();
	if (event && event->event == type && !event->status)
		return;
	if (event)
		show_event(events, event);
	errno = event ? abs(event->status) : ETIMEDOUT;
	end_failed(rdma_event_str(type));
}

void client_finds(void)
{
	MUST(rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), at(SERVER4, 0), 5000));
	step_event(client_events, RDMA_CM_EVENT_ADDR_RESOLVED);
}

void client_resolves(void)
{
	client_finds();
	MUST(rdma_resolve_route(client, 5000));
	step_event(client_events, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = id->qp_type,
		.sq_sig_all = 1,
	};

	MUST(rdma_create_qp(id, NULL, &attr));
}

void request(struct rdma_conn_param *connect_param)
{
	struct rdma_conn_param usual = param();

	server_listens(0);
	client_resolves();
	make_qp(client);
	MUST(rdma_connect(client, connect_param ? connect_param : &usual));
	step_event(server_events, RDMA_CM_EVENT_CONNECT_REQUEST);
}

void accepted(struct rdma_conn_param *accept_param)
{
	struct rdma_conn_param usual = param();

	request(NULL);
	make_qp(child);
	MUST(rdma_accept(child, accept_param ? accept_param : &usual));
}

void established(void)
{
	accepted(NULL);
	step_event(client_events, RDMA_CM_EVENT_ESTABLISHED);
	step_event(server_events, RDMA_CM_EVENT_ESTABLISHED);
}
