/* SPDX-License-Identifier: BSD-2-Clause */
/* engine/turns.h - libpolycm-turn, where it gives the threads of this process their turns. */
#ifndef SIM_TURNS_H
#define SIM_TURNS_H

#include "turn_tells.h"

/* NULL: it is not there, or gives the calling thread none. */
const struct turn_tells *sim_turns(void);

#endif
