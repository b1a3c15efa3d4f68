/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/path.c - see path.h. */
#include "config.h"

#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "hand.h"
#include "path.h"
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

void turn_path_record(const struct turn_call *call)
{
	const size_t number = (size_t)call->number;
	const uint32_t at = turn_self()->event;
	struct turn_event *event;
	const char *path;
	size_t len;

	if (!turn_segment->records || !at || number >= sizeof(paths) || !paths[number])
		return;
	path = (const char *)call->arguments[paths[number] - 1];
	if (!turn_can_read_string(path))
		return;
	event = &turn_segment->record.events[at - 1];
	event->has_path = paths[number];
	/* With long ones the end says more. */
	len = strlen(path);
	if (len >= sizeof(event->path))
		path += len - sizeof(event->path) + 1;
	memcpy(event->path, path, strlen(path) + 1);
}
