/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_stops.c - members that a signal stops, and that go on.  The kernel does it, in real time: the
 * turn goes on when all their threads have stopped, or wait for their turns again, so their parents
 * have been told by then.
 */
#include "config.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include "system.h"
#include "turn/order.h"

#define LOOK_NS 50000		/* of real time, between two looks */
#define PATIENCE_NS (2 * (int64_t)TURN_SECOND)	/* it may not be so: somebody else is in between */

/* 0: it is not there any more. */
static char state_of(pid_t pid, const char *thread)
{
	char path[64], line[512] = "", *rest;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", pid, thread);
	file = fopen(path, "re");
	if (!file)
		return 0;
	rest = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	fclose(file);
	return rest && strlen(rest) > 2 ? rest[2] : 0;
}

/* Are all threads in one of these states, or about to end? */
static bool are_all(pid_t pid, const char *states)
{
	const struct dirent *entry;
	bool are = true;
	char path[32];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	folder = opendir(path);
	if (!folder)
		return true;
	while (are && (entry = readdir(folder)))
		if (entry->d_name[0] != '.') {
			const char state = state_of(pid, entry->d_name);

			are = !state || strchr(states, state) || strchr("ZX", state);
		}
	closedir(folder);
	return are;
}

static void await(pid_t pid, const char *states, _Atomic uint32_t *enough)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };

	for (int64_t waited = 0; waited < PATIENCE_NS && !are_all(pid, states) &&
	     !(enough && atomic_load(enough)) && !system_is_stopped(); waited += LOOK_NS)
		nanosleep(&look, NULL);
}

static void tell_parent(struct turn_segment *segment, uint32_t member)
{
	const uint32_t parent = segment->members[member].parent;

	turn_order_change(segment);
	if (parent != TURN_NOBODY)
		turn_order_interrupt(segment, parent);
}

void system_await_stops(struct system *system)
{
	struct turn_segment *segment = system->segment;
	const uint64_t stopping = segment->stopping, continuing = segment->continuing;

	for (uint32_t i = 0; i < segment->num_members; i++) {
		struct turn_member *member = &segment->members[i];

		if (stopping >> i & 1) {
			await(member->pid, "T", &segment->goes_on);
			member->stopped = !atomic_load(&segment->goes_on);
		} else if (continuing >> i & 1) {
			await(member->pid, "S", NULL);
			member->stopped = false;
		}
		if ((stopping | continuing) >> i & 1)
			tell_parent(segment, i);
	}
	segment->stopping = segment->continuing = 0;
}

bool system_find_continued(struct system *system)
{
	struct turn_segment *segment = system->segment;
	bool found = false;

	for (uint32_t i = 0; i < segment->num_members; i++) {
		struct turn_member *member = &segment->members[i];

		if (!member->stopped || !turn_is_alive(member) || segment->stopping >> i & 1 ||
		    are_all(member->pid, "T"))
			continue;
		await(member->pid, "S", NULL);
		member->stopped = false;
		tell_parent(segment, i);
		found = true;
	}
	return found;
}
