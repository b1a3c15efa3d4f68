/* SPDX-License-Identifier: BSD-2-Clause */
/* link/shm/maps.c - see maps.h: reads /proc/self/maps and smaps. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "maps.h"

/* A file, line by line.  No stdio: it would allocate memory, maybe where pages are to be moved. */
struct lines {
	int fd;
	size_t used, filled;
	int error;
	char text[8192];
};

/* The next line, without its end; NULL: there is none. */
static char *next_line(struct lines *lines)
{
	for (;;) {
		char *line = lines->text + lines->used;
		char *end = memchr(line, '\n', lines->filled - lines->used);
		ssize_t n;

		if (end) {
			*end = '\0';
			lines->used = (size_t)(end - lines->text) + 1;
			return line;
		}
		memmove(lines->text, line, lines->filled - lines->used);
		lines->filled -= lines->used;
		lines->used = 0;
		if (lines->filled == sizeof(lines->text)) {
			lines->error = -E2BIG;
			return NULL;
		}
		n = read(lines->fd, lines->text + lines->filled, sizeof(lines->text) - lines->filled);
		if (n < 0)
			lines->error = -errno;
		if (n <= 0)
			return NULL;
		lines->filled += (size_t)n;
	}
}

static int open_lines(struct lines *lines, const char *path)
{
	lines->used = lines->filled = 0;
	lines->error = 0;
	lines->fd = open(path, O_RDONLY | O_CLOEXEC);
	return lines->fd < 0 ? -errno : 0;
}

/* The line of a mapping. */
struct header {
	struct sim_mapping mapping;
	struct sim_file_id id;
	bool shared;
	const char *name;
};

static bool parse_header(const char *line, struct header *ret_header)
{
	int name = 0;
	char perms[5];
	struct header h = { 0 };

	if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
		   &h.mapping.from, &h.mapping.to, perms, &h.mapping.offset, &h.id.major, &h.id.minor,
		   &h.id.inode, &name) != 7 || !name)
		return false;
	h.mapping.prot = (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0) |
			 (perms[2] == 'x' ? PROT_EXEC : 0);
	h.shared = perms[3] == 's';
	h.name = line + name;
	*ret_header = h;
	return true;
}

struct sim_file_id sim_file_id(const struct stat *st)
{
	return (struct sim_file_id){
		.major = major(st->st_dev), .minor = minor(st->st_dev), .inode = st->st_ino,
	};
}

bool sim_file_same(const struct sim_file_id *a, const struct sim_file_id *b)
{
	return a->inode == b->inode && a->major == b->major && a->minor == b->minor;
}

/* Cut a mapping to those bytes of its file; false: it has none of them. */
static bool cut(struct sim_mapping *mapping, uint64_t at, uint64_t length)
{
	uint64_t size = mapping->to - mapping->from;

	if (mapping->offset >= at + length || mapping->offset + size <= at)
		return false;
	if (mapping->offset < at) {
		mapping->from += (uintptr_t)(at - mapping->offset);
		mapping->offset = at;
	}
	size = mapping->to - mapping->from;
	if (mapping->offset + size > at + length)
		mapping->to -= (uintptr_t)(mapping->offset + size - (at + length));
	return true;
}

int sim_maps_of(const struct sim_file_id *id, uint64_t at, uint64_t length,
		struct sim_mapping *ret_pieces, unsigned int max)
{
	struct header header;
	struct lines lines;
	unsigned int num = 0;
	const char *line;
	int r = open_lines(&lines, "/proc/self/maps");

	if (r < 0)
		return r;
	while ((line = next_line(&lines))) {
		if (!parse_header(line, &header) || !sim_file_same(&header.id, id) ||
		    !cut(&header.mapping, at, length))
			continue;
		ret_pieces[num++] = header.mapping;
		if (num == max)
			break;
	}
	close(lines.fd);
	return lines.error ? lines.error : (int)num;
}

uint64_t sim_maps_resident(void)
{
	uint64_t size, resident;
	struct lines lines;
	const char *line;

	if (open_lines(&lines, "/proc/self/statm") < 0)
		return UINT64_MAX;
	line = next_line(&lines);
	close(lines.fd);
	if (!line || sscanf(line, "%" SCNu64 " %" SCNu64, &size, &resident) != 2)
		return UINT64_MAX;
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/*
 * proc(5), VmFlags: all of its flags must be among these.  So not locked, of huge pages, left
 * out or emptied for children, watched by userfaultfd, a stack.
 */
static bool has_plain_flags(const char *flags)
{
	static const char plain[] = " rd wr mr mw me ac sd nr hg nh mg ";

	for (; *flags; flags += *flags == ' ' ? 1 : 2) {
		char one[5] = " ?? ";

		if (*flags == ' ')
			continue;
		if (!flags[1])
			return false;
		memcpy(one + 1, flags, 2);
		if (!strstr(plain, one))
			return false;
	}
	return true;
}

/* Memory of the C library's malloc() is as good as any: it does not count on emptied pages there. */
static bool is_plain(const struct header *header)
{
	return header->mapping.prot == (PROT_READ | PROT_WRITE) && !header->shared &&
	       !header->id.inode && (!header->name[0] || !strcmp(header->name, "[heap]") ||
				     !strncmp(header->name, "[anon:", 6));
}

static bool hands_memory_over(const char *name)
{
	return strstr(name, "io_uring") || strstr(name, "[aio]");
}

bool sim_maps_plain(uintptr_t from, size_t length)
{
	uintptr_t at = from, end = from + length;	/* all before `at' is plain */
	struct header header = { 0 };
	bool plain = false, wanted = false, good = true;
	struct lines lines;
	const char *line;

	if (open_lines(&lines, "/proc/self/smaps") < 0)
		return false;
	while (good && (line = next_line(&lines))) {
		if (parse_header(line, &header)) {
			good = !hands_memory_over(header.name);
			plain = is_plain(&header);
			wanted = at < end && header.mapping.from <= at && at < header.mapping.to;
		} else if (wanted && !strncmp(line, "ProtectionKey:", 14)) {
			plain &= !strpbrk(line, "123456789");
		} else if (wanted && !strncmp(line, "VmFlags:", 8)) {
			good = plain && has_plain_flags(line + 8);
			at = header.mapping.to;
		}
	}
	close(lines.fd);
	return good && !lines.error && at >= end;
}

bool sim_maps_hand_over(void)
{
	struct header header;
	struct lines lines;
	const char *line;
	bool found = false;

	if (open_lines(&lines, "/proc/self/maps") < 0)
		return true;
	while (!found && (line = next_line(&lines)))
		found = parse_header(line, &header) && hands_memory_over(header.name);
	close(lines.fd);
	return found || lines.error;
}
