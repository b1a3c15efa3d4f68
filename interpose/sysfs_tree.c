/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/sysfs_tree.c - the folder with the files of simulated devices, of one process.
 *
 * Its name says whose it is: the user, the namespace of processes, the process and when that
 * started.  So it can be removed when the process was killed, and no descriptor stays open, which
 * the program might count.  It is used under sysfs.c's lock.  A child of fork() makes its own.
 */
#include "config.h"

#include "sysfs.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host.h"
#include "libc.h"
#include "paths.h"

#define NAME "polycm-sysfs-"
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static const char *const parents[] = { "/dev/shm", "/tmp" };
#define NUM_PARENTS (sizeof(parents) / sizeof(parents[0]))

static struct {
	pid_t pid;		/* whose it is; 0: there is none */
	int fd;			/* during a walk */
	unsigned int files;	/* counts temporary ones */
	bool failed;		/* logged */
	char path[128];
} tree;

struct owner {
	unsigned int user;
	unsigned long space;		/* of processes */
	int pid;
	unsigned long long started;	/* of the kernel's ticks; 0: there is no such process */
};

const char *polycm_tree_rest(const char *real)
{
	for (size_t i = 0; i < NUM_PARENTS; i++) {
		size_t len = strlen(parents[i]);
		const char *rest;

		if (strncmp(real, parents[i], len) || real[len] != '/' ||
		    strncmp(real + len + 1, NAME, strlen(NAME)))
			continue;
		rest = strchr(real + len + 1, '/');
		return rest ? rest : "";
	}
	return NULL;
}

/* ------------------------------------------------------------------------
 * Removing.
 */

static void remove_at(int at, const char *name);

static DIR *list_at(int at, const char *name)
{
	int fd = polycm_paths()->openat(at, name, FOLDER_FLAGS);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

static void empty_folder(int at, const char *name)
{
	DIR *dir = list_at(at, name);
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (!is_dots(entry->d_name))
			remove_at(dirfd(dir), entry->d_name);
	closedir(dir);
}

static void remove_at(int at, const char *name)
{
	if (!unlinkat(at, name, 0) || errno == ENOENT)
		return;
	empty_folder(at, name);
	(void)unlinkat(at, name, AT_REMOVEDIR);
}

/* ------------------------------------------------------------------------
 * Owners.
 */

/* The 22nd field; the second one, in parentheses, may have anything in it. */
static unsigned long long started(int pid)
{
	unsigned long long ticks = 0;
	char path[40], text[1024], *field;
	ssize_t len;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = polycm_paths()->openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	len = polycm_libc()->read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len > 0 ? len : 0] = '\0';
	field = strrchr(text, ')');
	for (int i = 2; field && i < 22; i++)
		field = strchr(field + 1, ' ');
	if (field)
		ticks = strtoull(field + 1, NULL, 10);
	return ticks;
}

static struct owner ourselves(void)
{
	struct owner owner = { .user = geteuid(), .pid = (int)getpid() };
	struct stat st;

	if (!polycm_paths()->fstatat(AT_FDCWD, "/proc/self/ns/pid", &st, 0))
		owner.space = (unsigned long)st.st_ino;
	owner.started = started(owner.pid);
	return owner;
}

static bool parse(const char *name, struct owner *owner)
{
	return sscanf(name, NAME "%u-%lu-%d-%llu-", &owner->user, &owner->space, &owner->pid,
		      &owner->started) == 4;
}

/* As mkdtemp() makes it.  The name alone says little: anybody may make or move something there. */
static bool is_own_folder(int at, const char *name)
{
	struct stat st;

	return !polycm_paths()->fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) &&
	       st.st_uid == geteuid() && (st.st_mode & (S_IFMT | 0777)) == (S_IFDIR | S_IRWXU);
}

/* Remove what processes left that were killed or became other programs, as we may be. */
static void sweep(const char *parent, const struct owner *self)
{
	DIR *dir = list_at(AT_FDCWD, parent);
	struct dirent *entry;
	struct owner owner;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (!parse(entry->d_name, &owner) || owner.user != self->user ||
		    owner.space != self->space)
			continue;
		if (!is_own_folder(dirfd(dir), entry->d_name))
			continue;
		if (owner.pid == self->pid || owner.started != started(owner.pid))
			remove_at(dirfd(dir), entry->d_name);
	}
	closedir(dir);
}

__attribute__((destructor)) static void remove_own(void)
{
	if (tree.pid != getpid())
		return;
	tree.pid = 0;
	remove_at(AT_FDCWD, tree.path);
}

/* ------------------------------------------------------------------------
 * Making.
 */

static int make_in(const char *parent, const struct owner *self)
{
	sweep(parent, self);
	(void)snprintf(tree.path, sizeof(tree.path), "%s/" NAME "%u-%lu-%d-%llu-XXXXXX", parent,
		       self->user, self->space, self->pid, self->started);
	return mkdtemp(tree.path) ? 0 : -errno;
}

static int make(void)
{
	const struct owner self = ourselves();
	int r = -ENOENT;

	for (size_t i = 0; i < NUM_PARENTS && r < 0; i++)
		r = make_in(parents[i], &self);
	if (r < 0 && !tree.failed) {
		polycm_host()->log(POLYCM_LOG_ERROR, NULL, "no folder for files of simulated "
				   "devices, in %s or %s: %s: " POLYCM_SYSFS_PREFIX
				   "class/infiniband is the host's", parents[0], parents[1],
				   strerror(-r));
		tree.failed = true;
	}
	return r;
}

void polycm_tree_forked(void)
{
	tree.pid = 0;
}

const char *polycm_tree_open(void)
{
	if (tree.pid)
		tree.fd = polycm_paths()->openat(AT_FDCWD, tree.path, FOLDER_FLAGS);
	if (tree.pid && tree.fd >= 0)
		return tree.path;
	tree.pid = 0;
	if (make() < 0)
		return NULL;
	tree.fd = polycm_paths()->openat(AT_FDCWD, tree.path, FOLDER_FLAGS);
	if (tree.fd < 0)
		return NULL;
	tree.pid = getpid();
	return tree.path;
}

void polycm_tree_close(void)
{
	close(tree.fd);
}

void polycm_tree_make_folder(const char *path)
{
	if (!mkdirat(tree.fd, path, 0755) || errno != EEXIST)
		return;
	/* Something else may have been there. */
	if (!unlinkat(tree.fd, path, 0))
		(void)mkdirat(tree.fd, path, 0755);
}

void polycm_tree_remove(const char *path)
{
	remove_at(tree.fd, path);
}

void polycm_tree_make_link(const char *path, const char *target)
{
	char old[PATH_MAX];
	ssize_t len = polycm_paths()->readlinkat(tree.fd, path, old, sizeof(old));

	if (len == (ssize_t)strlen(target) && !memcmp(old, target, (size_t)len))
		return;
	remove_at(tree.fd, path);
	(void)symlinkat(target, tree.fd, path);
}

static bool has_text(const char *path, const char *text)
{
	size_t len = strlen(text);
	char old[4096];
	ssize_t n;
	int fd;

	fd = polycm_paths()->openat(tree.fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = pread(fd, old, sizeof(old), 0);
	close(fd);
	return n == (ssize_t)len && !memcmp(old, text, len);
}

/* A reader that has the file open keeps its content, as in sysfs. */
void polycm_tree_make_file(const char *path, const char *text)
{
	size_t len = strlen(text);
	char name[32];
	int fd;

	if (has_text(path, text))
		return;
	(void)snprintf(name, sizeof(name), ".%d.%u", (int)getpid(), tree.files++);
	fd = polycm_paths()->openat(tree.fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0)
		return;
	if (write(fd, text, len) != (ssize_t)len || renameat(tree.fd, name, tree.fd, path))
		(void)unlinkat(tree.fd, name, 0);
	close(fd);
}

static bool is_named(const char *names, const char *name)
{
	size_t len = strlen(name);

	while (*names) {
		size_t line = strcspn(names, "\n");
		size_t plain = line && strchr("/@", names[line - 1]) ? line - 1 : line;

		if (plain == len && !strncmp(names, name, len))
			return true;
		names += line + (names[line] == '\n');
	}
	return false;
}

void polycm_tree_keep(const char *path, const char *names)
{
	DIR *dir = list_at(tree.fd, path);
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (!is_dots(entry->d_name) && !is_named(names, entry->d_name))
			remove_at(dirfd(dir), entry->d_name);
	closedir(dir);
}
