/* SPDX-License-Identifier: BSD-2-Clause */
/* base/turns.c - see turns.h. */
#include "config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "turns.h"

static pthread_once_t asked = PTHREAD_ONCE_INIT;
static const struct turn_tells *found;

static const struct turn_tells *find_tells(void)
{
	const struct turn_tells *tells = dlsym(RTLD_DEFAULT, TURN_TELLS);

	return tells && tells->size == sizeof(*tells) ? tells : NULL;
}

static void find(void)
{
	found = find_tells();
}

void polycm_waits_for(enum turn_purpose purpose)
{
	pthread_once(&asked, find);
	if (found && found->now())
		found->waits_for(purpose);
}

void polycm_writes_own(bool is_own)
{
	static _Atomic(const struct turn_tells *) here;
	static atomic_bool looked;
	const struct turn_tells *tells;

	/* Not pthread_once(), which makes a call that is counted, and that only with a log. */
	if (!atomic_load(&looked)) {
		atomic_store(&here, find_tells());
		atomic_store(&looked, true);
	}
	tells = atomic_load(&here);
	if (tells)
		tells->writes_own(is_own);
}
