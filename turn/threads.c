/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/threads.c - see threads.h. */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "beside.h"
#include "descriptors.h"
#include "futex.h"
#include "hand.h"
#include "include/thread_local.h"
#include "order.h"
#include "outside.h"
#include "pointers.h"
#include "raw.h"
#include "signals.h"
#include "spin.h"
#include "tell.h"
#include "threads.h"
#include "timer_fds.h"
#include "timers.h"

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x1000
#endif

/* As clone3() has them; the rest, which came later, is for who may choose process ids. */
struct arguments {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
};

#define FIRST_SIZE 64		/* of these, in Linux 5.3 */
#define CLEARS_HANDLERS UINT64_C(0x100000000)	/* CLONE_CLEAR_SIGHAND */
#define KNOWN_FLAGS UINT64_C(0x3ffffffff)	/* and CLONE_INTO_CGROUP */

/* For a thread that begins on a stack of its own; by slot. */
struct beginning {
	struct turn_raw_begin begin;	/* first */
	uint32_t slot;
	bool is_member;		/* a process, not only a thread */
	bool is_spawned;	/* one that acts as its parent's thread */
	uint32_t member;
	uint64_t mask;
	struct turn_registers registers;
};

static struct beginning beginnings[TURN_MAX_THREADS];

/* While this thread, in the kernel, stands still for it: both have these words. */
static POLYCM_THREAD_LOCAL struct {
	uint32_t slot;
	bool has_ended;		/* without exec */
	bool is_outside;	/* the program that it becomes */
	bool is_traced;		/* while it calls exec: the launcher has the turn */
	uint32_t told;		/* of that */
} spawned = { .slot = TURN_NOBODY };

uint32_t turn_spawned(void)
{
	return spawned.slot;
}

void turn_spawned_outside(bool is_outside, uint32_t told)
{
	spawned.is_outside = is_outside;
	spawned.told = told;
}

void turn_spawned_traced(bool is_traced)
{
	spawned.is_traced = is_traced;
}

void turn_thread_begin(uint32_t slot)
{
	turn_set_slot(slot);
	turn_take();
}

static void begin_member(uint32_t member)
{
	turn_member = member;
	turn_segment->members[member].life = TURN_LIVES;
	turn_timers_forget();
	turn_timer_fds_inherited();
}

static void begin_on_stack(struct turn_raw_begin *arg)
{
	/* Its place is used again when this thread has gone on and ended. */
	const struct beginning begin = *(const struct beginning *)arg;
	const stack_t none = { .ss_flags = SS_DISABLE };

	if (!begin.is_spawned)
		turn_thread_begin(begin.slot);
	if (begin.is_member && !begin.is_spawned)
		begin_member(begin.member);
	/* Its maker stands still in a handler, which may be on that stack. */
	if (begin.is_spawned)
		TURN_RAW(SYS_sigaltstack, &none, NULL);
	turn_trap_begin();
	TURN_RAW(SYS_rt_sigprocmask, SIG_SETMASK, &begin.mask, NULL, TURN_SIGSET_SIZE);
	turn_raw_resume(&begin.registers);
}

/* clone() as clone3() has it. */
static struct arguments arguments_of(const struct turn_call *call)
{
	const long *arguments = call->arguments;
	struct arguments args = { .flags = 0 };
	const unsigned long flags = (unsigned long)arguments[0];

	switch (call->number) {
	case SYS_fork:
		args.exit_signal = SIGCHLD;
		break;
	case SYS_vfork:
		args.flags = CLONE_VM | CLONE_VFORK;
		args.exit_signal = SIGCHLD;
		break;
	case SYS_clone:
		args.flags = flags & ~(unsigned long)CSIGNAL;
		args.exit_signal = flags & CSIGNAL;
		args.stack = (uint64_t)arguments[1];	/* its upper end */
		args.parent_tid = args.pidfd = (uint64_t)arguments[2];
		args.child_tid = (uint64_t)arguments[3];
		args.tls = (uint64_t)arguments[4];
		break;
	default:
		memcpy(&args, (const void *)arguments[0],
		       (size_t)arguments[1] < sizeof(args) ? (size_t)arguments[1] : sizeof(args));
		args.stack += args.stack_size;
		break;
	}
	args.stack_size = 0;
	return args;
}

static uint32_t new_member(void)
{
	uint32_t member = turn_segment->num_members;

	if (member == TURN_MAX_MEMBERS)
		for (member = 0; member < TURN_MAX_MEMBERS; member++)
			if (turn_segment->members[member].life == TURN_ENDED)
				break;
	if (member == TURN_MAX_MEMBERS)
		return TURN_NOBODY;
	if (member == turn_segment->num_members)
		turn_segment->num_members++;
	turn_segment->members[member] = (struct turn_member){
		.parent = turn_member, .number = ++turn_segment->num_begun,
		.files = turn_segment->members[turn_member].files,
		.is_filtered = turn_segment->members[turn_member].is_filtered,
		.random = turn_order_draw(&turn_segment->members[turn_member].random),
	};
	/* After the pid: the launcher, which looks for deaths meanwhile, must not see the old one. */
	__atomic_store_n(&turn_segment->members[member].life, TURN_STARTS, __ATOMIC_RELEASE);
	return member;
}

static struct turn_registers registers_of(const struct turn_call *call, uint64_t stack)
{
	const greg_t *is = call->context->uc_mcontext.gregs;
	const struct _libc_fpstate *numbers = call->context->uc_mcontext.fpregs;

	return (struct turn_registers){
		.rax = 0, .rbx = (unsigned long)is[REG_RBX], .rdx = (unsigned long)is[REG_RDX],
		.rsi = (unsigned long)is[REG_RSI], .rdi = (unsigned long)is[REG_RDI],
		.rbp = (unsigned long)is[REG_RBP], .r8 = (unsigned long)is[REG_R8],
		.r9 = (unsigned long)is[REG_R9], .r10 = (unsigned long)is[REG_R10],
		.r12 = (unsigned long)is[REG_R12], .r13 = (unsigned long)is[REG_R13],
		.r14 = (unsigned long)is[REG_R14], .r15 = (unsigned long)is[REG_R15],
		.rsp = stack, .rip = (unsigned long)is[REG_RIP],
		.mxcsr = numbers->mxcsr, .x87_control = numbers->cwd,
	};
}

/*
 * posix_spawn(): a child on a stack of its own that shares its parent's memory until it calls exec or
 * ends, and says there why it could not.  The parent stands still in the kernel meanwhile, so the
 * child makes its calls as its parent's thread and with its turn; its own slot is for the program
 * that it becomes.
 */
static bool is_spawn(const struct arguments *args)
{
	return args->flags & CLONE_VM && args->flags & CLONE_VFORK && args->stack &&
	       !(args->flags & (CLONE_THREAD | CLONE_SETTLS)) && spawned.slot == TURN_NOBODY;
}

/* In the parent, which goes on when the launcher has begun the program. */
static void await_spawn(const struct beginning *begin)
{
	if (begin->is_spawned && spawned.is_traced)
		turn_take();
}

/* In the parent: the child has become a program, or has ended and is no member any more. */
static void end_spawn(uint32_t slot, uint32_t member, long pid)
{
	siginfo_t info;

	if (pid > 0 && spawned.has_ended) {
		TURN_RAW(SYS_waitid, P_PID, pid, &info, WEXITED | WNOWAIT, NULL);
		turn_order_remove(turn_segment, slot);
		turn_segment->members[member].life = TURN_ENDED;
		turn_order_interrupt(turn_segment, turn_member);
		turn_changed();
	} else if (pid > 0 && spawned.is_outside) {
		turn_outside_begin(member, spawned.told);
	} else if (pid > 0) {
		turn_segment->threads[slot].state = TURN_READY;
	}
	spawned.slot = TURN_NOBODY;
}

/* One that traces threads and tells nobody of its end; a second one is like any other. */
static bool is_beside(const struct arguments *args)
{
	return args->flags & CLONE_VM && args->flags & CLONE_UNTRACED && args->stack &&
	       !args->exit_signal && spawned.slot == TURN_NOBODY && !turn_beside_is_there() &&
	       !(args->flags & (CLONE_THREAD | CLONE_VFORK | CLONE_SETTLS));
}

static void begin_beside(struct turn_raw_begin *arg)
{
	const struct beginning begin = *(const struct beginning *)arg;

	/* It has its maker's words, and may make a call before that does. */
	turn_beside_begin(TURN_RAW(SYS_gettid));
	TURN_RAW(SYS_prctl, PR_SET_TSC, PR_TSC_ENABLE);
	TURN_RAW(SYS_rt_sigprocmask, SIG_SETMASK, &begin.mask, NULL, TURN_SIGSET_SIZE);
	turn_raw_resume(&begin.registers);
}

static long clone_beside(const struct turn_call *call, const struct arguments *args)
{
	struct beginning *begin = &beginnings[turn_slot()];	/* this thread's is not used any more */
	long result;

	*begin = (struct beginning){
		.begin = { .run = begin_beside }, .registers = registers_of(call, args->stack),
	};
	memcpy(&begin->mask, &call->context->uc_sigmask, sizeof(begin->mask));
	result = turn_raw_clone(SYS_clone, (long)(args->flags | args->exit_signal), (long)args->stack,
				(long)(args->flags & CLONE_PIDFD ? args->pidfd : args->parent_tid),
				(long)args->child_tid, 0, &begin->begin);
	if (result > 0)
		turn_beside_begin(result);
	return result;
}

/*
 * Any other process that would share its parent's memory, as of vfork(), gets its own: it has its
 * turns like all others, and the parent need not stand still for it.
 */
static long clone_it(const struct turn_call *call, struct arguments *args, struct beginning *begin)
{
	long result;

	if (begin->is_spawned) {
		spawned.slot = begin->slot;
		spawned.has_ended = spawned.is_outside = spawned.is_traced = false;
		/* No turn before it is a program. */
		turn_segment->threads[begin->slot].state = TURN_FREE;
	} else if (begin->is_member) {
		args->flags &= ~(uint64_t)(CLONE_VM | CLONE_VFORK | CLONE_SIGHAND);
	}
	if (args->stack) {
		begin->begin.run = begin_on_stack;
		memcpy(&begin->mask, &call->context->uc_sigmask, sizeof(begin->mask));
		begin->registers = registers_of(call, args->stack);
		/* clone3() wants a size; clone() takes the upper end. */
		return turn_raw_clone(SYS_clone, (long)(args->flags | args->exit_signal),
				      (long)args->stack,
				      (long)(args->flags & CLONE_PIDFD ? args->pidfd : args->parent_tid),
				      (long)args->child_tid, (long)args->tls, &begin->begin);
	}
	result = turn_raw(SYS_clone, (long)(args->flags | args->exit_signal), 0,
			  (long)(args->flags & CLONE_PIDFD ? args->pidfd : args->parent_tid),
			  (long)args->child_tid, (long)args->tls, 0);
	if (!result) {
		turn_thread_begin(begin->slot);
		begin_member(begin->member);
		turn_trap_begin();
		if (args->flags & CLEARS_HANDLERS)
			turn_signal_clear();
	}
	return result;
}

long turn_clone(const struct turn_call *call)
{
	struct arguments args;
	uint32_t member, slot, event;
	bool is_member;
	long result;

	if (call->number == SYS_clone3 && (size_t)call->arguments[1] < FIRST_SIZE)
		return -EINVAL;
	if (call->number == SYS_clone3 &&
	    !turn_can_read((const void *)call->arguments[0], (size_t)call->arguments[1]))
		return -EFAULT;
	args = arguments_of(call);
	if (args.flags & ~KNOWN_FLAGS)
		return -EINVAL;
	if (args.flags & CLONE_NEWPID)
		return turn_tell_refused(TURN_WANTS_PIDS, -EPERM);
	if (is_beside(&args))
		return clone_beside(call, &args);
	is_member = !(args.flags & CLONE_THREAD);
	member = is_member ? new_member() : turn_member;
	if (member == TURN_NOBODY) {
		turn_tell(TURN_TOO_MANY_MEMBERS, NULL);
		return -EAGAIN;
	}
	slot = turn_order_add(turn_segment, member);
	if (slot == TURN_NOBODY) {
		turn_tell(TURN_TOO_MANY_THREADS, NULL);
		result = -EAGAIN;
		goto end_member;
	}
	if (args.flags & CLONE_CHILD_CLEARTID)
		turn_segment->threads[slot].cleared = args.child_tid;
	beginnings[slot] = (struct beginning){
		.slot = slot, .is_member = is_member, .member = member,
		.is_spawned = is_spawn(&args),
	};
	event = turn_self()->event;
	result = clone_it(call, &args, &beginnings[slot]);
	/* The child's calls were this thread's meanwhile. */
	if (beginnings[slot].is_spawned)
		turn_self()->event = event;
	await_spawn(&beginnings[slot]);
	/* In the parent; the child has its number, too. */
	if (result > 0) {
		turn_segment->threads[slot].tid = (int32_t)result;
		if (is_member)
			turn_segment->members[member].pid = (int32_t)result;
	}
	if (beginnings[slot].is_spawned)
		end_spawn(slot, member, result);
	if (result >= 0)
		return result;
	turn_order_remove(turn_segment, slot);
end_member:
	if (is_member)
		turn_segment->members[member].life = TURN_ENDED;
	return result;
}

long turn_exit(const struct turn_call *call)
{
	bool is_last = true;

	if (spawned.slot != TURN_NOBODY) {
		spawned.has_ended = true;
		return turn_through(call);
	}
	for (uint32_t i = 0; i < turn_segment->num_threads; i++)
		if (i != turn_slot() && turn_segment->threads[i].member == turn_member &&
		    turn_segment->threads[i].state != TURN_GONE)
			is_last = false;
	turn_spin_end();
	if (call->number == SYS_exit && !is_last) {
		turn_futex_end_thread();
		turn_leave();
	} else {
		turn_end_member();
	}
	turn_trap_end();
	return turn_through(call);
}
