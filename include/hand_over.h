/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hand_over.h - what ThreadSanitizer in a program must be told of a library
 * that it did not compile: that one thread hands something over to another.
 * For the library and its plugins; not installed.
 *
 * It knows of mutexes by itself, unless they are taken within poll() and its
 * like, which it takes for calls in which nothing of the program runs; and it
 * knows nothing of atomic variables.
 */
#ifndef HAND_OVER_H
#define HAND_OVER_H

#include <stddef.h>
#include <stdint.h>

extern void __tsan_acquire(void *address) __attribute__((weak));
extern void __tsan_release(void *address) __attribute__((weak));

/* What this thread has done so far is before what a thread does that takes over at the address. */
static inline void hand_over(const void *address)
{
	if (__builtin_expect(__tsan_release != NULL, 0))
		__tsan_release((void *)(uintptr_t)address);
}

static inline void take_over(const void *address)
{
	if (__builtin_expect(__tsan_acquire != NULL, 0))
		__tsan_acquire((void *)(uintptr_t)address);
}

#endif
