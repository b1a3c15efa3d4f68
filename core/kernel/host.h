/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel/host.h - what the kernel client asks of the host: the RDMA CM's
 * character device and the list of RDMA devices.  Tests put a stand-in here.
 */
#ifndef POLYCM_CORE_KERNEL_HOST_H
#define POLYCM_CORE_KERNEL_HOST_H

#include <stddef.h>
#include "polycm/kernel.h"

#define KERNEL_DEVICE_NAME 64
#define KERNEL_PORTS 8		/* of a device that are read; further ones count as the first */

struct kernel_host_device {
	char name[KERNEL_DEVICE_NAME];
	__be64 node_guid;
	int index;				/* -1: not known */
	enum ibv_node_type node_type;
	enum ibv_transport_type transport_type;
	uint8_t link_layer[KERNEL_PORTS];	/* of the ports from 1; as the first where none is */
	struct polycm_verbs_device *verbs;	/* a stand-in's; NULL: libibverbs opens it by name */
};

struct kernel_host {
	/* The number in /sys/class/misc/rdma_cm/abi_version, or a negative errno. */
	int (*abi_version)(void);
	/* Open the RDMA CM, O_CLOEXEC: a descriptor that can be polled, or a negative errno. */
	int (*open)(void);
	/* One command: bytes taken, or a negative errno.  No cancellation point. */
	ssize_t (*command)(int fd, const void *command, size_t len);
	/* The same for one that waits if the descriptor does: a cancellation point. */
	ssize_t (*wait)(int fd, const void *command, size_t len);
	void (*close)(int fd);
	/* The RDMA devices there are; the caller frees the array with free(). */
	int (*devices)(struct kernel_host_device **ret_devices, size_t *ret_num);
};

/* The Linux host; tests set their own before the first call. */
extern const struct kernel_host *polycm_kernel_host;

#endif
