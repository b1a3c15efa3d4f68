/* SPDX-License-Identifier: BSD-2-Clause */
/* tests/sequences/sequence.h - what the parts of the program share. */
#ifndef TESTS_SEQUENCES_SEQUENCE_H
#define TESTS_SEQUENCES_SEQUENCE_H

#include "tests/scenarios/scene_internal.h"

/* --- draw.c: chance, from the seed alone. --- */

/* What is drawn in a step depends on the seed and the step, not on what was drawn before. */
void draw_begin(uint64_t seed, unsigned int step);
/* 0 to number - 1 */
unsigned int draw(unsigned int number);
bool draw_percent(unsigned int percent);
/* An index, each as often as its weight. */
unsigned int draw_weighted(const unsigned int *weights, unsigned int number);
enum place draw_own_place(void);
/* Where to: also what nobody has. */
enum place draw_target(void);
int draw_port(void);

/* --- actors.c: the ids of a sequence. --- */

enum { MAX_ACTORS = 4 };

enum actor_state {
	FRESH, BOUND, LISTENING, FOUND, ROUTED,
	ASKED,		/* connects: its request has reached a listener and waits for an answer */
	CONNECTED,
	OVER,		/* nothing is left but to destroy it */
	NUM_STATES
};

struct actor {
	char name[8];
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;		/* NULL: none now */
	enum rdma_port_space ps;
	enum actor_state state;
	enum place place;		/* LISTENING: where */
	int port;
	/* ASKED, CONNECTED: the other end, and the actor whose channel it is on. */
	struct rdma_cm_id *peer;
	struct actor *at;
	bool answered;			/* was accepted once: what ends it may end in a timewait */
};

extern struct actor actors[MAX_ACTORS];

void actors_begin(void);
struct actor *actor_of(const struct rdma_cm_id *id);
/* Events of all channels, shown: until nothing has come for so long.  Actors follow. */
void take_until_quiet(unsigned int ms);
/* The same, after the first has come; "nothing comes" if none does. */
void take_first(void);
/* Those of this channel, until one has come. */
void take_one(struct rdma_event_channel *events);

/* --- steps.c --- */

void play_step(void);

#endif
