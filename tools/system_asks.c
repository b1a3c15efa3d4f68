/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_asks.c - the owner of the turn makes no call for a while of real time: it is asked whether
 * it waits for memory (turn/spin.h).  If it computes, it is asked again after twice that time.
 */
#include "config.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "system.h"

#define FIRST_NS 5000000u
#define LAST_NS 1000000000u

static void ask(struct turn_segment *segment, uint32_t owner)
{
	struct turn_thread *thread = &segment->threads[owner];
	const int32_t pid = segment->members[thread->member].pid;
	siginfo_t info = { .si_code = SI_QUEUE };

	info.si_value.sival_int = TURN_ASK_VALUE;
	/* A program that it becomes meanwhile must not get the signal: it waits for the end of this. */
	atomic_store(&segment->asks_thread, 1);
	if (atomic_load(&thread->can_be_asked) && segment->owner == owner && pid > 1)
		syscall(SYS_rt_tgsigqueueinfo, pid, thread->tid, TURN_ASK_SIGNAL, &info);
	atomic_store(&segment->asks_thread, 0);
}

void system_ask(struct system *system, struct system_asks *asks, uint64_t now)
{
	struct turn_segment *segment = system->segment;
	const uint64_t progress = segment->calls + segment->turns + segment->points;
	const uint32_t owner = segment->owner;

	if (progress != asks->progress || !asks->wait) {
		*asks = (struct system_asks){ progress, now, FIRST_NS };
		return;
	}
	if (owner >= segment->num_threads || owner >= TURN_MAX_THREADS || now - asks->since < asks->wait)
		return;
	if (segment->threads[owner].member >= TURN_MAX_MEMBERS)
		return;
	asks->since = now;
	asks->wait = asks->wait < LAST_NS / 2 ? 2 * asks->wait : LAST_NS;
	ask(segment, owner);
}
