/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run_sanitizer.c - polycm run: the sanitizer's runtime that a program needs.
 *
 * AddressSanitizer's refuses to start behind a library that is preloaded, so
 * it is preloaded first.  Its name is enough: the dynamic linker looks for a
 * preloaded library just as it looks for one that the program needs.
 */
#include "config.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"

struct file {
	const unsigned char *bytes;
	size_t size;
};

/* NULL: the file does not have it all. */
static const void *part(const struct file *file, uint64_t offset, uint64_t num, size_t each)
{
	if (offset > file->size || num > (file->size - offset) / each)
		return NULL;
	return file->bytes + offset;
}

static const ElfW(Phdr) *segments(const struct file *file, size_t *ret_num)
{
	const ElfW(Ehdr) *header = part(file, 0, 1, sizeof(*header));
	const unsigned char class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;

	if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
	    header->e_ident[EI_CLASS] != class || header->e_phentsize != sizeof(ElfW(Phdr)) ||
	    header->e_phoff % _Alignof(ElfW(Phdr)))
		return NULL;
	*ret_num = header->e_phnum;
	return part(file, header->e_phoff, header->e_phnum, sizeof(ElfW(Phdr)));
}

/* A string of the table that is loaded there. */
static const char *string_at(const struct file *file, const ElfW(Phdr) *all, size_t num,
			     uint64_t address)
{
	for (size_t i = 0; i < num; i++) {
		uint64_t offset = address - all[i].p_vaddr + all[i].p_offset;

		if (all[i].p_type != PT_LOAD || address < all[i].p_vaddr ||
		    address - all[i].p_vaddr >= all[i].p_filesz || offset >= file->size)
			continue;
		if (memchr(file->bytes + offset, '\0', file->size - offset))
			return (const char *)file->bytes + offset;
	}
	return NULL;
}

static bool is_runtime(const char *name)
{
	static const char *const names[] = {
		"libasan.so", "libhwasan.so", "liblsan.so", "libtsan.so", "libclang_rt.asan",
		"libclang_rt.hwasan", "libclang_rt.lsan", "libclang_rt.tsan",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

static const char *needed_runtime(const struct file *file)
{
	const ElfW(Phdr) *all;
	const ElfW(Dyn) *entries = NULL;
	size_t num = 0, num_entries = 0, i;
	uint64_t strings = 0;
	const char *name;

	all = segments(file, &num);
	for (i = 0; all && i < num; i++) {
		if (all[i].p_type != PT_DYNAMIC || all[i].p_offset % _Alignof(ElfW(Dyn)))
			continue;
		num_entries = all[i].p_filesz / sizeof(*entries);
		entries = part(file, all[i].p_offset, num_entries, sizeof(*entries));
	}
	for (i = 0; entries && i < num_entries; i++)
		if (entries[i].d_tag == DT_STRTAB)
			strings = entries[i].d_un.d_ptr;
	for (i = 0; entries && i < num_entries; i++) {
		if (entries[i].d_tag != DT_NEEDED)
			continue;
		name = string_at(file, all, num, strings + entries[i].d_un.d_val);
		if (name && is_runtime(name))
			return name;
	}
	return NULL;
}

static char *runtime_of(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct file file = { .size = 0 };
	const char *name;
	char *runtime = NULL;
	struct stat st;
	void *mapped;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0) {
		file.size = (size_t)st.st_size;
		mapped = mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (mapped != MAP_FAILED) {
			file.bytes = mapped;
			name = needed_runtime(&file);
			runtime = name ? tool_strdup(name) : NULL;
			munmap(mapped, file.size);
		}
	}
	close(fd);
	return runtime;
}

/* As execvp() looks for it. */
char *run_sanitizer_runtime(const char *command)
{
	const char *folders = getenv("PATH"), *end;
	char *path, *runtime;

	if (strchr(command, '/') || !folders)
		return runtime_of(command);
	for (;; folders = end + 1) {
		end = strchrnul(folders, ':');
		path = tool_printf("%.*s%s%s", (int)(end - folders), folders,
				   end > folders ? "/" : "", command);
		if (!access(path, X_OK)) {
			runtime = runtime_of(path);
			free(path);
			return runtime;
		}
		free(path);
		if (!*end)
			return NULL;
	}
}
