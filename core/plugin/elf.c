/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin/elf.c - is all of a plugin file there?
 *
 * The dynamic linker maps what the headers say and dies of SIGBUS where the
 * file ends earlier.  Whatever else may be wrong with a file it says itself.
 */
#include "config.h"

#include "plugin_internal.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEGMENTS 16u	/* as many as most files have, or more */
#define NATIVE_CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)

/* Does the file of `size' bytes hold num things of `each' bytes from offset on? */
static bool holds(uint64_t size, uint64_t offset, uint64_t num, uint64_t each)
{
	return offset <= size && (!each || num <= (size - offset) / each);
}

/* A few at a time: no memory that could be missing, which is no fault of the file's. */
static bool segments_complete(int file, uint64_t size, const ElfW(Ehdr) *header)
{
	ElfW(Phdr) segments[SEGMENTS];
	const size_t each = sizeof(segments[0]);

	for (size_t i = 0; i < header->e_phnum; i++) {
		const ElfW(Phdr) *segment = &segments[i % SEGMENTS];
		size_t num = header->e_phnum - i < SEGMENTS ? header->e_phnum - i : SEGMENTS;

		/* The file is long enough: the linker says what is wrong. */
		if (i % SEGMENTS == 0 && pread(file, segments, num * each,
					       (off_t)(header->e_phoff + i * each)) !=
					 (ssize_t)(num * each))
			return true;
		if ((segment->p_type == PT_LOAD || segment->p_type == PT_DYNAMIC) &&
		    !holds(size, segment->p_offset, segment->p_filesz, 1))
			return false;
	}
	return true;
}

static bool complete(int file, uint64_t size)
{
	ElfW(Ehdr) header;

	/* The linker says it in better words. */
	if (pread(file, &header, sizeof(header), 0) != sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != NATIVE_CLASS ||
	    header.e_phentsize != sizeof(ElfW(Phdr)))
		return true;
	return holds(size, header.e_phoff, header.e_phnum, header.e_phentsize) &&
	       holds(size, header.e_shoff, header.e_shnum, header.e_shentsize) &&
	       segments_complete(file, size, &header);
}

bool polycm_file_complete(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	bool result = true;

	if (file < 0)
		return true;
	if (!fstat(file, &st))
		result = complete(file, (uint64_t)st.st_size);
	close(file);
	return result;
}
