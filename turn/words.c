/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/words.c - see words.h.  What is mapped where stands in /proc/self/maps, which takes long to
 * read; so what was found is kept until the process unmaps it, or maps something else there.
 */
#include "config.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>

#include "hand.h"
#include "raw.h"
#include "words.h"

#define MOST_KEPT 32u

/* One line: "BEGIN-END PERMISSIONS OFFSET MAJOR:MINOR INODE", and a path that does not matter. */
struct mapping {
	uint64_t begin, end, offset, device, inode;
	bool is_shared;
};

static struct mapping kept[MOST_KEPT];
static uint32_t num_kept;

void turn_words_forget(uint64_t begin, uint64_t len)
{
	const uint64_t end = len > UINT64_MAX - begin ? UINT64_MAX : begin + len;
	uint32_t num = 0;

	for (uint32_t i = 0; i < num_kept; i++)
		if (kept[i].end <= begin || kept[i].begin >= end)
			kept[num++] = kept[i];
	num_kept = num;
}

static uint64_t number(const char **at, const char *end, unsigned int base)
{
	uint64_t value = 0;

	for (; *at < end; ++*at) {
		char c = **at;
		unsigned int digit = c >= '0' && c <= '9' ? (unsigned int)(c - '0') :
				     c >= 'a' && c <= 'f' ? (unsigned int)(c - 'a') + 10 : 16;

		if (digit >= base)
			break;
		value = value * base + digit;
	}
	return value;
}

static void skip(const char **at, const char *end, size_t num)
{
	*at = (size_t)(end - *at) < num ? end : *at + num;
}

static struct mapping parse(const char *line, const char *end)
{
	struct mapping mapping = { .begin = number(&line, end, 16) };
	uint64_t major;

	skip(&line, end, 1);
	mapping.end = number(&line, end, 16);
	skip(&line, end, 1);
	mapping.is_shared = end - line > 3 && line[3] == 's';
	skip(&line, end, 5);
	mapping.offset = number(&line, end, 16);
	skip(&line, end, 1);
	major = number(&line, end, 16);
	skip(&line, end, 1);
	mapping.device = major << 32 | number(&line, end, 16);
	skip(&line, end, 1);
	mapping.inode = number(&line, end, 10);
	return mapping;
}

/* Searches a piece of the file for the line, whole lines only; what is left is moved to its begin. */
static bool search(char *piece, size_t *len, uint64_t address, struct mapping *ret)
{
	char *line = piece, *end;

	while ((end = memchr(line, '\n', *len - (size_t)(line - piece)))) {
		struct mapping mapping = parse(line, end);

		if (address >= mapping.begin && address < mapping.end) {
			*ret = mapping;
			return true;
		}
		line = end + 1;
	}
	*len -= (size_t)(line - piece);
	memmove(piece, line, *len);
	return false;
}

static bool read_mapping(uint64_t address, struct mapping *ret)
{
	char piece[4096];
	size_t len = 0;
	bool found = false;
	long num, fd = TURN_RAW(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	while (!found && len < sizeof(piece)) {
		num = TURN_RAW(SYS_read, fd, piece + len, sizeof(piece) - len);
		if (num <= 0)
			break;
		len += (size_t)num;
		found = search(piece, &len, address, ret);
	}
	TURN_RAW(SYS_close, fd);
	return found;
}

static struct mapping *find(uint64_t address)
{
	struct mapping *mapping;

	for (uint32_t i = 0; i < num_kept; i++)
		if (address >= kept[i].begin && address < kept[i].end)
			return &kept[i];
	if (num_kept == MOST_KEPT)
		num_kept = 0;
	mapping = &kept[num_kept];
	if (!read_mapping(address, mapping))
		return NULL;
	num_kept++;
	return mapping;
}

/* pthread_join() waits for that word as for one that is shared, since the kernel wakes it so. */
static bool is_id_of_thread(uint64_t address)
{
	for (uint32_t i = 0; i < turn_segment->num_threads; i++) {
		const struct turn_thread *thread = &turn_segment->threads[i];

		if (thread->member == turn_member && thread->cleared == address &&
		    thread->state != TURN_FREE && thread->state != TURN_GONE)
			return true;
	}
	return false;
}

struct turn_word turn_word_at(const void *address, bool is_private)
{
	struct turn_word word = { .space = (uint64_t)turn_member + 1, .at = (uint64_t)address };
	const struct mapping *mapping = NULL;

	if (!is_private && !is_id_of_thread(word.at))
		mapping = find(word.at);
	if (mapping && mapping->is_shared) {
		word.at = word.at - mapping->begin + mapping->offset;
		/* No member has so great a number. */
		word.space = UINT64_C(1) << 63 | (mapping->device << 40 ^ mapping->inode);
	}
	return word;
}
