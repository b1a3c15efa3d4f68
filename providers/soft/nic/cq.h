/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/cq.h - completion channels and queues (channel.c, cq.c, cq_ex.c). */
#ifndef SIM_NIC_CQ_H
#define SIM_NIC_CQ_H

#include "objects.h"

void nic_channel_post(struct sim_channel *channel, struct sim_cq *cq);
void nic_channel_forget(struct sim_channel *channel, struct sim_cq *cq);

/*
 * The call, for the log, and what only that of an ibv_cq_ex has: a parent domain or NULL; do
 * entries remember when they came?
 */
struct nic_cq_more {
	const char *call;
	struct ibv_pd *parent;
	bool times;
};

/* size is the allocation's, at least that of the struct with an ibv_cq; 0 or an errno. */
int nic_cq_create(struct ibv_context *context, size_t size, int cqe, void *cq_context,
		  struct ibv_comp_channel *channel, int comp_vector, struct nic_cq_more more,
		  struct sim_cq **ret_cq);
/* May a new object of the context complete there?  0, or EINVAL with a log line.  Lock held. */
int nic_cq_check(const char *call, const char *name, struct ibv_context *context,
		 const struct ibv_cq *cq);
/* As sim_poll_cq().  ret_times, NULL or as many as completions, is for a CQ with times. */
int nic_cq_poll(struct sim_cq *cq, int num_entries, struct ibv_wc *wc, uint64_t *ret_times);
/* false: the CQ is overrun and the completion lost. */
bool nic_cq_push(struct sim_cq *cq, const struct ibv_wc *wc, bool solicited);
void nic_cursor_free(struct nic_cq_cursor *cursor);

#endif
