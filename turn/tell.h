/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/tell.h - what a member cannot do here: the launcher tells people of it. */
#ifndef TURN_TELL_H
#define TURN_TELL_H

#include "segment.h"
#include "trap.h"

/* Once for each of that name; NULL: the name of this thread. */
void turn_tell(enum turn_notice what, const char *name);
/* Its number in turn_segment.told, for who tells it later; TURN_NOBODY: it is told already. */
uint32_t turn_note(enum turn_notice what, const char *name);

/* prctl(), seccomp(): filters of calls are told and not installed. */
long turn_prctl(const struct turn_call *call);
long turn_seccomp(const struct turn_call *call);

#endif
