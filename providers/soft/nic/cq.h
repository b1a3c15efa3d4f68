/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/cq.h - completion channels and queues (channel.c, cq.c, cq_ex.c). */
#ifndef SIM_NIC_CQ_H
#define SIM_NIC_CQ_H

#include "objects.h"

void nic_channel_post(struct sim_channel *channel, struct sim_cq *cq);
void nic_channel_forget(struct sim_channel *channel, struct sim_cq *cq);

/* size is the allocation's, at least that of the struct with an ibv_cq; 0 or an errno. */
int nic_cq_create(struct ibv_context *context, size_t size, int cqe, void *cq_context,
		  struct ibv_comp_channel *channel, int comp_vector, struct sim_cq **ret_cq);
/* false: the CQ is overrun and the completion lost. */
bool nic_cq_push(struct sim_cq *cq, const struct ibv_wc *wc, bool solicited);
void nic_cursor_free(struct nic_cq_cursor *cursor);

#endif
