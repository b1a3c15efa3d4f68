/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/page.h - with a filter, calls are let through that come from a page at one address, which is
 * the same in all programs: the filter outlives exec.  The launcher, which traces a member while it
 * calls exec, makes the page in the new program and sets the handler of SIGSYS that is in it.  So
 * the dynamic linker's calls are what they would be without a filter, until libpolycm-turn begins.
 */
#ifndef TURN_PAGE_H
#define TURN_PAGE_H

#include <stdint.h>

/* Below the shadows of sanitizers, and far from programs, the heap and libraries. */
#define TURN_PAGE UINT64_C(0x7fff0000)
#define TURN_PAGE_SIZE UINT64_C(4096)

struct turn_page {
	char call[8];		/* syscall; int3 */
	uint64_t action[4];	/* for rt_sigaction(), as the kernel has it */
	char code[472];		/* turn_raw_begin to turn_raw_end */
};

_Static_assert(sizeof(struct turn_page) % 8 == 0 && sizeof(struct turn_page) <= TURN_PAGE_SIZE,
	       "it is written word by word");

#endif
