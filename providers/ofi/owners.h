/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/owners.h - which process of a host has which numbers, as far as it was said: QP numbers, in
 * blocks, and ports on which somebody listened.  Engine lock held for all.
 */
#ifndef OFI_OWNERS_H
#define OFI_OWNERS_H

#include "peer.h"
#include "providers/soft/fabric/numbers.h"

static inline uint32_t ofi_block_of(uint32_t qpn)
{
	return (qpn & 0xffffffu) / SIM_QPN_BLOCK;
}

/* NULL: not known.  Without memory nothing is kept, and it is asked for again. */
struct ofi_peer *ofi_owner(const struct sim_remote_host *host, uint32_t qpn);
void ofi_owner_set(struct sim_remote_host *host, uint32_t qpn, struct ofi_peer *peer);
/* number: see service.h. */
void ofi_service_set(struct sim_remote_host *host, uint32_t number, struct ofi_peer *peer);

/* The peer has none any more; NULL: no process has. */
void ofi_owners_forget(struct sim_remote_host *host, const struct ofi_peer *peer);

/* The functions of sim_remote. */
unsigned int ofi_slot_of_conn(struct sim_node *node, unsigned int slot);
unsigned int ofi_slot_of_qpn(struct sim_node *node, uint32_t qpn);
unsigned int ofi_slot_of_service(struct sim_node *node, enum rdma_port_space ps,
				 const struct sockaddr *addr);

#endif
