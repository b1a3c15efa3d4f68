/* SPDX-License-Identifier: BSD-2-Clause */
/* link/shm/pages.c - see pages.h: the file, and moving pages into it and back. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utlist.h>

#include "providers/soft/engine/engine.h"
#include "providers/soft/shm/segment.h"
#include "providers/soft/shm/visit.h"
#include "maps.h"
#include "pages.h"

#define MOST ((size_t)64 << 20)		/* bytes that are moved at a time */
#define TIME_SHARE 50u			/* this fraction of the time may be spent on moving, ... */
uint64_t sim_pages_time = SIM_MS(20);	/* ... and so much more */
#define THREADS_AGAIN SIM_MS(5)
#define MAX_PIECES 64u			/* mappings of the file that are copied for a child */

static struct {
	int error;			/* that made the file impossible; 0: none */
	uint64_t began, spent;
	uint64_t not_before;		/* there were several threads */
	int fd;				/* of the file, if it is made */
	struct sim_file_id id;		/* inode 0: it is not */
	struct sim_pages *all;		/* by their place in the file */
} self;

/* Copies for the child, between before and after a fork(); else there are none. */
static struct {
	struct sim_mapping piece;
	void *copy;
} copies[MAX_PIECES];
static unsigned int num_copies;

/* ------------------------------------------------------------------------
 * The file.
 */

/* The program may have closed it, as any descriptor that it does not know. */
static int file(void)
{
	struct sim_file_id id;
	struct stat st;

	if (fstat(self.fd, &st) < 0)
		return -errno;
	id = sim_file_id(&st);
	return sim_file_same(&id, &self.id) ? self.fd : -ESTALE;
}

static int make_file(void)
{
	struct rlimit limit;
	struct stat st;
	int fd, r;

	if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur < SIM_PAGES_FILE)
		return -EFBIG;		/* a signal would say so, too */
	fd = memfd_create("polycm-pages", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, SIM_PAGES_FILE) < 0 || fstat(fd, &st) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	self.fd = fd;
	self.id = sim_file_id(&st);
	return 0;
}

static bool have_file(void)
{
	if (!self.id.inode && !self.error) {
		self.error = make_file();
		if (self.error)
			sim_core->log(POLYCM_LOG_DEBUG, NULL, "registered memory is not mapped by "
				      "other processes: %s", strerror(-self.error));
	}
	return !self.error;
}

static int by_place(const struct sim_pages *a, const struct sim_pages *b)
{
	return a->at < b->at ? -1 : a->at > b->at;
}

/* The first gap of that length; false: there is none. */
static bool find_place(size_t length, uint64_t *ret_at)
{
	uint64_t at = 0;

	for (const struct sim_pages *other = self.all; other; other = other->next) {
		if (other->at - at >= length)
			break;
		at = other->at + other->length;
	}
	*ret_at = at;
	return SIM_PAGES_FILE - at >= length;
}

/* ------------------------------------------------------------------------
 * Moving.
 */

/* Nothing runs in this thread between the copy and the change: all signals are blocked. */
static int replace(void *source, void *target, size_t length)
{
	sigset_t all, old;
	int r = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	memcpy(source, target, length);
	if (mremap(source, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, target) == MAP_FAILED)
		r = -errno;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

/* Give back the memory behind them. */
static void punch(int fd, const struct sim_pages *pages)
{
	(void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)pages->at,
			(off_t)pages->length);
}

static int move_to_file(const struct sim_pages *pages)
{
	int fd = file(), r = 0;
	void *mapped;

	if (fd < 0)
		return fd;
	if (fallocate(fd, 0, (off_t)pages->at, (off_t)pages->length) < 0)
		return -errno;
	mapped = mmap(NULL, pages->length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
		      (off_t)pages->at);
	if (mapped == MAP_FAILED) {
		r = -errno;
		goto err_punch;
	}
	r = replace(mapped, (void *)pages->from, pages->length);
	if (!r)
		return 0;
	munmap(mapped, pages->length);
err_punch:
	punch(fd, pages);
	return r;
}

/* Private memory with what a piece of the file has.  NULL: there is none. */
static void *copy_of(const struct sim_mapping *piece)
{
	size_t length = piece->to - piece->from, done = 0;
	char *copy = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = file();

	if (copy == MAP_FAILED)
		return NULL;
	if (piece->prot & PROT_READ) {
		memcpy(copy, (const void *)piece->from, length);
		return copy;
	}
	while (fd >= 0 && done < length) {
		ssize_t n = pread(fd, copy + done, length - done, (off_t)(piece->offset + done));

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (done == length)
		return copy;
	munmap(copy, length);
	return NULL;
}

/* A copy takes a piece's place. */
static int put_in_place(const struct sim_mapping *piece, void *copy)
{
	size_t length = piece->to - piece->from;

	if (mprotect(copy, length, piece->prot) < 0 ||
	    mremap(copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)piece->from) ==
		    MAP_FAILED)
		return -errno;
	return 0;
}

/* Wherever the program has put them meanwhile.  0: none of them is mapped any more. */
static int move_back(const struct sim_pages *pages)
{
	struct sim_mapping pieces[MAX_PIECES];
	int num = sim_maps_of(&self.id, pages->at, pages->length, pieces, MAX_PIECES), r = 0, fd;
	sigset_t all, old;

	if (num < 0)
		return num;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (int i = 0; i < num && !r; i++) {
		void *copy = copy_of(&pieces[i]);

		r = copy ? put_in_place(&pieces[i], copy) : -ENOMEM;
		if (r && copy)
			munmap(copy, pieces[i].to - pieces[i].from);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r < 0)
		return r;
	fd = file();
	if (fd >= 0)
		punch(fd, pages);
	return 0;
}

/* ------------------------------------------------------------------------
 * fork().
 */

static void before_fork(void)
{
	struct sim_mapping pieces[MAX_PIECES];
	int num = self.all ? sim_maps_of(&self.id, 0, SIM_PAGES_FILE, pieces, MAX_PIECES) : 0;

	num_copies = 0;
	for (int i = 0; i < num; i++) {
		void *copy = copy_of(&pieces[i]);

		if (!copy) {
			num = -ENOMEM;
			break;
		}
		copies[num_copies].piece = pieces[i];
		copies[num_copies++].copy = copy;
	}
	if (num < 0)
		sim_core->log(POLYCM_LOG_WARN, NULL, "a child of fork() shares registered memory with "
			      "this process: %s", strerror(-num));
}

static void drop_copies(void)
{
	for (unsigned int i = 0; i < num_copies; i++)
		munmap(copies[i].copy, copies[i].piece.to - copies[i].piece.from);
	num_copies = 0;
}

static void after_fork_child(void)
{
	for (unsigned int i = 0; i < num_copies; i++)
		if (put_in_place(&copies[i].piece, copies[i].copy) < 0)
			munmap(copies[i].copy, copies[i].piece.to - copies[i].piece.from);
	num_copies = 0;
}

static void watch_forks(void)
{
	sim_engine_hooks.forking = before_fork;
	sim_engine_hooks.fork_done = drop_copies;
}

/* ------------------------------------------------------------------------
 * Sharing.
 */

bool sim_pages_may_move(void)
{
	uint64_t now = sim_now();

	if (!self.began)
		self.began = now;
	if (self.error || now < self.not_before || !sim_segment_joined() ||
	    self.spent > sim_pages_time + (now - self.began) / TIME_SHARE)
		return false;
	if (sim_is_only_thread())
		return true;
	self.not_before = now + THREADS_AGAIN;
	return false;
}

/* Are they still where they were moved? */
static bool is_in_place(const struct sim_pages *pages)
{
	struct sim_mapping piece;

	return sim_maps_of(&self.id, pages->at, pages->length, &piece, 1) == 1 &&
	       piece.from == pages->from && piece.to - piece.from == pages->length &&
	       piece.offset == pages->at && piece.prot == (PROT_READ | PROT_WRITE);
}

static struct sim_pages *move(uintptr_t from, size_t length)
{
	struct sim_pages *pages;
	char here;
	int r;

	if (length > MOST || (uintptr_t)&here - from < length || !have_file())
		return NULL;
	if (!sim_maps_plain(from, length)) {
		sim_core->log(POLYCM_LOG_DEBUG, NULL, "%zu bytes at %p are no plain memory: other "
			      "processes do not map them", length, (void *)from);
		return NULL;
	}
	pages = malloc(sizeof(*pages));
	if (!pages)
		return NULL;
	*pages = (struct sim_pages){ .from = from, .length = length, .users = 1 };
	r = find_place(length, &pages->at) ? move_to_file(pages) : -ENOSPC;
	if (r < 0) {
		sim_core->log(POLYCM_LOG_DEBUG, NULL, "%zu bytes at %p are not mapped by other "
			      "processes: %s", length, (void *)from, strerror(-r));
		free(pages);
		return NULL;
	}
	LL_INSERT_INORDER(self.all, pages, by_place);
	watch_forks();
	sim_core->log(POLYCM_LOG_DEBUG, NULL, "other processes can map %zu bytes at %p", length,
		      (void *)from);
	return pages;
}

static struct sim_pages *share(uintptr_t from, size_t length)
{
	struct sim_pages *pages;

	for (pages = self.all; pages; pages = pages->next) {
		if (from + length <= pages->from || pages->from + pages->length <= from)
			continue;
		if (from < pages->from || pages->from + pages->length < from + length ||
		    !is_in_place(pages))
			return NULL;
		pages->users++;
		return pages;
	}
	return move(from, length);
}

/* No other process is in this one's memory until it is opened again. */
static void close_memory(void)
{
	sim_visit_close(SIM_CLOSED_MOVING, true);
	sim_visit_wait();
}

struct sim_pages *sim_pages_share(const void *memory, size_t length)
{
	uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
	uintptr_t from = ((uintptr_t)memory + mask) & ~mask, to = ((uintptr_t)memory + length) & ~mask;
	struct sim_pages *pages;
	uint64_t began;

	if (from >= to || !sim_pages_may_move())
		return NULL;
	began = sim_now();
	close_memory();
	pages = share(from, to - from);
	sim_visit_close(SIM_CLOSED_MOVING, false);
	self.spent += sim_now() - began;
	return pages;
}

/* With several threads they stay where they are. */
void sim_pages_release(struct sim_pages *pages)
{
	uint64_t began = sim_now();

	if (--pages->users || !sim_is_only_thread())
		return;
	close_memory();
	if (!move_back(pages)) {
		LL_DELETE(self.all, pages);
		free(pages);
	}
	sim_visit_close(SIM_CLOSED_MOVING, false);
	self.spent += sim_now() - began;
}

const struct sim_file_id *sim_pages_file(int *ret_fd)
{
	*ret_fd = self.fd;
	return self.id.inode ? &self.id : NULL;
}

void sim_pages_forget(void)
{
	struct sim_pages *pages;

	after_fork_child();
	while ((pages = self.all)) {
		LL_DELETE(self.all, pages);
		free(pages);
	}
	if (self.id.inode && file() >= 0)
		close(self.fd);
	memset(&self, 0, sizeof(self));
}

