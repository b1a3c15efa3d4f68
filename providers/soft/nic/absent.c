/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/absent.c - calls that a device may have, and simulated ones have not.  They are refused
 * as libibverbs refuses what a driver lacks, but with a line of log.  Calls on the objects that
 * these would make need no function.
 */
#include "config.h"

#include "context.h"
#include "refuse.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define REFUSE(call, owner, what) \
	nic_refuse(nic_device(owner), call, EOPNOTSUPP, "simulated devices have no " what)

#define NO_OBJECT(type, call, owner, what, parameters)               \
	static type *no_##call parameters                            \
	{                                                            \
		return nic_fail(NULL, REFUSE("ibv_" #call, owner, what)); \
	}

#define NO_RESULT(call, owner, what, parameters)          \
	static int no_##call parameters                   \
	{                                                 \
		return REFUSE("ibv_" #call, owner, what); \
	}

NO_OBJECT(struct ibv_mr, alloc_null_mr, pd->context, "null regions", (struct ibv_pd *pd))
NO_OBJECT(struct ibv_counters, create_counters, context, "counters of flows",
	  (struct ibv_context *context, struct ibv_counters_init_attr *attr))
NO_OBJECT(struct ibv_flow, create_flow, qp->context, "raw packets, and so no flow steering",
	  (struct ibv_qp *qp, struct ibv_flow_attr *attr))
NO_OBJECT(struct ibv_flow_action, create_flow_action_esp, context, "IPsec",
	  (struct ibv_context *context, struct ibv_flow_action_esp_attr *attr))
NO_OBJECT(struct ibv_wq, create_wq, context, "raw packets, and so no work queues",
	  (struct ibv_context *context, struct ibv_wq_init_attr *attr))
NO_OBJECT(struct ibv_rwq_ind_table, create_rwq_ind_table, context,
	  "raw packets, and so no indirection tables",
	  (struct ibv_context *context, struct ibv_rwq_ind_table_init_attr *attr))
NO_RESULT(modify_cq, cq->context, "moderation of completion events",
	  (struct ibv_cq *cq, struct ibv_modify_cq_attr *attr))
NO_RESULT(modify_qp_rate_limit, qp->context, "rate limits of QPs",
	  (struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr))

static int no_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad_wr)
{
	*bad_wr = wr;
	return REFUSE("ibv_post_srq_ops", srq->context, "tag matching");
}

#pragma GCC diagnostic pop

void nic_fill_absent(struct verbs_context *verbs)
{
	verbs->alloc_null_mr = no_alloc_null_mr;
	verbs->create_counters = no_create_counters;
	verbs->ibv_create_flow = no_create_flow;
	verbs->create_flow_action_esp = no_create_flow_action_esp;
	verbs->create_wq = no_create_wq;
	verbs->create_rwq_ind_table = no_create_rwq_ind_table;
	verbs->modify_cq = no_modify_cq;
	verbs->modify_qp_rate_limit = no_modify_qp_rate_limit;
	verbs->post_srq_ops = no_post_srq_ops;
}
