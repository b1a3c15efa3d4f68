/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin/find.c - which plugin files there are.
 *
 * Folders in order: those of POLYCM_PROVIDER_PATH, "polycm" beside the file
 * that libpolycm itself was loaded from (so that a tree that was moved finds
 * its own), the configured one.  Inside a folder files are taken in the byte
 * order of their names.  Nothing is opened here.
 */
#include "config.h"

#include "plugin_internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/log.h"
#include "include/list_folder.h"
#include "options.h"

#define FILE_PREFIX "provider-"
#define FILE_SUFFIX ".so"

const char *polycm_installed_folder = POLYCM_PKGLIBDIR;

struct search {
	struct provider_folders folders;
	struct provider_file *files;
	size_t num;
};

bool polycm_provider_name_valid(const char *name)
{
	size_t len = strnlen(name, PROVIDER_NAME_MAX + 1);

	return len && len <= PROVIDER_NAME_MAX && name[0] >= 'a' && name[0] <= 'z' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == len;
}

void polycm_provider_prefix(const char *name, char *buf, size_t size)
{
	snprintf(buf, size, "POLYCM_%s_", name);
	for (char *c = buf; *c; c++) {
		if (*c >= 'a' && *c <= 'z')
			*c = (char)(*c - 'a' + 'A');
		else if (*c == '-')
			*c = '_';
	}
}

/* The file is provider-NAME.so: NAME into buf. */
static bool name_of_file(const char *file, char *buf, size_t size)
{
	size_t prefix = strlen(FILE_PREFIX), suffix = strlen(FILE_SUFFIX), len = strlen(file);

	if (len <= prefix + suffix || strncmp(file, FILE_PREFIX, prefix) ||
	    strcmp(file + len - suffix, FILE_SUFFIX) != 0)
		return false;
	len -= prefix + suffix;
	if (len >= size)
		len = size - 1;	/* too long to be valid, too */
	memcpy(buf, file + prefix, len);
	buf[len] = '\0';
	return true;
}

static const struct provider_file *find_name(const struct search *search, const char *name)
{
	for (size_t i = 0; i < search->num; i++)
		if (!strcmp(search->files[i].name, name))
			return &search->files[i];
	return NULL;
}

static int add_file(struct search *search, const char *folder, const char *name, const char *file)
{
	struct provider_file *longer, *added;
	struct stat st;

	longer = realloc(search->files, (search->num + 1) * sizeof(*longer));
	if (!longer)
		return -ENOMEM;
	search->files = longer;
	added = &longer[search->num];
	*added = (struct provider_file){ .folder = folder, .name = strdup(name) };
	if (!added->name || asprintf(&added->path, "%s/%s", folder, file) < 0) {
		free(added->name);
		return -ENOMEM;
	}

	/* Opening a pipe, say, would wait for its writer. */
	if (stat(added->path, &st) < 0)
		added->problem = strdup(strerror(errno));
	else if (!S_ISREG(st.st_mode))
		added->problem = strdup("not a regular file");
	search->num++;
	return 0;
}

static int look_at(struct search *search, const char *folder, const char *file)
{
	const struct provider_file *other;
	char name[PROVIDER_NAME_MAX + 2];

	if (!name_of_file(file, name, sizeof(name)))
		return 0;
	if (!polycm_provider_name_valid(name)) {
		polycm_log(POLYCM_LOG_WARN, "%s/%s skipped: not a valid name of a provider",
			   folder, file);
		return 0;
	}
	other = find_name(search, name);
	if (other) {
		polycm_log(POLYCM_LOG_INFO, "%s/%s skipped: %s comes first", folder, file,
			   other->path);
		return 0;
	}
	return add_file(search, folder, name, file);
}

static bool is_known_folder(const struct search *search, const char *folder)
{
	struct stat st, other;

	if (stat(folder, &st) < 0)
		return false;
	for (size_t i = 0; i < search->folders.num; i++)
		if (!stat(search->folders.paths[i], &other) && other.st_dev == st.st_dev &&
		    other.st_ino == st.st_ino)
			return true;
	return false;
}

/* given: the user named the folder, so an error is a warning. */
static int look_in(struct search *search, const char *folder, bool given)
{
	struct dirent **entries;
	char **longer, *copy;
	int num, r = 0;

	if (is_known_folder(search, folder))
		return 0;
	longer = realloc(search->folders.paths, (search->folders.num + 1) * sizeof(*longer));
	if (!longer)
		return -ENOMEM;
	search->folders.paths = longer;
	copy = strdup(folder);
	if (!copy)
		return -ENOMEM;
	longer[search->folders.num++] = copy;

	num = list_folder(copy, &entries);
	if (num < 0) {
		polycm_log(given ? POLYCM_LOG_WARN : POLYCM_LOG_DEBUG,
			   "no providers from folder %s: %s", copy, strerror(errno));
		return errno == ENOMEM ? -ENOMEM : 0;
	}
	for (int i = 0; i < num; i++) {
		if (!r)
			r = look_at(search, copy, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return r;
}

/* Modules are opened by absolute path only. */
static int look_in_path(struct search *search, const char *path)
{
	char *copy = strdup(path), *rest = copy, *folder;
	int r = 0;

	if (!copy)
		return -ENOMEM;
	while (!r && (folder = strsep(&rest, ":"))) {
		char *absolute = NULL;

		if (!*folder)
			continue;
		if (*folder != '/')
			absolute = realpath(folder, NULL);
		if (*folder != '/' && !absolute)
			polycm_log(POLYCM_LOG_WARN, "no providers from folder %s: %s", folder,
				   strerror(errno));
		else
			r = look_in(search, absolute ? absolute : folder, true);
		free(absolute);
	}
	free(copy);
	return r;
}

static int look_beside_us(struct search *search)
{
	char *file, *slash, *folder;
	Dl_info info;
	int r = 0;

	if (!dladdr((void *)(uintptr_t)polycm_files_find, &info) || !info.dli_fname)
		return 0;
	file = realpath(info.dli_fname, NULL);
	if (!file)
		return 0;
	slash = strrchr(file, '/');
	*slash = '\0';
	if (asprintf(&folder, "%s/polycm", file) < 0) {
		r = -ENOMEM;
	} else {
		struct stat st;

		if (!stat(folder, &st) && S_ISDIR(st.st_mode))
			r = look_in(search, folder, false);
		free(folder);
	}
	free(file);
	return r;
}

static void forget(struct search *search)
{
	for (size_t i = 0; i < search->num; i++) {
		free(search->files[i].name);
		free(search->files[i].path);
		free(search->files[i].problem);
	}
	free(search->files);
	for (size_t i = 0; i < search->folders.num; i++)
		free(search->folders.paths[i]);
	free(search->folders.paths);
}

int polycm_files_find(struct provider_folders *ret_folders, struct provider_file **ret_files,
		      size_t *ret_num)
{
	struct search search = { .num = 0 };
	int r;

	r = look_in_path(&search, polycm_setting("POLYCM_PROVIDER_PATH"));
	if (!r)
		r = look_beside_us(&search);
	if (!r)
		r = look_in(&search, polycm_installed_folder, false);
	if (r < 0) {
		forget(&search);
		return r;
	}
	*ret_folders = search.folders;
	*ret_files = search.files;
	*ret_num = search.num;
	return 0;
}
