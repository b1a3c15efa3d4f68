/* SPDX-License-Identifier: BSD-2-Clause */
/* shm/visit.c - see visit.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "providers/soft/base/base.h"
#include "segment.h"
#include "visit.h"

#define SLOT_BITS 16u			/* of sim_slot.inside: whose memory, plus 1; above: a count */
#define SLOT_MASK ((UINT64_C(1) << SLOT_BITS) - 1)
#define CHECK_EVERY SIM_MS(1)		/* while the owner waits: does the visitor live? */
#define GIVE_UP SIM_MS(1000)

_Static_assert(SIM_MAX_SLOTS < SLOT_MASK, "a slot fits");

static uint32_t closed;			/* enum sim_closed */
static uint64_t visits;			/* of this process, so far */
static uint64_t visitors[SIM_MAX_SLOTS / 64];	/* that this process expects */

void sim_visit_begin(struct sim_slot *slot)
{
	atomic_store(&slot->inside, 0);
	atomic_store(&slot->closed, closed);
	memset(visitors, 0, sizeof(visitors));
}

void sim_visit_close(enum sim_closed why, bool on)
{
	if (on)
		closed |= why;
	else
		closed &= ~(uint32_t)why;
	atomic_store(&sim_segment_self()->closed, closed);
}

bool sim_visit_closed(void)
{
	return closed;
}

bool sim_slot_is_tapped(unsigned int slot)
{
	return atomic_load_explicit(&sim_segment_peer(slot)->closed, memory_order_relaxed) &
	       SIM_CLOSED_WATCHED;
}

bool sim_visit_enter(unsigned int slot, uint32_t generation)
{
	struct sim_slot *owner = sim_segment_peer(slot);

	if (closed)
		return false;
	atomic_store(&sim_segment_self()->inside, ++visits << SLOT_BITS | (slot + 1));
	if (!atomic_load(&owner->closed) && atomic_load(&owner->state) == SIM_SLOT_LIVE &&
	    atomic_load(&owner->generation) == generation)
		return true;
	sim_visit_leave();
	return false;
}

void sim_visit_leave(void)
{
	atomic_store_explicit(&sim_segment_self()->inside, 0, memory_order_release);
}

void sim_visit_expect(unsigned int slot)
{
	if (slot < SIM_MAX_SLOTS)
		visitors[slot / 64] |= UINT64_C(1) << slot % 64;
}

/* Was it killed?  Its slot lives as long as a child that it has forked. */
static bool is_killed(int32_t pid)
{
	char path[32], text[256];
	const char *end;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return errno == ESRCH;
	text[len] = '\0';
	end = strrchr(text, ')');
	return end && end[1] == ' ' && (end[2] == 'Z' || end[2] == 'X');
}

/* A visitor that was killed stays inside, for those who look at its slot. */
static bool wait_for(unsigned int slot)
{
	const struct sim_slot *visitor = sim_segment_peer(slot);
	uint64_t inside = atomic_load(&visitor->inside), began, checked, now;

	if ((inside & SLOT_MASK) != sim_segment_slot() + 1)
		return true;
	began = checked = sim_time->real_ns(CLOCK_MONOTONIC);
	while (atomic_load(&visitor->inside) == inside) {
		sched_yield();
		now = sim_time->real_ns(CLOCK_MONOTONIC);
		if (now - checked < CHECK_EVERY)
			continue;
		checked = now;
		if (atomic_load(&visitor->state) != SIM_SLOT_LIVE || sim_segment_is_dead(slot) ||
		    is_killed(visitor->pid))
			return true;
		if (now - began > GIVE_UP) {
			sim_core->log(POLYCM_LOG_ERROR, NULL, "process %d was stopped while it read or "
				      "wrote memory of this process: when it goes on it may still write "
				      "what it was about to", (int)visitor->pid);
			return false;
		}
	}
	return true;
}

bool sim_visit_wait(void)
{
	bool alone = true;

	if (!sim_segment_joined())
		return true;
	for (unsigned int word = 0; word < SIM_MAX_SLOTS / 64; word++)
		for (uint64_t bits = visitors[word]; bits; bits &= bits - 1)
			alone &= wait_for(word * 64 + (unsigned int)__builtin_ctzll(bits));
	return alone;
}
