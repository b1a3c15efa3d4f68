/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_folder.c - the folder of a run of several programs: its segment, its fabric, and what its
 * programs print.  It goes when the run ends; one whose launcher was killed goes when the next run
 * begins or polycm explore ends, which see that nobody holds its lock.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system.h"

#define PREFIX "polycm-system-"

static const char *const parents[] = { "/dev/shm", "/tmp" };

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void system_folder_remove(const char *folder)
{
	nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* A lock of this process alone, which its children do not have, and which ends with it. */
static bool lock(int fd)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return !fcntl(fd, F_SETLK, &whole);
}

/* Under its name once it is locked, so that nobody takes the folder for one that is left. */
static int make_lock(const char *folder)
{
	char *new = tool_printf("%s/new", folder), *name = tool_printf("%s/lock", folder);
	int fd = open(new, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), err = 0;

	if (fd < 0 || !lock(fd) || rename(new, name))
		err = -errno;
	free(name);
	free(new);
	return err;
}

static void sweep_one(const char *parent, const char *name)
{
	char *folder = tool_printf("%s/%s", parent, name), *file = tool_printf("%s/lock", folder);
	struct stat st;
	int fd = -1;

	if (!lstat(folder, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid())
		fd = open(file, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && lock(fd))
		system_folder_remove(folder);
	if (fd >= 0)
		close(fd);
	free(file);
	free(folder);
}

static void sweep(const char *parent)
{
	DIR *dir = opendir(parent);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (!strncmp(entry->d_name, PREFIX, strlen(PREFIX)))
			sweep_one(parent, entry->d_name);
	if (dir)
		closedir(dir);
}

void system_folder_sweep(void)
{
	for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]); i++)
		sweep(parents[i]);
}

/* What the launcher made, and is in use by members of several runs. */
static struct kept {
	const char *name;
	int fd;			/* -1: there is none */
	struct stat st;
	char *text;		/* NULL: the launcher itself writes it */
} kept[] = {
	{ SYSTEM_SEGMENT, -1, { 0 }, NULL }, { "hosts", -1, { 0 }, NULL },
	{ "scenario", -1, { 0 }, NULL },
};

static bool keep_text(struct kept *one)
{
	const size_t len = (size_t)one->st.st_size;

	one->text = tool_realloc(NULL, len, 1);
	return pread(one->fd, one->text, len, 0) == (ssize_t)len;
}

bool system_folder_keep(const struct system *system)
{
	bool is_kept = true;

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		char *path = tool_printf("%s/%s", system->seen, kept[i].name);

		kept[i].fd = open(path, O_RDWR | O_CLOEXEC);
		if (kept[i].fd < 0)
			is_kept = is_kept && errno == ENOENT;
		else if (fstat(kept[i].fd, &kept[i].st) ||
			 (strcmp(kept[i].name, SYSTEM_SEGMENT) && !keep_text(&kept[i])))
			is_kept = false;
		free(path);
	}
	return is_kept;
}

bool system_folder_is_whole(const struct system *system)
{
	bool is_whole = true;

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		char *path = tool_printf("%s/%s", system->seen, kept[i].name);
		struct stat st;

		if (kept[i].fd >= 0)
			is_whole = is_whole && !lstat(path, &st) && st.st_ino == kept[i].st.st_ino &&
				   (kept[i].text || st.st_size == kept[i].st.st_size);
		free(path);
	}
	return is_whole;
}

/* In place: it may be mounted elsewhere, too. */
static bool restore(const struct kept *one)
{
	const size_t len = (size_t)one->st.st_size;

	if (one->fd < 0)
		return true;
	if (one->text && (ftruncate(one->fd, 0) ||
			  pwrite(one->fd, one->text, len, 0) != (ssize_t)len))
		return false;
	return !fchmod(one->fd, one->st.st_mode & 07777);
}

static int remove_but_kept(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	if (!ftw->level)
		return 0;
	for (size_t i = 0; ftw->level == 1 && i < sizeof(kept) / sizeof(kept[0]); i++)
		if (kept[i].fd >= 0 && !strcmp(path + ftw->base, kept[i].name))
			return 0;
	return remove(path);
}

/*
 * A folder for what is of the user alone.  The fabric in it stays until the run ends, also while no
 * program is on it: so what was counted and what has happened there holds for programs that come later.
 */
static int make_run(const char *shm)
{
	char *run = tool_printf("%s/run", shm), *fabrics = tool_printf("%s/polycm", run);
	char *mark = tool_printf("%s/.kept", fabrics);
	int err = 0;

	if (mkdir(run, 0700) || mkdir(fabrics, 0700) || mknod(mark, S_IFREG | 0600, 0))
		err = -errno;
	free(mark);
	free(fabrics);
	free(run);
	return err;
}

/* What members see: as /dev/shm. */
static int fill(const char *folder)
{
	char *shm = tool_printf("%s/shm", folder);
	int err = mkdir(shm, 0700) || chmod(shm, 01777) ? -errno : make_run(shm);

	free(shm);
	return err;
}

bool system_folder_empty(const struct system *system)
{
	bool emptied = !nftw(system->seen, remove_but_kept, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) &&
		       !make_run(system->seen) && !chmod(system->seen, 01777);

	for (size_t i = 0; emptied && i < sizeof(kept) / sizeof(kept[0]); i++)
		emptied = restore(&kept[i]);
	if (!emptied)
		tool_error("run: %s: %m", system->seen);
	return emptied;
}

int system_folder_make(struct system *system)
{
	for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]); i++) {
		sweep(parents[i]);
		system->folder = tool_printf("%s/" PREFIX "XXXXXX", parents[i]);
		if (mkdtemp(system->folder)) {
			if (!make_lock(system->folder) && !fill(system->folder))
				return 0;
			system_folder_remove(system->folder);
		}
		free(system->folder);
	}
	system->folder = NULL;
	tool_error("run: no folder can be made in /dev/shm and /tmp: %m");
	return EXIT_FAILURE;
}
