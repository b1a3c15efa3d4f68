/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hardware.h - a provider for the devices of one transport, made of the
 * kernel's RDMA CM and the rules.  Compiled once into each such plugin.
 */
#ifndef PROVIDERS_COMMON_HARDWARE_H
#define PROVIDERS_COMMON_HARDWARE_H

#include "polycm/provider.h"

/*
 * For the query function: complete the provider, which has its transport and
 * what is for people.  -EOPNOTSUPP: this core has no client of the kernel.
 */
int hardware_setup(const struct polycm_core *core, struct polycm_provider *provider);

#endif
