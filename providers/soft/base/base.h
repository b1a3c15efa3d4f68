/* SPDX-License-Identifier: BSD-2-Clause */
/* base/base.h - units of time, and how a call that fails gets its reason. */
#ifndef SIM_BASE_H
#define SIM_BASE_H

#include <stddef.h>
#include <stdint.h>

#include "polycm/clock.h"
#include "polycm/verbs.h"
#include "providers/common/core.h"

/* The core's services for the clock; set by the query, never NULL afterwards. */
extern const struct polycm_clock_services *sim_time;
/* Those for verbs; NULL where the core has none. */
extern const struct polycm_verbs_services *sim_verbs_services;

#define SIM_NEVER UINT64_MAX
#define SIM_MS(ms) ((uint64_t)(ms) * 1000000u)
#define SIM_US(us) ((uint64_t)(us) * 1000u)

/* The object that a member belongs to. */
#define sim_container(ptr, type, member) \
	((type *)((uintptr_t)(ptr) - offsetof(type, member)))

/* Of many objects, one that was not used lately is not in the cache: bring it there, all at once. */
static inline void sim_prefetch(const void *object, size_t size)
{
	for (size_t at = 0; at < size; at += 64)
		__builtin_prefetch((const void *)((uintptr_t)object + at));
}

/* err, with the reason in words for the log line of the call under way: seldom, so out of the way. */
#define sim_refuse(err, ...) (sim_why()(__VA_ARGS__), (err))
__typeof__(((struct polycm_core *)0)->why) sim_why(void) __attribute__((cold));

#endif
