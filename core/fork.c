/* SPDX-License-Identifier: BSD-2-Clause */
/* fork.c - counts the fork()s around this process. */
#include "config.h"
#include "fork.h"

#include <pthread.h>

struct polycm_forks polycm_forks;

static void in_child(void)
{
	polycm_forks.before++;
}

static void in_parent(void)
{
	polycm_forks.children++;
}

static void watch(void)
{
	(void)pthread_atfork(NULL, in_parent, in_child);
}

void polycm_forks_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
}
