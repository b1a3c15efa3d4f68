/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * provider.c - the plugin "iwarp": devices on iWARP and their rules.
 */
#include "config.h"

#include "polycm/provider.h"
#include "rules.h"

static const struct polycm_provider iwarp_provider = {
	.size = sizeof(iwarp_provider),
	.abi_minor = POLYCM_ABI_MINOR,
	.name = "iwarp",
	.version = PACKAGE_VERSION,
	.description = "iWARP devices, through the kernel's RDMA CM",
	.flags = POLYCM_PROVIDER_KERNEL,
	.transport = &iwarp_transport,
};

__attribute__((visibility("default")))
int polycm_provider_query_v1(const struct polycm_core *core,
			     const struct polycm_provider **ret_provider)
{
	(void)core;
	*ret_provider = &iwarp_provider;
	return 0;
}
