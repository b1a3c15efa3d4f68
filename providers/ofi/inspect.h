/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/inspect.h - what `polycm info ofi' and polycm_device_walk() show of the device. */
#ifndef OFI_INSPECT_H
#define OFI_INSPECT_H

#include "polycm/provider.h"

/* inspect_device() of the plugin's operations.  Takes the engine's lock. */
int ofi_inspect_device(void *ctx, const char *name, const struct polycm_report *to);

#endif
