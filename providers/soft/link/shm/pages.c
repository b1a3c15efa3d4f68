/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/shm/pages.c - see pages.h: which pages are shared, and what a child of fork() gets.
 *
 * Each range has a place of its own in the file, with a gap behind it: a program that grows its
 * mapping by mremap() gets the gap, which is empty, as new memory is.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utlist.h>

#include "providers/soft/engine/engine.h"
#include "providers/soft/shm/segment.h"
#include "providers/soft/shm/visit.h"
#include "held_signals.h"
#include "page_file.h"
#include "pages.h"

#define MOST ((size_t)64 << 20)		/* bytes that are moved at a time */
#define GAP (UINT64_C(256) << 20)
#define MOST_RANGES 128u
#define MOST_RESIDENT ((uint64_t)1 << 30)	/* bytes of a process: with more, smaps takes long */
#define TIME_SHARE 50u			/* this fraction of the time may be spent on moving, ... */
uint64_t sim_pages_time = SIM_MS(20);	/* ... and so much more */
#define THREADS_AGAIN SIM_MS(5)
#define MAX_PIECES 256u			/* mappings that are looked at at a time */

_Static_assert(MOST_RANGES * (MOST + GAP) <= SIM_PAGES_FILE, "there is always a place");

void (*sim_pages_forgotten)(void);

static struct {
	uint64_t began, spent;
	uint64_t not_before;		/* there were several threads */
	struct sim_pages *all;		/* by their place in the file */
	unsigned int num;
} self;

/* Copies for a child, between before and after a fork(). */
static struct {
	struct sim_mapping piece;
	void *copy;
} copies[MAX_PIECES];
static unsigned int num_copies;
static bool forking;

static struct sim_mapping pieces[MAX_PIECES];

/* Mappings of a part of the file, as many as fit; the number, or a negative errno. */
static int find_pieces(uint64_t at, uint64_t length)
{
	int unused;
	const struct sim_file_id *id = sim_page_file_id(&unused);

	return id ? sim_maps_of(id, at, length, pieces, MAX_PIECES) : 0;
}

/* ------------------------------------------------------------------------
 * fork().
 */

/* What has no copy now, the child copies. */
static void before_fork(void)
{
	int num = self.all ? find_pieces(0, SIM_PAGES_FILE) : 0;

	forking = true;
	num_copies = 0;
	for (int i = 0; i < num; i++) {
		copies[num_copies].piece = pieces[i];
		copies[num_copies].copy = sim_page_file_copy(&pieces[i]);
		num_copies += copies[num_copies].copy != NULL;
	}
}

static void drop_copies(void)
{
	for (unsigned int i = 0; i < num_copies; i++)
		if (copies[i].copy)
			munmap(copies[i].copy, copies[i].piece.to - copies[i].piece.from);
	num_copies = 0;
	forking = false;
}

/* The copy that was made of it, or one that is made now. */
static void *copy_for(const struct sim_mapping *piece)
{
	void *copy;

	for (unsigned int i = 0; i < num_copies; i++) {
		if (!copies[i].copy || copies[i].piece.from != piece->from ||
		    copies[i].piece.to != piece->to || copies[i].piece.offset != piece->offset)
			continue;
		copy = copies[i].copy;
		copies[i].copy = NULL;
		return copy;
	}
	return sim_page_file_copy(piece);
}

/* Rather no memory there than the parent's. */
static void make_private(void)
{
	int num;

	while ((num = find_pieces(0, SIM_PAGES_FILE)) > 0) {
		for (int i = 0; i < num; i++) {
			void *copy = copy_for(&pieces[i]);

			if (!copy || sim_page_file_put(&pieces[i], copy) < 0)
				munmap((void *)pieces[i].from, pieces[i].to - pieces[i].from);
		}
	}
}

static void drop(struct sim_pages *pages)
{
	LL_DELETE(self.all, pages);
	self.num--;
	free(pages);
}

void sim_pages_forked(void)
{
	struct sim_pages *pages;

	if (!forking)
		return;
	make_private();
	drop_copies();
	while ((pages = self.all))
		drop(pages);
	if (sim_pages_forgotten)
		sim_pages_forgotten();
	sim_page_file_close();
	memset(&self, 0, sizeof(self));
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
	if (now < self.not_before || !sim_segment_joined() ||
	    self.spent > sim_pages_time + (now - self.began) / TIME_SHARE)
		return false;
	if (sim_is_only_thread())
		return true;
	self.not_before = now + THREADS_AGAIN;
	return false;
}

static int by_place(const struct sim_pages *a, const struct sim_pages *b)
{
	return a->at < b->at ? -1 : a->at > b->at;
}

/* The first free place. */
static uint64_t find_place(size_t length)
{
	uint64_t at = 0;

	for (const struct sim_pages *other = self.all; other; other = other->next) {
		if (other->at - at >= length + GAP)
			break;
		at = other->at + other->length + GAP;
	}
	return at;
}

/* Wherever the program has put them meanwhile, and what it has added. */
static int put_back(const struct sim_pages *pages)
{
	int num, r = 0;

	while ((num = find_pieces(pages->at, pages->length + GAP)) > 0) {
		for (int i = 0; i < num && !r; i++) {
			void *copy = sim_page_file_copy(&pieces[i]);

			r = copy ? sim_page_file_put(&pieces[i], copy) : -ENOMEM;
		}
		if (r < 0)
			return r;
	}
	if (!num)
		sim_page_file_punch(pages->at, pages->length + GAP);
	return num;
}

/* No handler writes to what is copied; and what the kernel writes to is not moved. */
static int move_back(const struct sim_pages *pages)
{
	sigset_t old;
	int r;

	if (sim_maps_hand_over() && find_pieces(pages->at, pages->length + GAP))
		return -EBUSY;
	hold_signals(&old);
	r = put_back(pages);
	release_signals(&old);
	return r;
}

/* Are they still where they were moved? */
static bool is_in_place(const struct sim_pages *pages)
{
	return find_pieces(pages->at, pages->length + GAP) == 1 && pieces[0].from == pages->from &&
	       pieces[0].to - pieces[0].from == pages->length && pieces[0].offset == pages->at &&
	       pieces[0].prot == (PROT_READ | PROT_WRITE);
}

/* 0 or why they cannot be moved. */
static int move(uintptr_t from, size_t length, struct sim_pages **ret_pages)
{
	struct sim_pages *pages;
	char here;
	int r;

	if (length > MOST || self.num == MOST_RANGES || sim_maps_resident() > MOST_RESIDENT)
		return -EFBIG;
	r = sim_page_file_make();
	if (r < 0)
		return r;
	if ((uintptr_t)&here - from < length || !sim_maps_plain(from, length))
		return -EMEDIUMTYPE;
	pages = malloc(sizeof(*pages));
	if (!pages)
		return -ENOMEM;
	*pages = (struct sim_pages){
		.from = from, .length = length, .users = 1, .at = find_place(length),
	};
	r = sim_page_file_take(from, length, pages->at);
	if (r < 0) {
		free(pages);
		return r;
	}
	LL_INSERT_INORDER(self.all, pages, by_place);
	self.num++;
	watch_forks();
	*ret_pages = pages;
	return 0;
}

static int share(uintptr_t from, size_t length, struct sim_pages **ret_pages)
{
	struct sim_pages *pages, *next;

	for (pages = self.all; pages; pages = next) {
		next = pages->next;
		/* There were several threads when they were released. */
		if (!pages->users && !move_back(pages)) {
			drop(pages);
			continue;
		}
		if (from + length <= pages->from || pages->from + pages->length <= from)
			continue;
		if (from < pages->from || pages->from + pages->length < from + length ||
		    !is_in_place(pages))
			return -EEXIST;
		pages->users++;
		*ret_pages = pages;
		return 0;
	}
	return move(from, length, ret_pages);
}

/* No other process is in this one's memory until it is opened again; false: one stays. */
static bool close_memory(void)
{
	sim_visit_close(SIM_CLOSED_MOVING, true);
	return sim_visit_wait();
}

static const char *why_not(int r)
{
	switch (r) {
	case -EFBIG:
		return "it, their number or the process is too large";
	case -EMEDIUMTYPE:
		return "it is not plain anonymous memory: a stack, a file, locked, of huge pages";
	case -EEXIST:
		return "a part of it is mapped with another region";
	default:
		return strerror(-r);
	}
}

static void log_way(const void *memory, size_t length, const char *why)
{
	if (sim_core->log_enabled(POLYCM_LOG_DEBUG))
		sim_core->log(POLYCM_LOG_DEBUG, NULL, "registered memory %p + %zu: other processes %s%s",
			      memory, length, why ? "need a system call to reach it: " : "map it",
			      why ? why : "");
}

struct sim_pages *sim_pages_share(const void *memory, size_t length)
{
	uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
	uintptr_t from = ((uintptr_t)memory + mask) & ~mask, to = ((uintptr_t)memory + length) & ~mask;
	struct sim_pages *pages = NULL;
	uint64_t began;
	int r;

	if (from >= to) {
		log_way(memory, length, "it has no whole page");
		return NULL;
	}
	if (!sim_pages_may_move())
		return NULL;
	began = sim_now();
	r = close_memory() ? share(from, to - from, &pages) : -EBUSY;
	sim_visit_close(SIM_CLOSED_MOVING, false);
	self.spent += sim_now() - began;
	log_way(memory, length, r < 0 ? why_not(r) : NULL);
	return pages;
}

/* With several threads they stay where they are mapped. */
void sim_pages_release(struct sim_pages *pages)
{
	uint64_t began = sim_now();

	if (--pages->users)
		return;
	if (close_memory() && (sim_is_only_thread() ||
			       !find_pieces(pages->at, pages->length + GAP)) && !move_back(pages))
		drop(pages);
	sim_visit_close(SIM_CLOSED_MOVING, false);
	self.spent += sim_now() - began;
}
