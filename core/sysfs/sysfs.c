/* SPDX-License-Identifier: BSD-2-Clause */
/* sysfs/sysfs.c - the classes, and which device a path leads to. */
#include "config.h"

#include "sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/interposer.h"
#include "core/device/device.h"
#include "core/plugin/registry.h"
#include "core/verbs/table.h"
#include "sysfs_internal.h"

#define CARDS_PER_BUS 32u
#define BUS_FOLDER "devices/pciffff:"	/* a domain that no host has */

/* The devices that the program sees. */
struct view {
	struct polycm_device **devices;
	size_t num;
	bool only_simulated;
};

void sysfs_put(struct sysfs_text *to, const char *format, ...)
{
	size_t room = to->len < to->size ? to->size - to->len : 0;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(room ? to->buf + to->len : NULL, room, format, args);
	va_end(args);
	to->len += len > 0 ? (size_t)len : 0;
}

unsigned int sysfs_number(const struct ibv_device *device)
{
	const char *digits = device->dev_name + strcspn(device->dev_name, "0123456789");

	return (unsigned int)strtoul(digits, NULL, 10);
}

void sysfs_card(const struct ibv_device *device, char path[static SYSFS_CARD_SIZE])
{
	unsigned int number = sysfs_number(device), bus = number / CARDS_PER_BUS & 0xff;

	(void)snprintf(path, SYSFS_CARD_SIZE, BUS_FOLDER "%02x/ffff:%02x:%02x.0", bus, bus,
		       number % CARDS_PER_BUS);
}

/* --- Classes. --- */

static const char *name_of(const struct ibv_device *device)
{
	return device->name;
}

static const char *dev_name_of(const struct ibv_device *device)
{
	return device->dev_name;
}

const struct sysfs_class sysfs_infiniband = { "infiniband", NULL, name_of };
const struct sysfs_class sysfs_verbs = { "infiniband_verbs", "6", dev_name_of };
static const struct sysfs_class mad = { "infiniband_mad", "5", NULL };

/* The next device that is simulated. */
static struct polycm_verbs_device *next(const struct view *view, size_t *at)
{
	while (*at < view->num) {
		struct polycm_verbs_device *device = view->devices[(*at)++]->vdev;

		if (device)
			return device;
	}
	return NULL;
}

static struct polycm_verbs_device *find_entry(const struct view *view,
					      const struct sysfs_class *class, const char *name)
{
	struct polycm_verbs_device *device;
	size_t at = 0;

	while (class->entry && (device = next(view, &at)))
		if (!strcmp(class->entry(&device->device), name))
			return device;
	return NULL;
}

/* What the host itself has in the class. */
static void list_real(const struct view *view, const struct sysfs_class *class,
		      struct sysfs_text *to)
{
	struct dirent *entry;
	char path[64];
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/sys/class/%s", class->name);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (entry->d_type == DT_LNK && !find_entry(view, class, entry->d_name))
			sysfs_put(to, "%s@\n", entry->d_name);
	closedir(dir);
}

static int list_class(const struct view *view, const struct sysfs_class *class,
		      struct sysfs_text *to)
{
	const struct polycm_verbs_device *device;
	size_t at = 0;

	if (class->abi_version)
		sysfs_put(to, "abi_version\n");
	while (class->entry && (device = next(view, &at)))
		sysfs_put(to, "%s@\n", class->entry(&device->device));
	if (!view->only_simulated)
		list_real(view, class, to);
	return POLYCM_SYSFS_FOLDER;
}

static int real_link(const struct sysfs_class *class, const char *name, struct sysfs_text *to)
{
	char path[320], target[512];
	ssize_t len = -1;

	if ((size_t)snprintf(path, sizeof(path), "/sys/class/%s/%s", class->name, name) < sizeof(path))
		len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return -ENOENT;
	sysfs_put(to, "%.*s", (int)len, target);
	return POLYCM_SYSFS_LINK;
}

static int read_class(const struct view *view, const struct sysfs_class *class, const char *name,
		      struct sysfs_text *to)
{
	const struct polycm_verbs_device *device;
	char card[SYSFS_CARD_SIZE];

	if (!*name)
		return list_class(view, class, to);
	if (class->abi_version && !strcmp(name, "abi_version")) {
		sysfs_put(to, "%s\n", class->abi_version);
		return POLYCM_SYSFS_FILE;
	}
	device = find_entry(view, class, name);
	if (!device)
		return view->only_simulated ? -ENOENT : real_link(class, name, to);
	sysfs_card(&device->device, card);
	sysfs_put(to, "../../%s/%s/%s", card, class->name, name);
	return POLYCM_SYSFS_LINK;
}

/* --- Cards. --- */

/* The rest of a path below that folder, "" for the folder itself; NULL: it is elsewhere. */
static const char *below(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	if (strncmp(path, folder, len) || (path[len] && path[len] != '/'))
		return NULL;
	return path + len + (path[len] == '/');
}

/* The folder of a bus, "devices/pciffff:00", or something that is not there. */
static int read_bus(const struct view *view, const char *path, struct sysfs_text *to)
{
	const struct polycm_verbs_device *device;
	char card[SYSFS_CARD_SIZE];
	size_t at = 0;

	while ((device = next(view, &at))) {
		sysfs_card(&device->device, card);
		*strrchr(card, '/') = '\0';
		if (!strcmp(card, path))
			sysfs_put(to, "%s/\n", strchr(card, '\0') + 1);
	}
	return to->len ? POLYCM_SYSFS_FOLDER : -ENOENT;
}

static int read_cards(const struct view *view, const char *path, struct sysfs_text *to)
{
	struct polycm_verbs_device *device;
	char card[SYSFS_CARD_SIZE];
	const char *rest;
	size_t at = 0;

	while ((device = next(view, &at))) {
		sysfs_card(&device->device, card);
		rest = below(path, card);
		if (rest)
			return sysfs_read_card(device, rest, to);
	}
	return read_bus(view, path, to);
}

/* --- Interfaces. --- */

#define OF_INTERFACE "/device"

/* "eth0/device" leads to the card that has such an interface.  All else is the host's. */
static int read_net(const struct view *view, const char *path, struct sysfs_text *to)
{
	const size_t len = strcspn(path, "/");
	struct polycm_verbs_device *device;
	char folder[280], card[SYSFS_CARD_SIZE];
	size_t at = 0;

	if (strcmp(path + len, OF_INTERFACE) != 0 ||
	    (size_t)snprintf(folder, sizeof(folder), "net/%.*s", (int)len, path) >= sizeof(folder))
		return -EXDEV;
	while ((device = next(view, &at))) {
		int kind = sysfs_read_card(device, folder, to);

		to->len = 0;
		if (kind != POLYCM_SYSFS_FOLDER)
			continue;
		sysfs_card(&device->device, card);
		sysfs_put(to, "../../../%s", card);
		return POLYCM_SYSFS_LINK;
	}
	return -EXDEV;
}

/* --- sysfs.h --- */

static int read_in(const struct view *view, const char *path, struct sysfs_text *to)
{
	static const struct sysfs_class *const classes[] = { &sysfs_infiniband, &sysfs_verbs, &mad };
	const char *rest = below(path, "class"), *interface = rest ? below(rest, "net") : NULL;

	if (interface)
		return read_net(view, interface, to);
	for (size_t i = 0; rest && i < sizeof(classes) / sizeof(classes[0]); i++) {
		const char *name = below(rest, classes[i]->name);

		if (name)
			return read_class(view, classes[i], name, to);
	}
	if (!strncmp(path, BUS_FOLDER, strlen(BUS_FOLDER)))
		return read_cards(view, path, to);
	return -EXDEV;
}

int polycm_sysfs_read(const char *path, char *buf, size_t size)
{
	struct sysfs_text to = { .buf = buf, .size = size };
	struct view view;
	int r;

	buf[0] = '\0';
	r = polycm_devices(&view.devices, &view.num);
	if (r)
		return r;
	view.only_simulated = polycm_devices_only_simulated(view.devices, view.num);
	r = read_in(&view, path, &to);
	polycm_devices_free(view.devices, view.num);
	return r > 0 && to.len >= size ? -ENOSPC : r;
}

bool polycm_sysfs_begin(void)
{
	struct polycm_device **devices;
	bool simulated = false;
	size_t num;

	if (polycm_own_looks || polycm_registry_look() || polycm_devices(&devices, &num))
		return false;
	for (size_t i = 0; i < num; i++)
		simulated |= devices[i]->vdev != NULL;
	polycm_devices_free(devices, num);
	return simulated;
}
