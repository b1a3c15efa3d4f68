/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * random.c - a plugin's only source of chance: xoshiro256** (Blackman and
 * Vigna), its state filled from the seed with splitmix64.  Under one lock, the
 * engine's in the simulator, so that one order of calls gives one sequence.
 */
#include "config.h"

#include "random.h"

static uint64_t state[4];

static uint64_t rotate_left(uint64_t value, unsigned int bits)
{
	return value << bits | value >> (64 - bits);
}

static uint64_t splitmix(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

void sim_random_seed(uint64_t seed)
{
	for (unsigned int i = 0; i < 4; i++)
		state[i] = splitmix(&seed);
}

uint64_t sim_random(void)
{
	uint64_t result = rotate_left(state[1] * 5, 7) * 9;
	uint64_t shifted = state[1] << 17;

	state[2] ^= state[0];
	state[3] ^= state[1];
	state[1] ^= state[2];
	state[0] ^= state[3];
	state[2] ^= shifted;
	state[3] = rotate_left(state[3], 45);
	return result;
}

uint32_t sim_random_below(uint32_t bound)
{
	uint32_t value, excess;

	if (bound < 2)
		return 0;
	/* The last, incomplete run of bound values would favour small ones. */
	excess = (uint32_t)(-bound) % bound;
	do
		value = (uint32_t)(sim_random() >> 32);
	while (value < excess);
	return value % bound;
}
