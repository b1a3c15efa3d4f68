/* SPDX-License-Identifier: BSD-2-Clause */
/* verbs/real.c - finds libibverbs' functions behind ours. */
#include "config.h"

#include "verbs/real.h"

#include <dlfcn.h>
#include <errno.h>

void *polycm_real_verb(void **cache, const char *name, const char *version)
{
	void *function = __atomic_load_n(cache, __ATOMIC_RELAXED);

	if (function)
		return function;
	function = version ? dlvsym(RTLD_NEXT, name, version) : dlsym(RTLD_NEXT, name);
	if (!function) {
		errno = ENOSYS;
		return NULL;
	}
	__atomic_store_n(cache, function, __ATOMIC_RELAXED);
	return function;
}
