/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_overlay.c - files that members change.  With --own-files each run finds them as they were:
 * over the folders in which programs usually write lies an overlay, whose upper layer is in memory and
 * goes with the run.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "run.h"
#include "system.h"

#define MOUNTS "/proc/self/mounts"
#define LAYERS "files"			/* in the folder of the run */
#define MOST_FOLDERS 4u
#define NO_FOLDER MOST_FOLDERS

/* One with an overlay. */
struct folder {
	char *path;
	struct statx st;
	int upper;		/* what was changed in it */
	struct stat before;	/* of that */
};

/* What stays the machine's, though it is in such a folder: a mount, a file that polycm writes. */
struct kept {
	char *path;
	size_t folder;		/* the innermost that it is in */
	int fd;			/* from before: no overlay hides it */
};

static struct folder folders[MOST_FOLDERS];
static size_t num_folders;
static struct kept *kept;
static size_t num_kept;

bool system_overlay_is_wanted(const struct system *system)
{
	return system->values[RUN_OWN_FILES] || getenv(SYSTEM_FILES_VARIABLE);
}

/* Or that itself. */
static bool is_below(const char *path, const char *folder)
{
	const size_t len = strlen(folder);

	return !strncmp(path, folder, len) && (path[len] == '/' || !path[len]);
}

/* ------------------------------------------------------------------------
 * Which folders.
 */

/* Where nobody can write, nothing is changed. */
static bool can_be_written(const char *path)
{
	return !access(path, W_OK) || errno != EROFS;
}

static void add_folder(const char *name)
{
	struct folder folder = { .path = name ? realpath(name, NULL) : NULL, .upper = -1 };

	if (folder.path && strcmp(folder.path, "/") != 0 && can_be_written(folder.path) &&
	    !statx(AT_FDCWD, folder.path, 0, STATX_BASIC_STATS | STATX_MNT_ID, &folder.st) &&
	    S_ISDIR(folder.st.stx_mode))
		folders[num_folders++] = folder;
	else
		free(folder.path);
}

static int compare_lengths(const void *a, const void *b)
{
	const struct folder *const one = a, *const other = b;
	const size_t len = strlen(one->path), its = strlen(other->path);

	return (len > its) - (len < its);
}

/* By the overlay of one of those before it. */
static bool is_covered(const struct folder *folder)
{
	for (const struct folder *other = folders; other < folder; other++)
		if (is_below(folder->path, other->path) &&
		    folder->st.stx_mnt_id == other->st.stx_mnt_id)
			return true;
	return false;
}

static void find_folders(void)
{
	const char *temporary = getenv("TMPDIR");

	add_folder(".");
	add_folder(temporary && *temporary ? temporary : "/tmp");
	add_folder("/var/tmp");
	add_folder(getenv("HOME"));
	/* The overlay of an outer one would hide that of an inner one. */
	qsort(folders, num_folders, sizeof(folders[0]), compare_lengths);
	for (size_t i = 0; i < num_folders; i++) {
		while (i < num_folders && is_covered(&folders[i])) {
			free(folders[i].path);
			memmove(&folders[i], &folders[i + 1],
				(--num_folders - i) * sizeof(folders[0]));
		}
	}
}

/* ------------------------------------------------------------------------
 * What stays.
 */

static size_t folder_of(const char *path)
{
	for (size_t i = num_folders; i--;)
		if (is_below(path, folders[i].path) && strcmp(path, folders[i].path) != 0)
			return i;
	return NO_FOLDER;
}

/* With a mount that it is in, unless there is an overlay in between. */
static bool is_kept(const char *path, size_t folder)
{
	for (size_t i = 0; i < num_kept; i++)
		if (kept[i].folder == folder && is_below(path, kept[i].path))
			return true;
	return false;
}

static void keep(const char *name)
{
	struct kept one = { .path = name ? realpath(name, NULL) : NULL, .folder = NO_FOLDER };

	if (one.path)
		one.folder = folder_of(one.path);
	if (one.folder == NO_FOLDER || is_kept(one.path, one.folder) ||
	    (one.fd = open(one.path, O_PATH | O_CLOEXEC)) < 0) {
		free(one.path);
		return;
	}
	kept = tool_realloc(kept, num_kept + 1, sizeof(*kept));
	kept[num_kept++] = one;
}

/* Each comes behind the one that it is in. */
static void keep_mounts(void)
{
	FILE *mounts = setmntent(MOUNTS, "re");
	const struct mntent *mount;

	while (mounts && (mount = getmntent(mounts)))
		keep(mount->mnt_dir);
	if (mounts)
		endmntent(mounts);
}

static void find_kept(const struct system *system)
{
	keep_mounts();
	keep(getenv(SYSTEM_FILES_VARIABLE));
	keep(system->folder);
	keep(system_value(system, RUN_TRACE));
	keep(system_value(system, RUN_PCAP));
	keep(getenv(RUN_EXPLORE_VARIABLE));
}

/* Over the folder there is an overlay now: what is kept in it is there again.  0 or a negative errno. */
static int show_kept(size_t folder)
{
	for (size_t i = 0; i < num_kept; i++) {
		char *from = tool_printf("/proc/self/fd/%d", kept[i].fd);
		int err = kept[i].folder == folder &&
			  mount(from, kept[i].path, NULL, MS_BIND | MS_REC, NULL) ? -errno : 0;

		free(from);
		if (err)
			return err;
	}
	return 0;
}

/* ------------------------------------------------------------------------
 * Overlays.
 */

/*
 * Folders that were removed and made again, and others, are marked by extended attributes.  Who is
 * not privileged needs those of users, which Linux has in memory from 6.6 on, and cannot have folders
 * renamed that were there before.  NULL: there are none.
 */
static const char *options_of(const char *layers)
{
	if (!setxattr(layers, "trusted.overlay.test", "y", 1, 0))
		return ",redirect_dir=on";
	return setxattr(layers, "user.overlay.test", "y", 1, 0) ? NULL : ",userxattr";
}

/* A new folder, as FOLDER is to who must not write there, either.  0 or a negative errno. */
static int make_upper(const struct folder *folder, const char *name)
{
	const struct statx *st = &folder->st;
	const struct timespec times[] = {
		{ st->stx_atime.tv_sec, st->stx_atime.tv_nsec },
		{ st->stx_mtime.tv_sec, st->stx_mtime.tv_nsec },
	};
	mode_t mode = st->stx_mode & 07777;

	if (mkdir(name, 0700))
		return -errno;
	if (chown(name, st->stx_uid, st->stx_gid) && access(folder->path, W_OK))
		mode &= ~(mode_t)0222;
	if (chmod(name, mode) || utimensat(AT_FDCWD, name, times, 0))
		return -errno;
	return 0;
}

/* As a word among mount options; to be freed. */
static char *quote(const char *path)
{
	char *text = tool_realloc(NULL, 2 * strlen(path) + 1, 1), *end = text;

	for (; *path; path++) {
		if (strchr("\\:,", *path))
			*end++ = '\\';
		*end++ = *path;
	}
	*end = '\0';
	return text;
}

/* The layers are in this folder, and have the same names in each run.  0 or a negative errno. */
static int cover(size_t i, const char *options)
{
	struct folder *folder = &folders[i];
	char *lower = quote(folder->path), *upper = tool_printf("%zu", i);
	char *work = tool_printf("%s.work", upper);
	char *text = tool_printf("lowerdir=%s,upperdir=%s,workdir=%s%s", lower, upper, work, options);
	int err = make_upper(folder, upper);

	if (!err && (mkdir(work, 0700) || mount("overlay", folder->path, "overlay", 0, text)))
		err = -errno;
	if (!err)
		err = show_kept(i);
	if (!err) {
		folder->upper = open(upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (folder->upper < 0 || fstat(folder->upper, &folder->before))
			err = -errno;
	}
	free(text);
	free(work);
	free(upper);
	free(lower);
	return err;
}

static bool refuse(const char *path, int err)
{
	tool_error("run: --own-files: there is no overlay for %s: %s%s", path, strerror(-err),
		   err == -EINVAL ? "; a file system may be mounted below it" : "");
	return false;
}

static bool refuse_here(void)
{
	tool_error("run: --own-files: the working folder: %m");
	return false;
}

static bool cover_all(const struct system *system)
{
	char *layers = tool_printf("%s/" LAYERS, system->folder);
	const char *options = NULL;
	bool is_covered = true;
	int err;

	if (mkdir(layers, 0700) ||
	    mount("tmpfs", layers, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700") || chdir(layers))
		return refuse(layers, -errno);
	options = options_of(".");
	for (size_t i = 0; is_covered && i < num_folders; i++) {
		err = options ? cover(i, options) : -EOPNOTSUPP;
		is_covered = !err || refuse(folders[i].path, err);
	}
	/* The overlays hold it.  /proc/mounts is the same in each run without it. */
	umount2(layers, MNT_DETACH);
	free(layers);
	return is_covered;
}

bool system_overlay_enter(const struct system *system)
{
	char *here = getcwd(NULL, 0);
	bool is_covered;

	if (!here)
		return refuse_here();
	find_folders();
	find_kept(system);
	is_covered = cover_all(system);
	for (size_t i = 0; i < num_kept; i++)
		close(kept[i].fd);
	/* Into the overlay. */
	if (is_covered && chdir(here))
		is_covered = refuse_here();
	free(here);
	return is_covered;
}

static bool is_same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool has_entries(int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	bool has = !dir;

	while (!has && (entry = readdir(dir)))
		has = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	if (dir)
		closedir(dir);
	return has;
}

/* Also for a moment: times tell that. */
static bool is_changed(const struct folder *folder)
{
	struct stat st;

	return fstat(folder->upper, &st) || !is_same_time(st.st_mtim, folder->before.st_mtim) ||
	       !is_same_time(st.st_ctim, folder->before.st_ctim) || has_entries(folder->upper);
}

bool system_overlay_is_changed(void)
{
	for (size_t i = 0; i < num_folders; i++)
		if (is_changed(&folders[i]))
			return true;
	return false;
}
