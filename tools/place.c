/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * place.c - where things are: the library that this process runs with, and
 * the plugins of a build tree.
 *
 * Installed, the library finds its plugins beside itself.  In a build tree
 * they lie in several folders, which build-tree.conf beside the command names.
 */
#include "config.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "polycm.h"
#include "polycm/polycm.h"

/* Of libpolycm-interpose. */
const char *polycm_interposer_version(void);

#define PATH_VARIABLE "POLYCM_PROVIDER_PATH"

/* Of a build tree. */
static char *auditor, *sockets, *turn;

/* The folder with its links resolved, the name as it is: it should be the library's soname. */
static char *absolute(const char *path)
{
	char *folder = tool_strdup(path), *name = tool_strdup(path);
	char *real = realpath(dirname(folder), NULL), *result = NULL;

	if (real)
		result = tool_printf("%s/%s", strcmp(real, "/") ? real : "", basename(name));
	free(real);
	free(name);
	free(folder);
	return result;
}

/* Of a string inside the library: the address of a function may be the command's own stub. */
static char *file_of(const char *version, const char *name)
{
	Dl_info found;
	char *path = NULL;

	if (dladdr(version, &found) && found.dli_fname)
		path = absolute(found.dli_fname);
	if (!path)
		tool_error("cannot find out where %s is", name);
	return path;
}

const char *place_library(void)
{
	static char *path;

	if (!path)
		path = file_of(polycm_version(), "libpolycm");
	return path;
}

const char *place_interposer(void)
{
	static char *path;

	if (!path)
		path = file_of(polycm_interposer_version(), "libpolycm-interpose");
	return path;
}

/* No program is linked with them: they are beside libpolycm. */
static void find_beside(const char *name, char **path)
{
	char *folder;

	if (*path || !place_library())
		return;
	folder = tool_strdup(place_library());
	*path = tool_printf("%s/%s", dirname(folder), name);
	free(folder);
}

const char *place_auditor(void)
{
	find_beside("libpolycm-audit.so", &auditor);
	return auditor && !access(auditor, R_OK) ? auditor : NULL;
}

/* NULL after an error message, which begins with the option that needs it. */
static const char *needed(const char *option, const char *name, char **path)
{
	find_beside(name, path);
	if (*path && !access(*path, R_OK))
		return *path;
	if (*path)
		tool_error("%s: %s: %m", option, *path);
	return NULL;
}

const char *place_sockets(void)
{
	return needed("--sockets", "libpolycm-sockets.so", &sockets);
}

const char *place_turn(void)
{
	return needed("run: --on", "libpolycm-turn.so", &turn);
}

char *place_plugin(const char *name)
{
	const char *folders = getenv(PATH_VARIABLE), *next;
	char *beside = NULL, *path;

	for (; folders && *folders; folders = *next ? next + 1 : next) {
		next = strchrnul(folders, ':');
		path = tool_printf("%.*s/provider-%s.so", (int)(next - folders), folders, name);
		if (!access(path, R_OK))
			return path;
		free(path);
	}
	path = tool_printf("polycm/provider-%s.so", name);
	find_beside(path, &beside);
	free(path);
	if (beside && !access(beside, R_OK))
		return beside;
	free(beside);
	return NULL;
}

static bool same_file(const char *a, const char *b)
{
	char *real_a = realpath(a, NULL), *real_b = realpath(b, NULL);
	bool same = real_a && real_b && !strcmp(real_a, real_b);

	free(real_a);
	free(real_b);
	return same;
}

/* build-tree.conf of the tree that this command was built in, or NULL. */
static FILE *open_build_tree(void)
{
	char exe[PATH_MAX], *folder, *name;
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	FILE *file;

	if (len < 0)
		return NULL;
	exe[len] = '\0';
	folder = dirname(exe);
	/* libtool keeps the program in a folder of its own. */
	len = (ssize_t)strlen(folder);
	if (len > 6 && !strcmp(folder + len - 6, "/.libs"))
		folder[len - 6] = '\0';
	name = tool_printf("%s/build-tree.conf", folder);
	file = fopen(name, "re");
	free(name);
	return file;
}

/* After the folders that the user gave. */
static void add_provider_path(const char *folders)
{
	const char *given = getenv(PATH_VARIABLE);
	char *both;

	if (!given || !given[0]) {
		setenv(PATH_VARIABLE, folders, 1);
		return;
	}
	if (strstr(given, folders))
		return;
	both = tool_printf("%s:%s", given, folders);
	setenv(PATH_VARIABLE, both, 1);
	free(both);
}

char *place_command(void)
{
	char exe[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (len < 0)
		return tool_strdup("polycm");
	exe[len] = '\0';
	return tool_strdup(exe);
}

void place_setup(void)
{
	FILE *file = open_build_tree();
	char *line = NULL;
	size_t size = 0;
	bool ours = false;

	if (!file)
		return;
	while (getline(&line, &size, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		/* An installed library has its own plugins. */
		if (!strncmp(line, "library=", 8))
			ours = place_library() && same_file(line + 8, place_library());
		else if (ours && !strncmp(line, "providers=", 10))
			add_provider_path(line + 10);
		else if (ours && !auditor && !strncmp(line, "auditor=", 8))
			auditor = tool_strdup(line + 8);
		else if (ours && !sockets && !strncmp(line, "sockets=", 8))
			sockets = tool_strdup(line + 8);
		else if (ours && !turn && !strncmp(line, "turn=", 5))
			turn = tool_strdup(line + 5);
	}
	free(line);
	fclose(file);
}
