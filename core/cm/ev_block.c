/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/ev_block.c - the memory of events.
 *
 * An event must not be lost for want of memory: what it tells of has happened.
 * So each id and each multicast group reserves as many blocks as there may be
 * events of it that the program may hold, before anything can happen to it.  The
 * reserve belongs to all of them.  A program that makes as many ids as it ends
 * pays nothing for it.  A reserved block is used where malloc() has none.
 *
 * The reserve is made in slabs, and not written to before it is used, so that
 * the system gives no pages for it.
 */
#include "config.h"
#include "id_internal.h"
#include "core/base/fork.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

/* More blocks in the reserve than were promised, before some are given back. */
#define SLACK 256u

#define SLAB_BLOCKS 64u
#define BLOCK_ALIGN _Alignof(max_align_t)
#define BLOCK_SIZE                                                                         \
	((sizeof(struct polycm_ev) + UINT8_MAX + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN)

/* Blocks never used have a place in the set of live events, and are not yet in it. */
struct slab {
	struct slab *older;
	unsigned int used;		/* of its blocks, the first, at some time */
	_Alignas(max_align_t) unsigned char blocks[SLAB_BLOCKS][BLOCK_SIZE];
};

static struct polycm_latch blocks_lock;	/* the next four */
static struct slab *newest;
static struct polycm_ev *reserve;	/* those given back, linked by next */
static size_t promised;
static size_t made;			/* in slabs, used or not */

/*
 * Blocks with room for whatever data, which a program with one thread gives
 * back and takes again without a look at the heap.  They stay in the set of
 * live events, as ones that nobody was given.
 */
static struct polycm_ev *spare;		/* linked by next */
static unsigned int num_spare;

static __attribute__((noinline)) void give_back(struct polycm_ev *ev)
{
	if (ev->listed)
		(void)polycm_live_remove(&polycm_live_events, ev);
	free(ev);
}

/* What others look at who walk the set. */
static void init_block(struct polycm_ev *ev)
{
	ev->charge = 0;
	ev->why = NULL;
	ev->owner = NULL;
}

/* Into the set of live events; NULL: there is no memory for that, and the block is gone. */
static __attribute__((noinline)) struct polycm_ev *list(struct polycm_ev *ev)
{
	ev->listed = !polycm_live_add(&polycm_live_events, ev);
	if (ev->listed)
		return ev;
	free(ev);
	return NULL;
}

/* Of a block that nobody was given: it is in the set, or NULL. */
static __attribute__((noinline)) struct polycm_ev *make_block(size_t len)
{
	struct polycm_ev *ev = malloc(sizeof(*ev) + len);

	if (!ev)
		return NULL;
	init_block(ev);
	ev->keepable = ev->reserved = false;
	return list(ev);
}

/* ------------------------------------------------------------------------
 * The reserve.
 */

static struct polycm_ev *block_of(struct slab *slab, unsigned int i)
{
	return (struct polycm_ev *)(void *)slab->blocks[i];
}

static void free_slab(struct slab *slab, unsigned int num_places)
{
	while (num_places)
		polycm_live_unreserve(&polycm_live_events, block_of(slab, --num_places));
	free(slab);
}

static int add_slab_locked(void)
{
	struct slab *slab = malloc(sizeof(*slab));

	if (!slab)
		return -ENOMEM;
	for (unsigned int i = 0; i < SLAB_BLOCKS; i++)
		if (polycm_live_reserve(&polycm_live_events, block_of(slab, i))) {
			free_slab(slab, i);
			return -ENOMEM;
		}
	slab->used = 0;
	slab->older = newest;
	newest = slab;
	made += SLAB_BLOCKS;
	return 0;
}

/* What was used stays: it may be with the program. */
static __attribute__((noinline)) void free_slabs(void)
{
	while (made >= promised + SLACK + SLAB_BLOCKS && !newest->used) {
		struct slab *slab = newest;

		newest = slab->older;
		made -= SLAB_BLOCKS;
		free_slab(slab, SLAB_BLOCKS);
	}
}

static inline void trim_locked(void)
{
	if (__builtin_expect(made >= promised + SLACK + SLAB_BLOCKS, 0))
		free_slabs();
}

static __attribute__((noinline)) int grow_locked(void)
{
	int err = 0;

	while (made < promised && !err)
		err = add_slab_locked();
	return err;
}

int polycm_ev_reserve(unsigned int num)
{
	int err = 0;

	polycm_latch_take(&blocks_lock);
	promised += num;
	if (__builtin_expect(made < promised, 0)) {
		err = grow_locked();
		if (err)
			promised -= num;
	}
	polycm_latch_give(&blocks_lock);
	return err;
}

void polycm_ev_unreserve(unsigned int num)
{
	polycm_latch_take(&blocks_lock);
	promised -= num;
	trim_locked();
	polycm_latch_give(&blocks_lock);
}

/* From the oldest, so that the newest can be given back. */
static struct polycm_ev *use_locked(void)
{
	struct slab *oldest = NULL;
	struct polycm_ev *ev;

	for (struct slab *slab = newest; slab; slab = slab->older)
		if (slab->used < SLAB_BLOCKS)
			oldest = slab;
	if (!oldest)
		return NULL;
	ev = block_of(oldest, oldest->used++);
	init_block(ev);
	ev->keepable = false;
	ev->reserved = ev->listed = true;
	polycm_live_add_reserved(&polycm_live_events, ev);
	return ev;
}

static __attribute__((cold)) struct polycm_ev *take_reserved(void)
{
	struct polycm_ev *ev;

	polycm_latch_take(&blocks_lock);
	ev = reserve;
	if (ev)
		reserve = ev->next;
	else
		ev = use_locked();
	polycm_latch_give(&blocks_lock);
	return ev;
}

static bool no_longer_charged(const void *object)
{
	struct polycm_ev *ev = (struct polycm_ev *)(uintptr_t)object;

	__atomic_store_n(&ev->charge, 0, __ATOMIC_RELEASE);
	return true;
}

static __attribute__((cold, noinline)) void put_reserved(struct polycm_ev *ev)
{
	/* Who walks the set may be looking at it. */
	(void)polycm_live_ask(&polycm_live_events, ev, no_longer_charged);
	ev->why = NULL;
	polycm_latch_take(&blocks_lock);
	ev->next = reserve;
	reserve = ev;
	trim_locked();
	polycm_latch_give(&blocks_lock);
}

/* ------------------------------------------------------------------------
 * Blocks.
 */

static struct polycm_ev *take_spare(void)
{
	struct polycm_ev *ev = spare;

	spare = ev->next;
	num_spare--;
	/* It left the set while there were more threads. */
	return __builtin_expect(ev->listed, 1) ? ev : list(ev);
}

struct polycm_ev *polycm_ev_block_get(uint8_t len)
{
	bool keepable = polycm_may_keep(0);
	struct polycm_ev *ev;

	if (keepable && spare) {
		ev = take_spare();
		return __builtin_expect(ev != NULL, 1) ? ev : take_reserved();
	}
	ev = make_block(keepable ? UINT8_MAX : len);
	if (!ev)
		return take_reserved();
	ev->keepable = keepable;
	return ev;
}

void polycm_ev_block_put(struct polycm_ev *ev)
{
	if (__builtin_expect(ev->reserved, 0)) {
		put_reserved(ev);
		return;
	}
	if (!ev->keepable || !polycm_may_keep(num_spare)) {
		give_back(ev);
		return;
	}
	ev->charge = 0;
	ev->why = NULL;
	ev->next = spare;
	spare = ev;
	num_spare++;
}

__attribute__((constructor)) static void watch_forks(void)
{
	polycm_forks_also(&blocks_lock);
}
