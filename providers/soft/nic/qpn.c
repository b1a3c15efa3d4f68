/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/qpn.c - QP numbers: blocks of 256 from the fabric, and the table from
 * numbers to the live QPs of this process.  A number that became free is used
 * again as late as possible, so that late packets do not reach a new QP.
 */
#include "config.h"

#include <stdlib.h>

#include "qp.h"

#define BLOCK_SIZE 256u
#define NUM_BLOCKS ((NIC_QPN_MASK + 1) / BLOCK_SIZE)

struct qpn_block {
	uint32_t first;
	struct sim_qp *qps[BLOCK_SIZE];
};

static struct qpn_block *table[NUM_BLOCKS];
static struct qpn_block **owned;	/* in the order in which we got them */
static uint32_t num_owned, max_owned, live, cursor;

static bool is_ours(const struct qpn_block *block)
{
	return sim_slot_of_qpn(block->first) == sim_self_slot();
}

/* The numbers of the QPs that a child of fork() inherits are still its parent's. */
static void check_owner(void)
{
	if (num_owned && !is_ours(owned[0]))
		num_owned = live = cursor = 0;
}

static int add_block(void)
{
	struct qpn_block **more, *block;
	uint32_t first;
	int r;

	if (num_owned == max_owned) {
		more = realloc(owned, (max_owned + 16) * sizeof(*owned));
		if (!more)
			return ENOMEM;
		owned = more;
		max_owned += 16;
	}
	block = calloc(1, sizeof(*block));
	if (!block)
		return ENOMEM;
	r = sim_qpn_block(&first);
	if (r < 0) {
		free(block);
		return -r;
	}
	block->first = first;
	owned[num_owned++] = block;
	table[first / BLOCK_SIZE] = block;
	return 0;
}

int nic_qpn_take(struct sim_qp *qp, uint32_t *ret_qpn)
{
	int err;

	check_owner();
	err = live * 2 >= num_owned * BLOCK_SIZE ? add_block() : 0;

	if (err && live + 2 >= num_owned * BLOCK_SIZE)
		return err;
	for (;; cursor++) {
		struct qpn_block *block = owned[cursor / BLOCK_SIZE % num_owned];
		uint32_t index = cursor % BLOCK_SIZE;

		/* 0 and 1 are the management QPs. */
		if (block->qps[index] || block->first + index < 2)
			continue;
		block->qps[index] = qp;
		*ret_qpn = block->first + index;
		cursor++;
		live++;
		return 0;
	}
}

void nic_qpn_drop(uint32_t qpn)
{
	struct qpn_block *block = table[qpn / BLOCK_SIZE];

	block->qps[qpn % BLOCK_SIZE] = NULL;
	if (is_ours(block))
		live--;
}

struct sim_qp *nic_qp_by_number(uint32_t qpn)
{
	const struct qpn_block *block = qpn <= NIC_QPN_MASK ? table[qpn / BLOCK_SIZE] : NULL;

	return block ? block->qps[qpn % BLOCK_SIZE] : NULL;
}

struct sim_qp *sim_qp_find(const struct sim_device *device, uint32_t qpn)
{
	struct sim_qp *qp = nic_qp_by_number(qpn);

	return qp && qp->port->device == device ? qp : NULL;
}

void nic_qpn_stop(void)
{
	for (uint32_t i = 0; i < num_owned; i++) {
		table[owned[i]->first / BLOCK_SIZE] = NULL;
		free(owned[i]);
	}
	free(owned);
	owned = NULL;
	num_owned = max_owned = live = cursor = 0;
}
