/* SPDX-License-Identifier: BSD-2-Clause */
/* engine/turns.h - libpolycm-turn, where it gives the threads of this process their turns. */
#ifndef SIM_TURNS_H
#define SIM_TURNS_H

#include "turn_tells.h"

/* The same for all threads, once the engine has been started; NULL: it is not there. */
extern const struct turn_tells *sim_turns_here;
void sim_turns_find(void);

/* NULL: it is not there, or gives the calling thread none. */
const struct turn_tells *sim_turns(void);

/* What the calling thread waits for from here on, which is shown if nothing can end it. */
void sim_waits_for(enum turn_purpose purpose);

#endif
