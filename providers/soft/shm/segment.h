/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shm/segment.h - the memory that all processes of a shared fabric map: its processes, which
 * of them are alive, which numbers each owns, and who has mail.
 *
 * Engine lock held unless a comment says otherwise.  Without a shared fabric the calls are
 * harmless: there is only slot 0, nothing to reclaim and nothing to lock.
 */
#ifndef SIM_SEGMENT_H
#define SIM_SEGMENT_H

#include <stdatomic.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_MAX_SLOTS 1024u	/* processes on one shared fabric */
#define SIM_NOBODY SIM_MAX_SLOTS	/* no process; what is sent there is lost */

struct sim_folder;

enum sim_slot_state { SIM_SLOT_FREE, SIM_SLOT_LIVE };

/* The NIC thread: awake; to be rung; to be rung unless the program polled lately (doorbell.h). */
enum sim_sleep { SIM_AWAKE, SIM_SLEEPS, SIM_RELIES };

/* A process.  Mail is a bit for each slot that sent something, and a bit for each word of bits. */
struct sim_slot {
	_Atomic uint32_t state;
	_Atomic uint32_t generation;	/* counts the processes that had the slot */
	int32_t pid;			/* for people */
	_Atomic uint64_t capture;	/* the file that it writes its packets to; 0: none */
	_Alignas(64) _Atomic uint64_t summary;
	_Atomic uint32_t sleeping;	/* enum sim_sleep */
	_Atomic uint32_t doorbell;	/* futex */
	_Atomic uint64_t polled_at;	/* ns of CLOCK_MONOTONIC, while the NIC thread relies on it */
	_Atomic uint32_t patience;	/* ns after that before senders ring (trust.h) */
	_Atomic uint64_t inbox[SIM_MAX_SLOTS / 64];
	/* Direct access to memory (visit.h). */
	_Alignas(64) _Atomic uint64_t inside;	/* whose memory the process is in; it writes this */
	_Alignas(64) _Atomic uint32_t closed;	/* why nobody may be in its memory */
	/* Changes seldom, so that senders have its cache line. */
	_Atomic uint32_t watches;	/* slot + 1 whose ring it looks at without mail; 0: none */
};

#define SIM_SEGMENT_FILE "segment"
/* Does another process hold the lock of any of these slots of an open segment file? */
bool sim_slots_alive(int fd, unsigned int first, unsigned int count);

/* Tables of the layers above, which know what is in them; all zero is empty. */
enum sim_area {
	SIM_AREA_CHANGES,
	SIM_AREA_QPNS,
	SIM_AREA_GROUPS,
	SIM_AREA_PACES,
	SIM_AREA_COUNTERS,
	SIM_AREA_DECISIONS,
	SIM_AREA_PORTS,			/* last: sparse */
	SIM_AREAS
};

struct sim_area_layout {
	size_t size;
	size_t sparse;			/* bytes at its end that have no memory at first */
	/* Under the segment's lock: a process is gone; a process died during a change.  Or NULL. */
	void (*drop_slot)(void *area, unsigned int slot);
	void (*repair)(void *area);
};

/* The layout is the same in all processes of this version, and whenever a process joins. */
int sim_segment_join(const char *fabric, const struct sim_area_layout layout[SIM_AREAS]);
void sim_segment_leave(void);
/* In the child of a fork(): forget the segment, unchanged.  The child keeps its parent's slot alive. */
void sim_segment_after_fork(void);

/* For the next two to read. */
extern struct sim_place {
	bool joined;
	unsigned int slot;
} sim_segment_place;

static inline bool sim_segment_joined(void)
{
	return sim_segment_place.joined;
}

static inline unsigned int sim_segment_slot(void)
{
	return sim_segment_place.slot;
}

void *sim_segment_area(enum sim_area area);
struct sim_folder *sim_segment_folder(void);

/* What the fabric is made of, as its processes say; 0 at first.  Under the lock. */
struct sim_scenario_id {
	uint64_t digest;		/* of the file that has the nodes */
	uint64_t began;			/* on the real clock */
};
struct sim_scenario_id *sim_segment_scenario(void);
struct sim_slot *sim_segment_peer(unsigned int slot);
/* Our own; no lock needed, and never unmapped. */
struct sim_slot *sim_segment_self(void);
/* Tell the other processes, now and later, to which file we write our packets. */
void sim_segment_set_capture(uint64_t file);
bool sim_segment_is_shared(const struct sim_slot *slot);	/* or just our own */
/* Tell `to` that there is something from `from`. */
void sim_segment_notify(unsigned int to, unsigned int from);
/* The same for a record in our ring to it, which it may look at itself. */
void sim_segment_sent(unsigned int to);
/* Make all processes attend to that one. */
void sim_segment_notify_all(unsigned int from);
/* Does the slot have mail from that process that is not read? */
static inline bool sim_slot_has_mail(const struct sim_slot *slot, unsigned int from)
{
	return atomic_load(&slot->inbox[from / 64]) >> (from % 64) & 1;
}
void sim_segment_ring(struct sim_slot *slot);	/* the doorbell, whether the thread sleeps or not */

/* The lock of the tables; a holder that dies leaves them repaired. */
void sim_segment_lock(void);
void sim_segment_unlock(void);
/* No lock needed: is the process of a slot gone, and nobody has noticed? */
bool sim_segment_is_dead(unsigned int slot);
/* With the lock: if the process of a slot is gone, free what it had.  True: it is gone. */
bool sim_segment_reclaim(unsigned int slot);
bool sim_segment_reclaim_all(void);
/* As sim_segment_reclaim(), and takes the lock. */
void sim_segment_check(unsigned int slot);
/* Make sure that part of the segment has memory behind it: 0 or -ENOMEM. */
int sim_segment_reserve(const void *start, size_t len);

#endif
