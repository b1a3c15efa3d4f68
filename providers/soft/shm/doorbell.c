/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shm/doorbell.c - how a process learns that something came in: it checks, it spins for a
 * while, or its NIC thread sleeps on the futex in its slot.
 */
#include "config.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "providers/soft/base/base.h"
#include "doorbell.h"
#include "segment.h"
#include "trust.h"

_Atomic uint64_t sim_doorbell_time;

static struct sim_slot *sleeps_on;	/* NULL: the NIC thread need not sleep */

/*
 * Slots that got mail without a ring, because their programs polled lately: a bit for each,
 * a bit for each word of bits, and when to check the first of them.
 */
static struct {
	_Atomic uint64_t words;
	_Atomic uint64_t slots[SIM_MAX_SLOTS / 64];
	_Atomic uint64_t at;
	_Atomic uint32_t from;		/* our own */
} unrung;

/* The ring that is looked at.  Threads that poll read `length' without a lock. */
static struct {
	_Atomic(const uint32_t *) length;	/* NULL: none */
	unsigned int slot;
} watched;

static bool ring_has_more(void)
{
	const uint32_t *length = atomic_load_explicit(&watched.length, memory_order_relaxed);

	return length && __atomic_load_n(length, __ATOMIC_ACQUIRE);
}

bool sim_shm_pending(void)
{
	return ring_has_more() ||
	       atomic_load_explicit(&sim_segment_self()->summary, memory_order_acquire);
}

unsigned int sim_doorbell_watched(void)
{
	return atomic_load_explicit(&watched.length, memory_order_relaxed) ? watched.slot : SIM_NOBODY;
}

bool sim_doorbell_has_mail(unsigned int from)
{
	return sim_slot_has_mail(sim_segment_self(), from) ||
	       (sim_doorbell_watched() == from && ring_has_more());
}

/* What it wrote before it saw that we look no more is found as if it had left mail. */
static void look_once_more(unsigned int slot)
{
	if (slot != SIM_NOBODY)
		sim_segment_notify(sim_segment_slot(), slot);
}

void sim_doorbell_watch(unsigned int slot, const uint32_t *length)
{
	unsigned int before = sim_doorbell_watched();

	watched.slot = slot;
	atomic_store_explicit(&watched.length, length, memory_order_relaxed);
	if (before == slot)
		return;
	atomic_store(&sim_segment_self()->watches, slot + 1);
	look_once_more(before);
}

void sim_doorbell_unwatch(void)
{
	unsigned int before = sim_doorbell_watched();

	if (before == SIM_NOBODY)
		return;
	sim_doorbell_forget();
	atomic_store(&sim_segment_self()->watches, 0);
	look_once_more(before);
}

void sim_doorbell_forget(void)
{
	atomic_store_explicit(&watched.length, NULL, memory_order_relaxed);
}

static uint64_t monotonic(void)
{
	return sim_time->real_ns(CLOCK_MONOTONIC);
}

/* ------------------------------------------------------------------------
 * Receivers whose program polled lately.
 */

/* Attend to it later, at that time. */
static void ring_later(unsigned int to, uint64_t at)
{
	atomic_fetch_or(&unrung.slots[to / 64], UINT64_C(1) << to % 64);
	if (!atomic_fetch_or(&unrung.words, UINT64_C(1) << to / 64) ||
	    at < atomic_load_explicit(&unrung.at, memory_order_relaxed))
		atomic_store_explicit(&unrung.at, at, memory_order_relaxed);
}

/* No lock needed. */
static bool put_off(const struct sim_slot *slot, unsigned int to)
{
	uint64_t bit = UINT64_C(1) << to % 64;

	/* Usually the clock has just been read for the packet's timer. */
	if (!sim_doorbell_polled(slot, sim_doorbell_lately()))
		return false;
	/* To ourselves: the thread that polls is the one that would ring later. */
	if (slot == sim_segment_self() || atomic_load(&unrung.slots[to / 64]) & bit)
		return true;
	ring_later(to, atomic_load_explicit(&slot->polled_at, memory_order_relaxed) +
			       atomic_load_explicit(&slot->patience, memory_order_relaxed));
	return true;
}

bool sim_doorbell_can_wait(const struct sim_slot *slot, unsigned int to)
{
	atomic_store_explicit(&unrung.from, sim_segment_slot(), memory_order_relaxed);
	return put_off(slot, to);
}

/* Whether it polls is looked up later, not for each packet: it writes that all the time. */
bool sim_doorbell_is_watched(const struct sim_slot *slot, unsigned int to)
{
	unsigned int from = sim_segment_slot();

	if (atomic_load_explicit(&slot->watches, memory_order_relaxed) != from + 1)
		return false;
	if (!(atomic_load_explicit(&unrung.slots[to / 64], memory_order_relaxed) >> to % 64 & 1)) {
		atomic_store_explicit(&unrung.from, from, memory_order_relaxed);
		ring_later(to, sim_doorbell_lately() + SIM_PATIENCE_MIN);
	}
	return true;
}

static bool may_be_unread(unsigned int to, bool (*unread)(unsigned int slot))
{
	const struct sim_slot *slot = sim_segment_peer(to);
	uint32_t from = atomic_load_explicit(&unrung.from, memory_order_relaxed);

	if (unread)
		return unread(to);
	/* Of one that looks at our ring it is not known. */
	return sim_slot_has_mail(slot, from) || atomic_load(&slot->watches) == from + 1;
}

static void remind(unsigned int to, bool (*unread)(unsigned int slot))
{
	struct sim_slot *slot = sim_segment_peer(to);

	/* Clear the bit before the check: mail after the check sets it again. */
	atomic_fetch_and(&unrung.slots[to / 64], ~(UINT64_C(1) << to % 64));
	if (!may_be_unread(to, unread))
		return;
	if (!unread && atomic_load(&slot->sleeping) == SIM_RELIES && put_off(slot, to))
		return;
	if (atomic_exchange(&slot->sleeping, SIM_AWAKE) != SIM_AWAKE)
		sim_segment_ring(slot);
}

static void remind_all(bool (*unread)(unsigned int slot))
{
	for (uint64_t words = atomic_exchange(&unrung.words, 0); words; words &= words - 1) {
		unsigned int word = (unsigned int)__builtin_ctzll(words);

		for (uint64_t bits = atomic_load(&unrung.slots[word]); bits; bits &= bits - 1)
			remind(word * 64 + (unsigned int)__builtin_ctzll(bits), unread);
	}
}

void sim_shm_remind(uint64_t now)
{
	if (atomic_load_explicit(&unrung.words, memory_order_relaxed) &&
	    now >= atomic_load_explicit(&unrung.at, memory_order_relaxed))
		remind_all(NULL);
}

void sim_shm_remind_now(bool (*unread)(unsigned int slot))
{
	if (atomic_load_explicit(&unrung.words, memory_order_relaxed))
		remind_all(unread);
}

void sim_shm_polled(uint64_t now)
{
	struct sim_slot *self = sim_segment_self();
	uint64_t before = atomic_load_explicit(&self->polled_at, memory_order_relaxed);

	/* Not each time: senders read that cache line. */
	if ((int64_t)(now - before) >= (int64_t)(SIM_PATIENCE_MIN / 8))
		atomic_store_explicit(&self->polled_at, now, memory_order_relaxed);
}

void sim_shm_learn(bool fetched)
{
	struct sim_slot *self = sim_segment_self();
	uint32_t before = atomic_load_explicit(&self->patience, memory_order_relaxed);
	uint32_t patience = sim_patience_learn(before, fetched);

	if (patience != before)
		atomic_store_explicit(&self->patience, patience, memory_order_relaxed);
}

uint64_t sim_shm_polled_at(void)
{
	return atomic_load_explicit(&sim_segment_self()->polled_at, memory_order_relaxed);
}

/* ------------------------------------------------------------------------
 * Looking, watching, sleeping.
 */

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
	/* Before `sleeping' is set: a ring from then on changes the doorbell, and ends the wait. */
	uint32_t ticket = atomic_load(&self->doorbell);

	if (!quiet)
		sim_doorbell_unwatch();
	sleeps_on = self;
	atomic_store(&self->sleeping, quiet ? SIM_RELIES : SIM_SLEEPS);
	/* Mail that came before senders saw that we sleep. */
	if (sim_shm_pending() && !(quiet && sim_doorbell_polled(self, monotonic())))
		sleeps_on = NULL;
	return ticket;
}

/* Uses only the futex.  If the segment was unmapped, that is 0, which no ticket is. */
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

bool sim_shm_awake(void)
{
	struct sim_slot *self = sim_segment_self();

	if (atomic_load_explicit(&self->sleeping, memory_order_relaxed) == SIM_AWAKE)
		return true;
	atomic_store(&self->sleeping, SIM_AWAKE);
	return false;
}

bool sim_shm_watch(uint64_t until)
{
	struct sim_slot *self = sim_segment_self();
	uint32_t sleeping;

	if (!sim_segment_is_shared(self))
		return false;
	/* The NIC thread may continue to sleep: we are awake in its place. */
	sleeping = atomic_exchange(&self->sleeping, SIM_AWAKE);
	while (!sim_shm_pending() && monotonic() < until)
		pause_cpu();
	if (sleeping != SIM_AWAKE)
		atomic_store(&self->sleeping, sleeping);
	return sim_shm_pending();
}
