/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel/handles.c - the names that the kernel's events come back with, and
 * the count of events on their way.
 *
 * A name (uid) is a place in a table and that place's generation, so that one
 * which is stale or made up finds nothing.  DESTROY_ID, LEAVE_MCAST and
 * MIGRATE_ID tell how many events of the object were handed out; each of them
 * was handed to a reader, and the one who ends or moves the object waits until
 * the readers are through with as many.
 */
#include "config.h"
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define FIRST_PLACES 64u

/*
 * All that a reader waits for while it has an event is an answer of the
 * kernel's or the list of devices, so a count that is not reached by then is
 * most likely the kernel's mistake.
 */
#define SETTLE_SECONDS 5

struct place {
	struct kernel_handle *handle;	/* NULL: free */
	uint32_t generation;
	uint32_t next_free;		/* index + 1; 0: none */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct place *places;
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

static void lock_handles(void)
{
	pthread_once(&once, init);
	pthread_mutex_lock(&lock);
}

static int grow(void)
{
	uint32_t num = num_places ? num_places * 2 : FIRST_PLACES;
	struct place *larger;

	if (num < num_places)
		return -ENOMEM;
	larger = realloc(places, num * sizeof(*places));
	if (!larger)
		return -ENOMEM;
	places = larger;
	while (num > num_places) {
		num--;
		places[num] = (struct place){ .next_free = first_free };
		first_free = num + 1;
	}
	num_places = num_places ? num_places * 2 : FIRST_PLACES;
	return 0;
}

int kernel_handle_add(struct kernel_handle *handle, struct kernel_handle *whole)
{
	struct place *place;
	int r = 0;

	lock_handles();
	if (!first_free)
		r = grow();
	if (!r) {
		place = &places[first_free - 1];
		handle->uid = (uint64_t)place->generation << 32 | first_free;
		handle->whole = whole;
		first_free = place->next_free;
		place->handle = handle;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

/* The place of a name that is in use, or NULL. */
static struct place *find(uint64_t uid)
{
	uint32_t number = (uint32_t)uid;
	struct place *place;

	if (!number || number > num_places)
		return NULL;
	place = &places[number - 1];
	return place->handle && place->generation == uid >> 32 ? place : NULL;
}

struct kernel_handle *kernel_handle_get(uint64_t uid)
{
	struct kernel_handle *handle = NULL;
	struct place *place;

	lock_handles();
	place = find(uid);
	if (place) {
		handle = place->handle;
		handle->busy++;
		if (handle->whole)
			handle->whole->busy++;
	}
	pthread_mutex_unlock(&lock);
	return handle;
}

void kernel_handle_put(struct kernel_handle *handle)
{
	lock_handles();
	if (handle->whole) {
		handle->whole->busy--;
		handle->whole->done++;
	}
	handle->busy--;
	handle->done++;
	pthread_cond_broadcast(&progress);
	pthread_mutex_unlock(&lock);
}

/* An event of it can only be on its way where there is a reader. */
static bool is_settled(const struct kernel_handle *handle, uint32_t reported,
		       const struct kernel_channel *chan)
{
	return (int32_t)(reported - handle->done) <= 0 || !chan->readers;
}

void kernel_handle_settle(struct kernel_handle *handle, uint32_t reported,
			  const struct kernel_channel *chan)
{
	struct timespec until;
	uint32_t done = 0;
	int r = 0;

	lock_handles();
	if (handle->busy || !is_settled(handle, reported, chan)) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += SETTLE_SECONDS;
		while (!r && !is_settled(handle, reported, chan))
			r = pthread_cond_timedwait(&progress, &lock, &until);
		while (handle->busy)
			pthread_cond_wait(&progress, &lock);
		done = handle->done;
	}
	pthread_mutex_unlock(&lock);
	if (r)
		polycm_log(POLYCM_LOG_ERROR, "the kernel's RDMA CM says that it told of %u events "
			   "of an id, %u came", reported, done);
}

void kernel_handle_restart(struct kernel_handle *handle)
{
	lock_handles();
	handle->done = 0;
	pthread_mutex_unlock(&lock);
}

void kernel_handle_remove(struct kernel_handle *handle)
{
	struct place *place;

	lock_handles();
	place = find(handle->uid);
	while (handle->busy)
		pthread_cond_wait(&progress, &lock);
	if (place) {
		/* The table may have moved while we waited. */
		place = find(handle->uid);
		place->handle = NULL;
		place->generation++;
		place->next_free = first_free;
		first_free = (uint32_t)handle->uid;
	}
	handle->uid = 0;
	pthread_mutex_unlock(&lock);
}

void kernel_readers_enter(struct kernel_channel *chan)
{
	lock_handles();
	chan->readers++;
	pthread_mutex_unlock(&lock);
}

void kernel_readers_leave(struct kernel_channel *chan)
{
	lock_handles();
	chan->readers--;
	pthread_cond_broadcast(&progress);
	pthread_mutex_unlock(&lock);
}
