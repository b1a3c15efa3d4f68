/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/segment.c - joining and leaving the shared segment, its lock, and the
 * reclaiming of what dead processes had.
 *
 * A process holds a lock on the byte of its slot's number.  The lock is the
 * open file's: the kernel drops it when the process dies, however that happens,
 * or becomes another program; but not as long as a child that it forked lives,
 * which is also how the kernel's RDMA CM keeps what a process has.
 *
 * The segment is mapped into a window that is reserved once and never given
 * back, so that a thread that looks into our slot without a lock never meets
 * unmapped memory.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../nic/groups.h"
#include "../numbers.h"
#include "../ports_area.h"
#include "folder.h"
#include "segment.h"
#include "sweep.h"

#define MAGIC 0x3167657374637970u	/* "pyctseg1" as a little-endian machine writes it */
#define SEGMENT_VERSION 2u
#define RESERVE_STEP 65536u
#define UNFINISHED ".new"	/* behind the name of a ring that is being made */

struct segment {
	uint64_t magic;			/* written last */
	uint32_t version;
	uint32_t slots;
	uint64_t size;
	uint64_t reserved;		/* bytes from the start that have memory behind them */
	struct sim_scenario_id scenario;
	uint32_t last_slot;		/* given out last */
	pthread_mutex_t lock;
	struct sim_slot slot[SIM_MAX_SLOTS];
	struct sim_qpn_area qpns;
	struct sim_groups_area groups;
	struct sim_ports_area ports;	/* last: sparse */
};

/* What can be read of any version's file. */
#define HEADER_SIZE offsetof(struct segment, reserved)

static struct sim_slot alone = { .doorbell = 1 };

static struct {
	struct segment *window;
	bool joined;
	int fd;
	unsigned int slot;
	struct sim_folder folder;
} self;

static struct sim_slot *_Atomic self_slot = &alone;

bool sim_segment_joined(void)
{
	return self.joined;
}

unsigned int sim_segment_slot(void)
{
	return self.slot;
}

struct sim_groups_area *sim_segment_groups(void)
{
	return &self.window->groups;
}

struct sim_qpn_area *sim_segment_qpns(void)
{
	return &self.window->qpns;
}

struct sim_ports_area *sim_segment_ports(void)
{
	return &self.window->ports;
}

struct sim_scenario_id *sim_segment_scenario(void)
{
	return &self.window->scenario;
}

struct sim_folder *sim_segment_folder(void)
{
	return &self.folder;
}

struct sim_slot *sim_segment_peer(unsigned int slot)
{
	return &self.window->slot[slot];
}

struct sim_slot *sim_segment_self(void)
{
	return atomic_load_explicit(&self_slot, memory_order_acquire);
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
	/* Never 0, which is what a sleeper finds when the segment was unmapped under it. */
	if (atomic_fetch_add(&slot->doorbell, 1) == UINT32_MAX)
		atomic_fetch_add(&slot->doorbell, 1);
	syscall(SYS_futex, &slot->doorbell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void sim_segment_notify(unsigned int to, unsigned int from)
{
	struct sim_slot *slot = &self.window->slot[to];
	unsigned int word = from / 64;
	uint64_t bit = UINT64_C(1) << from % 64;

	/*
	 * What was put into the ring comes before the look at the bits: a
	 * receiver clears them first and looks into the ring then.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (!(atomic_load(&slot->inbox[word]) & bit))
		atomic_fetch_or(&slot->inbox[word], bit);
	if (!(atomic_load(&slot->summary) & UINT64_C(1) << word))
		atomic_fetch_or(&slot->summary, UINT64_C(1) << word);
	if (atomic_load(&slot->sleeping) && atomic_exchange(&slot->sleeping, 0))
		sim_segment_ring(slot);
}

/* Everybody shall look at what he has to do with that slot. */
static void notify_all(unsigned int from)
{
	for (unsigned int i = 0; i < SIM_MAX_SLOTS; i++)
		if (i != from && atomic_load(&self.window->slot[i].state) == SIM_SLOT_LIVE)
			sim_segment_notify(i, from);
}

/* ------------------------------------------------------------------------
 * Files of rings.
 */

void sim_ring_name_format(const struct sim_ring_name *name, char text[SIM_RING_NAME_MAX])
{
	snprintf(text, SIM_RING_NAME_MAX, "ring-%u.%u-%u.%u%s", name->from, name->from_generation,
		 name->to, name->to_generation, name->unfinished ? UNFINISHED : "");
}

static bool parse_ring_name(const char *text, struct sim_ring_name *ret_name)
{
	int end = 0;

	if (sscanf(text, "ring-%u.%u-%u.%u%n", &ret_name->from, &ret_name->from_generation,
		   &ret_name->to, &ret_name->to_generation, &end) != 4)
		return false;
	ret_name->unfinished = !strcmp(text + end, UNFINISHED);
	return ret_name->unfinished || !text[end];
}

/*
 * Files that nobody but a process that is gone would use.  Its rings to others
 * stay for their readers, who delete them.
 */
static bool is_ring_of(const char *file, void *arg)
{
	const unsigned int *slot = arg;
	struct sim_ring_name name;

	return parse_ring_name(file, &name) &&
	       (name.to == *slot || (name.unfinished && name.from == *slot));
}

static bool is_ring(const char *file, void *arg)
{
	struct sim_ring_name name;

	(void)arg;
	return parse_ring_name(file, &name);
}

/* ------------------------------------------------------------------------
 * Lock and reclaiming.
 */

void sim_segment_lock(void)
{
	int error;

	if (!self.joined)
		return;
	error = pthread_mutex_lock(&self.window->lock);
	if (error == EOWNERDEAD) {
		sim_ports_area_repair(&self.window->ports);
		error = pthread_mutex_consistent(&self.window->lock);
	}
	if (error)
		sim_core->log(POLYCM_LOG_ERROR, NULL, "%s: its lock is broken: %s",
			      self.folder.path, strerror(error));
}

void sim_segment_unlock(void)
{
	if (self.joined)
		pthread_mutex_unlock(&self.window->lock);
}

bool sim_slots_alive(int fd, unsigned int first, unsigned int count)
{
	struct flock lock = {
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)first,
		.l_len = (off_t)count,
	};

	return fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

static int lock_slot(unsigned int slot, short type)
{
	struct flock lock = {
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)slot,
		.l_len = 1,
	};

	return fcntl(self.fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

static void free_slot(unsigned int slot)
{
	struct segment *segment = self.window;

	sim_ports_area_drop_slot(&segment->ports, slot);
	sim_qpn_drop_slot(&segment->qpns, slot);
	sim_groups_drop_slot(&segment->groups, slot);
	sim_folder_clean(&self.folder, is_ring_of, &slot);
	atomic_store(&segment->slot[slot].state, SIM_SLOT_FREE);
	notify_all(slot);
}

bool sim_segment_is_dead(unsigned int slot)
{
	return self.joined && slot < SIM_MAX_SLOTS && slot != self.slot &&
	       atomic_load(&self.window->slot[slot].state) == SIM_SLOT_LIVE &&
	       !sim_slots_alive(self.fd, slot, 1);
}

bool sim_segment_reclaim(unsigned int slot)
{
	struct sim_slot *dead;

	if (!self.joined || slot >= SIM_MAX_SLOTS || slot == self.slot)
		return false;
	dead = &self.window->slot[slot];
	if (atomic_load(&dead->state) == SIM_SLOT_LIVE && sim_slots_alive(self.fd, slot, 1))
		return false;
	sim_core->log(POLYCM_LOG_DEBUG, NULL, "process %d on the fabric %s is gone",
		      (int)dead->pid, self.folder.name);
	free_slot(slot);
	return true;
}

bool sim_segment_reclaim_all(void)
{
	bool any = false;

	if (!self.joined)
		return false;
	for (unsigned int slot = 0; slot < SIM_MAX_SLOTS; slot++)
		if (atomic_load(&self.window->slot[slot].state) == SIM_SLOT_LIVE)
			any |= sim_segment_reclaim(slot);
	return any;
}

/* Memory behind the file up to that offset, so that touching it cannot fail. */
static int back_with_memory(int fd, uint64_t from, uint64_t to)
{
	int r;

	do
		r = fallocate(fd, 0, (off_t)from, (off_t)(to - from));
	while (r < 0 && errno == EINTR);
	return r < 0 && errno != EOPNOTSUPP ? -ENOMEM : 0;
}

int sim_segment_reserve(const void *start, size_t len)
{
	struct segment *segment = self.window;
	uint64_t end, target;
	int r;

	if (!self.joined)
		return 0;
	end = (uint64_t)((const char *)start - (const char *)segment) + len;
	if (end <= segment->reserved)
		return 0;
	target = (end + RESERVE_STEP - 1) / RESERVE_STEP * RESERVE_STEP;
	if (target > sizeof(*segment))
		target = sizeof(*segment);
	r = back_with_memory(self.fd, segment->reserved, target);
	if (r < 0)
		return r;
	segment->reserved = target;
	return 0;
}

/* ------------------------------------------------------------------------
 * Joining and leaving.
 */

/* Put the file, or with -1 fresh private memory, where the window is. */
static int fill_window(int fd)
{
	int flags = MAP_FIXED | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED);
	void *memory;

	if (!self.window) {
		memory = mmap(NULL, sizeof(struct segment), PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (memory == MAP_FAILED)
			return -ENOMEM;
		self.window = memory;
	}
	memory = mmap(self.window, sizeof(struct segment), PROT_READ | PROT_WRITE, flags, fd, 0);
	return memory == MAP_FAILED ? -ENOMEM : 0;
}

static int init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;
	int error;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	error = pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
	return -error;
}

/* A fresh segment; files of processes that are gone go. */
static int create(void)
{
	uint64_t dense = offsetof(struct segment, ports.entries);
	struct segment *segment;
	int r;

	sim_folder_clean(&self.folder, is_ring, NULL);
	if (ftruncate(self.fd, 0) < 0 || ftruncate(self.fd, sizeof(*segment)) < 0)
		return -errno;
	r = back_with_memory(self.fd, 0, dense);
	if (r < 0)
		return r;
	r = fill_window(self.fd);
	if (r < 0)
		return r;
	segment = self.window;
	r = init_lock(&segment->lock);
	if (r < 0)
		return r;
	segment->version = SEGMENT_VERSION;
	segment->slots = SIM_MAX_SLOTS;
	segment->size = sizeof(*segment);
	segment->reserved = dense;
	segment->last_slot = SIM_MAX_SLOTS - 1;
	__atomic_store_n(&segment->magic, MAGIC, __ATOMIC_RELEASE);
	return 0;
}

/* Is what is there a segment of ours and of our version?  -ENOENT: it may be replaced. */
static int check_file(void)
{
	struct {
		uint64_t magic;
		uint32_t version, slots;
		uint64_t size;
	} header = { 0 };
	bool alive = sim_slots_alive(self.fd, 0, SIM_MAX_SLOTS);
	struct stat st;

	_Static_assert(sizeof(header) == HEADER_SIZE, "the header is the same in all versions");
	if (fstat(self.fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return -EPERM;
	if (!st.st_size)
		return -ENOENT;
	if (pread(self.fd, &header, sizeof(header), 0) < 0)
		return -errno;
	if (!header.magic && !alive)
		return -ENOENT;		/* its maker did not get far */
	if (header.magic != MAGIC)
		return -EPROTO;
	if (!alive)
		return -ENOENT;
	if (header.version != SEGMENT_VERSION || header.size != sizeof(struct segment) ||
	    (uint64_t)st.st_size != sizeof(struct segment))
		return -EPROTONOSUPPORT;
	return 0;
}

static int open_file(void)
{
	int r;

	self.fd = openat(self.folder.fd, SIM_SEGMENT_FILE,
			 O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (self.fd < 0)
		return -errno;
	r = check_file();
	if (!r)
		return fill_window(self.fd);
	if (r != -ENOENT)
		return r;
	sim_sweep(&self.folder);
	return create();
}

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
	struct segment *segment = self.window;
	uint32_t last = segment->last_slot % SIM_MAX_SLOTS;

	for (unsigned int i = 1; i <= SIM_MAX_SLOTS; i++) {
		unsigned int number = (last + i) % SIM_MAX_SLOTS;
		struct sim_slot *slot = &segment->slot[number];

		if (atomic_load(&slot->state) != SIM_SLOT_FREE || lock_slot(number, F_WRLCK) < 0)
			continue;
		slot->pid = (int32_t)getpid();
		atomic_store(&slot->summary, 0);
		atomic_store(&slot->sleeping, 0);
		atomic_store(&slot->doorbell, 1);
		for (unsigned int word = 0; word < SIM_MAX_SLOTS / 64; word++)
			atomic_store(&slot->inbox[word], 0);
		atomic_fetch_add(&slot->generation, 1);
		atomic_store(&slot->state, SIM_SLOT_LIVE);
		segment->last_slot = number;
		self.slot = number;
		return 0;
	}
	return -EUSERS;
}

int sim_segment_join(const char *fabric)
{
	int r;

	r = sim_folder_open(fabric, &self.folder);
	if (r < 0)
		return r;
	r = open_file();
	if (r < 0)
		goto err_close;

	self.joined = true;
	self.slot = SIM_MAX_SLOTS;
	sim_segment_lock();
	sim_segment_reclaim_all();
	r = take_slot();
	sim_segment_unlock();
	if (r < 0)
		goto err_unmap;
	atomic_store_explicit(&self_slot, &self.window->slot[self.slot], memory_order_release);
	sim_folder_unlock(&self.folder);
	sim_core->log(POLYCM_LOG_DEBUG, NULL, "joined the fabric %s as process %u of it",
		      self.folder.path, self.slot);
	return 0;

err_unmap:
	self.joined = false;
	self.slot = 0;
	fill_window(-1);
err_close:
	explain(r);
	if (self.fd >= 0)
		close(self.fd);
	sim_folder_close(&self.folder);
	return r == -EPROTONOSUPPORT ? -EPROTO : r;
}

static void forget(void)
{
	self.joined = false;
	self.slot = 0;
	atomic_store_explicit(&self_slot, &alone, memory_order_release);
	fill_window(-1);
	sim_folder_close(&self.folder);
}

/* The file stays open: our parent's lock is ours, too. */
void sim_segment_after_fork(void)
{
	if (self.joined)
		forget();
}

void sim_segment_leave(void)
{
	bool locked;

	if (!self.joined)
		return;
	/* Without the lock file somebody may be joining: then the files stay. */
	locked = sim_folder_lock(&self.folder) == 0;
	sim_segment_lock();
	free_slot(self.slot);
	(void)lock_slot(self.slot, F_UNLCK);	/* also for those that we forked */
	sim_segment_unlock();
	sim_segment_ring(sim_segment_self());	/* our own thread may sleep there */
	if (locked && !sim_slots_alive(self.fd, 0, SIM_MAX_SLOTS))
		sim_folder_remove(&self.folder);
	close(self.fd);
	forget();
}
