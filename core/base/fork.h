/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/fork.h - the fork()s around this process.  What keeps them as they were when
 * it was made can tell whether it is this process' own, and whether a child
 * has it too.
 */
#ifndef POLYCM_CORE_FORK_H
#define POLYCM_CORE_FORK_H

struct polycm_latch;

struct polycm_forks {
	unsigned int before;		/* that lie between the first process and this one */
	unsigned int children;		/* that this process has had */
};

/* Now.  Nobody but fork() changes them. */
extern struct polycm_forks polycm_forks;

/* They are counted from here on. */
void polycm_forks_watch(void);
/* A lock that comes before those that fork.c takes, and is taken too; from a constructor. */
void polycm_forks_also(struct polycm_latch *lock);

#endif
