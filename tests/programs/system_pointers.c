/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_pointers.c - a member of a system, for system.sh: calls with memory that is not there fail
 * as on Linux.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "member.h"

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

static const struct member_case cases[] = {
	{ "pointers", pointers }, { "shrunk", shrunk },
};

int main(int argc, char **argv)
{
	return member_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
