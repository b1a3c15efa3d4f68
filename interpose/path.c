/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/path.c - calls that return paths or go to one, for paths of simulated devices: the
 * program does not see where the files really are.
 */
#include "config.h"

#include <errno.h>
#include <sys/types.h>

#include "core/base/export.h"
#include "paths.h"
#include "sysfs.h"
#include "thread_local.h"

#define CALLER __builtin_return_address(0)

/* Those of fortified programs; not in every version of the headers. */
ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room);
ssize_t __readlinkat_chk(int dirfd, const char *path, char *buf, size_t size, size_t room);
char *__realpath_chk(const char *path, char *resolved, size_t room);
char *__getcwd_chk(char *buf, size_t size, size_t room);

static ssize_t readlink_as(int dirfd, const char *path, char *buf, size_t size, const void *caller)
{
	struct polycm_sysfs_place *place = NULL;
	ssize_t len;

	if (__builtin_expect(polycm_sysfs_may(path), 0))
		place = polycm_sysfs_find(dirfd, path, POLYCM_SYSFS_LINK_ITSELF, caller);
	len = polycm_paths()->readlinkat(place ? AT_FDCWD : dirfd, place ? place->path : path, buf,
					 size);
	polycm_sysfs_put(place);
	return len;
}

POLYCM_EXPORT ssize_t readlink(const char *restrict path, char *restrict buf, size_t size)
{
	return readlink_as(AT_FDCWD, path, buf, size, CALLER);
}

POLYCM_EXPORT ssize_t readlinkat(int dirfd, const char *restrict path, char *restrict buf, size_t size)
{
	return readlink_as(dirfd, path, buf, size, CALLER);
}

POLYCM_EXPORT ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room)
{
	if (size > room)
		abort();
	return readlink_as(AT_FDCWD, path, buf, size, CALLER);
}

POLYCM_EXPORT ssize_t __readlinkat_chk(int dirfd, const char *path, char *buf, size_t size, size_t room)
{
	if (size > room)
		abort();
	return readlink_as(dirfd, path, buf, size, CALLER);
}

/* ------------------------------------------------------------------------
 * realpath() and similar.
 */

static char *resolve(const struct polycm_sysfs_place *place, char *resolved)
{
	if (place->is_host)
		return polycm_paths()->realpath(place->path, resolved);
	/* It says why there is nothing. */
	if (!place->kind) {
		free(polycm_paths()->realpath(place->path, NULL));
		return NULL;
	}
	if (!resolved)
		return strdup(place->shown);
	return memcpy(resolved, place->shown, strlen(place->shown) + 1);
}

static char *realpath_as(const char *path, char *resolved, const void *caller)
{
	struct polycm_sysfs_place *place = NULL;
	char *found;

	if (__builtin_expect(polycm_sysfs_may(path), 0))
		place = polycm_sysfs_find(AT_FDCWD, path, 0, caller);
	if (__builtin_expect(!place, 1))
		return polycm_paths()->realpath(path, resolved);
	found = resolve(place, resolved);
	polycm_sysfs_put(place);
	return found;
}

POLYCM_EXPORT char *realpath(const char *restrict path, char *restrict resolved)
{
	return realpath_as(path, resolved, CALLER);
}

POLYCM_EXPORT char *canonicalize_file_name(const char *path)
{
	return realpath_as(path, NULL, CALLER);
}

POLYCM_EXPORT char *__realpath_chk(const char *path, char *resolved, size_t room)
{
	if (room < PATH_MAX)
		abort();
	return realpath_as(path, resolved, CALLER);
}

/* ------------------------------------------------------------------------
 * The folder of the process.
 */

POLYCM_EXPORT int chdir(const char *path)
{
	struct polycm_sysfs_place *place = POLYCM_SYSFS_FIND(AT_FDCWD, path, POLYCM_SYSFS_LISTS);
	int r = polycm_paths()->chdir(place ? place->path : path);

	polycm_sysfs_put(place);
	return r;
}

POLYCM_EXPORT int fchdir(int fd)
{
	int r = polycm_paths()->fchdir(fd);

	if (!r)
		polycm_sysfs_moved();
	return r;
}

static char *getcwd_as(char *buf, size_t size)
{
	char *real = polycm_paths()->getcwd(buf, size), shown[PATH_MAX];

	if (!real || !polycm_sysfs_shown(real, shown))
		return real;
	/* It is shorter than the real one. */
	return memcpy(real, shown, strlen(shown) + 1);
}

POLYCM_EXPORT char *getcwd(char *buf, size_t size)
{
	return getcwd_as(buf, size);
}

POLYCM_EXPORT char *__getcwd_chk(char *buf, size_t size, size_t room)
{
	if (size > room)
		abort();
	return getcwd_as(buf, size);
}

/* ------------------------------------------------------------------------
 * glob(), whose calls inside the C library do not come here.
 */

static void *glob_opendir(const char *path)
{
	return opendir(path);
}

static struct dirent *glob_readdir(void *dir)
{
	return readdir(dir);
}

static void glob_closedir(void *dir)
{
	closedir(dir);
}

static int glob_stat(const char *restrict path, struct stat *restrict st)
{
	return stat(path, st);
}

static int glob_lstat(const char *restrict path, struct stat *restrict st)
{
	return lstat(path, st);
}

static int glob_as(const char *pattern, int flags, int (*failed)(const char *path, int error),
		   glob_t *found)
{
	int r;

	if (!polycm_sysfs_may(pattern) || flags & GLOB_ALTDIRFUNC)
		return polycm_paths()->glob(pattern, flags, failed, found);
	found->gl_opendir = glob_opendir;
	found->gl_readdir = glob_readdir;
	found->gl_closedir = glob_closedir;
	found->gl_stat = glob_stat;
	found->gl_lstat = glob_lstat;
	r = polycm_paths()->glob(pattern, flags | GLOB_ALTDIRFUNC, failed, found);
	found->gl_flags &= ~GLOB_ALTDIRFUNC;
	return r;
}

POLYCM_EXPORT int own_glob(const char *pattern, int flags,
			   int (*failed)(const char *path, int error), glob_t *found) __asm__("glob");
POLYCM_EXPORT int own_glob64(const char *pattern, int flags,
			     int (*failed)(const char *path, int error), glob_t *found)
	__asm__("glob64");

int own_glob(const char *pattern, int flags, int (*failed)(const char *path, int error), glob_t *found)
{
	return glob_as(pattern, flags, failed, found);
}

/* The structs do not differ. */
int own_glob64(const char *pattern, int flags, int (*failed)(const char *path, int error),
	       glob_t *found)
{
	return glob_as(pattern, flags, failed, found);
}

/* ------------------------------------------------------------------------
 * nftw(), which goes through a folder by itself.
 */

struct tour {
	__nftw_func_t visit;
	const char *shown;		/* what the program gave */
	size_t real_len;		/* of what is there instead */
};

/* nftw() gives its function no argument. */
static POLYCM_THREAD_LOCAL const struct tour *tour;

static int visit_shown(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	struct FTW moved = *ftw;
	char shown[2 * PATH_MAX];

	(void)snprintf(shown, sizeof(shown), "%s%s", tour->shown, path + tour->real_len);
	if (ftw->base >= (int)tour->real_len)
		moved.base += (int)strlen(tour->shown) - (int)tour->real_len;
	else
		moved.base = (int)(strrchr(shown, '/') - shown) + 1;
	return tour->visit(shown, st, type, &moved);
}

static int nftw_as(const char *path, __nftw_func_t visit, int fds, int flags, const void *caller)
{
	struct tour own = { .visit = visit, .shown = path };
	struct polycm_sysfs_place *place = NULL;
	const struct tour *outer = tour;
	int r;

	if (__builtin_expect(polycm_sysfs_may(path), 0))
		place = polycm_sysfs_find(AT_FDCWD, path, POLYCM_SYSFS_LISTS_ALL, caller);
	if (__builtin_expect(!place, 1))
		return polycm_paths()->nftw(path, visit, fds, flags);
	own.real_len = strlen(place->path);
	tour = &own;
	r = polycm_paths()->nftw(place->path, visit_shown, fds, flags);
	tour = outer;
	polycm_sysfs_put(place);
	return r;
}

POLYCM_EXPORT int own_nftw(const char *path, __nftw_func_t visit, int fds, int flags)
	__asm__("nftw");
POLYCM_EXPORT int own_nftw64(const char *path, __nftw_func_t visit, int fds, int flags)
	__asm__("nftw64");

int own_nftw(const char *path, __nftw_func_t visit, int fds, int flags)
{
	return nftw_as(path, visit, fds, flags, CALLER);
}

int own_nftw64(const char *path, __nftw_func_t visit, int fds, int flags)
{
	return nftw_as(path, visit, fds, flags, CALLER);
}
