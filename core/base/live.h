/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/live.h - the addresses of what programs hold: ids and channels in one set,
 * events in another.  A pointer from a program is looked up here before it is
 * followed, so that one that is stale, or was never ours, is told without
 * being read.
 *
 * Any thread; looking up takes no lock, unless another thread is just removing
 * something nearby.  The locks of the events' set are leaves, under those of the
 * objects' set a channel may be locked.
 */
#ifndef POLYCM_CORE_LIVE_H
#define POLYCM_CORE_LIVE_H

#include <stdbool.h>

struct polycm_live_set;
extern struct polycm_live_set polycm_live_objects, polycm_live_events;
/* What plugins hold: children that were not posted yet, and timers. */
extern struct polycm_live_set polycm_live_children, polycm_live_timers;

/* 0 or -ENOMEM.  Not twice for one address. */
int polycm_live_add(struct polycm_live_set *set, const void *object);
/*
 * A place for an object that is to be added later, when nothing may fail: 0 or
 * -ENOMEM.  Then one of the two below.
 */
int polycm_live_reserve(struct polycm_live_set *set, const void *object);
void polycm_live_add_reserved(struct polycm_live_set *set, const void *object);
void polycm_live_unreserve(struct polycm_live_set *set, const void *object);
/* Was it there?  Of several threads that remove it, one is told so. */
bool polycm_live_remove(struct polycm_live_set *set, const void *object);
/* The same where may(object) says so, which is asked while the object stays. */
bool polycm_live_remove_if(struct polycm_live_set *set, const void *object,
			   bool (*may)(const void *object));
bool polycm_live(struct polycm_live_set *set, const void *object);
/* Around fork(): no set is being changed when the child gets its copy of them. */
void polycm_live_before_fork(void);
void polycm_live_after_fork(void);
/*
 * What fn says of the object, under the lock of what holds it: it stays
 * meanwhile.  false: it is not there.
 */
bool polycm_live_ask(struct polycm_live_set *set, const void *object,
		     bool (*fn)(const void *object));
/* fn for all that are there, in no order, under the lock of what holds it: it stays meanwhile. */
void polycm_live_walk(struct polycm_live_set *set, void (*fn)(const void *object, void *arg),
		      void *arg);

#endif
