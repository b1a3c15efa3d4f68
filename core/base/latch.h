/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/latch.h - a lock of four bytes, which is taken and given without a call as
 * long as nobody waits for it.  Else as a mutex: not recursive, no condition
 * variable goes with it, and waiting is no place to be cancelled in.  Zeroed
 * it is free; nothing needs to be done at its end.
 */
#ifndef POLYCM_CORE_LATCH_H
#define POLYCM_CORE_LATCH_H

#include <stdint.h>

#include "alone.h"
#include "hand_over.h"

enum { POLYCM_LATCH_FREE, POLYCM_LATCH_TAKEN, POLYCM_LATCH_WANTED };

struct polycm_latch {
	uint32_t word;			/* atomic */
};

void polycm_latch_wait(struct polycm_latch *latch) __attribute__((cold));
void polycm_latch_wake(struct polycm_latch *latch) __attribute__((cold));

/*
 * Alone, nobody holds it, and who waits is another thread.  Nor is there anybody
 * to hand over to: a thread that starts later begins after all of that.
 */
static inline void polycm_latch_take(struct polycm_latch *latch)
{
	uint32_t found = POLYCM_LATCH_FREE;

	if (polycm_alone()) {
		__atomic_store_n(&latch->word, POLYCM_LATCH_TAKEN, __ATOMIC_RELAXED);
		return;
	}
	if (!__atomic_compare_exchange_n(&latch->word, &found, POLYCM_LATCH_TAKEN, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		polycm_latch_wait(latch);
	take_over(latch);
}

/* false: somebody holds it. */
static inline bool polycm_latch_try(struct polycm_latch *latch)
{
	uint32_t found = POLYCM_LATCH_FREE;

	if (!__atomic_compare_exchange_n(&latch->word, &found, POLYCM_LATCH_TAKEN, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	take_over(latch);
	return true;
}

static inline void polycm_latch_give(struct polycm_latch *latch)
{
	if (polycm_alone()) {
		__atomic_store_n(&latch->word, POLYCM_LATCH_FREE, __ATOMIC_RELAXED);
		return;
	}
	hand_over(latch);
	if (__atomic_exchange_n(&latch->word, POLYCM_LATCH_FREE, __ATOMIC_RELEASE) ==
	    POLYCM_LATCH_WANTED)
		polycm_latch_wake(latch);
}

#ifdef LOCK_ORDER_CHECKED
#define polycm_latch_take(latch) (LOCK_ORDER_TAKE(latch), polycm_latch_take(latch))
#define polycm_latch_try(latch) (polycm_latch_try(latch) && (LOCK_ORDER_NOTE(latch), true))
#define polycm_latch_give(latch) (LOCK_ORDER_GIVE(latch), polycm_latch_give(latch))
#endif

#endif
