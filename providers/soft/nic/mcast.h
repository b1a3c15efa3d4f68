/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/mcast.h - multicast groups of queue pairs (mcast.c). */
#ifndef SIM_NIC_MCAST_H
#define SIM_NIC_MCAST_H

#include "objects.h"

int sim_attach_mcast(struct ibv_qp *qp, const union ibv_gid *mgid, uint16_t lid);
int sim_detach_mcast(struct ibv_qp *qp, const union ibv_gid *mgid, uint16_t lid);
void nic_groups_detach_all(struct sim_qp *qp);

#endif
