/* SPDX-License-Identifier: BSD-2-Clause */
/* draw.c - owns chance: what a seed draws, and out of what. */
#include "sequence.h"

static uint64_t state;

/* splitmix64 */
static uint64_t next_number(void)
{
	uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

void draw_begin(uint64_t seed, unsigned int step)
{
	state = seed << 16 | step;
	state = next_number();
}

unsigned int draw(unsigned int number)
{
	return (unsigned int)(next_number() >> 33) % number;
}

bool draw_percent(unsigned int percent)
{
	return draw(100) < percent;
}

unsigned int draw_weighted(const unsigned int *weights, unsigned int number)
{
	unsigned int sum = 0, i, at;

	for (i = 0; i < number; i++)
		sum += weights[i];
	at = draw(sum);
	for (i = 0; at >= weights[i]; i++)
		at -= weights[i];
	return i;
}

struct choice {
	enum place place;
	unsigned int weight;
};

/* Of those that this host has. */
static enum place draw_place(const struct choice *choices, unsigned int number)
{
	unsigned int weights[NUM_PLACES], i;

	for (i = 0; i < number; i++)
		weights[i] = have(choices[i].place) ? choices[i].weight : 0;
	return choices[draw_weighted(weights, number)].place;
}

enum place draw_own_place(void)
{
	static const struct choice choices[] = {
		{ CLIENT4, 12 }, { SERVER4, 16 }, { CLIENT6, 6 }, { SERVER6, 8 },
		{ SECOND4, 8 }, { SECOND6, 4 }, { ANY4, 16 }, { ANY6, 12 },
		{ LOOPBACK4, 7 }, { LOOPBACK6, 5 }, { NODEVICE4, 2 }, { ELSEWHERE4, 2 },
		{ OTHER_CLIENT4, 8 }, { OTHER_SERVER4, 10 },
		{ OTHER_CLIENT6, 4 }, { OTHER_SERVER6, 5 },
	};

	return draw_place(choices, ARRAY_LEN(choices));
}

enum place draw_target(void)
{
	static const struct choice choices[] = {
		{ CLIENT4, 10 }, { SERVER4, 20 }, { CLIENT6, 5 }, { SERVER6, 10 },
		{ SECOND4, 10 }, { SECOND6, 5 }, { ANY4, 3 }, { ANY6, 2 },
		{ LOOPBACK4, 6 }, { LOOPBACK6, 5 }, { NODEVICE4, 3 }, { ELSEWHERE4, 1 },
		{ NOBODY4, 2 }, { UNROUTABLE4, 1 },
		{ OTHER_CLIENT4, 5 }, { OTHER_SERVER4, 12 },
		{ OTHER_CLIENT6, 3 }, { OTHER_SERVER6, 6 },
	};

	return draw_place(choices, ARRAY_LEN(choices));
}

int draw_port(void)
{
	static const unsigned int weights[] = { 60, 25, 15 };
	unsigned int which = draw_weighted(weights, ARRAY_LEN(weights));

	return which == 2 ? ANY_PORT : (int)which;
}
