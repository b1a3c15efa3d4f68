/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel/handles.c - the user ids (uid) that the kernel's events carry, and the count
 * of events that readers are processing.
 *
 * A uid is an index into a table and a generation, so a stale or forged one finds
 * nothing.  DESTROY_ID, LEAVE_MCAST and MIGRATE_ID report how many events of the object
 * readers got; whoever ends or moves the object waits until they are processed.
 *
 * The lock protects the free list.  Readers take no lock: a reader first counts itself
 * at the place and then checks the uid there; whoever removes a uid first clears it and
 * then checks the count.  In the same way a waiter announces itself before it checks the
 * counts, and a reader counts before it checks for waiters.  Places never move.
 */
#include "config.h"
#include "internal.h"

#include "core/base/alone.h"
#include "core/base/interposer.h"

#include <pthread.h>
#include <stdlib.h>

#define FIRST_PLACES 64u	/* a power of 2 */
#define NUM_PARTS 20u

/*
 * A reader with an event waits only for the kernel or for the device list.  If the count is not
 * reached by then, it is most likely the kernel's mistake.
 */
#define SETTLE_NS UINT64_C(5000000000)

struct place {
	_Atomic uint64_t uid;		/* 0: free */
	atomic_uint busy;		/* readers that check or use it */
	struct kernel_handle *handle;
	uint32_t generation;
	uint32_t next_free;		/* index + 1; 0: none */
};

static pthread_mutex_t handles_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress;
static pthread_once_t once = PTHREAD_ONCE_INIT;	/* of progress */
static atomic_uint waiters;		/* on progress */
/* Each twice as large as all before it. */
static _Atomic(struct place *) parts[NUM_PARTS];
static uint32_t num_places;
static uint32_t first_free;		/* index + 1; 0: none */

static void init(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&progress, &attr);
	pthread_condattr_destroy(&attr);
}

/* Lock, to wait for readers; cancellation is off until end_wait(). */
static void begin_wait(int *old_cancel_state)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, old_cancel_state);
	pthread_once(&once, init);
	pthread_mutex_lock(&handles_lock);
	atomic_fetch_add(&waiters, 1);
}

static void end_wait(int old_cancel_state)
{
	atomic_fetch_sub(&waiters, 1);
	pthread_mutex_unlock(&handles_lock);
	pthread_setcancelstate(old_cancel_state, NULL);
}

static void wake_waiters(void)
{
	if (!atomic_load(&waiters))
		return;
	pthread_mutex_lock(&handles_lock);
	pthread_cond_broadcast(&progress);
	pthread_mutex_unlock(&handles_lock);
}

/* The place of that index, or NULL. */
static struct place *place_at(uint32_t index)
{
	unsigned int part = 0;
	struct place *first;

	if (index >= FIRST_PLACES)
		part = (unsigned int)(__builtin_clz(FIRST_PLACES) - __builtin_clz(index)) + 1;
	if (part >= NUM_PARTS)
		return NULL;
	first = atomic_load(&parts[part]);
	if (!first)
		return NULL;
	return part ? &first[index - (FIRST_PLACES << (part - 1))] : &first[index];
}

static int grow(void)
{
	uint32_t num = num_places ? num_places : FIRST_PLACES;
	unsigned int part = 0;
	struct place *more;

	while (part < NUM_PARTS && atomic_load(&parts[part]))
		part++;
	more = part < NUM_PARTS ? calloc(num, sizeof(*more)) : NULL;
	if (!more)
		return -ENOMEM;
	for (uint32_t i = num; i-- > 0;) {
		more[i].next_free = first_free;
		first_free = num_places + i + 1;
	}
	num_places += num;
	atomic_store(&parts[part], more);
	return 0;
}

int kernel_handle_add(struct kernel_handle *handle, struct kernel_handle *whole)
{
	struct place *place;
	bool locked;
	int r = 0;

	locked = polycm_lock(&handles_lock);
	if (!first_free)
		r = grow();
	if (!r) {
		place = place_at(first_free - 1);
		handle->uid = (uint64_t)place->generation << 32 | first_free;
		handle->place = place;
		handle->whole = whole;
		first_free = place->next_free;
		place->handle = handle;
		atomic_store(&place->uid, handle->uid);
	}
	polycm_unlock(&handles_lock, locked);
	return r;
}

struct kernel_handle *kernel_handle_get(uint64_t uid)
{
	struct place *place = (uint32_t)uid ? place_at((uint32_t)uid - 1) : NULL;
	struct kernel_handle *handle;

	if (!place)
		return NULL;
	atomic_fetch_add(&place->busy, 1);
	if (atomic_load(&place->uid) != uid) {
		atomic_fetch_sub(&place->busy, 1);
		wake_waiters();
		return NULL;
	}
	handle = place->handle;
	if (handle->whole)
		atomic_fetch_add(&handle->whole->place->busy, 1);
	return handle;
}

/* The handle may be freed as soon as its place is not busy. */
static void put(struct kernel_handle *handle)
{
	struct place *place = handle->place;

	atomic_fetch_add(&handle->done, 1);
	atomic_fetch_sub(&place->busy, 1);
}

void kernel_handle_put(struct kernel_handle *handle)
{
	struct kernel_handle *whole = handle->whole;

	put(handle);
	if (whole)
		put(whole);
	wake_waiters();
}

/* Without a reader, no event is being processed. */
static bool is_settled(struct kernel_handle *handle, uint32_t reported, struct kernel_channel *chan)
{
	return (int32_t)(reported - atomic_load(&handle->done)) <= 0 ||
	       !atomic_load(&chan->readers);
}

void kernel_handle_settle(struct kernel_handle *handle, uint32_t reported,
			  struct kernel_channel *chan)
{
	uint64_t until_ns;
	uint32_t done;
	int old, r = 0;

	if (is_settled(handle, reported, chan) && !atomic_load(&handle->place->busy))
		return;
	begin_wait(&old);
	until_ns = polycm_real_ns(CLOCK_MONOTONIC) + SETTLE_NS;
	while (!r && !is_settled(handle, reported, chan))
		r = polycm_cond_wait(&progress, &handles_lock, until_ns);
	while (atomic_load(&handle->place->busy))
		pthread_cond_wait(&progress, &handles_lock);
	done = atomic_load(&handle->done);
	end_wait(old);
	if (r)
		polycm_log(POLYCM_LOG_ERROR, "the kernel's RDMA CM reported %u events of an id, %u "
			   "arrived", reported, done);
}

static void free_place(struct kernel_handle *handle, struct place *place)
{
	place->handle = NULL;
	place->generation++;
	place->next_free = first_free;
	first_free = (uint32_t)handle->uid;
	handle->uid = 0;
}

static void remove_busy(struct kernel_handle *handle, struct place *place)
{
	int old;

	begin_wait(&old);
	while (atomic_load(&place->busy))
		pthread_cond_wait(&progress, &handles_lock);
	free_place(handle, place);
	end_wait(old);
}

void kernel_handle_remove(struct kernel_handle *handle)
{
	struct place *place = handle->place;
	bool locked, busy;

	atomic_store(&place->uid, 0);
	busy = atomic_load(&place->busy);
	if (busy) {
		remove_busy(handle, place);
		return;
	}
	locked = polycm_lock(&handles_lock);
	free_place(handle, place);
	polycm_unlock(&handles_lock, locked);
}

void kernel_readers_enter(struct kernel_channel *chan)
{
	atomic_fetch_add(&chan->readers, 1);
}

void kernel_readers_leave(struct kernel_channel *chan)
{
	atomic_fetch_sub(&chan->readers, 1);
	wake_waiters();
}
