/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tests/api/pair.h - two programs, a server and a client, in one test: each on
 * a node of its own on a private fabric under the virtual clock, driven by the
 * exported rdma_* calls from one thread.
 *
 * A blocking wait moves virtual time.  So that no time-out fires by accident,
 * a test takes the events in the order in which they come.
 */
#ifndef TESTS_API_PAIR_H
#define TESTS_API_PAIR_H

#include <rdma/rdma_cma.h>

#include "polycm/sim.h"
#include "tests/cmocka_all.h"

#define SERVER_ADDRESS "10.0.0.1"
#define CLIENT_ADDRESS "10.0.0.2"
#define SERVER_PORT 7471

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

enum transport { ROCE, IB, IWARP, NUM_TRANSPORTS };

struct pair {
	enum transport transport;
	enum rdma_port_space ps;
	struct polycm_sim_node *server_node, *client_node;
	struct rdma_event_channel *server_channel, *client_channel;
	struct rdma_cm_id *listener;
	struct rdma_cm_id *client;	/* the active id */
	struct rdma_cm_id *server;	/* of the CONNECT_REQUEST; pair_close() destroys it */
	struct ibv_cq *client_cq, *server_cq;	/* when QPs were asked for */
};

extern const char *const transport_name[NUM_TRANSPORTS];
/* What the nodes' devices are: a transport, or a device whose profile they play. */
extern const char *pair_kind[NUM_TRANSPORTS];

/* cmocka set-up and tear-down of a group: the environment that selects the simulator. */
int pair_group_setup(void **state);

/* SERVER_ADDRESS or CLIENT_ADDRESS, for calls. */
struct sockaddr_in pair_address(const char *text, uint16_t port);
/* The fabric with both nodes; the client's is the current one. */
void pair_open_nodes(enum transport transport, struct polycm_sim_node **ret_server,
		     struct polycm_sim_node **ret_client);
/* Drops it, and fails the test unless the program has nothing left. */
void pair_close_nodes(void);

/* Fabric, nodes, channels, a listening id and a client id, nothing resolved. */
void pair_open(struct pair *pair, enum transport transport, enum rdma_port_space ps);
/* Ends whatever is left of it and fails the test unless nothing of it remains. */
void pair_close(struct pair *pair);

/* The client up to ROUTE_RESOLVED. */
void pair_resolve(struct pair *pair);
/* A QP on each id as it comes, RC or UD as the port space has it. */
void pair_client_qp(struct pair *pair);
/* pair_open() with RDMA_PS_TCP, the client up to ROUTE_RESOLVED and with a QP. */
void pair_open_resolved(struct pair *pair, enum transport transport);
void pair_server_qp(struct pair *pair);

/* Sensible parameters with this much private data (bytes 1, 2, 3, ...). */
struct rdma_conn_param pair_param(const void *data, size_t len);
extern const uint8_t pair_data[256];

/* rdma_connect(), then the server's CONNECT_REQUEST, un-acked; pair->server is set. */
struct rdma_cm_event *pair_request(struct pair *pair, struct rdma_conn_param *param);
/* The whole way: QPs at both ends, connected, all events acked. */
void pair_connect(struct pair *pair);

/*
 * The next event of a channel, which must be this one with this status; the
 * caller acks it.  Fails the test with both names otherwise.
 */
struct rdma_cm_event *pair_expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type,
				  int status);
/* The same, acked. */
void pair_take(struct rdma_event_channel *channel, enum rdma_cm_event_type type, int status);
/* Nothing is queued now; no time passes. */
void pair_none(struct rdma_event_channel *channel);

/* Virtual time in ns. */
uint64_t pair_now(void);

/* The call must fail with this errno. */
#define assert_errno(call, error)                                                                  \
	do {                                                                                       \
		errno = 0;                                                                         \
		assert_int_equal((call), -1);                                                      \
		assert_int_equal(errno, (error));                                                  \
	} while (0)

#endif
