/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/raw.c - see raw.h. */
#include "config.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include "raw.h"

#if !defined(__x86_64__)
#error the system calls of this processor are not known here
#endif

/* From where a function has them to where the kernel does; the first is the call's number. */
#define MOVE_ARGUMENTS                                                                             \
	"	mov %rdi, %rax\n"                                                                  \
	"	mov %rsi, %rdi\n"                                                                  \
	"	mov %rdx, %rsi\n"                                                                  \
	"	mov %rcx, %rdx\n"                                                                  \
	"	mov %r8, %r10\n"                                                                   \
	"	mov %r9, %r8\n"

__asm__(
	".pushsection .text.turn_raw, \"ax\", @progbits\n"
	".balign 16\n"
	".hidden turn_raw_begin\n.globl turn_raw_begin\nturn_raw_begin:\n"

	".hidden turn_raw_here\n.globl turn_raw_here\n.type turn_raw_here, @function\n"
	"turn_raw_here:\n"
	MOVE_ARGUMENTS
	"	mov 8(%rsp), %r9\n"
	"	syscall\n"
	"	ret\n"
	".size turn_raw_here, . - turn_raw_here\n"

	".hidden turn_raw_clone_here\n.globl turn_raw_clone_here\n"
	".type turn_raw_clone_here, @function\n"
	"turn_raw_clone_here:\n"
	"	push %r12\n"
	"	mov 16(%rsp), %r12\n"
	MOVE_ARGUMENTS
	"	syscall\n"
	"	test %rax, %rax\n"
	"	jz 1f\n"
	"	pop %r12\n"
	"	ret\n"
	"1:	mov %r12, %rdi\n"
	"	sub $128, %rsp\n"	/* the red zone of whoever goes on here */
	"	and $-16, %rsp\n"
	"	xor %ebp, %ebp\n"
	"	call *(%rdi)\n"
	"	hlt\n"
	".size turn_raw_clone_here, . - turn_raw_clone_here\n"

	".hidden turn_raw_restorer_here\n.globl turn_raw_restorer_here\n"
	".type turn_raw_restorer_here, @function\n"
	"turn_raw_restorer_here:\n"
	"	mov $15, %eax\n"	/* rt_sigreturn */
	"	syscall\n"
	"	hlt\n"			/* where a call ends counts, not where it begins */
	".size turn_raw_restorer_here, . - turn_raw_restorer_here\n"

	".hidden turn_raw_pass_here\n.globl turn_raw_pass_here\n"
	".type turn_raw_pass_here, @function\n"
	"turn_raw_pass_here:\n"
	"	mov %rdx, %rbx\n"	/* its registers come back with rt_sigreturn */
	"	mov 144(%rbx), %rax\n"
	"	mov 104(%rbx), %rdi\n"
	"	mov 112(%rbx), %rsi\n"
	"	mov 136(%rbx), %rdx\n"
	"	mov 56(%rbx), %r10\n"
	"	mov 40(%rbx), %r8\n"
	"	mov 48(%rbx), %r9\n"
	"	syscall\n"
	"	mov %rax, 144(%rbx)\n"
	"	ret\n"
	".size turn_raw_pass_here, . - turn_raw_pass_here\n"

	".hidden turn_raw_end\n.globl turn_raw_end\nturn_raw_end:\n"

	".hidden turn_raw_resume\n.globl turn_raw_resume\n.type turn_raw_resume, @function\n"
	"turn_raw_resume:\n"
	"	ldmxcsr 120(%rdi)\n"
	"	fldcw 124(%rdi)\n"
	"	mov 0(%rdi), %rax\n"
	"	mov 8(%rdi), %rbx\n"
	"	mov 16(%rdi), %rdx\n"
	"	mov 24(%rdi), %rsi\n"
	"	mov 40(%rdi), %rbp\n"
	"	mov 48(%rdi), %r8\n"
	"	mov 56(%rdi), %r9\n"
	"	mov 64(%rdi), %r10\n"
	"	mov 72(%rdi), %r12\n"
	"	mov 80(%rdi), %r13\n"
	"	mov 88(%rdi), %r14\n"
	"	mov 96(%rdi), %r15\n"
	"	mov 104(%rdi), %rsp\n"
	"	mov 112(%rdi), %rcx\n"	/* as after a system call */
	"	mov 32(%rdi), %rdi\n"
	"	jmp *%rcx\n"
	".size turn_raw_resume, . - turn_raw_resume\n"
	".popsection\n");

#define AT(name) (offsetof(ucontext_t, uc_mcontext.gregs) + REG_##name * sizeof(greg_t))
_Static_assert(AT(RAX) == 144 && AT(RDI) == 104 && AT(RSI) == 112 && AT(RDX) == 136 &&
	       AT(R10) == 56 && AT(R8) == 40 && AT(R9) == 48, "what the code above counts");
_Static_assert(offsetof(struct turn_registers, rip) == 112 &&
	       offsetof(struct turn_registers, mxcsr) == 120 &&
	       offsetof(struct turn_registers, x87_control) == 124, "what the code above counts");

struct turn_raw_at turn_raw_at = {
	.raw = turn_raw_here,
	.clone = turn_raw_clone_here,
	.restorer = turn_raw_restorer_here,
	.pass = turn_raw_pass_here,
};

/* Where a function is in the copy. */
#define IN(copy, function)                                                                         \
	((typeof(function) *)((uintptr_t)(copy) + ((uintptr_t)(function) - (uintptr_t)turn_raw_begin)))

void turn_raw_move(char *copy)
{
	turn_raw_at = (struct turn_raw_at){
		.raw = IN(copy, turn_raw_here),
		.clone = IN(copy, turn_raw_clone_here),
		.restorer = IN(copy, turn_raw_restorer_here),
		.pass = IN(copy, turn_raw_pass_here),
	};
}
