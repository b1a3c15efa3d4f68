/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/sysfs.h - paths of simulated devices in /sys, which lead to files that are made here.
 *
 * A process that looks has a private folder, in which core/sysfs becomes files, one folder at a
 * time, whenever a call gets a path there.  The call goes on with the path in that folder.  It is
 * removed when the process ends; what is left by others is removed by the next that makes one.
 *
 * Calls of libpolycm, its plugins and libibverbs go to the host's own files.
 */
#ifndef POLYCM_INTERPOSE_SYSFS_H
#define POLYCM_INTERPOSE_SYSFS_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What the call is going to do with the path; several. */
enum polycm_sysfs_use {
	POLYCM_SYSFS_LINK_ITSELF = 1 << 0,	/* a link at its end is not followed */
	POLYCM_SYSFS_LISTS = 1 << 1,		/* it may be a folder that is to be listed */
	POLYCM_SYSFS_LISTS_ALL = 1 << 2,	/* and those in it */
};

/* What the kernel then refuses may be longer than a path. */
#define POLYCM_SYSFS_ROOM (2 * PATH_MAX + 80)

struct polycm_sysfs_place {
	int kind;		/* POLYCM_SYSFS_*; 0: there is nothing, and `path' says so */
	bool unreadable;	/* a file whose entry is not in use */
	bool is_host;		/* it leads back to a path of the host */
	char shown[POLYCM_SYSFS_ROOM];	/* without links: "/sys/..." */
	char path[POLYCM_SYSFS_ROOM];	/* to use */
};

/* Is there something in reach whose relative paths count as well? */
extern bool polycm_sysfs_inside;

/*
 * Where a path leads that the program gives to a call.  NULL: the call goes on as it is.  `caller':
 * __builtin_return_address(0).
 */
struct polycm_sysfs_place *polycm_sysfs_find(int dirfd, const char *path, unsigned int use,
					     const void *caller);
void polycm_sysfs_put(struct polycm_sysfs_place *place);	/* errno stays */

#define POLYCM_SYSFS_PREFIX "/sys/"

/* What all calls ask; what is no path is the kernel's to refuse. */
static inline bool polycm_sysfs_may(const char *path)
{
	if ((uintptr_t)path < 4096)
		return false;
	if (path[0] != '/')
		return __builtin_expect(polycm_sysfs_inside, 0);
	return path[1] == 's' && path[2] == 'y' && path[3] == 's' && path[4] == '/';
}

#define POLYCM_SYSFS_FIND(dirfd, path, use)						\
	(__builtin_expect(polycm_sysfs_may(path), 0) ?					\
	 polycm_sysfs_find(dirfd, path, use, __builtin_return_address(0)) : NULL)

/* The path that stands for a real one in such a folder, of this process or another; or false. */
bool polycm_sysfs_shown(const char *real, char shown[static PATH_MAX]);
/* The program's folder, or a descriptor of it, may be in there now. */
void polycm_sysfs_moved(void);

/* --- sysfs_walk.c --- */

/* `path': below /sys, as the program gave it.  0, or a negative errno. */
int polycm_sysfs_walk(const char *path, unsigned int use, struct polycm_sysfs_place *place);

/* --- sysfs_tree.c: the folder.  `path': below /sys, without links. --- */

/* Where it is; NULL: it cannot be made, logged once. */
const char *polycm_tree_open(void);
void polycm_tree_close(void);
/* In a child of fork(); one of vfork() has its parent's memory, and uses its parent's folder. */
void polycm_tree_forked(void);
void polycm_tree_make_folder(const char *path);
void polycm_tree_make_link(const char *path, const char *target);
void polycm_tree_make_file(const char *path, const char *text);
/* With all that is in it. */
void polycm_tree_remove(const char *path);
/* Remove each entry of a folder that is not in the list (see core/base/interposer.h). */
void polycm_tree_keep(const char *path, const char *names);
/* "/sys/REST" for a path in a folder of this kind, or NULL. */
const char *polycm_tree_rest(const char *real);

#endif
