/* SPDX-License-Identifier: BSD-2-Clause */
/* engine/turns.c - see turns.h. */
#include "config.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "turns.h"

static const struct turn_tells *find(void)
{
	static _Atomic(const struct turn_tells *) found;
	static atomic_bool asked;
	const struct turn_tells *tells;

	if (!atomic_load_explicit(&asked, memory_order_acquire)) {
		tells = dlsym(RTLD_DEFAULT, TURN_TELLS);
		if (tells && tells->size != sizeof(*tells))
			tells = NULL;
		atomic_store(&found, tells);
		atomic_store_explicit(&asked, true, memory_order_release);
	}
	return atomic_load_explicit(&found, memory_order_relaxed);
}

const struct turn_tells *sim_turns_here;

void sim_turns_find(void)
{
	sim_turns_here = find();
}

const struct turn_tells *sim_turns(void)
{
	const struct turn_tells *tells = find();

	return tells && tells->now() ? tells : NULL;
}

void sim_waits_for(enum turn_purpose purpose)
{
	const struct turn_tells *turns = sim_turns();

	if (turns)
		turns->waits_for(purpose);
}
