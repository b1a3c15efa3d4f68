/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/random.c - see random.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include "descriptors.h"
#include "hand.h"
#include "order.h"
#include "random.h"
#include "pointers.h"
#include "raw.h"
#include "terminals.h"
#include "traces.h"

/* /dev/random and /dev/urandom */
#define IS_RANDOM(st) (S_ISCHR((st).st_mode) && \
		       ((st).st_rdev == makedev(1, 8) || (st).st_rdev == makedev(1, 9)))

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

#define KNOWN_MODE 07777
#define KNOWN_FLAGS 7l		/* GRND_NONBLOCK, GRND_RANDOM, GRND_INSECURE */

long turn_random_get(const struct turn_call *call)
{
	if (call->arguments[2] & ~KNOWN_FLAGS)
		return -EINVAL;
	return fill((void *)call->arguments[0], (size_t)call->arguments[1]);
}

long turn_random_read(const struct turn_call *call)
{
	const struct iovec *parts = (const struct iovec *)call->arguments[1];
	long sum = 0, len;

	if (call->number != SYS_readv)
		return fill((void *)call->arguments[1], (size_t)call->arguments[2]);
	for (long i = 0; i < call->arguments[2]; i++) {
		if (!turn_can_read(&parts[i], sizeof(*parts)))
			return -EFAULT;
		len = fill(parts[i].iov_base, parts[i].iov_len);
		if (len < 0)
			return sum ? sum : len;
		sum += len;
	}
	return sum;
}

/* Whoever opened it, and whatever its number is by now. */
bool turn_random_is(int fd)
{
	struct stat st;

	return turn_segment->reads_random && !TURN_RAW(SYS_fstat, fd, &st) && IS_RANDOM(st);
}

/* The descriptor, if it is one. */
static long noted(long fd)
{
	struct stat st;

	if (fd < 0)
		return fd;
	turn_terminals_opened((int)fd);
	if (!turn_segment->reads_random && !TURN_RAW(SYS_fstat, fd, &st) && IS_RANDOM(st))
		turn_segment->reads_random = true;
	return fd;
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
	return noted(fd);
}

/* As openat() of the same path, unless that is looked up in another way (RESOLVE_*). */
long turn_random_open_how(const struct turn_call *call)
{
	const struct { uint64_t flags, mode, resolve; } *how = (const void *)call->arguments[2];
	struct turn_call simple = *call;

	if (!turn_can_read(how, sizeof(*how)) || (size_t)call->arguments[3] != sizeof(*how) ||
	    how->flags & ~(uint64_t)INT32_MAX || how->mode & ~(uint64_t)KNOWN_MODE)
		return turn_through(call);
	if (how->resolve) {
		turn_changed();
		return noted(turn_through(call));
	}
	simple.number = SYS_openat;
	simple.arguments[2] = (long)how->flags;
	simple.arguments[3] = (long)how->mode;
	return turn_random_open(&simple);
}
