/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shm/segment_internal.h - the segment as it lies in memory, and its file.
 * Engine lock held.
 */
#ifndef SIM_SEGMENT_INTERNAL_H
#define SIM_SEGMENT_INTERNAL_H

#include <pthread.h>

#include "folder.h"
#include "segment.h"

struct segment {
	uint64_t magic;			/* written last */
	uint32_t version;
	uint32_t slots;
	uint64_t size;
	uint64_t reserved;		/* bytes from the start that have memory behind them */
	struct sim_scenario_id scenario;
	uint32_t last_slot;		/* given out last */
	_Atomic uint32_t used_slots;	/* from there on none was ever given out */
	int32_t lock_pid;		/* who had the lock last, for people */
	pthread_mutex_t segment_lock;
	struct sim_slot slot[SIM_MAX_SLOTS];
	_Alignas(64) uint8_t areas[];
};

/* Where it is in memory, and its file.  Of a process there is one. */
struct sim_segment_file {
	struct segment *window;		/* reserved once; then never unmapped */
	int fd;
	const struct sim_area_layout *layout;
	size_t at[SIM_AREAS];		/* where they begin, from the start of the segment */
	size_t dense, size;		/* of all of it; dense: has memory behind it from the start */
};

/* Where the areas lie. */
void sim_segment_file_lay_out(struct sim_segment_file *file,
			      const struct sim_area_layout layout[SIM_AREAS]);
/*
 * Open the segment of the folder, or make it where there is none that a process
 * uses, and map it.  The folder is locked.  On an error the descriptor may be
 * open.
 */
int sim_segment_file_open(struct sim_segment_file *file, struct sim_folder *folder);
/* Fresh private memory in its place; the descriptor stays. */
int sim_segment_file_unmap(struct sim_segment_file *file);
/* Memory behind the file between these offsets, so that touching it cannot fail. */
int sim_segment_file_back(const struct sim_segment_file *file, uint64_t from, uint64_t to);
/* Take (F_WRLCK) or give up (F_UNLCK) the lock of a slot. */
int sim_segment_file_lock_slot(const struct sim_segment_file *file, unsigned int slot, short type);

#endif
