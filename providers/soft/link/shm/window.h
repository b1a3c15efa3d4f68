/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/shm/window.h - the places where other processes' rings are mapped.  A thread that polls
 * looks at a ring without a lock, so its memory stays readable when the process is gone: the
 * place is emptied, and used again for another ring, but never unmapped.  Engine lock held.
 */
#ifndef SIM_WINDOW_H
#define SIM_WINDOW_H

#include <stddef.h>

struct sim_window {
	struct sim_window *next;	/* among the empty ones */
	void *at;
};

/* All windows have that size.  NULL: no memory. */
struct sim_window *sim_window_map(int fd, size_t size);
void sim_window_empty(struct sim_window *window, size_t size);

#endif
