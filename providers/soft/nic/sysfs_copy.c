/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/sysfs_copy.c - what a device has in /sys beyond our own files, if its profile comes with a
 * copy of the host's folder.  Names and constants are the host's; whatever lives is ours.
 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/list_folder.h"
#include "providers/soft/fabric/profile.h"
#include "sysfs.h"

#define PATH_SIZE 1024

/* Says what the device is, so the host knows better. */
static bool is_identity(const char *path)
{
	static const char *const names[] = { "board_id", "hca_type", "hw_rev", "node_desc" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(path, names[i]))
			return true;
	return false;
}

/* The names are the host's.  What it counted is not. */
static bool is_counter(const char *path)
{
	return strstr(path, "/counters/") || strstr(path, "hw_counters/");
}

/* Addresses belong to the network that a device is in. */
static bool is_of_network(const char *path)
{
	return strstr(path, "/gids/") || strstr(path, "/gid_attrs/") || strstr(path, "/pkeys/");
}

/* Where it would be in the copy; false: there is no copy that counts. */
static bool place(const struct sim_device *device, const char *path, char real[PATH_SIZE])
{
	const struct sim_profile *profile = device->profile;
	int len;

	if (!profile || !profile->sysfs[0] || is_of_network(path) || strstr(path, ".."))
		return false;
	len = snprintf(real, PATH_SIZE, "%s/%s", profile->sysfs, path);
	return len > 0 && len < PATH_SIZE;
}

static bool find(const struct sim_device *device, const char *path, char real[PATH_SIZE])
{
	return place(device, path, real) && !access(real, F_OK);
}

/* The host has counters there, and not this one. */
static bool is_not_counted(const struct sim_device *device, const char *path)
{
	char real[PATH_SIZE];

	if (!is_counter(path) || !place(device, path, real) || !access(real, F_OK))
		return false;
	*strrchr(real, '/') = '\0';
	return !access(real, F_OK);
}

/* Without the end of its line, as our own files. */
static int read_text(const char *real, char *buf, size_t size)
{
	int fd = open(real, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	ssize_t len = -1;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		len = read(fd, buf, size - 1);
	close(fd);
	if (len < 0)
		return -1;
	if (len && buf[len - 1] == '\n')
		len--;
	buf[len] = '\0';
	return (int)len;
}

int nic_sysfs_copied_file(const struct sim_device *device, const char *path, char *buf, size_t size,
			  int len)
{
	char real[PATH_SIZE];

	if (is_not_counted(device, path))
		return -1;
	if (!find(device, path, real) || (len >= 0 && !is_identity(path)))
		return len;
	return is_counter(path) ? snprintf(buf, size, "0") : read_text(real, buf, size);
}

/* Is the name, with what is behind it, a line of the list? */
static bool is_listed(const char *list, const char *name, size_t len)
{
	for (; *list; list += strcspn(list, "\n"), list += *list == '\n')
		if (!strncmp(list, name, len) && list[len] == '\n')
			return true;
	return false;
}

static int append(const char *folder, const char *name, char *buf, size_t size, int len)
{
	char line[PATH_SIZE], real[PATH_SIZE];
	struct stat st;
	int n;

	n = snprintf(real, sizeof(real), "%s/%s", folder, name);
	if (n < 0 || (size_t)n >= sizeof(real) || lstat(real, &st) < 0 ||
	    (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return len;
	n = snprintf(line, sizeof(line), "%s%s", name, S_ISDIR(st.st_mode) ? "/" : "");
	if ((size_t)len + (size_t)n + 2 > size || is_listed(buf, line, (size_t)n))
		return len;
	return len + snprintf(buf + len, size - (size_t)len, "%s\n", line);
}

int nic_sysfs_copied_list(const struct sim_device *device, const char *path, char *buf, size_t size,
			  int len)
{
	struct dirent **entries;
	char real[PATH_SIZE];
	int num;

	if (!find(device, path, real) || len >= (int)size)
		return len;
	num = list_folder(real, &entries);
	if (num < 0)
		return len;
	if (len < 0 || is_counter(path)) {
		len = 0;
		buf[0] = '\0';
	}
	for (int i = 0; i < num; i++) {
		len = append(real, entries[i]->d_name, buf, size, len);
		free(entries[i]);
	}
	free(entries);
	return len;
}
