/* SPDX-License-Identifier: BSD-2-Clause */
/* test_options.c - rdma_set_option(): lengths, values, states and what the options do. */
#include <errno.h>
#include <string.h>

#include <infiniband/sa.h>

#include "steps.h"

static int set_byte(struct rdma_cm_id *id, int name, uint8_t value)
{
	return rdma_set_option(id, RDMA_OPTION_ID, name, &value, sizeof(value));
}

static int set_flag(struct rdma_cm_id *id, int name, int value)
{
	return rdma_set_option(id, RDMA_OPTION_ID, name, &value, sizeof(value));
}

/* --- Lengths and names. --- */

static const struct length_case {
	int level, name;
	size_t len;
	int error;
} lengths[] = {
	{ RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 0, EINVAL },
	{ RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 1, 0 },
	{ RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 2, EINVAL },
	{ RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 4, EINVAL },
	{ RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 0, EINVAL },
	{ RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 1, EINVAL },
	{ RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 4, 0 },
	{ RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 8, EINVAL },
	{ RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 0, EINVAL },
	{ RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 3, EINVAL },
	{ RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 4, 0 },
	{ RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 5, EINVAL },
	{ RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 0, EINVAL },
	{ RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1, 0 },
	{ RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 4, EINVAL },
	{ RDMA_OPTION_ID, 4, 4, ENOSYS },
	{ RDMA_OPTION_ID, -1, 4, ENOSYS },
	{ RDMA_OPTION_ID, 1000, 1, ENOSYS },
	{ RDMA_OPTION_IB, 0, 4, ENOSYS },
	{ RDMA_OPTION_IB, 2, 4, ENOSYS },
	{ 2, 0, 1, ENOSYS },
	{ -1, 0, 1, ENOSYS },
};

static void checks_names_and_lengths(void **state)
{
	static const enum step steps[] = { STEP_IDLE, STEP_BOUND };

	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (size_t s = 0; s < ARRAY_LEN(steps); s++) {
			struct rdma_cm_id *id;
			struct pair pair;

			id = step_open(&pair, t, steps[s]);
			for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
				const struct length_case *c = &lengths[i];
				uint64_t value = UINT64_C(0x0000000100000001);
				int r;

				errno = 0;
				r = rdma_set_option(id, c->level, c->name, &value, c->len);
				if (r != (c->error ? -1 : 0) || errno != c->error)
					fail_msg("%s, %s, level %d, name %d, %zu bytes: %s",
						 transport_name[t], step_name[steps[s]], c->level,
						 c->name, c->len, strerror(errno));
			}
			assert_errno(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 1),
				     EFAULT);
			assert_errno(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 0),
				     EINVAL);
			assert_errno(set_byte(NULL, RDMA_OPTION_ID_TOS, 1), EINVAL);
			pair_close(&pair);
		}
	}
}

static void ack_timeout_is_for_connections_only(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_UDP);
		assert_errno(set_byte(pair.client, RDMA_OPTION_ID_ACK_TIMEOUT, 14), EINVAL);
		assert_int_equal(rdma_bind_addr(pair.client, step_sa(CLIENT_ADDRESS, 0)), 0);
		assert_errno(set_byte(pair.client, RDMA_OPTION_ID_ACK_TIMEOUT, 14), EINVAL);
		pair_close(&pair);
	}
}

/* --- Type of service. --- */

/* Set before the id has a device, or before its route is resolved: it is the path's. */
static void tos_becomes_the_traffic_class(void **state)
{
	(void)state;
	for (int early = 0; early < 2; early++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;
		struct pair pair;

		pair_open(&pair, ROCE, RDMA_PS_TCP);
		if (early)
			assert_int_equal(set_byte(pair.client, RDMA_OPTION_ID_TOS, 0x20), 0);
		assert_int_equal(rdma_resolve_addr(pair.client, NULL,
						   step_sa(SERVER_ADDRESS, SERVER_PORT), 2000), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		if (!early)
			assert_int_equal(set_byte(pair.client, RDMA_OPTION_ID_TOS, 0x20), 0);
		assert_int_equal(rdma_resolve_route(pair.client, 2000), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
		assert_int_equal(pair.client->route.path_rec->traffic_class, 0x20);

		/* Too late for this connection. */
		assert_int_equal(set_byte(pair.client, RDMA_OPTION_ID_TOS, 0x40), 0);
		pair_client_qp(&pair);
		rdma_ack_cm_event(pair_request(&pair, &param));
		pair_server_qp(&pair);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_int_equal(ibv_query_qp(pair.client->qp, &attr, IBV_QP_AV, &init), 0);
		assert_int_equal(attr.ah_attr.grh.traffic_class, 0x20);
		/* The passive side takes it from the request. */
		assert_int_equal(ibv_query_qp(pair.server->qp, &attr, IBV_QP_AV, &init), 0);
		assert_int_equal(attr.ah_attr.grh.traffic_class, 0x20);
		pair_close(&pair);
	}
}

/* On InfiniBand a path query with IPv4 addresses has no traffic class. */
static void tos_is_no_traffic_class_on_infiniband(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, IB, RDMA_PS_TCP);
	assert_int_equal(set_byte(pair.client, RDMA_OPTION_ID_TOS, 0x20), 0);
	pair_resolve(&pair);
	assert_int_equal(pair.client->route.path_rec->traffic_class, 0);
	pair_close(&pair);
}

/* --- Local ACK time-out. --- */

static const struct ack_case {
	enum transport transport;
	bool before_route;
	uint8_t value;
	uint8_t packet_lifetime;	/* of the path */
	uint8_t client, server;		/* time-outs of the QPs */
} acks[] = {
	/* On RoCE an early one makes the packet lifetime one less; both ACK delays are 15. */
	{ ROCE, true, 14, 13, 14, 16 },
	{ ROCE, true, 20, 19, 20, 20 },
	{ ROCE, true, 0, 16, 0, 17 },
	{ ROCE, false, 14, 16, 14, 17 },
	{ ROCE, false, 0, 16, 0, 17 },
	{ IB, true, 14, 18, 14, 19 },
	{ IB, false, 14, 18, 14, 19 },
	{ IB, false, 0, 18, 0, 19 },
};

static void ack_timeout_is_this_sides_only(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(acks); i++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		const struct ack_case *c = &acks[i];
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;
		struct pair pair;

		print_message("%s, %s the route, %u\n", transport_name[c->transport],
			      c->before_route ? "before" : "after", c->value);
		pair_open(&pair, c->transport, RDMA_PS_TCP);
		if (c->before_route)
			assert_int_equal(set_byte(pair.client, RDMA_OPTION_ID_ACK_TIMEOUT, c->value),
					 0);
		pair_resolve(&pair);
		if (!c->before_route)
			assert_int_equal(set_byte(pair.client, RDMA_OPTION_ID_ACK_TIMEOUT, c->value),
					 0);
		assert_int_equal(pair.client->route.path_rec->packet_life_time, c->packet_lifetime);
		pair_client_qp(&pair);
		rdma_ack_cm_event(pair_request(&pair, &param));
		pair_server_qp(&pair);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_int_equal(ibv_query_qp(pair.client->qp, &attr, IBV_QP_TIMEOUT, &init), 0);
		assert_int_equal(attr.timeout, c->client);
		assert_int_equal(ibv_query_qp(pair.server->qp, &attr, IBV_QP_TIMEOUT, &init), 0);
		assert_int_equal(attr.timeout, c->server);
		pair_close(&pair);
	}
}

/* --- Sharing a port. --- */

static struct rdma_cm_id *new_id(struct pair *pair)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(pair->server_channel, &id, NULL, RDMA_PS_TCP), 0);
	return id;
}

static void reuse_shares_a_port_until_somebody_listens(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_cm_id *a, *b, *c;
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		a = new_id(&pair);
		b = new_id(&pair);
		c = new_id(&pair);
		assert_int_equal(set_flag(a, RDMA_OPTION_ID_REUSEADDR, 1), 0);
		assert_int_equal(set_flag(b, RDMA_OPTION_ID_REUSEADDR, 7), 0);
		assert_int_equal(rdma_bind_addr(a, step_sa(SERVER_ADDRESS, 5000)), 0);
		/* Both must want it. */
		assert_errno(rdma_bind_addr(c, step_sa(SERVER_ADDRESS, 5000)), EADDRINUSE);
		assert_int_equal(rdma_bind_addr(b, step_sa(SERVER_ADDRESS, 5000)), 0);
		/* A listener must be alone on its address. */
		assert_errno(rdma_listen(a, 1), EADDRINUSE);
		assert_int_equal(rdma_destroy_id(b), 0);
		assert_int_equal(rdma_listen(a, 1), 0);
		/* ... and from then on does not share it. */
		assert_int_equal(set_flag(c, RDMA_OPTION_ID_REUSEADDR, 1), 0);
		assert_errno(rdma_bind_addr(c, step_sa(SERVER_ADDRESS, 5000)), EADDRINUSE);
		assert_int_equal(rdma_destroy_id(a), 0);
		assert_int_equal(rdma_bind_addr(c, step_sa(SERVER_ADDRESS, 5000)), 0);
		assert_int_equal(rdma_destroy_id(c), 0);
		pair_close(&pair);
	}
}

static void reuse_can_be_set_on_a_bound_id(void **state)
{
	struct rdma_cm_id *a, *b;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	a = new_id(&pair);
	b = new_id(&pair);
	assert_int_equal(rdma_bind_addr(a, step_sa(SERVER_ADDRESS, 5000)), 0);
	assert_int_equal(set_flag(b, RDMA_OPTION_ID_REUSEADDR, 1), 0);
	assert_errno(rdma_bind_addr(b, step_sa(SERVER_ADDRESS, 5000)), EADDRINUSE);
	assert_int_equal(set_flag(a, RDMA_OPTION_ID_REUSEADDR, 1), 0);
	assert_int_equal(rdma_bind_addr(b, step_sa(SERVER_ADDRESS, 5000)), 0);
	assert_int_equal(rdma_destroy_id(a), 0);
	assert_int_equal(rdma_destroy_id(b), 0);
	pair_close(&pair);
}

/* --- One family only. --- */

static const struct family_case {
	int afonly;		/* -1: not set */
	bool v4_binds;		/* beside it, on the same port */
	bool v4_connects;	/* to it */
} families[] = {
	{ -1, false, true },
	{ 0, false, true },
	{ 1, true, false },
};

static void an_ipv6_wildcard_takes_ipv4_unless_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(families); i++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		const struct family_case *c = &families[i];
		struct rdma_cm_event *event;
		struct rdma_cm_id *v4, *v6;
		struct pair pair;

		print_message("AFONLY %d\n", c->afonly);
		pair_open(&pair, ROCE, RDMA_PS_TCP);
		assert_int_equal(rdma_destroy_id(pair.listener), 0);
		pair.listener = NULL;
		assert_int_equal(polycm_sim_node_use(pair.server_node), 0);
		v4 = new_id(&pair);
		v6 = new_id(&pair);
		if (c->afonly >= 0)
			assert_int_equal(set_flag(v6, RDMA_OPTION_ID_AFONLY, c->afonly), 0);
		assert_int_equal(rdma_bind_addr(v6, step_sa("::", SERVER_PORT)), 0);
		if (c->v4_binds)
			assert_int_equal(rdma_bind_addr(v4, step_sa("0.0.0.0", SERVER_PORT)), 0);
		else
			assert_errno(rdma_bind_addr(v4, step_sa("0.0.0.0", SERVER_PORT)),
				     EADDRNOTAVAIL);
		assert_int_equal(rdma_listen(v6, 1), 0);
		assert_int_equal(polycm_sim_node_use(pair.client_node), 0);
		pair_resolve(&pair);
		assert_int_equal(rdma_connect(pair.client, &param), 0);
		if (c->v4_connects) {
			event = pair_expect(pair.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
			assert_int_equal(rdma_get_local_addr(event->id)->sa_family, AF_INET);
			pair.server = event->id;
			rdma_ack_cm_event(event);
		} else {
			pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, 28);
		}
		assert_int_equal(rdma_destroy_id(v4), 0);
		assert_int_equal(rdma_destroy_id(v6), 0);
		pair_close(&pair);
	}
}

/* --- A path of the program's own. --- */

#define COMPLETE (IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL)

static struct ibv_path_data path_of(const struct rdma_cm_id *id, uint32_t flags)
{
	struct ibv_path_data data;

	memset(&data, 0, sizeof(data));
	data.flags = flags;
	data.path.dgid = id->route.addr.addr.ibaddr.dgid;
	data.path.sgid = id->route.addr.addr.ibaddr.sgid;
	data.path.reversible_numpath = IBV_PATH_RECORD_REVERSIBLE | 1;
	data.path.pkey = 0xffff;
	data.path.mtu = 2 << 6 | IBV_MTU_1024;
	data.path.packetlifetime = 2 << 6 | 17;
	data.path.tclass = 0x60;
	return data;
}

static int set_path(struct rdma_cm_id *id, struct ibv_path_data *path, size_t len)
{
	return rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, path, len);
}

static void a_path_makes_the_route(void **state)
{
	struct ibv_path_data path[2];
	struct pair pair;

	(void)state;
	step_open(&pair, IB, STEP_ADDR_RESOLVED);
	path[0] = path_of(pair.client, IBV_PATH_FLAG_ALTERNATE);
	path[1] = path_of(pair.client, COMPLETE);
	assert_errno(set_path(pair.client, &path[1], sizeof(path[1]) - 1), EINVAL);
	assert_errno(set_path(pair.client, &path[1], 0), EINVAL);
	assert_errno(set_path(pair.client, &path[0], sizeof(path[0])), EINVAL);
	pair_none(pair.client_channel);
	assert_int_equal(set_path(pair.client, path, sizeof(path)), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(pair.client->route.num_paths, 1);
	assert_int_equal(pair.client->route.path_rec->packet_life_time, 17);
	assert_int_equal(pair.client->route.path_rec->mtu, IBV_MTU_1024);
	assert_int_equal(pair.client->route.path_rec->traffic_class, 0x60);
	assert_errno(set_path(pair.client, path, sizeof(path)), EINVAL);
	pair_close(&pair);
}

static void a_path_needs_a_resolved_address(void **state)
{
	static const enum step steps[] = {
		STEP_IDLE, STEP_BOUND, STEP_ADDR_QUERY, STEP_ROUTE_QUERY, STEP_ROUTE_RESOLVED,
		STEP_CONNECTING, STEP_LISTENING,
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		struct ibv_path_data path;
		struct rdma_cm_id *id;
		struct pair pair;

		id = step_open(&pair, IB, steps[i]);
		path = path_of(id, COMPLETE);
		assert_errno(set_path(id, &path, sizeof(path)), EINVAL);
		pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checks_names_and_lengths),
		cmocka_unit_test(ack_timeout_is_for_connections_only),
		cmocka_unit_test(tos_becomes_the_traffic_class),
		cmocka_unit_test(tos_is_no_traffic_class_on_infiniband),
		cmocka_unit_test(ack_timeout_is_this_sides_only),
		cmocka_unit_test(reuse_shares_a_port_until_somebody_listens),
		cmocka_unit_test(reuse_can_be_set_on_a_bound_id),
		cmocka_unit_test(an_ipv6_wildcard_takes_ipv4_unless_told),
		cmocka_unit_test(a_path_makes_the_route),
		cmocka_unit_test(a_path_needs_a_resolved_address),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
