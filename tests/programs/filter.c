/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * filter.c - for system_filter.sh: "sandbox CALL,... COMMAND" runs a command on a kernel that seems
 * not to have these calls, or to forbid them, as sandboxes of containers do; "thread" and
 * "last_thread" become another program in a thread that is not the first.
 */
#define _GNU_SOURCE
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "member.h"

extern char **environ;

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define UNLESS(value, num) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, (num))
#define FAIL(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))

static const struct {
	const char *name;
	struct sock_filter filter[6];
	unsigned short len;
} calls[] = {
	{ "dispatch", { LOAD(nr), UNLESS(SYS_prctl, 3), LOAD(args[0]),
			UNLESS(PR_SET_SYSCALL_USER_DISPATCH, 1), FAIL(EINVAL) }, 5 },
	{ "prctl", { LOAD(nr), UNLESS(SYS_prctl, 1), FAIL(EPERM) }, 3 },
	{ "seccomp", { LOAD(nr), UNLESS(SYS_seccomp, 1), FAIL(EPERM) }, 3 },
	{ "pidfd", { LOAD(nr), UNLESS(SYS_pidfd_open, 1), FAIL(ENOSYS) }, 3 },
	{ "ptrace", { LOAD(nr), UNLESS(SYS_ptrace, 1), FAIL(EPERM) }, 3 },
};

/* The last one of them may forbid what installs it. */
static void sandbox(const char *list)
{
	struct sock_filter all[6 * sizeof(calls) / sizeof(calls[0]) + 1];
	struct sock_fprog program = { .filter = all };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (!strstr(list, calls[i].name))
			continue;
		memcpy(all + program.len, calls[i].filter, calls[i].len * sizeof(all[0]));
		program.len = (unsigned short)(program.len + calls[i].len);
	}
	all[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0));
}

static void *wait_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void *become(void *arg)
{
	char *none[] = { "none", NULL };
	char *shell[] = { "sh", "-c", "sleep 2; date +%s; echo ok", NULL };

	(void)arg;
	CHECK(execv("/there/is/no/such", none) && errno == ENOENT);
	execv("/bin/sh", shell);
	CHECK(!"it comes back");
	return NULL;
}

static void begin_threads(pthread_t *ret)
{
	char *none[] = { "none", NULL };
	pthread_t other;
	pid_t pid;

	CHECK(posix_spawn(&pid, "/there/is/no/such", NULL, NULL, none, environ) == ENOENT);
	CHECK(!pthread_create(&other, NULL, wait_for_ever, NULL));
	CHECK(!pthread_create(ret, NULL, become, NULL));
}

int main(int argc, char **argv)
{
	pthread_t thread;

	CHECK(argc > 1);
	if (!strcmp(argv[1], "sandbox")) {
		CHECK(argc > 3);
		sandbox(argv[2]);
		execvp(argv[3], argv + 3);
		CHECK(!"no such command");
	}
	begin_threads(&thread);
	if (!strcmp(argv[1], "last_thread"))
		pthread_exit(NULL);
	pthread_join(thread, NULL);
	return 1;
}
