/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap.c - the engine's queue of timers.
 *
 * Arming a timer must not fail, so the array is reserved address space that
 * the kernel fills page by page: four million timers before it has to grow.
 * Entries keep the deadline beside the pointer, and the four children of a
 * node share one cache line, so that a descent touches timers only in ties.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "heap.h"

struct entry {
	uint64_t deadline;
	struct sim_timer *timer;
};

#define FIRST_CAPACITY (1u << 22)
#define LINE_SHIFT 3u	/* root's place: children 4i+1 .. 4i+4 start a line then */

static struct entry *memory;	/* entry i is memory[i + LINE_SHIFT] */
static uint32_t capacity, count;

static size_t bytes(uint32_t entries)
{
	return ((size_t)entries + LINE_SHIFT) * sizeof(struct entry);
}

int sim_heap_open(void)
{
	void *mapping = mmap(NULL, bytes(FIRST_CAPACITY), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mapping == MAP_FAILED)
		return -ENOMEM;
	memory = mapping;
	capacity = FIRST_CAPACITY;
	count = 0;
	return 0;
}

void sim_heap_close(void)
{
	for (uint32_t i = 0; i < count; i++)
		memory[i + LINE_SHIFT].timer->slot = 0;
	munmap(memory, bytes(capacity));
	memory = NULL;
	capacity = count = 0;
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

static void grow(void)
{
	void *mapping = mremap(memory, bytes(capacity), bytes(capacity * 2), MREMAP_MAYMOVE);

	if (mapping == MAP_FAILED) {
		sim_core->log(POLYCM_LOG_ERROR, NULL, "no memory for more than %u timers", count);
		abort();
	}
	memory = mapping;
	capacity *= 2;
}

void sim_heap_insert(struct sim_timer *timer)
{
	struct entry entry = { .deadline = timer->deadline, .timer = timer };

	if (count == capacity)
		grow();
	sift_up(count++, entry);
}

void sim_heap_remove(struct sim_timer *timer)
{
	uint32_t index = timer->slot - 1;
	struct entry last = memory[--count + LINE_SHIFT];

	timer->slot = 0;
	if (index == count)
		return;
	if (index && before(&last, &memory[(index - 1) / 4 + LINE_SHIFT]))
		sift_up(index, last);
	else
		sift_down(index, last);
}

void sim_heap_move(uint64_t (*deadline_of)(const struct sim_timer *timer, void *arg), void *arg)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct entry entry = memory[i + LINE_SHIFT];

		entry.deadline = entry.timer->deadline = deadline_of(entry.timer, arg);
		if (entry.deadline == SIM_NEVER)
			entry.timer->slot = 0;
		else
			place(kept++, &entry);
	}
	count = kept;
	for (uint32_t i = count; i-- > 0;)
		sift_down(i, memory[i + LINE_SHIFT]);
}

struct sim_timer *sim_heap_first(void)
{
	return count ? memory[LINE_SHIFT].timer : NULL;
}

uint64_t sim_heap_deadline(void)
{
	return count ? memory[LINE_SHIFT].deadline : SIM_NEVER;
}
