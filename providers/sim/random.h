/* SPDX-License-Identifier: BSD-2-Clause */
/* random.h - seeding of the generator behind sim_random(); the engine's affair. */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include "engine.h"

void sim_random_seed(uint64_t seed);

#endif
