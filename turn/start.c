/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/start.c - libpolycm-turn in a program: before all that is the program's it becomes a member
 * of the system that the environment names, and waits for its first turn.  In other programs it
 * does nothing.
 */
#include "config.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "again.h"
#include "exec.h"
#include "hand.h"
#include "order.h"
#include "raw.h"
#include "threads.h"
#include "timers.h"
#include "trap.h"
#include "vdso.h"

static const char *variable(char **environment, const char *name)
{
	size_t len = strlen(name);

	for (; *environment; environment++)
		if (!strncmp(*environment, name, len) && (*environment)[len] == '=')
			return *environment + len + 1;
	return NULL;
}

static uint32_t number(const char *text)
{
	uint32_t value = 0;

	for (; *text >= '0' && *text <= '9' && value < TURN_MAX_THREADS; text++)
		value = value * 10 + (uint32_t)(*text - '0');
	return value;
}

/* NULL: it cannot be. */
static struct turn_segment *map_segment(const char *path)
{
	struct turn_segment *segment;
	long at, fd = TURN_RAW(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	at = TURN_RAW(SYS_mmap, NULL, sizeof(*segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	TURN_RAW(SYS_close, fd);
	if ((unsigned long)at > -4096ul)
		return NULL;
	segment = (struct turn_segment *)at;
	if (segment->magic == TURN_MAGIC && segment->version == TURN_VERSION &&
	    segment->size == sizeof(*segment))
		return segment;
	TURN_RAW(SYS_munmap, at, sizeof(*segment));
	return NULL;
}

/* Who cannot take part must not run beside those that do. */
static void fail(const char *why)
{
	static const char begin[] = "polycm: this program cannot be run in virtual time: ";

	TURN_RAW(SYS_write, 2, begin, sizeof(begin) - 1);
	TURN_RAW(SYS_write, 2, why, strlen(why));
	TURN_RAW(SYS_write, 2, "\n", 1);
	TURN_RAW(SYS_exit_group, EXIT_FAILURE);
}

__attribute__((constructor)) static void begin(int argc, char **argv, char **environment)
{
	const char *file = variable(environment, TURN_FILE_VARIABLE);
	const char *thread = variable(environment, TURN_THREAD_VARIABLE);
	uint32_t slot;

	(void)argc;
	(void)argv;
	if (!file || !thread)
		return;
	slot = number(thread);
	turn_segment = map_segment(file);
	if (!turn_segment || slot >= turn_segment->num_threads) {
		fail("its launcher has ended, or is of another version of polycm");
		return;
	}
	turn_exec_begin(file, variable(environment, "LD_PRELOAD"));
	if (turn_vdso_replace())
		fail("the kernel does not let it replace the vDSO");
	/* All that depends on the run comes behind this. */
	if (turn_again(slot, environment))
		fail("the kernel does not let it fork, or open its output again");
	turn_member = turn_segment->threads[slot].member;
	turn_vdso_set_random();
	/* After exec the process has the turn already. */
	if (turn_segment->threads[slot].state == TURN_RUNS)
		turn_set_slot(slot);
	else
		turn_thread_begin(slot);
	turn_segment->members[turn_member].life = TURN_LIVES;
	turn_timers_resume();
	if (turn_trap_start(turn_segment->members[turn_member].is_filtered))
		fail("the kernel, or the sandbox of a container, allows neither syscall user dispatch "
		     "(Linux 5.11) nor seccomp filters");
	turn_segment->members[turn_member].is_filtered = turn_trap_is_filter();
}
