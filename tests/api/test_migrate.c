/* SPDX-License-Identifier: BSD-2-Clause */
/* test_migrate.c - rdma_migrate_id(): an id, with what waits for it, moves to another channel. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "steps.h"

#define MOMENT 1000000u

static struct rdma_event_channel *new_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	assert_non_null(channel);
	return channel;
}

static void later_events_come_on_the_new_channel(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_event_channel *other;
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_connect(&pair);
		other = new_channel();
		assert_int_equal(rdma_migrate_id(pair.client, other), 0);
		assert_ptr_equal(pair.client->channel, other);
		assert_int_equal(rdma_disconnect(pair.server), 0);
		pair_take(other, RDMA_CM_EVENT_DISCONNECTED, 0);
		pair_none(pair.client_channel);
		/* Back again. */
		assert_int_equal(rdma_migrate_id(pair.client, pair.client_channel), 0);
		rdma_destroy_event_channel(other);
		pair_close(&pair);
	}
}

/* Only its own: what waits for others stays, and each keeps its order. */
static void waiting_events_move_along(void **state)
{
	struct rdma_event_channel *other;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id[3];
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(rdma_create_id(pair.client_channel, &id[i], NULL, RDMA_PS_TCP), 0);
		assert_int_equal(rdma_resolve_addr(id[i], NULL,
						   step_sa(SERVER_ADDRESS, SERVER_PORT), 2000), 0);
	}
	assert_int_equal(polycm_sim_advance(MOMENT), 0);
	other = new_channel();
	assert_int_equal(rdma_migrate_id(id[1], other), 0);
	event = pair_expect(other, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_ptr_equal(event->id, id[1]);
	rdma_ack_cm_event(event);
	pair_none(other);
	for (unsigned int i = 0; i < 3; i += 2) {
		event = pair_expect(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		assert_ptr_equal(event->id, id[i]);
		rdma_ack_cm_event(event);
	}
	pair_none(pair.client_channel);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(rdma_destroy_id(id[i]), 0);
	rdma_destroy_event_channel(other);
	pair_close(&pair);
}

/* What is under way ends on the channel that the id is on by then. */
static void answers_find_the_id(void **state)
{
	static const enum step steps[] = { STEP_ADDR_QUERY, STEP_ROUTE_QUERY };

	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
			struct rdma_event_channel *other;
			struct pair pair;

			step_open(&pair, t, steps[i]);
			other = new_channel();
			assert_int_equal(rdma_migrate_id(pair.client, other), 0);
			pair_take(other, steps[i] == STEP_ADDR_QUERY ?
				  RDMA_CM_EVENT_ADDR_RESOLVED : RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
			pair_none(pair.client_channel);
			assert_int_equal(rdma_migrate_id(pair.client, pair.client_channel), 0);
			rdma_destroy_event_channel(other);
			pair_close(&pair);
		}
	}
}

/* A listener brings the requests that nobody has retrieved; their ids are on the new channel. */
/* One that waits when its listener moves is lost, as on Linux since 5.11; the next one comes. */
static void a_listener_leaves_its_requests_behind(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param("first", 6);
		struct rdma_event_channel *other;
		struct pair pair;

		pair_open_resolved(&pair, t);
		assert_int_equal(rdma_connect(pair.client, &param), 0);
		assert_int_equal(polycm_sim_advance(MOMENT), 0);
		other = new_channel();
		assert_int_equal(rdma_migrate_id(pair.listener, other), 0);
		pair_none(pair.server_channel);
		pair_none(other);
		pair_none(pair.client_channel);

		/* Its id ends with the channel that it is on. */
		rdma_destroy_event_channel(pair.server_channel);
		pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED,
			  t == IWARP ? -ECONNRESET : 28);
		pair.server_channel = other;
		pair_close(&pair);
	}
}

/* A request that was taken stays where it is, and can go elsewhere. */
static void a_taken_request_moves_by_itself(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param("first", 6);
		struct rdma_event_channel *other;
		struct pair pair;

		pair_open_resolved(&pair, t);
		rdma_ack_cm_event(pair_request(&pair, &param));
		other = new_channel();
		assert_int_equal(rdma_migrate_id(pair.server, other), 0);
		pair_server_qp(&pair);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		pair_take(other, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_int_equal(rdma_migrate_id(pair.server, pair.server_channel), 0);
		rdma_destroy_event_channel(other);
		pair_close(&pair);
	}
}

/* --- To and from synchronous. --- */

static void without_a_channel_it_becomes_synchronous(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		assert_int_equal(rdma_migrate_id(pair.client, NULL), 0);
		assert_non_null(pair.client->channel);
		assert_ptr_not_equal(pair.client->channel, pair.client_channel);
		assert_int_equal(rdma_resolve_addr(pair.client, NULL,
						   step_sa(SERVER_ADDRESS, SERVER_PORT), 2000), 0);
		assert_non_null(pair.client->event);
		assert_int_equal(pair.client->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
		/* Synchronous already. */
		assert_errno(rdma_migrate_id(pair.client, NULL), EINVAL);

		/* And asynchronous again; the event that it held is given back. */
		assert_int_equal(rdma_migrate_id(pair.client, pair.client_channel), 0);
		assert_null(pair.client->event);
		assert_ptr_equal(pair.client->channel, pair.client_channel);
		assert_int_equal(rdma_resolve_route(pair.client, 2000), 0);
		assert_null(pair.client->event);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
		pair_close(&pair);
	}
}

/* --- Events that the program still holds. --- */

struct mover {
	struct rdma_cm_id *id;
	struct rdma_event_channel *to;
	atomic_bool done;
	int result;
};

static void *move(void *arg)
{
	struct mover *mover = arg;

	mover->result = rdma_migrate_id(mover->id, mover->to);
	atomic_store(&mover->done, true);
	return NULL;
}

static void moving_waits_for_acks(void **state)
{
	struct mover mover = { 0 };
	struct rdma_cm_event *event;
	pthread_t thread;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(rdma_resolve_addr(pair.client, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT),
					   2000), 0);
	event = pair_expect(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	mover.id = pair.client;
	mover.to = new_channel();
	assert_int_equal(pthread_create(&thread, NULL, move, &mover), 0);
	for (int i = 0; i < 2000; i++) {
		assert_false(atomic_load(&mover.done));
		sched_yield();
	}
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(mover.result, 0);
	assert_int_equal(rdma_migrate_id(pair.client, pair.client_channel), 0);
	rdma_destroy_event_channel(mover.to);
	pair_close(&pair);
}

static void to_where_it_is(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(rdma_resolve_addr(pair.client, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT),
					   2000), 0);
	assert_int_equal(polycm_sim_advance(MOMENT), 0);
	assert_int_equal(rdma_migrate_id(pair.client, pair.client_channel), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	pair_none(pair.client_channel);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(later_events_come_on_the_new_channel),
		cmocka_unit_test(waiting_events_move_along),
		cmocka_unit_test(answers_find_the_id),
		cmocka_unit_test(a_listener_leaves_its_requests_behind),
		cmocka_unit_test(a_taken_request_moves_by_itself),
		cmocka_unit_test(without_a_channel_it_becomes_synchronous),
		cmocka_unit_test(moving_waits_for_acks),
		cmocka_unit_test(to_where_it_is),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
