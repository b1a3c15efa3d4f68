/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * provider.c - the plugin "ib": devices on InfiniBand and their rules.
 */
#include "config.h"

#include "polycm/provider.h"
#include "rules.h"

static const struct polycm_provider ib_provider = {
	.size = sizeof(ib_provider),
	.abi_minor = POLYCM_ABI_MINOR,
	.name = "ib",
	.version = PACKAGE_VERSION,
	.description = "InfiniBand devices, through the kernel's RDMA CM",
	.flags = POLYCM_PROVIDER_KERNEL,
	.transport = &ib_transport,
};

__attribute__((visibility("default")))
int polycm_provider_query_v1(const struct polycm_core *core,
			     const struct polycm_provider **ret_provider)
{
	(void)core;
	*ret_provider = &ib_provider;
	return 0;
}
