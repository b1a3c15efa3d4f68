/* SPDX-License-Identifier: BSD-2-Clause */
/* sim_world.c - see sim_world.h. */
#include "config.h"

#include "providers/soft/host/host.h"
#include "sim_world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "providers/ib/rules.h"
#include "providers/iwarp/rules.h"
#include "providers/roce/rules.h"
#include "host_services.h"

struct world world;
uint8_t world_data[256];

const char *const world_names[NUM_TRANSPORTS] = { "roce", "ib", "iwarp" };

static const struct polycm_transport *const rules[NUM_TRANSPORTS] = {
	&roce_transport, &ib_transport, &iwarp_transport,
};

/* --- The core's side. --- */

static struct polycm_id *new_id(void)
{
	struct polycm_id *id = aligned_alloc(_Alignof(struct polycm_id),
					     (sizeof(*id) + 15) / 16 * 16);

	assert_non_null(id);
	memset(id, 0, sizeof(*id));
	id->end = &id->first;
	id->backlog = 1000;
	return id;
}

static int post_event(struct polycm_id *id, const struct polycm_event *event)
{
	struct world_event *copy;
	size_t len;

	assert_int_equal(event->size, sizeof(*event));
	if (id->closed)
		return -ECANCELED;
	if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		if (!id->backlog)
			return -ENOMEM;
		id->backlog--;
	}
	copy = calloc(1, sizeof(*copy));
	assert_non_null(copy);
	copy->event = *event;
	if (!event->is_ud && event->param.conn.private_data) {
		len = event->param.conn.private_data_len;
		memcpy(copy->data, event->param.conn.private_data, len);
		copy->event.param.conn.private_data = copy->data;
	} else if (event->is_ud && event->param.ud.private_data) {
		len = event->param.ud.private_data_len;
		memcpy(copy->data, event->param.ud.private_data, len);
		copy->event.param.ud.private_data = copy->data;
	}
	*id->end = copy;
	id->end = &copy->next;
	return 0;
}

static int child_create(struct polycm_id *listener, struct polycm_id **ret_child, void **ret_priv)
{
	(void)listener;
	*ret_child = new_id();
	*ret_priv = &(*ret_child)->sim;
	return 0;
}

static void child_destroy(struct polycm_id *child)
{
	free(child);
}

static int device_add(struct polycm_module *module, const struct polycm_device_info *info,
		      struct polycm_device **ret_device)
{
	(void)module;
	*ret_device = info->cookie;
	return 0;
}

static void device_remove(struct polycm_device *device)
{
	(void)device;
}

static void *device_cookie(const struct polycm_device *device)
{
	return (void *)(uintptr_t)device;
}

static const struct polycm_transport *transport(const char *name)
{
	for (size_t i = 0; i < NUM_TRANSPORTS; i++)
		if (!strcmp(name, world_names[i]))
			return rules[i];
	return NULL;
}

static const char *setting(const char *name)
{
	(void)name;
	return NULL;
}

static bool log_enabled(enum polycm_log_level level)
{
	(void)level;
	return false;
}

__attribute__((format(printf, 3, 4)))
static void log_nothing(enum polycm_log_level level, const struct polycm_id *id,
			const char *format, ...)
{
	(void)level;
	(void)id;
	(void)format;
}

static void *count_alloc(size_t size)
{
	void *memory;

	if (world.fail_allocation && !--world.fail_allocation)
		return NULL;
	memory = calloc(1, size);
	world.allocated += memory != NULL;
	return memory;
}

static void count_free(void *memory)
{
	world.allocated -= memory != NULL;
	free(memory);
}

struct polycm_core world_core = {
	.why = no_words,
	.size = sizeof(world_core),
	.abi_minor = POLYCM_ABI_MINOR,
	.post_event = post_event,
	.child_create = child_create,
	.child_destroy = child_destroy,
	.device_add = device_add,
	.device_remove = device_remove,
	.device_cookie = device_cookie,
	.transport = transport,
	.setting = setting,
	.log_enabled = log_enabled,
	.log = log_nothing,
	.alloc = count_alloc,
	.free = count_free,
};

/* --- The world. --- */

static void open_node(struct world_node *on, const char *name, const char *device_name,
		      const char *address)
{
	sim_lock();
	assert_int_equal(sim_node_add(name, &on->node), 0);
	assert_int_equal(sim_device_add(on->node, device_name, world.rules, &on->device), 0);
	assert_int_equal(sim_device_add_address(on->device, NULL, address), 0);
	sim_unlock();
	on->context = sim_verbs.open_device(&on->device->vdev.device);
	assert_non_null(on->context);
	on->pd = sim_verbs.alloc_pd(on->context);
	assert_non_null(on->pd);
	on->cq = sim_verbs.create_cq(on->context, 16, NULL, NULL, 0);
	assert_non_null(on->cq);
}

static void close_node(struct world_node *on)
{
	assert_int_equal(sim_verbs.destroy_cq(on->cq), 0);
	assert_int_equal(sim_verbs.dealloc_pd(on->pd), 0);
	assert_int_equal(sim_verbs.close_device(on->context), 0);
}

void world_open(enum world_transport t)
{
	world_open_as(t, rules[t]);
}

void world_open_as(enum world_transport t, const struct polycm_transport *as)
{
	memset(&world, 0, sizeof(world));
	world.transport = t;
	world.rules = as;
	for (size_t i = 0; i < sizeof(world_data); i++)
		world_data[i] = (uint8_t)(i + 1);
	sim_core = &world_core;
	sim_time = &clock_services;
	assert_int_equal(sim_engine_start(SIM_CLOCK_VIRTUAL, 42), 0);
	sim_lock();
	sim_nic_start();
	sim_cma_start(0);
	assert_int_equal(sim_fabric_begin(), 0);
	sim_unlock();
	open_node(&world.server, "server", "sim0", SERVER "/24");
	open_node(&world.client, "client", "sim1", CLIENT "/24");
	sim_lock();
	assert_int_equal(sim_fabric_announce(), 0);
	sim_set_current_node(world.client.node);
	sim_unlock();
}

void world_close(void)
{
	struct polycm_sim_counts counts;

	close_node(&world.client);
	close_node(&world.server);
	sim_lock();
	assert_int_equal(sim_cma_live_ids(), 0);
	sim_nic_counts(&counts);
	assert_int_equal(counts.qps, 0);
	sim_cma_stop();
	sim_nic_stop();
	sim_fabric_close();
	sim_unlock();
	sim_engine_stop();
	assert_int_equal(world.allocated, 0);
}

union sim_sockaddr world_address(const char *text, uint16_t port)
{
	union sim_sockaddr a;

	memset(&a, 0, sizeof(a));
	if (inet_pton(AF_INET, text, &a.in.sin_addr) == 1) {
		a.in.sin_family = AF_INET;
		a.in.sin_port = htons(port);
	} else {
		assert_int_equal(inet_pton(AF_INET6, text, &a.in6.sin6_addr), 1);
		a.in6.sin6_family = AF_INET6;
		a.in6.sin6_port = htons(port);
	}
	return a;
}

uint64_t world_now(void)
{
	return sim_now();
}

void world_advance(uint64_t ns)
{
	assert_int_equal(sim_advance(ns), 0);
}

/* --- Ids and events. --- */

struct polycm_id *world_id(enum rdma_port_space ps)
{
	struct polycm_id *id = new_id();
	struct polycm_open how = {
		.size = sizeof(how),
		.ps = ps,
		.qp_type = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC,
	};

	assert_int_equal(sim_cma_ops.open(NULL, id, &id->sim, &how), 0);
	return id;
}

void world_end(struct polycm_id *id)
{
	id->closed = true;
	sim_cma_ops.close(&id->sim);
}

static void free_events(struct world_event *event)
{
	struct world_event *next;

	for (; event; event = next) {
		next = event->next;
		/* The core ends what the program never saw. */
		if (event->event.type == RDMA_CM_EVENT_CONNECT_REQUEST && event->event.child)
			world_destroy(event->event.child);
		free(event);
	}
}

void world_destroy(struct polycm_id *id)
{
	if (!id->closed)
		world_end(id);
	free_events(id->first);
	id->first = NULL;
	sim_cma_ops.stop(&id->sim);
	sim_cma_ops.free(&id->sim);
	free_events(id->taken);
	free(id);
}

static bool wait_event(struct polycm_id *id)
{
	while (!id->first)
		if (sim_idle(NULL) < 0)
			return false;
	return true;
}

static struct world_event *take(struct polycm_id *id)
{
	struct world_event *event = id->first;

	id->first = event->next;
	if (!id->first)
		id->end = &id->first;
	if (event->event.type == RDMA_CM_EVENT_CONNECT_REQUEST)
		id->backlog++;
	event->next = id->taken;
	id->taken = event;
	return event;
}

const struct polycm_event *world_expect(struct polycm_id *id, enum rdma_cm_event_type type,
					int status)
{
	struct world_event *event;

	if (!wait_event(id))
		fail_msg("%s: no event instead of %d", world_names[world.transport], type);
	event = take(id);
	if (event->event.type != type || event->event.status != status)
		fail_msg("%s: event %d with status %d instead of %d with %d",
			 world_names[world.transport], event->event.type, event->event.status, type,
			 status);
	return &event->event;
}

struct polycm_id *world_request(struct polycm_id *listener)
{
	const struct polycm_event *event = world_expect(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	struct polycm_id *child = event->child;

	assert_non_null(child);
	listener->taken->event.child = NULL;	/* the test's from now on */
	return child;
}

void world_none(struct polycm_id *id, uint64_t ns)
{
	world_advance(ns);
	if (id->first)
		fail_msg("%s: event %d with status %d instead of none",
			 world_names[world.transport], id->first->event.type,
			 id->first->event.status);
}

/* --- Queue pairs. --- */

int world_move_qp(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1 };
	int mask = IBV_QP_STATE;

	if (state == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	return sim_verbs.modify_qp(qp, &attr, mask);
}

struct ibv_qp *world_qp(struct world_node *on)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = on->cq,
		.recv_cq = on->cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = sim_verbs.create_qp(on->pd, &attr);

	assert_non_null(qp);
	assert_int_equal(world_move_qp(qp, IBV_QPS_INIT), 0);
	return qp;
}

void world_destroy_qp(struct ibv_qp *qp)
{
	assert_int_equal(sim_verbs.destroy_qp(qp), 0);
}

enum ibv_qp_state world_qp_state(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	assert_int_equal(sim_verbs.query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

/* --- Calls. --- */

int world_bind(struct polycm_id *id, const char *address, uint16_t port)
{
	union sim_sockaddr a = world_address(address, port);

	return sim_cma_ops.bind(&id->sim, &a.sa);
}

int world_resolve_addr(struct polycm_id *id, const char *address, int timeout_ms)
{
	union sim_sockaddr a = world_address(address, PORT);

	return sim_cma_ops.resolve_addr(&id->sim, NULL, &a.sa, timeout_ms);
}

int world_listen(struct polycm_id *id)
{
	return sim_cma_ops.listen(&id->sim, 8);
}

int world_set_int(struct polycm_id *id, int optname, int value)
{
	return sim_cma_ops.set_option(&id->sim, RDMA_OPTION_ID, optname, &value, sizeof(value));
}

struct polycm_conn_param world_param(const void *data, size_t len, uint32_t qpn)
{
	return (struct polycm_conn_param) {
		.size = sizeof(struct polycm_conn_param),
		.private_data = len ? data : NULL,
		.private_data_len = (uint8_t)len,
		.responder_resources = 4,
		.initiator_depth = 3,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.qp_num = qpn,
	};
}

int world_connect(struct polycm_id *id, const void *data, size_t len, struct ibv_qp *qp)
{
	struct polycm_conn_param param = world_param(data, len, qp ? qp->qp_num : 0x123456);

	return sim_cma_ops.connect(&id->sim, &param);
}

int world_accept(struct polycm_id *id, const void *data, size_t len, struct ibv_qp *qp)
{
	struct polycm_conn_param param = world_param(data, len, qp ? qp->qp_num : 0x654321);

	return sim_cma_ops.accept(&id->sim, &param);
}

struct polycm_route_info world_query(struct polycm_id *id)
{
	struct polycm_route_info info = { .size = sizeof(info) };

	assert_int_equal(sim_cma_ops.query(&id->sim, &info), 0);
	return info;
}

struct polycm_id *world_listener(enum rdma_port_space ps)
{
	struct polycm_id *id = world_id(ps);

	assert_int_equal(world_bind(id, SERVER, PORT), 0);
	assert_int_equal(world_listen(id), 0);
	return id;
}

struct polycm_id *world_resolved(enum rdma_port_space ps)
{
	struct polycm_id *id = world_id(ps);

	assert_int_equal(world_resolve_addr(id, SERVER, 1000), 0);
	world_expect(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(sim_cma_ops.resolve_route(&id->sim, 1000), 0);
	world_expect(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return id;
}
