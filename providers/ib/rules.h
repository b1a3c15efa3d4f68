/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules.h - the rules of InfiniBand as a transport: the only place where they stand.
 */
#ifndef PROVIDERS_IB_RULES_H
#define PROVIDERS_IB_RULES_H

#include "polycm/provider.h"

extern const struct polycm_transport ib_transport;

#endif
