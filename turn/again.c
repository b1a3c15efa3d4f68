/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/again.c - see again.h.  A member is the launcher's child, as if the launcher had started it,
 * and no page and no descriptor of it tells that the program has been loaded for another run.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>

#include "again.h"
#include "hand.h"
#include "raw.h"
#include "trap.h"

/* What a child of fork() has to be told again. */
struct thread {
	void *tid;		/* the C library's word with the number of its thread */
	void *robust;
	size_t robust_size;
	uint64_t mask;		/* of signals */
	long input_at;		/* position in the file at standard input */
};

/* This member's copy: the launcher's is another one in the next run. */
static char changed[TURN_MAX_ENVIRONMENT];

static char **find(char **environment, const char *name, size_t len)
{
	for (; *environment; environment++)
		if (!strncmp(*environment, name, len) && (*environment)[len] == '=')
			return environment;
	return NULL;
}

/* The launcher has seen to it that there is a place for each. */
static void change_environment(char **environment)
{
	char **place;

	memcpy(changed, turn_segment->environment, sizeof(changed));
	changed[sizeof(changed) - 1] = '\0';
	for (char *line = changed; *line; line += strlen(line) + 1) {
		const size_t len = strcspn(line, "=");

		place = find(environment, line, len);
		if (!place)
			continue;
		if (line[len] == '=')
			*place = line;
		else
			for (; *place; place++)
				*place = place[1];
	}
}

static int prepare(struct thread *thread)
{
	const uint64_t all = UINT64_MAX;
	long err = TURN_RAW(SYS_prctl, PR_GET_TID_ADDRESS, &thread->tid);

	thread->input_at = TURN_RAW(SYS_lseek, 0, 0, SEEK_CUR);
	if (!err)
		err = TURN_RAW(SYS_get_robust_list, 0, &thread->robust, &thread->robust_size);
	/* A member that ends all processes does not end this one; it would, in another run. */
	if (!err)
		err = TURN_RAW(SYS_rt_sigprocmask, SIG_SETMASK, &all, &thread->mask, TURN_SIGSET_SIZE);
	return (int)err;
}

/*
 * Files of its own: what members do to flags and position of the launcher's would be there in the
 * next run.
 */
static int renew_files(const struct thread *thread)
{
	static const struct { const char *path; long flags; } files[] = {
		{ "/proc/self/fd/0", O_RDONLY },
		{ "/proc/self/fd/1", O_RDWR | O_APPEND },
		{ "/proc/self/fd/2", O_RDWR | O_APPEND },
	};

	for (int i = 0; i < 3; i++) {
		long fd = TURN_RAW(SYS_openat, AT_FDCWD, files[i].path, files[i].flags | O_CLOEXEC);
		long result = fd < 0 ? fd : TURN_RAW(SYS_dup3, fd, i, 0);

		if (fd >= 0)
			TURN_RAW(SYS_close, fd);
		/* Who started polycm could open the input, and the user cannot. */
		if (result < 0 && i)
			return (int)result;
	}
	TURN_RAW(SYS_lseek, 0, thread->input_at, SEEK_SET);
	return 0;
}

/* As after fork() of the C library, and as the launcher begins the process of a program. */
static void begin(const struct thread *thread, char **environment)
{
	TURN_RAW(SYS_set_robust_list, thread->robust, thread->robust_size);
	TURN_RAW(SYS_setpgid, 0, 0);
	TURN_RAW(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
	TURN_RAW(SYS_rt_sigprocmask, SIG_SETMASK, &thread->mask, NULL, TURN_SIGSET_SIZE);
	change_environment(environment);
}

static void answer(struct turn_program *program)
{
	atomic_store(&program->load, TURN_LOADED);
	TURN_RAW(SYS_futex, &program->load, FUTEX_WAKE, 1);
}

int turn_again(uint32_t slot, char **environment)
{
	const long flags = CLONE_PARENT | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
	struct turn_program *program;
	struct thread thread = { .tid = NULL };
	uint32_t load;
	long pid;
	int err;

	if (slot >= TURN_MAX_MEMBERS || turn_segment->programs[slot].load != TURN_LOADS)
		return 0;
	program = &turn_segment->programs[slot];
	err = prepare(&thread);
	if (err)
		return err;
	for (;;) {
		answer(program);
		while ((load = atomic_load(&program->load)) != TURN_FORKS)
			TURN_RAW(SYS_futex, &program->load, FUTEX_WAIT, load, NULL);
		pid = TURN_RAW(SYS_clone, flags, 0, 0, thread.tid, 0);
		if (!pid)
			break;
		program->pid = (int32_t)pid;
	}
	begin(&thread, environment);
	return renew_files(&thread);
}
