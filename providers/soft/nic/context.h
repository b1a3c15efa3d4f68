/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/context.h - contexts, their events and the descriptors for them (context.c, async.c, notify.c). */
#ifndef SIM_NIC_CONTEXT_H
#define SIM_NIC_CONTEXT_H

#include "turn_tells.h"
#include "objects.h"

extern struct nic_list nic_contexts;

/* absent.c: put functions that refuse into the slots of what simulated devices have not. */
void nic_fill_absent(struct verbs_context *verbs);

void nic_async_cq(struct sim_cq *cq, enum ibv_event_type type);
void nic_async_qp(struct sim_qp *qp, enum ibv_event_type type);
void nic_async_srq(struct sim_srq *srq, enum ibv_event_type type);
/* Drop the unread events of an object; NULL: of all. */
void nic_async_forget(struct sim_context *context, const void *element);

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

/* --- notify.c: descriptors that are readable while something is queued --- */

/* *ret_fd is the program's descriptor; the program may change it.  0 or an errno. */
int nic_notify_open(struct nic_notify *notify, int *ret_fd);
void nic_notify_close(struct nic_notify *notify);
/* Are both descriptors of the same eventfd? */
bool nic_notify_same(int fd, int other);
void nic_notify_set(struct nic_notify *notify, bool readable);
/*
 * The call that gets an event: waits until take(), with the lock held, returns
 * true.  0, or -1 and errno: EAGAIN (the descriptor is non-blocking), EINTR,
 * EDEADLK (with a log line).  Without the lock.
 */
int nic_notify_get(struct nic_notify *notify, const char *call, enum turn_purpose purpose,
		   bool (*take)(struct nic_notify *notify, void *ret_event), void *ret_event);

#endif
