/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shm/segment.c - a process in the shared segment: joining and leaving, its slot and its
 * mail, the segment's lock, and freeing what dead processes had.  The file, and who is
 * alive: segment_file.c.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "providers/soft/base/base.h"
#include "doorbell.h"
#include "lock_order.h"
#include "file_name.h"
#include "segment_internal.h"
#include "trust.h"
#include "visit.h"

#define RESERVE_STEP 65536u
#define LEAVE_PATIENCE SIM_MS(200)

static struct sim_slot alone = { .doorbell = 1 };

static struct {
	struct sim_segment_file file;
	struct sim_folder folder;
} self;
struct sim_place sim_segment_place;

static struct sim_slot *_Atomic self_slot = &alone;
static uint64_t capture;

void *sim_segment_area(enum sim_area area)
{
	return (char *)self.file.window + self.file.at[area];
}

struct sim_scenario_id *sim_segment_scenario(void)
{
	return &self.file.window->scenario;
}

struct sim_folder *sim_segment_folder(void)
{
	return &self.folder;
}

struct sim_slot *sim_segment_peer(unsigned int slot)
{
	return &self.file.window->slot[slot];
}

struct sim_slot *sim_segment_self(void)
{
	return atomic_load_explicit(&self_slot, memory_order_acquire);
}

void sim_segment_set_capture(uint64_t file)
{
	capture = file;
	atomic_store(&sim_segment_self()->capture, file);
}

bool sim_segment_is_shared(const struct sim_slot *slot)
{
	return slot != &alone;
}

/* ------------------------------------------------------------------------
 * Mail.
 */

void sim_segment_ring(struct sim_slot *slot)
{
	/* Never 0, the value that a sleeping thread finds after the segment was unmapped. */
	if (atomic_fetch_add(&slot->doorbell, 1) == UINT32_MAX)
		atomic_fetch_add(&slot->doorbell, 1);
	syscall(SYS_futex, &slot->doorbell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* After the fence of the callers. */
static void leave_mail(struct sim_slot *slot, unsigned int to, unsigned int from)
{
	unsigned int word = from / 64;
	uint64_t bit = UINT64_C(1) << from % 64;
	uint32_t sleeping;

	if (!(atomic_load(&slot->inbox[word]) & bit))
		atomic_fetch_or(&slot->inbox[word], bit);
	if (!(atomic_load(&slot->summary) & UINT64_C(1) << word))
		atomic_fetch_or(&slot->summary, UINT64_C(1) << word);
	sleeping = atomic_load(&slot->sleeping);
	if (sleeping == SIM_AWAKE || (sleeping == SIM_RELIES && sim_doorbell_can_wait(slot, to)))
		return;
	if (atomic_exchange(&slot->sleeping, SIM_AWAKE) != SIM_AWAKE)
		sim_segment_ring(slot);
}

void sim_segment_notify(unsigned int to, unsigned int from)
{
	/*
	 * Orders what there is before the loads of the bits: a receiver clears the bits first and
	 * looks then.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	leave_mail(&self.file.window->slot[to], to, from);
}

void sim_segment_sent(unsigned int to)
{
	struct sim_slot *slot = &self.file.window->slot[to];

	/*
	 * As above.  And before the load of `watches': a receiver changes that first and reads
	 * the ring once more then.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (!sim_doorbell_is_watched(slot, to))
		leave_mail(slot, to, sim_segment_slot());
}

/* The others are not looked at: each page of them is a page fault, and memory. */
static unsigned int used_slots(void)
{
	const uint32_t used = atomic_load(&self.file.window->used_slots);

	return used < SIM_MAX_SLOTS ? used : SIM_MAX_SLOTS;
}

void sim_segment_notify_all(unsigned int from)
{
	for (unsigned int i = 0; i < used_slots(); i++)
		if (i != from && atomic_load(&self.file.window->slot[i].state) == SIM_SLOT_LIVE)
			sim_segment_notify(i, from);
}

/* ------------------------------------------------------------------------
 * Lock and reclaiming.
 */

/* The lock is held for moments, but a process may be stopped while it holds the lock. */
static int wait_for_lock(struct segment *segment, bool give_up)
{
	uint64_t until = sim_time->real_ns(CLOCK_MONOTONIC) + sim_folder_patience;
	const struct timespec deadline = {
		.tv_sec = (time_t)(until / 1000000000u),
		.tv_nsec = (long)(until % 1000000000u),
	};
	int error = LOCK_ORDER_TRIED(segment_lock,
				     pthread_mutex_clocklock(&segment->segment_lock,
							     CLOCK_MONOTONIC, &deadline));

	if (error != ETIMEDOUT)
		return error;
	sim_core->log(POLYCM_LOG_ERROR, NULL, "%s: process %d holds the lock of its tables and stands "
		      "still: let it go on, or end it", self.folder.path, (int)segment->lock_pid);
	return give_up ? EBUSY : pthread_mutex_lock(&segment->segment_lock);
}

/* 0 or a positive errno. */
static int take_lock(bool give_up)
{
	struct segment *segment = self.file.window;
	int error = pthread_mutex_trylock(&segment->segment_lock);

	if (error == EBUSY)
		error = wait_for_lock(segment, give_up);
	if (error == EOWNERDEAD) {
		for (unsigned int i = 0; i < SIM_AREAS; i++)
			if (self.file.layout[i].repair)
				self.file.layout[i].repair(sim_segment_area(i));
		error = pthread_mutex_consistent(&segment->segment_lock);
	}
	if (error && error != EBUSY)
		sim_core->log(POLYCM_LOG_ERROR, NULL, "%s: its lock is broken: %s",
			      self.folder.path, strerror(error));
	if (!error)
		segment->lock_pid = (int32_t)getpid();
	return error;
}

void sim_segment_lock(void)
{
	if (sim_segment_place.joined)
		(void)take_lock(false);
}

void sim_segment_unlock(void)
{
	if (sim_segment_place.joined)
		pthread_mutex_unlock(&self.file.window->segment_lock);
}

static void free_slot(unsigned int slot)
{
	struct segment *segment = self.file.window;

	for (unsigned int i = 0; i < SIM_AREAS; i++)
		if (self.file.layout[i].drop_slot)
			self.file.layout[i].drop_slot(sim_segment_area(i), slot);
	/* Nobody finds a ring that stays: generations are not used twice. */
	(void)sim_folder_clean(&self.folder, sim_is_file_of, &slot);
	atomic_store(&segment->slot[slot].state, SIM_SLOT_FREE);
	sim_segment_notify_all(slot);
}

bool sim_segment_is_dead(unsigned int slot)
{
	return sim_segment_place.joined && slot < SIM_MAX_SLOTS && slot != sim_segment_place.slot &&
	       atomic_load(&self.file.window->slot[slot].state) == SIM_SLOT_LIVE &&
	       !sim_slots_alive(self.file.fd, slot, 1);
}

bool sim_segment_reclaim(unsigned int slot)
{
	struct sim_slot *dead;

	if (!sim_segment_place.joined || slot >= SIM_MAX_SLOTS || slot == sim_segment_place.slot)
		return false;
	dead = &self.file.window->slot[slot];
	if (atomic_load(&dead->state) == SIM_SLOT_LIVE && sim_slots_alive(self.file.fd, slot, 1))
		return false;
	sim_core->log(POLYCM_LOG_DEBUG, NULL, "process %d on the fabric %s is gone",
		      (int)dead->pid, self.folder.name);
	free_slot(slot);
	return true;
}

void sim_segment_check(unsigned int slot)
{
	sim_segment_lock();
	(void)sim_segment_reclaim(slot);
	sim_segment_unlock();
}

bool sim_segment_reclaim_all(void)
{
	bool any = false;

	if (!sim_segment_place.joined)
		return false;
	for (unsigned int slot = 0; slot < used_slots(); slot++)
		if (atomic_load(&self.file.window->slot[slot].state) == SIM_SLOT_LIVE)
			any |= sim_segment_reclaim(slot);
	return any;
}

int sim_segment_reserve(const void *start, size_t len)
{
	struct segment *segment = self.file.window;
	uint64_t end, target;
	int r;

	if (!sim_segment_place.joined)
		return 0;
	end = (uint64_t)((const char *)start - (const char *)segment) + len;
	if (end <= segment->reserved)
		return 0;
	target = (end + RESERVE_STEP - 1) / RESERVE_STEP * RESERVE_STEP;
	if (target > self.file.size)
		target = self.file.size;
	r = sim_segment_file_back(&self.file, segment->reserved, target);
	if (r < 0)
		return r;
	segment->reserved = target;
	return 0;
}

/* ------------------------------------------------------------------------
 * Joining and leaving.
 */

static void explain(int error)
{
	const char *why = strerror(-error);

	if (error == -EPROTO)
		why = "this is no segment of polycm: remove it";
	else if (error == -EPROTONOSUPPORT)
		why = "processes of another version of polycm use this fabric";
	else if (error == -ENOMEM)
		why = "no memory left there";
	else if (error == -EUSERS)
		why = "no room for another process";
	sim_core->log(POLYCM_LOG_ERROR, NULL, "%s/%s: %s", self.folder.path, SIM_SEGMENT_FILE, why);
}

/* Take a slot, not one that was given back a moment ago. */
static int take_slot(void)
{
	struct segment *segment = self.file.window;
	uint32_t last = segment->last_slot % SIM_MAX_SLOTS;
	int r;

	for (unsigned int i = 1; i <= SIM_MAX_SLOTS; i++) {
		unsigned int number = (last + i) % SIM_MAX_SLOTS;
		struct sim_slot *slot = &segment->slot[number];

		if (atomic_load(&slot->state) != SIM_SLOT_FREE)
			continue;
		r = sim_segment_file_lock_slot(&self.file, number, F_WRLCK);
		if (r == -EAGAIN || r == -EACCES)
			continue;
		if (r < 0)
			return r;
		slot->pid = (int32_t)getpid();
		atomic_store(&slot->capture, capture);
		atomic_store(&slot->summary, 0);
		atomic_store(&slot->sleeping, SIM_AWAKE);
		atomic_store(&slot->polled_at, 0);
		atomic_store(&slot->patience, SIM_PATIENCE_MAX);
		atomic_store(&slot->watches, 0);
		atomic_store(&slot->doorbell, 1);
		for (unsigned int word = 0; word < SIM_MAX_SLOTS / 64; word++)
			atomic_store(&slot->inbox[word], 0);
		sim_visit_begin(slot);
		if (number >= atomic_load(&segment->used_slots))
			atomic_store(&segment->used_slots, number + 1);
		atomic_fetch_add(&slot->generation, 1);
		atomic_store(&slot->state, SIM_SLOT_LIVE);
		segment->last_slot = number;
		sim_segment_place.slot = number;
		return 0;
	}
	return -EUSERS;
}

static void forget(void)
{
	sim_segment_place.joined = false;
	sim_segment_place.slot = 0;
	atomic_store_explicit(&self_slot, &alone, memory_order_release);
	sim_segment_file_unmap(&self.file);
	sim_folder_close(&self.folder);
}

int sim_segment_join(const char *fabric, const struct sim_area_layout layout[SIM_AREAS])
{
	int r;

	r = sim_folder_open(fabric, &self.folder);
	if (r < 0)
		return r;
	sim_segment_file_lay_out(&self.file, layout);
	r = sim_segment_file_open(&self.file, &self.folder);
	if (r < 0)
		goto err_close;

	sim_segment_place.joined = true;
	sim_segment_place.slot = SIM_MAX_SLOTS;
	r = -take_lock(true);
	if (!r) {
		sim_segment_reclaim_all();
		r = take_slot();
		sim_segment_unlock();
	}
	if (r < 0)
		goto err_forget;
	atomic_store_explicit(&self_slot, &self.file.window->slot[sim_segment_place.slot],
			      memory_order_release);
	sim_folder_unlock(&self.folder);
	sim_core->log(POLYCM_LOG_DEBUG, NULL, "joined the fabric %s as process %u of it",
		      self.folder.path, sim_segment_place.slot);
	return 0;

err_forget:
	forget();
err_close:
	if (r != -EBUSY)
		explain(r);
	if (self.file.fd >= 0)
		close(self.file.fd);
	sim_folder_close(&self.folder);
	return r == -EPROTONOSUPPORT ? -EPROTO : r;
}

/* The file stays open: its lock, which we share with our parent, keeps the slot. */
void sim_segment_after_fork(void)
{
	if (sim_segment_place.joined)
		forget();
}

void sim_segment_leave(void)
{
	bool locked;

	if (!sim_segment_place.joined)
		return;
	/* Without the folder's lock a process may be joining, so the files stay. */
	locked = sim_folder_lock(&self.folder, LEAVE_PATIENCE) == 0;
	sim_segment_lock();
	free_slot(sim_segment_place.slot);
	/* Our forked children share the lock: unlock it for them as well. */
	(void)sim_segment_file_lock_slot(&self.file, sim_segment_place.slot, F_UNLCK);
	sim_segment_unlock();
	sim_segment_ring(sim_segment_self());	/* our NIC thread may sleep there */
	if (locked && !self.folder.is_kept && !sim_slots_alive(self.file.fd, 0, SIM_MAX_SLOTS) &&
	    sim_folder_is_unused(&self.folder))
		sim_folder_remove(&self.folder);
	close(self.file.fd);
	capture = 0;
	forget();
}
