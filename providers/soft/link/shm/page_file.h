/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/shm/page_file.h - the file of pages.h: a memfd, and moving single ranges of memory into
 * it and back.  Engine lock held.
 */
#ifndef SIM_PAGE_FILE_H
#define SIM_PAGE_FILE_H

#include "maps.h"

/* Make the file if it is not made yet.  0 or a negative errno, for good. */
int sim_page_file_make(void);
/* Forget it; what is mapped stays so. */
void sim_page_file_close(void);
/* NULL: it is not made.  The program may have closed the descriptor. */
const struct sim_file_id *sim_page_file_id(int *ret_fd);

/*
 * Move plain memory to that place, and map the file in its stead.  No other thread, nor a
 * signal handler, uses the memory meanwhile.  0 or a negative errno: nothing is changed.
 */
int sim_page_file_take(uintptr_t from, size_t length, uint64_t at);
/* Give back the memory behind a part of the file. */
void sim_page_file_punch(uint64_t at, uint64_t length);

/* New private memory with what a mapping of the file has.  NULL: there is none. */
void *sim_page_file_copy(const struct sim_mapping *piece);
/* It takes the mapping's place.  0 or a negative errno: it does not, and is gone. */
int sim_page_file_put(const struct sim_mapping *piece, void *copy);

#endif
