/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/details.c - see details.h. */
#include "config.h"

#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "carried.h"
#include "details.h"
#include "hand.h"
#include "pointers.h"

/* The argument that is a path, + 1. */
static const unsigned char paths[] = {
	[SYS_open] = 1, [SYS_openat] = 2, [SYS_creat] = 1, [SYS_execve] = 1, [SYS_execveat] = 2,
	[SYS_stat] = 1, [SYS_lstat] = 1, [SYS_newfstatat] = 2, [SYS_statx] = 2, [SYS_statfs] = 1,
	[SYS_access] = 1, [SYS_faccessat] = 2, [SYS_readlink] = 1, [SYS_readlinkat] = 2,
	[SYS_unlink] = 1, [SYS_unlinkat] = 2, [SYS_mkdir] = 1, [SYS_mkdirat] = 2, [SYS_rmdir] = 1,
	[SYS_rename] = 1, [SYS_renameat] = 2, [SYS_renameat2] = 2, [SYS_truncate] = 1,
	[SYS_chdir] = 1, [SYS_chmod] = 1, [SYS_fchmodat] = 2, [SYS_mq_open] = 1,
};

static struct turn_event *event_of(void)
{
	const uint32_t at = turn_segment->records ? turn_self()->event : 0;

	return at ? &turn_segment->record.events[at - 1] : NULL;
}

void turn_details_path(const struct turn_call *call)
{
	const size_t number = (size_t)call->number;
	struct turn_event *event = event_of();
	const char *path;
	size_t len;

	if (!event || number >= sizeof(paths) || !paths[number])
		return;
	path = (const char *)call->arguments[paths[number] - 1];
	if (!turn_can_read_string(path))
		return;
	event->has_path = paths[number];
	/* With long ones the end says more. */
	len = strlen(path);
	if (len >= sizeof(event->path))
		path += len - sizeof(event->path) + 1;
	memcpy(event->path, path, strlen(path) + 1);
}

/* The argument that points to it, before its length; -1: none, or it is not one piece. */
static int argument_read(long number)
{
	switch (number) {
	case SYS_read:
	case SYS_pread64:
	case SYS_recvfrom:
	case SYS_readlink:
		return 1;
	case SYS_readlinkat:
		return 2;
	case SYS_getrandom:
		return 0;
	}
	return -1;
}

void turn_details_data(const struct turn_call *call, long result)
{
	const int argument = argument_read(call->number);
	struct turn_event *event = event_of();
	const unsigned char *data;
	size_t len;

	/* What the carrier asks the kernel for has numbers of this boot; all else others have read. */
	if (!event || argument < 0 || result <= 0 || turn_carried_is_carrier())
		return;
	/* MSG_TRUNC: the result is that of the whole message. */
	len = (size_t)result < (size_t)call->arguments[argument + 1] ?
		(size_t)result : (size_t)call->arguments[argument + 1];
	data = (const unsigned char *)call->arguments[argument];
	if (!turn_can_read(data, len))
		return;
	event->data = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < len; i++)
		event->data = (event->data ^ data[i]) * UINT64_C(0x100000001b3);
}
