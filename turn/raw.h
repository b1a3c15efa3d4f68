/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/raw.h - system calls that are not trapped.  All that libpolycm-turn asks the kernel for goes
 * through here: functions of the C library that make system calls would be trapped in turn.
 * Results are the kernel's: 0 or more, or a negative errno.  x86-64.
 */
#ifndef TURN_RAW_H
#define TURN_RAW_H

#include <sys/syscall.h>

struct turn_registers;

/* The code from which calls are let through. */
extern const char turn_raw_begin[] __attribute__((visibility("hidden")));
extern const char turn_raw_end[] __attribute__((visibility("hidden")));

long turn_raw(long number, long a, long b, long c, long d, long e, long f);

#define TURN_RAW(number, ...) TURN_RAW_(number, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define TURN_RAW_(number, a, b, c, d, e, f, ...)                                                   \
	turn_raw((number), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* What a child does on the stack that it was given; it does not return. */
struct turn_raw_begin {
	void (*run)(struct turn_raw_begin *begin);
};

/* clone(), with a stack: as turn_raw() in the caller; the child calls begin->run(begin). */
long turn_raw_clone(long number, long a, long b, long c, long d, long e,
		    struct turn_raw_begin *begin);

/* Goes on where a call was made, with the registers that the kernel gives back after it. */
void turn_raw_resume(const struct turn_registers *registers) __attribute__((noreturn));

/* What signal handlers return to. */
void turn_raw_restorer(void);

struct turn_registers {
	unsigned long rax, rbx, rdx, rsi, rdi, rbp, r8, r9, r10, r12, r13, r14, r15, rsp, rip;
	unsigned int mxcsr;		/* how numbers are rounded, and what traps */
	unsigned short x87_control;
};

#endif
