/* SPDX-License-Identifier: BSD-2-Clause */
/* link/block.c - see block.h. */
#include "config.h"

#include <stdlib.h>

#include "block.h"

#define DATA_BLOCKS (SIM_BLOCKS / 2)

static struct {
	_Alignas(16) uint8_t bytes[SIM_BLOCK_SIZE];
} reserve[SIM_BLOCKS];

static uint64_t taken;			/* a bit for each */

static __attribute__((noinline)) void *get_reserved(size_t size, enum sim_packet_type type)
{
	bool vital = type != SIM_PACKET_RC && type != SIM_PACKET_UD;
	uint64_t free_ones = ~taken;
	unsigned int i;

	_Static_assert(SIM_BLOCKS == 64, "a bit for each");
	if (!vital)
		free_ones &= (UINT64_C(1) << DATA_BLOCKS) - 1;
	if (size > SIM_BLOCK_SIZE || !free_ones)
		return NULL;
	/* From the end that data does not use. */
	i = vital ? 63 - (unsigned int)__builtin_clzll(free_ones) :
		    (unsigned int)__builtin_ctzll(free_ones);
	taken |= UINT64_C(1) << i;
	return reserve[i].bytes;
}

void *sim_block_get(size_t size, enum sim_packet_type type)
{
	void *block = malloc(size);

	return __builtin_expect(!block, 0) ? get_reserved(size, type) : block;
}

void sim_block_put(void *block)
{
	size_t offset = (size_t)((uintptr_t)block - (uintptr_t)reserve);

	if (offset < sizeof(reserve))
		taken &= ~(UINT64_C(1) << offset / sizeof(reserve[0]));
	else
		free(block);
}
