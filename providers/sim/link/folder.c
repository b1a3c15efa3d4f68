/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/folder.c - finding, checking and removing the folder of a shared
 * fabric.
 *
 * What others may have put in our way is refused: every folder is opened
 * without following links and must belong to us with mode 0700.
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
#include <unistd.h>

#include "../engine.h"
#include "folder.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

bool sim_folder_name_valid(const char *name)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_.-";
	size_t len = strlen(name);

	return len && len < sizeof(((struct sim_folder *)0)->name) - sizeof(".lock") &&
	       name[0] != '.' && strspn(name, allowed) == len;
}

/* Make it if need be; it must be ours alone. */
static int open_private(int at, const char *name, const char *path, int *ret_fd)
{
	struct stat st;
	int fd, r;

	if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(at, name, DIR_FLAGS);
	if (fd < 0 && errno != ELOOP && errno != ENOTDIR)
		return -errno;
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() || st.st_mode & 077) {
		sim_core->log(POLYCM_LOG_ERROR, NULL,
			      "%s is not a folder that belongs to user %u alone (mode 0700): "
			      "remove it, or set XDG_RUNTIME_DIR", path, (unsigned int)geteuid());
		r = -EPERM;
		goto err_close;
	}
	*ret_fd = fd;
	return 0;

err_close:
	if (fd >= 0)
		close(fd);
	return r;
}

/* The user's own run-time folder, if there is one that deserves the name. */
static int open_runtime_dir(struct sim_folder *folder)
{
	const char *dir = secure_getenv("XDG_RUNTIME_DIR");
	struct stat st;
	int fd, r = -ENOENT;

	if (!dir || dir[0] != '/' || strlen(dir) > 256)
		return -ENOENT;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & 077) &&
	    !faccessat(fd, ".", W_OK | X_OK, AT_EACCESS)) {
		snprintf(folder->path, sizeof(folder->path), "%s/polycm", dir);
		r = open_private(fd, "polycm", folder->path, &folder->base_fd);
	}
	close(fd);
	return r;
}

static int open_base(struct sim_folder *folder)
{
	static const char *const parents[] = { "/dev/shm", "/tmp" };
	char name[32];
	int parent, r;

	r = open_runtime_dir(folder);
	if (!r || r == -EPERM)
		return r;
	snprintf(name, sizeof(name), "polycm-%u", (unsigned int)geteuid());
	for (unsigned int i = 0; i < 2; i++) {
		parent = open(parents[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (parent < 0) {
			r = -errno;
			continue;
		}
		snprintf(folder->path, sizeof(folder->path), "%s/%s", parents[i], name);
		r = open_private(parent, name, folder->path, &folder->base_fd);
		close(parent);
		if (!r || r == -EPERM)
			return r;
	}
	sim_core->log(POLYCM_LOG_ERROR, NULL,
		      "no folder for the processes of this user to meet in: %s: %s",
		      folder->path, strerror(-r));
	return r;
}

static void lock_name(const struct sim_folder *folder, char *name, size_t size)
{
	snprintf(name, size, "%s.lock", folder->name);
}

int sim_folder_lock(struct sim_folder *folder)
{
	char name[sizeof(folder->name) + 8];
	struct stat st;
	int fd;

	lock_name(folder, name, sizeof(name));
	for (;;) {
		fd = openat(folder->base_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0)
			return -errno;
		while (flock(fd, LOCK_EX) < 0) {
			if (errno != EINTR) {
				int r = -errno;

				close(fd);
				return r;
			}
		}
		/* The last one to leave may have deleted it meanwhile. */
		if (!fstat(fd, &st) && st.st_nlink)
			break;
		close(fd);
	}
	folder->lock_fd = fd;
	return 0;
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
	r = open_base(&folder);
	if (r < 0)
		return r;
	len = strlen(folder.path);
	snprintf(folder.path + len, sizeof(folder.path) - len, "/%s", name);
	r = sim_folder_lock(&folder);
	if (r < 0)
		goto err_log;
	r = open_private(folder.base_fd, name, folder.path, &folder.fd);
	if (r < 0)
		goto err_log;
	/* Says that we are here, until it is closed.  Only who has the other lock tries for it alone. */
	if (flock(folder.fd, LOCK_SH | LOCK_NB) < 0) {
		r = -errno;
		goto err_log;
	}
	*ret_folder = folder;
	return 0;

err_log:
	if (r != -EPERM)
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
		    !match(entry->d_name, arg))
			continue;
		if (unlinkat(dirfd(dir), entry->d_name, 0) < 0 && errno != ENOENT)
			r = -errno;
	}
}

int sim_folder_clean(struct sim_folder *folder, bool (*match)(const char *file, void *arg),
		     void *arg)
{
	int fd = openat(folder->fd, ".", DIR_FLAGS);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int r;

	if (!dir) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	r = clean(dir, match, arg);
	closedir(dir);
	return r;
}

static bool match_all(const char *file, void *arg)
{
	(void)file;
	(void)arg;
	return true;
}

void sim_folder_remove(struct sim_folder *folder)
{
	char name[sizeof(folder->name) + 8];

	/* The lock goes last: without it two processes could join at a time. */
	if (sim_folder_clean(folder, match_all, NULL) < 0 ||
	    (unlinkat(folder->base_fd, folder->name, AT_REMOVEDIR) < 0 && errno != ENOENT))
		return;
	lock_name(folder, name, sizeof(name));
	unlinkat(folder->base_fd, name, 0);
}
