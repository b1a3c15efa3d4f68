/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine/engine_spin.c - programs that poll instead of waiting, in virtual time.
 *
 * Any call that takes the lock ends a row of unsuccessful polls.  If the program reads
 * clocks in the row, it may poll until a time, which must not be missed by much.
 */
#include "config.h"

#include "engine_internal.h"
#include "heap.h"
#include "threads.h"

#define SPINS_TO_WAIT 16u	/* unsuccessful polls in a row that count as waiting */
/* If clocks are read, too, one wait takes this part of the time of the row, up to a maximum. */
#define POLLS_FRACTION 128u
#define POLLS_MAX SIM_MS(20)
/*
 * After so many reads of a clock in a row, each takes READ_TIME.  Time moves in batches: a
 * part of the reads so far, up to a maximum.
 */
#define READS_TO_WAIT 64u
#define READ_TIME SIM_US(1)
#define READS_FRACTION 64u
#define READS_MAX 1000u
#define READS_ELSEWHERE 1024u	/* reads elsewhere after which the old place counts no more */

static atomic_uint rows;			/* with reads */
static atomic_uint_fast64_t row_began;

static uint64_t while_of_row(void)
{
	uint64_t ns = (relaxed_load(&sim_engine.now) - relaxed_load(&row_began)) / POLLS_FRACTION;

	if (ns > POLLS_MAX)
		return POLLS_MAX;
	return ns > READ_TIME ? ns : READ_TIME;
}

void sim_spin(void)
{
	uint64_t limit = SIM_NEVER;
	unsigned int spins;
	int yielded;

	if (!sim_is_virtual()) {
		sim_progress();
		return;
	}
	spins = atomic_fetch_add(&sim_engine.spins, 1) + 1;
	if ((spins & ~ENGINE_READING) < SPINS_TO_WAIT)
		return;
	sim_lock();
	if (spins & ENGINE_READING) {
		/* The row goes on. */
		relaxed_store(&sim_engine.spins, ENGINE_READING);
		limit = relaxed_load(&sim_engine.now) + while_of_row();
	}
	sim_engine.passers++;
	yielded = engine_yield();
	sim_engine.passers--;
	if (yielded || engine_step(limit))
		goto out;
	if (limit != SIM_NEVER) {
		engine_move_to(limit);
	} else if (!sim_engine.stuck_logged && sim_threads_count() == 1) {
		sim_engine.stuck_logged = true;
		sim_core->log(POLYCM_LOG_WARN, NULL,
			      "the program polls, but nothing is left that could happen");
	}
out:
	sim_unlock();
	(void)sim_time->time_moved();
}

/*
 * Reads of this thread in a row.  Only those from the outermost stack frame that reads
 * count: a loop returns to it, and a signal handler runs further in.
 */
static __thread __attribute__((tls_model("initial-exec"))) struct {
	uintptr_t frame;
	unsigned int row, spins, reads, elsewhere;
	unsigned int next;		/* so many reads move time */
} read_by;

/* Sanitizers read clocks, too. */
__attribute__((no_sanitize("thread"))) static bool is_due(uintptr_t frame)
{
	if (!(relaxed_load(&sim_engine.spins) & ENGINE_READING)) {
		atomic_fetch_or(&sim_engine.spins, ENGINE_READING);
		atomic_fetch_add(&rows, 1);
		relaxed_store(&row_began, relaxed_load(&sim_engine.now));
	}
	if (read_by.row != relaxed_load(&rows) || frame > read_by.frame ||
	    read_by.elsewhere == READS_ELSEWHERE) {
		read_by.row = relaxed_load(&rows);
		read_by.frame = frame;
		read_by.reads = read_by.elsewhere = 0;
		read_by.next = READS_TO_WAIT + 1;
	}
	if (frame != read_by.frame) {
		read_by.elsewhere++;
		return false;
	}
	read_by.elsewhere = 0;
	/* Polls between the reads move time themselves. */
	if (read_by.spins != relaxed_load(&sim_engine.spins)) {
		read_by.spins = relaxed_load(&sim_engine.spins);
		read_by.reads = 0;
		read_by.next = READS_TO_WAIT + 1;
	}
	return ++read_by.reads >= read_by.next;
}

__attribute__((no_sanitize("thread"))) uint64_t sim_clock_read(void *ctx, const void *frame)
{
	unsigned int reads, spins;

	if (sim_clock_virtual(ctx) && is_due((uintptr_t)frame)) {
		reads = read_by.reads / READS_FRACTION;
		if (reads > READS_MAX)
			reads = READS_MAX;
		read_by.next = read_by.reads + reads;
		spins = relaxed_load(&sim_engine.spins);
		sim_lock();
		relaxed_store(&sim_engine.spins, spins);
		(void)engine_advance(reads * READ_TIME);
		sim_unlock();
		(void)sim_time->time_moved();
	}
	return sim_now();
}
