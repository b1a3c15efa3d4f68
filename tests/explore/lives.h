/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lives.h - random lives of connections for one seed, on a private fabric
 * under the virtual clock, and what must hold of them whatever happens.
 *
 * What must hold, of each id, once all has come to rest:
 *   - a resolve that was accepted ends in one event, RESOLVED or ERROR;
 *   - a connect or accept that was accepted ends in one outcome: for the active
 *     side RESPONSE, ESTABLISHED, REJECTED, UNREACHABLE or CONNECT_ERROR, for
 *     the passive one ESTABLISHED, REJECTED, UNREACHABLE or DISCONNECTED;
 *   - DISCONNECTED comes once at most and to what was connected, and comes
 *     where an established connection was disconnected; TIMEWAIT_EXIT comes
 *     once at most and after DISCONNECTED;
 *   - no event is for an id that has been destroyed, nor for a request that was
 *     not accepted, but for DEVICE_REMOVAL, which takes the place of any other.
 * Then all is destroyed, and nothing is left.
 */
#ifndef TESTS_EXPLORE_LIVES_H
#define TESTS_EXPLORE_LIVES_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#include "polycm/sim.h"

#define MAX_NODES 3u
#define MAX_CHANNELS 3u
#define MAX_LIVES 14u

enum role { ACTIVE, PASSIVE, LISTENER };

/* How far an active id is; what makes sense next depends on it. */
enum stage { NEW, RESOLVED, ROUTED, CONNECTING, RESPONDED };

struct life {
	struct rdma_cm_id *id;			/* NULL: a free place */
	unsigned int number;			/* of all in this run, for what is printed */
	enum role role;
	enum rdma_port_space ps;
	unsigned int node, port;
	enum stage stage;
	unsigned int resolving, routing;	/* accepted calls less their events */
	bool tried;				/* connect or accept was accepted */
	bool ended;				/* the program itself gave the attempt up */
	unsigned int outcomes, disconnects, timewaits;
	bool established, left;			/* and disconnected by the program then */
	bool removed;				/* DEVICE_REMOVAL */
};

struct world {
	uint64_t seed, random;
	struct polycm_sim_node *nodes[MAX_NODES];
	const char *transports[MAX_NODES];
	unsigned int num_nodes, num_channels, num_lives;
	struct rdma_event_channel *channels[MAX_CHANNELS];
	struct life lives[MAX_LIVES];
	bool halts;				/* a node may stand still for ever */
	bool moves;				/* neighbours change: UNREACHABLE at any time */
};

extern bool lives_verbose;

/* Prints the seed, what is wrong and how to see it again, and ends the program. */
#define broken(world, ...) lives_broken(world, __LINE__, __VA_ARGS__)
_Noreturn void lives_broken(const struct world *world, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void lives_say(const struct world *world, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* chance.c: the fabric and its faults, by the seed. */
uint32_t lives_below(struct world *world, uint32_t bound);
bool lives_chance(struct world *world, unsigned int percent);
void lives_build(struct world *world);

/* lives.c */
void lives_play(struct world *world);
/* Takes all events that are there; returns how many. */
unsigned int lives_take_events(struct world *world);

#endif
