/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/pointers.h - memory of the program that a call names.  The kernel would answer EFAULT where it
 * is not there; so does whoever reads or writes it here.
 */
#ifndef TURN_POINTERS_H
#define TURN_POINTERS_H

#include <stdbool.h>
#include <stddef.h>

#include "trap.h"

bool turn_can_read(const void *at, size_t len);
bool turn_can_write(void *at, size_t len);
/* len bytes to where the program wants them; 0 or -EFAULT.  To NULL: nothing. */
long turn_give(void *to, const void *from, size_t len);
/* A string, without its end that is not; false: its memory is not there. */
bool turn_can_read_string(const char *text);

/* What the call, whichever it is, is given to read: 0, -EFAULT, or -EINVAL for what is no time. */
long turn_pointers_check(const struct turn_call *call);
/* A struct timespec, or NULL: 0, -EFAULT or -EINVAL. */
long turn_pointers_check_time(const void *time);

/* Something was mapped, unmapped or protected: what was found out is not so any more. */
void turn_pointers_forget(void);
/* A file may be shorter, whoever has it mapped. */
void turn_pointers_shrunk(void);

#endif
