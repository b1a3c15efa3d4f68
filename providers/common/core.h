/* SPDX-License-Identifier: BSD-2-Clause */
/* core.h - the core's services, for sources that several plugins are made of. */
#ifndef COMMON_CORE_H
#define COMMON_CORE_H

#include "polycm/provider.h"

/* Each plugin's own; set by its query, never NULL afterwards. */
extern const struct polycm_core *sim_core;

#endif
