/* SPDX-License-Identifier: BSD-2-Clause */
/* test_listen.c - rdma_listen(): who hears what, over IPv4, IPv6 and wildcards. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "steps.h"

#define SECOND_ADDRESS "10.0.0.11"	/* of the server */
#define SERVER_V6 "fd00::1"
#define CLIENT_V6 "fd00::2"

/* The pair without its listener; both nodes have IPv6 addresses as well. */
static void open_two_families(struct pair *pair, enum transport transport)
{
	pair_open(pair, transport, RDMA_PS_TCP);
	assert_int_equal(rdma_destroy_id(pair->listener), 0);
	pair->listener = NULL;
	assert_int_equal(polycm_sim_node_add_address(pair->server_node, SECOND_ADDRESS "/24"), 0);
	assert_int_equal(polycm_sim_node_add_address(pair->server_node, SERVER_V6 "/64"), 0);
	assert_int_equal(polycm_sim_node_add_address(pair->client_node, CLIENT_V6 "/64"), 0);
}

static struct rdma_cm_id *listen_on(struct pair *pair, const char *address,
				    enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	assert_int_equal(polycm_sim_node_use(pair->server_node), 0);
	assert_int_equal(rdma_create_id(pair->server_channel, &id, NULL, ps), 0);
	assert_int_equal(rdma_bind_addr(id, step_sa(address, SERVER_PORT)), 0);
	assert_int_equal(polycm_sim_node_use(pair->client_node), 0);
	return id;
}

static void resolve(struct pair *pair, const char *to)
{
	assert_int_equal(rdma_resolve_addr(pair->client, NULL, step_sa(to, SERVER_PORT), 2000), 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_route(pair->client, 2000), 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	if (pair->transport == IWARP)
		pair_client_qp(pair);
}

static void check_address(const struct sockaddr *addr, const char *text, uint16_t port)
{
	struct sockaddr_storage want = step_addr(text, port);

	assert_int_equal(addr->sa_family, want.ss_family);
	assert_memory_equal(addr, &want, want.ss_family == AF_INET ? sizeof(struct sockaddr_in) :
								     sizeof(struct sockaddr_in6));
}

static const struct heard_case {
	const char *listener, *to, *from;
	bool heard;
} heards[] = {
	{ "10.0.0.1", "10.0.0.1", "10.0.0.2", true },
	{ "10.0.0.1", SECOND_ADDRESS, "10.0.0.2", false },
	{ SECOND_ADDRESS, SECOND_ADDRESS, "10.0.0.2", true },
	{ "0.0.0.0", "10.0.0.1", "10.0.0.2", true },
	{ "0.0.0.0", SECOND_ADDRESS, "10.0.0.2", true },
	{ "0.0.0.0", SERVER_V6, CLIENT_V6, false },
	{ "::", SERVER_V6, CLIENT_V6, true },
	{ "::", "10.0.0.1", "10.0.0.2", true },
	{ SERVER_V6, SERVER_V6, CLIENT_V6, true },
	{ SERVER_V6, "10.0.0.1", "10.0.0.2", false },
};

/* An iWARP listener for all IPv6 addresses hears IPv4, but refuses what it hears. */
static bool refuses(const struct heard_case *c, enum transport t)
{
	return t == IWARP && !strcmp(c->listener, "::") && strchr(c->to, '.');
}

/* Where the service exists but not at that address, InfiniBand says "consumer defined", 28. */
static void who_hears_a_request(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (size_t i = 0; i < ARRAY_LEN(heards); i++) {
			struct rdma_conn_param param = pair_param("hello", 6);
			const struct heard_case *c = &heards[i];
			struct rdma_cm_event *event;
			struct pair pair;

			print_message("%s: %s to %s\n", transport_name[t], c->listener, c->to);
			open_two_families(&pair, t);
			pair.listener = listen_on(&pair, c->listener, RDMA_PS_TCP);
			assert_int_equal(rdma_listen(pair.listener, 1), 0);
			resolve(&pair, c->to);
			if (refuses(c, t)) {
				assert_int_equal(rdma_connect(pair.client, &param), 0);
				pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
				pair_none(pair.server_channel);
				pair_close(&pair);
				continue;
			}
			if (!c->heard && t == IWARP) {
				assert_errno(rdma_connect(pair.client, &param), ECONNREFUSED);
				pair_close(&pair);
				continue;
			}
			if (!c->heard) {
				assert_int_equal(rdma_connect(pair.client, &param), 0);
				pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, 28);
				pair_close(&pair);
				continue;
			}
			event = pair_request(&pair, &param);
			check_address(rdma_get_local_addr(event->id), c->to, SERVER_PORT);
			check_address(rdma_get_peer_addr(event->id), c->from,
				      ntohs(rdma_get_src_port(pair.client)));
			assert_non_null(event->id->verbs);
			assert_memory_equal(event->param.conn.private_data, "hello", 6);
			rdma_ack_cm_event(event);
			pair_close(&pair);
		}
	}
}

/* Listeners on different addresses of a node share a port, and each hears its own. */
static void each_address_has_its_listener(void **state)
{
	static const char *const addresses[] = { SERVER_ADDRESS, SECOND_ADDRESS, SERVER_V6 };

	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
			struct rdma_conn_param param = pair_param(NULL, 0);
			struct rdma_cm_id *listener[ARRAY_LEN(addresses)];
			struct pair pair;

			open_two_families(&pair, t);
			for (size_t n = 0; n < ARRAY_LEN(addresses); n++) {
				listener[n] = listen_on(&pair, addresses[n], RDMA_PS_TCP);
				assert_int_equal(rdma_listen(listener[n], 1), 0);
			}
			resolve(&pair, addresses[i]);
			pair.listener = listener[i];
			rdma_ack_cm_event(pair_request(&pair, &param));
			pair.listener = NULL;
			for (size_t n = 0; n < ARRAY_LEN(addresses); n++)
				assert_int_equal(rdma_destroy_id(listener[n]), 0);
			pair_close(&pair);
		}
	}
}

/* Unbound: the wildcard address and a free port. */
static void binds_by_itself(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_cm_id *id;
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		assert_int_equal(rdma_create_id(pair.server_channel, &id, NULL, RDMA_PS_TCP), 0);
		assert_int_equal(rdma_listen(id, 1), 0);
		assert_true(ntohs(rdma_get_src_port(id)) >= 1024);
		check_address(rdma_get_local_addr(id), "0.0.0.0", ntohs(rdma_get_src_port(id)));
		assert_null(id->verbs);
		assert_int_equal(rdma_destroy_id(id), 0);
		pair_close(&pair);
	}
}

/* What a port is: a number of the port space; on iWARP, one of TCP. */
static void port_spaces_on_one_port(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_cm_id *tcp, *udp;
		struct pair pair;

		open_two_families(&pair, t);
		tcp = listen_on(&pair, SERVER_ADDRESS, RDMA_PS_TCP);
		udp = listen_on(&pair, SERVER_ADDRESS, RDMA_PS_UDP);
		assert_int_equal(rdma_listen(tcp, 1), 0);
		if (t == IWARP)
			assert_errno(rdma_listen(udp, 1), EADDRINUSE);
		else
			assert_int_equal(rdma_listen(udp, 1), 0);
		assert_int_equal(rdma_destroy_id(tcp), 0);
		if (t == IWARP)
			assert_int_equal(rdma_listen(udp, 1), 0);
		assert_int_equal(rdma_destroy_id(udp), 0);
		pair_close(&pair);
	}
}

/* A bound id that does not listen is nobody. */
static void bound_is_not_listening(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		open_two_families(&pair, t);
		pair.listener = listen_on(&pair, SERVER_ADDRESS, RDMA_PS_TCP);
		resolve(&pair, SERVER_ADDRESS);
		if (t == IWARP) {
			assert_errno(rdma_connect(pair.client, &param), ECONNREFUSED);
			/* The id may try again: now somebody listens. */
			assert_int_equal(rdma_listen(pair.listener, 1), 0);
			rdma_ack_cm_event(pair_request(&pair, &param));
		} else {
			assert_int_equal(rdma_connect(pair.client, &param), 0);
			pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, 8);
		}
		pair_close(&pair);
	}
}

/* Connections outlive their listener. */
static void connections_outlive_the_listener(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_connect(&pair);
		assert_int_equal(rdma_destroy_id(pair.listener), 0);
		pair.listener = NULL;
		assert_int_equal(polycm_sim_advance(SECONDS(10)), 0);
		pair_none(pair.client_channel);
		pair_none(pair.server_channel);
		assert_int_equal(rdma_disconnect(pair.client), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_hears_a_request),
		cmocka_unit_test(each_address_has_its_listener),
		cmocka_unit_test(binds_by_itself),
		cmocka_unit_test(port_spaces_on_one_port),
		cmocka_unit_test(bound_is_not_listening),
		cmocka_unit_test(connections_outlive_the_listener),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
