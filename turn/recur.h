/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/recur.h - does a thread do the same again and again?  It is asked about before each of its
 * instructions.  Where all its registers recur, and with them all memory that it has written in
 * between, it does the same for ever, until somebody else writes: it waits for memory.
 *
 * Where in such a circle it is asked first depends on real time.  So the answer comes at one place
 * of it which does not: where its registers are the least.  Pure, but that it reads that memory.
 */
#ifndef TURN_RECUR_H
#define TURN_RECUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "instruction.h"

#define TURN_RECUR_WORDS 64u

struct turn_recur_state {
	uint64_t registers[TURN_NUM_REGISTERS];
	uint64_t others;	/* a digest of what else there is */
};

enum turn_recur_answer {
	TURN_RECUR_PERHAPS,	/* go on to ask */
	TURN_RECUR_WAITS,	/* here, and going round once more it would be here again */
	TURN_RECUR_CHANGED,	/* after that: somebody has written what it reads */
	TURN_RECUR_UNKNOWN,	/* it writes too much, or the place is not one alone */
};

struct turn_recur {
	enum { SEARCHES, MEASURES, APPROACHES, ROUNDS } phase;
	struct turn_recur_state from, least;	/* of the circle */
	uint64_t steps, length;
	uint64_t next;		/* searching: the number of steps after which `from' is another */
	bool is_double;		/* `least' */
	bool is_full;
	uint32_t num_words;	/* that it has written since `from', and what they were */
	struct { uint64_t *at, value; } words[TURN_RECUR_WORDS];
};

/* In this state, before an instruction. */
void turn_recur_begin(struct turn_recur *recur, const struct turn_recur_state *state);
/* The same after that instruction. */
enum turn_recur_answer turn_recur_step(struct turn_recur *recur, const struct turn_recur_state *state);
/* The instruction to come may write there; the memory can be read in whole words. */
void turn_recur_writes(struct turn_recur *recur, uint64_t at, size_t size);

#endif
