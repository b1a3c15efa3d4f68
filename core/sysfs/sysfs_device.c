/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sysfs/sysfs_device.c - the folder of a card: the files of its device come from the provider,
 * what every device has is made here.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/verbs/table.h"
#include "sysfs_internal.h"

#define LIST_SIZE 16384
#define FILE_SIZE 4096			/* as in sysfs */
#define PATH_SIZE 512

/* A name that a folder has beside what the provider lists. */
struct own {
	const char *name;
	int kind;
	/* The target of the link or the content of the file. */
	void (*put)(const struct ibv_device *device, struct sysfs_text *to);
};

/* ------------------------------------------------------------------------
 * The provider's files.
 */

/* For providers that cannot list, what programs ask for. */
static const char *const usual[] = {
	"board_id", "fw_ver", "hca_type", "hw_rev", "node_desc", "node_guid", "node_type",
	"sys_image_guid",
};

static int ask(struct polycm_verbs_device *device, const char *file, char *buf, size_t size)
{
	int len = shim_table(&device->device)->read_sysfs_file(&device->device, file, buf, size);

	if (len < 0 || (size_t)len >= size)
		return -1;
	buf[len] = '\0';
	return len;
}

/* The names in a folder of the provider's, "" or "ports/1/", one a line. */
static int list(struct polycm_verbs_device *device, const char *folder, char names[static LIST_SIZE])
{
	struct sysfs_text to = { .buf = names, .size = LIST_SIZE };
	char text[FILE_SIZE];
	int len = ask(device, folder, names, LIST_SIZE);

	if (len >= 0 || *folder)
		return len;
	names[0] = '\0';
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (ask(device, usual[i], text, sizeof(text)) >= 0)
			sysfs_put(&to, "%s\n", usual[i]);
	return (int)to.len;
}

/* Is the name, of so many bytes, in the list?  0, or the kind of it. */
static int listed(const char *names, const char *name, size_t len)
{
	while (*names) {
		size_t line = strcspn(names, "\n");

		if (line >= len && !strncmp(names, name, len)) {
			if (line == len)
				return POLYCM_SYSFS_FILE;
			if (line == len + 1 && names[len] == '/')
				return POLYCM_SYSFS_FOLDER;
		}
		names += line + (names[line] == '\n');
	}
	return 0;
}

static int read_file(struct polycm_verbs_device *device, const char *path, struct sysfs_text *to)
{
	char text[FILE_SIZE];

	if (ask(device, path, text, sizeof(text)) < 0)
		return -EINVAL;		/* as sysfs says of an entry that is not used */
	sysfs_put(to, "%s\n", text);
	return POLYCM_SYSFS_FILE;
}

/* `path': as the provider knows it, without a slash at its end. */
static int read_given(struct polycm_verbs_device *device, const char *path, struct sysfs_text *to)
{
	char folder[PATH_SIZE], names[LIST_SIZE];
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	int kind;

	if (!*path) {
		kind = POLYCM_SYSFS_FOLDER;
		folder[0] = '\0';
	} else {
		if (strlen(path) + 2 > sizeof(folder))
			return -ENAMETOOLONG;
		(void)snprintf(folder, sizeof(folder), "%.*s", (int)(name - path), path);
		if (list(device, folder, names) < 0)
			return -ENOENT;
		kind = listed(names, name, strlen(name));
		(void)snprintf(folder, sizeof(folder), "%s/", path);
	}
	if (!kind)
		return -ENOENT;
	if (kind == POLYCM_SYSFS_FILE)
		return read_file(device, path, to);
	if (list(device, folder, names) >= 0)
		sysfs_put(to, "%s", names);
	return kind;
}

/* ------------------------------------------------------------------------
 * What every device has.
 */

static void put_card_link(const struct ibv_device *device, struct sysfs_text *to)
{
	char card[SYSFS_CARD_SIZE];

	sysfs_card(device, card);
	sysfs_put(to, "../../../%s", strrchr(card, '/') + 1);
}

static void put_class_link(const struct ibv_device *device, struct sysfs_text *to)
{
	(void)device;
	sysfs_put(to, "../../../../../class/%s", sysfs_infiniband.name);
}

static void put_verbs_class_link(const struct ibv_device *device, struct sysfs_text *to)
{
	(void)device;
	sysfs_put(to, "../../../../../class/%s", sysfs_verbs.name);
}

static void put_bus_link(const struct ibv_device *device, struct sysfs_text *to)
{
	(void)device;
	sysfs_put(to, "../../../bus/pci");
}

static void put_uevent(const struct ibv_device *device, struct sysfs_text *to)
{
	sysfs_put(to, "NAME=%s\n", device->name);
}

static void put_abi_version(const struct ibv_device *device, struct sysfs_text *to)
{
	(void)device;
	sysfs_put(to, "1\n");
}

static void put_node(const struct ibv_device *device, struct sysfs_text *to)
{
	sysfs_put(to, "%u:%u\n", POLYCM_NODE_MAJOR, POLYCM_NODE_MINOR + sysfs_number(device));
}

static void put_ibdev(const struct ibv_device *device, struct sysfs_text *to)
{
	sysfs_put(to, "%s\n", device->name);
}

static void put_verbs_uevent(const struct ibv_device *device, struct sysfs_text *to)
{
	sysfs_put(to, "MAJOR=%u\nMINOR=%u\nDEVNAME=infiniband/%s\nDEVMODE=0666\n", POLYCM_NODE_MAJOR,
		  POLYCM_NODE_MINOR + sysfs_number(device), device->dev_name);
}

static const struct own of_card[] = {
	{ "subsystem", POLYCM_SYSFS_LINK, put_bus_link },
	{ NULL, 0, NULL },
};

static const struct own of_device[] = {
	{ "device", POLYCM_SYSFS_LINK, put_card_link },
	{ "subsystem", POLYCM_SYSFS_LINK, put_class_link },
	{ "uevent", POLYCM_SYSFS_FILE, put_uevent },
	{ NULL, 0, NULL },
};

static const struct own of_verbs[] = {
	{ "abi_version", POLYCM_SYSFS_FILE, put_abi_version },
	{ "dev", POLYCM_SYSFS_FILE, put_node },
	{ "device", POLYCM_SYSFS_LINK, put_card_link },
	{ "ibdev", POLYCM_SYSFS_FILE, put_ibdev },
	{ "subsystem", POLYCM_SYSFS_LINK, put_verbs_class_link },
	{ "uevent", POLYCM_SYSFS_FILE, put_verbs_uevent },
	{ NULL, 0, NULL },
};

static void list_own(const struct own *own, struct sysfs_text *to)
{
	for (; own->name; own++)
		sysfs_put(to, "%s%s\n", own->name, own->kind == POLYCM_SYSFS_LINK ? "@" : "");
}

static int read_own(const struct own *own, const struct ibv_device *device, const char *name,
		    struct sysfs_text *to)
{
	for (; own->name; own++)
		if (!strcmp(own->name, name)) {
			own->put(device, to);
			return own->kind;
		}
	return -ENOENT;
}

/* ------------------------------------------------------------------------
 * Folders.
 */

/* Of a line that names a folder, its own list has another entry of that name: "device" is a link. */
static void put_all_but_card(const char *names, struct sysfs_text *to)
{
	while (*names) {
		size_t line = strcspn(names, "\n");

		if (strncmp(names, "device/", line))
			sysfs_put(to, "%.*s\n", (int)line, names);
		names += line + (names[line] == '\n');
	}
}

static int read_device(struct polycm_verbs_device *device, const char *path, struct sysfs_text *to)
{
	char names[LIST_SIZE];
	int kind;

	if (!*path) {
		list_own(of_device, to);
		if (list(device, "", names) >= 0)
			put_all_but_card(names, to);
		return POLYCM_SYSFS_FOLDER;
	}
	kind = read_own(of_device, &device->device, path, to);
	return kind == -ENOENT ? read_given(device, path, to) : kind;
}

static int read_verbs(const struct polycm_verbs_device *device, const char *path,
		      struct sysfs_text *to)
{
	if (*path)
		return read_own(of_verbs, &device->device, path, to);
	list_own(of_verbs, to);
	return POLYCM_SYSFS_FOLDER;
}

/* infiniband[/NAME[/...]] and infiniband_verbs[/uverbsN[/...]]; -EXDEV: neither. */
static int read_class_folder(struct polycm_verbs_device *device, const struct sysfs_class *class,
			     const char *path, struct sysfs_text *to)
{
	const char *name = class->entry(&device->device);
	size_t len = strlen(class->name), name_len = strlen(name);

	if (strncmp(path, class->name, len) || (path[len] && path[len] != '/'))
		return -EXDEV;
	if (!path[len]) {
		sysfs_put(to, "%s/\n", name);
		return POLYCM_SYSFS_FOLDER;
	}
	path += len + 1;
	if (strncmp(path, name, name_len) || (path[name_len] && path[name_len] != '/'))
		return -ENOENT;
	path += name_len + (path[name_len] == '/');
	return class == &sysfs_verbs ? read_verbs(device, path, to) : read_device(device, path, to);
}

int sysfs_read_card(struct polycm_verbs_device *device, const char *path, struct sysfs_text *to)
{
	char given[PATH_SIZE];
	int kind;

	kind = read_class_folder(device, &sysfs_infiniband, path, to);
	if (kind == -EXDEV)
		kind = read_class_folder(device, &sysfs_verbs, path, to);
	if (kind != -EXDEV)
		return kind;
	if (!*path) {
		sysfs_put(to, "%s/\n%s/\n", sysfs_infiniband.name, sysfs_verbs.name);
		list_own(of_card, to);
	}
	kind = *path ? read_own(of_card, &device->device, path, to) : -ENOENT;
	if (kind != -ENOENT)
		return kind;
	if ((size_t)snprintf(given, sizeof(given), "device%s%s", *path ? "/" : "", path) >=
	    sizeof(given))
		return -ENAMETOOLONG;
	kind = read_given(device, given, to);
	if (kind == POLYCM_SYSFS_FILE && !strcmp(path, "uevent")) {
		sysfs_card(&device->device, given);
		sysfs_put(to, "PCI_SLOT_NAME=%s\n", strrchr(given, '/') + 1);
	}
	return kind == -ENOENT && !*path ? POLYCM_SYSFS_FOLDER : kind;
}
