/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/doorbell.c - how a process learns that something came in: it looks, it
 * watches for a while, or its NIC thread sleeps on the futex in its slot.
 */
#include "config.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "providers/sim/base.h"
#include "doorbell.h"
#include "segment.h"

static struct sim_slot *sleeps_on;	/* the NIC thread's; NULL: it need not */

bool sim_shm_pending(void)
{
	return atomic_load_explicit(&sim_segment_self()->summary, memory_order_acquire);
}

static bool is_from(struct sim_slot *of, unsigned int slot)
{
	return atomic_load(&of->inbox[slot / 64]) >> (slot % 64) & 1;
}

bool sim_shm_has_mail(unsigned int slot)
{
	return is_from(sim_segment_self(), slot);
}

static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

uint32_t sim_shm_prepare_wait(bool quiet)
{
	struct sim_slot *self = sim_segment_self();
	/* First: whoever sees that we sleep rings, and that must not go by unnoticed. */
	uint32_t ticket = atomic_load(&self->doorbell);

	sleeps_on = self;
	if (!quiet) {
		atomic_store(&self->sleeping, 1);
		/* What came in before the senders knew that we sleep. */
		if (atomic_load(&self->summary))
			sleeps_on = NULL;
	}
	return ticket;
}

/*
 * Touches nothing but the futex, which may have been unmapped meanwhile: then
 * there are zeroes, and a ticket never is.
 */
void sim_shm_wait(uint32_t ticket, uint64_t deadline)
{
	const struct timespec until = {
		.tv_sec = (time_t)(deadline / 1000000000u),
		.tv_nsec = (long)(deadline % 1000000000u),
	};

	if (sleeps_on)
		syscall(SYS_futex, &sleeps_on->doorbell, FUTEX_WAIT_BITSET, ticket,
			deadline == SIM_NEVER ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);
}

void sim_shm_awake(void)
{
	struct sim_slot *self = sim_segment_self();

	if (atomic_load_explicit(&self->sleeping, memory_order_relaxed))
		atomic_store(&self->sleeping, 0);
}

bool sim_shm_watch(uint64_t until)
{
	struct sim_slot *self = sim_segment_self();
	uint32_t sleeping;

	if (!sim_segment_is_shared(self))
		return false;
	/* The NIC thread may sleep on: we are awake in its place. */
	sleeping = atomic_exchange(&self->sleeping, 0);
	while (!atomic_load_explicit(&self->summary, memory_order_relaxed) && sim_core->real_ns(CLOCK_MONOTONIC) < until)
		pause_cpu();
	if (sleeping)
		atomic_store(&self->sleeping, 1);
	return atomic_load(&self->summary);
}

void sim_shm_ring_self(void)
{
	sim_segment_ring(sim_segment_self());
}
