/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/shm/access.h - direct access: an initiator reads and writes the memory of another
 * process of the fabric, and no thread of that process takes part.
 *
 * For this each process publishes in a table what its QPs and regions allow.  The table is a
 * file of the fabric's folder, which the others map.  Who uses an entry visits its owner
 * (shm/visit.h): enter, compare the entry's first word, do the work, leave.
 *
 * Engine lock held for all calls.
 */
#ifndef SIM_ACCESS_H
#define SIM_ACCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "maps.h"

#define SIM_ACCESS_KEYS 4096u
#define SIM_ACCESS_QPS 1024u

/* A region.  What belongs together has the same domain. */
struct sim_access_key {
	_Alignas(64) _Atomic uint32_t key;	/* 0: none */
	uint32_t access;			/* enum ibv_access_flags */
	uint64_t domain;
	uint64_t iova, length;
	uint64_t memory;			/* of the owner, behind iova */
	uint64_t shared_from, shared_length;	/* of the owner: pages that others map; length 0: none */
	uint64_t shared_at;			/* in the file of pages */
};

/* A connected QP, in a state in which it carries out requests. */
struct sim_access_qp {
	_Alignas(64) _Atomic uint32_t qpn;	/* 0: none */
	uint32_t access;
	uint64_t domain;
	uint32_t peer_qpn, peer_slot;
	uint32_t port, peer_port;		/* indexes in the fabric */
	bool reads;				/* max_dest_rd_atomic is not 0 */
};

struct sim_access_table {
	uint64_t magic;
	int32_t pages_fd;			/* of the owner: the file of pages (page_file.h) */
	struct sim_file_id pages;
	struct sim_access_key keys[SIM_ACCESS_KEYS];
	struct sim_access_qp qps[SIM_ACCESS_QPS];
};

/* POLYCM_SIM_DIRECT: may memory be mapped, and not only reached by system calls? */
bool sim_access_maps(void);

/* --- The owner. --- */

/* The table of this process, made by the first call.  NULL: direct access is off, or impossible. */
struct sim_access_table *sim_access_own(void);
/* The same, if there is one already. */
struct sim_access_table *sim_access_made(void);

/* --- The initiator. --- */

/*
 * Begin a visit: the table of the process in the slot, until sim_visit_leave().  NULL: its
 * memory cannot be reached now.
 */
const struct sim_access_table *sim_access_enter(unsigned int slot);
/* During a visit: what it says of the key.  False: it says nothing. */
bool sim_access_read_key(const struct sim_access_table *table, uint32_t index, uint32_t key,
			 struct sim_access_key *ret_key);
/*
 * During a visit: the owner's memory at `remote', as it is mapped here.  NULL: it is not, or not
 * all of it.
 */
void *sim_access_mapped(unsigned int slot, const struct sim_access_key *entry, uint64_t remote,
			size_t len);
/*
 * During a visit: len bytes to or from the owner's memory at `remote', by system calls.  0; else
 * part of it may be done, and packets have to do it all.
 */
int sim_access_write(unsigned int slot, uint64_t remote, const struct iovec *local,
		     unsigned int parts, size_t len);
int sim_access_read(unsigned int slot, uint64_t remote, const struct iovec *local,
		    unsigned int parts, size_t len);

/* --- For peer.c and shm.c. --- */

/* The table of another process. */
struct sim_access_peer {
	struct sim_access_table *table;		/* NULL: not mapped */
	bool tried;				/* to map it; it failed if table is NULL */
	char *pages;				/* its file of pages; NULL: not mapped */
	bool tried_pages;
	uint64_t lived_at;			/* the clock's tick at which its owner was asked last */
};
void sim_access_unmap(struct sim_access_peer *peer);
/* The fabric is left, or this is a child of fork(). */
void sim_access_forget_own(void);

#endif
