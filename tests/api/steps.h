/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tests/api/steps.h - a pair brought to each state that an id can be in, and
 * checks that several tests share.
 */
#ifndef TESTS_API_STEPS_H
#define TESTS_API_STEPS_H

#include "pair.h"

/* The states of an id as a program can tell them apart (kernel state, CM sub-state). */
enum step {
	STEP_IDLE,
	STEP_BOUND,		/* to an address of a device */
	STEP_BOUND_ANY,		/* to the wildcard address */
	STEP_ADDR_QUERY,
	STEP_ADDR_RESOLVED,
	STEP_ROUTE_QUERY,
	STEP_ROUTE_RESOLVED,
	STEP_CONNECTING,	/* active, no answer yet: REQ_SENT */
	STEP_RESPONSE,		/* active, no QP, CONNECT_RESPONSE retrieved; not on iWARP */
	STEP_REJECTED,		/* active, REJECTED retrieved */
	STEP_ACTIVE,		/* active, established */
	STEP_LISTENING,		/* on an address of a device */
	STEP_REQUEST,		/* passive, CONNECT_REQUEST retrieved */
	STEP_ACCEPTED,		/* passive, accepted; RTU not here yet; not on iWARP */
	STEP_PASSIVE,		/* passive, established */
	STEP_DISCONNECTED,	/* passive, DISCONNECTED retrieved, not answered */
	NUM_STEPS
};

extern const char *const step_name[NUM_STEPS];

/* Does the transport have the state? */
bool step_exists(enum transport transport, enum step step);
/*
 * Open a pair (RDMA_PS_TCP) and bring one of its ids into the state; that id
 * is returned.  Ids have QPs from ESTABLISHED on, on iWARP from
 * ROUTE_RESOLVED on.
 */
struct rdma_cm_id *step_open(struct pair *pair, enum transport transport, enum step step);

/* The pair with the client's CONNECT_REQUEST acked, with QPs at both ends or only where needed. */
void step_request(struct pair *pair, enum transport transport, enum rdma_port_space ps, bool qps);

/* "10.0.0.1" or "fd00::1", and a port in host order. */
struct sockaddr_storage step_addr(const char *text, uint16_t port);
/* The same for a call's argument, in one of a few static buffers used in turn. */
struct sockaddr *step_sa(const char *text, uint16_t port);

/* IBV_QPS_* of the id's QP. */
enum ibv_qp_state step_qp_state(struct rdma_cm_id *id);

/* Start this program again, in a child process; comes back if that cannot be. */
void step_exec_self(const char *argument);

/* Exactly so much virtual time has passed since. */
#define assert_elapsed(since, ns) assert_int_equal(pair_now() - (since), (ns))

#define SECONDS(s) ((uint64_t)((s) * 1000.0 + 0.5) * 1000000u)

#endif
