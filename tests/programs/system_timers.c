/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_timers.c - a member of a system, for system_rare.sh: one case of timers.  All goes as on Linux,
 * but that what the process computes is all time that goes by.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "member.h"

static void set(int fd, double value, double interval)
{
	const struct itimerspec to = {
		.it_value = { (time_t)value, (long)((value - (double)(time_t)value) * 1e9) },
		.it_interval = { (time_t)interval, (long)((interval - (double)(time_t)interval) * 1e9) },
	};

	CHECK(!timerfd_settime(fd, 0, &to, NULL));
}

/* It expires so long after that. */
static bool expires(int fd, double began, double after)
{
	uint64_t times = 0;

	CHECK(read(fd, &times, sizeof(times)) == sizeof(times) && times == 1);
	return seconds() >= began + after && seconds() < began + after + 0.1;
}

static int new_timer(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);

	CHECK(fd >= 0);
	return fd;
}

static void ends_well(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
}

/* The timer is the file's, not the descriptor's. */
static void copies(void)
{
	double began = seconds();
	struct itimerspec left;
	int first = new_timer(), second;

	set(first, 0.5, 0);
	second = dup(first);
	CHECK(!close(first) && expires(second, began, 0.5));
	first = fcntl(second, F_DUPFD_CLOEXEC, 20);
	CHECK(first >= 20 && !close(second));
	set(first, 0.5, 0);
	CHECK(dup2(first, 30) == 30 && !timerfd_gettime(30, &left) && left.it_value.tv_nsec);
	CHECK(!close(first) && expires(30, began, 1));
	CHECK(timerfd_create(99, 0) < 0 && errno == EINVAL);
}

static void inherited(void)
{
	int fd = new_timer(), ends[2];
	double began = seconds();
	char byte;
	pid_t pid;

	set(fd, 0.5, 0.5);
	pid = fork();
	if (!pid) {
		CHECK(expires(fd, began, 0.5) && expires(fd, began, 1));
		set(fd, 0.2, 0);
		_exit(0);
	}
	ends_well(pid);
	CHECK(expires(fd, began, 1.2));
	/* Those who set it have ended. */
	CHECK(!pipe(ends));
	set(fd, 0.5, 0);
	pid = fork();
	if (!pid && !fork()) {
		CHECK(expires(fd, began, 1.7) && write(ends[1], "", 1) == 1);
		_exit(0);
	}
	if (!pid)
		_exit(0);
	CHECK(!close(fd) && !close(ends[1]));
	ends_well(pid);
	CHECK(read(ends[0], &byte, 1) == 1 && !read(ends[0], &byte, 1));
	/* Over exec. */
	fd = new_timer();
	set(fd, 0.5, 0);
	pid = fork();
	if (!pid) {
		dup2(fd, 0);
		execlp("sh", "sh", "-c", "exec head -c 8 >/dev/null", NULL);
	}
	CHECK(!close(fd));
	ends_well(pid);
	CHECK(seconds() >= began + 2);
}

/* To a process that had it not. */
static void sent(void)
{
	union { struct cmsghdr header; char room[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	char byte = 0;
	struct iovec part = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	double began = seconds();
	int sockets[2], fd;
	pid_t pid;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	pid = fork();
	if (!pid) {
		CHECK(recvmsg(sockets[1], &message, 0) == 1);
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
		_exit(!expires(fd, began, 0.5));
	}
	fd = new_timer();
	set(fd, 0.5, 0);
	control.header = (struct cmsghdr){
		.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(fd)),
	};
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	CHECK(sendmsg(sockets[0], &message, 0) == 1 && !close(fd));
	ends_well(pid);
}

/* A signal that is still to come is sent once, whichever it is. */
static void overruns(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL };
	const struct itimerspec often = { { 0, 100000000 }, { 0, 100000000 } }, never = { 0 };
	const int signals[] = { SIGUSR1, SIGRTMIN };
	const struct timespec now = { 0 };
	siginfo_t info;
	timer_t timer;
	sigset_t set;

	for (int i = 0; i < 2; i++) {
		sigemptyset(&set);
		sigaddset(&set, signals[i]);
		CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
		event.sigev_signo = signals[i];
		CHECK(!timer_create(CLOCK_MONOTONIC, &event, &timer));
		CHECK(!timer_settime(timer, 0, &often, NULL));
		for (int j = 0; j < 11; j++)
			usleep(96000);
		CHECK(sigwaitinfo(&set, &info) == signals[i] && info.si_overrun == 9);
		CHECK(timer_getoverrun(timer) == 9 && !timer_settime(timer, 0, &never, NULL));
		CHECK(sigtimedwait(&set, &info, &now) < 0 && errno == EAGAIN);
	}
	event.sigev_signo = 99;
	CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) < 0 && errno == EINVAL);
	event.sigev_signo = SIGUSR1;
	CHECK(timer_create(99, &event, &timer) < 0 && errno == EINVAL);
}

static volatile sig_atomic_t num_signals;

static void count(int signal)
{
	(void)signal;
	num_signals++;
}

/* Time does not move for them; who makes calls sees them. */
static void processor(void)
{
	const struct sigaction action = { .sa_handler = count, .sa_flags = SA_RESTART };
	const struct itimerval often = { { 0, 10000 }, { 0, 10000 } }, never = { 0 };
	const struct itimerspec soon = { .it_value = { 0, 10000000 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF };
	timer_t timer;

	CHECK(!sigaction(SIGPROF, &action, NULL) && !sigaction(SIGVTALRM, &action, NULL));
	for (int i = ITIMER_VIRTUAL; i <= ITIMER_PROF; i++) {
		num_signals = 0;
		CHECK(!setitimer(i, &often, NULL));
		while (num_signals < 3)
			seconds();
		CHECK(!setitimer(i, &never, NULL));
	}
	num_signals = 0;
	CHECK(!timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer));
	CHECK(!timer_settime(timer, 0, &soon, NULL));
	while (!num_signals)
		seconds();
	printf("%.6f\n", seconds());
}

/* The clock of a process or a thread (clock_getcpuclockid(3)), or of a device: kind 3. */
#define CLOCK_OF(id, kind) ((clockid_t)(~(unsigned int)(id) << 3 | (kind)))

/* It fails with that error; or 0. */
#define IS(call, error)                                                                            \
	do {                                                                                       \
		errno = 0;                                                                         \
		CHECK(((call) < 0 ? errno : 0) == (error));                                        \
	} while (0)

struct clock {
	clockid_t clock;
	int look, sleep, timer, timer_fd;	/* errors */
};

static void one_clock(const struct clock *one)
{
	struct timespec now = { 0 };
	const struct timespec moment = { 0 };
	struct sigevent none = { .sigev_notify = SIGEV_NONE };
	timer_t timer;
	int fd;

	printf("%d\n", (int)one->clock);
	IS(clock_gettime(one->clock, &now), one->look);
	IS(syscall(SYS_clock_gettime, one->clock, &now), one->look);
	IS(clock_getres(one->clock, NULL), one->look);
	IS(syscall(SYS_clock_nanosleep, one->clock, 0, &moment, NULL), one->sleep);
	IS(syscall(SYS_clock_nanosleep, one->clock, TIMER_ABSTIME, &moment, NULL), one->sleep);
	IS(timer_create(one->clock, &none, &timer), one->timer);
	if (!one->timer)
		CHECK(!timer_delete(timer));
	IS(fd = timerfd_create(one->clock, 0), one->timer_fd);
	if (fd >= 0)
		CHECK(!close(fd));
}

static void *of_thread(void *given)
{
	pause();
	return given;
}

/* Those of alarms are left out: they need a clock in hardware, and rights. */
static void clocks(void)
{
	int ends[2], piped = pipe(ends);
	const pid_t own = getpid(), child = fork();
	const struct clock all[] = {
		{ CLOCK_REALTIME, 0, 0, 0, 0 },
		{ CLOCK_MONOTONIC, 0, 0, 0, 0 },
		{ CLOCK_PROCESS_CPUTIME_ID, 0, 0, 0, EINVAL },
		{ CLOCK_THREAD_CPUTIME_ID, 0, EOPNOTSUPP, 0, EINVAL },
		{ CLOCK_MONOTONIC_RAW, 0, EOPNOTSUPP, EOPNOTSUPP, EINVAL },
		{ CLOCK_REALTIME_COARSE, 0, EOPNOTSUPP, EOPNOTSUPP, EINVAL },
		{ CLOCK_MONOTONIC_COARSE, 0, EOPNOTSUPP, EOPNOTSUPP, EINVAL },
		{ CLOCK_BOOTTIME, 0, 0, 0, 0 },
		{ 10, EINVAL, EINVAL, EINVAL, EINVAL },
		{ CLOCK_TAI, 0, 0, 0, EINVAL },
		{ 12, EINVAL, EINVAL, EINVAL, EINVAL },
		{ 77, EINVAL, EINVAL, EINVAL, EINVAL },
		{ INT32_MAX, EINVAL, EINVAL, EINVAL, EINVAL },
		{ INT32_MIN, EINVAL, EINVAL, EINVAL, EINVAL },
		{ -1, EINVAL, EINVAL, EINVAL, EINVAL },
		/* Of processes: what they compute in all, for themselves, and in a finer grain. */
		{ CLOCK_OF(0, 0), 0, 0, 0, EINVAL }, { CLOCK_OF(0, 1), 0, 0, 0, EINVAL },
		{ CLOCK_OF(0, 2), 0, 0, 0, EINVAL }, { CLOCK_OF(own, 2), 0, 0, 0, EINVAL },
		{ CLOCK_OF(child, 2), 0, 0, 0, EINVAL },
		{ CLOCK_OF(99999999, 2), EINVAL, EINVAL, EINVAL, EINVAL },
		/* Of threads: one cannot sleep by its own. */
		{ CLOCK_OF(0, 6), 0, EINVAL, 0, EINVAL }, { CLOCK_OF(own, 6), 0, EINVAL, 0, EINVAL },
		{ CLOCK_OF(child, 6), EINVAL, EINVAL, EINVAL, EINVAL },
		{ CLOCK_OF(0, 7), EINVAL, EINVAL, EINVAL, EINVAL },
		/* Of devices: standard input is none, and nothing is open there. */
		{ CLOCK_OF(0, 3), EINVAL, EOPNOTSUPP, EOPNOTSUPP, EINVAL },
		{ CLOCK_OF(99, 3), EINVAL, EOPNOTSUPP, EOPNOTSUPP, EINVAL },
	};
	struct clock other = { 0, 0, 0, 0, EINVAL };
	pthread_t thread;

	CHECK(!piped);
	if (!child) {
		close(ends[1]);
		_exit((int)read(ends[0], &other, sizeof(other)));
	}
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		one_clock(&all[i]);
	CHECK(!pthread_create(&thread, NULL, of_thread, NULL) &&
	      !pthread_getcpuclockid(thread, &other.clock));
	one_clock(&other);
	CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
	one_clock(&(const struct clock){ CLOCK_OF(child, 2), EINVAL, EINVAL, EINVAL, EINVAL });
	IS(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, NULL), EFAULT);
	IS(timerfd_create(CLOCK_MONOTONIC, 1), EINVAL);
}

static const struct member_case cases[] = {
	{ "copies", copies }, { "inherited", inherited }, { "sent", sent }, { "overruns", overruns },
	{ "processor", processor }, { "clocks", clocks },
};

int main(int argc, char **argv)
{
	return member_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
