/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spin.c - a member of a system, for spin.sh: threads that look at memory, without any call, until
 * another one writes there.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "member.h"

#define ROUNDS 50

static void nap(long us)
{
	const struct timespec time = { us / 1000000, us % 1000000 * 1000 };

	CHECK(!nanosleep(&time, NULL));
}

/* A file that both processes have mapped. */
static struct shared {
	volatile int asked, answered;
	volatile char bytes[64];
} *shared;

static void map(void)
{
	int fd = open(member_argument, O_RDWR | O_CREAT, 0600);

	CHECK(fd >= 0 && !ftruncate(fd, sizeof(*shared)));
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(shared != MAP_FAILED);
}

/* Now and then it thinks for a while. */
static void ask(void)
{
	double begin;

	map();
	begin = seconds();
	for (int i = 1; i <= ROUNDS; i++) {
		if (i % 16 == 0)
			nap(i * 10);
		shared->asked = i;
		while (shared->answered != i)
			;
	}
	printf("asked for %.9f s\n", seconds() - begin);
}

static void answer(void)
{
	double begin;

	map();
	begin = seconds();
	for (int i = 1; i <= ROUNDS; i++) {
		while (shared->asked != i)
			;
		shared->answered = i;
	}
	printf("answered for %.9f s\n", seconds() - begin);
}

/* ------------------------------------------------------------------------
 * Threads of one process.
 */

static atomic_int flags[8];

static void *set_flags(void *arg)
{
	for (unsigned int i = 0; i < 8; i++) {
		nap(300);
		atomic_store(&flags[i], 1);
	}
	return arg;
}

/* A function of its own, which writes the stack. */
__attribute__((noinline)) static int look(const atomic_int *flag)
{
	volatile int copy = atomic_load(flag);

	return copy;
}

__attribute__((noinline)) static int look_at_all(void)
{
	int sum = 0;

	for (unsigned int i = 0; i < 8; i++)
		sum += look(&flags[i]);
	return sum;
}

static void calls(void)
{
	double begin = seconds();
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, set_flags, NULL));
	while (!look(&flags[0]))
		;
	while (look_at_all() < 5)
		__builtin_ia32_pause();
	while (look_at_all() != 8)
		;
	printf("after %.9f s\n", seconds() - begin);
	CHECK(!pthread_join(thread, NULL));
}

/* A lock of its own. */
static atomic_flag lock = ATOMIC_FLAG_INIT;
static volatile int counter;

static void *add(void *arg)
{
	for (int i = 0; i < 50; i++) {
		while (atomic_flag_test_and_set(&lock))
			;
		counter++;
		if (i % 10 == 0)
			nap(100);
		atomic_flag_clear(&lock);
	}
	return arg;
}

static void locks(void)
{
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		CHECK(!pthread_create(&threads[i], NULL, add, NULL));
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(counter == 150);
}

/* What it waits for differs in numbers that are not whole. */
static volatile double number;

static void *set_number(void *arg)
{
	nap(500);
	number = 3;
	nap(500);
	number = 5;
	return arg;
}

static void numbers(void)
{
	double begin = seconds();
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, set_number, NULL));
	while (number != 5)
		;
	printf("after %.9f s\n", seconds() - begin);
	CHECK(!pthread_join(thread, NULL));
}

/* ------------------------------------------------------------------------
 * Signals.
 */

static volatile sig_atomic_t expired;
static sigjmp_buf back;

static void on_alarm(int signal)
{
	(void)signal;
	expired++;
}

static void on_alarm_back(int signal)
{
	(void)signal;
	siglongjmp(back, 1);
}

static void wait_alarm(void (*handler)(int), volatile sig_atomic_t *flag)
{
	const struct itimerval timer = { .it_value = { 0, 2000 } };
	struct sigaction action = { .sa_handler = handler };

	sigfillset(&action.sa_mask);
	CHECK(!sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &timer, NULL));
	while (!*flag)
		;
}

static void signals(void)
{
	volatile sig_atomic_t never = 0;
	double begin = seconds();
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGALRM);
	CHECK(!sigprocmask(SIG_SETMASK, &all, NULL));
	wait_alarm(on_alarm, &expired);
	if (!sigsetjmp(back, 1))
		wait_alarm(on_alarm_back, &never);
	CHECK(expired == 1);
	expired = 0;
	wait_alarm(on_alarm, &expired);
	printf("after %.9f s\n", seconds() - begin);
}

/* ------------------------------------------------------------------------
 * Others.
 */

/* It becomes another program, and forks, again and again while it may be asked. */
static void programs(void)
{
	volatile unsigned long sum = 0;
	int status;
	pid_t pid;

	for (int i = 0; i < 3; i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			for (unsigned long k = 0; k < 5000000; k++)
				sum += k;
			execl("/bin/true", "true", NULL);
			_exit(1);
		}
		CHECK(waitpid(pid, &status, 0) == pid && !status);
	}
}

/* It computes for longer than it takes to be asked. */
static void computes(void)
{
	uint64_t x = 1;

	for (int i = 0; i < 30000000; i++)
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
	printf("%llx at %.9f s\n", (unsigned long long)x, seconds());
}

static void for_ever(void)
{
	volatile int never = 0;

	while (!never)
		;
}

static const struct member_case cases[] = {
	{ "ask", ask }, { "answer", answer }, { "calls", calls }, { "locks", locks },
	{ "numbers", numbers }, { "signals", signals }, { "programs", programs },
	{ "computes", computes }, { "for_ever", for_ever },
};

int main(int argc, char **argv)
{
	return member_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
