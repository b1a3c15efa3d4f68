/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/sysfs.h - the files below /sys/class/infiniband/DEVICE as tables: sysfs.c walks them,
 * sysfs_device.c and sysfs_port.c have them.  Engine lock held.
 */
#ifndef SIM_NIC_SYSFS_H
#define SIM_NIC_SYSFS_H

#include "device.h"

/* Where a path has led so far. */
struct sysfs_place {
	const struct sim_device *device;
	const struct sim_port *port;		/* below ports/N */
	struct ibv_port_attr port_attr;
	const char *ifname;			/* below device/net/NAME */
	unsigned int index;			/* of an entry that is named by its number */
	unsigned int arg;			/* of the file: see struct sysfs_file */
};

struct sysfs_file {
	const char *name;			/* NULL: the end of the table */
	/* As snprintf().  -1: the entry is not in use. */
	int (*show)(const struct sysfs_place *place, char *buf, size_t size);
	unsigned int arg;
};

struct sysfs_folder {
	const char *name;			/* NULL, without enter(): the end of the table */
	const struct sysfs_file *files;		/* or NULL */
	const struct sysfs_folder *folders;	/* or NULL */
	/* Instead of a name: is there such a folder?  Then it goes on from there. */
	bool (*enter)(struct sysfs_place *place, const char *name);
	/* The name of the n-th of those, or false. */
	bool (*nth)(const struct sysfs_place *place, unsigned int n,
		    char name[static IBV_SYSFS_NAME_MAX]);
	/* Files that are named by numbers: how many, and what is in them. */
	unsigned int (*count)(const struct sysfs_place *place);
	int (*show)(const struct sysfs_place *place, char *buf, size_t size);
	/* NULL: all devices have it. */
	bool (*exists)(const struct sysfs_place *place);
};

extern const struct sysfs_folder nic_sysfs_root;	/* sysfs_device.c */
extern const struct sysfs_folder nic_sysfs_ports[];	/* sysfs_port.c: those of "ports" */

/*
 * What the copy of the host's folder adds to our file, which has len bytes, or to our list;
 * len -1: we have none.
 */
int nic_sysfs_copied_file(const struct sim_device *device, const char *path, char *buf, size_t size,
			  int len);
int nic_sysfs_copied_list(const struct sim_device *device, const char *path, char *buf, size_t size,
			  int len);

int nic_sysfs_guid(char *buf, size_t size, __be64 guid);

#endif
