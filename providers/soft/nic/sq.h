/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/sq.h - send queues, and what sends from them (wr_send.c, rc_*.c, ud.c). */
#ifndef SIM_NIC_SQ_H
#define SIM_NIC_SQ_H

#include "objects.h"

/* --- wr_check.c --- */

/* What a send request of an opcode is. */
struct nic_opcode {
	uint16_t qp_types;		/* bits 1 << enum ibv_qp_type: these have it, */
	uint32_t services;		/* if the device has these */
	uint8_t wc_opcode;		/* enum ibv_wc_opcode */
	uint8_t rc_op, rc_flags;	/* on the wire */
};
extern const struct nic_opcode nic_opcodes[];
bool nic_has_opcode(const struct sim_device *device, enum ibv_qp_type type, unsigned int opcode);

/* Who posts: the call, for the log; built by wr_*() calls? */
struct nic_post {
	struct sim_qp *qp;
	const char *call;
	bool built;
};
/* 0 and the bytes of the request's data, or an errno with a line of log. */
int nic_check_send(const struct nic_post *post, const struct ibv_send_wr *wr, uint64_t *ret_length);

/* --- wr_send.c --- */

/* ibv_post_send(); `call' is what the program has called, for the log. */
int nic_post_send(struct sim_qp *qp, const char *call, struct ibv_send_wr *wr,
		  struct ibv_send_wr **bad_wr);
/*
 * All of them or none; lock held, but not all the time: afterwards the QP may be
 * gone, whatever is returned.  0 or an errno.
 */
int nic_post_all(struct sim_qp *qp, const char *call, struct ibv_send_wr *wr);
/*
 * Lock held, but not meanwhile: before a stream ends, the peer has what was
 * posted, as after siw's posts.  EINVAL: another thread has destroyed the QP.
 */
int nic_hand_over(struct sim_qp *qp, const char *call);
static inline size_t nic_swqe_size(const struct sim_qp *qp)
{
	size_t sges = qp->attr.cap.max_send_sge * sizeof(struct ibv_sge);
	size_t tail = sges > qp->attr.cap.max_inline_data ? sges : qp->attr.cap.max_inline_data;

	return sizeof(struct nic_swqe) + (tail + 7) / 8 * 8;
}
static inline size_t nic_sq_bytes(const struct sim_qp *qp)
{
	return ((size_t)qp->sq_mask + 1) * nic_swqe_size(qp);
}
static inline struct nic_swqe *nic_sq_at(const struct sim_qp *qp, uint32_t index)
{
	return (struct nic_swqe *)(void *)((char *)qp->sq.at +
					  (index & qp->sq_mask) * nic_swqe_size(qp));
}
static inline bool nic_is_read(const struct nic_swqe *wqe)
{
	return wqe->opcode == IBV_WR_RDMA_READ || wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}
/* The local memory of a request: length bytes at offset. */
int nic_swqe_resolve(const struct sim_qp *qp, struct nic_swqe *wqe, uint32_t offset,
		     uint32_t length, struct iovec iov[static NIC_MAX_SGE],
		     unsigned int *ret_parts);
/* The oldest request is done. */
void nic_sq_complete(struct sim_qp *qp, enum ibv_wc_status status);
void nic_sq_flush(struct sim_qp *qp);
/* In SQD, no request is under way any more: with an event, if the program asked for it. */
void nic_sq_drained(struct sim_qp *qp);

/* --- rc_*.c, ud.c --- */

/* Send what may be sent: RC; the unreliable types. */
void rc_transmit(struct sim_qp *qp);
void ud_transmit(struct sim_qp *qp);
void rc_timer(struct sim_timer *timer);
static inline void nic_transmit(struct sim_qp *qp)
{
	if (qp->type == IBV_QPT_UC || qp->type == IBV_QPT_UD)
		ud_transmit(qp);
	else
		rc_transmit(qp);
}
/* After sending or receiving: the QP fails if a full CQ has lost a completion of it. */
void nic_check_cqe_lost(struct sim_qp *qp);
/* Copy len bytes from one list of parts to another. */
void nic_copy(const struct iovec *to, unsigned int to_parts, const struct iovec *from,
	      unsigned int from_parts, size_t len);

#endif
