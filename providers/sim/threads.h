/* SPDX-License-Identifier: BSD-2-Clause */
/* threads.h - what the other threads of the program do, as the system shows it. */
#ifndef SIM_THREADS_H
#define SIM_THREADS_H

#include <stdbool.h>

#include "single_thread.h"

unsigned int sim_threads_counted(void);
/* How many threads the program has; 1 where the system does not say. */
static inline unsigned int sim_threads_count(void)
{
	return single_thread() ? 1 : sim_threads_counted();
}

bool sim_threads_others_compute(void);
/* Does any but the calling one compute, rather than sleep in a system call? */
static inline bool sim_threads_compute(void)
{
	return !single_thread() && sim_threads_others_compute();
}
/*
 * How many others sleep on a futex without a time-out, which nothing but a
 * thread of the program can end; those that wait for the lock at `lock' aside.
 */
unsigned int sim_threads_parked(const void *lock, unsigned long size);

#endif
