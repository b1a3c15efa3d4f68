/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/open.c - calls that open what a path leads to, which may be a file of a simulated
 * device.
 *
 * The names are given to the linker only: headers may define open() as open64(), and fortified
 * programs call others.
 */
#include "config.h"

#include <errno.h>
#include <stdarg.h>

#include "core/base/export.h"
#include "host.h"
#include "paths.h"
#include "sysfs.h"

/* Files of devices are read only; 0, or what the kernel says. */
static int may_open(const struct polycm_sysfs_place *place, int *flags)
{
	bool writes = (*flags & O_ACCMODE) != O_RDONLY;

	if (place->is_host || *flags & O_PATH)
		return 0;
	if (place->kind == POLYCM_SYSFS_FILE && writes)
		return EACCES;
	if (!place->kind && *flags & O_CREAT)
		return EACCES;
	if (place->kind == POLYCM_SYSFS_FILE && *flags & O_CREAT && *flags & O_EXCL)
		return EEXIST;
	*flags &= ~(O_CREAT | O_TRUNC);
	return place->unreadable ? EINVAL : 0;
}

static int open_place(const struct polycm_sysfs_place *place, int flags, mode_t mode)
{
	int error = may_open(place, &flags);

	if (!error)
		return polycm_paths()->openat(AT_FDCWD, place->path, flags, mode);
	errno = error;
	return -1;
}

static int open_as(int dirfd, const char *path, int flags, mode_t mode, const void *caller)
{
	struct polycm_sysfs_place *place = NULL;
	int fd;

	if (__builtin_expect(polycm_sysfs_may(path), 0))
		place = polycm_sysfs_find(dirfd, path, POLYCM_SYSFS_LISTS |
					  (flags & O_NOFOLLOW ? POLYCM_SYSFS_LINK_ITSELF : 0), caller);
	if (__builtin_expect(!place, 1))
		return polycm_paths()->openat(dirfd, path, flags, mode);
	fd = open_place(place, flags, mode);
	polycm_sysfs_put(place);
	return fd;
}

#define CALLER __builtin_return_address(0)

/* The argument behind the flags, if there is one. */
#define MODE(flags)							\
	({								\
		mode_t mode_ = 0;					\
		va_list args;						\
									\
		if ((flags) & O_CREAT || ((flags) & O_TMPFILE) == O_TMPFILE) {	\
			va_start(args, flags);				\
			mode_ = va_arg(args, mode_t);			\
			va_end(args);					\
		}							\
		mode_;							\
	})

POLYCM_EXPORT int own_open(const char *path, int flags, ...) __asm__("open");
POLYCM_EXPORT int own_open64(const char *path, int flags, ...) __asm__("open64");
POLYCM_EXPORT int own_openat(int dirfd, const char *path, int flags, ...) __asm__("openat");
POLYCM_EXPORT int own_openat64(int dirfd, const char *path, int flags, ...) __asm__("openat64");
POLYCM_EXPORT int own_open_2(const char *path, int flags) __asm__("__open_2");
POLYCM_EXPORT int own_open64_2(const char *path, int flags) __asm__("__open64_2");
POLYCM_EXPORT int own_openat_2(int dirfd, const char *path, int flags) __asm__("__openat_2");
POLYCM_EXPORT int own_openat64_2(int dirfd, const char *path, int flags) __asm__("__openat64_2");

int own_open(const char *path, int flags, ...)
{
	return open_as(AT_FDCWD, path, flags, MODE(flags), CALLER);
}

int own_open64(const char *path, int flags, ...)
{
	return open_as(AT_FDCWD, path, flags, MODE(flags), CALLER);
}

int own_openat(int dirfd, const char *path, int flags, ...)
{
	return open_as(dirfd, path, flags, MODE(flags), CALLER);
}

int own_openat64(int dirfd, const char *path, int flags, ...)
{
	return open_as(dirfd, path, flags, MODE(flags), CALLER);
}

int own_open_2(const char *path, int flags)
{
	return open_as(AT_FDCWD, path, flags, 0, CALLER);
}

int own_open64_2(const char *path, int flags)
{
	return open_as(AT_FDCWD, path, flags, 0, CALLER);
}

int own_openat_2(int dirfd, const char *path, int flags)
{
	return open_as(dirfd, path, flags, 0, CALLER);
}

int own_openat64_2(int dirfd, const char *path, int flags)
{
	return open_as(dirfd, path, flags, 0, CALLER);
}

/* ------------------------------------------------------------------------
 * Streams and folders.
 */

/* As the flags that fopen() would open a file with. */
static int flags_of(const char *mode)
{
	if (*mode == 'r')
		return strchr(mode, '+') ? O_RDWR : O_RDONLY;
	return O_WRONLY | O_CREAT;
}

static FILE *open_stream(const char *path, const char *mode, FILE *stream, const void *caller)
{
	const char *use = path;
	struct polycm_sysfs_place *place = NULL;
	int error = 0, flags;

	if (__builtin_expect(polycm_sysfs_may(path), 0))
		place = polycm_sysfs_find(AT_FDCWD, path, 0, caller);
	if (place) {
		flags = flags_of(mode);
		error = may_open(place, &flags);
		use = place->path;
	}
	if (!error)
		stream = stream ? polycm_paths()->freopen(use, mode, stream)
				: polycm_paths()->fopen(use, mode);
	polycm_sysfs_put(place);
	if (!error)
		return stream;
	if (stream)
		fclose(stream);		/* as freopen() does */
	errno = error;
	return NULL;
}

POLYCM_EXPORT FILE *own_fopen(const char *path, const char *mode) __asm__("fopen");
POLYCM_EXPORT FILE *own_fopen64(const char *path, const char *mode) __asm__("fopen64");
POLYCM_EXPORT FILE *own_freopen(const char *path, const char *mode, FILE *stream) __asm__("freopen");
POLYCM_EXPORT FILE *own_freopen64(const char *path, const char *mode, FILE *stream)
	__asm__("freopen64");

FILE *own_fopen(const char *path, const char *mode)
{
	return open_stream(path, mode, NULL, CALLER);
}

FILE *own_fopen64(const char *path, const char *mode)
{
	return open_stream(path, mode, NULL, CALLER);
}

FILE *own_freopen(const char *path, const char *mode, FILE *stream)
{
	return open_stream(path, mode, stream, CALLER);
}

FILE *own_freopen64(const char *path, const char *mode, FILE *stream)
{
	return open_stream(path, mode, stream, CALLER);
}

POLYCM_EXPORT DIR *opendir(const char *path)
{
	struct polycm_sysfs_place *place = POLYCM_SYSFS_FIND(AT_FDCWD, path, POLYCM_SYSFS_LISTS);
	DIR *dir = polycm_paths()->opendir(place ? place->path : path);

	polycm_sysfs_put(place);
	return dir;
}

typedef int (*filter_t)(const struct dirent *entry);
typedef int (*compare_t)(const struct dirent **a, const struct dirent **b);

POLYCM_EXPORT int own_scandir(const char *path, struct dirent ***list, filter_t filter,
			      compare_t compare) __asm__("scandir");
POLYCM_EXPORT int own_scandir64(const char *path, struct dirent ***list, filter_t filter,
				compare_t compare) __asm__("scandir64");

static int scan(const char *path, struct dirent ***list, filter_t filter, compare_t compare,
		const void *caller)
{
	struct polycm_sysfs_place *place = NULL;
	int num;

	if (__builtin_expect(polycm_sysfs_may(path), 0))
		place = polycm_sysfs_find(AT_FDCWD, path, POLYCM_SYSFS_LISTS, caller);
	num = polycm_paths()->scandir(place ? place->path : path, list, filter, compare);
	polycm_sysfs_put(place);
	return num;
}

int own_scandir(const char *path, struct dirent ***list, filter_t filter, compare_t compare)
{
	return scan(path, list, filter, compare, CALLER);
}

/* The structs do not differ. */
int own_scandir64(const char *path, struct dirent ***list, filter_t filter, compare_t compare)
{
	return scan(path, list, filter, compare, CALLER);
}
