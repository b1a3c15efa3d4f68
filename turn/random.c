/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/random.c - see random.h.  Descriptors that were duplicated, or inherited by exec, give the
 * kernel's random numbers.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "descriptors.h"
#include "hand.h"
#include "order.h"
#include "random.h"
#include "pointers.h"
#include "raw.h"
#include "threads.h"
#include "traces.h"

#define MOST_FDS 1024

static uint64_t noted[MOST_FDS / 64];

static long fill(void *to, size_t len)
{
	uint64_t *state = &turn_segment->members[turn_member].random, value;
	size_t num;

	if (!turn_can_write(to, len))
		return -EFAULT;
	for (size_t done = 0; done < len; done += num) {
		value = turn_order_draw(state);
		num = len - done < sizeof(value) ? len - done : sizeof(value);
		memcpy((char *)to + done, &value, num);
	}
	return (long)len;
}

long turn_random_get(const struct turn_call *call)
{
	return fill((void *)call->arguments[0], (size_t)call->arguments[1]);
}

long turn_random_read(const struct turn_call *call)
{
	return fill((void *)call->arguments[1], (size_t)call->arguments[2]);
}

bool turn_random_is(int fd)
{
	return fd >= 0 && fd < MOST_FDS && noted[fd / 64] >> (fd % 64) & 1;
}

void turn_random_forget(int fd)
{
	if (fd >= 0 && fd < MOST_FDS && turn_spawned() == TURN_NOBODY)
		noted[fd / 64] &= ~(UINT64_C(1) << (fd % 64));
}

long turn_random_open(const struct turn_call *call)
{
	const unsigned int at = call->number == SYS_openat ? 1 : 0;
	const char *path = (const char *)call->arguments[at];
	const long flags = call->arguments[at + 1];
	struct stat st;
	long fd;

	if (!(flags & (O_NONBLOCK | O_PATH)) && (flags & O_ACCMODE) != O_RDWR &&
	    !TURN_RAW(SYS_newfstatat, at ? call->arguments[0] : AT_FDCWD, path, &st, 0) &&
	    S_ISFIFO(st.st_mode))
		fd = turn_open_fifo(call, at + 1);
	else
		fd = turn_through(call);
	if (flags & O_CREAT)
		turn_changed();
	if (fd >= 0)
		turn_traces_opened((int)fd, path, flags);
	if (flags & O_TRUNC)
		turn_pointers_shrunk();

	if (fd < 0 || fd >= MOST_FDS || turn_spawned() != TURN_NOBODY)
		return fd;
	turn_random_forget((int)fd);
	if (!strcmp(path, "/dev/urandom") || !strcmp(path, "/dev/random"))
		noted[fd / 64] |= UINT64_C(1) << (fd % 64);
	return fd;
}
