/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hosts.c - hosts as scenario files describe them: several devices, an
 * interface without one, routes; what Linux answers where no record of it is
 * kept (tests/golden).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "steps.h"

static const char scenario[] = "test_hosts.cfg";

/* A RoCE cable and an iWARP one, both ends of each on the same host. */
static const char host[] =
	"nodes = ( { name = \"host\";"
	"  devices = ( { transport = \"roce\"; addresses = [ \"10.1.0.1/24\", \"fe80::1/64\" ]; },"
	"              { transport = \"roce\"; addresses = [ \"10.1.0.2/24\" ]; },"
	"              { transport = \"iwarp\"; addresses = [ \"10.2.0.1/24\" ]; },"
	"              { transport = \"iwarp\"; addresses = [ \"10.2.0.2/24\" ]; } );"
	"  interfaces = ( { name = \"plain\"; address = \"10.3.0.1/24\"; } );"
	"  routes = ( { to = \"10.1.0.2/32\"; source = \"10.1.0.1\"; },"
	"             { to = \"10.2.0.2/32\"; source = \"10.2.0.1\"; } ); } );";

#define ROCE_CLIENT "10.1.0.1"
#define ROCE_SERVER "10.1.0.2"
#define IWARP_CLIENT "10.2.0.1"
#define IWARP_SERVER "10.2.0.2"
#define PLAIN "10.3.0.1"

static struct rdma_event_channel *channel;

static int set_up(void **state)
{
	FILE *file = fopen(scenario, "w");

	(void)state;
	assert_non_null(file);
	assert_true(fputs(host, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(polycm_sim_load(scenario), 0);
	assert_int_equal(remove(scenario), 0);
	channel = rdma_create_event_channel();
	assert_non_null(channel);
	return 0;
}

static int tear_down(void **state)
{
	struct polycm_sim_counts counts = { .size = sizeof(counts) };

	(void)state;
	rdma_destroy_event_channel(channel);
	assert_int_equal(polycm_sim_live(&counts), 0);
	assert_int_equal(counts.ids, 0);
	assert_int_equal(counts.ports, 0);
	assert_int_equal(polycm_sim_destroy(), 0);
	return 0;
}

static struct rdma_cm_id *new_id(void)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	return id;
}

static struct sockaddr *source(const char *address)
{
	return address ? step_sa(address, 0) : NULL;
}

/* Resolving from there to here ends like this, on an id of its own. */
static void resolves(const char *from, const char *to, enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_id *id = new_id();

	assert_int_equal(rdma_resolve_addr(id, source(from), step_sa(to, 7471), 2000), 0);
	pair_take(channel, type, status);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void set_loss(double loss)
{
	const struct polycm_sim_link link = {
		.size = sizeof(link), .latency_ns = 1000, .loss = loss,
	};

	assert_int_equal(polycm_sim_link_set(NULL, NULL, &link), 0);
}

static void an_own_address_without_a_device_leads_nowhere(void **state)
{
	(void)state;
	resolves(NULL, PLAIN, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	/* From an interface it is looked for there. */
	resolves(ROCE_CLIENT, PLAIN, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	/* Nor does its network. */
	resolves(NULL, "10.3.0.9", RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
}

static void a_source_of_another_interface_finds_nobody_there(void **state)
{
	(void)state;
	/* It is asked for on the source's own cable. */
	resolves(ROCE_CLIENT, IWARP_SERVER, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	resolves(IWARP_SERVER, ROCE_SERVER, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	resolves(IWARP_SERVER, IWARP_CLIENT, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	resolves(ROCE_CLIENT, "10.2.0.9", RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	resolves(IWARP_CLIENT, "10.2.0.9", RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
}

static void no_route_is_an_error_at_once_and_the_id_lives_on(void **state)
{
	struct rdma_cm_id *id = new_id();

	(void)state;
	assert_errno(rdma_resolve_addr(id, NULL, step_sa("192.0.2.1", 1), 2000), ENETUNREACH);
	assert_errno(rdma_resolve_addr(id, NULL, step_sa("fd00::1", 1), 2000), EINVAL);
	pair_none(channel);
	assert_int_equal(rdma_resolve_addr(id, NULL, step_sa(ROCE_SERVER, 1), 2000), 0);
	pair_take(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void a_route_gives_the_source(void **state)
{
	static const struct {
		const char *to, *from;
	} ways[] = { { ROCE_SERVER, ROCE_CLIENT }, { IWARP_SERVER, IWARP_CLIENT },
		     /* Without one an own address is its own source. */
		     { ROCE_CLIENT, ROCE_CLIENT } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		struct rdma_cm_id *id = new_id();
		struct sockaddr_in expected;

		memcpy(&expected, step_sa(ways[i].from, 0), sizeof(expected));
		assert_int_equal(rdma_resolve_addr(id, NULL, step_sa(ways[i].to, 1), 2000), 0);
		pair_take(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		assert_int_equal(id->route.addr.src_sin.sin_addr.s_addr,
				 expected.sin_addr.s_addr);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
}

static void a_known_neighbour_need_not_answer(void **state)
{
	uint64_t start;

	(void)state;
	resolves(NULL, ROCE_SERVER, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	set_loss(1);
	resolves(NULL, ROCE_SERVER, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	/* It has learned who asked it. */
	resolves(ROCE_SERVER, ROCE_CLIENT, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	start = pair_now();
	resolves(NULL, IWARP_SERVER, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	assert_elapsed(start, SECONDS(2));
}

static void neighbours_are_asked_again_each_second(void **state)
{
	struct rdma_cm_id *id = new_id();
	uint64_t start = pair_now();

	(void)state;
	set_loss(1);
	assert_int_equal(rdma_resolve_addr(id, NULL, step_sa(ROCE_SERVER, 1), 5000), 0);
	assert_int_equal(polycm_sim_advance(SECONDS(1.5)), 0);
	pair_none(channel);
	set_loss(0);
	pair_take(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_in_range(pair_now() - start, SECONDS(2), SECONDS(2) + 100000);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void a_link_local_neighbour_that_nobody_is_times_out(void **state)
{
	struct rdma_cm_id *id = new_id();
	struct sockaddr_in6 here, there;
	uint64_t start = pair_now();

	(void)state;
	memcpy(&here, step_sa("fe80::1", 0), sizeof(here));
	memcpy(&there, step_sa("fe80::99", 1), sizeof(there));
	/* Without its interface it is no address. */
	assert_errno(rdma_bind_addr(id, (struct sockaddr *)&here), EINVAL);
	here.sin6_scope_id = there.sin6_scope_id = 2;
	assert_int_equal(rdma_resolve_addr(id, (struct sockaddr *)&here,
					   (struct sockaddr *)&there, 500), 0);
	pair_take(channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	assert_elapsed(start, SECONDS(0.5));
	assert_int_equal(rdma_destroy_id(id), 0);
}

/* The client's id, asking for a connection. */
static struct rdma_cm_id *connect_to(const char *address)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct rdma_cm_id *id = new_id();

	assert_int_equal(rdma_resolve_addr(id, NULL, step_sa(address, 7471), 2000), 0);
	pair_take(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_route(id, 2000), 0);
	pair_take(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	assert_int_equal(rdma_connect(id, &param), 0);
	return id;
}

/* A request comes for that listener, on the device with that transport type; both ends go. */
static void request_comes(struct rdma_cm_id *listener, struct rdma_cm_id *client,
			  enum ibv_transport_type type)
{
	struct rdma_cm_event *event = pair_expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	struct rdma_cm_id *child = event->id;

	assert_ptr_equal(event->listen_id, listener);
	assert_int_equal(child->verbs->device->transport_type, type);
	assert_ptr_not_equal(child->verbs, client->verbs);
	rdma_ack_cm_event(event);
	assert_int_equal(rdma_destroy_id(child), 0);
	pair_take(channel, RDMA_CM_EVENT_REJECTED,
		  type == IBV_TRANSPORT_IWARP ? -ECONNRESET : 28);
	rdma_destroy_qp(client);
	assert_int_equal(rdma_destroy_id(client), 0);
}

static void a_wildcard_listener_takes_from_every_device(void **state)
{
	struct rdma_cm_id *listener = new_id();

	(void)state;
	assert_int_equal(rdma_bind_addr(listener, step_sa("0.0.0.0", 7471)), 0);
	assert_int_equal(rdma_listen(listener, 0), 0);
	request_comes(listener, connect_to(ROCE_SERVER), IBV_TRANSPORT_IB);
	request_comes(listener, connect_to(IWARP_SERVER), IBV_TRANSPORT_IWARP);
	assert_int_equal(rdma_destroy_id(listener), 0);
}

static void one_port_at_two_addresses_is_two_listeners(void **state)
{
	struct rdma_cm_id *roce = new_id(), *iwarp = new_id();

	(void)state;
	assert_int_equal(rdma_bind_addr(roce, step_sa(ROCE_SERVER, 7471)), 0);
	assert_int_equal(rdma_listen(roce, 0), 0);
	assert_int_equal(rdma_bind_addr(iwarp, step_sa(IWARP_SERVER, 7471)), 0);
	assert_int_equal(rdma_listen(iwarp, 0), 0);
	request_comes(iwarp, connect_to(IWARP_SERVER), IBV_TRANSPORT_IWARP);
	request_comes(roce, connect_to(ROCE_SERVER), IBV_TRANSPORT_IB);
	assert_int_equal(rdma_destroy_id(roce), 0);
	assert_int_equal(rdma_destroy_id(iwarp), 0);
}

/* Of the sockets that a wildcard listener has, each is on an interface; one at 127.0.0.1 is on none. */
static void several_iwarp_devices_cannot_listen_at_loopback(void **state)
{
	struct rdma_cm_id *id = new_id();

	(void)state;
	assert_int_equal(rdma_bind_addr(id, step_sa("127.0.0.1", 7471)), 0);
	assert_errno(rdma_listen(id, 0), EADDRINUSE);
	assert_int_equal(rdma_destroy_id(id), 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_own_address_without_a_device_leads_nowhere),
		TEST(a_source_of_another_interface_finds_nobody_there),
		TEST(no_route_is_an_error_at_once_and_the_id_lives_on),
		TEST(a_route_gives_the_source),
		TEST(a_known_neighbour_need_not_answer),
		TEST(neighbours_are_asked_again_each_second),
		TEST(a_link_local_neighbour_that_nobody_is_times_out),
		TEST(a_wildcard_listener_takes_from_every_device),
		TEST(one_port_at_two_addresses_is_two_listeners),
		TEST(several_iwarp_devices_cannot_listen_at_loopback),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
