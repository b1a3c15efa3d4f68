/* SPDX-License-Identifier: BSD-2-Clause */
/* base/memory_check.c - is there something that looks for memory used after its end? */
#include "config.h"

#include "alone.h"

#ifdef HAVE_VALGRIND_VALGRIND_H
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

/* AddressSanitizer's, which may be in the program alone. */
extern void __asan_init(void) __attribute__((weak));

bool polycm_memory_checked;

__attribute__((constructor)) static void look(void)
{
#ifdef POLYCM_SANITIZED
	polycm_memory_checked = true;
#else
	polycm_memory_checked = __asan_init || RUNNING_ON_VALGRIND;
#endif
}
