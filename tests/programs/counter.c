/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counter.c - a member of a system, for spin.sh: the processor's time stamp counter, and signals of
 * instructions, SIGSEGV and SIGTRAP, which are as on Linux.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <x86intrin.h>

#include "member.h"

static uint64_t ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void *read_it(void *arg)
{
	*(uint64_t *)arg = __rdtsc();
	return arg;
}

static void block_all(void)
{
	sigset_t all;

	sigfillset(&all);
	CHECK(!sigprocmask(SIG_SETMASK, &all, NULL));
}

/* A tick is a nanosecond, and a read takes time. */
static void reads(void)
{
	uint64_t begin = ns(), first = __rdtsc(), last, other;
	unsigned int number = 7;
	pthread_t thread;
	int status;

	usleep(1000);
	last = __rdtscp(&number);
	CHECK(!number && last - first >= 1000000 && last - first < 1010000);
	CHECK(first - begin < 5000 && __rdtsc() > last);
	/* A loop until then ends. */
	while (__rdtsc() < last + 5000000)
		;
	block_all();
	CHECK(!pthread_create(&thread, NULL, read_it, &other) && !pthread_join(thread, NULL));
	CHECK(other > last + 5000000 && other < __rdtsc());
	if (!fork())
		_exit(__rdtsc() > other ? 3 : 4);
	CHECK(wait(&status) > 0 && WEXITSTATUS(status) == 3);
	if (!fork()) {
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	CHECK(wait(&status) > 0 && !status);
	printf("%llu\n", (unsigned long long)__rdtsc());
}

static sigjmp_buf back;
static volatile int times;
static char *place;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	sigset_t blocked;

	(void)context;
	CHECK(signal == SIGSEGV && info->si_addr == place && info->si_code == SEGV_ACCERR);
	CHECK(!sigprocmask(SIG_SETMASK, NULL, &blocked) && sigismember(&blocked, SIGUSR1));
	CHECK(sigismember(&blocked, SIGSEGV) && __rdtsc());
	if (++times == 1)
		mprotect(place, 4096, PROT_READ | PROT_WRITE);
	else
		siglongjmp(back, 1);
}

static void on_overflow(int signal)
{
	(void)signal;
	siglongjmp(back, 2);
}

static volatile int depth;

__attribute__((noinline, optimize("O0"))) static int overflow(int i)
{
	volatile char fill[4096];

	fill[0] = (char)i;
	depth = i;
	return i < 1000000 ? overflow(i + 1) + fill[0] : 0;
}

/* The stack is full: the handler has one of its own. */
static void overflows(void)
{
	static char other[65536];
	const stack_t stack = { .ss_sp = other, .ss_size = sizeof(other) };
	struct sigaction action = { .sa_handler = on_overflow, .sa_flags = SA_ONSTACK };
	const struct rlimit limit = { 1 << 20, RLIM_INFINITY };

	CHECK(!setrlimit(RLIMIT_STACK, &limit) && !sigaltstack(&stack, NULL));
	CHECK(!sigaction(SIGSEGV, &action, NULL));
	for (int i = 0; i < 2; i++)
		if (!sigsetjmp(back, 1))
			overflow(0);
	CHECK(depth > 100 && __rdtsc());
}

static volatile int traps;

static void on_trap(int signal, siginfo_t *info, void *context)
{
	(void)context;
	CHECK(signal == SIGTRAP && info->si_code != SI_USER);
	traps++;
}

static void on_sent(int signal, siginfo_t *info, void *context)
{
	(void)context;
	CHECK(signal == SIGSEGV && info->si_code == SI_TKILL && info->si_pid == getpid());
	times = 100;
}

static void handlers(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, was;

	place = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaddset(&action.sa_mask, SIGUSR1);
	CHECK(!sigaction(SIGSEGV, &action, NULL));
	*(volatile char *)place = 1;
	CHECK(times == 1 && *place == 1 && __rdtsc() && !mprotect(place, 4096, PROT_READ));
	for (int i = 0; i < 2; i++)
		if (!sigsetjmp(back, 1))
			*(volatile char *)place = 1;
	CHECK(times == 3 && __rdtsc());
	action.sa_sigaction = on_sent;
	action.sa_flags |= SA_RESETHAND;
	CHECK(!sigaction(SIGSEGV, &action, &was) && was.sa_sigaction == on_fault);
	CHECK(sigismember(&was.sa_mask, SIGUSR1) && !raise(SIGSEGV) && times == 100);
	CHECK(!sigaction(SIGSEGV, NULL, &was) && was.sa_handler == SIG_DFL);
	action.sa_sigaction = on_trap;
	action.sa_flags = SA_SIGINFO;
	CHECK(!sigaction(SIGTRAP, &action, NULL));
	__asm__ volatile("int3");
	CHECK(traps == 1);
	overflows();
}

/* How children die, and the handler that faults itself. */
static void fault_again(int signal)
{
	(void)signal;
	*(volatile char *)place = 1;
}

static void crash(int how)
{
	struct sigaction action = { .sa_handler = how == 3 ? fault_again : SIG_IGN };

	if (how >= 3)
		sigaction(SIGSEGV, &action, NULL);
	if (how == 1)
		raise(SIGSEGV);
	else if (how == 2)
		__asm__ volatile("int3");
	else
		*(volatile char *)place = 1;
	_exit(0);
}

static void deaths(void)
{
	int status;

	place = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int how = 0; how < 5; how++) {
		if (!fork())
			crash(how);
		CHECK(wait(&status) > 0 && WIFSIGNALED(status));
		CHECK(WTERMSIG(status) == (how == 2 ? SIGTRAP : SIGSEGV));
	}
	signal(SIGSEGV, SIG_IGN);
	CHECK(!raise(SIGSEGV));
}

static void control(void)
{
	int mode = 0;

	CHECK(!prctl(PR_GET_TSC, &mode) && mode == PR_TSC_ENABLE);
	CHECK(prctl(PR_SET_TSC, 7) == -1 && errno == EINVAL);
	CHECK(!prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
	CHECK(!prctl(PR_GET_TSC, &mode) && mode == PR_TSC_SIGSEGV);
	signal(SIGSEGV, on_overflow);
	if (!sigsetjmp(back, 1))
		printf("%llu\n", (unsigned long long)__rdtsc());
	else
		times = 1;
	CHECK(times == 1 && !prctl(PR_SET_TSC, PR_TSC_ENABLE) && __rdtsc());
}

static const struct member_case cases[] = {
	{ "reads", reads }, { "handlers", handlers }, { "deaths", deaths }, { "control", control },
};

int main(int argc, char **argv)
{
	return member_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
