/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shm/sweep.c - removes the folders of fabrics whose processes were all killed.  A process
 * that makes a fabric does it, so that such folders do not fill up memory.  Engine lock and
 * our own folder's lock held; the locks of other folders are only tried.
 *
 * A folder that cannot be opened for lack of descriptors or memory may be in use, and stays.
 * A living process also holds a lock on the folder itself, whatever became of the segment.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "segment.h"

#define LOCK_SUFFIX ".lock"

static bool in_use(int folder)
{
	int fd = openat(folder, SIM_SEGMENT_FILE, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	bool alive;

	if (fd < 0)
		return errno != ENOENT;
	alive = sim_slots_alive(fd, 0, SIM_MAX_SLOTS);
	close(fd);
	return alive;
}

/* With its lock file open: remove it unless somebody joins, leaves or is there. */
static void sweep_one(struct sim_folder *folder)
{
	struct stat st;

	if (flock(folder->lock_fd, LOCK_EX | LOCK_NB) < 0 || fstat(folder->lock_fd, &st) < 0 ||
	    !st.st_nlink)
		return;
	folder->fd = openat(folder->base_fd, folder->name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder->fd >= 0 && sim_folder_is_unused(folder) && !in_use(folder->fd))
		sim_folder_remove(folder);
	if (folder->fd >= 0)
		close(folder->fd);
}

static void sweep_entry(const struct sim_folder *own, const char *entry)
{
	struct sim_folder folder = { .base_fd = own->base_fd, .fd = -1, .lock_fd = -1 };
	size_t len = strlen(entry), suffix = strlen(LOCK_SUFFIX);

	if (len <= suffix || len - suffix >= sizeof(folder.name) ||
	    strcmp(entry + len - suffix, LOCK_SUFFIX) != 0)
		return;
	memcpy(folder.name, entry, len - suffix);
	folder.name[len - suffix] = '\0';
	if (!sim_folder_name_valid(folder.name) || !strcmp(folder.name, own->name))
		return;
	folder.lock_fd = openat(folder.base_fd, entry, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (folder.lock_fd < 0)
		return;
	sweep_one(&folder);
	close(folder.lock_fd);
}

void sim_sweep(const struct sim_folder *own)
{
	DIR *dir = sim_folder_list(own->base_fd);
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		sweep_entry(own, entry->d_name);
	closedir(dir);
}
