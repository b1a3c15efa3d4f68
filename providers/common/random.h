/* SPDX-License-Identifier: BSD-2-Clause */
/* random.h - a plugin's random numbers.  The caller holds a lock, always the same one. */
#ifndef COMMON_RANDOM_H
#define COMMON_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

void sim_random_seed(uint64_t seed);
uint64_t sim_random(void);		/* 64 bits of the seeded generator */
uint32_t sim_random_below(uint32_t bound);
/* True with this probability; draws nothing at 0 and at 1. */
bool sim_chance(double probability);
/* The output function of splitmix64, for generators that have a state of their own. */
uint64_t sim_random_mix(uint64_t state);

#endif
