/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/pd.h - parent domains, and memory for queues, which they may allocate (pd.c). */
#ifndef SIM_NIC_PD_H
#define SIM_NIC_PD_H

#include "objects.h"

/* What later headers call IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC. */
#define NIC_PARENT_UNPROTECTED (1u << 2)

static inline bool nic_is_parent(struct ibv_pd *pd)
{
	return nic_pd(pd)->protection != nic_pd(pd)->object;
}

/* Has the program allocators for the queues of this PD's objects?  NULL: there is no PD. */
static inline bool nic_pd_allocates(struct ibv_pd *pd)
{
	return pd && nic_pd(pd)->alloc;
}

/*
 * What nic_remove() gets as the PD of an object with queues.  NULL if the program has allocators:
 * then the PD stays in use until they have freed the queues, and nic_pd_released() ends that.
 */
static inline struct ibv_pd *nic_pd_of_detached(struct ibv_pd *pd)
{
	return nic_pd_allocates(pd) ? NULL : pd;
}
void nic_pd_released(struct ibv_pd *pd);

/* What such an allocator is told. */
enum nic_queue_type { NIC_SEND_QUEUE = 1, NIC_RECEIVE_QUEUE, NIC_SHARED_QUEUE, NIC_COMPLETION_QUEUE };

/* 0 or ENOMEM.  Without the lock if nic_pd_allocates(). */
int nic_queue_alloc(struct nic_queue *queue, enum nic_queue_type type, struct ibv_pd *pd,
		    size_t size);
/*
 * With the lock only when a context is closed, or what malloc() gave: then the program keeps
 * what its allocator gave.
 */
void nic_queue_free(struct nic_queue *queue, enum nic_queue_type type);

#endif
