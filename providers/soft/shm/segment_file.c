/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shm/segment_file.c - the file of the shared segment: made, checked, mapped, and the locks
 * on it that show who is alive.
 *
 * A process holds a lock on the byte of its slot's number.  The lock belongs to the open
 * file: the kernel releases it when the process dies or executes another program, but not
 * while a forked child lives.  The kernel's RDMA CM treats what a process has the same way.
 *
 * The segment is mapped into a window that is reserved once and never unmapped, so a thread
 * may read our slot without a lock.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_name.h"
#include "segment_internal.h"

#define MAGIC 0x3167657374637970u	/* "pyctseg1" as a little-endian machine writes it */
#define SEGMENT_VERSION 14u

#define AREA_ALIGN _Alignof(struct segment)

/* What can be read of any version's file. */
#define HEADER_SIZE offsetof(struct segment, reserved)

void sim_segment_file_lay_out(struct sim_segment_file *file,
			      const struct sim_area_layout layout[SIM_AREAS])
{
	size_t at = sizeof(struct segment);

	file->layout = layout;
	for (unsigned int i = 0; i < SIM_AREAS; i++) {
		file->at[i] = at;
		file->dense = at + layout[i].size - layout[i].sparse;
		at = (at + layout[i].size + AREA_ALIGN - 1) / AREA_ALIGN * AREA_ALIGN;
	}
	file->size = at;
}

static struct flock lock_of(unsigned int first, unsigned int count, short type)
{
	return (struct flock){
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)first,
		.l_len = (off_t)count,
	};
}

bool sim_slots_alive(int fd, unsigned int first, unsigned int count)
{
	struct flock lock = lock_of(first, count, F_WRLCK);

	return fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

int sim_segment_file_lock_slot(const struct sim_segment_file *file, unsigned int slot, short type)
{
	struct flock lock = lock_of(slot, 1, type);

	return fcntl(file->fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

int sim_segment_file_back(const struct sim_segment_file *file, uint64_t from, uint64_t to)
{
	int r;

	do
		r = fallocate(file->fd, 0, (off_t)from, (off_t)(to - from));
	while (r < 0 && errno == EINTR);
	return r < 0 && errno != EOPNOTSUPP ? -ENOMEM : 0;
}

/* Put the file, or with -1 fresh private memory, where the window is. */
static int fill_window(struct sim_segment_file *file, int fd)
{
	int flags = MAP_FIXED | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED);
	void *memory;

	if (!file->window) {
		memory = mmap(NULL, file->size, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (memory == MAP_FAILED)
			return -ENOMEM;
		file->window = memory;
	}
	memory = mmap(file->window, file->size, PROT_READ | PROT_WRITE, flags, fd, 0);
	return memory == MAP_FAILED ? -ENOMEM : 0;
}

int sim_segment_file_unmap(struct sim_segment_file *file)
{
	return fill_window(file, -1);
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

/* Make a new segment, and delete the files of processes that are gone. */
static int create(struct sim_segment_file *file, struct sim_folder *folder)
{
	struct segment *segment;
	int r;

	/* A ring that stays would be used as one of the new fabric. */
	r = sim_folder_clean(folder, sim_is_process_file, NULL);
	if (r < 0)
		return r;
	if (ftruncate(file->fd, 0) < 0 || ftruncate(file->fd, (off_t)file->size) < 0)
		return -errno;
	r = sim_segment_file_back(file, 0, file->dense);
	if (r < 0)
		return r;
	r = fill_window(file, file->fd);
	if (r < 0)
		return r;
	segment = file->window;
	r = init_lock(&segment->segment_lock);
	if (r < 0)
		return r;
	segment->version = SEGMENT_VERSION;
	segment->slots = SIM_MAX_SLOTS;
	segment->size = file->size;
	segment->reserved = file->dense;
	segment->last_slot = SIM_MAX_SLOTS - 1;
	__atomic_store_n(&segment->magic, MAGIC, __ATOMIC_RELEASE);
	return 0;
}

/*
 * Is the file a segment of this user and version?  -ENOENT: it may be replaced, unless `is_kept' where
 * nobody is on it.
 */
static int check_file(const struct sim_segment_file *file, bool is_kept)
{
	struct {
		uint64_t magic;
		uint32_t version, slots;
		uint64_t size;
	} header = { 0 };
	bool alive = sim_slots_alive(file->fd, 0, SIM_MAX_SLOTS);
	struct stat st;

	_Static_assert(sizeof(header) == HEADER_SIZE, "the header is the same in all versions");
	if (fstat(file->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return -EPERM;
	if (!st.st_size)
		return -ENOENT;
	if (pread(file->fd, &header, sizeof(header), 0) < 0)
		return -errno;
	if (!header.magic && !alive)
		return -ENOENT;		/* its maker did not get far */
	if (header.magic != MAGIC)
		return -EPROTO;
	if (!alive && !is_kept)
		return -ENOENT;
	if (header.version != SEGMENT_VERSION || header.size != file->size ||
	    (uint64_t)st.st_size != file->size)
		return -EPROTONOSUPPORT;
	return 0;
}

int sim_segment_file_open(struct sim_segment_file *file, struct sim_folder *folder)
{
	int r;

	file->fd = openat(folder->fd, SIM_SEGMENT_FILE,
			  O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (file->fd < 0)
		return -errno;
	r = check_file(file, folder->is_kept);
	if (!r)
		return fill_window(file, file->fd);
	if (r != -ENOENT)
		return r;
	if (!folder->is_kept)
		sim_sweep(folder);
	return create(file, folder);
}
