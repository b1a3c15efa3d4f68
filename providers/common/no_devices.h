/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * no_devices.h - the operations of a provider that knows the rules of its
 * transport but has no way to the kernel's RDMA CM: it announces no device
 * and says so once, and carries nothing.
 */
#ifndef PROVIDERS_COMMON_NO_DEVICES_H
#define PROVIDERS_COMMON_NO_DEVICES_H

#include "polycm/provider.h"

extern const struct polycm_ops no_devices_ops;

/* Keep what the operations log with; name is the plugin's.  For the query function. */
void no_devices_setup(const struct polycm_core *core, const char *name);

#endif
