/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/vdso.h - what the kernel lets a process know without a call: clocks in its vDSO, and random
 * bytes on the stack of a new program.  Both are replaced before main().
 */
#ifndef TURN_VDSO_H
#define TURN_VDSO_H

/* The functions of the vDSO make system calls from now on; 0 or a negative errno. */
int turn_vdso_replace(void);
/* AT_RANDOM gets bytes of the system's own. */
void turn_vdso_set_random(void);

#endif
