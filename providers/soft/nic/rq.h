/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/rq.h - receive queues, shared ones too (srq.c, wr_recv.c). */
#ifndef SIM_NIC_RQ_H
#define SIM_NIC_RQ_H

#include "objects.h"

/* Copy the oldest request out, with what follows from that; false: there is none. */
bool nic_srq_take(struct sim_srq *srq, struct nic_rwqe *ret_wqe);

static inline size_t nic_rwqe_size(uint32_t max_sge)
{
	return sizeof(struct nic_rwqe) + max_sge * sizeof(struct ibv_sge);
}
static inline size_t nic_rq_bytes(const struct nic_rq *rq)
{
	return ((size_t)rq->mask + 1) * nic_rwqe_size(rq->max_sge);
}
static inline struct nic_rwqe *nic_rq_at(const struct nic_rq *rq, uint32_t index)
{
	return (struct nic_rwqe *)(void *)((char *)rq->ring.at +
					  (index & rq->mask) * nic_rwqe_size(rq->max_sge));
}
/* How many bytes it takes. */
static inline uint64_t nic_rwqe_room(const struct nic_rwqe *wqe)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < wqe->num_sge; i++)
		total += wqe->sge[i].length;
	return total;
}
/* The receive request that the message coming in now goes to; NULL: none is posted. */
struct nic_rwqe *nic_rq_hold(struct sim_qp *qp);
/* It is done: complete it. */
void nic_rq_complete(struct sim_qp *qp, struct ibv_wc *wc, bool solicited);
void nic_rq_flush(struct sim_qp *qp);

#endif
