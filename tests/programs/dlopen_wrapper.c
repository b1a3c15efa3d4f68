/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dlopen_wrapper.c - a library to preload behind libpolycm: says that a call of
 * libibverbs comes, and passes it on to the next library.
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	static int (*next)(const char *, const char *, char *, size_t);
	static int depth;
	int len;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "ibv_read_sysfs_file");
	fprintf(stderr, "wrapper: depth %d\n", ++depth);
	len = next && depth < 10 ? next(dir, file, buf, size) : -1;
	depth--;
	return len;
}
