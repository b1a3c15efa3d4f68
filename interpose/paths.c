/* SPDX-License-Identifier: BSD-2-Clause */
/* interpose/paths.c - see paths.h. */
#include "config.h"

#include "paths.h"

#include <dlfcn.h>

static struct polycm_paths found;
static bool is_found;		/* atomic */

/* Several threads may run this at a time: they write the same. */
static const struct polycm_paths *find(void)
{
	struct polycm_paths paths;
	void *newer;

#define FIND(name) *(void **)(void *)&paths.name = dlsym(RTLD_NEXT, #name);
	POLYCM_PATH_CALLS(FIND)
	/* The C library has two, and a look-up without a version finds the older one. */
#define FIND_VERSION(name, version)				\
	newer = dlvsym(RTLD_NEXT, #name, version);		\
	if (newer)						\
		*(void **)(void *)&paths.name = newer;
	FIND_VERSION(realpath, "GLIBC_2.3")
	FIND_VERSION(nftw, "GLIBC_2.3.3")
	FIND_VERSION(glob, "GLIBC_2.27")

	found = paths;
	__atomic_store_n(&is_found, true, __ATOMIC_RELEASE);
	return &found;
}

const struct polycm_paths *polycm_paths(void)
{
	return __builtin_expect(__atomic_load_n(&is_found, __ATOMIC_ACQUIRE), 1) ? &found : find();
}

__attribute__((constructor)) static void find_early(void)
{
	(void)polycm_paths();
}
