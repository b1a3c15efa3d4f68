/* SPDX-License-Identifier: BSD-2-Clause */
/* link/count.h - counts packets for sysfs, as they would be on a wire.  Engine lock held. */
#ifndef SIM_LINK_COUNT_H
#define SIM_LINK_COUNT_H

#include "link_internal.h"

/* Datagrams to groups do not count here: one packet of a link may be several here. */
void sim_link_count_sent(const struct sim_frame *frame);
void sim_link_count_received(const struct sim_packet *packet);
/* A request of so many bytes that was carried out without packets, and its answer. */
void sim_link_count_direct(const struct sim_port *from, const struct sim_port *to, uint64_t bytes,
			   bool read);
/* One datagram to a group, however many members it has. */
void sim_link_count_to_group(const struct sim_port *from, uint32_t len);

#endif
