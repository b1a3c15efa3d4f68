/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/qp.h - queue pairs: their life, states and numbers (qp*.c). */
#ifndef SIM_NIC_QP_H
#define SIM_NIC_QP_H

#include "objects.h"

/* Sizes as for nic_cq_create(). */
int nic_qp_create(struct ibv_pd *pd, size_t size, struct ibv_qp_init_attr *attr,
		  struct sim_qp **ret_qp);
void nic_builder_free(struct nic_builder *builder);

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
