/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shm/folder_base.c - where the folders of this user's shared fabrics lie.
 *
 * All processes of a user must select the same place.  So the next place is used only if one
 * does not exist or may not be used; any other error, which another process may not get, is
 * returned.  Where other users may write, one of them may have taken the name: that place is
 * not used either.  A folder that exists comes before one that could be made.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/soft/base/base.h"
#include "folder.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

const char *sim_folder_parents[2] = { "/dev/shm", "/tmp" };

/* The first place that was passed over, for people. */
struct passed {
	char path[sizeof(((struct sim_folder *)0)->path)];
	const char *why;
};

static void pass(struct passed *passed, const char *path, const char *why)
{
	if (passed->why)
		return;
	snprintf(passed->path, sizeof(passed->path), "%s", path);
	passed->why = why;
}

static bool is_absent(int error)
{
	return error == -ENOENT || error == -EACCES || error == -EROFS;
}

static int refuse(const char *path)
{
	sim_core->log(POLYCM_LOG_ERROR, NULL,
		      "%s is not a folder that belongs to user %u alone (mode 0700): remove it, or "
		      "set XDG_RUNTIME_DIR, to the same for all processes that are to meet",
		      path, (unsigned int)geteuid());
	return -EPERM;
}

/* What stands there is ours alone: 0.  -EPERM: it is not. */
static int open_own(int at, const char *name, int *ret_fd)
{
	struct stat st;
	int fd, r = -EPERM;

	fd = openat(at, name, DIR_FLAGS);
	if (fd < 0)
		return errno == ELOOP || errno == ENOTDIR ? -EPERM : -errno;
	if (fstat(fd, &st) < 0)
		r = -errno;
	else if (st.st_uid == geteuid() && !(st.st_mode & 077))
		r = 0;
	if (r < 0)
		close(fd);
	else
		*ret_fd = fd;
	return r;
}

int sim_folder_open_private(int at, const char *name, const char *path, int *ret_fd)
{
	int r;

	if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	r = open_own(at, name, ret_fd);
	return r == -EPERM ? refuse(path) : r;
}

/* ------------------------------------------------------------------------
 * The user's own run-time folder.
 */

/* NULL: it deserves the name.  May say so with an error, too. */
static const char *unfit(int fd, int *ret_error)
{
	struct stat st;

	*ret_error = 0;
	if (fstat(fd, &st) < 0) {
		*ret_error = -errno;
		return strerror(errno);
	}
	if (st.st_uid != geteuid())
		return "it belongs to another user";
	if (st.st_mode & 077)
		return "other users may use it";
	if (!faccessat(fd, ".", W_OK | X_OK, AT_EACCESS))
		return NULL;
	if (!is_absent(-errno))
		*ret_error = -errno;
	return strerror(errno);
}

static int open_in_runtime_dir(int dir, struct sim_folder *folder, struct passed *passed)
{
	const char *why;
	int error;

	why = unfit(dir, &error);
	if (error)
		return error;
	if (!why)
		return sim_folder_open_private(dir, "polycm", folder->path, &folder->base_fd);
	pass(passed, folder->path, why);
	return -ENOENT;
}

/* -ENOENT, and others of is_absent(): it was passed over, and noted unless there is none. */
static int open_runtime_dir(struct sim_folder *folder, struct passed *passed)
{
	const char *dir = secure_getenv("XDG_RUNTIME_DIR");
	int fd, r;

	if (!dir || !*dir)
		return -ENOENT;
	if (dir[0] != '/' || strlen(dir) > 256) {
		pass(passed, "XDG_RUNTIME_DIR", "it is no absolute path of up to 256 bytes");
		return -ENOENT;
	}
	snprintf(folder->path, sizeof(folder->path), "%s/polycm", dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		r = -errno;
	} else {
		r = open_in_runtime_dir(fd, folder, passed);
		close(fd);
	}
	if (is_absent(r))
		pass(passed, folder->path, strerror(-r));
	return r;
}

/* ------------------------------------------------------------------------
 * Folders in which all users may make theirs.
 */

static bool is_own(int parent, const char *name)
{
	struct stat st;

	return !fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) && st.st_uid == geteuid();
}

/* -ENOENT, and others of is_absent(): it was passed over. */
static int open_in_parent(int parent, const char *name, bool make, struct sim_folder *folder,
			  struct passed *passed)
{
	int r;

	if (make && mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	r = open_own(parent, name, &folder->base_fd);
	if (r == -EPERM || r == -EACCES) {
		if (is_own(parent, name))
			return refuse(folder->path);
		pass(passed, folder->path, "another user took that name");
		return -EACCES;
	}
	return r;
}

/*
 * The user's number outside of the user namespace, where others who are root inside of theirs have
 * other ones.  Without namespaces it is the same.
 */
static unsigned int outer_uid(void)
{
	unsigned int uid = (unsigned int)geteuid(), inner, outer, num;
	FILE *map = fopen("/proc/self/uid_map", "re");

	if (!map)
		return uid;
	while (fscanf(map, "%u %u %u", &inner, &outer, &num) == 3)
		if (uid - inner < num) {
			uid = outer + (uid - inner);
			break;
		}
	fclose(map);
	return uid;
}

static int open_shared(const char *dir, bool make, struct sim_folder *folder, struct passed *passed)
{
	char name[32];
	int parent, r;

	snprintf(name, sizeof(name), "polycm-%u", outer_uid());
	snprintf(folder->path, sizeof(folder->path), "%s/%s", dir, name);
	parent = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0) {
		r = -errno;
	} else {
		r = open_in_parent(parent, name, make, folder, passed);
		close(parent);
	}
	if (make && is_absent(r))
		pass(passed, folder->path, strerror(-r));
	return r;
}

/* What there is already comes before what could be made. */
static int open_shared_any(struct sim_folder *folder, struct passed *passed)
{
	int r = -ENOENT;

	for (unsigned int make = 0; make < 2; make++)
		for (unsigned int i = 0; i < 2; i++) {
			r = open_shared(sim_folder_parents[i], make, folder, passed);
			if (!is_absent(r))
				return r;
		}
	return r;
}

int sim_folder_open_base(struct sim_folder *folder)
{
	struct passed passed = { .why = NULL };
	int r;

	r = open_runtime_dir(folder, &passed);
	if (is_absent(r))
		r = open_shared_any(folder, &passed);
	if (!r && passed.why)
		sim_core->log(POLYCM_LOG_WARN, NULL, "%s is not used: %s: processes of this user use "
			      "%s, and do not see those that use the other one", passed.path,
			      passed.why, folder->path);
	if (!r || r == -EPERM)
		return r;
	if (is_absent(r))
		sim_core->log(POLYCM_LOG_ERROR, NULL,
			      "no folder for the processes of this user to meet in: %s: %s: set "
			      "XDG_RUNTIME_DIR to a folder of mode 0700, the same for all of them",
			      passed.why ? passed.path : folder->path,
			      passed.why ? passed.why : strerror(-r));
	else
		sim_core->log(POLYCM_LOG_ERROR, NULL, "%s: %s", folder->path, strerror(-r));
	return r;
}
