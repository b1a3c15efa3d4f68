/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/left.c - the objects that are open, in words, for reports of leaks. */
#include "config.h"

#include <stdio.h>

#include "context.h"
#include "qp.h"

struct teller {
	void (*fn)(void *arg, const char *kind, const void *handle, const char *text);
	void *arg;
};

#define TELL(to, context, kind, handle, format, ...) do {                                          \
	char text_[120];                                                                           \
	(void)snprintf(text_, sizeof(text_), format "of %s", ##__VA_ARGS__,                        \
		       (context)->device->vdev.device.name);                                       \
	(to)->fn((to)->arg, kind, handle, text_);                                                  \
} while (0)

#define OBJECT(at, type) nic_container(at, type, node)

static const char *qp_type_name(uint8_t type)
{
	switch ((enum ibv_qp_type)type) {
	case IBV_QPT_RC:
		return "RC";
	case IBV_QPT_UC:
		return "UC";
	case IBV_QPT_UD:
		return "UD";
	default:
		return "of another type";
	}
}

static void tell_queues(const struct sim_context *context, const struct teller *to)
{
	const struct nic_list *at;

	for (at = context->qps.next; at != &context->qps; at = at->next) {
		const struct sim_qp *qp = OBJECT(at, const struct sim_qp);

		TELL(to, context, "QP", &qp->pub.qp, "%s, %s, number %u, ", qp_type_name(qp->type),
		     nic_qp_state_name(qp->state), nic_qpn(qp));
	}
	for (at = context->cqs.next; at != &context->cqs; at = at->next) {
		const struct sim_cq *cq = OBJECT(at, const struct sim_cq);

		TELL(to, context, "CQ", &cq->pub.cq, "%d entries, ", cq->pub.cq.cqe);
	}
	for (at = context->srqs.next; at != &context->srqs; at = at->next)
		TELL(to, context, "SRQ", &OBJECT(at, const struct sim_srq)->pub, "");
	for (at = context->channels.next; at != &context->channels; at = at->next)
		TELL(to, context, "completion channel", &OBJECT(at, const struct sim_channel)->pub,
		     "");
}

static void tell_memory(const struct sim_context *context, const struct teller *to)
{
	const struct nic_list *at;

	for (at = context->mrs.next; at != &context->mrs; at = at->next) {
		const struct sim_mr *mr = OBJECT(at, const struct sim_mr);

		TELL(to, context, "MR", &mr->pub, "%zu bytes, ", mr->pub.length);
	}
	for (at = context->mws.next; at != &context->mws; at = at->next)
		TELL(to, context, "MW", &OBJECT(at, const struct sim_mw)->pub, "");
	for (at = context->ahs.next; at != &context->ahs; at = at->next)
		TELL(to, context, "AH", &OBJECT(at, const struct sim_ah)->pub, "");
	for (at = context->pds.next; at != &context->pds; at = at->next)
		TELL(to, context, "PD", &OBJECT(at, const struct sim_pd)->pub, "");
}

void sim_nic_each(void (*fn)(void *arg, const char *kind, const void *handle, const char *text),
		  void *arg)
{
	const struct teller to = { fn, arg };

	for (const struct nic_list *at = nic_contexts.next; at != &nic_contexts; at = at->next) {
		const struct sim_context *context = OBJECT(at, const struct sim_context);

		tell_queues(context, &to);
		tell_memory(context, &to);
		TELL(&to, context, "context", &context->verbs.context, "");
	}
}
