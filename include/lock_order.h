/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock_order.h - the locks of polycm, in the order in which a thread may take them, and a
 * check of it.  docs/design.md (section 11) says what each protects.
 *
 * With --enable-lock-order the compiler includes this header first in each file.  It then
 * wraps the calls that take and release locks: a thread that takes a lock while it holds one
 * that comes later aborts.  The check knows a lock by its name, the last word of what such a
 * call is given; so each lock has a name of its own.  It ignores locks that are not listed.
 */
#ifndef LOCK_ORDER_H
#define LOCK_ORDER_H

/* Outermost first.  true: a thread may hold several of these. */
#define LOCK_ORDER(LOCK)			\
	LOCK(rsocket_lock, false)		\
	LOCK(rsockets_lock, false)		\
	LOCK(posting_lock, true)		\
	LOCK(polling_lock, true)		\
	LOCK(sysfs_lock, false)			\
	LOCK(id_lock, true)			\
	LOCK(sim_setup_lock, false)		\
	LOCK(pull_lock, false)			\
	LOCK(listing_lock, false)		\
	LOCK(slots_lock, false)			\
	LOCK(busy_lock, false)			\
	LOCK(xrcds_lock, false)			\
	LOCK(selection_lock, false)		\
	LOCK(timers_lock, false)		\
	LOCK(engine_lock, false)		\
	LOCK(segment_lock, false)		\
	LOCK(kernel_devices_lock, false)	\
	LOCK(registry_lock, true)		\
	LOCK(options_lock, false)		\
	LOCK(real_list_lock, false)		\
	LOCK(devices_lock, false)		\
	LOCK(handles_lock, false)		\
	LOCK(kept_lock, false)			\
	LOCK(channels_lock, false)		\
	LOCK(lookup_lock, false)		\
	LOCK(channel_lock, true)		\
	LOCK(clock_lock, false)			\
	LOCK(ack_lock, false)			\
	LOCK(blocks_lock, false)		\
	LOCK(live_lock, true)			\
	LOCK(cq_lock, false)			\
	LOCK(rules_lock, false)			\
	LOCK(waiters_lock, false)

#ifdef LOCK_ORDER_CHECKED

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct lock_order_row {
	const char *name;
	bool nests;
};

/* What a thread holds.  Small: a plugin has little room for variables of threads. */
struct lock_order_held {
	unsigned char num, ranks[15];
};

/*
 * One of each in a library, by sections that the linker keeps once.  The core's serves all:
 * a plugin asks for it by extension(LOCK_ORDER_SHARED), so that the locks of several
 * libraries are compared.
 */
#define LOCK_ORDER_ONE(section_) __attribute__((weak, visibility("hidden"), section(section_)))
LOCK_ORDER_ONE(".gnu.linkonce.tb.lock_order") __thread struct lock_order_held lock_order_own;
LOCK_ORDER_ONE(".gnu.linkonce.b.lock_order") struct lock_order_held *(*lock_order_shared)(void);

#define LOCK_ORDER_SHARED "lock order"
#define LOCK_ORDER_SHARE(core)								\
	do {										\
		const void *shared = (core)->extension(LOCK_ORDER_SHARED, 1);		\
											\
		if (shared)								\
			memcpy(&lock_order_shared, shared, sizeof(lock_order_shared));	\
	} while (0)

static inline struct lock_order_held *lock_order_held(void)
{
	return lock_order_shared ? lock_order_shared() : &lock_order_own;
}

static inline const struct lock_order_row *lock_order_row(unsigned int rank)
{
#define LOCK_ORDER_ROW(name, nests) { #name, nests },
	static const struct lock_order_row rows[] = {
		LOCK_ORDER(LOCK_ORDER_ROW) { NULL, false }
	};

	return &rows[rank];
}

static inline unsigned int lock_order_rank(const char *text)
{
	const char *name = text + strlen(text);
	unsigned int rank = 0;

	while (name > text && (isalnum(name[-1]) || name[-1] == '_'))
		name--;
	while (lock_order_row(rank)->name && strcmp(lock_order_row(rank)->name, name))
		rank++;
	return rank;
}

/* Without a check: for polycm_latch_try(), whose callers never wait. */
static inline void lock_order_note(unsigned int rank)
{
	struct lock_order_held *held = lock_order_held();

	if (lock_order_row(rank)->name && held->num < sizeof(held->ranks))
		held->ranks[held->num++] = (unsigned char)rank;
}

static inline void lock_order_take(unsigned int rank)
{
	const struct lock_order_held *held = lock_order_held();
	const struct lock_order_row *row = lock_order_row(rank);

	if (!row->name)
		return;
	for (unsigned int i = 0; i < held->num; i++) {
		if (held->ranks[i] < rank || (held->ranks[i] == rank && row->nests))
			continue;
		dprintf(STDERR_FILENO, "lock order: a thread that holds %s takes %s\n",
			lock_order_row(held->ranks[i])->name, row->name);
		abort();
	}
	lock_order_note(rank);
}

/* For one that may not be held: no effect. */
static inline void lock_order_give(unsigned int rank)
{
	struct lock_order_held *held = lock_order_held();

	for (unsigned int i = held->num; i-- > 0;) {
		if (held->ranks[i] != rank)
			continue;
		memmove(&held->ranks[i], &held->ranks[i + 1], --held->num - i);
		return;
	}
}

/* A failed try takes nothing.  A successful one is checked like any lock: callers wait if it fails. */
static inline int lock_order_tried(unsigned int rank, int error)
{
	if (!error || error == EOWNERDEAD)
		lock_order_take(rank);
	return error;
}

#define LOCK_ORDER_RANK(lock)									\
	({											\
		static unsigned int known_;							\
		unsigned int rank_ = __atomic_load_n(&known_, __ATOMIC_RELAXED);		\
												\
		if (!rank_) {									\
			rank_ = lock_order_rank(#lock) + 1;					\
			__atomic_store_n(&known_, rank_, __ATOMIC_RELAXED);			\
		}										\
		rank_ - 1;									\
	})
#define LOCK_ORDER_TAKE(lock) lock_order_take(LOCK_ORDER_RANK(lock))
#define LOCK_ORDER_NOTE(lock) lock_order_note(LOCK_ORDER_RANK(lock))
#define LOCK_ORDER_GIVE(lock) lock_order_give(LOCK_ORDER_RANK(lock))
#define LOCK_ORDER_TRIED(lock, error) lock_order_tried(LOCK_ORDER_RANK(lock), error)

#define pthread_mutex_lock(m) (LOCK_ORDER_TAKE(m), pthread_mutex_lock(m))
#define pthread_mutex_trylock(m) LOCK_ORDER_TRIED(m, pthread_mutex_trylock(m))
#define pthread_mutex_unlock(m) (LOCK_ORDER_GIVE(m), pthread_mutex_unlock(m))
/* In a child of fork() too, instead of a release. */
#define pthread_mutex_init(m, attr) (LOCK_ORDER_GIVE(m), pthread_mutex_init(m, attr))
#define pthread_rwlock_rdlock(l) (LOCK_ORDER_TAKE(l), pthread_rwlock_rdlock(l))
#define pthread_rwlock_wrlock(l) (LOCK_ORDER_TAKE(l), pthread_rwlock_wrlock(l))
#define pthread_rwlock_unlock(l) (LOCK_ORDER_GIVE(l), pthread_rwlock_unlock(l))
#define pthread_spin_lock(l) (LOCK_ORDER_TAKE(l), pthread_spin_lock(l))
#define pthread_spin_unlock(l) (LOCK_ORDER_GIVE(l), pthread_spin_unlock(l))

#else

#define LOCK_ORDER_TAKE(lock) (void)0
#define LOCK_ORDER_GIVE(lock) (void)0
#define LOCK_ORDER_TRIED(lock, error) (error)
#define LOCK_ORDER_SHARE(core) (void)(core)

#endif
#endif
