/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/cma_internal.h - shared by the cma*.c files.  Engine lock held for all.
 */
#ifndef SIM_CMA_INTERNAL_H
#define SIM_CMA_INTERNAL_H

#include "../address.h"
#include "cma.h"

/* A fresh id in state IDLE, at the end of the list of all ids. */
void cma_init(struct sim_id *id, struct polycm_id *core_id, enum rdma_port_space ps,
	      enum ibv_qp_type qp_type);
/* Out of the list, with what hangs on the id. */
void cma_drop(struct sim_id *id);

/* Settle on a port: the engine follows from its transport. */
void cma_set_port(struct sim_id *id, struct sim_port *port);

int cma_bind(struct sim_id *id, const struct sockaddr *addr);
void cma_unbind(struct sim_id *id);
/* The address as the port table has it. */
union sim_sockaddr cma_bound_address(const struct sim_id *id);
int cma_resolve_addr(struct sim_id *id, const struct sockaddr *src, const struct sockaddr *dst,
		     int timeout_ms);

int cma_resolve_route(struct sim_id *id, int timeout_ms);
void cma_query(const struct sim_id *id, struct polycm_route_info *ret_info);

/* What id->timer does. */
void cma_addr_done(struct sim_id *id);
void cma_route_done(struct sim_id *id);

int cma_listen(struct sim_id *id, int backlog);
void cma_unlisten(struct sim_id *id);

int cma_set_option(struct sim_id *id, int level, int optname, const void *optval, size_t optlen);

int cma_join_multicast(struct sim_id *id, const struct polycm_multicast *mc);
int cma_leave_multicast(struct sim_id *id, void *group);
void cma_leave_all(struct sim_id *id);

/* --- Addresses of the IP families. --- */

static inline bool cma_is_ip(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET || addr->sa_family == AF_INET6;
}

/* Neither names a device. */
static inline bool cma_is_any(const struct sockaddr *addr)
{
	return sim_addr_is_zero(addr) || sim_addr_is_loopback(addr);
}

#endif
