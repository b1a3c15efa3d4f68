/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibcm_scene.h - brings an id of the InfiniBand CM into each of its states,
 * its peer along with it.
 */
#ifndef TESTS_IBCM_SCENE_H
#define TESTS_IBCM_SCENE_H

#include "ibcm_world.h"

/* Where an id of either side is. */
enum situation {
	REQ_SENT,		/* the server does not exist */
	MRA_REQ_RCVD,
	MRA_REQ_SENT,
	REP_SENT,
	MRA_REP_RCVD,
	MRA_REP_SENT,
	ESTABLISHED_ACTIVE,
	ESTABLISHED_PASSIVE,
	DREQ_SENT,
	DREQ_RCVD,
	TIMEWAIT,
	IDLE,			/* after a REJ */
	SITUATIONS
};

extern const enum ibcm_state scene_states[SITUATIONS];

struct scene {
	struct pair pair;
	struct polycm_id *id, *peer;
};

/* RoCE; forgets the MADs so far. */
struct scene set_scene(enum situation situation);
void clear_scene(struct scene *scene);

#define NO_EVENT 0xff
#define NOTHING 0

#endif
