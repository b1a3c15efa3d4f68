/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/sysfs.c - the files that a real device has below /sys/class/infiniband/NAME, for programs
 * that read them there or through libibverbs.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "sysfs.h"
#include "verbs.h"

#define NAME_SIZE IBV_SYSFS_NAME_MAX

static bool exists(const struct sysfs_folder *folder, const struct sysfs_place *place)
{
	return !folder->exists || folder->exists(place);
}

static const struct sysfs_folder *find_folder(const struct sysfs_folder *in,
					      struct sysfs_place *place, const char *name)
{
	const struct sysfs_folder *folder = in->folders;

	for (; folder && (folder->name || folder->enter); folder++) {
		if (folder->name ? !strcmp(folder->name, name) && exists(folder, place)
				 : folder->enter(place, name))
			return folder;
	}
	return NULL;
}

/* "7"; not "07". */
static bool is_number(const char *name, unsigned int *ret_number)
{
	char *end;
	unsigned long number;

	if (*name < '0' || *name > '9' || (*name == '0' && name[1]))
		return false;
	number = strtoul(name, &end, 10);
	*ret_number = (unsigned int)number;
	return !*end && number <= UINT16_MAX;
}

static int show_file(const struct sysfs_folder *folder, struct sysfs_place *place, const char *name,
		     char *buf, size_t size)
{
	const struct sysfs_file *file = folder->files;

	if (folder->count && is_number(name, &place->index) && place->index < folder->count(place))
		return folder->show(place, buf, size);
	for (; file && file->name; file++) {
		if (strcmp(file->name, name))
			continue;
		place->arg = file->arg;
		return file->show(place, buf, size);
	}
	return -1;
}

/* --- Lists. --- */

struct names {
	char *buf;
	size_t size;
	int len;
};

static void put_name(struct names *names, const char *name, const char *behind)
{
	size_t at = (size_t)names->len < names->size ? (size_t)names->len : names->size - 1;

	names->len += snprintf(names->buf + at, names->size - at, "%s%s\n", name, behind);
}

static void put_numbered(struct names *names, const struct sysfs_folder *folder,
			 const struct sysfs_place *place)
{
	unsigned int num = folder->count ? folder->count(place) : 0;
	char name[NAME_SIZE];

	for (unsigned int i = 0; i < num; i++) {
		(void)snprintf(name, sizeof(name), "%u", i);
		put_name(names, name, "");
	}
}

static int list(const struct sysfs_folder *folder, const struct sysfs_place *place, char *buf,
		size_t size)
{
	struct names names = { .buf = buf, .size = size };
	const struct sysfs_file *file = folder->files;
	const struct sysfs_folder *in = folder->folders;
	char name[NAME_SIZE];

	buf[0] = '\0';
	for (; file && file->name; file++)
		put_name(&names, file->name, "");
	put_numbered(&names, folder, place);
	for (; in && (in->name || in->enter); in++) {
		if (in->name && exists(in, place))
			put_name(&names, in->name, "/");
		for (unsigned int n = 0; !in->name && in->nth(place, n, name); n++)
			put_name(&names, name, "/");
	}
	return names.len;
}

/* --- The call. --- */

static int read_path(struct sysfs_place *place, const char *path, char *buf, size_t size)
{
	const struct sysfs_folder *folder = &nic_sysfs_root;
	char name[NAME_SIZE];
	const char *slash;

	while ((slash = strchr(path, '/'))) {
		if ((size_t)(slash - path) >= sizeof(name))
			return -1;
		memcpy(name, path, (size_t)(slash - path));
		name[slash - path] = '\0';
		folder = find_folder(folder, place, name);
		if (!folder)
			return -1;
		path = slash + 1;
	}
	return *path ? show_file(folder, place, path, buf, size) : list(folder, place, buf, size);
}

int sim_read_sysfs_file(struct ibv_device *ibdev, const char *file, char *buf, size_t size)
{
	struct sysfs_place place = {
		.device = nic_container(ibdev, struct sim_device, vdev.device),
	};
	int len;

	if (!size)
		return -1;
	sim_lock();
	len = read_path(&place, file, buf, size);
	if (*file && file[strlen(file) - 1] != '/')
		len = nic_sysfs_copied_file(place.device, file, buf, size, len);
	else
		len = nic_sysfs_copied_list(place.device, file, buf, size, len);
	sim_unlock();
	/* As read(): what fits, terminated. */
	return len >= (int)size ? (int)size - 1 : len;
}
