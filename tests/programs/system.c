/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system.c - a member of a system, for system.sh: one case of waiting for threads, signals, time or
 * descriptors.  All goes as on Linux.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "member.h"

static volatile sig_atomic_t handled;

static void on_signal(int signal)
{
	(void)signal;
	handled++;
}

static void handle(int signal, int flags)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };

	sigfillset(&action.sa_mask);
	CHECK(!sigaction(signal, &action, NULL));
}

static void *count_to(void *arg)
{
	for (int i = 0; i < 10; i++)
		__atomic_fetch_add((int *)arg, 1, __ATOMIC_RELAXED);
	return arg;
}

/* Threads end and are joined, again and again. */
static void join(void)
{
	pthread_t threads[4];
	int sum = 0;

	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 4; i++)
			CHECK(!pthread_create(&threads[i], NULL, count_to, &sum));
		for (int i = 0; i < 4; i++)
			CHECK(!pthread_join(threads[i], NULL));
	}
	CHECK(sum == 4000);
}

static pthread_t first;

static void *outlive(void *arg)
{
	CHECK(!pthread_join(first, NULL) && sleep(1) == 0);
	puts("ok");
	exit(0);
	return arg;
}

/* The first thread of a process ends, and is joined, before the others. */
static void first_ends(void)
{
	pthread_t thread;

	first = pthread_self();
	CHECK(!pthread_create(&thread, NULL, outlive, NULL));
	pthread_exit(NULL);
}

static pthread_mutex_t robust;

static void *die_with_it(void *arg)
{
	pthread_mutex_lock(&robust);
	return arg;
}

static void owner_dies(void)
{
	pthread_mutexattr_t attr;
	pthread_t thread;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&robust, &attr);
	for (int i = 0; i < 50; i++) {
		CHECK(!pthread_create(&thread, NULL, die_with_it, NULL));
		CHECK(!pthread_join(thread, NULL));
		CHECK(pthread_mutex_lock(&robust) == EOWNERDEAD);
		CHECK(!pthread_mutex_consistent(&robust));
		CHECK(!pthread_mutex_unlock(&robust));
	}
}

/* The usual idiom: all signals are blocked but the one that is waited for. */
static void suspend(void)
{
	sigset_t all;

	handle(SIGALRM, 0);
	sigfillset(&all);
	sigdelset(&all, SIGALRM);
	alarm(3);
	CHECK(sigsuspend(&all) < 0 && errno == EINTR && handled == 1);
	alarm(3);
	CHECK(ppoll(NULL, 0, NULL, &all) < 0 && errno == EINTR && handled == 2);
	CHECK(seconds() >= 6);
}

static void restart(void)
{
	int pipes[2];
	char byte;

	CHECK(!pipe(pipes));
	handle(SIGALRM, SA_RESTART);
	if (!fork()) {
		sleep(3);
		_exit(write(pipes[1], "x", 1) != 1);
	}
	alarm(1);
	CHECK(read(pipes[0], &byte, 1) == 1 && handled == 1);
	handle(SIGALRM, 0);
	alarm(1);
	CHECK(read(pipes[0], &byte, 1) < 0 && errno == EINTR && handled == 2);
}

/* More than the kernel has room for, in one call at each end. */
static void stream(void)
{
	enum { MUCH = 3000000 };
	char *data = calloc(1, MUCH);
	int ends[2];

	CHECK(data && !socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	if (!fork()) {
		memset(data, 7, MUCH);
		CHECK(send(ends[1], data, MUCH, 0) == MUCH);
		_exit(0);
	}
	CHECK(recv(ends[0], data, MUCH, MSG_WAITALL) == MUCH);
	CHECK(data[0] == 7 && data[MUCH - 1] == 7);
	free(data);
}

static void timers(void)
{
	const struct itimerspec each = { .it_interval = { 2, 0 }, .it_value = { 2, 0 } };
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	uint64_t times;
	double begin;

	CHECK(fd >= 0 && !timerfd_settime(fd, 0, &each, NULL));
	begin = seconds();
	CHECK(poll(&ready, 1, 1000) == 0 && poll(&ready, 1, -1) == 1);
	CHECK(read(fd, &times, sizeof(times)) == sizeof(times) && times == 1);
	sleep(5);
	CHECK(read(fd, &times, sizeof(times)) == sizeof(times) && times == 2);
	CHECK(seconds() - begin >= 7 && seconds() - begin < 7.1);
}

static int is_set;

static void *set_it(void *arg)
{
	usleep(200000);
	__atomic_store_n(&is_set, 1, __ATOMIC_RELEASE);
	return arg;
}

/* Calls that succeed, until another thread says that it is enough. */
static void busy(void)
{
	int fd = open("/dev/null", O_WRONLY);
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, set_it, NULL));
	while (!__atomic_load_n(&is_set, __ATOMIC_ACQUIRE))
		for (int i = 0; i < 100; i++)
			CHECK(write(fd, "x", 1) == 1 && lseek(fd, 0, SEEK_CUR) >= 0);
	CHECK(!pthread_join(thread, NULL));
}

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void *set_late(void *arg)
{
	sleep(60);
	CHECK(!pthread_rwlock_wrlock(&lock));
	is_set = 1;
	CHECK(!pthread_rwlock_unlock(&lock));
	return arg;
}

static bool is_set_with_lock(void)
{
	bool result;

	CHECK(!pthread_rwlock_rdlock(&lock));
	result = is_set;
	CHECK(!pthread_rwlock_unlock(&lock));
	return result;
}

/* Who computes takes many locks, too; and who waits so may wait for long. */
static void locks(void)
{
	const double begin = seconds();
	pthread_t thread;

	for (int i = 0; i < 1000000; i++)
		CHECK(!is_set_with_lock());
	CHECK(seconds() - begin < 0.01 && !pthread_create(&thread, NULL, set_late, NULL));
	while (!is_set_with_lock())
		;
	CHECK(seconds() - begin < 60.1 && !pthread_join(thread, NULL));
}

/* Lines with the time, as programs log. */
static void logs(void)
{
	const double begin = seconds();
	FILE *file = fopen("/dev/null", "w");
	double time;

	CHECK(file && !setvbuf(file, NULL, _IOLBF, 1024));
	for (int i = 0; i < 20000; i++)
		CHECK(fprintf(file, "%f\n", seconds()) > 0);
	for (int i = 0; i < 20000; i++) {
		time = seconds();
		CHECK(pwrite(fileno(file), &time, sizeof(time), 0) == sizeof(time));
	}
	CHECK(seconds() - begin < 0.1);
}

static void *round_of(void *arg)
{
	volatile double one = 1, three = 3;
	volatile long double wide = 1;

	*(int *)arg = fegetround();
	/* By SSE and by the x87 alike. */
	CHECK(one / three * three > 1 && (double)(wide / 3 * 3) > 1);
	return arg;
}

/* A thread rounds as its creator does. */
static void rounding(void)
{
	pthread_t thread;
	int is = -1;

	CHECK(!fesetround(FE_UPWARD));
	CHECK(!pthread_create(&thread, NULL, round_of, &is) && !pthread_join(thread, NULL));
	CHECK(is == FE_UPWARD && fegetround() == FE_UPWARD);
}

static void write_later(int fd, unsigned int seconds)
{
	if (fork())
		return;
	sleep(seconds);
	_exit(write(fd, "x", 1) != 1);
}

/* select() says how much time is left, and so do the calls of the kernel beneath its kin. */
static void time_left(void)
{
	struct timespec exact = { 10, 0 };
	struct timeval time = { 10, 0 };
	struct pollfd ready = { .events = POLLIN };
	int pipes[2];
	char byte;
	fd_set set;

	CHECK(!pipe(pipes));
	ready.fd = pipes[0];
	for (int i = 0; i < 3; i++) {
		write_later(pipes[1], 3);
		FD_ZERO(&set);
		FD_SET(pipes[0], &set);
		switch (i) {
		case 0:
			CHECK(select(pipes[0] + 1, &set, NULL, NULL, &time) == 1);
			CHECK((time.tv_sec == 7 && !time.tv_usec) || time.tv_sec == 6);
			break;
		case 1:
			CHECK(syscall(SYS_pselect6, pipes[0] + 1, &set, NULL, NULL, &exact, NULL) == 1);
			break;
		case 2:
			CHECK(syscall(SYS_ppoll, &ready, 1, &exact, NULL, 0) == 1);
			break;
		}
		CHECK(!i || (exact.tv_sec == 7 && !exact.tv_nsec) || exact.tv_sec == 6);
		exact = (struct timespec){ 10, 0 };
		CHECK(read(pipes[0], &byte, 1) == 1);
	}
	time = (struct timeval){ 1, 0 };
	CHECK(!select(0, NULL, NULL, NULL, &time) && !time.tv_sec && !time.tv_usec);
}

static int wait_on_condition(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	struct timespec until;
	int err;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 1000000;
	if (until.tv_nsec >= 1000000000)
		until = (struct timespec){ until.tv_sec + 1, until.tv_nsec - 1000000000 };
	pthread_mutex_lock(&lock);
	err = pthread_cond_timedwait(&never, &lock, &until);
	pthread_mutex_unlock(&lock);
	return err == ETIMEDOUT ? 0 : -1;
}

/* One that waits again and again for as long as it wants does not wait longer the longer it does. */
static void ticks(void)
{
	const struct timespec tick = { .tv_nsec = 1000000 };
	struct timeval time;
	struct epoll_event event;
	int epoll = epoll_create1(0);
	double begin, took;

	for (int way = 0; way < 6; way++) {
		begin = seconds();
		for (int i = 0; i < 4000; i++) {
			switch (way) {
			case 0:
				CHECK(!poll(NULL, 0, 1));
				break;
			case 1:
				time = (struct timeval){ .tv_usec = 1000 };
				CHECK(!select(0, NULL, NULL, NULL, &time));
				break;
			case 2:
				CHECK(!epoll_wait(epoll, &event, 1, 1));
				break;
			case 3:
				CHECK(!nanosleep(&tick, NULL));
				break;
			case 4:
				CHECK(!wait_on_condition());
				break;
			case 5:
				CHECK(!ppoll(NULL, 0, &tick, NULL));
				break;
			}
		}
		took = seconds() - begin;
		CHECK(took >= 4 && took < 4.05);
	}
	close(epoll);
}

/* What catches its calls is not the program's: it is told, and goes on. */
static void caught(void)
{
	struct sigaction action = { .sa_handler = on_signal }, was;

	CHECK(!sigaction(SIGSYS, NULL, &was) && was.sa_handler == SIG_DFL);
	CHECK(!sigaction(SIGSYS, &action, NULL) && !sigaction(SIGSYS, NULL, &was));
	CHECK(was.sa_handler == on_signal);
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
	CHECK(!syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL));
	CHECK(sleep(1) == 0 && getppid() > 0);
}

/* As programs do that tell of whatever signal ends them. */
static void handles_all(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	for (int number = 1; number <= SIGSYS; number++)
		CHECK(!sigaction(number, &action, NULL) || number == SIGKILL || number == SIGSTOP);
}

static void *change_files(void *arg)
{
	const char *folder = arg;
	int at = open(folder, O_RDONLY | O_DIRECTORY), fd = openat(at, "file", O_RDWR);

	sleep(1);
	CHECK(fd >= 0 && pwrite(fd, "x", 1, 0) == 1);
	sleep(1);
	CHECK(!linkat(at, "file", at, "other", 0));
	sleep(1);
	CHECK(!fchmod(fd, 0600));
	return arg;
}

/* A program that watches files gets an event for each change. */
static void watch(void)
{
	char folder[] = "/tmp/system-XXXXXX", events[4096], *file;
	const double begin = seconds();
	int fd = inotify_init1(0);
	pthread_t thread;

	CHECK(fd >= 0 && mkdtemp(folder) && asprintf(&file, "%s/file", folder) > 0);
	close(open(file, O_RDWR | O_CREAT, 0644));
	CHECK(inotify_add_watch(fd, folder, IN_MODIFY | IN_CREATE | IN_ATTRIB) > 0);
	CHECK(!pthread_create(&thread, NULL, change_files, folder));
	for (int i = 0; i < 3; i++)
		CHECK(read(fd, events, sizeof(events)) > 0 && seconds() - begin > i + 1);
	CHECK(!pthread_join(thread, NULL) && !unlink(file));
	free(file);
	CHECK(asprintf(&file, "%s/other", folder) > 0 && !unlink(file) && !rmdir(folder));
	free(file);
}

static mqd_t queue;

static void *take_message(void *arg)
{
	char text[8];

	sleep(3);
	CHECK(mq_receive(queue, text, sizeof(text), NULL) == 1);
	return arg;
}

static void queues(void)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 8 };
	const double begin = seconds();
	struct timespec limit;
	pthread_t thread;
	char text[8];

	queue = mq_open("/system-test", O_RDWR | O_CREAT, 0600, &attr);
	CHECK(queue != (mqd_t)-1 && !mq_unlink("/system-test"));
	CHECK(!clock_gettime(CLOCK_REALTIME, &limit));
	limit.tv_sec += 2;
	CHECK(mq_timedreceive(queue, text, sizeof(text), NULL, &limit) < 0 && errno == ETIMEDOUT);
	CHECK(!mq_send(queue, "1", 1, 0));
	CHECK(!pthread_create(&thread, NULL, take_message, NULL));
	CHECK(!mq_send(queue, "2", 1, 0) && seconds() - begin > 5);
	CHECK(mq_receive(queue, text, sizeof(text), NULL) == 1 && text[0] == '2');
	CHECK(!pthread_join(thread, NULL));
}

/* By a static program, which then goes on. */
static void signalled(void)
{
	char *arguments[] = { member_argument, "signal", NULL };
	pid_t pid;

	/* It sends the signal until it is killed: the first may come before the sleep. */
	handle(SIGTERM, SA_RESTART);
	CHECK(!posix_spawn(&pid, member_argument, NULL, NULL, arguments, environ));
	CHECK(sleep(1000) > 900 && handled > 0);
	CHECK(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
}

static const struct member_case cases[] = {
	{ "join", join }, { "first_ends", first_ends }, { "owner_dies", owner_dies },
	{ "suspend", suspend }, { "restart", restart }, { "stream", stream },
	{ "timers", timers }, { "busy", busy }, { "locks", locks }, { "logs", logs },
	{ "rounding", rounding },
	{ "time_left", time_left }, { "ticks", ticks }, { "caught", caught },
	{ "handles_all", handles_all }, { "watch", watch }, { "queues", queues },
	{ "signalled", signalled },
};

int main(int argc, char **argv)
{
	return member_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
