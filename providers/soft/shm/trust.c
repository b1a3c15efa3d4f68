/* SPDX-License-Identifier: BSD-2-Clause */
/* shm/trust.c - see trust.h. */
#include "config.h"

#include "trust.h"

bool sim_poll_row_add(struct sim_poll_row *row, unsigned int polls, uint64_t now)
{
	uint64_t before = atomic_load_explicit(&row->at, memory_order_relaxed);
	unsigned int length = atomic_load_explicit(&row->length, memory_order_relaxed);

	if (now - before > (uint64_t)polls * SIM_TRUST_GAP)
		length = 0;
	else if (length < SIM_TRUST_POLLS)
		length += polls;
	atomic_store_explicit(&row->at, now, memory_order_relaxed);
	atomic_store_explicit(&row->length, length, memory_order_relaxed);
	return length >= SIM_TRUST_POLLS;
}

uint32_t sim_patience_learn(uint32_t patience, bool fetched)
{
	/* Three packets fetched make up for one that was not. */
	if (fetched)
		patience += patience < SIM_PATIENCE_MAX ? patience / 4 : 0;
	else
		patience /= 2;
	if (patience > SIM_PATIENCE_MAX)
		return SIM_PATIENCE_MAX;
	return patience < SIM_PATIENCE_MIN ? SIM_PATIENCE_MIN : patience;
}

bool sim_trust_go_on(struct sim_trust *trust, uint64_t now, uint64_t polled_at, bool missed)
{
	if (!trust->length) {
		trust->length = SIM_TRUST_MIN;
		trust->look_at = now + trust->length;
		return true;
	}
	/* It was woken before. */
	if (now < trust->look_at)
		return true;
	if ((int64_t)(now - polled_at) > (int64_t)SIM_TRUST_END)
		return false;
	if (missed)
		trust->length = SIM_TRUST_MIN;
	else if (trust->length < SIM_TRUST_MAX)
		trust->length *= 2;
	if (trust->length > SIM_TRUST_MAX)
		trust->length = SIM_TRUST_MAX;
	trust->look_at = now + trust->length;
	return true;
}
