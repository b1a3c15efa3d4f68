/* SPDX-License-Identifier: BSD-2-Clause */
/* link/shm/maps.h - what this process has mapped, as /proc/self/maps and smaps say. */
#ifndef SIM_MAPS_H
#define SIM_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct sim_file_id {
	unsigned int major, minor;
	uint64_t inode;
};

struct sim_mapping {
	uintptr_t from, to;
	uint64_t offset;		/* in the file */
	int prot;			/* PROT_* */
};

struct sim_file_id sim_file_id(const struct stat *st);
bool sim_file_same(const struct sim_file_id *a, const struct sim_file_id *b);

/*
 * Where these bytes of a file are mapped, in pieces that are cut to them: the first ones, max
 * at most.  Returns their number, or a negative errno.
 */
int sim_maps_of(const struct sim_file_id *id, uint64_t at, uint64_t length,
		struct sim_mapping *ret_pieces, unsigned int max);

/* Bytes of the process that are in memory. */
uint64_t sim_maps_resident(void);

/* Has the process something that hands memory to the kernel for later (io_uring, aio)? */
bool sim_maps_hand_over(void);
/*
 * Is all of the range plain anonymous memory, private, readable and writable, without anything
 * that would be lost if a file was mapped in its place?  And does nothing hand memory over?
 */
bool sim_maps_plain(uintptr_t from, size_t length);

#endif
