/* SPDX-License-Identifier: BSD-2-Clause */
/* carry_listener.c - does a program listen at an address?  The kernel says so without connecting. */
#include "config.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "carry.h"

static void set_address(__be32 to[static 4], const union turn_address *from)
{
	if (from->sa.sa_family == AF_INET6)
		memcpy(to, &from->in6.sin6_addr, sizeof(from->in6.sin6_addr));
	else
		memcpy(to, &from->in.sin_addr, sizeof(from->in.sin_addr));
}

static bool ask(int fd, const union turn_address *from, const union turn_address *to)
{
	struct { struct nlmsghdr header; struct inet_diag_req_v2 body; } request = {
		.header = {
			.nlmsg_len = sizeof(request), .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST,
		},
		.body = {
			.sdiag_family = (uint8_t)to->sa.sa_family, .sdiag_protocol = IPPROTO_TCP,
			.idiag_states = UINT32_MAX,
			.id = {
				.idiag_sport = to->in.sin_port, .idiag_dport = from->in.sin_port,
				.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE },
			},
		},
	};

	set_address(request.body.id.idiag_src, to);
	set_address(request.body.id.idiag_dst, from);
	return send(fd, &request, sizeof(request), 0) == (ssize_t)sizeof(request);
}

/* It is told as ENOENT that there is none; any other error is that the kernel cannot say. */
static enum carry_listens take(int fd)
{
	_Alignas(struct nlmsghdr) char answer[4096];
	const struct nlmsghdr *message = (const struct nlmsghdr *)answer;
	ssize_t len = recv(fd, answer, sizeof(answer), 0);

	if (len < 0 || !NLMSG_OK(message, (size_t)len))
		return CARRY_UNKNOWN;
	if (message->nlmsg_type == NLMSG_ERROR)
		return ((const struct nlmsgerr *)NLMSG_DATA(message))->error == -ENOENT ?
			CARRY_NOBODY : CARRY_UNKNOWN;
	if (message->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return CARRY_UNKNOWN;
	return ((const struct inet_diag_msg *)NLMSG_DATA(message))->idiag_state == TCP_LISTEN ?
		CARRY_LISTENS : CARRY_NOBODY;
}

enum carry_listens carry_listens(const union turn_address *from, const union turn_address *to)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	enum carry_listens listens = CARRY_UNKNOWN;

	if (fd < 0)
		return listens;
	if (ask(fd, from, to))
		listens = take(fd);
	close(fd);
	return listens;
}
