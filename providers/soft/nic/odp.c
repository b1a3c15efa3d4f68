/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/odp.c - on-demand paging, as rxe has it from Linux 6.15 on, and implicit regions as
 * adapters have.  Such a region may have holes and pages that the process may not use like that:
 * the host pages memory in when it is accessed (nic_mr_memory()); if it cannot, that is an access
 * error.
 */
#include "config.h"

#include "device.h"
#include "mr.h"
#include "refuse.h"
#include "verbs.h"

/* Without those that headers of rdma-core 44 lack: */
#define FLUSH (1u << 6)
#define ATOMIC_WRITE (1u << 7)
#define UD_CAPS (IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV)
#define UC_CAPS (UD_CAPS | IBV_ODP_SUPPORT_WRITE)
#define RC_CAPS (UC_CAPS | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC | FLUSH | ATOMIC_WRITE)

void nic_init_odp(const struct sim_device *device, struct ibv_device_attr_ex *attr)
{
	if (!(device->services & NIC_SVC_ODP))
		return;
	attr->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps = RC_CAPS;
	attr->odp_caps.per_transport_caps.uc_odp_caps = UC_CAPS;
	attr->odp_caps.per_transport_caps.ud_odp_caps = UD_CAPS;
	if (device->services & POLYCM_SVC_XRC)
		attr->xrc_odp_caps = RC_CAPS;
}

/* 0, or an errno and the reason: ibv_advise_mr(3). */
static int check_advice(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
			const struct ibv_sge *sge, bool now, const char **ret_why)
{
	const struct sim_mr *mr = nic_mr_by_key(sge->lkey);

	*ret_why = "there is no such key";
	if (!mr)
		return EFAULT;
	*ret_why = "the region is of another protection domain";
	if (nic_protection(mr->pub.pd) != nic_protection(pd))
		return EPERM;
	*ret_why = "the region lacks IBV_ACCESS_ON_DEMAND";
	if (!(mr->access & IBV_ACCESS_ON_DEMAND))
		return EINVAL;
	*ret_why = "the region lacks local write";
	if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE && !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return EPERM;
	*ret_why = "the range is not within the region";
	if (sge->addr < mr->iova || sge->length > mr->pub.length ||
	    sge->addr - mr->iova > mr->pub.length - sge->length)
		return EFAULT;
	*ret_why = NIC_NO_MEMORY;
	return now && !nic_mr_memory(mr, sge->addr, sge->length,
				     advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE) ? EFAULT : 0;
}

/* Advice may be ignored, but for what is wrong with it. */
int sim_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		  struct ibv_sge *sges, uint32_t num_sges)
{
	static const char call[] = "ibv_advise_mr";
	const struct sim_device *device = nic_device(pd->context);
	bool now = flags & IBV_ADVISE_MR_FLAG_FLUSH && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	const char *why;
	int err = 0;

	if (!(device->services & NIC_SVC_ODP))
		return nic_refuse(device, call, EOPNOTSUPP, "the device has no on-demand paging");
	if ((unsigned int)advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return nic_refuse(device, call, EOPNOTSUPP, "%u is no advice", (unsigned int)advice);
	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH || !num_sges)
		return nic_refuse(device, call, EINVAL, "flags 0x%x, num_sge %u", flags, num_sges);
	sim_lock();
	for (uint32_t i = 0; i < num_sges && !err; i++) {
		err = check_advice(pd, advice, &sges[i], now, &why);
		if (err)
			(void)nic_refuse(device, call, err, "lkey 0x%x, 0x%llx + %u: %s", sges[i].lkey,
					 (unsigned long long)sges[i].addr, sges[i].length, why);
	}
	sim_unlock();
	return err;
}
