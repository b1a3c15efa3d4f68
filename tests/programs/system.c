/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system.c - a member of a system, for system.sh: one case of waiting, by its name.  Each ends with
 * status 0 and "ok" if all went as on Linux.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
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

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
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

static void kills(void)
{
	int status;
	pid_t pid;

	for (int i = 0; i < 20; i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			for (;;)
				pause();
		if (i % 2)
			usleep(1);
		CHECK(!kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
}

static void kill_group(const pid_t *pids, int num, int how)
{
	if (how == 0)
		CHECK(!kill(-pids[0], SIGKILL));
	for (int i = 0; i < num; i++) {
		if (how == 1)
			CHECK(!syscall(SYS_tgkill, pids[i], pids[i], SIGKILL));
		if (how == 2)
			CHECK(!syscall(SYS_pidfd_send_signal, syscall(SYS_pidfd_open, pids[i], 0),
				       SIGKILL, NULL, 0));
	}
}

/* Several at once, in each way; a stopped group does nothing until then. */
static void groups(void)
{
	pid_t pids[4], pid;

	for (int round = 0; round < 12; round++) {
		for (int i = 0; i < 4; i++) {
			pids[i] = fork();
			CHECK(pids[i] >= 0);
			while (!pids[i])
				usleep(100);
			CHECK(!setpgid(pids[i], pids[0]));
		}
		usleep(1000);
		if (round % 2)
			CHECK(!kill(-pids[0], SIGSTOP) && !usleep(1000));
		kill_group(pids, 4, round % 3);
		for (int i = 0; i < 4; i++) {
			pid = waitpid(-1, NULL, i ? 0 : WNOHANG);
			CHECK(pid > 0);
			printf("%d %.6f\n", pid, seconds());
		}
	}
	pid = fork();
	if (!pid) {
		CHECK(!setpgid(0, 0) && fork() >= 0);
		sleep(1);
		kill(0, SIGKILL);
		exit(1);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	printf("%.6f\n", seconds());
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

/* The kernel's own answer, which no function of the C library comes before. */
static int error_of(long number, long a, long b, long c, long d, long e)
{
	errno = 0;
	return syscall(number, a, b, c, d, e, 0) < 0 ? errno : 0;
}

/* What a program gives that is not there is an error, and not the end of it. */
static void pointers(void)
{
	const struct timespec second = { 1, 0 }, none = { 0, -1 };
	static char zeros[256];
	const long time = (long)&second, good = (long)zeros;
	char *page = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const long any = mq_open("/system-any", O_RDWR | O_CREAT, 0600, NULL);
	long bad;
	int pipes[2], ends[2];

	CHECK(any >= 0 && !mq_unlink("/system-any"));
	CHECK(page != MAP_FAILED && !pipe(pipes) && !socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	for (int i = 0; i < 3; i++) {
		bad = i == 0 ? 8 : (long)page;
		CHECK(i < 2 || !munmap(page, 8192));
		if (i == 1) {	/* it can be read, not written */
			CHECK(error_of(SYS_futex, bad, FUTEX_WAIT_PRIVATE, 1, time, 0) == EAGAIN);
			CHECK(error_of(SYS_futex, bad, FUTEX_LOCK_PI, 0, 0, 0) == EFAULT);
		} else {
			for (int own = 0; own <= FUTEX_PRIVATE_FLAG; own += FUTEX_PRIVATE_FLAG) {
				CHECK(error_of(SYS_futex, bad, own, 0, time, 0) == EFAULT);
				CHECK(error_of(SYS_futex, good, own, 0, bad, 0) == EFAULT);
				CHECK(error_of(SYS_futex, bad, FUTEX_CMP_REQUEUE | own, 0, 0,
					       good) == EFAULT);
			}
			CHECK(!error_of(SYS_futex, bad, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0, 0));
			CHECK(error_of(SYS_nanosleep, bad, 0, 0, 0, 0) == EFAULT);
			CHECK(error_of(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, bad, 0, 0) == EFAULT);
			CHECK(error_of(SYS_ppoll, 0, 0, bad, 0, 8) == EFAULT);
			CHECK(error_of(SYS_ppoll, 0, 0, time, bad, 8) == EFAULT);
			CHECK(error_of(SYS_select, 1, bad, 0, 0, time) == EFAULT);
			CHECK(error_of(SYS_select, 0, 0, 0, 0, bad) == EFAULT);
			CHECK(error_of(SYS_pselect6, 0, 0, 0, 0, bad) == EFAULT);
			CHECK(error_of(SYS_rt_sigprocmask, SIG_BLOCK, bad, 0, 8, 0) == EFAULT);
			CHECK(error_of(SYS_rt_sigaction, SIGUSR1, bad, 0, 8, 0) == EFAULT);
			CHECK(error_of(SYS_rt_sigsuspend, bad, 8, 0, 0, 0) == EFAULT);
			CHECK(error_of(SYS_setitimer, 0, bad, 0, 0, 0) == EFAULT);
			CHECK(error_of(SYS_timer_create, CLOCK_MONOTONIC, bad, good, 0, 0) == EFAULT);
			CHECK(error_of(SYS_sendmsg, ends[0], bad, 0, 0, 0) == EFAULT);
			CHECK(error_of(SYS_recvmsg, ends[0], bad, MSG_WAITALL, 0, 0) == EFAULT);
			CHECK(error_of(SYS_sendmmsg, ends[0], bad, 1, 0, 0) == EFAULT);
			CHECK(error_of(SYS_connect, ends[0], bad, 16, 0, 0) == EFAULT);
			CHECK(error_of(SYS_bind, ends[0], bad, 16, 0, 0) == EFAULT);
			CHECK(error_of(SYS_mq_timedsend, any, good, 1, 0, bad) == EFAULT);
			CHECK(error_of(SYS_mq_timedreceive, any, good, 8, 0, bad) == EFAULT);
			CHECK(error_of(SYS_writev, pipes[1], bad, 3, 0, 0) == EFAULT);
			CHECK(error_of(SYS_execve, (long)"/bin/true", 0, bad, 0, 0) == EFAULT);
			CHECK(error_of(SYS_clone3, bad, 88, 0, 0, 0) == EFAULT);
			CHECK(error_of(SYS_openat, AT_FDCWD, bad, O_RDONLY, 0, 0) == EFAULT);
			CHECK(error_of(SYS_poll, bad, 1, 0, 0, 0) == EFAULT);
			CHECK(error_of(SYS_write, pipes[1], bad, 1, 0, 0) == EFAULT);
		}
		CHECK(error_of(SYS_clock_gettime, CLOCK_MONOTONIC, bad, 0, 0, 0) == EFAULT);
		CHECK(error_of(SYS_gettimeofday, bad, 0, 0, 0, 0) == EFAULT);
		CHECK(error_of(SYS_time, bad, 0, 0, 0, 0) == EFAULT);
		CHECK(error_of(SYS_getrandom, bad, 8, 0, 0, 0) == EFAULT);
		CHECK(error_of(SYS_rt_sigprocmask, SIG_BLOCK, 0, bad, 8, 0) == EFAULT);
		CHECK(error_of(SYS_getitimer, 0, bad, 0, 0, 0) == EFAULT);
		CHECK(error_of(SYS_timer_create, CLOCK_MONOTONIC, 0, bad, 0, 0) == EFAULT);
		CHECK(error_of(SYS_nanosleep, (long)&none, 0, 0, 0, 0) == EINVAL);
		if (!fork())
			_exit(0);
		CHECK(error_of(SYS_wait4, -1, bad, 0, 0, 0) == EFAULT);
		if (!fork())
			_exit(0);
		CHECK(error_of(SYS_waitid, P_ALL, 0, bad, WEXITED, 0) == EFAULT);
	}
}

/* What was there is no more when another process has cut the file. */
static void shrunk(void)
{
	const int fd = memfd_create("file", 0);
	char *page;

	CHECK(fd >= 0);
	for (int i = 0; i < 2; i++) {
		CHECK(!ftruncate(fd, 4096));
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		CHECK(page != MAP_FAILED);
		CHECK(!syscall(SYS_clock_gettime, CLOCK_MONOTONIC, page));
		if (i || !fork()) {
			CHECK(!ftruncate(fd, 0));
			if (!i)
				_exit(0);
		}
		CHECK(i || wait(NULL) > 0);
		CHECK(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, page) < 0 && errno == EFAULT);
	}
}

/* As many as there may be are there: the next one fails, and a place that is free is used again. */
static void many(void)
{
	pid_t pids[100];
	int num = 0;

	while (num < 100 && (pids[num] = fork()) >= 0)
		if (!pids[num++])
			for (;;)
				pause();
	CHECK(errno == EAGAIN && num == 63);
	CHECK(fork() < 0);
	for (int i = 0; i < num; i++)
		CHECK(!kill(pids[i], SIGKILL) && waitpid(pids[i], NULL, 0) == pids[i]);
	pids[0] = fork();
	if (!pids[0])
		_exit(0);
	CHECK(pids[0] > 0 && waitpid(pids[0], NULL, 0) == pids[0]);
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

static int spawned(const char *path, const char *argument, bool closes)
{
	char *arguments[] = { (char *)(uintptr_t)path, (char *)(uintptr_t)argument, NULL };
	posix_spawn_file_actions_t actions;
	int err, status = 0;
	pid_t pid;

	CHECK(!posix_spawn_file_actions_init(&actions));
	if (closes)
		CHECK(!posix_spawn_file_actions_addclosefrom_np(&actions, 3));
	err = posix_spawn(&pid, path, &actions, NULL, arguments, environ);
	CHECK(!posix_spawn_file_actions_destroy(&actions));
	if (err)
		return -err;
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Why a program cannot be started comes back; one that can be has nothing of its parent's. */
static void spawn(void)
{
	const struct itimerspec once = { .it_value = { 2, 0 } };
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	uint64_t times;
	char line[16] = "";
	FILE *pipe;

	CHECK(fd >= 0 && !timerfd_settime(fd, 0, &once, NULL));
	for (int i = 0; i < 10; i++) {
		CHECK(spawned("/there/is/no/such", NULL, i % 2) == -ENOENT);
		CHECK(spawned("/dev/null", NULL, i % 2) == -EACCES);
		CHECK(waitpid(-1, NULL, 0) < 0 && errno == ECHILD);
		CHECK(spawned("/bin/true", NULL, i % 2) == 0);
		CHECK(spawned("/bin/false", NULL, i % 2) == 1);
	}
	CHECK(read(fd, &times, sizeof(times)) == sizeof(times) && times == 1);
	CHECK(WEXITSTATUS(system("sleep 1; exit 3")) == 3);
	pipe = popen("sleep 1; echo through it", "r");
	CHECK(pipe && fgets(line, sizeof(line), pipe) && !strcmp(line, "through it\n"));
	CHECK(!pclose(pipe) && seconds() >= 4);
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

static char *argument;	/* of some cases */

/* A file that looks like a static program, and is none. */
static void broken(void)
{
	char *arguments[] = { argument, NULL };

	for (int i = 0; i < 3; i++) {
		CHECK(execv(argument, arguments) < 0 && errno == ENOEXEC);
		CHECK(spawned(argument, NULL, false) == -ENOEXEC);
		CHECK(sleep(1) == 0);
	}
	CHECK(seconds() >= 3);
}

/* A static program, which ends with status 5. */
static void outside(void)
{
	CHECK(spawned(argument, NULL, false) == 5 && spawned(argument, NULL, true) == 5);
	CHECK(!spawned("/bin/true", NULL, false));
}

/* By a static program, which then goes on. */
static void signalled(void)
{
	char *arguments[] = { argument, "signal", NULL };
	pid_t pid;

	/* It sends the signal until it is killed: the first may come before the sleep. */
	handle(SIGTERM, SA_RESTART);
	CHECK(!posix_spawn(&pid, argument, NULL, NULL, arguments, environ));
	CHECK(sleep(1000) > 900 && handled > 0);
	CHECK(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
}

/* Nothing of another run of polycm explore is seen; then something is left for the next one. */
static void traces(void)
{
	const char *hosts = "/dev/shm/hosts";	/* where members have one of their own */
	struct stat st;
	int fd = open(hosts, O_WRONLY | O_APPEND);

	if (fd >= 0) {
		CHECK(!fstat(fd, &st) && st.st_size < 200 && !(st.st_mode & S_IXUSR));
		for (int i = 0; i < 50; i++)
			CHECK(write(fd, "::2 it\n", 7) == 7);
		CHECK(!fchmod(fd, 0755) && !close(fd));
	}
	for (fd = 1; fd < 3; fd++) {
		CHECK(!lseek(fd, 0, SEEK_CUR));
		CHECK((fcntl(fd, F_GETFL) & (O_APPEND | O_NONBLOCK)) == O_APPEND);
		CHECK(write(fd, "some\n", 5) == 5 && !fcntl(fd, F_SETFL, O_NONBLOCK));
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "join", join }, { "owner_dies", owner_dies }, { "suspend", suspend }, { "restart", restart },
	{ "stream", stream }, { "timers", timers }, { "busy", busy }, { "kills", kills },
	{ "groups", groups },
	{ "first_ends", first_ends },
	{ "rounding", rounding }, { "time_left", time_left },
	{ "pointers", pointers }, { "shrunk", shrunk },
	{ "many", many }, { "caught", caught }, { "spawn", spawn },
	{ "watch", watch }, { "queues", queues },
	{ "traces", traces },
	{ "broken", broken }, { "outside", outside }, { "signalled", signalled },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc < 2 || strcmp(argv[1], cases[i].name) != 0)
			continue;
		argument = argv[2];
		cases[i].run();
		puts("ok");
		return 0;
	}
	return 2;
}
