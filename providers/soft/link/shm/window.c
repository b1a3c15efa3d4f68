/* SPDX-License-Identifier: BSD-2-Clause */
/* link/shm/window.c - see window.h. */
#include "config.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <utlist.h>

#include "window.h"

static struct sim_window *empty;

struct sim_window *sim_window_map(int fd, size_t size)
{
	struct sim_window *window = empty;
	void *at;

	if (!window)
		window = calloc(1, sizeof(*window));
	if (!window)
		return NULL;
	at = mmap(window->at, size, PROT_READ | PROT_WRITE, MAP_SHARED | (window->at ? MAP_FIXED : 0),
		  fd, 0);
	if (at == MAP_FAILED) {
		if (window != empty)
			free(window);
		return NULL;
	}
	if (window == empty)
		LL_DELETE(empty, window);
	window->at = at;
	return window;
}

/*
 * In one step, so that no thread finds nothing there.  (Should the kernel lack memory within that
 * step, a thread would have to be between two instructions of its look to notice.)
 */
void sim_window_empty(struct sim_window *window, size_t size)
{
	(void)mmap(window->at, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
		   -1, 0);
	LL_PREPEND(empty, window);
}
