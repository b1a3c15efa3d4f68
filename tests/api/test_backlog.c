/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_backlog.c - rdma_listen()'s backlog counts requests that nobody has
 * retrieved.  What comes when it is full is dropped where the client repeats
 * itself (InfiniBand, RoCE) and refused where it does not.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "steps.h"

#define MOMENT 1000000u		/* 1 ms: any message has arrived */
#define MAX_CLIENTS 1200u
#define DEFAULT_BACKLOG 1024u

struct crowd {
	struct pair pair;
	unsigned int num_clients, num_servers;
	struct rdma_cm_id *client[MAX_CLIENTS];
	struct ibv_cq *cq[MAX_CLIENTS];
	struct rdma_cm_id *server[MAX_CLIENTS];
};

/* The pair with a listener of this backlog. */
static void crowd_open(struct crowd *crowd, enum transport transport, enum rdma_port_space ps,
		       int backlog)
{
	struct pair *pair = &crowd->pair;

	crowd->num_clients = crowd->num_servers = 0;
	pair_open(pair, transport, ps);
	assert_int_equal(rdma_destroy_id(pair->listener), 0);
	assert_int_equal(rdma_create_id(pair->server_channel, &pair->listener, NULL, ps), 0);
	assert_int_equal(rdma_bind_addr(pair->listener, step_sa(SERVER_ADDRESS, SERVER_PORT)), 0);
	assert_int_equal(rdma_listen(pair->listener, backlog), 0);
}

static void give_qp(struct crowd *crowd, unsigned int i)
{
	struct rdma_cm_id *id = crowd->client[i];
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	crowd->cq[i] = ibv_create_cq(id->verbs, 1, NULL, NULL, 0);
	assert_non_null(crowd->cq[i]);
	attr.send_cq = attr.recv_cq = crowd->cq[i];
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
}

/* One more client, resolved; its request is on its way. */
static struct rdma_cm_id *crowd_connect(struct crowd *crowd)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct pair *pair = &crowd->pair;
	unsigned int i = crowd->num_clients++;

	assert_true(i < MAX_CLIENTS);
	assert_int_equal(rdma_create_id(pair->client_channel, &crowd->client[i], NULL, pair->ps), 0);
	assert_int_equal(rdma_resolve_addr(crowd->client[i], NULL,
					   step_sa(SERVER_ADDRESS, SERVER_PORT), 2000), 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_route(crowd->client[i], 2000), 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	crowd->cq[i] = NULL;
	param.qp_num = 0x100 + i;
	if (pair->transport == IWARP)
		give_qp(crowd, i);
	assert_int_equal(rdma_connect(crowd->client[i], &param), 0);
	return crowd->client[i];
}

/* The server takes the oldest request. */
static void crowd_take(struct crowd *crowd)
{
	struct rdma_cm_event *event = pair_expect(crowd->pair.server_channel,
						  RDMA_CM_EVENT_CONNECT_REQUEST, 0);

	assert_true(crowd->num_servers < MAX_CLIENTS);
	crowd->server[crowd->num_servers++] = event->id;
	rdma_ack_cm_event(event);
}

static void crowd_close(struct crowd *crowd)
{
	for (unsigned int i = 0; i < crowd->num_clients; i++) {
		if (crowd->cq[i])
			rdma_destroy_qp(crowd->client[i]);
		assert_int_equal(rdma_destroy_id(crowd->client[i]), 0);
		if (crowd->cq[i])
			assert_int_equal(ibv_destroy_cq(crowd->cq[i]), 0);
	}
	for (unsigned int i = 0; i < crowd->num_servers; i++)
		assert_int_equal(rdma_destroy_id(crowd->server[i]), 0);
	pair_close(&crowd->pair);
}

static struct crowd *new_crowd(void)
{
	struct crowd *crowd = malloc(sizeof(*crowd));

	assert_non_null(crowd);
	return crowd;
}

/* T_req, and 16 of it. */
static uint64_t request_timeout(enum transport transport)
{
	return SECONDS(transport == ROCE ? 4.608 : 6.144);
}

static void dropped_requests_come_again(void **state)
{
	struct crowd *crowd = new_crowd();

	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		uint64_t before, one_way;
		struct rdma_cm_event *event;
		struct rdma_cm_id *late;

		crowd_open(crowd, t, RDMA_PS_TCP, 1);
		crowd_connect(crowd);
		assert_int_equal(polycm_sim_advance(MOMENT), 0);
		late = crowd_connect(crowd);
		before = pair_now();
		assert_int_equal(polycm_sim_advance(MOMENT), 0);
		crowd_take(crowd);
		/* There is room now, but what was dropped is gone; its repetition comes. */
		pair_none(crowd->pair.server_channel);
		event = pair_expect(crowd->pair.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
		one_way = pair_now() - before - request_timeout(t);
		assert_true(one_way > 0 && one_way < MOMENT);
		assert_int_equal(rdma_get_dst_port(event->id), rdma_get_src_port(late));
		crowd->server[crowd->num_servers++] = event->id;
		rdma_ack_cm_event(event);
		pair_none(crowd->pair.client_channel);
		crowd_close(crowd);
	}
	free(crowd);
}

/* As if the host were dead: nothing answers, 16 waits. */
static void a_backlog_that_stays_full(void **state)
{
	struct crowd *crowd = new_crowd();

	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_cm_event *event;
		struct rdma_cm_id *late;
		uint64_t before;

		crowd_open(crowd, t, RDMA_PS_TCP, 1);
		crowd_connect(crowd);
		assert_int_equal(polycm_sim_advance(MOMENT), 0);
		late = crowd_connect(crowd);
		before = pair_now();
		event = pair_expect(crowd->pair.client_channel, RDMA_CM_EVENT_UNREACHABLE,
				    -ETIMEDOUT);
		assert_ptr_equal(event->id, late);
		rdma_ack_cm_event(event);
		assert_elapsed(before, 16 * request_timeout(t));
		crowd_take(crowd);
		pair_none(crowd->pair.server_channel);
		crowd_close(crowd);
	}
	free(crowd);
}

static void refused_at_once(enum transport transport, enum rdma_port_space ps,
			    enum rdma_cm_event_type type, int status)
{
	struct crowd *crowd = new_crowd();
	struct rdma_cm_event *event;
	struct rdma_cm_id *late;

	crowd_open(crowd, transport, ps, 2);
	crowd_connect(crowd);
	crowd_connect(crowd);
	assert_int_equal(polycm_sim_advance(MOMENT), 0);
	late = crowd_connect(crowd);
	event = pair_expect(crowd->pair.client_channel, type, status);
	assert_ptr_equal(event->id, late);
	rdma_ack_cm_event(event);
	crowd_take(crowd);
	crowd_connect(crowd);
	assert_int_equal(polycm_sim_advance(MOMENT), 0);
	crowd_take(crowd);
	crowd_take(crowd);
	pair_none(crowd->pair.server_channel);
	crowd_close(crowd);
	free(crowd);
}

static void iwarp_refuses(void **state)
{
	(void)state;
	refused_at_once(IWARP, RDMA_PS_TCP, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
}

static void datagrams_are_refused(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++)
		refused_at_once(t, RDMA_PS_UDP, RDMA_CM_EVENT_UNREACHABLE, 2);
}

/* Retrieved is enough: accepting, rejecting and destroying do not matter. */
static void retrieving_frees_a_place(void **state)
{
	struct crowd *crowd = new_crowd();

	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		crowd_open(crowd, t, RDMA_PS_TCP, 1);
		for (int i = 0; i < 20; i++) {
			crowd_connect(crowd);
			crowd_take(crowd);
		}
		pair_none(crowd->pair.client_channel);
		crowd_close(crowd);
	}
	free(crowd);
}

static const int backlogs[] = { 0, -1, 5000, 1024 };

static void the_limit_is_1024(void **state)
{
	struct crowd *crowd = new_crowd();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(backlogs); i++) {
		print_message("backlog %d\n", backlogs[i]);
		/* Datagrams tell at once. */
		crowd_open(crowd, ROCE, RDMA_PS_UDP, backlogs[i]);
		for (unsigned int n = 0; n < DEFAULT_BACKLOG; n++)
			crowd_connect(crowd);
		assert_int_equal(polycm_sim_advance(MOMENT), 0);
		pair_none(crowd->pair.client_channel);
		crowd_connect(crowd);
		pair_take(crowd->pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, 2);
		crowd_close(crowd);
	}
	free(crowd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dropped_requests_come_again),
		cmocka_unit_test(a_backlog_that_stays_full),
		cmocka_unit_test(iwarp_refuses),
		cmocka_unit_test(datagrams_are_refused),
		cmocka_unit_test(retrieving_frees_a_place),
		cmocka_unit_test(the_limit_is_1024),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
