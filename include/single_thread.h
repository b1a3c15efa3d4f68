/* SPDX-License-Identifier: BSD-2-Clause */
/* single_thread.h - has the program one thread?  For the library and its plugins; not installed. */
#ifndef SINGLE_THREAD_H
#define SINGLE_THREAD_H

#include <stdbool.h>

#if defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define SINGLE_THREADED __libc_single_threaded
#endif
#endif
#ifndef SINGLE_THREADED
#define SINGLE_THREADED 0
#endif

/*
 * Certainly only the calling one, at no cost; false where nobody knows.  It
 * stays so until this thread starts another.
 */
static inline bool single_thread(void)
{
	return SINGLE_THREADED;
}

#endif
