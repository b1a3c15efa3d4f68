/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/exec.h - a member becomes another program: the process stays the member that it is. */
#ifndef TURN_EXEC_H
#define TURN_EXEC_H

#include "trap.h"

/* At the start: what each program of the system must find in its environment. */
void turn_exec_begin(const char *file, const char *preload);
/* execve(), execveat(). */
long turn_exec(const struct turn_call *call);

/* Will a program that begins here be one of the system?  Not where chroot() or a sandbox hides it. */
bool turn_exec_can_be_seen(void);

#endif
