/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/pd.h - protection domains and address handles (pd.c, ah.c). */
#ifndef SIM_NIC_PD_H
#define SIM_NIC_PD_H

#include "objects.h"

struct ibv_pd *sim_alloc_pd(struct ibv_context *context);
int sim_dealloc_pd(struct ibv_pd *pd);
void nic_pd_free(struct sim_pd *pd);
struct ibv_ah *sim_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int sim_destroy_ah(struct ibv_ah *ah);
void nic_ah_free(struct sim_ah *ah);

#endif
