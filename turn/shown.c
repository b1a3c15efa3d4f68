/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/shown.c - see shown.h. */
#include "config.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/stat.h>

#include "hand.h"
#include "raw.h"
#include "shown.h"

/* The launcher is behind: it goes on without the turn. */
static void await_room(uint64_t num)
{
	while (num - atomic_load(&turn_segment->num_shown) >= TURN_MAX_WRITTEN) {
		TURN_RAW(SYS_futex, &turn_segment->launcher_go, FUTEX_WAKE, 1);
		TURN_RAW(SYS_sched_yield);
		turn_end_with_launcher();
	}
}

static void add(struct turn_written written)
{
	const uint64_t num = atomic_load(&turn_segment->num_written);

	await_room(num);
	turn_segment->written[num % TURN_MAX_WRITTEN] = written;
	atomic_store(&turn_segment->num_written, num + 1);
}

void turn_shown(int fd, uint64_t len)
{
	const struct turn_files *files = &turn_segment->members[turn_member].files;
	struct stat st;

	if (TURN_RAW(SYS_fstat, fd, &st))
		return;
	for (uint32_t i = 0; i < 2; i++) {
		if (files->streams[i].device != st.st_dev || files->streams[i].inode != st.st_ino)
			continue;
		add((struct turn_written){ files->program, i, len });
		return;
	}
}

void turn_shown_told(uint32_t number)
{
	add((struct turn_written){ turn_segment->told[number].program, TURN_TOLD, number });
}
