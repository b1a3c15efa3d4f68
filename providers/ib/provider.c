/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * provider.c - the plugin "ib": the rules of InfiniBand, no devices yet.
 */
#include "config.h"

#include "../common/no_devices.h"
#include "rules.h"

static const struct polycm_provider ib_provider = {
	.size = sizeof(ib_provider),
	.abi_minor = POLYCM_ABI_MINOR,
	.name = "ib",
	.version = PACKAGE_VERSION,
	.description = "The rules of InfiniBand; no path to devices in this version",
	.transport = &ib_transport,
	.ops = &no_devices_ops,
};

__attribute__((visibility("default")))
int polycm_provider_query_v1(const struct polycm_core *core,
			     const struct polycm_provider **ret_provider)
{
	no_devices_setup(core, ib_provider.name);
	*ret_provider = &ib_provider;
	return 0;
}
