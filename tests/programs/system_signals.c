/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_signals.c - a member of a system, for system_rare.sh: one case of signals.  All goes as on
 * Linux.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <termios.h>
#include <ucontext.h>
#include <unistd.h>

#include "member.h"

static volatile sig_atomic_t num_signals;

static void count(int signal)
{
	(void)signal;
	num_signals++;
}

static void handle(int signal, void (*handler)(int signal), int flags)
{
	const struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	CHECK(!sigaction(signal, &action, NULL));
}

/* ------------------------------------------------------------------------
 * Stacks of handlers.
 */

static char *stack_of_handlers;
static volatile bool was_there;

static void look_where(int signal)
{
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	(void)signal;
	was_there = here - (uintptr_t)stack_of_handlers < (uintptr_t)SIGSTKSZ;
}

static void *set_stacks(void *arg)
{
	stack_t stack = { .ss_size = SIGSTKSZ }, is;

	handle(SIGUSR1, look_where, SA_ONSTACK);
	for (int i = 0; i < 3; i++) {
		stack.ss_sp = stack_of_handlers = malloc(stack.ss_size);
		CHECK(stack_of_handlers && !sigaltstack(&stack, NULL));
		getppid();
		CHECK(!sigaltstack(NULL, &is) && is.ss_sp == stack.ss_sp && !is.ss_flags);
		was_there = false;
		CHECK(!raise(SIGUSR1) && was_there);
	}
	stack.ss_flags = SS_DISABLE;
	CHECK(!sigaltstack(&stack, &is) && is.ss_sp == stack_of_handlers);
	CHECK(!raise(SIGUSR1) && !was_there);
	return arg;
}

static void stacks(void)
{
	pthread_t thread;

	set_stacks(NULL);
	CHECK(!pthread_create(&thread, NULL, set_stacks, NULL) && !pthread_join(thread, NULL));
}

/* Of a language with stacks of its own: calls need no more room on them than in the kernel. */
#define SMALL 2048u
static ucontext_t outer, inner;

static void call_on_small(void)
{
	for (int i = 0; i < 20; i++)
		CHECK(syscall(SYS_getppid) > 0 && !syscall(SYS_sched_yield));
	for (volatile int i = 0; num_signals < 3; i++)
		syscall(SYS_clock_gettime, CLOCK_MONOTONIC, NULL);
}

static void small(void)
{
	static unsigned char memory[16 * SMALL];
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };
	stack_t stack = { .ss_size = 32768, .ss_sp = malloc(32768) };

	memset(memory, 0x5a, sizeof(memory));
	CHECK(stack.ss_sp && !sigaltstack(&stack, NULL) && !getcontext(&inner));
	handle(SIGALRM, count, SA_ONSTACK);
	syscall(SYS_getppid);	/* so that it is found, which takes room */
	CHECK(!setitimer(ITIMER_REAL, &often, NULL));
	inner.uc_stack.ss_sp = memory + sizeof(memory) - SMALL;
	inner.uc_stack.ss_size = SMALL;
	inner.uc_link = &outer;
	makecontext(&inner, call_on_small, 0);
	CHECK(!swapcontext(&outer, &inner) && !setitimer(ITIMER_REAL, &never, NULL));
	for (size_t i = 0; i < sizeof(memory) - SMALL; i++)
		CHECK(memory[i] == 0x5a);
}

/* ------------------------------------------------------------------------
 * Processes that stop, and go on.
 */

/* A child in a group of its own that waits for signals. */
static pid_t child_that_waits(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		for (;;)
			pause();
	CHECK(!setpgid(pid, pid));
	usleep(1000);
	return pid;
}

static bool is_told(pid_t pid, int options, int code, int status)
{
	siginfo_t info = { .si_pid = 0 };

	CHECK(!waitid(P_PID, (id_t)pid, &info, options));
	return info.si_pid == pid && info.si_code == code && info.si_status == status;
}

static void stops(void)
{
	static const int signals[] = { SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU };
	pid_t pid;
	int status;

	handle(SIGCHLD, count, 0);
	for (int i = 0; i < 4; i++) {
		pid = child_that_waits();
		num_signals = 0;
		CHECK(!kill(i % 2 ? -pid : pid, signals[i]));
		CHECK(is_told(pid, WSTOPPED | WNOWAIT, CLD_STOPPED, signals[i]) && num_signals == 1);
		CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
		CHECK(!waitpid(pid, &status, WUNTRACED | WNOHANG));
		CHECK(!kill(pid, SIGTERM) && usleep(1000) <= 0 && !waitpid(pid, &status, WNOHANG));
		handle(SIGCHLD, SIG_DFL, 0);
		CHECK(!kill(pid, SIGCONT) && waitpid(pid, &status, 0) == pid);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
		handle(SIGCHLD, count, 0);
	}
	/* It goes on as if nothing had been. */
	pid = child_that_waits();
	CHECK(!kill(pid, SIGSTOP) && is_told(pid, WSTOPPED, CLD_STOPPED, SIGSTOP));
	CHECK(!kill(pid, SIGCONT));
	CHECK(is_told(pid, WCONTINUED, CLD_CONTINUED, SIGCONT) && !kill(pid, SIGKILL));
	CHECK(waitpid(pid, &status, 0) == pid);
}

/* By itself; and one that handles it, or whom nobody would continue, does not stop. */
static void stops_itself(void)
{
	double began = seconds();
	pid_t pid = fork();
	int status;

	if (!pid) {
		setpgid(0, 0);
		CHECK(!raise(SIGTSTP) && seconds() >= began + 3);
		handle(SIGTSTP, count, 0);
		CHECK(!raise(SIGTSTP) && num_signals == 1);
		handle(SIGTSTP, SIG_DFL, 0);
		CHECK(setsid() < 0 && !raise(SIGSTOP));
		_exit(3);
	}
	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WSTOPSIG(status) == SIGTSTP && !sleep(3));
	CHECK(!kill(pid, SIGCONT) && waitpid(pid, &status, WUNTRACED) == pid);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	CHECK(!kill(pid, SIGCONT) && waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 3);
	pid = fork();
	if (!pid) {
		CHECK(setsid() > 0 && !raise(SIGTSTP) && !raise(SIGTTOU));
		_exit(4);
	}
	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 4);
}

/* ------------------------------------------------------------------------
 * Signals that the kernel sends to who waits for none.
 */

/* In a child: interrupted after half a second, while it sleeps or waits for a lock. */
static void interrupted(bool sleeps)
{
	const struct timespec time = { .tv_sec = 5 };
	const double began = seconds();
	uint32_t word = 0;

	if (sleeps)
		CHECK(nanosleep(&time, NULL) && errno == EINTR);
	else
		CHECK(syscall(SYS_futex, &word, FUTEX_WAIT, 0, &time) && errno == EINTR);
	CHECK(num_signals == 1 && seconds() < began + 1);
}

static void ends_well(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
}

static void of_parents(void)
{
	int ends[2];
	char byte;
	pid_t pid;

	CHECK(!pipe(ends));
	pid = fork();
	if (!pid && !fork()) {
		handle(SIGUSR1, count, 0);
		CHECK(!prctl(PR_SET_PDEATHSIG, SIGUSR1));
		interrupted(false);
		CHECK(write(ends[1], "", 1) == 1);
		_exit(0);
	}
	if (!pid) {
		usleep(500000);
		_exit(0);
	}
	ends_well(pid);
	CHECK(!close(ends[1]) && read(ends[0], &byte, 1) == 1 && !read(ends[0], &byte, 1));
	/* An orphan is its grandparent's. */
	CHECK(!prctl(PR_SET_CHILD_SUBREAPER, 1));
	pid = fork();
	if (!pid && !fork())
		usleep(500000);
	if (!pid)
		_exit(0);
	ends_well(pid);
	handle(SIGCHLD, count, 0);
	interrupted(true);
	CHECK(wait(NULL) > 0);
}

static void of_terminals(void)
{
	const struct winsize size = { .ws_row = 20, .ws_col = 30 };
	char line[32], much[1024];
	struct termios settings;
	double began;
	int master, terminal, status;
	pid_t pid, job;

	for (int i = 0; i < 3; i++) {
		CHECK(!openpty(&master, &terminal, NULL, NULL, NULL));
		pid = fork();
		if (!pid) {
			CHECK(!close(master) && setsid() > 0 && !ioctl(terminal, TIOCSCTTY, 0));
			handle(i == 0 ? SIGINT : i == 1 ? SIGWINCH : SIGHUP, count, 0);
			interrupted(i % 2);
			_exit(0);
		}
		usleep(500000);
		CHECK(!close(terminal));
		if (i == 0)
			CHECK(write(master, "\003", 1) == 1);
		else if (i == 1)
			CHECK(!ioctl(master, TIOCSWINSZ, &size));
		if (i == 2)
			CHECK(!close(master));
		ends_well(pid);
		close(master);
	}
	/* A read that is content with nothing after a while. */
	CHECK(!openpty(&master, &terminal, NULL, NULL, NULL) && !tcgetattr(terminal, &settings));
	cfmakeraw(&settings);
	settings.c_cc[VMIN] = 0;
	settings.c_cc[VTIME] = 5;
	CHECK(!tcsetattr(terminal, TCSANOW, &settings));
	began = seconds();
	CHECK(!read(terminal, line, sizeof(line)));
	CHECK(seconds() >= began + 0.5 && seconds() < began + 0.7);
	CHECK(write(master, "x", 1) == 1 && read(terminal, line, sizeof(line)) == 1);
	/* All that was written is read: on Linux, that or a part of it. */
	CHECK(!openpty(&master, &terminal, NULL, NULL, NULL));
	for (int i = 0; i < 100; i++)
		CHECK(write(terminal, "a\n", 2) == 2);
	CHECK(read(master, much, sizeof(much)) == 300);
	/* Who reads in the background is stopped, as is who is in front when somebody wants it. */
	CHECK(!openpty(&master, &terminal, NULL, NULL, NULL));
	pid = fork();
	if (!pid) {
		CHECK(setsid() > 0 && !ioctl(terminal, TIOCSCTTY, 0));
		job = fork();
		if (!job) {
			CHECK(!setpgid(0, 0) && read(terminal, line, sizeof(line)) == 2);
			_exit(0);
		}
		CHECK(waitpid(job, &status, WUNTRACED) == job && WSTOPSIG(status) == SIGTTIN);
		handle(SIGTTOU, SIG_IGN, 0);
		CHECK(!tcsetpgrp(terminal, job) && !kill(job, SIGCONT));
		CHECK(waitpid(job, &status, WUNTRACED) == job && WSTOPSIG(status) == SIGTSTP);
		CHECK(!kill(job, SIGCONT));
		ends_well(job);
		_exit(0);
	}
	sleep(1);
	CHECK(write(master, "\032", 1) == 1 && !sleep(1) && write(master, "x\n", 2) == 2);
	ends_well(pid);
	/* What was typed came back at once; then there is nobody any more. */
	CHECK(read(master, line, sizeof(line)) == 5 && !memcmp(line, "^Zx\r\n", 5));
	CHECK(!close(terminal) && read(master, line, sizeof(line)) < 0 && errno == EIO);
}

static const struct member_case cases[] = {
	{ "stacks", stacks }, { "small", small }, { "stops", stops }, { "stops_itself", stops_itself },
	{ "of_parents", of_parents }, { "of_terminals", of_terminals },
};

int main(int argc, char **argv)
{
	return member_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
