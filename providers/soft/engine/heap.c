/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine/heap.c - the engine's queue of timers.
 *
 * Arming a timer must not fail.  So the array is reserved address space that the kernel fills
 * page by page, for four million timers, or fewer if there is less.  If it is full and cannot
 * grow, further timers are in an ordered list, which is slow and needs no memory.  The next
 * engine gets the same array, since to map one takes longer than many a test; it stays until
 * the process ends, as providers do.
 *
 * Entries have the deadline beside the pointer, and the four children of a node share a cache
 * line, so that a descent reads timers only for equal deadlines.
 */
#include "config.h"

#include <errno.h>
#include <sys/mman.h>

#include "heap.h"

struct entry {
	uint64_t deadline;
	struct sim_timer *timer;
};

#define FIRST_CAPACITY (1u << 22)
#define LEAST_CAPACITY (1u << 7)
#define LISTED UINT32_MAX	/* the slot of a timer in the list */
#define KEPT_BYTES 65536u	/* of the array, from one engine to the next */
#define LINE_SHIFT 3u	/* index of the root, so that children 4i+1 .. 4i+4 begin a cache line */

static struct entry *memory;	/* entry i is memory[i + LINE_SHIFT] */
static uint32_t capacity, count;
static uint32_t num_looks;	/* timers in the heap that only look */
static struct sim_timer *list;	/* the earliest first */

static size_t bytes(uint32_t entries)
{
	return ((size_t)entries + LINE_SHIFT) * sizeof(struct entry);
}

int sim_heap_open(void)
{
	void *mapping = MAP_FAILED;

	if (memory)
		return 0;
	for (capacity = FIRST_CAPACITY; capacity >= LEAST_CAPACITY; capacity /= 2) {
		mapping = mmap(NULL, bytes(capacity), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (mapping != MAP_FAILED)
			break;
	}
	if (mapping == MAP_FAILED) {
		capacity = 0;
		return -ENOMEM;
	}
	memory = mapping;
	return 0;
}

void sim_heap_close(void)
{
	for (uint32_t i = 0; i < count; i++)
		memory[i + LINE_SHIFT].timer->slot = 0;
	for (; list; list = list->next)
		list->slot = 0;
	count = num_looks = 0;
	if (bytes(capacity) > KEPT_BYTES)
		madvise((char *)memory + KEPT_BYTES, bytes(capacity) - KEPT_BYTES, MADV_DONTNEED);
}

static bool before(const struct entry *a, const struct entry *b)
{
	if (a->deadline != b->deadline)
		return a->deadline < b->deadline;
	return a->timer->seq < b->timer->seq;
}

static void place(uint32_t index, const struct entry *entry)
{
	memory[index + LINE_SHIFT] = *entry;
	entry->timer->slot = index + 1;
}

static void sift_up(uint32_t index, struct entry entry)
{
	while (index) {
		uint32_t parent = (index - 1) / 4;

		if (!before(&entry, &memory[parent + LINE_SHIFT]))
			break;
		place(index, &memory[parent + LINE_SHIFT]);
		index = parent;
	}
	place(index, &entry);
}

static void sift_down(uint32_t index, struct entry entry)
{
	for (;;) {
		uint32_t child = index * 4 + 1, last = child + 4, best;

		if (child >= count)
			break;
		if (last > count)
			last = count;
		for (best = child++; child < last; child++)
			if (before(&memory[child + LINE_SHIFT], &memory[best + LINE_SHIFT]))
				best = child;
		if (!before(&memory[best + LINE_SHIFT], &entry))
			break;
		place(index, &memory[best + LINE_SHIFT]);
		index = best;
	}
	place(index, &entry);
}

static bool grow(void)
{
	void *mapping;

	if (capacity > LISTED / 2)
		return false;
	mapping = mremap(memory, bytes(capacity), bytes(capacity * 2), MREMAP_MAYMOVE);
	if (mapping == MAP_FAILED)
		return false;
	memory = mapping;
	capacity *= 2;
	return true;
}

static bool is_earlier(const struct sim_timer *a, const struct sim_timer *b)
{
	return a->deadline != b->deadline ? a->deadline < b->deadline : a->seq < b->seq;
}

static __attribute__((cold)) void list_insert(struct sim_timer *timer)
{
	struct sim_timer **at = &list;

	while (*at && is_earlier(*at, timer))
		at = &(*at)->next;
	timer->next = *at;
	timer->slot = LISTED;
	*at = timer;
}

static __attribute__((cold)) void list_remove(struct sim_timer *timer)
{
	struct sim_timer **at = &list;

	while (*at != timer)
		at = &(*at)->next;
	*at = timer->next;
	timer->slot = 0;
}

void sim_heap_insert(struct sim_timer *timer)
{
	struct entry entry = { .deadline = timer->deadline, .timer = timer };

	if (__builtin_expect(count == capacity, 0) && !grow())
		list_insert(timer);
	else
		sift_up(count++, entry);
	num_looks += timer->looks;
}

void sim_heap_remove(struct sim_timer *timer)
{
	uint32_t index = timer->slot - 1;
	struct entry last;

	num_looks -= timer->looks;
	if (__builtin_expect(timer->slot == LISTED, 0)) {
		list_remove(timer);
		return;
	}
	last = memory[--count + LINE_SHIFT];
	timer->slot = 0;
	if (index == count)
		return;
	if (index && before(&last, &memory[(index - 1) / 4 + LINE_SHIFT]))
		sift_up(index, last);
	else
		sift_down(index, last);
}

static __attribute__((cold)) void move_list(uint64_t (*deadline_of)(const struct sim_timer *timer,
								    void *arg), void *arg)
{
	struct sim_timer *timer, *rest = list;

	list = NULL;
	while ((timer = rest)) {
		rest = timer->next;
		num_looks -= timer->looks;
		timer->deadline = deadline_of(timer, arg);
		if (timer->deadline == SIM_NEVER)
			timer->slot = 0;
		else
			sim_heap_insert(timer);
	}
}

void sim_heap_move(uint64_t (*deadline_of)(const struct sim_timer *timer, void *arg), void *arg)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct entry entry = memory[i + LINE_SHIFT];

		entry.deadline = entry.timer->deadline = deadline_of(entry.timer, arg);
		if (entry.deadline == SIM_NEVER) {
			entry.timer->slot = 0;
			num_looks -= entry.timer->looks;
		} else {
			place(kept++, &entry);
		}
	}
	count = kept;
	for (uint32_t i = count; i-- > 0;)
		sift_down(i, memory[i + LINE_SHIFT]);
	if (list)
		move_list(deadline_of, arg);
}

struct sim_timer *sim_heap_first(void)
{
	struct sim_timer *first = count ? memory[LINE_SHIFT].timer : NULL;

	if (__builtin_expect(list != NULL, 0) && (!first || is_earlier(list, first)))
		return list;
	return first;
}

uint64_t sim_heap_deadline(void)
{
	uint64_t first = count ? memory[LINE_SHIFT].deadline : SIM_NEVER;

	if (__builtin_expect(list != NULL, 0) && list->deadline < first)
		return list->deadline;
	return first;
}

bool sim_heap_only_looks(void)
{
	return num_looks == count && !list;
}
