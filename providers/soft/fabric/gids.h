/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/gids.h - filling a port's GID table.  Engine lock held. */
#ifndef SIM_GIDS_H
#define SIM_GIDS_H

#include "fabric.h"

/* What kind of link a transport's devices are on. */
enum sim_wire { SIM_WIRE_IB, SIM_WIRE_ROCE, SIM_WIRE_IWARP };

static inline enum sim_wire sim_wire_of(const struct polycm_transport *rules)
{
	if (rules->transport_type == IBV_TRANSPORT_IWARP || rules->protocol == POLYCM_PROTO_MPA)
		return SIM_WIRE_IWARP;
	return rules->link_layer == IBV_LINK_LAYER_ETHERNET ? SIM_WIRE_ROCE : SIM_WIRE_IB;
}

/* The entries that a port has before any address; its MAC is set. */
void sim_gids_init(struct sim_port *port, uint32_t ifindex);
/* The entries of an address; false: the table is full, nothing was added. */
bool sim_gids_add_address(struct sim_port *port, const union sim_sockaddr *addr, uint32_t ifindex);

/* They go; the others keep their places in the table. */
void sim_gids_remove_address(struct sim_port *port, const union sim_sockaddr *addr);
/* The port has another MAC: so has the entry that is made of it. */
void sim_gids_renew_mac(struct sim_port *port, const uint8_t mac[6]);
/* Places in the table may be empty. */
bool sim_gid_is_set(const struct sim_gid *entry);

/* The GID of RoCE that an address has, whoever has the address. */
void sim_gid_of_address(const union sim_sockaddr *addr, union ibv_gid *ret_gid);

/* A locally administered MAC that depends on nothing but the name. */
void sim_mac_of_name(const char *name, uint8_t mac[6]);
/* The EUI-64 of a MAC, as in link-local addresses and GUIDs. */
void sim_eui64_of_mac(const uint8_t mac[6], uint8_t eui64[8]);

#endif
