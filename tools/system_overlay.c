/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_overlay.c - files that members change.  For polycm explore and with --own-files each run finds
 * them as they were: over the folders in which programs usually write lies an overlay, whose upper
 * layer is in memory and goes with the run.
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

/* One with an overlay. */
struct folder {
	char *path;
	struct statx st;
	int lower;		/* itself, without the overlay */
	int upper;		/* what was changed in it; -1: it has no overlay */
};

/* What stays the machine's, though it is in such a folder: a mount, a file that polycm writes. */
struct kept {
	char *path;
	int fd;			/* from before: no overlay hides it */
};

static struct folder folders[MOST_FOLDERS];
static size_t num_folders;
static struct kept *kept;
static size_t num_kept;

/* Or that itself. */
static bool is_below(const char *path, const char *folder)
{
	const size_t len = strlen(folder);

	return !strncmp(path, folder, len) && (path[len] == '/' || !path[len]);
}

/* ------------------------------------------------------------------------
 * Which folders.
 */

static void add_folder(const char *name)
{
	struct folder folder = { .path = name ? realpath(name, NULL) : NULL, .lower = -1, .upper = -1 };

	if (folder.path && strcmp(folder.path, "/") != 0 &&
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
		if (is_below(folder->path, other->path) && folder->st.stx_mnt_id == other->st.stx_mnt_id)
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

static bool is_kept(const char *path)
{
	for (size_t i = 0; i < num_kept; i++)
		if (is_below(path, kept[i].path))
			return true;
	return false;
}

static bool is_in_folder(const char *path)
{
	for (size_t i = 0; i < num_folders; i++)
		if (is_below(path, folders[i].path) && strcmp(path, folders[i].path) != 0)
			return true;
	return false;
}

static void keep(const char *name)
{
	struct kept one = { .path = name ? realpath(name, NULL) : NULL };

	if (!one.path || !is_in_folder(one.path) || is_kept(one.path) ||
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

/* Over FOLDER there is an overlay now: what is kept in it is there again.  0 or a negative errno. */
static int show_kept(const char *folder)
{
	for (size_t i = 0; i < num_kept; i++) {
		char *from = tool_printf("/proc/self/fd/%d", kept[i].fd);
		int err = is_below(kept[i].path, folder) &&
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
 * not privileged needs those of users, which Linux has in memory from 6.6 on.  NULL: there are none.
 */
static const char *options_of(const char *layers)
{
	if (!setxattr(layers, "user.overlay.test", "y", 1, 0))
		return ",userxattr";
	return setxattr(layers, "trusted.overlay.test", "y", 1, 0) ? NULL : "";
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
static int cover(struct folder *folder, const char *options)
{
	char *lower = quote(folder->path), *upper = tool_printf("%d", (int)(folder - folders));
	char *work = tool_printf("%s.work", upper);
	char *text = tool_printf("lowerdir=%s,upperdir=%s,workdir=%s%s", lower, upper, work, options);
	int err = make_upper(folder, upper);

	folder->lower = open(folder->path, O_PATH | O_CLOEXEC);
	if (!err && folder->lower < 0)
		err = -errno;
	if (!err && (mkdir(work, 0700) || mount("overlay", folder->path, "overlay", 0, text)))
		err = -errno;
	if (!err) {
		err = show_kept(folder->path);
		if (err)
			umount2(folder->path, MNT_DETACH);
		else
			folder->upper = open(upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	free(text);
	free(work);
	free(upper);
	free(lower);
	return err;
}

static void tell(const char *folder, int err)
{
	tool_error("run: what programs change in files of %s stays, and other runs see it: no overlay: "
		   "%s", folder, strerror(-err));
}

static void cover_all(void)
{
	const char *options = options_of(".");

	for (size_t i = 0; i < num_folders; i++) {
		int err = options ? cover(&folders[i], options) : -EOPNOTSUPP;

		if (err)
			tell(folders[i].path, err);
	}
}

void system_overlay_enter(const struct system *system)
{
	char *layers, *here;

	if (!system->values[RUN_OWN_FILES] && !getenv(SYSTEM_FILES_VARIABLE))
		return;
	here = getcwd(NULL, 0);
	layers = tool_printf("%s/" LAYERS, system->folder);
	find_folders();
	find_kept(system);
	if (mkdir(layers, 0700) ||
	    mount("tmpfs", layers, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700") || chdir(layers)) {
		tell(layers, -errno);
	} else {
		cover_all();
		/* The overlays hold it.  /proc/mounts is the same in each run without it. */
		umount2(layers, MNT_DETACH);
	}
	for (size_t i = 0; i < num_kept; i++)
		close(kept[i].fd);
	/* Into the overlay. */
	if (here && chdir(here))
		tool_error("run: %s: %m", here);
	free(layers);
	free(here);
}

static bool differ(const struct stat *a, const struct stat *b)
{
	return a->st_mode != b->st_mode || a->st_uid != b->st_uid || a->st_gid != b->st_gid;
}

/* It does not show what is in the lower one. */
static bool is_opaque(int upper)
{
	char value;

	return fgetxattr(upper, "user.overlay.opaque", &value, 1) > 0 ||
	       fgetxattr(upper, "trusted.overlay.opaque", &value, 1) > 0;
}

static bool is_changed(int upper, int lower);

/* A folder comes into the upper layer with the first change in it, and stays there. */
static bool is_entry_changed(int upper, int lower, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int up = openat(upper, name, flags), low = openat(lower, name, O_PATH | flags);
	struct stat st, before;
	bool changed = up < 0 || low < 0 || fstat(up, &st) || fstat(low, &before) ||
		       differ(&st, &before) || is_opaque(up) || is_changed(up, low);

	if (up >= 0)
		close(up);
	if (low >= 0)
		close(low);
	return changed;
}

static bool is_changed(int upper, int lower)
{
	int fd = openat(upper, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	bool changed = !dir;

	while (!changed && (entry = readdir(dir)))
		changed = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
			  is_entry_changed(upper, lower, entry->d_name);
	if (dir)
		closedir(dir);
	return changed;
}

bool system_overlay_is_changed(void)
{
	for (size_t i = 0; i < num_folders; i++)
		if (folders[i].upper >= 0 && is_changed(folders[i].upper, folders[i].lower))
			return true;
	return false;
}
