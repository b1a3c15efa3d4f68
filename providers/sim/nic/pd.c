/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/pd.c - protection domains. */
#include "config.h"

#include <stdlib.h>

#include "nic_internal.h"

struct ibv_pd *sim_alloc_pd(struct ibv_context *context)
{
	static uint32_t next_handle;
	struct sim_pd *pd = calloc(1, sizeof(*pd));

	if (!pd) {
		errno = ENOMEM;
		return NULL;
	}
	pd->pub.context = context;
	sim_lock();
	pd->pub.handle = next_handle++;
	nic_list_add(&nic_context(context)->pds, &pd->node);
	nic_counts.pds++;
	sim_unlock();
	return &pd->pub;
}

void nic_pd_free(struct sim_pd *pd)
{
	nic_list_del(&pd->node);
	nic_counts.pds--;
	free(pd);
}

int sim_dealloc_pd(struct ibv_pd *ibpd)
{
	struct sim_pd *pd = nic_pd(ibpd);
	int err = 0;

	sim_lock();
	if (pd->users)
		err = EBUSY;
	else
		nic_pd_free(pd);
	sim_unlock();
	return err;
}
