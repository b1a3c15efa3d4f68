/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sync.c - synchronous ids: calls that wait for their event, and what
 * becomes of its status.  One thread: the other end is asynchronous, and what
 * the synchronous one waits for is under way when it begins to.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "steps.h"

/* A synchronous id in place of the pair's client. */
static void sync_client(struct pair *pair, enum transport transport, enum rdma_port_space ps)
{
	pair_open(pair, transport, ps);
	assert_int_equal(rdma_destroy_id(pair->client), 0);
	pair->client = NULL;
	assert_int_equal(rdma_create_id(NULL, &pair->client, pair, ps), 0);
	assert_ptr_equal(pair->client->context, pair);
}

/* A synchronous listener in place of the pair's. */
static void sync_listener(struct pair *pair, enum transport transport, enum rdma_port_space ps)
{
	pair_open(pair, transport, ps);
	assert_int_equal(rdma_destroy_id(pair->listener), 0);
	pair->listener = NULL;
	assert_int_equal(rdma_create_id(NULL, &pair->listener, pair, ps), 0);
	assert_int_equal(rdma_bind_addr(pair->listener, step_sa(SERVER_ADDRESS, SERVER_PORT)), 0);
	assert_int_equal(rdma_listen(pair->listener, 8), 0);
}

static void resolve(struct pair *pair)
{
	assert_int_equal(rdma_resolve_addr(pair->client, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT),
					   2000), 0);
	assert_int_equal(rdma_resolve_route(pair->client, 2000), 0);
}

static void assert_event(const struct rdma_cm_id *id, enum rdma_cm_event_type type, int status)
{
	assert_non_null(id->event);
	if (id->event->event != type || id->event->status != status)
		fail_msg("%s with status %d instead of %s with %d", rdma_event_str(id->event->event),
			 id->event->status, rdma_event_str(type), status);
	assert_ptr_equal(id->event->id, id);
}

static void has_a_channel_of_its_own(void **state)
{
	struct pair pair;

	(void)state;
	sync_client(&pair, ROCE, RDMA_PS_TCP);
	assert_non_null(pair.client->channel);
	assert_ptr_not_equal(pair.client->channel, pair.client_channel);
	assert_true(fcntl(pair.client->channel->fd, F_GETFD) >= 0);
	assert_null(pair.client->event);
	pair_close(&pair);
}

static void resolving_waits(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		sync_client(&pair, t, RDMA_PS_TCP);
		assert_int_equal(rdma_resolve_addr(pair.client, NULL,
						   step_sa(SERVER_ADDRESS, SERVER_PORT), 2000), 0);
		assert_event(pair.client, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		assert_non_null(pair.client->verbs);
		assert_int_equal(rdma_resolve_route(pair.client, 2000), 0);
		assert_event(pair.client, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
		pair_close(&pair);
	}
}

static void failing_to_resolve(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		uint64_t before;
		struct pair pair;

		sync_client(&pair, t, RDMA_PS_TCP);
		before = pair_now();
		assert_errno(rdma_resolve_addr(pair.client, NULL, step_sa("10.0.0.99", 1), 300),
			     ETIMEDOUT);
		assert_elapsed(before, 300000000);
		assert_event(pair.client, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
		/* A call that fails at once brings no event. */
		assert_errno(rdma_resolve_route(pair.client, 2000), EINVAL);
		resolve(&pair);
		pair_close(&pair);
	}
}

static void nobody_listens(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		sync_client(&pair, t, RDMA_PS_TCP);
		assert_int_equal(rdma_destroy_id(pair.listener), 0);
		pair.listener = NULL;
		resolve(&pair);
		pair_client_qp(&pair);
		assert_errno(rdma_connect(pair.client, &param), ECONNREFUSED);
		/* The reason is lost in errno, but not in the event. */
		if (t != IWARP)
			assert_event(pair.client, RDMA_CM_EVENT_REJECTED, 8);
		pair_close(&pair);
	}
}

/* Positive statuses of service lookups come as errno. */
static void nobody_serves_datagrams(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		sync_client(&pair, t, RDMA_PS_UDP);
		assert_int_equal(rdma_destroy_id(pair.listener), 0);
		pair.listener = NULL;
		resolve(&pair);
		pair_client_qp(&pair);
		assert_errno(rdma_connect(pair.client, &param), 1);
		assert_event(pair.client, RDMA_CM_EVENT_UNREACHABLE, 1);
		pair_close(&pair);
	}
}

static void waiting_for_nothing_is_an_error(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_cm_id *id = NULL;
		struct pair pair;

		sync_listener(&pair, t, RDMA_PS_TCP);
		assert_errno(rdma_get_request(pair.listener, &id), EDEADLK);
		assert_null(id);
		pair_close(&pair);
	}
}

static void get_request_is_for_synchronous_listeners(void **state)
{
	struct rdma_cm_id *id = NULL;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_errno(rdma_get_request(pair.listener, &id), EINVAL);
	assert_errno(rdma_get_request(pair.client, &id), EINVAL);
	assert_null(id);
	pair_close(&pair);
}

/* The new id is synchronous, too, and has the request until its next call. */
static void requests_make_synchronous_ids(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param("hello", 6);
		struct rdma_cm_id *id;
		struct pair pair;

		print_message("%s\n", transport_name[t]);
		sync_listener(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		pair_client_qp(&pair);
		assert_int_equal(rdma_connect(pair.client, &param), 0);
		assert_int_equal(rdma_get_request(pair.listener, &id), 0);
		pair.server = id;
		assert_ptr_equal(id->context, &pair);
		assert_non_null(id->channel);
		assert_ptr_not_equal(id->channel, pair.listener->channel);
		assert_event(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
		assert_ptr_equal(id->event->listen_id, pair.listener);
		assert_memory_equal(id->event->param.conn.private_data, "hello", 6);
		assert_null(pair.listener->event);
		assert_null(id->qp);
		assert_int_equal(rdma_reject(id, NULL, 0), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, t == IWARP ? -ECONNRESET : 28);
		pair_close(&pair);
	}
}

/* Datagrams: nothing comes after accepting, so nothing is waited for. */
static void accepting_datagrams_does_not_wait(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		uint64_t before;
		struct pair pair;

		sync_listener(&pair, t, RDMA_PS_UDP);
		pair_resolve(&pair);
		pair_client_qp(&pair);
		assert_int_equal(rdma_connect(pair.client, &param), 0);
		assert_int_equal(rdma_get_request(pair.listener, &pair.server), 0);
		pair_server_qp(&pair);
		before = pair_now();
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		assert_elapsed(before, 0);
		assert_event(pair.server, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_int_equal(rdma_disconnect(pair.server), 0);
		pair_close(&pair);
	}
}

/* On iWARP the passive side is established at once. */
static void iwarp_accepts_by_itself(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct pair pair;

	(void)state;
	sync_listener(&pair, IWARP, RDMA_PS_TCP);
	pair_resolve(&pair);
	pair_client_qp(&pair);
	assert_int_equal(rdma_connect(pair.client, &param), 0);
	assert_int_equal(rdma_get_request(pair.listener, &pair.server), 0);
	pair_server_qp(&pair);
	assert_int_equal(rdma_accept(pair.server, &param), 0);
	assert_event(pair.server, RDMA_CM_EVENT_ESTABLISHED, 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(rdma_disconnect(pair.server), 0);
	assert_event(pair.server, RDMA_CM_EVENT_DISCONNECTED, 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	pair_close(&pair);
}

/* A client that is gone when the server gets to it. */
static void the_client_has_gone(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		sync_listener(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		pair_client_qp(&pair);
		assert_int_equal(rdma_connect(pair.client, &param), 0);
		assert_int_equal(rdma_get_request(pair.listener, &pair.server), 0);
		pair_server_qp(&pair);
		rdma_destroy_qp(pair.client);
		assert_int_equal(rdma_destroy_id(pair.client), 0);
		pair.client = NULL;
		assert_int_equal(polycm_sim_advance(1000000), 0);
		assert_errno(rdma_accept(pair.server, &param), t == IWARP ? ECONNRESET : EINVAL);
		pair_close(&pair);
	}
}

/* Nobody to say RTU: the wait ends when the reply is given up. */
static void accepting_a_client_that_does_not_listen(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		sync_listener(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		pair_client_qp(&pair);
		assert_int_equal(rdma_connect(pair.client, &param), 0);
		assert_int_equal(rdma_get_request(pair.listener, &pair.server), 0);
		pair_server_qp(&pair);
		assert_errno(rdma_accept(pair.server, &param), ETIMEDOUT);
		assert_event(pair.server, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		pair_close(&pair);
	}
}

/* Whatever event is next ends the wait, also one that the call did not bring about. */
static void the_next_event_ends_the_wait(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	pair_connect(&pair);
	assert_int_equal(rdma_disconnect(pair.client), 0);
	assert_int_equal(polycm_sim_advance(1000000), 0);
	/* DISCONNECTED waits in the queue and moves along. */
	assert_int_equal(rdma_migrate_id(pair.server, NULL), 0);
	assert_null(pair.server->event);
	assert_int_equal(rdma_disconnect(pair.server), 0);
	assert_event(pair.server, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(rdma_disconnect(pair.server), 0);
	assert_event(pair.server, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	pair_close(&pair);
}

/* Destroying gives back the event that the id still holds. */
static void destroying_acks_the_last_event(void **state)
{
	struct pair pair;

	(void)state;
	sync_client(&pair, ROCE, RDMA_PS_TCP);
	resolve(&pair);
	assert_event(pair.client, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(rdma_destroy_id(pair.client), 0);
	pair.client = NULL;
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_a_channel_of_its_own),
		cmocka_unit_test(resolving_waits),
		cmocka_unit_test(failing_to_resolve),
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(nobody_serves_datagrams),
		cmocka_unit_test(waiting_for_nothing_is_an_error),
		cmocka_unit_test(get_request_is_for_synchronous_listeners),
		cmocka_unit_test(requests_make_synchronous_ids),
		cmocka_unit_test(accepting_datagrams_does_not_wait),
		cmocka_unit_test(iwarp_accepts_by_itself),
		cmocka_unit_test(the_client_has_gone),
		cmocka_unit_test(accepting_a_client_that_does_not_listen),
		cmocka_unit_test(the_next_event_ends_the_wait),
		cmocka_unit_test(destroying_acks_the_last_event),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
