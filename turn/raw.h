/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/raw.h - system calls that are not trapped.  All that libpolycm-turn asks the kernel for goes
 * through here: functions of the C library that make system calls would be trapped in turn.
 * Results are the kernel's: 0 or more, or a negative errno.  x86-64.
 *
 * The code can run anywhere: with a filter it is used from a copy (filter.h).
 */
#ifndef TURN_RAW_H
#define TURN_RAW_H

#include <signal.h>

#include "numbers.h"

struct turn_registers;

/* The code from which calls are let through. */
extern const char turn_raw_begin[] __attribute__((visibility("hidden")));
extern const char turn_raw_end[] __attribute__((visibility("hidden")));

long turn_raw_here(long number, long a, long b, long c, long d, long e, long f);
/* What a child does on the stack that it was given; it does not return. */
struct turn_raw_begin {
	void (*run)(struct turn_raw_begin *begin);
};

/* clone(), with a stack: as turn_raw() in the caller; the child calls begin->run(begin). */
long turn_raw_clone_here(long number, long a, long b, long c, long d, long e,
			 struct turn_raw_begin *begin);

/* What signal handlers return to. */
void turn_raw_restorer_here(void);

/* A handler of SIGSYS by which each call is what it would be without one. */
void turn_raw_pass_here(int signal, siginfo_t *info, void *context);

/* These functions, where they are used. */
extern struct turn_raw_at {
	typeof(turn_raw_here) *raw;
	typeof(turn_raw_clone_here) *clone;
	typeof(turn_raw_restorer_here) *restorer;
	typeof(turn_raw_pass_here) *pass;
} turn_raw_at __attribute__((visibility("hidden")));

/* From now on the copy is used that begins there. */
void turn_raw_move(char *copy);

static inline long turn_raw(long number, long a, long b, long c, long d, long e, long f)
{
	return turn_raw_at.raw(number, a, b, c, d, e, f);
}

static inline long turn_raw_clone(long number, long a, long b, long c, long d, long e,
				  struct turn_raw_begin *begin)
{
	return turn_raw_at.clone(number, a, b, c, d, e, begin);
}

#define TURN_RAW(number, ...) TURN_RAW_(number, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define TURN_RAW_(number, a, b, c, d, e, f, ...)                                                   \
	turn_raw((number), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* Goes on where a call was made, with the registers that the kernel gives back after it. */
void turn_raw_resume(const struct turn_registers *registers) __attribute__((noreturn));

struct turn_registers {
	unsigned long rax, rbx, rdx, rsi, rdi, rbp, r8, r9, r10, r12, r13, r14, r15, rsp, rip;
	unsigned int mxcsr;		/* how numbers are rounded, and what traps */
	unsigned short x87_control;
};

#endif
