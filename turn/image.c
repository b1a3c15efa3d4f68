/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/image.c - see image.h.  Source: elf(5), execve(2), ld.so(8). */
#include "config.h"

#include <elf.h>
#include <string.h>

#include "image.h"

#define MOST_ENTRIES 512u	/* of a dynamic section */
#define NOT_MAPPED 65534u	/* whose the file is has no number in this user namespace */

static bool read_all(const struct turn_image_file *file, void *to, size_t len, uint64_t at)
{
	return file->read(file, to, len, at) == (long)len;
}

/* The dynamic linker itself is a library, with a name. */
static bool has_name(const struct turn_image_file *file, const Elf64_Phdr *dynamic)
{
	Elf64_Dyn entry;

	for (uint64_t i = 0; i < MOST_ENTRIES && i < dynamic->p_filesz / sizeof(entry); i++) {
		if (!read_all(file, &entry, sizeof(entry), dynamic->p_offset + i * sizeof(entry)) ||
		    entry.d_tag == DT_NULL)
			return false;
		if (entry.d_tag == DT_SONAME)
			return true;
	}
	return false;
}

static bool is_static(const struct turn_image_file *file, const Elf64_Ehdr *header)
{
	Elf64_Phdr segment;
	bool named = false;

	for (unsigned int i = 0; i < header->e_phnum; i++) {
		if (!read_all(file, &segment, sizeof(segment),
			      header->e_phoff + i * sizeof(segment)))
			return false;
		if (segment.p_type == PT_INTERP)
			return false;
		if (segment.p_type == PT_DYNAMIC)
			named = has_name(file, &segment);
	}
	return header->e_phnum && !named;
}

/* As the kernel finds it in the first line. */
static void find_interpreter(const char *line, size_t len, char *ret, size_t size)
{
	size_t begin = 2, end;

	while (begin < len && (line[begin] == ' ' || line[begin] == '\t'))
		begin++;
	for (end = begin; end < len && line[end] && !strchr(" \t\n", line[end]); end++)
		;
	len = end - begin < size ? end - begin : size - 1;
	memcpy(ret, line + begin, len);
	ret[len] = '\0';
}

enum turn_image turn_image_of(const struct turn_image_file *file, char *ret_interpreter, size_t size)
{
	union {
		Elf64_Ehdr header;
		char line[256];
	} begin = { .line = "" };
	const long len = file->read(file, begin.line, sizeof(begin.line), 0);

	if (len >= 2 && !memcmp(begin.line, "#!", 2)) {
		find_interpreter(begin.line, (size_t)len, ret_interpreter, size);
		return TURN_IMAGE_SCRIPT;
	}
	if (len < (long)sizeof(begin.header) || memcmp(begin.line, ELFMAG, SELFMAG) != 0)
		return TURN_IMAGE_FITS;
	if (begin.header.e_ident[EI_CLASS] != ELFCLASS64 || begin.header.e_machine != EM_X86_64)
		return TURN_IMAGE_FOREIGN;
	return is_static(file, &begin.header) ? TURN_IMAGE_STATIC : TURN_IMAGE_FITS;
}

bool turn_image_gains_rights(const struct stat *st, bool has_capabilities, uid_t uid, gid_t gid)
{
	/* Of others than the namespace's users the kernel does not heed it. */
	if (st->st_mode & S_ISUID && st->st_uid != uid && st->st_uid != NOT_MAPPED)
		return true;
	if (st->st_mode & S_ISGID && st->st_mode & S_IXGRP && st->st_gid != gid &&
	    st->st_gid != NOT_MAPPED)
		return true;
	return has_capabilities && uid;
}
