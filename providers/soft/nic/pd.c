/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/pd.c - protection domains. */
#include "config.h"

#include <stdlib.h>

#include "refuse.h"
#include "verbs.h"

struct ibv_pd *sim_alloc_pd(struct ibv_context *context)
{
	static const char call[] = "ibv_alloc_pd";
	static uint32_t next_handle;
	struct sim_pd *pd = nic_alloc(nic_device(context), call, sizeof(*pd));
	int err;

	if (!pd)
		return NULL;
	pd->pub.context = context;
	sim_lock();
	err = nic_add(context, NIC_PD, &pd->node, NULL);
	if (!err)
		pd->pub.handle = next_handle++;
	sim_unlock();
	return err ? nic_fail(pd, err) : &pd->pub;
}

void nic_pd_free(struct sim_pd *pd)
{
	nic_remove(pd->pub.context, NIC_PD, &pd->node, NULL);
	free(pd);
}

int sim_dealloc_pd(struct ibv_pd *ibpd)
{
	struct sim_pd *pd = nic_pd(ibpd);
	int err = 0;

	sim_lock();
	if (pd->users)
		err = nic_refuse(nic_device(ibpd->context), "ibv_dealloc_pd", EBUSY,
				 "MRs, QPs, SRQs, AHs or windows of it are left: %u", pd->users);
	else
		nic_pd_free(pd);
	sim_unlock();
	return err;
}
