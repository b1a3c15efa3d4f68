/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/traces.c - see traces.h. */
#include "config.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "descriptors.h"
#include "hand.h"
#include "pointers.h"
#include "raw.h"
#include "tcp.h"
#include "traces.h"

#define SOCKET_TYPES 0xf	/* without flags */

/* Messages of NETLINK_ROUTE: in each four of them one that only asks. */
#define FIRST_MESSAGE 16
#define MESSAGE_KINDS 4
#define GET_KIND 2

static bool has_routes;	/* this process has, or had, a socket for NETLINK_ROUTE */

long turn_traces(const struct turn_call *call)
{
	long result = turn_through(call);

	turn_segment->leaves_traces = true;
	turn_changed();
	return result;
}

long turn_traces_socket(const struct turn_call *call)
{
	const long domain = call->arguments[0], type = call->arguments[1] & SOCKET_TYPES;
	const long protocol = call->arguments[2];

	if (domain == AF_INET || domain == AF_INET6) {
		if (type == SOCK_STREAM && (!protocol || protocol == IPPROTO_TCP))
			turn_segment->uses_tcp = true;
		else if (type != SOCK_DGRAM)
			turn_segment->leaves_traces = true;
	}
	/* The C library asks by NETLINK_ROUTE which addresses there are, and libibverbs for devices. */
	if (domain == AF_NETLINK && protocol == NETLINK_ROUTE)
		has_routes = true;
	else if (domain == AF_NETLINK && protocol != NETLINK_RDMA &&
		 protocol != NETLINK_KOBJECT_UEVENT && protocol != NETLINK_SOCK_DIAG)
		turn_segment->leaves_traces = true;
	return turn_socket(call);
}

static bool is_route_socket(int fd)
{
	int domain = 0, protocol = 0;
	socklen_t len = sizeof(domain);

	return !TURN_RAW(SYS_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) &&
	       domain == AF_NETLINK &&
	       !TURN_RAW(SYS_getsockopt, fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) &&
	       protocol == NETLINK_ROUTE;
}

/* The beginning of what is sent; NULL: it is not looked for. */
static const struct nlmsghdr *message_of(const struct turn_call *call)
{
	const struct nlmsghdr *message = (const struct nlmsghdr *)call->arguments[1];
	const struct msghdr *whole = (const struct msghdr *)call->arguments[1];
	size_t len = (size_t)call->arguments[2];

	switch (call->number) {
	case SYS_sendmsg:
		if (!turn_can_read(whole, sizeof(*whole)) || !whole->msg_iovlen ||
		    !turn_can_read(whole->msg_iov, sizeof(*whole->msg_iov)))
			return NULL;
		message = whole->msg_iov->iov_base;
		len = whole->msg_iov->iov_len;
		break;
	case SYS_write:
	case SYS_sendto:
		break;
	default:
		return NULL;
	}
	return len >= sizeof(*message) && turn_can_read(message, sizeof(*message)) ? message : NULL;
}

void turn_traces_before_send(const struct turn_call *call)
{
	const struct nlmsghdr *message;

	if (!has_routes || !is_route_socket((int)call->arguments[0]))
		return;
	message = message_of(call);
	if (!message || message->nlmsg_type < FIRST_MESSAGE ||
	    (message->nlmsg_type - FIRST_MESSAGE) % MESSAGE_KINDS != GET_KIND)
		turn_segment->leaves_traces = true;
}

/* What is not of the process itself, which takes it along. */
void turn_traces_opened(int fd, const char *path, long flags)
{
	static const char *const own[] = { "/proc/self/", "/proc/thread-self/" };
	struct statfs system;

	if ((flags & O_ACCMODE) == O_RDONLY || TURN_RAW(SYS_fstatfs, fd, &system) ||
	    (system.f_type != PROC_SUPER_MAGIC && system.f_type != SYSFS_MAGIC))
		return;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!strncmp(path, own[i], strlen(own[i])))
			return;
	turn_segment->leaves_traces = true;
}
