/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/stat.c - calls that look at what a path leads to: files of simulated devices in /sys,
 * and their nodes in /dev/infiniband, which are not there.
 *
 * UCX and others look at /dev/infiniband/NAME before they use a device that libibverbs lists.
 * Calls look at such a path only where the C library did not find it: so the kernel has read it,
 * and it is one.
 *
 * The names are given to the linker only: one function may serve several.
 */
#include "config.h"

#include <errno.h>
#include <sys/sysmacros.h>

#include "core/base/export.h"
#include "host.h"
#include "paths.h"
#include "sysfs.h"

#define NODE_FOLDER "/dev/infiniband/"
#define CALLER __builtin_return_address(0)

/* The minor number of the node, if that is what the C library did not find; else -1. */
static int node_minor(const char *path, int result, int saved_errno)
{
	int minor;

	if (!result || errno != ENOENT || !polycm_host() ||
	    strncmp(path, NODE_FOLDER, strlen(NODE_FOLDER)))
		return -1;
	minor = polycm_host()->node_minor(path + strlen(NODE_FOLDER));
	if (minor >= 0)
		errno = saved_errno;
	return minor;
}

static unsigned int use_of(int flags)
{
	return flags & AT_SYMLINK_NOFOLLOW ? POLYCM_SYSFS_LINK_ITSELF : 0;
}

static int stat_as(int dirfd, const char *path, struct stat *st, int flags, const void *caller)
{
	int saved_errno = errno, minor, r;
	struct polycm_sysfs_place *place = NULL;

	if (__builtin_expect(polycm_sysfs_may(path), 0))
		place = polycm_sysfs_find(dirfd, path, use_of(flags), caller);
	if (__builtin_expect(place != NULL, 0)) {
		r = polycm_paths()->fstatat(AT_FDCWD, place->path, st, flags);
		polycm_sysfs_put(place);
		return r;
	}
	r = polycm_paths()->fstatat(dirfd, path, st, flags);
	minor = node_minor(path, r, saved_errno);
	if (minor < 0)
		return r;
	memset(st, 0, sizeof(*st));
	st->st_mode = S_IFCHR | 0666;
	st->st_nlink = 1;
	st->st_rdev = makedev(POLYCM_NODE_MAJOR, (unsigned int)minor);
	return 0;
}

static int access_as(int dirfd, const char *path, int mode, int flags, const void *caller)
{
	int saved_errno = errno, r;
	struct polycm_sysfs_place *place = NULL;

	if (__builtin_expect(polycm_sysfs_may(path), 0))
		place = polycm_sysfs_find(dirfd, path, use_of(flags), caller);
	if (__builtin_expect(place != NULL, 0)) {
		r = polycm_paths()->faccessat(AT_FDCWD, place->path, mode, flags);
		polycm_sysfs_put(place);
		return r;
	}
	r = polycm_paths()->faccessat(dirfd, path, mode, flags);
	if (node_minor(path, r, saved_errno) < 0)
		return r;
	if (!(mode & X_OK))
		return 0;
	errno = EACCES;
	return -1;
}

/* ------------------------------------------------------------------------
 * The calls.  Names with 64 and without stand for structs that do not differ.
 */

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one layout");

#define STAT_CALL(name, linker, flags)							\
	POLYCM_EXPORT int own_##name(const char *path, struct stat *st) __asm__(linker);	\
	int own_##name(const char *path, struct stat *st)				\
	{										\
		return stat_as(AT_FDCWD, path, st, flags, CALLER);			\
	}

STAT_CALL(stat, "stat", 0)
STAT_CALL(stat64, "stat64", 0)
STAT_CALL(lstat, "lstat", AT_SYMLINK_NOFOLLOW)
STAT_CALL(lstat64, "lstat64", AT_SYMLINK_NOFOLLOW)

#define STATAT_CALL(name, linker)							\
	POLYCM_EXPORT int own_##name(int dirfd, const char *path, struct stat *st, int flags)	\
		__asm__(linker);							\
	int own_##name(int dirfd, const char *path, struct stat *st, int flags)		\
	{										\
		return stat_as(dirfd, path, st, flags, CALLER);				\
	}

STATAT_CALL(fstatat, "fstatat")
STATAT_CALL(fstatat64, "fstatat64")

/*
 * Programs that were built with a C library before 2.33 call these.  Versions 0 and, on x86-64
 * only, 1 are this layout; the C library refuses others.
 */
static bool is_version(int version)
{
#ifdef __x86_64__
	const int last = 1;
#else
	const int last = 0;
#endif

	if (version >= 0 && version <= last)
		return true;
	errno = EINVAL;
	return false;
}

#define OLD_STAT_CALL(name, linker, flags)						\
	POLYCM_EXPORT int own_##name(int version, const char *path, struct stat *st)	\
		__asm__(linker);							\
	int own_##name(int version, const char *path, struct stat *st)			\
	{										\
		return is_version(version) ? stat_as(AT_FDCWD, path, st, flags, CALLER) : -1;	\
	}

OLD_STAT_CALL(xstat, "__xstat", 0)
OLD_STAT_CALL(xstat64, "__xstat64", 0)
OLD_STAT_CALL(lxstat, "__lxstat", AT_SYMLINK_NOFOLLOW)
OLD_STAT_CALL(lxstat64, "__lxstat64", AT_SYMLINK_NOFOLLOW)

POLYCM_EXPORT int statx(int dirfd, const char *restrict path, int flags, unsigned int mask,
			struct statx *restrict st)
{
	struct polycm_sysfs_place *place = POLYCM_SYSFS_FIND(dirfd, path, use_of(flags));
	int r = polycm_paths()->statx(place ? AT_FDCWD : dirfd, place ? place->path : path, flags,
				      mask, st);

	polycm_sysfs_put(place);
	return r;
}

POLYCM_EXPORT int access(const char *path, int mode)
{
	return access_as(AT_FDCWD, path, mode, 0, CALLER);
}

POLYCM_EXPORT int faccessat(int dirfd, const char *path, int mode, int flags)
{
	return access_as(dirfd, path, mode, flags, CALLER);
}

POLYCM_EXPORT int euidaccess(const char *path, int mode)
{
	return access_as(AT_FDCWD, path, mode, AT_EACCESS, CALLER);
}

POLYCM_EXPORT int eaccess(const char *path, int mode)
{
	return access_as(AT_FDCWD, path, mode, AT_EACCESS, CALLER);
}

/* ls asks for access lists. */
POLYCM_EXPORT ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
	struct polycm_sysfs_place *place = POLYCM_SYSFS_FIND(AT_FDCWD, path, 0);
	ssize_t len = polycm_paths()->getxattr(place ? place->path : path, name, value, size);

	polycm_sysfs_put(place);
	return len;
}

POLYCM_EXPORT ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
	struct polycm_sysfs_place *place = POLYCM_SYSFS_FIND(AT_FDCWD, path, POLYCM_SYSFS_LINK_ITSELF);
	ssize_t len = polycm_paths()->lgetxattr(place ? place->path : path, name, value, size);

	polycm_sysfs_put(place);
	return len;
}
