/* SPDX-License-Identifier: BSD-2-Clause */
/* interpose/flags.h - may the program have made a descriptor non-blocking? */
#ifndef POLYCM_INTERPOSE_FLAGS_H
#define POLYCM_INTERPOSE_FLAGS_H

/*
 * How often it called what can do so, counted from 1 on; 0: its calls are not
 * seen here.  What another process does to a descriptor, or the program with a
 * system call of its own making, is never seen.
 */
unsigned int polycm_flags_changed(void);

#endif
