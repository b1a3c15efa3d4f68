/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/filter.h - where the kernel has no syscall user dispatch: a seccomp filter that sends SIGSYS
 * for each call that does not come from the page (page.h).  Threads and children inherit it, and so
 * does what a member becomes by exec.
 */
#ifndef TURN_FILTER_H
#define TURN_FILTER_H

#include <stdbool.h>

/* Calls of libpolycm-turn come from the page; is_inherited: the filter and the page are there. */
int turn_filter_prepare(bool is_inherited);
int turn_filter_install(void);

#endif
