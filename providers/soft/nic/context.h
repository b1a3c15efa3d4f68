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
/* How many events of an object the program has read, and how many of them it has acknowledged. */
struct nic_acks {
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;
	const uint32_t *completed, *reported;
	const char *what;	/* the object, for log lines */
	uint32_t number;
};
/* In virtual time, and no other thread can acknowledge: with a log line at error level. */
bool nic_acks_never_come(const struct nic_acks *acks);
/* Without the lock: wait until the program has acknowledged all. */
void nic_await_acks(const struct nic_acks *acks);

struct ibv_context *sim_open_device(struct ibv_device *device);
int sim_close_device(struct ibv_context *context);

#endif
