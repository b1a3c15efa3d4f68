/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel/match.c - can the kernel carry an id between these addresses over a device of
 * this provider?  This is needed only if there is also a provider that is not over the
 * kernel; the kernel itself decides later.
 *
 * An address leads to a network interface as the kernel's routes say, and the
 * interface to the RDMA devices that have it behind a GID, or that are
 * functions of the same adapter.
 */
#include "config.h"
#include "internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/addr.h"
#include "core/base/interposer.h"
#include "core/base/rsockets.h"

#define PATH_SIZE 512
#define TYPE_INFINIBAND "32"	/* ARPHRD_INFINIBAND */

/* Tables have up to 1024 GIDs and are filled from below; so many empty ones end the search. */
#define EMPTY_GIDS 64

/* Which interface the address is one of: true, and its name. */
static bool interface_of(const union kernel_addr *addr, char name[static IF_NAMESIZE])
{
	struct ifaddrs *list, *entry;
	union kernel_addr one;

	if (addr->sa.sa_family == AF_INET6 && addr->in6.sin6_scope_id)
		return if_indextoname(addr->in6.sin6_scope_id, name);
	if (getifaddrs(&list))
		return false;
	for (entry = list; entry; entry = entry->ifa_next) {
		if (!entry->ifa_addr || entry->ifa_addr->sa_family != addr->sa.sa_family)
			continue;
		memcpy(&one, entry->ifa_addr, polycm_addr_len(entry->ifa_addr));
		if (addr->sa.sa_family == AF_INET
			    ? one.in.sin_addr.s_addr == addr->in.sin_addr.s_addr
			    : IN6_ARE_ADDR_EQUAL(&one.in6.sin6_addr, &addr->in6.sin6_addr))
			break;
	}
	if (entry)
		(void)snprintf(name, IF_NAMESIZE, "%s", entry->ifa_name);
	freeifaddrs(list);
	return entry;
}

/* The address that packets to this destination leave from. */
static bool source_for(const union kernel_addr *dst, union kernel_addr *ret_src)
{
	socklen_t len = sizeof(*ret_src);
	int fd = polycm_udp_socket(dst->sa.sa_family, 0);
	bool ok;

	if (fd < 0)
		return false;
	ok = !connect(fd, &dst->sa, (socklen_t)polycm_addr_len(&dst->sa)) &&
	     !getsockname(fd, &ret_src->sa, &len);
	close(fd);
	return ok;
}

/* 1: the file holds the name, 0: another one, -ENOENT: no such file, else: nothing in it. */
static int file_says(int dir, const char *file, const char *name)
{
	char buf[IF_NAMESIZE + 1];
	ssize_t n = kernel_read_line(dir, file, buf, sizeof(buf));

	if (n <= 0)
		return n < 0 ? (int)n : -ENODATA;
	return !strcmp(buf, name);
}

/* Is the interface behind a GID of this port? */
static bool port_has(const char *device, const char *port, const char *interface)
{
	char path[PATH_SIZE], file[16];
	unsigned int empty = 0;
	int dir, r = 0;

	if (snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%s/gid_attrs/ndevs",
		     device, port) >= (int)sizeof(path))
		return false;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return false;
	for (unsigned int i = 0; r != 1 && r != -ENOENT && empty < EMPTY_GIDS; i++) {
		(void)snprintf(file, sizeof(file), "%u", i);
		r = file_says(dir, file, interface);
		empty = r < 0 ? empty + 1 : 0;
	}
	close(dir);
	return r == 1;
}

/* IPoIB's interfaces are on InfiniBand, all others on Ethernet. */
static bool interface_is_on(const char *interface, uint8_t link_layer)
{
	char path[PATH_SIZE];
	bool is_ib;

	(void)snprintf(path, sizeof(path), "/sys/class/net/%s/type", interface);
	is_ib = file_says(AT_FDCWD, path, TYPE_INFINIBAND) == 1;
	return is_ib == (link_layer != IBV_LINK_LAYER_ETHERNET);
}

static bool device_has(const char *device, uint8_t link_layer, void *interface)
{
	struct dirent *entry;
	char path[PATH_SIZE];
	DIR *dir;

	if (link_layer != IBV_LINK_LAYER_UNSPECIFIED && !interface_is_on(interface, link_layer))
		return false;

	(void)snprintf(path, sizeof(path), "/sys/class/net/%s/device/infiniband/%s",
		       (const char *)interface, device);
	if (!access(path, F_OK))
		return true;

	(void)snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports", device);
	dir = opendir(path);
	if (!dir)
		return false;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && port_has(device, entry->d_name, interface))
			break;
	closedir(dir);
	return entry;
}

int kernel_op_match(void *ctx, const struct sockaddr *src, const struct sockaddr *dst)
{
	bool has_src = src && !polycm_addr_wildcard(src);
	const struct sockaddr *given = has_src ? src : dst;
	const struct kernel_context *context = ctx;
	char interface[IF_NAMESIZE];
	union kernel_addr addr;
	bool any;

	if (!kernel_devices_any(context, NULL, NULL))
		return -ENODEV;
	if (!given || polycm_addr_wildcard(given))
		return 0;
	memset(&addr, 0, sizeof(addr));
	memcpy(&addr, given, polycm_addr_len(given));
	if (given->sa_family == AF_IB)
		return context->transport->services & POLYCM_SVC_AF_IB ? 0 : -ENODEV;
	if (kernel_is_loopback(&addr))
		return 0;
	if (!has_src && !source_for(&addr, &addr))
		return -ENODEV;
	if (!interface_of(&addr, interface))
		return -ENODEV;
	polycm_own_looks++;
	any = kernel_devices_any(context, device_has, interface);
	polycm_own_looks--;
	return any ? 0 : -ENODEV;
}
