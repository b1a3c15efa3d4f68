/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/libibverbs.h - libibverbs' own functions, behind the ones that we export.
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

/*
 * A list of libibverbs' own devices: ours are not among them, and no provider
 * is asked for any.  Making one takes milliseconds, so who needs one at the
 * same time as others has the same; each gives it back.
 */
struct polycm_real_list {
	struct ibv_device **devices;	/* NULL behind the last */
	int num;
	unsigned int look;		/* the how manieth it was */
	unsigned int refs;		/* under a lock of real.c */
};

/* A new one.  NULL: errno is libibverbs'. */
struct polycm_real_list *polycm_real_list(void);
/* How many have been begun. */
unsigned int polycm_real_looks(void);
/* The last one, if it was begun after so many; else a new one. */
struct polycm_real_list *polycm_real_list_after(unsigned int looks);
void polycm_real_list_put(struct polycm_real_list *list);
/*
 * Open a device by its name: in the last list, and if none of that opens, in a
 * new one.  0, -ENODEV, or libibverbs' errno negated.
 */
int polycm_real_open(const char *name, struct ibv_context **ret_verbs);

/* Where lists come from: libibverbs.  Tests put a stand-in here. */
struct polycm_real_source {
	struct ibv_device **(*list)(int *ret_num);
	void (*free)(struct ibv_device **devices);
};
extern const struct polycm_real_source *polycm_real_source;

/* Declares a typed `real` for ibv_NAME in the calling function. */
#define REAL_VERB(result, name, version, parameters)                                               \
	static void *real_cache;                                                                   \
	result(*real) parameters;                                                                  \
	*(void **)&real = __atomic_load_n(&real_cache, __ATOMIC_RELAXED);                          \
	if (__builtin_expect(!real, 0))                                                            \
		*(void **)&real = polycm_real_verb(&real_cache, name, version)

#endif
