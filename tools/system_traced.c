/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_traced.c - exec of a member whose calls are caught by a filter.  The filter stays, but the
 * handler of SIGSYS goes, so the new program would end at its first call.  The launcher traces the
 * member: before the program's first instruction it makes the page there from which calls are let
 * through (turn/page.h), and sets a handler.  Source: ptrace(2).
 */
#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "system.h"
#include "turn/page.h"

#define LOOK_NS 1000000		/* of real time, between two looks whether exec failed */
#define OPTIONS (PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)
#define SIGSET_SIZE 8		/* the kernel's */

/* In the union of the words that ptrace() takes and what they mean. */
union words {
	struct turn_page page;
	long words[sizeof(struct turn_page) / sizeof(long)];
};

static bool is_stop(int status, int what)
{
	return WIFSTOPPED(status) && status >> 8 == what;
}

/* The next stop of a process that is traced; false: it has ended, and is reaped later. */
static bool await_stop(pid_t pid, int *ret_status)
{
	siginfo_t info;
	int result;

	do
		result = waitid(P_PID, (id_t)pid, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL);
	while (result && errno == EINTR && !system_is_stopped());
	return !result && info.si_code == CLD_TRAPPED &&
	       waitpid(pid, ret_status, __WALL | WNOHANG) == pid;
}

/* A call at that place of a process that has stopped; negative: an errno. */
static long call_there(pid_t pid, struct user_regs_struct registers, uint64_t at, long number,
		       const uint64_t arguments[6])
{
	int status;

	registers.rip = at;
	registers.rax = (uint64_t)number;
	registers.orig_rax = (uint64_t)-1;	/* it is in no call that could be made again */
	registers.rdi = arguments[0];
	registers.rsi = arguments[1];
	registers.rdx = arguments[2];
	registers.r10 = arguments[3];
	registers.r8 = arguments[4];
	registers.r9 = arguments[5];
	if (ptrace(PTRACE_SETREGS, pid, NULL, &registers) || ptrace(PTRACE_CONT, pid, NULL, NULL))
		return -errno;
	if (!await_stop(pid, &status))
		return -ESRCH;
	if (!is_stop(status, SIGTRAP) || ptrace(PTRACE_GETREGS, pid, NULL, &registers))
		return -ENOTSUP;
	return (long)registers.rax;
}

/* By an instruction in the place of the program's first one. */
static long map_page(pid_t pid, const struct user_regs_struct *registers, const struct turn_page *page)
{
	const uint64_t arguments[] = {
		TURN_PAGE, TURN_PAGE_SIZE, PROT_READ | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, (uint64_t)-1, 0,
	};
	long is, call, result;

	errno = 0;
	is = ptrace(PTRACE_PEEKTEXT, pid, registers->rip, NULL);
	if (errno)
		return -errno;
	memcpy(&call, page->call, sizeof(call));
	if (ptrace(PTRACE_POKETEXT, pid, registers->rip, call))
		return -errno;
	result = call_there(pid, *registers, registers->rip, SYS_mmap, arguments);
	if (ptrace(PTRACE_POKETEXT, pid, registers->rip, is))
		return -errno;
	return result == (long)TURN_PAGE ? 0 : result;
}

static long set_handler(pid_t pid, const struct user_regs_struct *registers)
{
	const uint64_t arguments[6] = {
		SIGSYS, TURN_PAGE + offsetof(struct turn_page, action), 0, SIGSET_SIZE,
	};

	return call_there(pid, *registers, TURN_PAGE + offsetof(struct turn_page, call),
			  SYS_rt_sigaction, arguments);
}

static long fill_page(pid_t pid, const union words *page)
{
	for (size_t i = 0; i < sizeof(page->words) / sizeof(page->words[0]); i++)
		if (ptrace(PTRACE_POKEDATA, pid, TURN_PAGE + i * sizeof(long), page->words[i]))
			return -errno;
	return 0;
}

/* It has left exec, and nothing of the new program has run; it gets no signal meanwhile. */
static long begin_stopped(pid_t pid, const union words *page)
{
	const uint64_t none = ~(UINT64_C(1) << (SIGTRAP - 1));
	struct user_regs_struct registers;
	uint64_t mask;
	long err;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &registers) ||
	    ptrace(PTRACE_GETSIGMASK, pid, SIGSET_SIZE, &mask) ||
	    ptrace(PTRACE_SETSIGMASK, pid, SIGSET_SIZE, &none))
		return -errno;
	err = map_page(pid, &registers, &page->page);
	if (!err)
		err = fill_page(pid, page);
	if (!err)
		err = set_handler(pid, &registers);
	if (!err && (ptrace(PTRACE_SETREGS, pid, NULL, &registers) ||
		     ptrace(PTRACE_SETSIGMASK, pid, SIGSET_SIZE, &mask)))
		err = -errno;
	return err;
}

static void begin_program(const struct system *system, pid_t pid, const union words *page)
{
	const struct turn_segment *segment = system->segment;
	const uint32_t member = segment->threads[segment->traced_thread].member;
	const struct system_program *program = system_program_of(system, member);
	int status;
	long err = -ESRCH;

	if (!ptrace(PTRACE_SYSCALL, pid, NULL, NULL) && await_stop(pid, &status))
		err = is_stop(status, SIGTRAP | 0x80) ? begin_stopped(pid, page) : -ENOTSUP;
	if (err && !system_has_ended(pid, false)) {
		errno = (int)-err;
		tool_error("%s: a program cannot be started without syscall user dispatch "
			   "(Linux 5.11), and is killed: %m", program ? system_name(program) : "run");
		kill(pid, SIGKILL);
	}
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
}

static void set(struct turn_segment *segment, enum turn_traced is)
{
	atomic_store(&segment->traced, is);
	syscall(SYS_futex, &segment->traced, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Its exec failed, or somebody sent what stops it. */
static void let_go(pid_t tid)
{
	int status;

	if (!ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) && await_stop(tid, &status))
		ptrace(PTRACE_DETACH, tid, NULL, NULL);
}

/* True: it has stopped for that.  Any other stop is none of the launcher's. */
static bool has_exec(pid_t tid)
{
	siginfo_t info = { .si_pid = 0 };
	int status;

	if (waitid(P_PID, (id_t)tid, &info, WSTOPPED | WNOHANG | WNOWAIT | __WALL) ||
	    info.si_pid != tid || waitpid(tid, &status, WNOHANG | __WALL) != tid)
		return false;
	if (is_stop(status, SIGTRAP | PTRACE_EVENT_EXEC << 8))
		return true;
	ptrace(PTRACE_CONT, tid, NULL, status >> 16 ? 0 : WSTOPSIG(status));
	return false;
}

/*
 * True: it has become the program, which has stopped.  With several threads it has its process's
 * number then, whichever thread it was.
 */
static bool await_exec(struct turn_segment *segment, pid_t pid, pid_t tid)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };

	while (!system_is_stopped() && atomic_load(&segment->traced) == TURN_TRACED) {
		if (has_exec(pid) || (tid != pid && has_exec(tid)))
			return true;
		if (system_has_ended(pid, false))
			return false;
		syscall(SYS_futex, &segment->traced, FUTEX_WAIT, TURN_TRACED, &look, NULL, 0);
	}
	if (!system_is_stopped())
		let_go(tid);
	return false;
}

/* Its death is for its parent, if that is not the launcher, which sees it first. */
static void leave_dead(pid_t pid, bool is_child)
{
	siginfo_t info;

	if (!is_child)
		waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | __WALL);
}

/* By the thread: the process's first one may have ended. */
static bool attach(pid_t tid, union words *ret_page)
{
	const struct iovec to = { ret_page, sizeof(*ret_page) };
	const struct iovec from = { (void *)TURN_PAGE, sizeof(*ret_page) };

	return process_vm_readv(tid, &to, 1, &from, 1, 0) == (ssize_t)sizeof(*ret_page) &&
	       !ptrace(PTRACE_SEIZE, tid, NULL, OPTIONS);
}

/* It is traced until it has become the program, or exec failed, or it has ended. */
static enum system_traced trace(const struct system *system, pid_t pid)
{
	struct turn_segment *segment = system->segment;
	const uint32_t thread = segment->traced_thread;
	const bool is_spawn = segment->traced_is_spawn;
	const pid_t tid = segment->traced_tid;
	union words page;

	if (!attach(tid, &page)) {
		set(segment, TURN_REFUSED);
		return SYSTEM_NEEDS_TURN;
	}
	set(segment, TURN_TRACED);
	if (!await_exec(segment, pid, tid))
		return atomic_load(&segment->traced) == TURN_FAILED ? SYSTEM_NEEDS_TURN :
								      SYSTEM_HAS_ENDED;
	/* From then on the segment is its own again. */
	if (!is_spawn)
		segment->threads[thread].state = TURN_RUNS;
	begin_program(system, pid, &page);
	return is_spawn ? SYSTEM_NEEDS_TURN : SYSTEM_RUNS;
}

enum system_traced system_trace(struct system *system)
{
	struct turn_segment *segment = system->segment;
	const pid_t pid = segment->traced_pid;
	const bool is_spawn = segment->traced_is_spawn;
	siginfo_t info;
	const bool is_child = !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
	enum system_traced result;

	segment->owner = segment->traced_thread;
	result = trace(system, pid);
	if (result != SYSTEM_HAS_ENDED)
		return result;
	leave_dead(pid, is_child);
	if (is_spawn)
		return SYSTEM_NEEDS_TURN;
	segment->owner = TURN_NOBODY;
	return result;
}
