/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_world.h - the simulator without the core: two nodes on a private fabric
 * under the virtual clock, ids that keep what is posted to them, and the
 * operations called through sim_cma_ops.
 */
#ifndef TESTS_UNIT_SIM_WORLD_H
#define TESTS_UNIT_SIM_WORLD_H

#include "tests/cmocka_all.h"

#include "providers/soft/cm/cma.h"
#include "providers/soft/nic/nic.h"

#define SERVER "10.0.0.1"
#define CLIENT "10.0.0.2"
#define NOBODY "10.0.0.99"
#define PORT 7471

enum world_transport { ROCE, IB, IWARP, NUM_TRANSPORTS };
extern const char *const world_names[NUM_TRANSPORTS];

/* What was posted, copied. */
struct world_event {
	struct polycm_event event;
	uint8_t data[256];		/* private data; event's pointer leads here, or is NULL */
	struct world_id *child;
	struct world_event *next;
};

/* An id as the core would keep it. */
struct polycm_id {
	_Alignas(16) struct sim_id sim;
	struct world_event *first, **end;
	struct world_event *taken;	/* all that world_expect() gave out */
	unsigned int backlog;		/* CONNECT_REQUESTs that still fit */
	bool closed;
};

struct world_node {
	struct sim_node *node;
	struct sim_device *device;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

struct world {
	enum world_transport transport;
	const struct polycm_transport *rules;
	struct world_node server, client;
	size_t allocated;		/* by the provider, in blocks */
	unsigned int fail_allocation;	/* 1: the next one fails, 2: the one after it ...; 0: none */
};

extern struct world world;

/* The table that the provider gets. */
extern struct polycm_core world_core;

void world_open(enum world_transport transport);
/* The same with rules of the test's own, which must outlive it. */
void world_open_as(enum world_transport transport, const struct polycm_transport *rules);
/* Fails unless nothing is left of ids and memory. */
void world_close(void);

union sim_sockaddr world_address(const char *text, uint16_t port);
uint64_t world_now(void);
void world_advance(uint64_t ns);

/* An id of the current node; `rdma_create_id()'. */
struct polycm_id *world_id(enum rdma_port_space ps);
/* close, stop and free. */
void world_destroy(struct polycm_id *id);
/* Only close: the program's destroy call began. */
void world_end(struct polycm_id *id);

/*
 * The next event, moving time; fails unless it is that.  It stays valid until
 * the id is destroyed.
 */
const struct polycm_event *world_expect(struct polycm_id *id, enum rdma_cm_event_type type,
					int status);
/* The child of the CONNECT_REQUEST that comes next on a listener. */
struct polycm_id *world_request(struct polycm_id *listener);
/* Nothing was posted, and in this much time nothing is. */
void world_none(struct polycm_id *id, uint64_t ns);

/* A QP on a node, in state INIT. */
struct ibv_qp *world_qp(struct world_node *on);
void world_destroy_qp(struct ibv_qp *qp);
enum ibv_qp_state world_qp_state(struct ibv_qp *qp);
int world_move_qp(struct ibv_qp *qp, enum ibv_qp_state state);

/* Calls, with the operation's result. */
int world_bind(struct polycm_id *id, const char *address, uint16_t port);
int world_resolve_addr(struct polycm_id *id, const char *address, int timeout_ms);
int world_listen(struct polycm_id *id);
int world_set_int(struct polycm_id *id, int optname, int value);
struct polycm_conn_param world_param(const void *data, size_t len, uint32_t qpn);
int world_connect(struct polycm_id *id, const void *data, size_t len, struct ibv_qp *qp);
int world_accept(struct polycm_id *id, const void *data, size_t len, struct ibv_qp *qp);
struct polycm_route_info world_query(struct polycm_id *id);

/* Whole ways. */
struct polycm_id *world_listener(enum rdma_port_space ps);
/* Of the client's node, up to ROUTE_RESOLVED towards the listener. */
struct polycm_id *world_resolved(enum rdma_port_space ps);

/* 1, 2, 3, ... */
extern uint8_t world_data[256];

#endif
