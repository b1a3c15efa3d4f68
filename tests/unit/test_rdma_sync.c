/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Synchronous ids: calls that wait for their event and return its status,
 * rdma_get_request(), endpoints, and ids that move to other channels.
 */
#include "cm_fake.h"

#include <pthread.h>
#include <sched.h>

static struct polycm_id *internal(struct rdma_cm_id *id)
{
	return (struct polycm_id *)(void *)id;
}

/* A synchronous id ready to connect. */
static struct rdma_cm_id *sync_id(void)
{
	struct rdma_cm_id *id = new_id(NULL);

	assert_non_null(id->channel);
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.0.2", 7471), 100), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(id, 100), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

static struct rdma_cm_id *sync_listener(void)
{
	struct rdma_cm_id *id = new_id(NULL);

	assert_int_equal(rdma_bind_addr(id, addr4("0.0.0.0", 7471)), 0);
	assert_int_equal(rdma_listen(id, 1), 0);
	return id;
}

static void calls_return_the_status_of_the_next_event(void **state)
{
	static const struct { enum rdma_cm_event_type type; int status, error; } cases[] = {
		{ RDMA_CM_EVENT_ESTABLISHED, 0, 0 },
		/* Any event will do. */
		{ RDMA_CM_EVENT_DISCONNECTED, 0, 0 },
		{ RDMA_CM_EVENT_ADDR_CHANGE, 0, 0 },
		{ RDMA_CM_EVENT_CONNECT_RESPONSE, 0, 0 },
		{ RDMA_CM_EVENT_REJECTED, 28, ECONNREFUSED },
		{ RDMA_CM_EVENT_REJECTED, 8, ECONNREFUSED },
		{ RDMA_CM_EVENT_REJECTED, -ECONNRESET, ECONNREFUSED },
		{ RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, ETIMEDOUT },
		{ RDMA_CM_EVENT_UNREACHABLE, 2, 2 },
		{ RDMA_CM_EVENT_CONNECT_ERROR, -EHOSTUNREACH, EHOSTUNREACH },
		{ RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT, ETIMEDOUT },
	};
	struct rdma_conn_param param = { .qp_num = 1 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_cm_id *id = sync_id();

		print_message("case %zu\n", i);
		assert_int_equal(post(id, cases[i].type, cases[i].status), 0);
		if (cases[i].error)
			assert_errno(rdma_connect(id, &param), cases[i].error);
		else
			assert_int_equal(rdma_connect(id, &param), 0);
		assert_int_equal(id->event->event, cases[i].type);
		assert_int_equal(id->event->status, cases[i].status);
		/* The last event needs no ack of the program's. */
		assert_int_equal(rdma_destroy_id(id), 0);
	}
}

static void errors_of_the_library_are_eperm(void **state)
{
	struct rdma_cm_id *id = new_id(NULL);

	(void)state;
	fakes[0].no_device = true;
	assert_errno(rdma_resolve_addr(id, NULL, addr4("10.0.0.2", 7471), 100), EPERM);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ADDR_ERROR);
	assert_int_equal(id->event->status, -1);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void failed_calls_wait_for_nothing(void **state)
{
	struct rdma_cm_id *id = sync_id();

	(void)state;
	fakes[0].fail[OP_CONNECT] = -EINVAL;
	assert_errno(rdma_connect(id, &(struct rdma_conn_param){ .qp_num = 1 }), EINVAL);
	fakes[0].fail[OP_DISCONNECT] = -EINVAL;
	assert_errno(rdma_disconnect(id), EINVAL);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void disconnecting_waits(void **state)
{
	struct rdma_cm_id *id = sync_id();

	(void)state;
	assert_int_equal(post(id, RDMA_CM_EVENT_DISCONNECTED, 0), 0);
	assert_int_equal(rdma_disconnect(id), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void requests_come_with_ids_of_their_own(void **state)
{
	const struct rdma_conn_param conn = { .private_data = "hello", .private_data_len = 5,
					      .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_cm_id *listener = sync_listener(), *id = NULL;
	struct rdma_conn_param param = { .qp_num = 1 };

	(void)state;
	assert_int_equal(post_request(fakes, internal(listener), &conn, NULL), 0);
	assert_int_equal(rdma_get_request(listener, &id), 0);
	assert_ptr_not_equal(id->channel, listener->channel);
	assert_ptr_equal(id->context, &fakes);
	assert_null(listener->event);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_ptr_equal(id->event->listen_id, listener);
	assert_memory_equal(id->event->param.conn.private_data, "hello", 5);
	assert_int_equal(fakes[0].calls[OP_MIGRATE], 1);

	/* Accepting gives the request back and waits. */
	assert_int_equal(post(id, RDMA_CM_EVENT_ESTABLISHED, 0), 0);
	assert_int_equal(rdma_accept(id, &param), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(rdma_destroy_id(listener), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void early_events_of_a_request_follow_it(void **state)
{
	struct rdma_cm_id *listener = sync_listener(), *id = NULL;
	struct polycm_id *child;

	(void)state;
	assert_int_equal(post_request(fakes, internal(listener), NULL, &child), 0);
	assert_int_equal(post(&child->pub, RDMA_CM_EVENT_DISCONNECTED, 0), 0);
	assert_int_equal(rdma_get_request(listener, &id), 0);
	assert_ptr_equal(id, &child->pub);
	expect_no_event(listener->channel);
	expect_event(id->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
}

static void get_request_wants_a_request(void **state)
{
	static const struct { enum rdma_cm_event_type type; int status, error; } cases[] = {
		{ RDMA_CM_EVENT_ADDR_CHANGE, 0, EINVAL },
		{ RDMA_CM_EVENT_REJECTED, 28, ECONNREFUSED },
		{ RDMA_CM_EVENT_ADDR_CHANGE, -ENETDOWN, ENETDOWN },
	};
	struct rdma_cm_id *listener = sync_listener(), *id = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(post(listener, cases[i].type, cases[i].status), 0);
		assert_errno(rdma_get_request(listener, &id), cases[i].error);
		assert_int_equal(listener->event->event, cases[i].type);
		assert_null(id);
	}
	assert_int_equal(post_request(fakes, internal(listener), NULL, NULL), 0);
	assert_int_equal(rdma_get_request(listener, &id), 0);
	assert_null(listener->event);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
}

static void lookups_are_answered_without_waiting(void **state)
{
	struct rdma_conn_param param = { .qp_num = 1 };
	struct rdma_cm_id *listener, *id;

	(void)state;
	assert_int_equal(rdma_create_id(NULL, &listener, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_bind_addr(listener, addr4("0.0.0.0", 7471)), 0);
	assert_int_equal(rdma_listen(listener, 1), 0);
	assert_int_equal(post_request(fakes, internal(listener), NULL, NULL), 0);
	assert_int_equal(rdma_get_request(listener, &id), 0);
	assert_int_equal(id->qp_type, IBV_QPT_UD);
	assert_int_equal(rdma_accept(id, &param), 0);
	/* Nothing came in its place. */
	assert_int_equal(id->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(rdma_disconnect(id), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
}

/* ------------------------------------------------------------------------
 * Endpoints.
 */

static struct ibv_qp_init_attr qp_attr = {
	.cap = { .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1 },
};

static void passive_endpoints_make_qps_for_requests(void **state)
{
	struct rdma_addrinfo res = {
		.ai_flags = RAI_PASSIVE, .ai_qp_type = IBV_QPT_RC, .ai_port_space = RDMA_PS_TCP,
		.ai_src_addr = addr4("10.0.0.1", 7471),
	};
	struct rdma_cm_id *listener, *id = NULL;

	(void)state;
	assert_int_equal(rdma_create_ep(&listener, &res, NULL, &qp_attr), 0);
	assert_int_equal(qp_attr.qp_type, IBV_QPT_RC);
	assert_null(listener->qp);
	assert_int_equal(ntohs(rdma_get_src_port(listener)), 7471);
	assert_int_equal(rdma_listen(listener, 0), 0);
	assert_int_equal(post_request(fakes, internal(listener), NULL, NULL), 0);
	assert_int_equal(rdma_get_request(listener, &id), 0);
	assert_non_null(id->qp);
	assert_ptr_equal(id->pd, id->qp->pd);
	rdma_destroy_ep(id);

	/* A QP that cannot be made: the request is refused, the id still the program's. */
	assert_int_equal(post_request(fakes, internal(listener), NULL, NULL), 0);
	fake_verbs.create_qp_errno = ENOSPC;
	id = NULL;
	assert_errno(rdma_get_request(listener, &id), ENOSPC);
	assert_null(id);
	assert_int_equal(listener->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	rdma_destroy_ep(listener->event->id);
	rdma_destroy_ep(listener);
}

static void active_endpoints_are_ready_to_connect(void **state)
{
	uint8_t route[8] = { 42 };
	struct rdma_addrinfo res = {
		.ai_qp_type = IBV_QPT_RC, .ai_port_space = RDMA_PS_TCP,
		.ai_dst_addr = addr4("10.0.0.2", 7471),
	};
	struct rdma_cm_id *id;

	(void)state;
	assert_int_equal(rdma_create_ep(&id, &res, NULL, &qp_attr), 0);
	assert_non_null(id->qp);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_string_equal(fakes[0].trace, "channel_open open resolve_addr resolve_route");
	rdma_destroy_ep(id);

	/* With a route, none is asked for; the option's event is awaited. */
	fakes_reset(NULL);
	res.ai_route = route;
	res.ai_route_len = sizeof(route);
	fakes[0].option_event = RDMA_CM_EVENT_ROUTE_RESOLVED;
	assert_int_equal(rdma_create_ep(&id, &res, NULL, NULL), 0);
	assert_null(id->qp);
	assert_int_equal(fakes[0].option_value, 42);
	assert_string_equal(fakes[0].trace, "channel_open open resolve_addr set_option");
	rdma_destroy_ep(id);
}

static void endpoints_send_the_addresses_data_first(void **state)
{
	uint8_t connect_data[36], data[220];
	struct rdma_addrinfo res = {
		.ai_qp_type = IBV_QPT_RC, .ai_port_space = RDMA_PS_TCP,
		.ai_dst_addr = addr4("10.0.0.2", 7471),
		.ai_connect = connect_data, .ai_connect_len = sizeof(connect_data),
	};
	struct rdma_conn_param param = { .private_data = data, .private_data_len = 219 };
	struct rdma_cm_id *id;

	(void)state;
	memset(connect_data, 0xcd, sizeof(connect_data));
	memset(data, 0xda, sizeof(data));
	assert_int_equal(rdma_create_ep(&id, &res, NULL, &qp_attr), 0);
	assert_int_equal(post(id, RDMA_CM_EVENT_ESTABLISHED, 0), 0);
	assert_int_equal(rdma_connect(id, &param), 0);
	assert_int_equal(fakes[0].param.private_data_len, 255);
	assert_memory_equal(fakes[0].data, connect_data, 36);
	assert_memory_equal(fakes[0].data + 36, data, 219);

	assert_int_equal(post(id, RDMA_CM_EVENT_ESTABLISHED, 0), 0);
	assert_int_equal(rdma_connect(id, NULL), 0);
	assert_int_equal(fakes[0].param.private_data_len, 36);
	param.private_data_len = 220;
	assert_errno(rdma_connect(id, &param), EINVAL);
	assert_int_equal(fakes[0].calls[OP_CONNECT], 2);
	rdma_destroy_ep(id);
}

static void endpoints_that_fail_leave_nothing(void **state)
{
	static const struct { enum fake_op op; int flags, error; } cases[] = {
		{ OP_OPEN, 0, EXDEV }, { OP_RESOLVE_ADDR, 0, EXDEV },
		{ OP_RESOLVE_ROUTE, 0, EXDEV },
		{ OP_INIT_QP_ATTR, 0, EXDEV }, { OP_BIND, RAI_PASSIVE, EXDEV },
		{ OP_OPEN, RAI_PASSIVE, EXDEV },
	};
	struct rdma_addrinfo res = {
		.ai_qp_type = IBV_QPT_RC, .ai_port_space = RDMA_PS_TCP,
		.ai_src_addr = addr4("10.0.0.1", 7471), .ai_dst_addr = addr4("10.0.0.2", 7471),
	};
	struct rdma_cm_id *id = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		fakes_reset(NULL);
		fakes[0].fail[cases[i].op] = -cases[i].error;
		res.ai_flags = cases[i].flags;
		assert_errno(rdma_create_ep(&id, &res, NULL, &qp_attr), cases[i].error);
		assert_null(id);
		fakes_check(NULL);
	}
	fakes_reset(NULL);
	assert_errno(rdma_create_ep(NULL, &res, NULL, NULL), EINVAL);
	assert_errno(rdma_create_ep(&id, NULL, NULL, NULL), EINVAL);
	res.ai_port_space = 0;
	assert_errno(rdma_create_ep(&id, &res, NULL, NULL), EINVAL);
}

/* ------------------------------------------------------------------------
 * Moving between channels.
 */

static void ids_move_with_their_events(void **state)
{
	struct rdma_event_channel *a = rdma_create_event_channel();
	struct rdma_event_channel *b = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved_id(a), *other = resolved_id(a);

	(void)state;
	assert_int_equal(post(other, RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
	assert_int_equal(post(id, RDMA_CM_EVENT_ESTABLISHED, 0), 0);
	assert_int_equal(post(id, RDMA_CM_EVENT_DISCONNECTED, 0), 0);
	assert_int_equal(rdma_migrate_id(id, b), 0);
	assert_ptr_equal(id->channel, b);
	assert_int_equal(fakes[0].calls[OP_MIGRATE], 1);
	assert_int_equal(post(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0), 0);

	expect_event(a, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	expect_no_event(a);
	expect_event(b, RDMA_CM_EVENT_ESTABLISHED, 0);
	expect_event(b, RDMA_CM_EVENT_DISCONNECTED, 0);
	expect_event(b, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	expect_no_event(b);

	/* To where it is: nothing to do. */
	assert_int_equal(rdma_migrate_id(id, b), 0);
	assert_int_equal(fakes[0].calls[OP_MIGRATE], 1);

	assert_int_equal(rdma_destroy_id(other), 0);
	rdma_destroy_event_channel(a);
	assert_int_equal(post(id, RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
	expect_event(b, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(b);
}

static void requests_move_with_their_listener(void **state)
{
	struct rdma_event_channel *a = rdma_create_event_channel();
	struct rdma_event_channel *b = rdma_create_event_channel();
	struct rdma_cm_id *listener = listening_id(a);
	struct polycm_id *first, *second;
	struct rdma_cm_event *event;
	void *priv;

	(void)state;
	assert_int_equal(post_request(fakes, internal(listener), NULL, &first), 0);
	assert_int_equal(post(&first->pub, RDMA_CM_EVENT_DISCONNECTED, 0), 0);
	/* One is still the provider's. */
	assert_int_equal(polycm_child_create(internal(listener), &second, &priv), 0);
	assert_int_equal(rdma_migrate_id(listener, b), 0);
	assert_int_equal(fakes[0].calls[OP_MIGRATE], 2);
	expect_no_event(a);
	rdma_destroy_event_channel(a);
	polycm_child_destroy(second);

	event = next_event(b, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_ptr_equal(event->id, &first->pub);
	assert_ptr_equal(event->id->channel, b);
	expect_event(b, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(rdma_destroy_id(event->id), 0);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(b);
}

static void ids_become_synchronous_and_back(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved_id(channel);

	(void)state;
	assert_int_equal(rdma_migrate_id(id, NULL), 0);
	assert_ptr_not_equal(id->channel, channel);
	assert_int_equal(post(id, RDMA_CM_EVENT_DISCONNECTED, 0), 0);
	assert_int_equal(rdma_disconnect(id), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_DISCONNECTED);
	assert_errno(rdma_migrate_id(id, NULL), EINVAL);
	assert_errno(rdma_migrate_id(id, id->channel), EINVAL);

	assert_int_equal(rdma_migrate_id(id, channel), 0);
	assert_ptr_equal(id->channel, channel);
	assert_null(id->event);
	assert_int_equal(rdma_disconnect(id), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

static void ids_stay_where_a_provider_refuses(void **state)
{
	struct rdma_event_channel *a = rdma_create_event_channel();
	struct rdma_event_channel *b = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved_id(a);

	(void)state;
	fakes[0].fail[OP_MIGRATE] = -EBUSY;
	assert_errno(rdma_migrate_id(id, b), EBUSY);
	assert_errno(rdma_migrate_id(id, NULL), EBUSY);
	assert_ptr_equal(id->channel, a);
	/* A provider without the operation does not care. */
	fakes[0].fail[OP_MIGRATE] = -EOPNOTSUPP;
	assert_int_equal(rdma_migrate_id(id, b), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(a);
	rdma_destroy_event_channel(b);
}

struct migrator {
	pthread_t thread;
	struct rdma_cm_id *id;
	struct rdma_event_channel *to;
	bool acked, was_acked;
};

static void *migrate(void *arg)
{
	struct migrator *self = arg;

	assert_int_equal(rdma_migrate_id(self->id, self->to), 0);
	self->was_acked = __atomic_load_n(&self->acked, __ATOMIC_SEQ_CST);
	return NULL;
}

static void moving_waits_for_acks(void **state)
{
	struct rdma_event_channel *a = rdma_create_event_channel();
	struct migrator migrator = { .id = resolved_id(a), .to = rdma_create_event_channel() };
	struct rdma_cm_event *event;

	(void)state;
	assert_int_equal(post(migrator.id, RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
	event = next_event(a, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	assert_int_equal(pthread_create(&migrator.thread, NULL, migrate, &migrator), 0);
	/* It has moved, but the call has not returned. */
	while (__atomic_load_n(&internal(migrator.id)->chan, __ATOMIC_SEQ_CST) !=
	       polycm_channel_of(migrator.to))
		sched_yield();
	__atomic_store_n(&migrator.acked, true, __ATOMIC_SEQ_CST);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(pthread_join(migrator.thread, NULL), 0);
	assert_true(migrator.was_acked);
	assert_int_equal(rdma_destroy_id(migrator.id), 0);
	rdma_destroy_event_channel(a);
	rdma_destroy_event_channel(migrator.to);
}

static int start(void **state)
{
	(void)state;
	return fakes_start(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RDMA_TEST(calls_return_the_status_of_the_next_event),
		RDMA_TEST(errors_of_the_library_are_eperm),
		RDMA_TEST(failed_calls_wait_for_nothing),
		RDMA_TEST(disconnecting_waits),
		RDMA_TEST(requests_come_with_ids_of_their_own),
		RDMA_TEST(early_events_of_a_request_follow_it),
		RDMA_TEST(get_request_wants_a_request),
		RDMA_TEST(lookups_are_answered_without_waiting),
		RDMA_TEST(passive_endpoints_make_qps_for_requests),
		RDMA_TEST(active_endpoints_are_ready_to_connect),
		RDMA_TEST(endpoints_send_the_addresses_data_first),
		RDMA_TEST(endpoints_that_fail_leave_nothing),
		RDMA_TEST(ids_move_with_their_events),
		RDMA_TEST(requests_move_with_their_listener),
		RDMA_TEST(ids_become_synchronous_and_back),
		RDMA_TEST(ids_stay_where_a_provider_refuses),
		RDMA_TEST(moving_waits_for_acks),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
