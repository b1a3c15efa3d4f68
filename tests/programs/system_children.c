/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_children.c - a member of a system, for system.sh: one case of children that it starts and
 * ends.  All goes as on Linux.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "member.h"

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
	int which;

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
			for (which = 0; which < 4 && pids[which] != pid;)
				which++;
			printf("%d %.6f\n", which, seconds());
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

/* A file that looks like a static program, and is none. */
static void broken(void)
{
	char *arguments[] = { member_argument, NULL };

	for (int i = 0; i < 3; i++) {
		CHECK(execv(member_argument, arguments) < 0 && errno == ENOEXEC);
		CHECK(spawned(member_argument, NULL, false) == -ENOEXEC);
		CHECK(sleep(1) == 0);
	}
	CHECK(seconds() >= 3);
}

/* A static program, which ends with status 5. */
static void outside(void)
{
	CHECK(spawned(member_argument, NULL, false) == 5 && spawned(member_argument, NULL, true) == 5);
	CHECK(!spawned("/bin/true", NULL, false));
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

static const struct member_case cases[] = {
	{ "kills", kills }, { "groups", groups }, { "many", many }, { "spawn", spawn },
	{ "broken", broken }, { "outside", outside }, { "traces", traces },
};

int main(int argc, char **argv)
{
	return member_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
