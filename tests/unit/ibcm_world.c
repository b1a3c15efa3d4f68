/* SPDX-License-Identifier: BSD-2-Clause */
/* ibcm_world.c - see ibcm_world.h. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ibcm_world.h"
#include "providers/ib/rules.h"
#include "providers/roce/rules.h"
#include "providers/sim/provider.h"
#include "host_services.h"

struct world world;

struct polycm_id {
	struct world_event *first, *last, *current;
	unsigned int queued_requests;
	bool closing;
	_Alignas(16) struct sim_id priv;
};

static unsigned int live_allocations, live_ids;

/* --- The host's services. --- */

static void *host_alloc(size_t size)
{
	void *memory;

	if (world.fail_allocation && !--world.fail_allocation)
		return NULL;
	memory = calloc(1, size);
	assert_non_null(memory);
	live_allocations++;
	return memory;
}

static void host_free(void *memory)
{
	if (memory)
		live_allocations--;
	free(memory);
}

static int host_post_event(struct polycm_id *id, const struct polycm_event *event)
{
	const void *data = event->is_ud ? event->param.ud.private_data
					: event->param.conn.private_data;
	size_t len = event->is_ud ? event->param.ud.private_data_len
				  : event->param.conn.private_data_len;
	struct world_event *kept;

	assert_false(id->closing);
	assert_int_equal(event->size, sizeof(*event));
	if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		if (world.refuse)
			return world.refuse;
		if (id->queued_requests >= world.backlog)
			return -ENOMEM;
		id->queued_requests++;
	}
	kept = calloc(1, sizeof(*kept));
	assert_non_null(kept);
	kept->event = *event;
	kept->time = sim_now();
	if (data)
		memcpy(kept->private_data, data, len);
	if (id->last)
		id->last->next = kept;
	else
		id->first = kept;
	id->last = kept;
	return 0;
}

static int host_child_create(struct polycm_id *listener, struct polycm_id **ret_child,
			     void **ret_priv)
{
	(void)listener;
	if (world.fail_allocation && !--world.fail_allocation)
		return -ENOMEM;
	*ret_child = calloc(1, sizeof(**ret_child));
	assert_non_null(*ret_child);
	*ret_priv = &(*ret_child)->priv;
	live_ids++;
	return 0;
}

static void host_child_destroy(struct polycm_id *child)
{
	assert_null(child->first);
	free(child);
	live_ids--;
}

static void host_log(enum polycm_log_level level, const struct polycm_id *id, const char *format,
		     ...)
{
	(void)level;
	(void)id;
	(void)format;
}

static bool host_log_enabled(enum polycm_log_level level)
{
	(void)level;
	return false;
}

static const char *host_setting(const char *name)
{
	(void)name;
	return "";
}

static const struct polycm_core host = {
	.why = no_words,
	.size = sizeof(host),
	.abi_minor = POLYCM_ABI_MINOR,
	.post_event = host_post_event,
	.child_create = host_child_create,
	.child_destroy = host_child_destroy,
	.setting = host_setting,
	.log_enabled = host_log_enabled,
	.log = host_log,
	.alloc = host_alloc,
	.free = host_free,
};

/* --- The tap. --- */

static unsigned int lose[CM_APR - CM_REQ + 1], seen[CM_APR - CM_REQ + 1];

static void tap(const struct sim_packet *packet)
{
	struct world_mad *mad;
	struct cm_msg msg;
	unsigned int index;
	bool lost = false;

	if (!cm_decode(packet->data, packet->len, &msg)) {
		index = (unsigned int)msg.attr_id - CM_REQ;
		seen[index]++;
		lost = lose[index] == WORLD_ALL || (lose[index] && lose[index] == seen[index]);
		if (world.keep_mads) {
			assert_in_range(world.num_mads, 0, WORLD_MADS - 1);
			mad = &world.mads[world.num_mads++];
			mad->time = sim_now();
			mad->to_server = packet->to->device->node == world.server;
			mad->lost = lost;
			mad->msg = msg;
		}
	}
	if (!lost)
		ibcm_receive(packet);
}

void world_lose(enum cm_attr_id attr_id, unsigned int nth)
{
	lose[attr_id - CM_REQ] = nth;
	seen[attr_id - CM_REQ] = 0;
}

void world_forget(void)
{
	world.num_mads = 0;
}

const struct world_mad *world_mad(enum cm_attr_id attr_id, unsigned int nth)
{
	for (unsigned int i = 0; i < world.num_mads; i++)
		if (world.mads[i].msg.attr_id == attr_id && !nth--)
			return &world.mads[i];
	fail_msg("%s was not sent so often", cm_msg_name((uint16_t)attr_id));
	return NULL;
}

unsigned int world_count(enum cm_attr_id attr_id)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < world.num_mads; i++)
		count += world.mads[i].msg.attr_id == attr_id;
	return count;
}

void world_inject_bytes(bool to_server, const uint8_t *mad, size_t len)
{
	struct sim_port *client = &world.client_device->ports[0];
	struct sim_port *server = &world.server_device->ports[0];

	sim_lock();
	assert_int_equal(sim_link_send(to_server ? client : server, to_server ? server : client,
				       sim_self_slot(), SIM_PACKET_MAD, mad, len, NULL, 0, 0), 0);
	sim_unlock();
	world_run(LATENCY);
}

void world_inject(bool to_server, const struct cm_msg *msg)
{
	uint8_t mad[CM_MAD_SIZE];

	cm_encode(msg, mad);
	world_inject_bytes(to_server, mad, sizeof(mad));
}

/* --- The fabric. --- */

static void add_node(const char *name, const char *address, const struct polycm_transport *rules,
		     struct sim_node **ret_node, struct sim_device **ret_device)
{
	char device[32];

	(void)snprintf(device, sizeof(device), "%s_0", name);
	assert_int_equal(sim_node_add(name, ret_node), 0);
	assert_int_equal(sim_device_add(*ret_node, device, rules, ret_device), 0);
	assert_int_equal(sim_device_add_address(*ret_device, NULL, address), 0);
}

static int open_world(const struct polycm_transport *rules)
{
	memset(&world, 0, sizeof(world));
	memset(lose, 0, sizeof(lose));
	memset(seen, 0, sizeof(seen));
	world.backlog = 1024;
	world.keep_mads = true;
	sim_core = &host;
	sim_time = &clock_services;
	assert_int_equal(sim_up_private(1), 0);
	sim_lock();
	add_node("client", "10.0.0.1/24", rules, &world.client, &world.client_device);
	add_node("server", "10.0.0.2/24", rules, &world.server, &world.server_device);
	sim_link_set_handler(SIM_PACKET_MAD, tap);
	sim_unlock();
	return 0;
}

int world_open_roce(void **state)
{
	(void)state;
	return open_world(&roce_transport);
}

int world_open_ib(void **state)
{
	(void)state;
	return open_world(&ib_transport);
}

int world_close(void **state)
{
	(void)state;
	assert_int_equal(sim_cma_live_ids(), 0);
	assert_int_equal(live_ids, 0);
	for (int table = 0; table < IBCM_TABLES; table++)
		assert_int_equal(ibcm_table_count((enum ibcm_table)table), 0);
	assert_int_equal(sim_down(NULL, 0), 0);
	assert_int_equal(live_allocations, 0);
	return 0;
}

/* --- Ids. --- */

struct sim_id *world_sim(struct polycm_id *id)
{
	return &id->priv;
}

enum ibcm_state world_state(struct polycm_id *id)
{
	assert_non_null(id->priv.ib);
	return (enum ibcm_state)id->priv.ib->state;
}

struct polycm_id *world_typed_id(enum rdma_port_space ps, enum ibv_qp_type qp_type)
{
	struct polycm_open how = { .size = sizeof(how), .ps = ps, .qp_type = qp_type };
	struct polycm_id *id = calloc(1, sizeof(*id));

	assert_non_null(id);
	live_ids++;
	assert_int_equal(sim_cma_ops.open(NULL, id, &id->priv, &how), 0);
	return id;
}

struct polycm_id *world_id(enum rdma_port_space ps)
{
	return world_typed_id(ps, ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? IBV_QPT_UD
									   : IBV_QPT_RC);
}

/* As the core: requests that nobody fetched go down with their listener. */
void world_destroy(struct polycm_id *id)
{
	struct world_event *event;

	sim_cma_ops.close(&id->priv);
	sim_cma_ops.stop(&id->priv);
	id->closing = true;
	while ((event = id->first)) {
		id->first = event->next;
		if (event->event.child)
			world_destroy(event->event.child);
		free(event);
	}
	sim_cma_ops.free(&id->priv);
	free(id->current);
	free(id);
	live_ids--;
}

static struct sockaddr_in address_of(const char *address, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	assert_int_equal(inet_pton(AF_INET, address, &in.sin_addr), 1);
	return in;
}

struct polycm_id *world_listen(enum rdma_port_space ps)
{
	struct sockaddr_in in = address_of("10.0.0.2", PORT);
	struct polycm_id *id = world_id(ps);

	sim_set_current_node(world.server);
	assert_int_equal(sim_cma_ops.bind(&id->priv, (struct sockaddr *)&in), 0);
	assert_int_equal(sim_cma_ops.listen(&id->priv, 1), 0);
	return id;
}

struct polycm_id *world_route_from(struct sim_node *node, struct polycm_id *id,
				   const char *address, uint16_t port)
{
	struct sockaddr_in in = address_of(address, port);

	sim_set_current_node(node);
	assert_int_equal(sim_cma_ops.resolve_addr(&id->priv, NULL, (struct sockaddr *)&in, 2000), 0);
	world_run_ms(1);
	world_expect(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(sim_cma_ops.resolve_route(&id->priv, 2000), 0);
	world_run_ms(1);
	world_expect(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return id;
}

struct polycm_id *world_route(enum rdma_port_space ps, uint16_t port)
{
	return world_route_from(world.client, world_id(ps), "10.0.0.2", port);
}

/* --- Events. --- */

const struct world_event *world_event(struct polycm_id *id)
{
	free(id->current);
	id->current = id->first;
	if (!id->current)
		return NULL;
	id->first = id->current->next;
	if (!id->first)
		id->last = NULL;
	if (id->current->event.type == RDMA_CM_EVENT_CONNECT_REQUEST)
		id->queued_requests--;
	return id->current;
}

const struct world_event *world_expect(struct polycm_id *id, enum rdma_cm_event_type type,
				       int status)
{
	const struct world_event *event = world_event(id);

	assert_non_null(event);
	assert_int_equal(event->event.type, type);
	assert_int_equal(event->event.status, status);
	return event;
}

void world_expect_none(struct polycm_id *id)
{
	assert_null(id->first);
}

struct polycm_id *world_child(struct polycm_id *listener)
{
	return world_expect(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0)->event.child;
}

/* --- Calls. --- */

struct polycm_conn_param world_param(uint32_t qp_num)
{
	return (struct polycm_conn_param){
		.size = sizeof(struct polycm_conn_param),
		.responder_resources = 3,
		.initiator_depth = 5,
		.retry_count = 6,
		.rnr_retry_count = 4,
		.qp_num = qp_num,
	};
}

int world_connect(struct polycm_id *id, uint32_t qp_num)
{
	struct polycm_conn_param param = world_param(qp_num);

	return sim_cma_ops.connect(&id->priv, &param);
}

int world_accept(struct polycm_id *id, uint32_t qp_num)
{
	struct polycm_conn_param param = world_param(qp_num);

	return sim_cma_ops.accept(&id->priv, &param);
}

void world_run(uint64_t ns)
{
	assert_int_equal(sim_advance(ns), 0);
}

void world_run_ms(uint64_t ms)
{
	world_run(SIM_MS(ms));
}

/* --- Connections. --- */

struct pair world_requested(void)
{
	struct pair pair;

	pair.listener = world_listen(RDMA_PS_TCP);
	pair.client = world_route(RDMA_PS_TCP, PORT);
	assert_int_equal(world_connect(pair.client, 0x11), 0);
	world_run(LATENCY);
	pair.server = world_child(pair.listener);
	return pair;
}

struct pair world_accepted(void)
{
	struct pair pair = world_requested();

	assert_int_equal(world_accept(pair.server, 0x22), 0);
	world_run(LATENCY);
	world_expect(pair.client, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	return pair;
}

struct pair world_established(void)
{
	struct pair pair = world_accepted();

	assert_int_equal(world_call(pair.client, establish), 0);
	world_run(LATENCY);
	world_expect(pair.server, RDMA_CM_EVENT_ESTABLISHED, 0);
	return pair;
}

void world_end(struct pair *pair)
{
	if (pair->client)
		world_destroy(pair->client);
	if (pair->server)
		world_destroy(pair->server);
	if (pair->listener)
		world_destroy(pair->listener);
}
