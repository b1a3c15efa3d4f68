/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/abi.h - sizes of the structs that plugins hand over: each must be that of
 * the version that the plugin was built for.
 */
#ifndef POLYCM_CORE_BASE_ABI_H
#define POLYCM_CORE_BASE_ABI_H

#include <string.h>

#include "polycm/provider.h"

/* What it is called, and its size in version 1.0 and in this version. */
struct polycm_abi_struct {
	const char *what;
	uint32_t first, ours;
};

/* last: the member that ended version 1.0's; never change it. */
#define POLYCM_ABI_STRUCT(what, type, last)                                                 \
	{                                                                                   \
		what, offsetof(type, last) + sizeof(((type *)NULL)->last), sizeof(type)     \
	}

/*
 * Is this the size in version 1.minor?  -EINVAL: it is not, as `why' says.
 * Versions differ by members at the end, so a newer one may be longer.
 */
int polycm_abi_check(const struct polycm_abi_struct *s, uint32_t size, int64_t minor, char *why,
		     size_t why_size);

/* Copy what both versions of a struct have into ours, of `size' bytes; the rest is 0. */
static inline void polycm_abi_copy(void *ours, uint32_t size, const void *theirs)
{
	const uint32_t their_size = *(const uint32_t *)theirs;

	memset(ours, 0, size);
	memcpy(ours, theirs, their_size < size ? their_size : size);
	*(uint32_t *)ours = size;
}

#endif
