/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * provider.c - the plugin "roce": the rules of RoCE, no devices yet.
 */
#include "config.h"

#include "../common/no_devices.h"
#include "rules.h"

static const struct polycm_provider roce_provider = {
	.size = sizeof(roce_provider),
	.abi_minor = POLYCM_ABI_MINOR,
	.name = "roce",
	.version = PACKAGE_VERSION,
	.description = "The rules of RoCE; no path to devices in this version",
	.transport = &roce_transport,
	.ops = &no_devices_ops,
};

__attribute__((visibility("default")))
int polycm_provider_query_v1(const struct polycm_core *core,
			     const struct polycm_provider **ret_provider)
{
	no_devices_setup(core, roce_provider.name);
	*ret_provider = &roce_provider;
	return 0;
}
