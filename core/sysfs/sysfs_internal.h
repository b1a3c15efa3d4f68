/* SPDX-License-Identifier: BSD-2-Clause */
/* sysfs/sysfs_internal.h - between the files of this folder. */
#ifndef POLYCM_CORE_SYSFS_INTERNAL_H
#define POLYCM_CORE_SYSFS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/interposer.h"
#include "polycm/verbs.h"

/* The caller's buffer. */
struct sysfs_text {
	char *buf;
	size_t size, len;	/* len > size - 1: it was too small */
};

void sysfs_put(struct sysfs_text *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "/sys/class/NAME" */
struct sysfs_class {
	const char *name;
	const char *abi_version;	/* NULL: there is no such file */
	/* Of a device; NULL: the class has none of simulated devices. */
	const char *(*entry)(const struct ibv_device *device);
};

extern const struct sysfs_class sysfs_infiniband, sysfs_verbs;

/* The N of uverbsN, by which cards are numbered too. */
unsigned int sysfs_number(const struct ibv_device *device);
/* "devices/pciffff:00/ffff:00:01.0" */
#define SYSFS_CARD_SIZE 40
void sysfs_card(const struct ibv_device *device, char path[static SYSFS_CARD_SIZE]);

/* `path' is below the device's card.  Returns what polycm_sysfs_read() does. */
int sysfs_read_card(struct polycm_verbs_device *device, const char *path, struct sysfs_text *to);

#endif
