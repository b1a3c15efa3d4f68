/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/futex.h - futex(2) within a system: who waits on a word is in the segment, not in the kernel. */
#ifndef TURN_FUTEX_H
#define TURN_FUTEX_H

#include "trap.h"

long turn_futex(const struct turn_call *call);
/* This thread is about to end; the kernel will clear a word of it, and let robust locks go. */
void turn_futex_end_thread(void);

/* Its robust locks go: with this thread, or with its program. */
void turn_futex_let_go(void);

#endif
