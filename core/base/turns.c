/* SPDX-License-Identifier: BSD-2-Clause */
/* base/turns.c - see turns.h. */
#include "config.h"

#include <dlfcn.h>
#include <pthread.h>

#include "turns.h"

static pthread_once_t asked = PTHREAD_ONCE_INIT;
static const struct turn_tells *found;

static void find(void)
{
	const struct turn_tells *tells = dlsym(RTLD_DEFAULT, TURN_TELLS);

	if (tells && tells->size == sizeof(*tells))
		found = tells;
}

void polycm_waits_for(enum turn_purpose purpose)
{
	pthread_once(&asked, find);
	if (found && found->now())
		found->waits_for(purpose);
}
