/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * random.c - a plugin's random numbers: xoshiro256** (Blackman and Vigna).
 * splitmix64 fills its state from the seed.  All calls hold one lock (in the
 * simulator the engine's), so the same order of calls gives the same numbers.
 */
#include "config.h"

#include "random.h"

static uint64_t state[4];

static uint64_t rotate_left(uint64_t value, unsigned int bits)
{
	return value << bits | value >> (64 - bits);
}

uint64_t sim_random_mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

void sim_random_seed(uint64_t seed)
{
	for (unsigned int i = 0; i < 4; i++)
		state[i] = sim_random_mix(seed += 0x9e3779b97f4a7c15u);
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

/* 53 bits, which a double holds exactly. */
bool sim_chance(double probability)
{
	if (probability <= 0)
		return false;
	return probability >= 1 || (double)(sim_random() >> 11) * 0x1p-53 < probability;
}
