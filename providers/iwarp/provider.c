/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * provider.c - the plugin "iwarp": devices on iWARP and their rules.
 */
#include "config.h"

#include "providers/common/hardware.h"
#include "rules.h"

/* Completed by the query. */
static struct polycm_provider iwarp_provider = {
	.size = sizeof(iwarp_provider),
	.abi_minor = POLYCM_ABI_MINOR,
	.name = "iwarp",
	.version = PACKAGE_VERSION,
	.description = "iWARP devices, through the kernel's RDMA CM",
	.transport = &iwarp_transport,
};

__attribute__((visibility("default")))
int polycm_provider_query_v1(const struct polycm_core *core,
			     const struct polycm_provider **ret_provider)
{
	int err = hardware_setup(core, &iwarp_provider);

	if (!err)
		*ret_provider = &iwarp_provider;
	return err;
}
