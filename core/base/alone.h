/* SPDX-License-Identifier: BSD-2-Clause */
/* base/alone.h - what a program of one thread can do without. */
#ifndef POLYCM_CORE_ALONE_H
#define POLYCM_CORE_ALONE_H

#include <pthread.h>
#include <stdbool.h>

#include "single_thread.h"

/* Certainly only the calling one. */
static inline bool polycm_alone(void)
{
	return single_thread();
}

/*
 * A mutex under which no thread is started stays as it is where there is only
 * one.  What polycm_lock() says is for polycm_unlock().
 */
static inline bool polycm_lock(pthread_mutex_t *mutex)
{
	if (polycm_alone())
		return false;
	(pthread_mutex_lock)(mutex);
	return true;
}

static inline void polycm_unlock(pthread_mutex_t *mutex, bool locked)
{
	if (locked)
		(pthread_mutex_unlock)(mutex);
}

#ifdef LOCK_ORDER_CHECKED
#define polycm_lock(mutex) (LOCK_ORDER_TAKE(mutex), polycm_lock(mutex))
#define polycm_unlock(mutex, locked) (LOCK_ORDER_GIVE(mutex), polycm_unlock(mutex, locked))
#endif

/* A sanitizer or valgrind looks for memory that is used after its end (memory_check.c). */
extern bool polycm_memory_checked;

/*
 * May a block that has ended be kept for the next one, with so many kept so
 * far?  Not where that would hide a use after the end.
 */
static inline bool polycm_may_keep(unsigned int num)
{
	return num < 64 && polycm_alone() && !polycm_memory_checked;
}

/* Of a counter that threads share: what it is then.  Alone without what an atomic change costs. */
#define polycm_count_up(counter)                                                                   \
	(polycm_alone() ? ++*(counter) : __atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST))
#define polycm_count_down(counter)                                                                 \
	(polycm_alone() ? --*(counter) : __atomic_sub_fetch(counter, 1, __ATOMIC_SEQ_CST))

#endif
