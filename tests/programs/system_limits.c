/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_limits.c - a member of a system, for system_rare.sh: one case of calls at the limits of what
 * Linux does, or polycm.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

#include "member.h"

#define CLEARS_HANDLERS 0x100000000ull	/* CLONE_CLEAR_SIGHAND */

static void nothing(int signal)
{
	(void)signal;
}

static void ends_well(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
}

/* What would change the machine, or cannot be in a run. */
static void refused(void)
{
	struct timespec time = { .tv_sec = 1 };
	struct timex parameters = { .modes = 0 };
	struct sysinfo info;
	char room[128] = "";

	CHECK(clock_settime(CLOCK_REALTIME, &time) < 0 && errno == EPERM);
	CHECK(adjtimex(&parameters) >= 0);
	parameters.modes = ADJ_SETOFFSET;
	CHECK(adjtimex(&parameters) < 0 && errno == EPERM);
	CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 && errno == EPERM);
	CHECK(unshare(CLONE_NEWPID) < 0 && errno == EPERM);
	CHECK(syscall(SYS_io_uring_setup, 1, room) < 0 && errno == ENOSYS);
	CHECK(!sysinfo(&info) && info.uptime == (long)seconds());
}

/* Some calls are not made again, whatever the handler of the signal wants. */
static void restarts(void)
{
	const struct sigaction action = { .sa_handler = nothing, .sa_flags = SA_RESTART };
	const struct timeval limit = { .tv_sec = 3 };
	struct { long type; char text[8]; } message = { 1, "" };
	int sockets[2], queue = msgget(IPC_PRIVATE, 0600);
	pid_t pid;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) && queue >= 0);
	CHECK(!setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	CHECK(!setsockopt(sockets[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)));
	CHECK(!sigaction(SIGALRM, &action, NULL));
	alarm(1);
	CHECK(recv(sockets[0], &message, 1, 0) < 0 && errno == EINTR);
	while (send(sockets[0], &message, sizeof(message), MSG_DONTWAIT) > 0)
		;
	alarm(1);
	CHECK(send(sockets[0], &message, 1, 0) < 0 && errno == EINTR);
	alarm(1);
	CHECK(msgrcv(queue, &message, 8, 0, 0) < 0 && errno == EINTR);
	pid = fork();
	if (!pid) {
		usleep(500000);
		_exit(msgctl(queue, IPC_RMID, NULL) != 0);
	}
	CHECK(msgrcv(queue, &message, 8, 0, 0) < 0 && errno == EIDRM);
	ends_well(pid);
}

static void clones(void)
{
	const struct sigaction action = { .sa_handler = nothing };
	struct clone_args args = { .flags = CLEARS_HANDLERS, .exit_signal = SIGCHLD };
	struct sigaction is;
	long pid;

	CHECK(!sigaction(SIGUSR1, &action, NULL) && !sigaction(SIGSEGV, &action, NULL));
	CHECK(signal(SIGUSR2, SIG_IGN) != SIG_ERR);
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (!pid) {
		CHECK(!sigaction(SIGUSR1, NULL, &is) && is.sa_handler == SIG_DFL);
		CHECK(!sigaction(SIGSEGV, NULL, &is) && is.sa_handler == SIG_DFL);
		CHECK(!sigaction(SIGUSR2, NULL, &is) && is.sa_handler == SIG_IGN);
		_exit(0);
	}
	CHECK(pid > 0);
	ends_well((pid_t)pid);
	args.flags = 1ull << 62;
	CHECK(syscall(SYS_clone3, &args, sizeof(args)) < 0 && errno == EINVAL);
	args.flags = 0;
	CHECK(syscall(SYS_clone3, &args, 8) < 0 && errno == EINVAL);
	args.flags = CLONE_NEWPID;
	CHECK(syscall(SYS_clone3, &args, sizeof(args)) < 0 && errno == EPERM);
}

static pthread_mutex_t *shared;

static void *lock_and_end(void *arg)
{
	CHECK(!pthread_mutex_lock(shared));
	usleep(500000);
	return arg;
}

/* Who waits for a lock learns that its owner is gone, though the owner's process goes on. */
static void owners(void)
{
	pthread_mutexattr_t attributes;
	pthread_t thread;
	double began;
	pid_t pid;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED && !pthread_mutexattr_init(&attributes));
	CHECK(!pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
	CHECK(!pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST));
	CHECK(!pthread_mutex_init(shared, &attributes));
	for (int i = 0; i < 2; i++) {
		began = seconds();
		pid = fork();
		if (!pid && i) {
			lock_and_end(NULL);
			execlp("sleep", "sleep", "3", NULL);
		}
		if (!pid) {
			CHECK(!pthread_create(&thread, NULL, lock_and_end, NULL));
			sleep(3);
			_exit(0);
		}
		usleep(100000);
		CHECK(pthread_mutex_lock(shared) == EOWNERDEAD && seconds() < began + 1);
		CHECK(!pthread_mutex_consistent(shared) && !pthread_mutex_unlock(shared));
		ends_well(pid);
	}
}

/* Two that wait for each other's locks of a file: the second one is told. */
static void circle(void)
{
	struct flock lock = { .l_type = F_WRLCK, .l_len = 1 };
	const int fd = memfd_create("file", 0);
	pid_t pid = fork();

	CHECK(fd >= 0 && pid >= 0);
	lock.l_start = !pid;
	CHECK(!fcntl(fd, F_SETLKW, &lock));
	usleep(pid ? 100000 : 200000);
	lock.l_start = !!pid;
	if (!pid) {
		CHECK(fcntl(fd, F_SETLKW, &lock) < 0 && errno == EDEADLK);
		_exit(0);
	}
	CHECK(!fcntl(fd, F_SETLKW, &lock));
	ends_well(pid);
}

/* Which of several sockets of one port gets it is the same in each run, and not always the same one. */
static void shares(void)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	socklen_t len = sizeof(address);
	struct pollfd groups[4];
	const int one = 1;
	int fd, got[4] = { 0 };

	for (int udp = 0; udp < 2; udp++) {
		address.sin6_port = 0;
		for (int i = 0; i < 4; i++) {
			fd = socket(AF_INET6, udp ? SOCK_DGRAM : SOCK_STREAM, 0);
			CHECK(fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)));
			CHECK(!bind(fd, (struct sockaddr *)&address, sizeof(address)));
			CHECK(udp || !listen(fd, 100));
			CHECK(!getsockname(fd, (struct sockaddr *)&address, &len));
			groups[i] = (struct pollfd){ .fd = fd, .events = POLLIN };
		}
		for (int i = 0; i < 40; i++) {
			fd = socket(AF_INET6, udp ? SOCK_DGRAM : SOCK_STREAM, 0);
			CHECK(!connect(fd, (struct sockaddr *)&address, sizeof(address)));
			CHECK(!udp || send(fd, "x", 1, 0) == 1);
			CHECK(poll(groups, 4, 1000) == 1);
			for (int j = 0; j < 4; j++) {
				char byte;

				if (!groups[j].revents)
					continue;
				CHECK(udp ? read(groups[j].fd, &byte, 1) == 1 :
					    accept(groups[j].fd, NULL, NULL) >= 0);
				got[j]++;
				printf(" %d", j);
			}
		}
		puts("");
	}
	CHECK(got[0] && got[1] && got[2] && got[3]);
}

/* Root's rights are given up, and another program begins. */
static void drops(void)
{
	double began = seconds();
	pid_t pid = fork();

	if (!pid) {
		CHECK(!setgid(65534) && !setuid(65534));
		execlp("sleep", "sleep", "3", NULL);
	}
	ends_well(pid);
	CHECK(seconds() >= began + 3 && seconds() < began + 3.1);
}

static const struct member_case cases[] = {
	{ "refused", refused }, { "restarts", restarts }, { "clones", clones }, { "owners", owners },
	{ "shares", shares }, { "circle", circle },
	{ "drops", drops },
};

int main(int argc, char **argv)
{
	return member_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
