/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules.h - the rules of RoCE as a transport: the only place where they stand.
 */
#ifndef PROVIDERS_ROCE_RULES_H
#define PROVIDERS_ROCE_RULES_H

#include "polycm/provider.h"

extern const struct polycm_transport roce_transport;

#endif
