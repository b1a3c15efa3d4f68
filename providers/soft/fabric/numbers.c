/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/numbers.c - QP numbers in blocks of one process each.  Blocks are given out
 * round and round, so that the number of a QP that is gone is not seen again
 * soon.  Block 0 is nobody's: QP 0 and 1 are special.  Engine lock held.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "numbers.h"

static struct sim_qpn_area *area, *own;

int sim_numbers_open(void)
{
	if (sim_segment_joined()) {
		area = sim_segment_area(SIM_AREA_QPNS);
		return 0;
	}
	own = calloc(1, sizeof(*own));
	if (!own)
		return -ENOMEM;
	area = own;
	return 0;
}

void sim_numbers_close(void)
{
	free(own);
	own = area = NULL;
}

void sim_numbers_scatter(void)
{
	uint32_t block;

	if (getrandom(&block, sizeof(block), GRND_NONBLOCK) != sizeof(block))
		return;
	sim_segment_lock();
	if (!area->last)
		area->last = block % SIM_QPN_BLOCKS;
	sim_segment_unlock();
}

unsigned int sim_self_slot(void)
{
	return sim_segment_slot();
}

static int take_block(uint32_t *ret_first)
{
	uint32_t block = area->last;
	uint16_t owner = (uint16_t)(sim_segment_slot() + 1);

	for (uint32_t i = 0; i < SIM_QPN_BLOCKS; i++) {
		block = (block + 1) % SIM_QPN_BLOCKS;
		if (!block || area->owner[block])
			continue;
		area->num[owner - 1]++;
		__atomic_store_n(&area->owner[block], owner, __ATOMIC_RELEASE);
		area->last = block;
		*ret_first = block * SIM_QPN_BLOCK;
		return 0;
	}
	return -ENOMEM;
}

int sim_qpn_block(uint32_t *ret_first)
{
	int r = sim_engine_need_thread();

	if (r < 0)
		return r;
	sim_segment_lock();
	r = take_block(ret_first);
	if (r < 0 && sim_segment_reclaim_all())
		r = take_block(ret_first);
	sim_segment_unlock();
	return r;
}

unsigned int sim_slot_of_qpn(uint32_t qpn)
{
	uint32_t block = qpn / SIM_QPN_BLOCK;
	uint16_t owner;

	if (!area || block >= SIM_QPN_BLOCKS)
		return SIM_NOBODY;
	owner = __atomic_load_n(&area->owner[block], __ATOMIC_ACQUIRE);
	return owner && owner <= SIM_MAX_SLOTS ? owner - 1u : SIM_NOBODY;
}

void sim_qpn_drop_slot(void *table, unsigned int slot)
{
	struct sim_qpn_area *of = table;

	/* The newest blocks come first, so that most of the table is not looked at. */
	for (uint32_t i = 0; i < SIM_QPN_BLOCKS && of->num[slot]; i++) {
		const uint32_t block = (of->last - i) % SIM_QPN_BLOCKS;

		if (of->owner[block] != slot + 1)
			continue;
		__atomic_store_n(&of->owner[block], 0, __ATOMIC_RELEASE);
		of->num[slot]--;
	}
	of->num[slot] = 0;
}
