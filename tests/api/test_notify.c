/* SPDX-License-Identifier: BSD-2-Clause */
/* test_notify.c - rdma_notify(): data that overtakes the RTU establishes a connection. */
#include <errno.h>
#include <string.h>

#include "steps.h"

#define LONG SECONDS(2000)

/* ESTABLISHED on the id itself, and the RTU that comes later changes nothing. */
static void communication_establishes(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_cm_event *event;
		struct pair pair;

		step_open(&pair, t, STEP_ACCEPTED);
		assert_int_equal(polycm_sim_advance(1000000), 0);
		pair_none(pair.server_channel);
		assert_int_equal(rdma_notify(pair.server, IBV_EVENT_COMM_EST), 0);
		event = pair_expect(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_ptr_equal(event->id, pair.server);
		assert_int_equal(event->param.conn.private_data_len, 0);
		assert_null(event->param.conn.private_data);
		rdma_ack_cm_event(event);
		assert_errno(rdma_notify(pair.server, IBV_EVENT_COMM_EST), EISCONN);

		pair_take(pair.client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		assert_int_equal(rdma_establish(pair.client), 0);
		assert_int_equal(polycm_sim_advance(LONG), 0);
		pair_none(pair.server_channel);
		pair_none(pair.client_channel);
		pair_close(&pair);
	}
}

/* The reply is not repeated any more, and not given up. */
static void it_stops_the_replys_timer(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct pair pair;

		step_open(&pair, t, STEP_ACCEPTED);
		/* Once the client's side has asked for patience: MRA_REP_RCVD is as good. */
		assert_int_equal(polycm_sim_advance(SECONDS(10)), 0);
		assert_int_equal(rdma_notify(pair.server, IBV_EVENT_COMM_EST), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_int_equal(polycm_sim_advance(LONG), 0);
		pair_none(pair.server_channel);
		pair_close(&pair);
	}
}

static const struct {
	const char *name;
	enum ibv_event_type event;
	int ib_error;		/* on an established connection */
} events[] = {
	{ "COMM_EST", IBV_EVENT_COMM_EST, EISCONN },
	{ "PATH_MIG", IBV_EVENT_PATH_MIG, 0 },
	{ "PATH_MIG_ERR", IBV_EVENT_PATH_MIG_ERR, EINVAL },
	{ "QP_FATAL", IBV_EVENT_QP_FATAL, EINVAL },
	{ "SQ_DRAINED", IBV_EVENT_SQ_DRAINED, EINVAL },
	{ "DEVICE_FATAL", IBV_EVENT_DEVICE_FATAL, EINVAL },
	{ "unknown", (enum ibv_event_type)77, EINVAL },
};

/* Where there is no RTU nothing is to be notified of, and nothing is an error. */
static void other_events(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (size_t i = 0; i < ARRAY_LEN(events); i++) {
			int error = t == IWARP ? 0 : events[i].ib_error, r;
			struct pair pair;

			pair_open(&pair, t, RDMA_PS_TCP);
			pair_connect(&pair);
			errno = 0;
			r = rdma_notify(pair.server, events[i].event);
			if (r != (error ? -1 : 0) || errno != error)
				fail_msg("%s, %s: %s", transport_name[t], events[i].name,
					 strerror(errno));
			pair_none(pair.server_channel);
			pair_close(&pair);
		}
	}
}

static void path_migration_needs_a_connection(void **state)
{
	static const enum step steps[] = { STEP_CONNECTING, STEP_REQUEST, STEP_ACCEPTED };

	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
			struct rdma_cm_id *id;
			struct pair pair;

			id = step_open(&pair, t, steps[i]);
			assert_errno(rdma_notify(id, IBV_EVENT_PATH_MIG), EINVAL);
			pair_close(&pair);
		}
	}
}

static void datagrams_have_nothing_to_notify_of(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		step_request(&pair, t, RDMA_PS_UDP, true);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		assert_errno(rdma_notify(pair.server, IBV_EVENT_COMM_EST), EINVAL);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_errno(rdma_notify(pair.client, IBV_EVENT_COMM_EST), EINVAL);
		pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(communication_establishes),
		cmocka_unit_test(it_stops_the_replys_timer),
		cmocka_unit_test(other_events),
		cmocka_unit_test(path_migration_needs_a_connection),
		cmocka_unit_test(datagrams_have_nothing_to_notify_of),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
