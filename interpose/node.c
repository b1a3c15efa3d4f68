/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/node.c - the character device of a simulated device, which is not there.
 *
 * UCX and others look at /dev/infiniband/NAME before they use a device that
 * libibverbs lists, so stat() and access() know these names.  They do what the
 * C library's do, which a signal handler may call, and look at a path only
 * where that did not find it: so the kernel has read it, and it is one.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/base/export.h"
#include "host.h"

#define NODE_FOLDER "/dev/infiniband/"
#define NODE_MAJOR 231		/* uverbs0 is its minor number 192 */
#define NODE_MINOR 192

/* What the C library said of it; errno is as before for a node. */
static bool is_node(const char *path, int result, int saved_errno)
{
	if (!result || errno != ENOENT || strncmp(path, NODE_FOLDER, strlen(NODE_FOLDER)) ||
	    !polycm_host()->has_node(path + strlen(NODE_FOLDER)))
		return false;
	errno = saved_errno;
	return true;
}

static void fill_node(struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_mode = S_IFCHR | 0666;
	st->st_nlink = 1;
	st->st_rdev = makedev(NODE_MAJOR, NODE_MINOR);
}

POLYCM_EXPORT int stat(const char *restrict path, struct stat *restrict st)
{
	int saved_errno = errno, r = fstatat(AT_FDCWD, path, st, 0);

	if (!is_node(path, r, saved_errno))
		return r;
	fill_node(st);
	return 0;
}

POLYCM_EXPORT int access(const char *path, int mode)
{
	int saved_errno = errno, r = faccessat(AT_FDCWD, path, mode, 0);

	if (!is_node(path, r, saved_errno))
		return r;
	if (!(mode & X_OK))
		return 0;
	errno = EACCES;
	return -1;
}

#ifdef __LP64__

/* The same under other names: the structs do not differ. */
POLYCM_EXPORT int stat64(const char *restrict path, struct stat64 *restrict st)
{
	_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one layout");
	return stat(path, (struct stat *)st);
}

/* Programs that were built with a C library before 2.33 call these. */
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat *st);

/* Versions 0 and, on x86-64 only, 1 are this layout; the C library refuses others. */
POLYCM_EXPORT int __xstat(int version, const char *path, struct stat *st)
{
#ifdef __x86_64__
	const int last = 1;
#else
	const int last = 0;
#endif

	if (version >= 0 && version <= last)
		return stat(path, st);
	errno = EINVAL;
	return -1;
}

POLYCM_EXPORT int __xstat64(int version, const char *path, struct stat *st)
{
	return __xstat(version, path, st);
}

#endif
