/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/cma_internal.h - shared by the cma*.c files.  Engine lock held for all.
 */
#ifndef SIM_CMA_INTERNAL_H
#define SIM_CMA_INTERNAL_H

#include "providers/soft/faults/fault.h"
#include "providers/soft/wire/address.h"
#include "cma.h"

#define CMA_SA_QUERY_NS SIM_US(50)	/* a query to the subnet administrator and its answer */
#define CMA_LOCAL_NS SIM_US(1)		/* a work queue's hop: the answer is known already */

/* A fresh id in state IDLE, at the end of the list of all ids. */
void cma_init(struct sim_id *id, struct polycm_id *core_id, enum rdma_port_space ps,
	      enum ibv_qp_type qp_type);
/* Out of the list, with what hangs on the id. */
void cma_drop(struct sim_id *id);

/* Does the id have what the kernel calls its cm_id: was it connected or is it a request? */
bool cma_has_connection(const struct sim_id *id);
/* The id is a copy of the parent's, from before a fork(): only the parent acts on it. */
bool cma_is_copy(const struct sim_id *id);
/* The program destroys the id: nothing happens to it afterwards.  A second call does nothing. */
void cma_close(struct sim_id *id);

/* The first id of the process, in order of creation; ->next leads to all others. */
struct sim_id *cma_first_id(void);
/* Another process of the shared fabric died (cma_death.c). */
void cma_process_died(unsigned int slot);
/* Check now whether the process at the other end has died.  Not in handlers. */
void cma_check_peer(const struct sim_id *id);

/*
 * An address of the interface that the id stays on since a refused bind or a lookup, if it
 * is one of that node; or NULL.  Kernel: rdma_dev_addr.bound_dev_if.
 */
struct sim_address *cma_interface(const struct sim_id *id, const struct sim_node *node);
/* The id stays on the interface of that address of its node. */
void cma_set_interface(struct sim_id *id, const struct sim_address *address);
/* Is the destination an own address that needs no neighbour to get to? */
bool cma_keeps(const struct sim_id *id);

/* The id is on that port, and has the engine of its transport. */
void cma_set_port(struct sim_id *id, struct sim_port *port);

/* RDMA_PS_IPOIB needs IP over InfiniBand.  NULL: an interface without an RDMA device. */
int cma_check_port_space(const struct sim_id *id, const struct sim_port *port);
/* dst: where the program resolves to, or NULL. */
int cma_bind(struct sim_id *id, const struct sockaddr *addr, const struct sockaddr *dst);
/* The GIDs of an id with addresses and a port. */
void cma_set_gids(struct sim_id *id);
void cma_unbind(struct sim_id *id);
/* The address as the port table has it. */
union sim_sockaddr cma_bound_address(const struct sim_id *id);
int cma_resolve_addr(struct sim_id *id, const struct sockaddr *src, const struct sockaddr *dst,
		     int timeout_ms);

int cma_resolve_route(struct sim_id *id, int timeout_ms);
void cma_inspect(const struct sim_id *id, const struct polycm_report *to);
void cma_query(const struct sim_id *id, struct polycm_route_info *ret_info);

/* Ways (cma_way.c).  The source towards the id's destination, as the routing table gives it. */
int cma_route_source(const struct sim_id *id, struct sim_address **ret_address);
/*
 * The source, the port by which packets from there leave (NULL: no device), and whether a
 * route leads that way.
 */
int cma_way_out(const struct sim_id *id, struct sim_address **ret_source,
		struct sim_port **ret_port, bool *ret_leads);
/* Neighbours (cma_neighbour.c): id->timer fires to ask again, or to report how it ended. */
void cma_ask_neighbour(struct sim_id *id, const struct sim_port *port, uint64_t timeout);
bool cma_ask_again(struct sim_id *id);
void cma_learn_neighbour(struct sim_id *id);

/* What id->timer does. */
void cma_addr_done(struct sim_id *id);
void cma_route_done(struct sim_id *id);

int cma_listen(struct sim_id *id);
void cma_unlisten(struct sim_id *id);

int cma_set_option(struct sim_id *id, int level, int optname, const void *optval, size_t optlen);

/* Ids get events of changes to devices (cma_world.c). */
void cma_world_start(void);

void cma_multicast_start(void);
/* The port is down. */
void cma_lose_groups_of(struct sim_port *port);
int cma_join_multicast(struct sim_id *id, const struct polycm_multicast *mc);
int cma_leave_multicast(struct sim_id *id, void *group);
void cma_leave_all(struct sim_id *id);

/* --- Addresses. --- */

/* AF_IB (cma_ib.c).  The port space of a bound id, from src: -EPROTONOSUPPORT. */
int cma_ib_port_space(struct sim_id *id);
int cma_ib_port_of_source(const struct sim_id *id, const struct sockaddr_ib *sib,
			  struct sim_port **ret_port);
/* Source and port of an id with a destination: -ENODEV. */
int cma_ib_resolve(struct sim_id *id);

static inline bool cma_is_ip(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET || addr->sa_family == AF_INET6;
}

static inline bool cma_is_address(const struct sockaddr *addr)
{
	return cma_is_ip(addr) || addr->sa_family == AF_IB;
}

/* Neither names a device. */
static inline bool cma_is_any(const struct sockaddr *addr)
{
	return sim_addr_is_zero(addr) || sim_addr_is_loopback(addr);
}

/* The error of a fault rule for this call, or 0.  addr: what the id binds to, or NULL. */
static inline int cma_fault(const struct sim_id *id, enum sim_what call,
			    const struct sockaddr *addr)
{
	const struct sim_node *node = id ? id->node : NULL;

	if (__builtin_expect(!sim_faults_on, 1))
		return 0;
	if (!node && addr && cma_is_ip(addr))
		node = sim_node_of_address(addr);
	return sim_fault_ask_call(node ? node : sim_current_node(), call);
}

#endif
