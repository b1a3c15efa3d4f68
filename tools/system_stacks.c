/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_stacks.c - the stacks of threads that wait.  A thread that waits is in a system call that was
 * trapped: its registers are those that the handler was given, and its stack begins there.  Both are
 * copied; another process, which may fail and gets a limited time, makes names of them.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "system.h"

#define PAGE 4096u
#define MOST_PAGES 64u		/* of a stack */
#define LIMIT_S 5		/* of real time, for all of them */
#define MOST_TEXT (1u << 20)

/* ------------------------------------------------------------------------
 * Copies.
 */

static bool read_registers(struct system_stack *stack, uint64_t context)
{
	/* In the order of DWARF for x86-64. */
	static const int order[SYSTEM_REGISTERS] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
		REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
	};
	gregset_t registers;
	const struct iovec to = { registers, sizeof(registers) };
	const struct iovec from = {
		(void *)(context + offsetof(ucontext_t, uc_mcontext.gregs)), sizeof(registers),
	};

	if (process_vm_readv(stack->pid, &to, 1, &from, 1, 0) != sizeof(registers))
		return false;
	for (size_t i = 0; i < SYSTEM_REGISTERS; i++)
		stack->registers[i] = (uint64_t)registers[order[i]];
	stack->begin = (uint64_t)registers[REG_RSP];
	return true;
}

/* Up to its end, or as much as is likely to be needed. */
static void read_stack(struct system_stack *stack)
{
	struct iovec pages[MOST_PAGES], to;
	uint64_t at = stack->begin;
	ssize_t len;

	for (size_t i = 0; i < MOST_PAGES; i++) {
		pages[i] = (struct iovec){ (void *)at, PAGE - at % PAGE };
		at += pages[i].iov_len;
	}
	stack->bytes = tool_realloc(NULL, MOST_PAGES, PAGE);
	to = (struct iovec){ stack->bytes, MOST_PAGES * PAGE };
	len = process_vm_readv(stack->pid, &to, 1, pages, MOST_PAGES, 0);
	stack->len = len > 0 ? (size_t)len : 0;
}

static struct system_stack copy(const struct system *system, uint32_t slot)
{
	const struct turn_thread *thread = &system->segment->threads[slot];
	struct system_stack stack = { .pid = system->segment->members[thread->member].pid };

	if (thread->context && read_registers(&stack, thread->context))
		read_stack(&stack);
	return stack;
}

/* ------------------------------------------------------------------------
 * Names.
 */

static _Noreturn void name_all(const struct system_stack *stacks, size_t num, int to)
{
	const struct rlimit none = { 0 };
	FILE *file = fdopen(to, "w");
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	signal(SIGALRM, SIG_DFL);
	setrlimit(RLIMIT_CORE, &none);
	alarm(LIMIT_S);
	if (file)
		system_unwind(stacks, num, file);
	_exit(0);
}

/* "NUMBER\nFRAME\nFRAME\n" and '\0' for each. */
static void take(char *text, const char *end, char **ret, size_t num)
{
	for (char *next; text < end; text = next) {
		unsigned long number;
		char *frames;

		next = memchr(text, '\0', (size_t)(end - text));
		if (!next)
			return;
		next++;
		number = strtoul(text, &frames, 10);
		if (number < num && !ret[number] && *frames == '\n' && frames[1])
			ret[number] = tool_strdup(frames + 1);
	}
}

static void read_all(int from, char **ret, size_t num)
{
	char *text = tool_realloc(NULL, MOST_TEXT, 1);
	size_t len = 0;
	ssize_t more;

	while (len < MOST_TEXT) {
		more = read(from, text + len, MOST_TEXT - len);
		if (more > 0)
			len += (size_t)more;
		else if (!more || errno != EINTR || system_is_stopped())
			break;
	}
	take(text, text + len, ret, num);
	free(text);
}

static void find_names(const struct system_stack *stacks, size_t num, char **ret)
{
	int ends[2];
	pid_t pid;

	if (pipe(ends))
		return;
	pid = fork();
	if (!pid) {
		close(ends[0]);
		name_all(stacks, num, ends[1]);
	}
	close(ends[1]);
	if (pid > 0) {
		read_all(ends[0], ret, num);
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
}

char **system_stacks(const struct system *system, const uint32_t *slots, size_t num)
{
	struct system_stack *stacks = tool_realloc(NULL, num + 1, sizeof(*stacks));
	char **all = tool_realloc(NULL, num + 1, sizeof(*all));

	for (size_t i = 0; i < num; i++) {
		stacks[i] = copy(system, slots[i]);
		all[i] = NULL;
	}
	if (num)
		find_names(stacks, num, all);
	for (size_t i = 0; i < num; i++)
		free(stacks[i].bytes);
	free(stacks);
	return all;
}
