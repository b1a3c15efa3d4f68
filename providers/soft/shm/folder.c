/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shm/folder.c - opening, locking and removing the folder of a shared fabric.  No link is
 * followed, and every folder must belong to this user with mode 0700.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "providers/soft/base/base.h"
#include "folder.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

uint64_t sim_folder_patience = SIM_MS(5000);

bool sim_folder_name_valid(const char *name)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_.-";
	size_t len = strlen(name);

	return len && len < sizeof(((struct sim_folder *)0)->name) - sizeof(".lock") &&
	       name[0] != '.' && strspn(name, allowed) == len;
}

static void lock_name(const struct sim_folder *folder, char *name, size_t size)
{
	snprintf(name, size, "%s.lock", folder->name);
}

/* A process that waits for the lock names its holder. */
static void sign(int fd)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d\n", (int)getpid());

	if (!ftruncate(fd, 0) && pwrite(fd, text, (size_t)len, 0) != len)
		(void)ftruncate(fd, 0);
}

static int holder(int fd)
{
	char text[16] = "";

	return pread(fd, text, sizeof(text) - 1, 0) > 0 ? atoi(text) : 0;
}

/* -EBUSY: one process kept it for so long. */
static int lock_within(int fd, uint64_t patience)
{
	const struct timespec pause = { .tv_nsec = (long)SIM_MS(1) };
	uint64_t since = 0, now;
	int who = 0;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		now = sim_time->real_ns(CLOCK_MONOTONIC);
		/* When many processes join, each holds it for a moment. */
		if (!since || holder(fd) != who) {
			who = holder(fd);
			since = now;
		}
		if (now - since >= patience)
			return -EBUSY;
		/* Not nanosleep(), which may be libpolycm-interpose's. */
		(void)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	return 0;
}

int sim_folder_lock(struct sim_folder *folder, uint64_t patience)
{
	char name[sizeof(folder->name) + 8];
	struct stat st;
	int fd, r;

	lock_name(folder, name, sizeof(name));
	for (;;) {
		fd = openat(folder->base_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0)
			return -errno;
		r = lock_within(fd, patience);
		if (!r && fstat(fd, &st) < 0)
			r = -errno;
		if (r < 0)
			goto err_close;
		/* The last process to leave may have deleted it meanwhile. */
		if (st.st_nlink)
			break;
		close(fd);
	}
	sign(fd);
	folder->lock_fd = fd;
	return 0;

err_close:
	if (r == -EBUSY)
		sim_core->log(POLYCM_LOG_ERROR, NULL, "%s.lock: process %d holds it and stands still: "
			      "let it go on, or end it", folder->path, holder(fd));
	close(fd);
	return r;
}

void sim_folder_unlock(struct sim_folder *folder)
{
	if (folder->lock_fd >= 0)
		close(folder->lock_fd);
	folder->lock_fd = -1;
}

int sim_folder_open(const char *name, struct sim_folder *ret_folder)
{
	struct sim_folder folder = { .base_fd = -1, .fd = -1, .lock_fd = -1 };
	size_t len;
	int r;

	if (!sim_folder_name_valid(name)) {
		sim_core->log(POLYCM_LOG_ERROR, NULL, "\"%s\" is no name for a fabric: letters, "
			      "digits, '_', '-' and '.' only, no leading '.'", name);
		return -EINVAL;
	}
	strcpy(folder.name, name);
	r = sim_folder_open_base(&folder);
	if (r < 0)
		return r;
	folder.is_kept = !faccessat(folder.base_fd, SIM_FOLDER_KEPT, F_OK, 0);
	len = strlen(folder.path);
	snprintf(folder.path + len, sizeof(folder.path) - len, "/%s", name);
	r = sim_folder_lock(&folder, sim_folder_patience);
	if (r < 0)
		goto err_log;
	r = sim_folder_open_private(folder.base_fd, name, folder.path, &folder.fd);
	if (r < 0)
		goto err_log;
	/* Shows that we are here.  It is tried exclusively only with the other lock held. */
	if (flock(folder.fd, LOCK_SH | LOCK_NB) < 0) {
		r = -errno;
		goto err_log;
	}
	*ret_folder = folder;
	return 0;

err_log:
	if (r != -EPERM && r != -EBUSY)
		sim_core->log(POLYCM_LOG_ERROR, NULL, "%s: %s", folder.path, strerror(-r));
	sim_folder_close(&folder);
	return r;
}

void sim_folder_close(struct sim_folder *folder)
{
	sim_folder_unlock(folder);
	if (folder->fd >= 0)
		close(folder->fd);
	if (folder->base_fd >= 0)
		close(folder->base_fd);
	folder->fd = folder->base_fd = -1;
}

bool sim_folder_is_unused(const struct sim_folder *folder)
{
	return !flock(folder->fd, LOCK_EX | LOCK_NB);
}

DIR *sim_folder_list(int folder)
{
	int fd = openat(folder, ".", DIR_FLAGS);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int error = errno;

	if (!dir && fd >= 0)
		close(fd);
	errno = error;
	return dir;
}

static int clean(DIR *dir, bool (*match)(const char *file, void *arg), void *arg)
{
	struct dirent *entry;
	int r = 0;

	for (;;) {
		errno = 0;
		entry = readdir(dir);
		if (!entry)
			return errno ? -errno : r;
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
		    (match && !match(entry->d_name, arg)))
			continue;
		if (unlinkat(dirfd(dir), entry->d_name, 0) < 0 && errno != ENOENT)
			r = -errno;
	}
}

int sim_folder_clean(struct sim_folder *folder, bool (*match)(const char *file, void *arg),
		     void *arg)
{
	DIR *dir = sim_folder_list(folder->fd);
	int r;

	if (!dir)
		return -errno;
	r = clean(dir, match, arg);
	closedir(dir);
	return r;
}

void sim_folder_remove(struct sim_folder *folder)
{
	char name[sizeof(folder->name) + 8];

	/* The lock goes last: without it two processes could join at a time. */
	if (sim_folder_clean(folder, NULL, NULL) < 0 ||
	    (unlinkat(folder->base_fd, folder->name, AT_REMOVEDIR) < 0 && errno != ENOENT))
		return;
	lock_name(folder, name, sizeof(name));
	unlinkat(folder->base_fd, name, 0);
}
