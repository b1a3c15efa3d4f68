/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/cq.h - completion channels and queues (channel.c, cq.c, cq_ex.c). */
#ifndef SIM_NIC_CQ_H
#define SIM_NIC_CQ_H

#include "objects.h"

struct ibv_comp_channel *sim_create_comp_channel(struct ibv_context *context);
int sim_destroy_comp_channel(struct ibv_comp_channel *channel);
void nic_channel_free(struct sim_channel *channel);
void nic_channel_post(struct sim_channel *channel, struct sim_cq *cq);
void nic_channel_forget(struct sim_channel *channel, struct sim_cq *cq);
int sim_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
void sim_ack_cq_events(struct ibv_cq *cq, unsigned int nevents);

struct ibv_cq *sim_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector);
/* size is the allocation's, at least that of the struct with an ibv_cq; 0 or an errno. */
int nic_cq_create(struct ibv_context *context, size_t size, int cqe, void *cq_context,
		  struct ibv_comp_channel *channel, int comp_vector, struct sim_cq **ret_cq);
int sim_resize_cq(struct ibv_cq *cq, int cqe);
int sim_destroy_cq(struct ibv_cq *cq);
void nic_cq_free(struct sim_cq *cq);
int sim_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int sim_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* false: the CQ is overrun and the completion lost. */
bool nic_cq_push(struct sim_cq *cq, const struct ibv_wc *wc, bool solicited);
struct ibv_cq_ex *sim_create_cq_ex(struct ibv_context *context,
				   struct ibv_cq_init_attr_ex *attr);
void nic_cursor_free(struct nic_cq_cursor *cursor);

#endif
