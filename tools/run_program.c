/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run_program.c - polycm run: finds a program and reads its ELF headers: the sanitizer's
 * runtime that it needs, and whether libraries can be preloaded at all; of a script
 * those of its interpreter.
 *
 * AddressSanitizer refuses to start behind a preloaded library, so its runtime is
 * preloaded first, by its name: the dynamic linker searches for both kinds alike.
 */
#include "config.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"

/* Each the interpreter of the one before: then the kernel gives up. */
#define MOST_SCRIPTS 6

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

struct dynamic {
	const ElfW(Dyn) *entries;
	size_t num;
	uint64_t strings;
	uint64_t strings_size;
};

static struct dynamic dynamic_of(const struct file *file, const ElfW(Phdr) *all, size_t num)
{
	struct dynamic dynamic = { .num = 0 };
	size_t i;

	for (i = 0; i < num; i++) {
		if (all[i].p_type != PT_DYNAMIC || all[i].p_offset % _Alignof(ElfW(Dyn)))
			continue;
		dynamic.num = all[i].p_filesz / sizeof(*dynamic.entries);
		dynamic.entries = part(file, all[i].p_offset, dynamic.num,
				       sizeof(*dynamic.entries));
	}
	if (!dynamic.entries)
		dynamic.num = 0;
	for (i = 0; i < dynamic.num; i++) {
		if (dynamic.entries[i].d_tag == DT_STRTAB)
			dynamic.strings = dynamic.entries[i].d_un.d_ptr;
		if (dynamic.entries[i].d_tag == DT_STRSZ)
			dynamic.strings_size = dynamic.entries[i].d_un.d_val;
	}
	return dynamic;
}

static const char *needed_runtime(const struct file *file, const ElfW(Phdr) *all, size_t num,
				  const struct dynamic *dynamic)
{
	const char *name;

	for (size_t i = 0; i < dynamic->num; i++) {
		if (dynamic->entries[i].d_tag != DT_NEEDED)
			continue;
		name = string_at(file, all, num, dynamic->strings + dynamic->entries[i].d_un.d_val);
		if (name && is_runtime(name))
			return name;
	}
	return NULL;
}

/* Each program with it has this function, of its own or of the runtime. */
static bool has_tsan(const struct file *file, const ElfW(Phdr) *all, size_t num,
		     const struct dynamic *dynamic)
{
	static const char name[] = "\0__tsan_init";
	const char *strings = string_at(file, all, num, dynamic->strings);
	size_t room = strings ? (size_t)((const char *)file->bytes + file->size - strings) : 0;

	if (dynamic->strings_size < room)
		room = dynamic->strings_size;
	return strings && memmem(strings, room, name, sizeof(name));
}

/* No dynamic linker starts it.  That itself is a library, with a name. */
static bool is_static(const ElfW(Phdr) *all, size_t num, const struct dynamic *dynamic)
{
	for (size_t i = 0; i < num; i++)
		if (all[i].p_type == PT_INTERP)
			return false;
	for (size_t i = 0; i < dynamic->num; i++)
		if (dynamic->entries[i].d_tag == DT_SONAME)
			return false;
	return num > 0;
}

/* As the kernel finds it in a script's first line; NULL: it is no script. */
static char *interpreter_of(const struct file *file)
{
	const char *line = part(file, 0, 2, 1), *end = (const char *)file->bytes + file->size;
	size_t len = 0;

	if (!line || memcmp(line, "#!", 2) != 0)
		return NULL;
	for (line += 2; line < end && (*line == ' ' || *line == '\t'); line++)
		;
	while (line + len < end && !strchr(" \t\n", line[len]))
		len++;
	return tool_printf("%.*s", (int)len, line);
}

static void read_headers(const struct file *file, struct run_program *program)
{
	struct dynamic dynamic;
	const ElfW(Phdr) *all;
	const char *name;
	size_t num = 0;

	all = segments(file, &num);
	if (!all)
		return;
	dynamic = dynamic_of(file, all, num);
	name = needed_runtime(file, all, num, &dynamic);
	program->runtime = name ? tool_strdup(name) : NULL;
	program->is_static = is_static(all, num, &dynamic);
	program->has_tsan = has_tsan(file, all, num, &dynamic);
}

/* The interpreter of a script, to be freed, or NULL. */
static char *look_at(const char *path, struct run_program *program)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct file file = { .size = 0 };
	char *interpreter = NULL;
	struct stat st;
	void *mapped;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0) {
		file.size = (size_t)st.st_size;
		mapped = mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (mapped != MAP_FAILED) {
			file.bytes = mapped;
			interpreter = interpreter_of(&file);
			read_headers(&file, program);
			munmap(mapped, file.size);
		}
	}
	close(fd);
	return interpreter;
}

/* Searches as execvp() does; NULL: errno says why. */
static char *find(const char *command)
{
	const char *folders = getenv("PATH"), *end;
	int err = ENOENT;
	struct stat st;
	char *path;

	if (strchr(command, '/') || !folders)
		return access(command, X_OK) ? NULL : tool_strdup(command);
	for (;; folders = end + 1) {
		end = strchrnul(folders, ':');
		path = tool_printf("%.*s%s%s", (int)(end - folders), folders,
				   end > folders ? "/" : "", command);
		if (!access(path, X_OK) && !stat(path, &st) && !S_ISDIR(st.st_mode))
			return path;
		if (errno == EACCES)
			err = EACCES;
		free(path);
		if (!*end)
			break;
	}
	errno = err;
	return NULL;
}

char *run_path_of(const char *command)
{
	return find(command);
}

int run_find(const char *command)
{
	char *path = find(command);
	struct stat st;
	int status = 0;

	if (path && !stat(path, &st) && S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		status = STATUS_CANNOT_EXECUTE;
	} else if (!path) {
		status = errno == ENOENT || errno == ENOTDIR ? STATUS_NOT_FOUND :
							      STATUS_CANNOT_EXECUTE;
	}
	if (status && *command == '-')
		tool_error("%s is no command: options come before the first --on or --daemon",
			   command);
	else if (status)
		tool_error("%s: %m", command);
	free(path);
	return status;
}

struct run_program run_program_of(const char *command)
{
	struct run_program program = { .runtime = NULL };
	char *path = find(command), *next;

	for (int i = 0; path && i < MOST_SCRIPTS; i++, path = next) {
		next = look_at(path, &program);
		free(program.interpreter);
		program.interpreter = i ? path : NULL;
		if (!i)
			free(path);
	}
	free(path);
	return program;
}
