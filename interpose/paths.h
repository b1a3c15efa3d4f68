/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/paths.h - the C library's calls that take a path and are exported here under the
 * same names.  Found as those of libc.h are.
 */
#ifndef POLYCM_INTERPOSE_PATHS_H
#define POLYCM_INTERPOSE_PATHS_H

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef __LP64__
#error "the paths of devices are shown on 64-bit machines only: see Makefile.inc"
#endif

#define POLYCM_PATH_CALLS(CALL) \
	CALL(openat) CALL(fopen) CALL(freopen) CALL(opendir) CALL(scandir) CALL(fstatat) CALL(statx) \
	CALL(faccessat) CALL(euidaccess) CALL(readlinkat) CALL(realpath) CALL(chdir) CALL(fchdir) \
	CALL(getcwd) CALL(glob) CALL(nftw) CALL(getxattr) CALL(lgetxattr)

struct polycm_paths {
#define POLYCM_PATH_MEMBER(name) __typeof__(name) *name;
	POLYCM_PATH_CALLS(POLYCM_PATH_MEMBER)
};

/* polycm_paths()->openat(...) */
const struct polycm_paths *polycm_paths(void);

#endif
