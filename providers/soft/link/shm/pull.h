/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/shm/pull.h - reading from and writing to another process's memory by system calls,
 * where the system lets processes of one user do so.  Engine lock held.
 */
#ifndef SIM_PULL_H
#define SIM_PULL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "ring.h"

struct sim_pull {
	bool allowed;
	int32_t pid;
	uint64_t probe_address, probe_value;
};

/* The writer of a new ring: say where our word is. */
void sim_pull_offer(struct sim_ring_header *ring);
/* Its reader: try to read that, and note in the ring whether it could. */
void sim_pull_try(struct sim_pull *pull, struct sim_ring_header *ring);
/* 0, -ESRCH: it is gone, -EPERM, -EFAULT. */
int sim_pull(const struct sim_pull *pull, const struct iovec *remote, unsigned int remote_parts,
	     const struct iovec *local, unsigned int local_parts, size_t len);
/*
 * The other way.  The caller has just seen that the process is the same (sim_pull() of nothing):
 * it may execute another program, and its number may be given to another process.
 */
int sim_push(const struct sim_pull *pull, uint64_t remote, const struct iovec *local,
	     unsigned int local_parts, size_t len);

#endif
