/* SPDX-License-Identifier: BSD-2-Clause */
/* sockets/next.c - finds the calls behind ours: the C library's, or those of who stands between. */
#undef _FORTIFY_SOURCE	/* its inline functions have the names of ours */
#include "config.h"
#include "sockets.h"

#include <dlfcn.h>
#include <string.h>

static struct sockets_next found;
static bool is_found;

/* Several threads may run this at a time: they write the same. */
static void find(void)
{
	struct sockets_next next;

#define FIND(name) *(void **)(void *)&next.name = dlsym(RTLD_NEXT, #name);
	SOCKETS_CALLS(FIND)
	memcpy(&found, &next, sizeof(found));
	__atomic_store_n(&is_found, true, __ATOMIC_RELEASE);
}

const struct sockets_next *sockets_next(void)
{
	if (__builtin_expect(!__atomic_load_n(&is_found, __ATOMIC_ACQUIRE), 0))
		find();
	return &found;
}

/* A signal handler, too, may call read(): it is not to look up names. */
__attribute__((constructor)) static void find_early(void)
{
	(void)sockets_next();
}
