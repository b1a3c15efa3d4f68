/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/direct.h - direct access (link/shm/access.h): what this process publishes of its QPs and
 * regions (direct.c), and requests that this process carries out in the memory of another
 * one (direct_request.c).
 *
 * A responder offers direct access in its answers: the header says where its QP is in the
 * table.  Until then, and whenever something speaks against it, requests are packets.
 * Engine lock held.
 */
#ifndef SIM_NIC_DIRECT_H
#define SIM_NIC_DIRECT_H

#include "objects.h"

/* --- The owner of the memory. --- */

/* A region exists, as it is now. */
void nic_direct_add_mr(struct sim_mr *mr);
/* It ends, or has other memory: returns when no other process is in its memory. */
void nic_direct_drop_mr(struct sim_mr *mr);
/* The same while its rights change. */
void nic_direct_hide_mr(const struct sim_mr *mr);
/*
 * A call of the program, on its thread: some region may still be moved to where other
 * processes can map it.
 */
extern bool nic_direct_pending;
void nic_direct_share(void) __attribute__((cold));
/*
 * Answering a request of the QP's peer: the number of the QP's entry, from 1.  0: only packets
 * reach it.
 */
uint32_t nic_direct_offer(struct sim_qp *qp);
/* The QP ends or changes: returns when its peer does nothing through it. */
void nic_direct_withdraw(struct sim_qp *qp);
void nic_direct_start(void);
void nic_direct_stop(void);

/* --- The initiator. --- */

/* The peer's answer offers this. */
static inline void nic_direct_take_offer(struct sim_qp *qp, uint32_t entry)
{
	qp->peer_entry = entry;
	qp->is_direct = true;
}

/* Is it of a kind that the initiator can carry out? */
bool nic_direct_may(const struct nic_swqe *wqe);

enum nic_direct {
	NIC_DIRECT_DONE,
	NIC_DIRECT_NOT_NOW,	/* the peer's memory is closed */
	NIC_DIRECT_REFUSED,	/* this key, at least, is only for packets */
};
/*
 * Carry out the oldest request, of which nothing was sent.  Of a write with immediate data only
 * the data: who polls the memory need not wait until the responder has a processor.  If it is
 * not done, the memory of a write may be changed all the same.
 */
enum nic_direct nic_direct_execute(const struct sim_qp *qp, struct nic_swqe *wqe);
extern uint64_t nic_direct_carried;	/* so many were done */

#endif
