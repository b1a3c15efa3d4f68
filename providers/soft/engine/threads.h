/* SPDX-License-Identifier: BSD-2-Clause */
/* engine/threads.h - what the other threads of the program do, according to /proc. */
#ifndef SIM_THREADS_H
#define SIM_THREADS_H

#include <stdbool.h>

#include "single_thread.h"

/* /proc/self/task, except in tests. */
extern const char *sim_threads_folder;

int sim_threads_counted(void);
/* How many threads the program has; a negative errno if /proc cannot be read. */
static inline int sim_threads_count(void)
{
	return single_thread() ? 1 : sim_threads_counted();
}

int sim_threads_others_compute(void);
/* Does any other thread compute, and not sleep in a system call?  Or a negative errno. */
static inline int sim_threads_compute(void)
{
	return single_thread() ? 0 : sim_threads_others_compute();
}
/*
 * How many others sleep on a futex without a time-out, which only a thread of the program can
 * end, except those that wait for the lock at `lock'.
 */
unsigned int sim_threads_parked(const void *lock, unsigned long size);

#endif
