/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/limits.c - how many objects there are, in all and of each device, and
 * what a device that has no more of them, or is gone, answers.
 */
#include "config.h"

#include "providers/soft/fabric/gids.h"
#include "providers/soft/faults/fault.h"
#include "refuse.h"

static unsigned int *const total[NIC_KINDS] = {
	[NIC_PD] = &nic_counts.pds,
	[NIC_MR] = &nic_counts.mrs,
	[NIC_MW] = &nic_counts.mws,
	[NIC_CQ] = &nic_counts.cqs,
	[NIC_SRQ] = &nic_counts.srqs,
	[NIC_QP] = &nic_counts.qps,
	[NIC_AH] = &nic_counts.ahs,
};

static const enum sim_what calls[NIC_KINDS] = {
	[NIC_PD] = SIM_CALL_ALLOC_PD,
	[NIC_MR] = SIM_CALL_REG_MR,
	[NIC_CQ] = SIM_CALL_CREATE_CQ,
	[NIC_SRQ] = SIM_CALL_CREATE_SRQ,
	[NIC_QP] = SIM_CALL_CREATE_QP,
	[NIC_MW] = SIM_WHATS,		/* no rule names these */
	[NIC_AH] = SIM_WHATS,
};

static const char *const call_names[NIC_KINDS] = {
	[NIC_PD] = "ibv_alloc_pd", [NIC_MR] = "ibv_reg_mr", [NIC_CQ] = "ibv_create_cq",
	[NIC_SRQ] = "ibv_create_srq", [NIC_QP] = "ibv_create_qp", [NIC_MW] = "ibv_alloc_mw",
	[NIC_AH] = "ibv_create_ah",
};

static int limit_of(const struct ibv_device_attr *attr, enum nic_kind kind)
{
	switch (kind) {
	case NIC_PD:
		return attr->max_pd;
	case NIC_MR:
		return attr->max_mr;
	case NIC_MW:
		return attr->max_mw;
	case NIC_CQ:
		return attr->max_cq;
	case NIC_SRQ:
		return attr->max_srq;
	case NIC_QP:
		return attr->max_qp;
	case NIC_AH:
		return attr->max_ah;
	default:
		return 0;
	}
}

/* rxe and siw have each their own word for it; adapters have siw's. */
static int none_left(const struct sim_device *device)
{
	return sim_wire_of(device->rules) == SIM_WIRE_ROCE ? EINVAL : ENOMEM;
}

int nic_take(struct ibv_context *context, enum nic_kind kind)
{
	struct sim_device *device = nic_device(context);
	int r;

	if (device->removed)
		return nic_refuse(device, call_names[kind], EIO, "the device was removed");
	r = sim_fault_call(device->node, calls[kind]);
	if (r < 0)
		return nic_refuse(device, call_names[kind], -r, "a fault rule says so");
	if (device->used[kind] >= (unsigned int)limit_of(&device->attr, kind))
		return nic_refuse(device, call_names[kind], none_left(device),
				  "the device has no more than %d of them",
				  limit_of(&device->attr, kind));
	device->used[kind]++;
	++*total[kind];
	return 0;
}

void nic_give(struct ibv_context *context, enum nic_kind kind)
{
	nic_device(context)->used[kind]--;
	--*total[kind];
}
