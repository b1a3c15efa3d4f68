/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ep.c - rdma_create_ep(), rdma_get_request() with queue pairs, and two
 * threads that wait in turn.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>

#include "steps.h"

static struct rdma_addrinfo *info_of(const char *address, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags | RAI_NUMERICHOST,
				       .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *info = NULL;
	char port[8];

	(void)snprintf(port, sizeof(port), "%d", SERVER_PORT);
	assert_int_equal(rdma_getaddrinfo(address, port, &hints, &info), 0);
	assert_non_null(info);
	return info;
}

static struct ibv_qp_init_attr qp_attr(void)
{
	return (struct ibv_qp_init_attr) {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
}

/* The fabric without the pair's listener, whose port the end points take. */
static void fabric(struct pair *pair, enum transport transport)
{
	pair_open(pair, transport, RDMA_PS_TCP);
	assert_int_equal(rdma_destroy_id(pair->listener), 0);
	pair->listener = NULL;
}

static void passive_ones_are_bound(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct ibv_qp_init_attr attr = qp_attr();
		struct rdma_addrinfo *info;
		struct rdma_cm_id *id;
		struct pair pair;

		fabric(&pair, t);
		info = info_of(SERVER_ADDRESS, RAI_PASSIVE);
		assert_int_equal(rdma_create_ep(&id, info, NULL, &attr), 0);
		assert_int_equal(rdma_get_src_port(id), htons(SERVER_PORT));
		assert_non_null(id->verbs);
		assert_int_equal(id->qp_type, IBV_QPT_RC);
		assert_int_equal(id->ps, RDMA_PS_TCP);
		/* The attributes are for the ids of requests. */
		assert_null(id->qp);
		assert_null(id->event);
		assert_int_equal(rdma_listen(id, 1), 0);
		rdma_destroy_ep(id);
		rdma_freeaddrinfo(info);
		pair_close(&pair);
	}
}

/* As rdma_destroy_id() it is refused there, and the end point stays. */
static void a_child_cannot_end_its_parents(void **state)
{
	struct rdma_addrinfo *info;
	struct rdma_cm_id *id;
	struct pair pair;
	pid_t child;
	int status;

	(void)state;
	fabric(&pair, ROCE);
	info = info_of(SERVER_ADDRESS, RAI_PASSIVE);
	assert_int_equal(rdma_create_ep(&id, info, NULL, NULL), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		rdma_destroy_ep(id);
		_exit(!rdma_destroy_id(id) || errno != EACCES);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	rdma_destroy_ep(id);
	rdma_freeaddrinfo(info);
	pair_close(&pair);
}

static void active_ones_are_resolved(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (int with_qp = 0; with_qp < 2; with_qp++) {
			struct ibv_qp_init_attr attr = qp_attr();
			struct rdma_addrinfo *info;
			struct rdma_cm_id *id;
			struct pair pair;

			fabric(&pair, t);
			info = info_of(SERVER_ADDRESS, 0);
			assert_int_equal(rdma_create_ep(&id, info, NULL, with_qp ? &attr : NULL), 0);
			assert_int_equal(rdma_get_dst_port(id), htons(SERVER_PORT));
			assert_non_null(id->verbs);
			if (with_qp) {
				assert_int_equal(step_qp_state(id), IBV_QPS_INIT);
				assert_int_equal(id->qp->qp_type, IBV_QPT_RC);
				assert_non_null(id->send_cq);
				assert_non_null(id->recv_cq);
				assert_non_null(id->send_cq_channel);
				assert_non_null(id->recv_cq_channel);
			} else {
				assert_null(id->qp);
			}
			rdma_destroy_ep(id);
			rdma_freeaddrinfo(info);
			pair_close(&pair);
		}
	}
}

static void a_failure_leaves_nothing(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct ibv_qp_init_attr attr = qp_attr();
		struct rdma_addrinfo *info;
		struct rdma_cm_id *id = NULL;
		uint64_t before;
		struct pair pair;

		fabric(&pair, t);
		info = info_of("10.0.0.99", 0);
		before = pair_now();
		assert_errno(rdma_create_ep(&id, info, NULL, &attr), ETIMEDOUT);
		assert_elapsed(before, SECONDS(2));
		rdma_freeaddrinfo(info);

		info = info_of("10.0.0.99", RAI_PASSIVE);
		assert_errno(rdma_create_ep(&id, info, NULL, NULL), EADDRNOTAVAIL);
		rdma_freeaddrinfo(info);

		info = info_of(SERVER_ADDRESS, 0);
		attr.cap.max_send_wr = 1u << 30;
		assert_int_equal(rdma_create_ep(&id, info, NULL, &attr), -1);
		rdma_freeaddrinfo(info);
		pair_close(&pair);
	}
}

/* rdma_get_request() makes the QP; with attributes that cannot be, it fails and keeps the event. */
static void requests_get_their_queue_pair(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (int good = 0; good < 2; good++) {
			struct rdma_conn_param param = pair_param(NULL, 0);
			struct ibv_qp_init_attr attr = qp_attr();
			struct rdma_cm_id *listener, *id = NULL;
			struct rdma_addrinfo *info;
			struct pair pair;

			fabric(&pair, t);
			info = info_of(SERVER_ADDRESS, RAI_PASSIVE);
			if (!good)
				attr.cap.max_recv_wr = 1u << 30;
			assert_int_equal(rdma_create_ep(&listener, info, NULL, &attr), 0);
			rdma_freeaddrinfo(info);
			assert_int_equal(rdma_listen(listener, 1), 0);
			pair_resolve(&pair);
			pair_client_qp(&pair);
			assert_int_equal(rdma_connect(pair.client, &param), 0);
			if (good) {
				assert_int_equal(rdma_get_request(listener, &id), 0);
				assert_int_equal(step_qp_state(id), IBV_QPS_INIT);
				rdma_destroy_ep(id);
			} else {
				assert_int_equal(rdma_get_request(listener, &id), -1);
				assert_null(id);
				assert_non_null(listener->event);
				assert_int_equal(listener->event->event,
						 RDMA_CM_EVENT_CONNECT_REQUEST);
				assert_int_equal(rdma_destroy_id(listener->event->id), 0);
			}
			pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED,
				  t == IWARP ? -ECONNRESET : 28);
			rdma_destroy_ep(listener);
			pair_close(&pair);
		}
	}
}

/* RDMA_PS_IB is for any kind of QP, so the port alone does not say who is meant. */
static void kinds_must_match(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		for (int match = 0; match < 2; match++) {
			struct rdma_conn_param param = pair_param(NULL, 0);
			struct rdma_addrinfo *info;
			struct rdma_cm_event *event;
			struct pair pair;

			pair_open(&pair, t, RDMA_PS_IB);
			assert_int_equal(rdma_destroy_id(pair.listener), 0);
			info = info_of(SERVER_ADDRESS, RAI_PASSIVE);
			info->ai_port_space = RDMA_PS_IB;
			info->ai_qp_type = match ? IBV_QPT_RC : IBV_QPT_UD;
			assert_int_equal(rdma_create_ep(&pair.listener, info, NULL, NULL), 0);
			rdma_freeaddrinfo(info);
			assert_int_equal(pair.listener->qp_type, match ? IBV_QPT_RC : IBV_QPT_UD);
			assert_int_equal(rdma_migrate_id(pair.listener, pair.server_channel), 0);
			assert_int_equal(rdma_listen(pair.listener, 1), 0);
			pair_resolve(&pair);
			assert_int_equal(rdma_connect(pair.client, &param), 0);
			if (match) {
				event = pair_expect(pair.server_channel,
						    RDMA_CM_EVENT_CONNECT_REQUEST, 0);
				assert_int_equal(event->id->qp_type, IBV_QPT_RC);
				assert_int_equal(event->id->ps, RDMA_PS_IB);
				pair.server = event->id;
				rdma_ack_cm_event(event);
			} else {
				pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, 28);
			}
			pair_close(&pair);
		}
	}
}

/* --- Two threads. --- */

#define MESSAGE 16

struct server {
	struct rdma_cm_id *listener;
	pthread_t thread;
	const char *failed;
	char received[MESSAGE];
};

static const char *serve(struct server *server)
{
	struct rdma_cm_id *id;
	const char *failed = NULL;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	if (rdma_get_request(server->listener, &id))
		return "rdma_get_request";
	mr = rdma_reg_msgs(id, server->received, MESSAGE);
	if (!mr)
		return "rdma_reg_msgs";
	if (rdma_post_recv(id, NULL, server->received, MESSAGE, mr))
		failed = "rdma_post_recv";
	else if (rdma_accept(id, NULL))
		failed = "rdma_accept";
	else if (rdma_get_recv_comp(id, &wc) != 1 || wc.status || wc.byte_len != MESSAGE)
		failed = "rdma_get_recv_comp";
	else if (rdma_post_send(id, NULL, server->received, MESSAGE, mr, 0))
		failed = "rdma_post_send";
	else if (rdma_get_send_comp(id, &wc) != 1 || wc.status)
		failed = "rdma_get_send_comp";
	else if (rdma_disconnect(id))
		failed = "rdma_disconnect";
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	return failed;
}

static void *run_server(void *arg)
{
	struct server *server = arg;

	server->failed = serve(server);
	return NULL;
}

static void be_client(void)
{
	static char sent[MESSAGE] = "through polycm", got[MESSAGE];
	struct ibv_qp_init_attr attr = qp_attr();
	struct ibv_mr *sent_mr, *got_mr;
	struct rdma_addrinfo *info;
	struct rdma_cm_id *id;
	struct ibv_wc wc;

	memset(got, 0, sizeof(got));
	info = info_of(SERVER_ADDRESS, 0);
	assert_int_equal(rdma_create_ep(&id, info, NULL, &attr), 0);
	rdma_freeaddrinfo(info);
	sent_mr = rdma_reg_msgs(id, sent, sizeof(sent));
	got_mr = rdma_reg_msgs(id, got, sizeof(got));
	assert_non_null(sent_mr);
	assert_non_null(got_mr);
	assert_int_equal(rdma_post_recv(id, got, got, sizeof(got), got_mr), 0);
	assert_int_equal(rdma_connect(id, NULL), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(rdma_post_send(id, sent, sent, sizeof(sent), sent_mr, 0), 0);
	assert_int_equal(rdma_get_send_comp(id, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_ptr_equal(wc.wr_id, sent);
	assert_int_equal(rdma_get_recv_comp(id, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, sizeof(got));
	assert_ptr_equal(wc.wr_id, got);
	assert_memory_equal(got, sent, sizeof(sent));
	assert_int_equal(rdma_disconnect(id), 0);
	rdma_dereg_mr(sent_mr);
	rdma_dereg_mr(got_mr);
	rdma_destroy_ep(id);
}

static void two_threads_that_wait_in_turn(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (int round = 0; round < 20; round++) {
			struct ibv_qp_init_attr attr = qp_attr();
			struct server server = { 0 };
			struct rdma_addrinfo *info;
			struct pair pair;

			fabric(&pair, t);
			info = info_of(SERVER_ADDRESS, RAI_PASSIVE);
			assert_int_equal(rdma_create_ep(&server.listener, info, NULL, &attr), 0);
			rdma_freeaddrinfo(info);
			assert_int_equal(rdma_listen(server.listener, 1), 0);
			assert_int_equal(pthread_create(&server.thread, NULL, run_server, &server),
					 0);
			be_client();
			assert_int_equal(pthread_join(server.thread, NULL), 0);
			if (server.failed)
				fail_msg("%s: the server's %s failed", transport_name[t],
					 server.failed);
			assert_string_equal(server.received, "through polycm");
			rdma_destroy_ep(server.listener);
			pair_close(&pair);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passive_ones_are_bound),
		cmocka_unit_test(a_child_cannot_end_its_parents),
		cmocka_unit_test(active_ones_are_resolved),
		cmocka_unit_test(a_failure_leaves_nothing),
		cmocka_unit_test(requests_get_their_queue_pair),
		cmocka_unit_test(kinds_must_match),
		cmocka_unit_test(two_threads_that_wait_in_turn),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
