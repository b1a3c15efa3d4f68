/* SPDX-License-Identifier: BSD-2-Clause */
/* engine/threads.h - what the other threads of the program do, as the system shows it. */
#ifndef SIM_THREADS_H
#define SIM_THREADS_H

#include <stdbool.h>

#include "single_thread.h"

/* Where the system shows them.  For tests. */
extern const char *sim_threads_folder;

int sim_threads_counted(void);
/* How many threads the program has; a negative errno where the system does not say. */
static inline int sim_threads_count(void)
{
	return single_thread() ? 1 : sim_threads_counted();
}

int sim_threads_others_compute(void);
/* Does any but the calling one compute, rather than sleep in a system call?  Or a negative errno. */
static inline int sim_threads_compute(void)
{
	return single_thread() ? 0 : sim_threads_others_compute();
}
/*
 * How many others sleep on a futex without a time-out, which nothing but a
 * thread of the program can end; those that wait for the lock at `lock' aside.
 */
unsigned int sim_threads_parked(const void *lock, unsigned long size);

#endif
