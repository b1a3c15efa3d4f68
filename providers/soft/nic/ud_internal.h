/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/ud_internal.h - of ud.c and mcast.c.  Engine lock held. */
#ifndef SIM_NIC_UD_INTERNAL_H
#define SIM_NIC_UD_INTERNAL_H

#include "providers/soft/link/link.h"
#include "providers/soft/wire/ud.h"
#include "objects.h"

/* --- ud.c --- */

/* Hand a datagram to a QP: it is for it, and not longer than it says. */
void ud_deliver(struct sim_qp *qp, const struct sim_packet *packet, const struct ud_header *h);

/* --- mcast.c --- */

/* To every QP of the receiving port in its group. */
void nic_group_deliver(const struct sim_packet *packet, const struct ud_header *h);
void nic_groups_detach_all(struct sim_qp *qp);

#endif
