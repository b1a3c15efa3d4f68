/* SPDX-License-Identifier: BSD-2-Clause */
/* random.h - a plugin's only source of chance.  Under a lock of its own. */
#ifndef COMMON_RANDOM_H
#define COMMON_RANDOM_H

#include <stdint.h>

void sim_random_seed(uint64_t seed);
uint64_t sim_random(void);		/* 64 bits of the seeded generator */
uint32_t sim_random_below(uint32_t bound);

#endif
