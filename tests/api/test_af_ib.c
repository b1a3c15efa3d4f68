/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_af_ib.c - addresses of family AF_IB on InfiniBand: binding, resolving,
 * listening and connecting by GID and service id, and what private data they
 * leave room for.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include <infiniband/ib.h>

#include "steps.h"

#define PKEY 0xffff
#define ALL UINT64_MAX

static union ibv_gid gid_of(const char *device)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	union ibv_gid gid;
	bool found = false;

	assert_non_null(list);
	for (unsigned int i = 0; list[i]; i++) {
		struct ibv_context *context;

		if (strcmp(ibv_get_device_name(list[i]), device))
			continue;
		context = ibv_open_device(list[i]);
		assert_non_null(context);
		assert_int_equal(ibv_query_gid(context, 1, 0, &gid), 0);
		assert_int_equal(ibv_close_device(context), 0);
		found = true;
	}
	ibv_free_device_list(list);
	assert_true(found);
	return gid;
}

static struct sockaddr_ib address(const union ibv_gid *gid, uint64_t sid, uint64_t mask)
{
	struct sockaddr_ib sib = {
		.sib_family = AF_IB,
		.sib_pkey = htobe16(PKEY),
		.sib_sid = htobe64(sid),
		.sib_sid_mask = htobe64(mask),
	};

	if (gid)
		memcpy(&sib.sib_addr, gid, sizeof(*gid));
	return sib;
}

static const struct sockaddr_ib *source_of(struct rdma_cm_id *id)
{
	const struct sockaddr_ib *sib = (const struct sockaddr_ib *)rdma_get_local_addr(id);

	assert_int_equal(sib->sib_family, AF_IB);
	return sib;
}

/* A server that listens by GID in the place of the pair's, and a client that has none yet. */
static void open_ib(struct pair *pair, enum rdma_port_space ps, uint64_t service,
		    union ibv_gid *ret_server)
{
	struct sockaddr_ib at;

	pair_open(pair, IB, ps);
	assert_int_equal(rdma_destroy_id(pair->listener), 0);
	*ret_server = gid_of("sim0");
	at = address(ret_server, service | SERVER_PORT, ALL);
	assert_int_equal(rdma_create_id(pair->server_channel, &pair->listener, NULL, ps), 0);
	assert_int_equal(rdma_bind_addr(pair->listener, (struct sockaddr *)&at), 0);
	assert_int_equal(rdma_listen(pair->listener, 8), 0);
}

static void resolve_ib(struct pair *pair, const union ibv_gid *gid, uint64_t service)
{
	struct sockaddr_ib to = address(gid, service | SERVER_PORT, ALL);

	assert_int_equal(rdma_resolve_addr(pair->client, NULL, (struct sockaddr *)&to, 2000), 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_route(pair->client, 2000), 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

/* The first byte is 0, which says to the peer's kernel that there is no header of the RDMA CM. */
static uint8_t data[256];

static void fill_data(void)
{
	for (unsigned int i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)i;
}

static void connects_by_gid(void **state)
{
	static const struct {
		enum rdma_port_space ps;
		uint64_t service;
	} cases[] = {
		{ RDMA_PS_TCP, RDMA_IB_IP_PS_TCP },
		{ RDMA_PS_IB, RDMA_IB_PS_IB },
		{ RDMA_PS_IB, RDMA_IB_IP_PS_TCP },
	};

	(void)state;
	fill_data();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rdma_conn_param param = pair_param(data, 92);
		union ibv_gid server, client;
		struct rdma_cm_event *event;
		struct pair pair;

		open_ib(&pair, cases[i].ps, cases[i].service, &server);
		client = gid_of("sim1");
		resolve_ib(&pair, &server, cases[i].service);
		assert_memory_equal(&source_of(pair.client)->sib_addr, &client, sizeof(client));
		assert_memory_equal(&pair.client->route.path_rec->dgid, &server, sizeof(server));

		event = pair_request(&pair, &param);
		assert_int_equal(event->param.conn.private_data_len, 92);
		assert_memory_equal(event->param.conn.private_data, data, 92);
		assert_memory_equal(&source_of(pair.server)->sib_addr, &server, sizeof(server));
		assert_int_equal(be64toh(source_of(pair.server)->sib_sid),
				 cases[i].service | SERVER_PORT);
		assert_int_equal(rdma_get_src_port(pair.server), htobe16(SERVER_PORT));
		rdma_ack_cm_event(event);

		param = pair_param(data, 196);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		event = pair_expect(pair.client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		assert_int_equal(event->param.conn.private_data_len, 196);
		assert_memory_equal(event->param.conn.private_data, data, 196);
		rdma_ack_cm_event(event);
		assert_int_equal(rdma_establish(pair.client), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		pair_close(&pair);
	}
}

static void datagrams_by_gid(void **state)
{
	struct rdma_conn_param param;
	struct rdma_cm_event *event;
	union ibv_gid server;
	struct pair pair;

	(void)state;
	fill_data();
	open_ib(&pair, RDMA_PS_UDP, RDMA_IB_IP_PS_UDP, &server);
	resolve_ib(&pair, &server, RDMA_IB_IP_PS_UDP);
	param = pair_param(data, 217);
	assert_errno(rdma_connect(pair.client, &param), EINVAL);
	param = pair_param(data, 216);
	event = pair_request(&pair, &param);
	assert_int_equal(event->param.ud.private_data_len, 216);
	assert_memory_equal(event->param.ud.private_data, data, 216);
	rdma_ack_cm_event(event);
	param = pair_param(data, 136);
	assert_int_equal(rdma_accept(pair.server, &param), 0);
	event = pair_expect(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(event->param.ud.private_data_len, 136);
	assert_int_equal(event->param.ud.qp_num, 0x1234);
	assert_int_equal(event->param.ud.qkey, RDMA_UDP_QKEY);
	rdma_ack_cm_event(event);
	pair_close(&pair);
}

static void data_has_a_limit(void **state)
{
	struct rdma_conn_param param = pair_param(data, 93);
	union ibv_gid server;
	struct pair pair;

	(void)state;
	fill_data();
	open_ib(&pair, RDMA_PS_IB, RDMA_IB_PS_IB, &server);
	resolve_ib(&pair, &server, RDMA_IB_PS_IB);
	/* As over IP: refused without harm. */
	assert_errno(rdma_connect(pair.client, &param), EINVAL);
	param = pair_param(data, 92);
	rdma_ack_cm_event(pair_request(&pair, &param));
	pair_close(&pair);
}

/* What begins like a header of the RDMA CM is taken for one. */
static void data_that_looks_like_a_header(void **state)
{
	static const uint8_t starts[][2] = { { 1, 0 }, { 0, 0x40 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
		struct rdma_conn_param param = pair_param(data, 92);
		union ibv_gid server;
		struct pair pair;

		fill_data();
		memcpy(data, starts[i], 2);
		open_ib(&pair, RDMA_PS_IB, RDMA_IB_PS_IB, &server);
		resolve_ib(&pair, &server, RDMA_IB_PS_IB);
		assert_int_equal(rdma_connect(pair.client, &param), 0);
		if (starts[i][0]) {
			pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, 28);
		} else {
			struct rdma_cm_event *event;

			/* A listener by GID takes requests between IP addresses, header and all. */
			event = pair_expect(pair.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
			assert_memory_equal(event->param.conn.private_data, data, 92);
			pair.server = event->id;
			rdma_ack_cm_event(event);
		}
		pair_close(&pair);
	}
}

static void service_ids_name_port_spaces(void **state)
{
	static const struct {
		enum rdma_port_space ps;
		uint64_t sid, mask, bound;
		int error;
	} cases[] = {
		{ RDMA_PS_TCP, RDMA_IB_IP_PS_TCP | 2007, ALL, RDMA_IB_IP_PS_TCP | 2007, 0 },
		{ RDMA_PS_IB, RDMA_IB_PS_IB | 2007, ALL, RDMA_IB_PS_IB | 2007, 0 },
		{ RDMA_PS_IB, RDMA_IB_IP_PS_UDP | 2007, ALL, RDMA_IB_IP_PS_UDP | 2007, 0 },
		/* The mask leaves the port space open, or the port. */
		{ RDMA_PS_UDP, 2000, 0xffff, RDMA_IB_IP_PS_UDP | 2000, 0 },
		{ RDMA_PS_IB, 2000, 0xffff, RDMA_IB_PS_IB | 2000, 0 },
		{ RDMA_PS_TCP, 0, 0, 0, 0 },
		{ RDMA_PS_TCP, RDMA_IB_IP_PS_UDP | 2007, ALL, 0, EPROTONOSUPPORT },
		{ RDMA_PS_TCP, 0x1000000000000000 | 2007, ALL, 0, EPROTONOSUPPORT },
		{ RDMA_PS_IPOIB, RDMA_IB_IP_PS_UDP | 2007, ALL, 0, EPROTONOSUPPORT },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct sockaddr_ib at;
		struct rdma_cm_id *id;
		union ibv_gid gid;
		struct pair pair;

		pair_open(&pair, IB, RDMA_PS_TCP);
		gid = gid_of("sim1");
		at = address(&gid, cases[i].sid, cases[i].mask);
		assert_int_equal(rdma_create_id(pair.client_channel, &id, NULL, cases[i].ps), 0);
		if (cases[i].error) {
			assert_errno(rdma_bind_addr(id, (struct sockaddr *)&at), cases[i].error);
		} else {
			assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&at), 0);
			if (cases[i].bound)
				assert_int_equal(be64toh(source_of(id)->sib_sid), cases[i].bound);
			else
				assert_int_not_equal(rdma_get_src_port(id), 0);
			assert_string_equal(ibv_get_device_name(id->verbs->device), "sim1");
		}
		assert_int_equal(rdma_destroy_id(id), 0);
		pair_close(&pair);
	}
}

/* Ports of one space are shared with IP, and taken as there. */
static void ports_are_those_of_ip(void **state)
{
	struct sockaddr_ib at, any;
	struct rdma_cm_id *id;
	union ibv_gid gid;
	struct pair pair;

	(void)state;
	pair_open(&pair, IB, RDMA_PS_TCP);
	gid = gid_of("sim0");
	at = address(&gid, RDMA_IB_IP_PS_TCP | SERVER_PORT, ALL);
	any = address(NULL, RDMA_IB_IP_PS_TCP | SERVER_PORT, ALL);
	assert_int_equal(polycm_sim_node_use(pair.server_node), 0);
	assert_int_equal(rdma_create_id(pair.server_channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_errno(rdma_bind_addr(id, (struct sockaddr *)&any), EADDRNOTAVAIL);
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&at), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	pair_close(&pair);
}

static void wildcards_take_what_comes(void **state)
{
	struct rdma_conn_param param = pair_param(data, 10);
	union ibv_gid server;
	struct sockaddr_ib any;
	struct pair pair;

	(void)state;
	fill_data();
	pair_open(&pair, IB, RDMA_PS_TCP);
	assert_int_equal(rdma_destroy_id(pair.listener), 0);
	server = gid_of("sim0");
	any = address(NULL, RDMA_IB_IP_PS_TCP | SERVER_PORT, ALL);
	assert_int_equal(polycm_sim_node_use(pair.server_node), 0);
	assert_int_equal(rdma_create_id(pair.server_channel, &pair.listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(pair.listener, (struct sockaddr *)&any), 0);
	assert_int_equal(rdma_listen(pair.listener, 8), 0);
	assert_int_equal(polycm_sim_node_use(pair.client_node), 0);
	resolve_ib(&pair, &server, RDMA_IB_IP_PS_TCP);
	rdma_ack_cm_event(pair_request(&pair, &param));
	pair_close(&pair);
}

static void nobody_is_there(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	union ibv_gid server, other;
	struct sockaddr_ib to;
	struct pair pair;

	(void)state;
	open_ib(&pair, RDMA_PS_TCP, RDMA_IB_IP_PS_TCP, &server);

	/* Another subnet, another partition: no port leads there. */
	other = server;
	other.raw[0] ^= 1;
	to = address(&other, RDMA_IB_IP_PS_TCP | SERVER_PORT, ALL);
	assert_errno(rdma_resolve_addr(pair.client, NULL, (struct sockaddr *)&to, 2000), ENODEV);
	to = address(&server, RDMA_IB_IP_PS_TCP | SERVER_PORT, ALL);
	to.sib_pkey = htobe16(0x1234);
	assert_errno(rdma_resolve_addr(pair.client, NULL, (struct sockaddr *)&to, 2000), ENODEV);

	/* The subnet, but no such port on it: the subnet administrator says so. */
	other = server;
	other.raw[15] ^= 0x80;
	to = address(&other, RDMA_IB_IP_PS_TCP | SERVER_PORT, ALL);
	assert_int_equal(rdma_resolve_addr(pair.client, NULL, (struct sockaddr *)&to, 2000), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_route(pair.client, 2000), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ROUTE_ERROR, -EINVAL);
	assert_int_equal(rdma_destroy_id(pair.client), 0);

	/* Nobody listens for the service. */
	assert_int_equal(rdma_create_id(pair.client_channel, &pair.client, NULL, RDMA_PS_TCP), 0);
	resolve_ib(&pair, &server, RDMA_IB_IP_PS_UDP);
	assert_int_equal(rdma_connect(pair.client, &param), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, 8);
	pair_close(&pair);
}

/* RoCE has GIDs but no way from one to an interface; iWARP has none. */
static void elsewhere(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		enum transport transport = i ? IWARP : ROCE;
		struct sockaddr_ib to;
		union ibv_gid server;
		struct pair pair;

		pair_open(&pair, transport, RDMA_PS_TCP);
		server = gid_of("sim0");
		to = address(&server, RDMA_IB_IP_PS_TCP | SERVER_PORT, ALL);
		if (transport == IWARP) {
			assert_errno(rdma_resolve_addr(pair.client, NULL, (struct sockaddr *)&to,
						       2000), ENODEV);
		} else {
			assert_int_equal(rdma_resolve_addr(pair.client, NULL,
							   (struct sockaddr *)&to, 2000), 0);
			pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
			assert_errno(rdma_resolve_route(pair.client, 2000), ENODEV);
		}
		pair_close(&pair);
	}
}

/* rdma_getaddrinfo() reads a GID and a port number; rdma_create_ep() does the rest. */
static void by_the_names_of_getaddrinfo(void **state)
{
	struct rdma_addrinfo hints = {
		.ai_flags = RAI_FAMILY | RAI_NUMERICHOST,
		.ai_family = AF_IB,
		.ai_port_space = RDMA_PS_TCP,
		.ai_qp_type = IBV_QPT_RC,
	}, *found;
	union ibv_gid server;
	struct pair pair;
	char text[64];

	(void)state;
	open_ib(&pair, RDMA_PS_TCP, RDMA_IB_IP_PS_TCP, &server);
	assert_non_null(inet_ntop(AF_INET6, &server, text, sizeof(text)));
	assert_int_equal(rdma_getaddrinfo(text, "7471", &hints, &found), 0);
	assert_int_equal(found->ai_family, AF_IB);
	assert_int_equal(rdma_destroy_id(pair.client), 0);
	assert_int_equal(rdma_create_ep(&pair.client, found, NULL, NULL), 0);
	rdma_freeaddrinfo(found);
	assert_memory_equal(&pair.client->route.path_rec->dgid, &server, sizeof(server));
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connects_by_gid),
		cmocka_unit_test(datagrams_by_gid),
		cmocka_unit_test(data_has_a_limit),
		cmocka_unit_test(data_that_looks_like_a_header),
		cmocka_unit_test(service_ids_name_port_spaces),
		cmocka_unit_test(ports_are_those_of_ip),
		cmocka_unit_test(wildcards_take_what_comes),
		cmocka_unit_test(nobody_is_there),
		cmocka_unit_test(elsewhere),
		cmocka_unit_test(by_the_names_of_getaddrinfo),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
