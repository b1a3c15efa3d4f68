/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/shm/pages.h - pages of this process that other processes map, so that they reach them
 * without a system call.
 *
 * The contents of private pages are moved to a file in memory, which is mapped in their place.
 * The program must not notice, so this is done only with plain anonymous memory, and while the
 * program has one thread, which is in this call: nobody writes to the pages meanwhile.  Nothing
 * may be under way for which the kernel keeps the pages; io_uring and aio are seen.  When the
 * pages are released, their contents are moved back.
 *
 * A child of fork() gets a copy, as of private pages; not one of _Fork() or clone().  What
 * munmap(), mprotect() and mremap() do is seen from /proc/self/maps.  madvise(MADV_DONTNEED)
 * does not empty the pages.
 *
 * Engine lock held for all calls.
 */
#ifndef SIM_PAGES_H
#define SIM_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file; most of it is never used, and has no memory behind it. */
#define SIM_PAGES_FILE (UINT64_C(64) << 30)

/* Whole pages of the program, and where they are in the file. */
struct sim_pages {
	struct sim_pages *next;
	uintptr_t from;
	size_t length;
	uint64_t at;
	unsigned int users;		/* 0: released, but could not be moved back yet */
};

/*
 * The pages with the range, moved if they are not yet.  NULL: they cannot be moved, or not
 * now; nothing is changed.  No other process may be in that memory.
 */
struct sim_pages *sim_pages_share(const void *memory, size_t length);
void sim_pages_release(struct sim_pages *pages);
/* May sim_pages_share() move something now?  Moving takes time, of which little is spent. */
bool sim_pages_may_move(void);
extern uint64_t sim_pages_time;		/* in ns; tests have more */

/*
 * This may be a child of fork(): then it gets copies in place of the pages, and there are no
 * sim_pages any more, as sim_pages_forgotten() is told.
 */
void sim_pages_forked(void);
extern void (*sim_pages_forgotten)(void);

#endif
