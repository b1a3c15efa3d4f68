/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules.h - the rules of iWARP as a transport: the only place where they stand.
 */
#ifndef PROVIDERS_IWARP_RULES_H
#define PROVIDERS_IWARP_RULES_H

#include "polycm/provider.h"

extern const struct polycm_transport iwarp_transport;

#endif
