/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_states.c - every call in every state that an id can be in, on each
 * transport: what it returns, and that the pair can still be taken down.
 */
#include <errno.h>
#include <string.h>

#include "steps.h"

typedef int (*call_t)(struct pair *pair, struct rdma_cm_id *id);

static int call_bind(struct pair *pair, struct rdma_cm_id *id)
{
	(void)pair;
	return rdma_bind_addr(id, step_sa(CLIENT_ADDRESS, 0));
}

static int call_resolve_addr(struct pair *pair, struct rdma_cm_id *id)
{
	(void)pair;
	return rdma_resolve_addr(id, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT), 2000);
}

static int call_resolve_route(struct pair *pair, struct rdma_cm_id *id)
{
	(void)pair;
	return rdma_resolve_route(id, 2000);
}

static int call_listen(struct pair *pair, struct rdma_cm_id *id)
{
	(void)pair;
	return rdma_listen(id, 4);
}

static int call_connect(struct pair *pair, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = pair_param(NULL, 0);

	(void)pair;
	return rdma_connect(id, &param);
}

static int call_accept(struct pair *pair, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = pair_param(NULL, 0);

	(void)pair;
	return rdma_accept(id, &param);
}

static int call_reject(struct pair *pair, struct rdma_cm_id *id)
{
	(void)pair;
	return rdma_reject(id, "no", 2);
}

static int call_establish(struct pair *pair, struct rdma_cm_id *id)
{
	(void)pair;
	return rdma_establish(id);
}

static int call_disconnect(struct pair *pair, struct rdma_cm_id *id)
{
	(void)pair;
	return rdma_disconnect(id);
}

static int call_notify(struct pair *pair, struct rdma_cm_id *id)
{
	(void)pair;
	return rdma_notify(id, IBV_EVENT_COMM_EST);
}

static int call_join(struct pair *pair, struct rdma_cm_id *id)
{
	(void)pair;
	return rdma_join_multicast(id, step_sa("239.1.2.3", 0), NULL);
}

static int call_tos(struct pair *pair, struct rdma_cm_id *id)
{
	uint8_t tos = 32;

	(void)pair;
	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos));
}

static int set_flag(struct rdma_cm_id *id, int option, int flag)
{
	return rdma_set_option(id, RDMA_OPTION_ID, option, &flag, sizeof(flag));
}

static int call_reuse(struct pair *pair, struct rdma_cm_id *id)
{
	(void)pair;
	return set_flag(id, RDMA_OPTION_ID_REUSEADDR, 1);
}

static int call_no_reuse(struct pair *pair, struct rdma_cm_id *id)
{
	(void)pair;
	return set_flag(id, RDMA_OPTION_ID_REUSEADDR, 0);
}

static int call_afonly(struct pair *pair, struct rdma_cm_id *id)
{
	(void)pair;
	return set_flag(id, RDMA_OPTION_ID_AFONLY, 1);
}

static int call_ack_timeout(struct pair *pair, struct rdma_cm_id *id)
{
	uint8_t value = 14;

	(void)pair;
	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &value,
			       sizeof(value));
}

static int call_migrate(struct pair *pair, struct rdma_cm_id *id)
{
	struct rdma_event_channel *other = id->channel == pair->client_channel ?
					   pair->server_channel : pair->client_channel;

	return rdma_migrate_id(id, other);
}

static int call_create_qp(struct pair *pair, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	(void)pair;
	return rdma_create_qp(id, NULL, &attr);
}

static int call_init_qp_attr(struct pair *pair, struct rdma_cm_id *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	(void)pair;
	return rdma_init_qp_attr(id, &attr, &mask);
}

static int call_get_request(struct pair *pair, struct rdma_cm_id *id)
{
	struct rdma_cm_id *child;

	(void)pair;
	return rdma_get_request(id, &child);
}

static int call_leave(struct pair *pair, struct rdma_cm_id *id)
{
	(void)pair;
	return rdma_leave_multicast(id, step_sa("239.1.2.3", 0));
}

/* Short names for the table: 0 works, E EINVAL. */
#define E EINVAL
#define C EISCONN
#define N EADDRNOTAVAIL

/*
 * InfiniBand and RoCE.  In the order of enum step: idle, bound, bound to any, address query,
 * address resolved, route query, route resolved, connecting, response, rejected, active,
 * listening, request, accepted, passive, disconnected.
 */
static const struct row {
	const char *name;
	call_t call;
	int errors[NUM_STEPS];
} ib_rows[] = {
	{ "bind", call_bind,
	  { 0, E, E, E, E, E, E, E, E, E, E, E, E, E, E, E } },
	{ "resolve_addr", call_resolve_addr,
	  { 0, 0, 0, E, E, E, E, E, E, E, E, E, E, E, E, E } },
	{ "resolve_route", call_resolve_route,
	  { E, E, E, E, 0, E, E, E, E, E, E, E, E, E, E, E } },
	{ "listen", call_listen,
	  { 0, 0, 0, E, E, E, E, E, E, E, E, E, E, E, E, E } },
	{ "connect", call_connect,
	  { E, E, E, E, E, E, 0, E, E, E, E, E, E, E, E, E } },
	{ "accept", call_accept,
	  { E, E, E, E, E, E, E, E, E, E, E, E, 0, E, E, E } },
	{ "reject", call_reject,
	  { E, E, E, E, E, E, E, 0, 0, E, E, E, 0, 0, E, E } },
	{ "establish", call_establish,
	  { E, E, E, E, E, E, E, E, 0, E, E, E, E, E, E, E } },
	{ "disconnect", call_disconnect,
	  { E, E, E, E, E, E, E, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
	{ "notify", call_notify,
	  { E, E, E, E, E, E, E, E, E, E, C, E, E, 0, C, E } },
	{ "join_multicast", call_join,
	  { E, E, E, E, E, E, E, E, E, E, E, E, E, E, E, E } },
	{ "leave_multicast", call_leave,
	  { N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N } },
	{ "set TOS", call_tos,
	  { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
	{ "set REUSEADDR", call_reuse,
	  { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, E, 0, 0, 0, 0 } },
	{ "clear REUSEADDR", call_no_reuse,
	  { 0, E, E, E, E, E, E, E, E, E, E, E, E, E, E, E } },
	{ "set AFONLY", call_afonly,
	  { 0, 0, 0, E, E, E, E, E, E, E, E, E, E, E, E, E } },
	{ "set ACK_TIMEOUT", call_ack_timeout,
	  { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
	{ "migrate", call_migrate,
	  { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
	{ "create_qp", call_create_qp,
	  { E, 0, E, E, 0, 0, 0, 0, 0, E, E, E, 0, 0, E, E } },
	{ "init_qp_attr", call_init_qp_attr,
	  { E, 0, E, E, 0, 0, 0, 0, 0, E, 0, E, 0, 0, 0, E } },
	{ "get_request", call_get_request,
	  { E, E, E, E, E, E, E, E, E, E, E, E, E, E, E, E } },
};

/* Where iWARP differs: the id has its QP from "route resolved" on, and TCP answers at once. */
static const struct row iwarp_rows[] = {
	{ "bind", call_bind,
	  { 0, E, E, E, E, E, E, E, E, E, E, E, E, E, E, E } },
	{ "resolve_addr", call_resolve_addr,
	  { 0, 0, 0, E, E, E, E, E, E, E, E, E, E, E, E, E } },
	{ "resolve_route", call_resolve_route,
	  { E, E, E, E, 0, E, E, E, E, E, E, E, E, E, E, E } },
	{ "listen", call_listen,
	  { 0, 0, 0, E, E, E, E, E, E, E, E, E, E, E, E, E } },
	{ "connect", call_connect,
	  { E, E, E, E, E, E, 0, E, E, E, E, E, E, E, E, E } },
	{ "accept", call_accept,
	  { E, E, E, E, E, E, E, E, E, E, E, E, 0, E, E, E } },
	{ "reject", call_reject,
	  { E, E, E, E, E, E, E, E, E, E, E, E, 0, E, E, E } },
	{ "establish", call_establish,
	  { E, E, E, E, E, E, E, E, E, E, E, E, E, E, E, E } },
	{ "disconnect", call_disconnect,
	  { E, E, E, E, E, E, E, 0, 0, 0, 0, E, 0, 0, 0, 0 } },
	{ "notify", call_notify,
	  { E, E, E, E, E, E, E, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
	{ "join_multicast", call_join,
	  { E, E, E, E, E, E, E, E, E, E, E, E, E, E, E, E } },
	{ "leave_multicast", call_leave,
	  { N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N } },
	{ "set TOS", call_tos,
	  { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
	{ "set REUSEADDR", call_reuse,
	  { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, E, 0, 0, 0, 0 } },
	{ "clear REUSEADDR", call_no_reuse,
	  { 0, E, E, E, E, E, E, E, E, E, E, E, E, E, E, E } },
	{ "set AFONLY", call_afonly,
	  { 0, 0, 0, E, E, E, E, E, E, E, E, E, E, E, E, E } },
	{ "set ACK_TIMEOUT", call_ack_timeout,
	  { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
	{ "migrate", call_migrate,
	  { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
	{ "create_qp", call_create_qp,
	  { E, 0, E, E, 0, 0, E, E, E, E, E, E, E, E, E, E } },
	{ "get_request", call_get_request,
	  { E, E, E, E, E, E, E, E, E, E, E, E, E, E, E, E } },
};

#undef E
#undef C
#undef N

/* What is left over does not bring the pair down, nor does time. */
static void close_after(struct pair *pair)
{
	assert_int_equal(polycm_sim_advance(1000000), 0);
	pair_close(pair);
}

static unsigned int check_row(enum transport transport, const struct row *row)
{
	unsigned int wrong = 0;

	for (enum step step = 0; step < NUM_STEPS; step++) {
		struct rdma_cm_id *id;
		struct pair pair;
		int r;

		if (!step_exists(transport, step))
			continue;
		id = step_open(&pair, transport, step);
		errno = 0;
		r = row->call(&pair, id);
		if (r ? r != -1 || errno != row->errors[step] || !errno : row->errors[step] != 0) {
			print_error("%s, %s, %s: %d %s instead of %s\n", transport_name[transport],
				    row->name, step_name[step], r, r ? strerror(errno) : "",
				    strerror(row->errors[step]));
			wrong++;
		}
		close_after(&pair);
	}
	return wrong;
}

static void every_call_in_every_state(void **state)
{
	unsigned int wrong = 0;

	(void)state;
	for (enum transport t = ROCE; t <= IB; t++)
		for (size_t i = 0; i < ARRAY_LEN(ib_rows); i++)
			wrong += check_row(t, &ib_rows[i]);
	for (size_t i = 0; i < ARRAY_LEN(iwarp_rows); i++)
		wrong += check_row(IWARP, &iwarp_rows[i]);
	assert_int_equal(wrong, 0);
}

/* A refused call changes nothing: what was possible before still is. */
static void refused_calls_do_no_harm(void **state)
{
	static const call_t refused[] = {
		call_bind, call_listen, call_resolve_route, call_accept, call_disconnect,
		call_notify, call_join, call_no_reuse, call_get_request,
	};

	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		step_open(&pair, t, STEP_ROUTE_RESOLVED);
		for (size_t i = 0; i < ARRAY_LEN(refused); i++)
			assert_errno(refused[i](&pair, pair.client), EINVAL);
		rdma_ack_cm_event(pair_request(&pair, &param));
		pair_close(&pair);
	}
}

/* Calls that are refused on a waiting request, but kill it (kernel rdma_accept()). */
static void some_refused_calls_reject_the_request(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct pair pair;

		step_open(&pair, t, STEP_REQUEST);
		assert_errno(call_establish(&pair, pair.server), EINVAL);
		pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, 28);
		pair_close(&pair);

		/* A second accept without a library QP: the reply is withdrawn. */
		step_open(&pair, t, STEP_ACCEPTED);
		assert_errno(call_accept(&pair, pair.server), EINVAL);
		pair_take(pair.client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, 28);
		pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_in_every_state),
		cmocka_unit_test(refused_calls_do_no_harm),
		cmocka_unit_test(some_refused_calls_reject_the_request),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
