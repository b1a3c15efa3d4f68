/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/enter.c - how an exported call gets the id behind the program's pointer, and
 * leaves it.  A thread that destroys the id waits until the others have left.
 */
#include "config.h"
#include "id_internal.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ret.h"

#define AREA_PREFETCHED 320u	/* of the provider's part */
#define CACHE_LINE 64u

static bool count_in(const void *object)
{
	struct polycm_id *id = (struct polycm_id *)(uintptr_t)object;

	(void)polycm_count_up(&id->inside);
	return true;
}

/* With other threads: check and count in one step, so that none destroys it in between. */
inline __attribute__((always_inline)) bool polycm_enter_unlocked(const struct polycm_id *id)
{
	if (!polycm_alone())
		return polycm_live_ask(&polycm_live_objects, id, count_in);
	return polycm_live(&polycm_live_objects, id) && count_in(id);
}

inline __attribute__((always_inline)) bool polycm_leave_unlocked(struct polycm_id *id)
{
	uint32_t left = polycm_count_down(&id->inside);

	/* The memory may be another object's by now: a thread that sleeps there checks again. */
	if (__builtin_expect(left == POLYCM_CLOSED, 0))
		(void)syscall(SYS_futex, &id->inside, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	return left & POLYCM_CLOSED;
}

static __attribute__((cold)) struct polycm_id *no_entry(int err)
{
	errno = -err;
	return NULL;
}

void polycm_wait_until_left(struct polycm_id *id)
{
	uint32_t inside;

	while ((inside = __atomic_load_n(&id->inside, __ATOMIC_ACQUIRE)) & ~POLYCM_CLOSED)
		(void)syscall(SYS_futex, &id->inside, FUTEX_WAIT_PRIVATE, inside, NULL, NULL, 0);
}

inline __attribute__((always_inline)) struct polycm_id *polycm_enter_to_end(struct rdma_cm_id *pub)
{
	struct polycm_id *id = (struct polycm_id *)(void *)pub;

	/* With many ids this one is not in the cache.  A pointer to no id does no harm. */
	__builtin_prefetch(id);
#pragma GCC unroll 32
	for (size_t at = offsetof(struct polycm_id, pub.route.path_rec);
	     at < sizeof(*id) + AREA_PREFETCHED; at += CACHE_LINE)
		__builtin_prefetch((const void *)((uintptr_t)id + at));
	polycm_why_clear();
	if (!polycm_enter_unlocked(id))
		return no_entry(polycm_fail(-EINVAL, "no id of rdma_create_id"));

	polycm_id_lock(id);
	if (!polycm_alone() &&
	    __builtin_expect(__atomic_load_n(&id->inside, __ATOMIC_RELAXED) & POLYCM_CLOSED, 0)) {
		polycm_leave(id);
		return no_entry(polycm_fail(-EINVAL, "another thread destroys the id"));
	}
	return id;
}

/* An id belongs to the process that created it, not to a forked child. */
static __attribute__((noinline)) int check_forked(struct polycm_id *id)
{
	struct polycm_channel *chan;
	bool inherited;

	chan = polycm_channel_lock(id);
	inherited = chan && polycm_channel_inherited(chan);
	polycm_channel_unlock(chan);
	if (!inherited)
		return 0;
	return polycm_fail(-EACCES, "the id is of the process that this one was forked from");
}

static inline int check_owner(struct polycm_id *id)
{
	return __builtin_expect(!polycm_forks.before, 1) ? 0 : check_forked(id);
}

int polycm_id_take(struct polycm_id *id)
{
	int err;

	/* Before its lock: of several threads that end it, only one may follow the pointer. */
	if (!polycm_live_remove(&polycm_live_objects, id))
		return polycm_fail(-EINVAL, "no id of rdma_create_id");
	polycm_id_lock(id);
	err = check_owner(id);
	if (!err)
		err = polycm_ev_check_acks(id, NULL, "rdma_destroy_id");
	if (!err) {
		(void)__atomic_or_fetch(&id->inside, POLYCM_CLOSED, __ATOMIC_SEQ_CST);
		return 0;
	}
	/* Where this fails for memory, no more is lost: nothing can be done with the id. */
	(void)polycm_live_add(&polycm_live_objects, id);
	polycm_id_unlock(id);
	return err;
}

struct polycm_id *polycm_enter(struct rdma_cm_id *pub)
{
	struct polycm_id *id = polycm_enter_to_end(pub);
	int err;

	if (!id)
		return NULL;
	err = check_owner(id);
	if (!err && !__atomic_load_n(&id->chan, __ATOMIC_RELAXED))
		err = polycm_fail(-EBADF, "the id's event channel was destroyed");
	if (!err)
		return id;
	polycm_leave(id);
	return no_entry(err);
}

/* With other threads, one of which may wait for this. */
static __attribute__((noinline)) void leave_shared(struct polycm_id *id)
{
	polycm_id_unlock(id);
	(void)polycm_leave_unlocked(id);
}

void polycm_leave(struct polycm_id *id)
{
	if (!polycm_alone()) {
		leave_shared(id);
		return;
	}
	polycm_id_unlock(id);
	id->inside--;
}
