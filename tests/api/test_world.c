/* SPDX-License-Identifier: BSD-2-Clause */
/* test_world.c - what happens to nodes, ports, devices and addresses, and what programs see of it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "steps.h"

#define MS(ms) ((uint64_t)(ms) * 1000000u)

/* Do it now: a rule that names nothing to match happens at its time. */
static void happen(struct polycm_sim_fault_rule rule)
{
	struct polycm_sim_fault *fault;
	unsigned int hits;

	rule.size = sizeof(rule);
	rule.from_ns = pair_now();
	assert_int_equal(polycm_sim_fault_add(&rule, &fault), 0);
	assert_int_equal(polycm_sim_advance(0), 0);
	assert_int_equal(polycm_sim_fault_hits(fault, &hits), 0);
	assert_int_equal(hits, 1);
	assert_int_equal(polycm_sim_fault_remove(fault), 0);
}

#define HAPPEN(...) happen((struct polycm_sim_fault_rule){ __VA_ARGS__ })

static void watch_async(struct ibv_context *verbs)
{
	assert_int_equal(fcntl(verbs->async_fd, F_SETFL, O_NONBLOCK), 0);
}

static void take_async(struct ibv_context *verbs, enum ibv_event_type type)
{
	struct ibv_async_event event;

	assert_int_equal(ibv_get_async_event(verbs, &event), 0);
	assert_string_equal(ibv_event_type_str(event.event_type), ibv_event_type_str(type));
	ibv_ack_async_event(&event);
}

static void no_async(struct ibv_context *verbs)
{
	struct ibv_async_event event;

	assert_errno(ibv_get_async_event(verbs, &event), EAGAIN);
}

/* ------------------------------------------------------------------------
 * Nodes that freeze.
 */

/*
 * The client freezes for ten seconds just after its REQ went out, and the
 * server is dead: the sixteen waits of the REQ take that much longer.
 */
static void the_timers_of_a_frozen_node_stand_still(void **state)
{
	static const struct {
		double at, lasts, more;
	} freezes[] = {
		{ 0.0, 10.0, 10.0 },	/* before the first repetition */
		{ 5.0, 10.0, 10.0 },	/* between two */
		{ 70.0, 100.0, 100.0 },	/* before the last wait ends */
		{ 80.0, 100.0, 0.0 },	/* too late to matter */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(freezes); i++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct polycm_sim_fault_rule rule = {
			.size = sizeof(rule),
			.action = POLYCM_SIM_FREEZE,
			.delay_ns = SECONDS(freezes[i].lasts),
		};
		struct pair pair;
		uint64_t before;

		pair_open_resolved(&pair, ROCE);
		HAPPEN(.action = POLYCM_SIM_CRASH, .on = pair.server_node);
		before = pair_now();
		rule.on = pair.client_node;
		rule.from_ns = before + SECONDS(freezes[i].at) + 1;
		assert_int_equal(polycm_sim_fault_add(&rule, NULL), 0);
		assert_int_equal(rdma_connect(pair.client, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		assert_elapsed(before, 16 * SECONDS(4.608) + SECONDS(freezes[i].more));
		pair_close(&pair);
	}
}

/* What is started while the node is frozen begins when it goes on. */
static void a_frozen_node_starts_later(void **state)
{
	struct pair pair;
	uint64_t before;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	before = pair_now();
	HAPPEN(.action = POLYCM_SIM_FREEZE, .on = pair.client_node, .delay_ns = SECONDS(3));
	/* Longer, then: but never shorter. */
	HAPPEN(.action = POLYCM_SIM_FREEZE, .on = pair.client_node, .delay_ns = SECONDS(1));
	HAPPEN(.action = POLYCM_SIM_FREEZE, .on = pair.client_node, .delay_ns = SECONDS(5));
	assert_int_equal(polycm_sim_advance(SECONDS(2)), 0);
	assert_int_equal(rdma_resolve_addr(pair.client, NULL, step_sa("10.0.0.77", 1), 700), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	assert_elapsed(before, SECONDS(5.7));
	pair_close(&pair);
}

/* The server hears nothing for a while: the client's repetition gets through. */
static void a_frozen_server_answers_later(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct pair pair;
	uint64_t before;

	(void)state;
	pair_open_resolved(&pair, ROCE);
	HAPPEN(.action = POLYCM_SIM_FREEZE, .on = pair.server_node, .delay_ns = SECONDS(6));
	before = pair_now();
	rdma_ack_cm_event(pair_request(&pair, &param));
	/* At 0 and 4.608 s it was frozen. */
	assert_in_range(pair_now() - before, SECONDS(9.216), SECONDS(9.217));
	pair_close(&pair);
}

/* Of a crashed node nothing comes any more, whatever its program does. */
static void a_crashed_node_is_silent(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		print_message("%s\n", transport_name[t]);
		pair_open(&pair, t, RDMA_PS_TCP);
		pair_connect(&pair);
		HAPPEN(.action = POLYCM_SIM_CRASH, .on = pair.server_node);
		rdma_disconnect(pair.server);
		assert_int_equal(polycm_sim_advance(SECONDS(3600)), 0);
		if (t != IWARP)
			pair_none(pair.server_channel);
		pair_none(pair.client_channel);
		/* Its neighbours find it no more. */
		pair_close(&pair);
	}
}

/* ------------------------------------------------------------------------
 * Ports.
 */

static enum ibv_port_state port_state(struct ibv_context *verbs)
{
	struct ibv_port_attr attr;

	assert_int_equal(ibv_query_port(verbs, 1, &attr), 0);
	return attr.state;
}

static void a_port_goes_down_and_up(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;
		uint64_t before;

		print_message("%s\n", transport_name[t]);
		pair_open(&pair, t, RDMA_PS_TCP);
		watch_async(pair.listener->verbs);
		HAPPEN(.action = POLYCM_SIM_PORT_DOWN, .on = pair.server_node);
		HAPPEN(.action = POLYCM_SIM_PORT_DOWN, .on = pair.server_node);
		take_async(pair.listener->verbs, IBV_EVENT_PORT_ERR);
		no_async(pair.listener->verbs);
		assert_int_equal(port_state(pair.listener->verbs), IBV_PORT_DOWN);
		pair_none(pair.server_channel);

		before = pair_now();
		assert_int_equal(rdma_resolve_addr(pair.client, NULL,
						   step_sa(SERVER_ADDRESS, SERVER_PORT), 300), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
		assert_elapsed(before, MS(300));

		HAPPEN(.action = POLYCM_SIM_PORT_UP, .on = pair.server_node);
		take_async(pair.listener->verbs, IBV_EVENT_PORT_ACTIVE);
		no_async(pair.listener->verbs);
		assert_int_equal(port_state(pair.listener->verbs), IBV_PORT_ACTIVE);
		pair_resolve(&pair);
		pair_close(&pair);
	}
}

/* The connection manager is not told: a REQ is repeated until the port is back. */
static void a_connection_waits_for_its_port(void **state)
{
	static const enum transport with_mads[] = { ROCE, IB };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(with_mads); i++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		pair_open_resolved(&pair, with_mads[i]);
		HAPPEN(.action = POLYCM_SIM_PORT_DOWN, .on = pair.client_node,
		       .delay_ns = SECONDS(20));
		assert_int_equal(rdma_connect(pair.client, &param), 0);
		assert_int_equal(polycm_sim_advance(SECONDS(19)), 0);
		pair_none(pair.server_channel);
		assert_int_equal(polycm_sim_advance(SECONDS(7)), 0);
		assert_int_equal(polycm_sim_run_until_event(pair.listener, 0), 0);
		pair_close(&pair);
	}
}

/* ------------------------------------------------------------------------
 * Devices that are unplugged.
 */

/* What each call says on an id whose device is gone; it can be destroyed. */
static void check_removed(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	uint8_t tos = 1;

	assert_errno(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)),
		     ENXIO);
	assert_errno(rdma_resolve_addr(id, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT), 100),
		     ENXIO);
	assert_errno(rdma_listen(id, 1), ENXIO);
	assert_errno(rdma_notify(id, IBV_EVENT_COMM_EST), ENXIO);
	if (!id->qp) {
		param.qp_num = 7;
		assert_errno(rdma_connect(id, &param), ENXIO);
	}
}

static void every_id_of_a_device_learns_of_its_removal(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (enum step step = 0; step < NUM_STEPS; step++) {
			struct rdma_event_channel *channel;
			struct polycm_sim_node *node;
			struct rdma_cm_id *id;
			struct pair pair;
			bool on_device;

			if (!step_exists(t, step))
				continue;
			print_message("%s, step %s\n", transport_name[t], step_name[step]);
			id = step_open(&pair, t, step);
			channel = id->channel;
			node = channel == pair.client_channel ? pair.client_node : pair.server_node;
			on_device = id->verbs != NULL;
			HAPPEN(.action = POLYCM_SIM_REMOVE_DEVICE, .on = node);
			if (step == STEP_REQUEST) {
				/* Not accepted: it gets no events, its listener does. */
				pair_take(channel, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
				pair_none(channel);
			} else if (on_device) {
				pair_take(channel, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
				check_removed(id);
			}
			pair_close(&pair);
		}
	}
}

static void a_device_that_is_removed_is_gone(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct ibv_device **list;
		struct ibv_wc wc;
		struct ibv_recv_wr recv = { .wr_id = 5 }, *bad;
		struct rdma_cm_id *id;
		struct pair pair;
		int num;

		print_message("%s\n", transport_name[t]);
		pair_open(&pair, t, RDMA_PS_TCP);
		pair_connect(&pair);
		watch_async(pair.server->verbs);
		assert_int_equal(ibv_post_recv(pair.server->qp, &recv, &bad), 0);
		list = ibv_get_device_list(&num);
		assert_int_equal(num, 2);
		HAPPEN(.action = POLYCM_SIM_REMOVE_DEVICE, .on = pair.server_node);

		/* The listener and the connection were on it. */
		pair_take(pair.server_channel, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
		pair_none(pair.server_channel);
		pair_none(pair.client_channel);
		take_async(pair.server->verbs, IBV_EVENT_DEVICE_FATAL);
		assert_int_equal(step_qp_state(pair.server), IBV_QPS_ERR);
		assert_int_equal(ibv_poll_cq(pair.server_cq, 1, &wc), 1);
		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);

		/* Nobody can open it, or make anything on it. */
		errno = 0;
		assert_null(ibv_open_device(list[0]));
		assert_int_equal(errno, ENODEV);
		ibv_free_device_list(list);
		list = ibv_get_device_list(&num);
		assert_int_equal(num, 1);
		assert_string_equal(ibv_get_device_name(list[0]), "sim1");
		ibv_free_device_list(list);
		errno = 0;
		assert_null(ibv_alloc_pd(pair.server->verbs));
		assert_int_equal(errno, EIO);

		/* Its address is an interface's, which has no device. */
		assert_int_equal(rdma_create_id(pair.server_channel, &id, NULL, RDMA_PS_TCP), 0);
		assert_errno(rdma_bind_addr(id, step_sa(SERVER_ADDRESS, 1234)), ENODEV);
		assert_int_equal(rdma_destroy_id(id), 0);
		pair_close(&pair);
	}
}

/* What it tells of is devices; the address of one that is gone is an interface's. */
/* The kernel ends the ids before it lets the device go, and tells peers as it does else. */
static void peers_hear_of_a_removed_device(void **state)
{
	static const struct {
		enum step step;
		enum rdma_cm_event_type type;
		int status[NUM_TRANSPORTS];
	} cases[] = {
		{ STEP_REQUEST, RDMA_CM_EVENT_REJECTED,
		  { [ROCE] = 28, [IB] = 28, [IWARP] = -ECONNRESET } },
		{ STEP_PASSIVE, RDMA_CM_EVENT_DISCONNECTED, { 0 } },
	};

	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
			struct pair pair;

			print_message("%s, step %s\n", transport_name[t], step_name[cases[i].step]);
			(void)step_open(&pair, t, cases[i].step);
			HAPPEN(.action = POLYCM_SIM_REMOVE_DEVICE, .on = pair.server_node);
			pair_take(pair.client_channel, cases[i].type, cases[i].status[t]);
			pair_close(&pair);
		}
	}
}

static void a_trace_begins_when_a_device_is_gone(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	HAPPEN(.action = POLYCM_SIM_REMOVE_DEVICE, .on = pair.server_node);
	pair_take(pair.server_channel, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	assert_int_equal(polycm_sim_trace("/dev/null"), 0);
	assert_int_equal(polycm_sim_trace(NULL), 0);
	pair_close(&pair);
}

/* Objects that the program has on it can be destroyed after the last id. */
static void objects_outlive_a_removed_device(void **state)
{
	char memory[64];
	struct ibv_context *own;
	struct ibv_device **list;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_pd *pd;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	list = ibv_get_device_list(NULL);
	own = ibv_open_device(list[0]);
	assert_non_null(own);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(pair.listener->verbs);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	cq = ibv_create_cq(pair.listener->verbs, 1, NULL, NULL, 0);
	assert_true(pd && mr && cq);
	HAPPEN(.action = POLYCM_SIM_REMOVE_DEVICE, .on = pair.server_node);
	pair_take(pair.server_channel, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	assert_int_equal(rdma_destroy_id(pair.listener), 0);
	pair.listener = NULL;
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(own), 0);
	pair_close(&pair);
}

/* A listener on all devices goes on, on those that are left. */
static void a_wildcard_listener_stays(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct rdma_cm_id *listener;
	struct rdma_cm_event *event;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(polycm_sim_device_add(pair.server_node, "roce", "10.0.0.3/24", NULL, NULL),
			 0);
	assert_int_equal(polycm_sim_node_use(pair.server_node), 0);
	assert_int_equal(rdma_create_id(pair.server_channel, &listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(listener, step_sa("0.0.0.0", 5555)), 0);
	assert_int_equal(rdma_listen(listener, 1), 0);
	assert_int_equal(polycm_sim_node_use(pair.client_node), 0);
	HAPPEN(.action = POLYCM_SIM_REMOVE_DEVICE, .on = pair.server_node);
	pair_take(pair.server_channel, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	pair_none(pair.server_channel);

	assert_int_equal(rdma_resolve_addr(pair.client, NULL, step_sa("10.0.0.3", 5555), 1000), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_route(pair.client, 1000), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	pair_client_qp(&pair);
	assert_int_equal(rdma_connect(pair.client, &param), 0);
	event = pair_expect(pair.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_ptr_equal(event->listen_id, listener);
	pair.server = event->id;
	rdma_ack_cm_event(event);
	assert_int_equal(rdma_destroy_id(pair.server), 0);
	pair.server = NULL;
	assert_int_equal(rdma_destroy_id(listener), 0);
	pair_close(&pair);
}

/* ------------------------------------------------------------------------
 * Addresses and MACs.
 */

static bool has_gid(struct ibv_context *verbs, const char *text)
{
	struct ibv_gid_entry entries[64];
	union ibv_gid gid;
	ssize_t num = ibv_query_gid_table(verbs, entries, ARRAY_LEN(entries), 0);
	bool found = false;

	assert_int_equal(inet_pton(AF_INET6, text, gid.raw), 1);
	for (ssize_t i = 0; i < num; i++)
		found |= !memcmp(entries[i].gid.raw, gid.raw, sizeof(gid.raw));
	return found;
}

static void an_address_changes(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_cm_id *other;
		struct pair pair;

		print_message("%s\n", transport_name[t]);
		pair_open(&pair, t, RDMA_PS_TCP);
		watch_async(pair.listener->verbs);
		HAPPEN(.action = POLYCM_SIM_CHANGE_ADDRESS, .on = pair.server_node,
		       .address = SERVER_ADDRESS, .new_address = "10.0.0.50/24");
		take_async(pair.listener->verbs, IBV_EVENT_GID_CHANGE);
		no_async(pair.listener->verbs);
		pair_none(pair.server_channel);
		if (t == ROCE) {
			assert_false(has_gid(pair.listener->verbs, "::ffff:10.0.0.1"));
			assert_true(has_gid(pair.listener->verbs, "::ffff:10.0.0.50"));
		}

		/* Nobody is found under the old one; somebody is under the new one. */
		assert_int_equal(rdma_resolve_addr(pair.client, NULL,
						   step_sa(SERVER_ADDRESS, SERVER_PORT), 100), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
		assert_int_equal(rdma_resolve_addr(pair.client, NULL,
						   step_sa("10.0.0.50", SERVER_PORT), 100), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		assert_int_equal(rdma_create_id(pair.server_channel, &other, NULL, RDMA_PS_TCP), 0);
		assert_errno(rdma_bind_addr(other, step_sa(SERVER_ADDRESS, 99)), EADDRNOTAVAIL);
		assert_int_equal(rdma_bind_addr(other, step_sa("10.0.0.50", 9999)), 0);
		assert_int_equal(rdma_destroy_id(other), 0);
		pair_close(&pair);
	}
}

/* One goes, one comes: the table keeps the places of the others. */
static void gids_keep_their_places(void **state)
{
	union ibv_gid before, after;
	struct ibv_gid_entry entry;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(polycm_sim_node_add_address(pair.server_node, "10.0.0.60/24"), 0);
	assert_int_equal(ibv_query_gid(pair.listener->verbs, 1, 4, &before), 0);
	HAPPEN(.action = POLYCM_SIM_CHANGE_ADDRESS, .on = pair.server_node,
	       .address = SERVER_ADDRESS);
	assert_int_equal(ibv_query_gid(pair.listener->verbs, 1, 4, &after), 0);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(ibv_query_gid_ex(pair.listener->verbs, 1, 2, &entry, 0), ENODATA);
	HAPPEN(.action = POLYCM_SIM_CHANGE_ADDRESS, .on = pair.server_node,
	       .new_address = "10.0.0.70/24");
	assert_int_equal(ibv_query_gid_ex(pair.listener->verbs, 1, 2, &entry, 0), 0);
	assert_memory_equal(entry.gid.raw + 12, "\x0a\x00\x00\x46", 4);
	pair_close(&pair);
}

static void resolved_again_it_finds_the_new_mac(struct pair *pair)
{
	struct rdma_conn_param param = { .qp_num = 5 };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	pair_take(pair->client_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	pair_take(pair->server_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	assert_int_equal(rdma_create_id(pair->client_channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT), 1000), 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(rdma_connect(id, &param), 0);
	event = pair_expect(pair->server_channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_int_equal(rdma_destroy_id(event->id), 0);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_REJECTED, 28);
	assert_int_equal(rdma_destroy_id(id), 0);
}

/* Surprise 20: UNREACHABLE on a connection that lives on. */
static void a_new_mac_makes_established_ids_unreachable(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		print_message("%s\n", transport_name[t]);
		pair_open(&pair, t, RDMA_PS_TCP);
		pair_connect(&pair);
		HAPPEN(.action = POLYCM_SIM_CHANGE_MAC, .on = pair.server_node,
		       .address = SERVER_ADDRESS);
		/* Those on that port: the listener and the connection. */
		pair_take(pair.server_channel, RDMA_CM_EVENT_ADDR_CHANGE, 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_ADDR_CHANGE, 0);
		pair_none(pair.server_channel);
		/* Only RoCE's connection manager looks at its neighbours. */
		if (t == ROCE)
			pair_take(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		pair_none(pair.client_channel);
		assert_int_equal(step_qp_state(pair.client), IBV_QPS_RTS);
		assert_int_equal(step_qp_state(pair.server), IBV_QPS_RTS);
		assert_int_equal(rdma_disconnect(pair.client), 0);
		if (t == ROCE) {
			/* What the connection sends goes to the old MAC: the server hears nothing. */
			pair_take(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
			pair_none(pair.server_channel);
			assert_int_equal(rdma_disconnect(pair.server), 0);
		}
		/* The other way is open, and an answer goes to the MAC that asked. */
		pair_take(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		if (t == ROCE)
			resolved_again_it_finds_the_new_mac(&pair);
		pair_close(&pair);
	}
}

/* The passive side did not resolve a route: it is not told of the client's. */
static void a_new_mac_of_the_client(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	pair_connect(&pair);
	HAPPEN(.action = POLYCM_SIM_CHANGE_MAC, .on = pair.client_node,
	       .address = CLIENT_ADDRESS);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	pair_none(pair.client_channel);
	pair_none(pair.server_channel);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_timers_of_a_frozen_node_stand_still),
		cmocka_unit_test(a_frozen_node_starts_later),
		cmocka_unit_test(a_frozen_server_answers_later),
		cmocka_unit_test(a_crashed_node_is_silent),
		cmocka_unit_test(a_port_goes_down_and_up),
		cmocka_unit_test(a_connection_waits_for_its_port),
		cmocka_unit_test(every_id_of_a_device_learns_of_its_removal),
		cmocka_unit_test(a_device_that_is_removed_is_gone),
		cmocka_unit_test(peers_hear_of_a_removed_device),
		cmocka_unit_test(a_trace_begins_when_a_device_is_gone),
		cmocka_unit_test(objects_outlive_a_removed_device),
		cmocka_unit_test(a_wildcard_listener_stays),
		cmocka_unit_test(an_address_changes),
		cmocka_unit_test(gids_keep_their_places),
		cmocka_unit_test(a_new_mac_makes_established_ids_unreachable),
		cmocka_unit_test(a_new_mac_of_the_client),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
