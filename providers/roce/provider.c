/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * provider.c - the plugin "roce": devices on RoCE and their rules.
 */
#include "config.h"

#include "polycm/provider.h"
#include "rules.h"

static const struct polycm_provider roce_provider = {
	.size = sizeof(roce_provider),
	.abi_minor = POLYCM_ABI_MINOR,
	.name = "roce",
	.version = PACKAGE_VERSION,
	.description = "RoCE devices, through the kernel's RDMA CM",
	.flags = POLYCM_PROVIDER_KERNEL,
	.transport = &roce_transport,
};

__attribute__((visibility("default")))
int polycm_provider_query_v1(const struct polycm_core *core,
			     const struct polycm_provider **ret_provider)
{
	(void)core;
	*ret_provider = &roce_provider;
	return 0;
}
