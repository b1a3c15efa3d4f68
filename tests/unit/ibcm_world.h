/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibcm_world.h - what the tests of the InfiniBand CM engine share: a private
 * fabric with a client's and a server's node under the virtual clock, ids
 * driven through the provider's operations, a host that keeps events for the
 * test to look at, and a tap on the wire that records MADs and loses those
 * that the test names.
 *
 * One thread.  world_open() and world_close() are a test's setup and teardown;
 * the latter fails if an id, an allocation or an event was left.
 */
#ifndef TESTS_IBCM_WORLD_H
#define TESTS_IBCM_WORLD_H

#include "tests/cmocka_all.h"

#include "providers/soft/cm/ibcm.h"

#define LATENCY SIM_US(1)	/* of a packet */
#define PORT 7471

/* An event that was posted, with the time. */
struct world_event {
	struct polycm_event event;
	uint64_t time;
	uint8_t private_data[256];
	struct world_event *next;
};

/* A MAD that arrived, or would have. */
struct world_mad {
	uint64_t time;
	bool to_server;
	bool lost;
	struct cm_msg msg;
};

#define WORLD_MADS 512

struct world {
	struct sim_node *client, *server;
	struct sim_device *client_device, *server_device;
	struct world_mad mads[WORLD_MADS];
	unsigned int num_mads;
	unsigned int backlog;		/* of every listener */
	int refuse;			/* what post_event() says to CONNECT_REQUESTs, if not 0 */
	bool keep_mads;			/* false: count nothing, for long runs */
	unsigned int fail_allocation;	/* the n-th from now on; 0: none */
};

extern struct world world;

/* Both nodes play the transport. */
int world_open_roce(void **state);
int world_open_ib(void **state);
int world_close(void **state);

/* The ids of the host, as the core would keep them. */
struct polycm_id *world_id(enum rdma_port_space ps);
struct polycm_id *world_typed_id(enum rdma_port_space ps, enum ibv_qp_type qp_type);
void world_destroy(struct polycm_id *id);
struct sim_id *world_sim(struct polycm_id *id);
enum ibcm_state world_state(struct polycm_id *id);

/* A listener at the server's address. */
struct polycm_id *world_listen(enum rdma_port_space ps);
/* A client id with a route to the server's address and that port. */
struct polycm_id *world_route(enum rdma_port_space ps, uint16_t port);
struct polycm_id *world_route_from(struct sim_node *node, struct polycm_id *id,
				   const char *address, uint16_t port);

/* The next event of an id, or NULL; valid until the next call. */
const struct world_event *world_event(struct polycm_id *id);
/* The next event must be this; the last one asserted on is returned. */
const struct world_event *world_expect(struct polycm_id *id, enum rdma_cm_event_type type,
				       int status);
void world_expect_none(struct polycm_id *id);
/* The next event of a listener must be a request: its id. */
struct polycm_id *world_child(struct polycm_id *listener);

/* Calls, with values that a test seldom cares about: depths 3 and 5, QP number as given. */
struct polycm_conn_param world_param(uint32_t qp_num);
int world_connect(struct polycm_id *id, uint32_t qp_num);
int world_accept(struct polycm_id *id, uint32_t qp_num);
#define world_call(id, op, ...) (sim_cma_ops.op(world_sim(id), ##__VA_ARGS__))

void world_run_ms(uint64_t ms);
void world_run(uint64_t ns);

/* A connection up to ESTABLISHED on both sides. */
struct pair {
	struct polycm_id *listener, *client, *server;
};
struct pair world_requested(void);	/* the server has the CONNECT_REQUEST */
struct pair world_accepted(void);	/* the client has the CONNECT_RESPONSE */
struct pair world_established(void);
void world_end(struct pair *pair);

/* Lose the n-th MAD of an attribute from now on (1: the next); 0: none; ~0: all. */
void world_lose(enum cm_attr_id attr_id, unsigned int nth);
#define WORLD_ALL (~0u)
unsigned int world_count(enum cm_attr_id attr_id);
/* The n-th MAD of an attribute since the last world_forget(), counted from 0. */
const struct world_mad *world_mad(enum cm_attr_id attr_id, unsigned int nth);
void world_forget(void);

/* Put a MAD on the wire, from the client's port to the server's or the other way. */
void world_inject(bool to_server, const struct cm_msg *msg);
void world_inject_bytes(bool to_server, const uint8_t *mad, size_t len);

#endif
