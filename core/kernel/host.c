/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel/host.c - the Linux host of the kernel client: the device node of the RDMA CM,
 * its version in sysfs, and libibverbs' devices (without simulated ones).
 */
#include "config.h"
#include "internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/libibverbs.h"

#define DEVICE_NODE	"/dev/infiniband/rdma_cm"
#define ABI_VERSION	"/sys/class/misc/rdma_cm/abi_version"

ssize_t kernel_read_line(int dir, const char *path, char *buf, size_t size)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	if (n < 0)
		n = -errno;
	close(fd);
	if (n < 0)
		return n;
	buf[n] = '\0';
	n = (ssize_t)strcspn(buf, "\n");
	buf[n] = '\0';
	return n;
}

static int linux_abi_version(void)
{
	char text[16], *end;
	ssize_t n = kernel_read_line(AT_FDCWD, ABI_VERSION, text, sizeof(text));
	long version;

	if (n < 0)
		return (int)n;
	version = strtol(text, &end, 10);
	return n && !*end && version >= 0 && version <= INT16_MAX ? (int)version : -EPROTO;
}

static int linux_open(void)
{
	int fd = open(DEVICE_NODE, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Not write(), which is a cancellation point. */
static ssize_t linux_command(int fd, const void *command, size_t len)
{
	ssize_t n = syscall(SYS_write, fd, command, len);

	return n < 0 ? -errno : n;
}

static ssize_t linux_wait(int fd, const void *command, size_t len)
{
	ssize_t n = write(fd, command, len);

	return n < 0 ? -errno : n;
}

static void linux_close(int fd)
{
	close(fd);
}

/* false: there is no such port, or its link layer is unknown. */
static bool read_link_layer(const struct ibv_device *device, unsigned int port, uint8_t *ret_layer)
{
	char path[sizeof(device->ibdev_path) + sizeof("/ports/255/link_layer")], text[32];

	(void)snprintf(path, sizeof(path), "%s/ports/%u/link_layer", device->ibdev_path, port);
	if (kernel_read_line(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	if (!strcmp(text, "InfiniBand"))
		*ret_layer = IBV_LINK_LAYER_INFINIBAND;
	else if (!strcmp(text, "Ethernet"))
		*ret_layer = IBV_LINK_LAYER_ETHERNET;
	else
		*ret_layer = IBV_LINK_LAYER_UNSPECIFIED;
	return true;
}

static void describe(struct ibv_device *device, struct kernel_host_device *ret_device)
{
	bool more = true;

	(void)snprintf(ret_device->name, sizeof(ret_device->name), "%s", device->name);
	ret_device->node_guid = ibv_get_device_guid(device);
	ret_device->index = ibv_get_device_index(device);
	ret_device->node_type = device->node_type;
	ret_device->transport_type = device->transport_type;
	for (unsigned int i = 0; i < KERNEL_PORTS; i++) {
		ret_device->link_layer[i] = ret_device->link_layer[0];
		more = more && read_link_layer(device, i + 1, &ret_device->link_layer[i]);
	}
}

static int linux_devices(struct kernel_host_device **ret_devices, size_t *ret_num)
{
	struct kernel_host_device *devices;
	struct polycm_real_list *list;
	int num;

	*ret_devices = NULL;
	*ret_num = 0;
	errno = 0;
	list = polycm_real_list();
	/* A kernel without RDMA has no devices. */
	if (!list)
		return errno == ENOSYS ? 0 : -(errno ? errno : ENOMEM);

	num = list->num;
	devices = calloc((size_t)num + 1, sizeof(*devices));
	for (int i = 0; i < num && devices; i++)
		describe(list->devices[i], &devices[i]);
	polycm_real_list_put(list);
	if (!devices)
		return -ENOMEM;
	*ret_devices = devices;
	*ret_num = (size_t)num;
	return 0;
}

static const struct kernel_host linux_host = {
	.abi_version = linux_abi_version,
	.open = linux_open,
	.command = linux_command,
	.wait = linux_wait,
	.close = linux_close,
	.devices = linux_devices,
};

const struct kernel_host *polycm_kernel_host = &linux_host;
