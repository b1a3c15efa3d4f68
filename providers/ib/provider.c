/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * provider.c - the plugin "ib": devices on InfiniBand and their rules.
 */
#include "config.h"

#include "providers/common/hardware.h"
#include "rules.h"

/* Completed by the query. */
static struct polycm_provider ib_provider = {
	.size = sizeof(ib_provider),
	.abi_minor = POLYCM_ABI_MINOR,
	.name = "ib",
	.version = PACKAGE_VERSION,
	.description = "InfiniBand devices, through the kernel's RDMA CM",
	.transport = &ib_transport,
};

__attribute__((visibility("default")))
int polycm_provider_query_v1(const struct polycm_core *core,
			     const struct polycm_provider **ret_provider)
{
	int err = hardware_setup(core, &ib_provider);

	if (!err)
		*ret_provider = &ib_provider;
	return err;
}
