/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/qp.h - queue pairs: their life, states and numbers (qp*.c). */
#ifndef SIM_NIC_QP_H
#define SIM_NIC_QP_H

#include "objects.h"

#define NIC_QP_SIZE (offsetof(struct sim_qp, pub) + sizeof(struct ibv_qp))

/* Sizes as for nic_cq_create().  XRC_RECV has an XRC domain, the others a PD. */
int nic_qp_create(struct ibv_context *context, const char *call, struct ibv_pd *pd,
		  struct ibv_xrcd *xrcd, size_t size, struct ibv_qp_init_attr *attr,
		  struct sim_qp **ret_qp);
/* The program has a handle of the QP, which is the QP itself or one of ibv_open_qp().  Lock held. */
void nic_qp_add_handle(struct sim_qp *qp, struct sim_qp *handle);
void nic_builder_free(struct nic_builder *builder);

/* --- xrc.c --- */

/* A QP or an SRQ that belongs to an XRC domain from now on, or does no longer. */
void nic_xrc_enter_qp(struct sim_qp *qp, struct sim_xrcd *xrcd);
void nic_xrc_leave_qp(struct sim_qp *qp);
void nic_xrc_enter_srq(struct sim_srq *srq, struct sim_xrcd *xrcd);
void nic_xrc_leave_srq(struct sim_srq *srq);
/* The SRQ of that number in the QP's domain, or NULL. */
struct sim_srq *nic_xrc_find(const struct sim_qp *qp, uint32_t number);
/* What comes now is for that SRQ; false: the QP's domain has none of that number. */
bool nic_xrc_select(struct sim_qp *qp, uint32_t number);

/* --- qp.c --- */

/* What programs see in struct ibv_qp, as libibverbs sets it: what they asked for or were told last. */
static inline void nic_show_state(struct ibv_qp *ibqp, const struct ibv_qp_attr *attr, int mask)
{
	/* Other threads of the program, and the core, read it. */
	if (mask & IBV_QP_STATE)
		__atomic_store_n(&ibqp->state, attr->qp_state, __ATOMIC_RELAXED);
}

/* --- ece.c --- */

void nic_ece_init(struct sim_qp *qp);
/* The QP was modified: what was set counts now. */
void nic_ece_apply(struct sim_qp *qp);

/* --- qpn.c --- */

int nic_qpn_take(struct sim_qp *qp, uint32_t *ret_qpn);
void nic_qpn_drop(uint32_t qpn);
struct sim_qp *nic_qp_by_number(uint32_t qpn);
void nic_qpn_stop(void);

/* --- qp_state.c --- */

/* Forget all requests without completing them. */
void nic_qp_reset(struct sim_qp *qp);
/* Flush everything; by_program is for the owner of an iWARP stream. */
void nic_qp_error(struct sim_qp *qp, bool by_program);
/* The same for a reason that the program has not caused: with an event. */
void nic_qp_fatal(struct sim_qp *qp, enum ibv_event_type type);
/* The stream ends: call the owner's callback, once. */
void nic_stream_closed(struct sim_qp *qp, bool by_program);
bool nic_stream_connecting(const struct sim_qp *qp);
void nic_qp_set_state(struct sim_qp *qp, uint8_t state);
const char *nic_qp_state_name(uint8_t state);
struct sim_timer_text;
void nic_describe_timer(const struct sim_timer *timer, struct sim_timer_text *ret_text);

#endif
