/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_ev_block.c - the memory of events.
 *
 * An event must not be lost for want of memory: what it tells of has happened.
 * So each id and each multicast group reserves as many blocks as there may be
 * events of it that somebody waits for, before anything can happen to it.  The
 * reserve belongs to all of them.  A program that makes as many ids as it ends
 * pays a count for it.  A reserved block is used where malloc() has none.
 */
#include "config.h"
#include "id_internal.h"

#include <errno.h>
#include <stdlib.h>

/* More blocks in the reserve than were promised, before some are given back. */
#define SLACK 256u

static struct polycm_latch lock;	/* the next three */
static struct polycm_ev *reserve;	/* linked by next */
static size_t promised;
static size_t made;			/* in the reserve, and in use out of it */

/*
 * Blocks with room for whatever data, which a program with one thread gives
 * back and takes again without a look at the heap.  They stay in the set of
 * live events, as ones that nobody was given.
 */
static struct polycm_ev *spare;		/* linked by next */
static unsigned int num_spare;

static void give_back(struct polycm_ev *ev)
{
	if (ev->listed)
		(void)polycm_live_remove(&polycm_live_events, ev);
	free(ev);
}

/* Of a block that nobody was given: it is in the set, or NULL. */
static struct polycm_ev *make_block(size_t len)
{
	struct polycm_ev *ev = malloc(sizeof(*ev) + len);

	if (!ev)
		return NULL;
	ev->keepable = ev->reserved = false;
	ev->charge = 0;
	ev->why = NULL;
	ev->owner = NULL;
	ev->listed = !polycm_live_add(&polycm_live_events, ev);
	if (ev->listed)
		return ev;
	free(ev);
	return NULL;
}

/* ------------------------------------------------------------------------
 * The reserve.
 */

static void trim_locked(void)
{
	while (reserve && made > promised + SLACK) {
		struct polycm_ev *ev = reserve;

		reserve = ev->next;
		made--;
		give_back(ev);
	}
}

int polycm_ev_reserve(unsigned int num)
{
	struct polycm_ev *ev;
	int err = 0;

	polycm_latch_take(&lock);
	promised += num;
	while (made < promised) {
		ev = make_block(UINT8_MAX);
		if (!ev) {
			promised -= num;
			err = -ENOMEM;
			break;
		}
		ev->reserved = true;
		ev->next = reserve;
		reserve = ev;
		made++;
	}
	polycm_latch_give(&lock);
	return err;
}

void polycm_ev_unreserve(unsigned int num)
{
	polycm_latch_take(&lock);
	promised -= num;
	trim_locked();
	polycm_latch_give(&lock);
}

static __attribute__((cold)) struct polycm_ev *take_reserved(void)
{
	struct polycm_ev *ev;

	polycm_latch_take(&lock);
	ev = reserve;
	if (ev)
		reserve = ev->next;
	polycm_latch_give(&lock);
	return ev;
}

static bool no_longer_charged(const void *object)
{
	struct polycm_ev *ev = (struct polycm_ev *)(uintptr_t)object;

	__atomic_store_n(&ev->charge, 0, __ATOMIC_RELEASE);
	return true;
}

static __attribute__((cold)) void put_reserved(struct polycm_ev *ev)
{
	/* Who walks the set may be looking at it. */
	(void)polycm_live_ask(&polycm_live_events, ev, no_longer_charged);
	ev->why = NULL;
	polycm_latch_take(&lock);
	ev->next = reserve;
	reserve = ev;
	trim_locked();
	polycm_latch_give(&lock);
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
	if (!ev->listed && polycm_live_add(&polycm_live_events, ev)) {
		free(ev);
		return NULL;
	}
	ev->listed = true;
	return ev;
}

struct polycm_ev *polycm_ev_block_get(uint8_t len)
{
	bool keepable = polycm_may_keep(0);
	struct polycm_ev *ev;

	if (keepable && spare) {
		ev = take_spare();
	} else {
		ev = make_block(keepable ? UINT8_MAX : len);
		if (ev)
			ev->keepable = keepable;
	}
	return ev ? ev : take_reserved();
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
