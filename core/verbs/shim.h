/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs/shim.h - the exported ibv_* calls: those of simulated devices go to
 * their provider's struct polycm_verbs, all others to libibverbs.
 *
 * Which is which costs one comparison: the core marks the ibv_device of a
 * simulated device with a pointer that no other device has.
 */
#ifndef POLYCM_CORE_VERBS_SHIM_H
#define POLYCM_CORE_VERBS_SHIM_H

#include "polycm/verbs.h"

/*
 * Take a provider's device, built for version 1.minor: copy its verbs table into
 * one of the core's without empty slots, and mark it.  -EINVAL: the table is of
 * another version or lacks an operation, as `why' says.
 */
int polycm_shim_adopt(struct polycm_verbs_device *device, uint32_t minor, char *why,
		      size_t why_size);
/* Undo polycm_shim_adopt(); no verbs context of it may be open. */
void polycm_shim_release(struct polycm_verbs_device *device);

/* Called before a context is closed, whosever device it is of: core/device may have it open, too. */
extern void (*polycm_shim_closing)(struct ibv_context *context);

#endif
