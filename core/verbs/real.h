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
void *polycm_real_verb(void **cache, const char *name, const char *version) __attribute__((cold));

/* libibverbs' own devices: ours are not among them, and no provider is asked for any. */
struct ibv_device **polycm_real_devices(int *ret_num);
void polycm_real_devices_free(struct ibv_device **devices);
/*
 * Listing takes milliseconds.  The list that was given here last, instead of
 * being freed, serves to open devices by their names; NULL: none of it opens.
 */
void polycm_real_devices_keep(struct ibv_device **devices);
struct ibv_context *polycm_real_open_kept(const char *name);

/* Declares a typed `real` for ibv_NAME in the calling function. */
#define REAL_VERB(result, name, version, parameters)                                               \
	static void *real_cache;                                                                   \
	result(*real) parameters;                                                                  \
	*(void **)&real = __atomic_load_n(&real_cache, __ATOMIC_RELAXED);                          \
	if (__builtin_expect(!real, 0))                                                            \
		*(void **)&real = polycm_real_verb(&real_cache, name, version)

#endif
