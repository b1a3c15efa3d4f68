/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs/real.h - libibverbs' own functions, behind the ones that we export.
 * They are found next in the search order, which is where a program would
 * have found them without us, with the version that programs bind to.
 */
#ifndef POLYCM_CORE_VERBS_REAL_H
#define POLYCM_CORE_VERBS_REAL_H

#include <infiniband/verbs.h>

/*
 * The function, or NULL (errno ENOSYS) when this libibverbs has none.  *cache
 * remembers it; racing callers find the same pointer.  version NULL: whichever.
 */
void *polycm_real_verb(void **cache, const char *name, const char *version);

/* Declares a typed `real` for ibv_NAME in the calling function. */
#define REAL_VERB(result, name, version, parameters)                                               \
	static void *real_cache;                                                                   \
	result(*real) parameters;                                                                  \
	*(void **)&real = polycm_real_verb(&real_cache, name, version)

#endif
