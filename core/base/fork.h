/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/fork.h - the fork()s around this process.  What keeps them as they were when
 * it was made can tell whether it is this process' own, and whether a child
 * has it too.
 */
#ifndef POLYCM_CORE_FORK_H
#define POLYCM_CORE_FORK_H

struct polycm_forks {
	unsigned int before;		/* that lie between the first process and this one */
	unsigned int children;		/* that this process has had */
};

/* Now.  Nobody but fork() changes them. */
extern struct polycm_forks polycm_forks;

/* They are counted from here on. */
void polycm_forks_watch(void);
/* Called around the locks that fork.c takes; from a constructor. */
void polycm_forks_also(void (*before)(void), void (*after)(void));

#endif
