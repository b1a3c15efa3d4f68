/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device.c - finds the profile of a device by its name.
 *
 * Profiles are in share/polycm/devices of the tree that this plugin is in (so that a tree that
 * was moved finds its own), else in the configured folder.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "include/list_folder.h"

#define IN_TREE "/share/polycm/devices"
#define CONFIGURED POLYCM_PKGDATADIR "/devices"

/* From the folder of the plugin upwards. */
static bool find_in_tree(char folder[PATH_MAX])
{
	static const char in_this_plugin;
	Dl_info found;
	char *slash;

	if (!dladdr(&in_this_plugin, &found) || !found.dli_fname || !realpath(found.dli_fname, folder))
		return false;
	while ((slash = strrchr(folder, '/'))) {
		snprintf(slash, (size_t)(folder + PATH_MAX - slash), IN_TREE);
		if (!access(folder, F_OK))
			return true;
		*slash = '\0';
	}
	return false;
}

static void find_folder(char ret_folder[PATH_MAX])
{
	if (!find_in_tree(ret_folder))
		snprintf(ret_folder, PATH_MAX, "%s", CONFIGURED);
}

static int unknown(const char *folder, char ret_why[DEVICE_WHY])
{
	struct dirent **entries;
	size_t len;
	int num;

	len = (size_t)snprintf(ret_why, DEVICE_WHY, "no device has that name (a file's has a slash); "
			       "there are:");
	num = list_folder(folder, &entries);
	if (num < 0) {
		snprintf(ret_why + len, DEVICE_WHY - len, " none: %.300s: %s", folder, strerror(errno));
		return -ENOENT;
	}
	for (int i = 0; i < num; i++) {
		len = strlen(ret_why);
		snprintf(ret_why + len, DEVICE_WHY - len, " %s", entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return -ENOENT;
}

int device_profile(const char *name, struct sim_profile *ret_profile, char ret_why[DEVICE_WHY])
{
	char folder[PATH_MAX], path[PATH_MAX + NAME_MAX], real[PATH_MAX];
	int r;

	if (!strchr(name, '/')) {
		find_folder(folder);
		snprintf(path, sizeof(path), "%s/%s", folder, name);
		if (!*name || *name == '.' || access(path, F_OK) < 0)
			return unknown(folder, ret_why);
		name = path;
	}
	r = sim_profile_read(realpath(name, real) ? real : name, ret_profile, ret_why, DEVICE_WHY);
	if (r < 0 && !*ret_why)
		snprintf(ret_why, DEVICE_WHY, "%s", strerror(-r));
	return r;
}
