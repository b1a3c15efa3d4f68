/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * no_tsan.h - for a test whose threads wait in virtual time: ThreadSanitizer
 * takes poll() and its like for calls that run nothing of a program's, and so
 * sees none of the locks that moving time takes.  Nor does it know that a
 * handler of a virtual timer's signal interrupts no malloc().
 */
#ifndef TESTS_API_NO_TSAN_H
#define TESTS_API_NO_TSAN_H

__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void)
{
	return "race:provider-sim.so\n"
	       "signal:polycm_timer_start\n";
}

#endif
