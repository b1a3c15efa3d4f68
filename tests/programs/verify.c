/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verify.c - a member of a system, for verify.sh: what it does differs from run to run, since each run
 * makes a file longer.  Named is where: a call, after many calls, the exit status,
 * and memory, of which nothing is seen.  And what it sees of the record, or does to it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "member.h"
#include "turn/segment.h"

#define MANY 70000		/* more than a record keeps */

static const char *path;
static bool is_odd;

static void look_at_file(void)
{
	char bytes[64];
	int fd = open(path, O_RDWR | O_CREAT, 0666);
	ssize_t len;

	CHECK(fd >= 0);
	len = read(fd, bytes, sizeof(bytes));
	is_odd = len % 2;
	CHECK(write(fd, "x", 1) == 1);
	CHECK(!close(fd));
}

static void *call_once_more(void *arg)
{
	usleep(1000);
	look_at_file();
	if (is_odd)
		CHECK(!close(socket(AF_UNIX, SOCK_STREAM, 0)));
	usleep(1000);
	return arg;
}

/* Of a file, which is another in each run. */
static void print_memory(void)
{
	int fd = open(path, O_RDWR | O_CREAT, 0666);
	int *memory;

	CHECK(fd >= 0 && !ftruncate(fd, sizeof(*memory)));
	memory = mmap(NULL, sizeof(*memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(memory != MAP_FAILED);
	printf("%d\n", ++*memory);
}

/* As in some sandboxes: personality() is refused in the program that follows. */
static void become_random(char **command)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_personality, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
	execvp(command[0], command);
	CHECK(!*command);
}

static struct turn_segment *map_segment(void)
{
	int fd = open(getenv("LIBPOLYCM_TURN"), O_RDWR | O_CLOEXEC);
	void *at = mmap(NULL, sizeof(struct turn_segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(at != MAP_FAILED);
	CHECK(!close(fd));
	return at;
}

/* What the record has of it. */
static void spawn(void)
{
	const struct turn_segment *segment = map_segment();
	char *const command[] = { "true", NULL }, *const none[] = { NULL };
	const struct turn_event *event = segment->record.events;
	pid_t pid;

	CHECK(!posix_spawnp(&pid, "true", NULL, NULL, command, none));
	CHECK(waitpid(pid, NULL, 0) == pid);
	for (uint32_t i = 0; i < segment->record.num_events; i++, event++)
		if (event->process == 1 && event->kind != TURN_GIVEN &&
		    (event->call == SYS_clone || event->call == SYS_clone3))
			break;
	CHECK(event < segment->record.events + segment->record.num_events);
	CHECK(event->returned && event->result == pid);
	puts("ok");
}

int main(int argc, char **argv)
{
	struct timespec now;
	pthread_t thread;

	if (argc > 2 && !strcmp(argv[1], "random"))
		become_random(argv + 2);
	CHECK(argc == 3);
	path = argv[2];
	if (!strcmp(argv[1], "memory")) {
		print_memory();
		return 0;
	}
	if (!strcmp(argv[1], "forget")) {
		map_segment()->turns = 0;
		_exit(0);
	}
	if (!strcmp(argv[1], "spawn")) {
		spawn();
		return 0;
	}
	if (!strcmp(argv[1], "status")) {
		look_at_file();
		return is_odd;
	}
	for (int i = 0; !strcmp(argv[1], "late") && i < MANY; i++)
		CHECK(!syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now));
	CHECK(!pthread_create(&thread, NULL, call_once_more, NULL));
	CHECK(!pthread_join(thread, NULL));
	puts("ok");
	return 0;
}
