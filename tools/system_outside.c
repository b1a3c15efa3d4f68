/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_outside.c - programs into which nothing can be preloaded: as one of the command line, and as
 * what a member becomes by exec.  The latter runs outside the order of turns; while it does, virtual
 * time is not faster than real time, and whoever waits looks again and again.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "run.h"
#include "system.h"
#include "turn/image.h"
#include "turn/order.h"

#define MOST_SCRIPTS 6		/* each the interpreter of the one before */
#define LOOK_NS 1000000		/* of real time, between two looks */
#define PATIENCE 10		/* s, until somebody is told who is waited for */

/* ------------------------------------------------------------------------
 * Programs of the command line.
 */

static long read_at(const struct turn_image_file *file, void *to, size_t len, uint64_t at)
{
	return pread((int)file->fd, to, len, (off_t)at);
}

static bool gains_rights(int fd)
{
	struct statvfs system;
	struct stat st;

	return !fstat(fd, &st) &&
	       turn_image_gains_rights(&st, fgetxattr(fd, "security.capability", NULL, 0) > 0,
				       getuid(), getgid()) &&
	       prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) <= 0 &&
	       (fstatvfs(fd, &system) || !(system.f_flag & ST_NOSUID));
}

static const char is_static[] = "is linked statically";

/* Why its time cannot be virtual; NULL: it can, or the kernel refuses it. */
static const char *why_not(char *path)
{
	struct turn_image_file file = { .read = read_at };
	enum turn_image image = TURN_IMAGE_SCRIPT;
	char next[256];
	bool gains = false;

	for (int i = 0; i < MOST_SCRIPTS && image == TURN_IMAGE_SCRIPT; i++) {
		file.fd = open(i ? next : path, O_RDONLY | O_CLOEXEC);
		if (file.fd < 0)
			return errno == EACCES && !access(i ? next : path, X_OK) ?
				"cannot be read" : NULL;
		image = turn_image_of(&file, next, sizeof(next));
		gains = image != TURN_IMAGE_SCRIPT && gains_rights((int)file.fd);
		close((int)file.fd);
	}
	return image == TURN_IMAGE_STATIC ? is_static :
	       image == TURN_IMAGE_FOREIGN ? "is for another processor" :
	       gains ? "is setuid or setgid, or has capabilities" : NULL;
}

int system_check_program(const struct system_program *program)
{
	int status = run_find(program->command[0]);
	char *path = status ? NULL : run_path_of(program->command[0]);
	const char *why = path ? why_not(path) : NULL;

	if (why) {
		tool_error("%s %s: its time cannot be virtual%s", program->command[0], why,
			   why == is_static ? "; link it with the shared C library (in Go: "
					      "-ldflags=-linkmode=external)" : "");
		status = STATUS_CANNOT_EXECUTE;
	}
	free(path);
	return status;
}

/* ------------------------------------------------------------------------
 * What members become.
 */

bool system_let_out(struct system *system)
{
	struct turn_segment *segment = system->segment;
	const uint32_t number = segment->becoming - 1;
	struct turn_member *member = &segment->members[number];
	const struct timespec look = { .tv_nsec = LOOK_NS };
	uint32_t is;

	segment->becoming = 0;
	while ((is = atomic_load(&segment->becomes)) && !(is & FUTEX_OWNER_DIED) &&
	       !system_has_ended(member->pid, false))
		syscall(SYS_futex, &segment->becomes, FUTEX_WAIT, is, &look, NULL, 0);
	if (!is) {
		segment->owner = segment->becoming_thread;
		return false;
	}
	/* One that was killed meanwhile is found like all others. */
	turn_order_remove_member(segment, number);
	member->life = TURN_OUTSIDE;
	segment->outside++;
	segment->leaves_traces = true;
	segment->pace = segment->now;
	if (segment->becoming_told != TURN_NOBODY)
		system_tell(system, segment->becoming_told);
	return true;
}

/* Since when somebody is outside, and whether that was reported. */
static struct {
	bool is_running, is_told;
	struct timespec begin;
	uint64_t now;
} pace;

void system_end_outside(struct turn_segment *segment)
{
	segment->outside--;
	if (segment->outside)
		return;
	segment->pace = TURN_NEVER;
	pace.is_running = false;
}

static void tell_who(const struct system *system)
{
	pace.is_told = true;
	for (uint32_t i = 0; i < system->segment->num_members; i++) {
		const struct system_program *program = system_program_of(system, i);

		if (system->segment->members[i].life == TURN_OUTSIDE && program)
			tool_error("%s: process %d, which runs outside of virtual time, is waited "
				   "for; Ctrl-C ends the run", system_name(program),
				   system->segment->members[i].pid);
	}
}

bool system_await_outside(const struct system *system)
{
	struct turn_segment *segment = system->segment;
	const struct timespec look = { .tv_nsec = LOOK_NS };
	struct timespec now;
	uint64_t passed;

	if (!pace.is_running) {
		clock_gettime(CLOCK_MONOTONIC, &pace.begin);
		pace.now = segment->now;
		pace.is_running = true;
		pace.is_told = false;
	}
	/* Ended by the end of a child, too. */
	nanosleep(&look, NULL);
	clock_gettime(CLOCK_MONOTONIC, &now);
	passed = (uint64_t)(now.tv_sec - pace.begin.tv_sec) * TURN_SECOND + (uint64_t)now.tv_nsec -
		 (uint64_t)pace.begin.tv_nsec;
	segment->pace = pace.now + passed;
	segment->changes++;
	/* It may also have sent a signal. */
	for (uint32_t i = 0; i < segment->num_members; i++)
		turn_order_interrupt(segment, i);
	if (passed >= PATIENCE * TURN_SECOND && !pace.is_told)
		tell_who(system);
	return segment->pace <= segment->until;
}
