/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/group.h - multicast groups with members on several hosts.  A datagram goes once to each host
 * that this process has spoken to or that POLYCM_OFI_HOSTS names; the process that gets it hands
 * it on to the members of its host, as a card with several QPs in a group does.
 *
 * Engine lock held for all.
 */
#ifndef OFI_GROUP_H
#define OFI_GROUP_H

#include "providers/soft/link/link.h"

/* The functions of sim_remote. */
void ofi_group_send(struct sim_port *from, const void *header, size_t header_len,
		    const struct iovec *payload, unsigned int parts, size_t payload_len);
void ofi_group_joined(void);

/* A datagram of another host, which this process has had: to the other members of this host. */
void ofi_group_hand_on(const struct sim_packet *packet);

#endif
