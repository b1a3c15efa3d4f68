/* SPDX-License-Identifier: BSD-2-Clause */
/* threads.h - what the other threads of the program do, as the system shows it. */
#ifndef SIM_THREADS_H
#define SIM_THREADS_H

#include <stdbool.h>

/* How many threads the program has; 1 where the system does not say. */
unsigned int sim_threads_count(void);
/* Does any but the calling one compute, rather than sleep in a system call? */
bool sim_threads_compute(void);

#endif
