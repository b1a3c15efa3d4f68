/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/objects.c - the objects of contexts: how many of each kind a device has
 * and may have, and which are open, for reports of leaks.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "providers/soft/fabric/gids.h"
#include "providers/soft/faults/fault.h"
#include "context.h"
#include "device.h"
#include "qp.h"
#include "refuse.h"

#define KIND(type, ...) { .handle = (ptrdiff_t)offsetof(type, pub) - (ptrdiff_t)offsetof(type, node), \
			  __VA_ARGS__ }
#define LIMIT(member) .limit = offsetof(struct ibv_device_attr, member)

static const struct kind {
	ptrdiff_t handle;	/* the public struct, from the node */
	const char *name;
	enum sim_what fault;	/* the call, for fault rules; SIM_WHATS: no rule names it */
	size_t limit;		/* an int in struct ibv_device_attr */
} kinds[NIC_KINDS] = {
	[NIC_QP] = KIND(struct sim_qp, "QP", SIM_CALL_CREATE_QP, LIMIT(max_qp)),
	[NIC_CQ] = KIND(struct sim_cq, "CQ", SIM_CALL_CREATE_CQ, LIMIT(max_cq)),
	[NIC_SRQ] = KIND(struct sim_srq, "SRQ", SIM_CALL_CREATE_SRQ, LIMIT(max_srq)),
	[NIC_CHANNEL] = KIND(struct sim_channel, "completion channel"),
	[NIC_MR] = KIND(struct sim_mr, "MR", SIM_CALL_REG_MR, LIMIT(max_mr)),
	[NIC_MW] = KIND(struct sim_mw, "MW", SIM_WHATS, LIMIT(max_mw)),
	[NIC_AH] = KIND(struct sim_ah, "AH", SIM_WHATS, LIMIT(max_ah)),
	[NIC_XRCD] = KIND(struct sim_xrcd, "XRC domain"),
	[NIC_TD] = KIND(struct sim_td, "TD"),
	[NIC_DM] = KIND(struct sim_dm, "DM"),
	[NIC_PD] = KIND(struct sim_pd, "PD", SIM_CALL_ALLOC_PD, LIMIT(max_pd)),
};

void *nic_alloc(const struct sim_device *device, const char *call, size_t size)
{
	return calloc(1, size) ?: nic_fail(NULL, nic_no_memory(device, call));
}

void *nic_fail(void *object, int err)
{
	free(object);
	errno = err;
	return NULL;
}

void nic_use_pd(struct ibv_pd *ibpd, unsigned int by)
{
	struct sim_pd *pd = ibpd ? nic_pd(ibpd) : NULL;

	if (!pd)
		return;
	pd->users += by;
	if (pd->object != pd)
		pd->object->users += by;
}

int nic_check_pd(const char *call, struct ibv_pd *pd)
{
	return nic_pd(pd)->object->handles.destroyed ?
	       nic_refuse(nic_device(pd->context), call, EINVAL,
			  "its PD was destroyed through another handle") : 0;
}

void nic_enter(struct ibv_context *context, enum nic_kind kind, struct nic_list *node,
	       struct ibv_pd *pd)
{
	nic_list_add(&nic_context(context)->objects[kind], node);
	nic_device(context)->used[kind]++;
	nic_use_pd(pd, 1);
}

int nic_add(struct ibv_context *context, const char *call, enum nic_kind kind,
	    struct nic_list *node, struct ibv_pd *pd)
{
	const struct sim_device *device = nic_device(context);
	const struct kind *k = &kinds[kind];
	int r = 0, max = *(const int *)(const void *)((const char *)&device->attr + k->limit);
	bool rxe;

	if (device->removed)
		return nic_refuse(device, call, EIO, "the device was removed");
	if (pd)
		r = nic_check_pd(call, pd);
	if (r)
		return r;
	r = sim_fault_call(device->node, k->fault);
	if (r < 0)
		return nic_refuse(device, call, -r, "a fault rule says so");
	rxe = sim_wire_of(device->rules) == SIM_WIRE_ROCE &&
	      device->attr.vendor_id == NIC_SOFTWARE_VENDOR;
	/*
	 * siw and adapters have ENOMEM for it.  0: the device does not say (max_ah, max_mw); what
	 * it lacks altogether was refused before.
	 */
	if (max && device->used[kind] >= (unsigned int)max)
		return nic_refuse(device, call, rxe ? EINVAL : ENOMEM,
				  "the device has no more than %d of them", max);
	nic_enter(context, kind, node, pd);
	return 0;
}

void nic_remove(struct ibv_context *context, enum nic_kind kind, struct nic_list *node,
		struct ibv_pd *pd)
{
	nic_list_del(node);
	nic_device(context)->used[kind]--;
	nic_use_pd(pd, -1u);
}

bool nic_handle_dropped(struct nic_handles *handles)
{
	return !--handles->count && handles->destroyed;
}

void nic_show_objects(const struct sim_device *device, const struct polycm_report *to)
{
	for (unsigned int kind = 0; kind < NIC_KINDS; kind++)
		to->put(to, kinds[kind].name, "%u", device->used[kind]);
}

void sim_nic_counts(struct polycm_sim_counts *ret_counts)
{
	*ret_counts = (struct polycm_sim_counts) { 0 };
	for (const struct sim_node *node = sim_first_node(); node; node = node->next) {
		for (const struct sim_device *device = node->devices; device; device = device->next) {
			ret_counts->contexts += device->contexts;
			ret_counts->pds += device->used[NIC_PD];
			ret_counts->mrs += device->used[NIC_MR];
			ret_counts->mws += device->used[NIC_MW];
			ret_counts->comp_channels += device->used[NIC_CHANNEL];
			ret_counts->cqs += device->used[NIC_CQ];
			ret_counts->srqs += device->used[NIC_SRQ];
			ret_counts->qps += device->used[NIC_QP];
			ret_counts->ahs += device->used[NIC_AH];
			ret_counts->tds += device->used[NIC_TD];
			ret_counts->dms += device->used[NIC_DM];
			ret_counts->xrcds += device->used[NIC_XRCD];
		}
	}
}

static const char *qp_type_name(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return "RC";
	case IBV_QPT_UC:
		return "UC";
	case IBV_QPT_XRC_SEND:
		return "XRC_SEND";
	case IBV_QPT_XRC_RECV:
		return "XRC_RECV";
	default:
		return "UD";
	}
}

/* What is particular to the object, and a comma; or nothing. */
static void describe(enum nic_kind kind, void *handle, char *text, size_t size)
{
	struct ibv_qp *qp = handle;

	text[0] = '\0';
	if (kind == NIC_QP)
		(void)snprintf(text, size, "%s, %s, number %u, ", qp_type_name(qp->qp_type),
			       nic_qp_state_name(nic_real_qp(qp)->state), qp->qp_num);
	else if (kind == NIC_CQ)
		(void)snprintf(text, size, "%d entries, ", ((struct ibv_cq *)handle)->cqe);
	else if (kind == NIC_MR)
		(void)snprintf(text, size, "%zu bytes, ", ((struct ibv_mr *)handle)->length);
	else if (kind == NIC_DM)
		(void)snprintf(text, size, "%zu bytes, ",
			       nic_container(handle, struct sim_dm, pub)->length);
}

void sim_nic_each(void (*fn)(void *arg, const char *kind, const void *handle, const char *text),
		  void *arg)
{
	struct sim_context *context;
	char own[80], text[160];

	nic_list_each(context, &nic_contexts, node) {
		const char *device = context->device->vdev.device.name;

		if (context->closed)
			continue;
		for (enum nic_kind kind = 0; kind < NIC_KINDS; kind++) {
			struct nic_list *all = &context->objects[kind];

			for (struct nic_list *node = all->next; node != all; node = node->next) {
				void *handle = (char *)node + kinds[kind].handle;

				describe(kind, handle, own, sizeof(own));
				(void)snprintf(text, sizeof(text), "%sof %s", own, device);
				fn(arg, kinds[kind].name, handle, text);
			}
		}
		(void)snprintf(text, sizeof(text), "of %s", device);
		fn(arg, "context", &context->verbs.context, text);
	}
}
