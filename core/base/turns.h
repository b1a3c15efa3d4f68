/* SPDX-License-Identifier: BSD-2-Clause */
/* turns.h - libpolycm-turn, where it gives the threads of this process their turns. */
#ifndef POLYCM_TURNS_H
#define POLYCM_TURNS_H

#include "turn_tells.h"

/* What the calling thread waits for from here on, which is shown if nothing can end it. */
void polycm_waits_for(enum turn_purpose purpose);

/* What it writes from here on is ours. */
void polycm_writes_own(bool is_own);

#endif
