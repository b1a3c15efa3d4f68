/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/again.h - a program that is loaded once and run again and again: before anything of it has
 * run, it waits for the launcher, and forks a member for each run.
 */
#ifndef TURN_AGAIN_H
#define TURN_AGAIN_H

#include <stdint.h>

/*
 * If the launcher wants the program for several runs, this does not return but in the members that
 * are forked, which have the environment of their run.  0 or a negative errno.
 */
int turn_again(uint32_t slot, char **environment);

#endif
