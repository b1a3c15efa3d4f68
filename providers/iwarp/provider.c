/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * provider.c - the plugin "iwarp": the rules of iWARP, no devices yet.
 */
#include "config.h"

#include "../common/no_devices.h"
#include "rules.h"

static const struct polycm_provider iwarp_provider = {
	.size = sizeof(iwarp_provider),
	.abi_minor = POLYCM_ABI_MINOR,
	.name = "iwarp",
	.version = PACKAGE_VERSION,
	.description = "The rules of iWARP; no path to devices in this version",
	.transport = &iwarp_transport,
	.ops = &no_devices_ops,
};

__attribute__((visibility("default")))
int polycm_provider_query_v1(const struct polycm_core *core,
			     const struct polycm_provider **ret_provider)
{
	no_devices_setup(core, iwarp_provider.name);
	*ret_provider = &iwarp_provider;
	return 0;
}
