/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/sysfs_walk.c - follows a path below /sys through folders and links, as the kernel
 * would, and makes what it finds on the way.
 */
#include "config.h"

#include "sysfs.h"

#include <stdio.h>
#include <string.h>

#include "host.h"

#define TEXT_SIZE 65536			/* a list of some thousand devices */
#define MAX_LINKS 40			/* as in the kernel */

struct walk {
	unsigned int use, links;
	bool is_outside;		/* `rest' is below the root folder */
	char at[PATH_MAX];		/* without links; "" is /sys */
	char rest[PATH_MAX];
	char text[TEXT_SIZE];		/* of the last thing that was looked at */
};

static int read_at(struct walk *walk, const char *path)
{
	return polycm_host()->sysfs_read(path, walk->text, sizeof(walk->text));
}

/* To the parent. */
static void go_up(char *path)
{
	char *slash = strrchr(path, '/');

	*(slash ? slash : path) = '\0';
}

static int go_down(char *path, const char *name, size_t len)
{
	size_t at = strlen(path);

	if (at + len + 2 > PATH_MAX)
		return -ENAMETOOLONG;
	(void)snprintf(path + at, PATH_MAX - at, "%s%.*s", at ? "/" : "", (int)len, name);
	return 0;
}

/* A path relative to a folder, by names alone. */
static int join(char *path, const char *relative)
{
	int r = 0;

	while (*relative && !r) {
		size_t len = strcspn(relative, "/");

		if (len == 2 && !strncmp(relative, "..", 2))
			go_up(path);
		else if (len && !(len == 1 && *relative == '.'))
			r = go_down(path, relative, len);
		relative += len + (relative[len] == '/');
	}
	return r;
}

/* A link that leads to the host's own files must do that from our folder, too. */
static void make_link(const char *path, const char *target)
{
	char to[PATH_MAX], absolute[PATH_MAX + sizeof(POLYCM_SYSFS_PREFIX)], unused[1];
	bool is_host;

	(void)snprintf(to, sizeof(to), "%s", path);
	go_up(to);
	is_host = !join(to, target) &&
		  polycm_host()->sysfs_read(to, unused, sizeof(unused)) == -EXDEV;
	(void)snprintf(absolute, sizeof(absolute), POLYCM_SYSFS_PREFIX "%s", to);
	polycm_tree_make_link(path, is_host ? absolute : target);
}

/* What is called so in a folder that is listed; `walk->text' is overwritten. */
static int make_entry(struct walk *walk, const char *path)
{
	int kind = read_at(walk, path);

	if (kind == POLYCM_SYSFS_FOLDER)
		polycm_tree_make_folder(path);
	else if (kind == POLYCM_SYSFS_LINK)
		make_link(path, walk->text);
	else if (kind == POLYCM_SYSFS_FILE || kind == -EINVAL)
		polycm_tree_make_file(path, kind == -EINVAL ? "" : walk->text);
	else if (kind == -ENOENT)
		polycm_tree_remove(path);
	return kind;
}

/* All that is in a folder, of which `walk->text' is the list. */
static void fill(struct walk *walk, char *path)
{
	char *names = strdup(walk->text), *rest = names, *name;
	size_t len = strlen(path);

	if (!names)
		return;
	polycm_tree_keep(path, names);
	while ((name = strsep(&rest, "\n"))) {
		size_t name_len = strlen(name);

		if (!name_len)
			continue;
		if (strchr("/@", name[name_len - 1]))
			name_len--;
		if (!go_down(path, name, name_len) &&
		    make_entry(walk, path) == POLYCM_SYSFS_FOLDER && walk->use & POLYCM_SYSFS_LISTS_ALL)
			fill(walk, path);
		path[len] = '\0';
	}
	free(names);
}

/* Folders of the host that lead to ours. */
static void make_parents(const char *path)
{
	char parent[PATH_MAX];

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		(void)snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
		if (polycm_host()->sysfs_read(parent, (char[1]){ 0 }, 1) != -EXDEV)
			break;
		polycm_tree_make_folder(parent);
	}
}

static int follow(struct walk *walk)
{
	char rest[PATH_MAX];

	if (++walk->links > MAX_LINKS)
		return -ELOOP;
	if ((size_t)snprintf(rest, sizeof(rest), "%s/%s", walk->text, walk->rest) >= sizeof(rest))
		return -ENAMETOOLONG;
	memcpy(walk->rest, rest, strlen(rest) + 1);
	return 0;
}

/* From /sys to the root folder, which has all else, and from which a path may come back. */
static int leave(struct walk *walk)
{
	const char *rest = walk->rest;

	for (;;) {
		size_t len;

		rest += strspn(rest, "/");
		len = strcspn(rest, "/");
		/* The root folder is its own parent. */
		if (len && len <= 2 && !strncmp(rest, "..", len)) {
			rest += len;
			continue;
		}
		walk->is_outside = len != 3 || strncmp(rest, "sys", 3) != 0;
		rest += walk->is_outside ? 0 : len;
		break;
	}
	memmove(walk->rest, rest, strlen(rest) + 1);
	return -EXDEV;
}

/*
 * One name of the path: POLYCM_SYSFS_* of what is there, -EXDEV for what is the host's, -ENOENT,
 * -EINVAL, or another error.  A link that is followed leaves `at' as it was.
 */
static int step(struct walk *walk, size_t len)
{
	bool is_last = !walk->rest[len];
	char name[NAME_MAX + 1];
	int kind;

	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	(void)snprintf(name, sizeof(name), "%.*s", (int)len, walk->rest);
	memmove(walk->rest, walk->rest + len, strlen(walk->rest + len) + 1);
	if (!strcmp(name, "..")) {
		if (!*walk->at)
			return leave(walk);
		go_up(walk->at);
		return read_at(walk, walk->at);
	}
	kind = go_down(walk->at, name, len);
	if (kind)
		return kind;
	make_parents(walk->at);
	kind = make_entry(walk, walk->at);
	if (kind != POLYCM_SYSFS_LINK || (is_last && walk->use & POLYCM_SYSFS_LINK_ITSELF))
		return kind;
	go_up(walk->at);
	kind = follow(walk);
	return kind ? kind : POLYCM_SYSFS_LINK;
}

static int run(struct walk *walk)
{
	int kind = -EXDEV;

	for (;;) {
		size_t len;

		while (*walk->rest == '/')
			memmove(walk->rest, walk->rest + 1, strlen(walk->rest));
		len = strcspn(walk->rest, "/");
		if (!len)
			break;
		if (len == 1 && *walk->rest == '.') {
			memmove(walk->rest, walk->rest + 1, strlen(walk->rest));
			continue;
		}
		kind = step(walk, len);
		/* Below a file, or what is not there, the kernel finds nothing either. */
		if (kind == POLYCM_SYSFS_FILE || kind == -EINVAL || (kind < 0 && kind != -EXDEV) ||
		    walk->is_outside)
			break;
	}
	return kind;
}

static void finish(struct walk *walk, int kind, const char *root, struct polycm_sysfs_place *place)
{
	bool lists = walk->use & (POLYCM_SYSFS_LISTS | POLYCM_SYSFS_LISTS_ALL);

	if (walk->is_outside) {
		place->is_host = true;
		(void)snprintf(place->shown, sizeof(place->shown), "/%s", walk->rest);
		(void)snprintf(place->path, sizeof(place->path), "/%s", walk->rest);
		return;
	}
	if (kind == POLYCM_SYSFS_FOLDER && lists &&
	    read_at(walk, walk->at) == POLYCM_SYSFS_FOLDER)
		fill(walk, walk->at);
	/* Nothing is below a file: the kernel says so of the path. */
	if ((kind == POLYCM_SYSFS_FILE || kind == -EINVAL) && *walk->rest)
		kind = -ENOTDIR;
	place->unreadable = kind == -EINVAL;
	place->is_host = kind == -EXDEV;
	place->kind = kind == -EINVAL ? POLYCM_SYSFS_FILE : kind > 0 ? kind : 0;
	(void)snprintf(place->shown, sizeof(place->shown), POLYCM_SYSFS_PREFIX "%s%s", walk->at,
		       walk->rest);
	(void)snprintf(place->path, sizeof(place->path), "%s/%s%s",
		       place->is_host ? "/sys" : root, walk->at, walk->rest);
}

static int walk_in(const char *root, const char *path, unsigned int use,
		   struct polycm_sysfs_place *place)
{
	struct walk *walk = calloc(1, sizeof(*walk));
	int kind;

	if (!walk)
		return -ENOMEM;
	walk->use = use;
	(void)snprintf(walk->rest, sizeof(walk->rest), "%s", path);
	kind = run(walk);
	if (kind >= 0 || kind == -ENOENT || kind == -EINVAL || kind == -EXDEV) {
		finish(walk, kind, root, place);
		kind = 0;
	}
	free(walk);
	return kind;
}

int polycm_sysfs_walk(const char *path, unsigned int use, struct polycm_sysfs_place *place)
{
	const char *root = polycm_tree_open();
	int r;

	if (!root)
		return -ENOENT;
	r = walk_in(root, path, use, place);
	polycm_tree_close();
	return r;
}
