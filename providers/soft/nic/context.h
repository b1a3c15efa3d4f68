/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/context.h - contexts and their asynchronous events (context.c, async.c). */
#ifndef SIM_NIC_CONTEXT_H
#define SIM_NIC_CONTEXT_H

#include "objects.h"

extern struct nic_list nic_contexts;

void nic_async_cq(struct sim_cq *cq, enum ibv_event_type type);
void nic_async_qp(struct sim_qp *qp, enum ibv_event_type type);
void nic_async_srq(struct sim_srq *srq, enum ibv_event_type type);
/* Forget the events about an object that nobody has read. */
void nic_async_forget(struct sim_context *context, const void *element);
int sim_get_async_event(struct ibv_context *context, struct ibv_async_event *event);
void sim_ack_async_event(struct ibv_async_event *event);
/* In virtual time, and nobody is there who could acknowledge: told at error level. */
bool nic_acks_never_come(const uint32_t *completed, uint32_t reported, const char *what,
			 uint32_t number);
/* Without the lock: wait until so many events were acknowledged. */
void nic_await_acks(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
		    uint32_t reported, const char *what, uint32_t number);

struct ibv_context *sim_open_device(struct ibv_device *device);
int sim_close_device(struct ibv_context *context);

#endif
