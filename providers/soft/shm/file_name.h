/* SPDX-License-Identifier: BSD-2-Clause */
/* shm/file_name.h - the names of the files of processes: rings, and tables of direct access. */
#ifndef SIM_FILE_NAME_H
#define SIM_FILE_NAME_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_FILE_NAME_MAX 64u

/* A ring: from whom to whom. */
struct sim_ring_name {
	unsigned int from, to;
	uint32_t from_generation, to_generation;
	bool unfinished;		/* not yet for its reader to see */
};

void sim_ring_name_format(const struct sim_ring_name *name, char text[SIM_FILE_NAME_MAX]);

/* The table of direct access of a process. */
void sim_access_name_format(unsigned int slot, uint32_t generation, bool unfinished,
			    char text[SIM_FILE_NAME_MAX]);

/* For sim_folder_clean(): is it the name of any such file? */
bool sim_is_process_file(const char *file, void *unused);
/*
 * Is it one that nobody but the process of this slot (an unsigned int) would
 * use?  Its rings to others stay for their readers, who delete them.
 */
bool sim_is_file_of(const char *file, void *slot);

#endif
