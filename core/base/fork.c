/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/fork.c - counts the fork()s around this process, and takes the locks that all
 * ids share, so that none is held in the child by a thread that it lacks.  They
 * come after a provider's, which are held while it posts events: who registers
 * last is asked first.
 */
#include "config.h"
#include "fork.h"

#include <pthread.h>

#include "live.h"

struct polycm_forks polycm_forks;

static struct polycm_latch *blocks_lock;	/* of cm/ev_block.c */

void polycm_forks_also(struct polycm_latch *lock)
{
	blocks_lock = lock;
}

static void before_fork(void)
{
	if (blocks_lock)
		polycm_latch_take(blocks_lock);
	polycm_live_before_fork();
}

static void after_fork(void)
{
	polycm_live_after_fork();
	if (blocks_lock)
		polycm_latch_give(blocks_lock);
}

static void in_child(void)
{
	after_fork();
	polycm_forks.before++;
}

static void in_parent(void)
{
	after_fork();
	polycm_forks.children++;
}

static void watch(void)
{
	(void)pthread_atfork(before_fork, in_parent, in_child);
}

void polycm_forks_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
}
