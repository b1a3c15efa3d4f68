/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/pd.c - protection domains. */
#include "config.h"

#include <stdlib.h>

#include "pd.h"
#include "refuse.h"

struct ibv_pd *sim_alloc_pd(struct ibv_context *context)
{
	static uint32_t next_handle;
	struct sim_pd *pd = calloc(1, sizeof(*pd));
	int err;

	if (!pd) {
		err = nic_no_memory(nic_device(context), "ibv_alloc_pd");
		goto err_errno;
	}
	pd->pub.context = context;
	sim_lock();
	err = nic_take(context, NIC_PD);
	if (!err) {
		pd->pub.handle = next_handle++;
		nic_list_add(&nic_context(context)->pds, &pd->node);
	}
	sim_unlock();
	if (!err)
		return &pd->pub;
	free(pd);
err_errno:
	errno = err;
	return NULL;
}

void nic_pd_free(struct sim_pd *pd)
{
	nic_list_del(&pd->node);
	nic_give(pd->pub.context, NIC_PD);
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
