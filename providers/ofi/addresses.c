/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/addresses.c - see addresses.h. */
#include "config.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "providers/soft/host/host.h"
#include "addresses.h"
#include "io.h"
#include "self.h"
#include "session.h"
#include "sys.h"

static struct ofi_source watch = { .fd = -1 };

/* All sessions are told what the host's addresses are now. */
static void tell_all(void)
{
	static uint8_t body[OFI_HELLO_MAX];
	static struct ofi_ports ports;
	size_t len;

	ofi_self_ports(&ports);
	len = ofi_ports_encode(&ports, body);
	ofi_sessions_tell(OFI_PORTS, &(struct iovec){ body, len }, 1, len);
}

static void look(void)
{
	if (sim_host_renew(&ofi_self.device->ports[0]))
		tell_all();
}

/* What was said is not read: the kernel is asked for all of it. */
static void changed(struct ofi_source *source, uint32_t events)
{
	char unread[4096];

	(void)events;
	while (recv(source->fd, unread, sizeof(unread), MSG_DONTWAIT | MSG_TRUNC) > 0)
		;
	look();
}

void ofi_addresses_watch(void)
{
	struct sockaddr_nl groups = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_LINK,
	};
	int fd;

	if (watch.fd >= 0)
		return;
	fd = ofi_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	watch.fd = fd;
	watch.events = EPOLLIN;
	watch.ready = changed;
	if (fd < 0 || bind(fd, (struct sockaddr *)&groups, sizeof(groups)) || ofi_io_add(&watch) < 0) {
		sim_core->log(POLYCM_LOG_INFO, NULL, "addresses that this host gets later are not seen: "
			      "%s", strerror(errno));
		if (fd >= 0)
			close(fd);
		watch.fd = -1;
		return;
	}
	look();
}

void ofi_addresses_close(void)
{
	if (watch.fd >= 0)
		ofi_io_remove(&watch);
	ofi_addresses_forget();
}

void ofi_addresses_forget(void)
{
	if (watch.fd >= 0)
		close(watch.fd);
	watch.fd = -1;
}

/* To connect a UDP socket sends nothing. */
int ofi_source_for(const struct sockaddr *dst, union sim_sockaddr *ret_source)
{
	union sim_sockaddr to = sim_addr_copy(dst), from = { 0 };
	socklen_t len = to.sa.sa_family == AF_INET ? sizeof(to.in) : sizeof(to.in6);
	int fd, r = 0;

	sim_addr_set_port(&to, 9);	/* discard; any but 0 */
	fd = ofi_socket(to.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, &to.sa, len) || getsockname(fd, &from.sa, &len))
		r = -errno;
	close(fd);
	sim_addr_set_port(&from, 0);
	*ret_source = from;
	return r;
}
