/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * carry_listener.c - what the kernel says of programs' sockets: does one listen at an address?
 * Nobody has to connect for that.
 */
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

/* 0, or a negative errno: -ENOENT: there is no such socket; else the kernel cannot say. */
static int take(int fd, struct inet_diag_msg *ret)
{
	_Alignas(struct nlmsghdr) char answer[4096];
	const struct nlmsghdr *message = (const struct nlmsghdr *)answer;
	ssize_t len = recv(fd, answer, sizeof(answer), 0);

	if (len < 0)
		return -errno;
	if (!NLMSG_OK(message, (size_t)len))
		return -EPROTO;
	if (message->nlmsg_type == NLMSG_ERROR &&
	    message->nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr)))
		return ((const struct nlmsgerr *)NLMSG_DATA(message))->error;
	if (message->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    message->nlmsg_len < NLMSG_LENGTH(sizeof(*ret)))
		return -EPROTO;
	memcpy(ret, NLMSG_DATA(message), sizeof(*ret));
	return 0;
}

/* Whose a segment from `from' to `to' is. */
static int look_up(const union turn_address *from, const union turn_address *to,
		   struct inet_diag_msg *ret)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG), err;

	if (fd < 0)
		return -errno;
	err = ask(fd, from, to) ? take(fd, ret) : -errno;
	close(fd);
	return err;
}

enum carry_listens carry_listens(const union turn_address *from, const union turn_address *to)
{
	struct inet_diag_msg found;
	int err = look_up(from, to, &found);

	if (err)
		return err == -ENOENT ? CARRY_NOBODY : CARRY_UNKNOWN;
	/* One without a backlog only waits to be connected (turn/carried.h). */
	return found.idiag_state == TCP_LISTEN && found.idiag_wqueue ? CARRY_LISTENS : CARRY_NOBODY;
}

uint64_t carry_cookie(const union turn_address *from, const union turn_address *to)
{
	struct inet_diag_msg found;

	if (look_up(from, to, &found) || found.idiag_state == TCP_LISTEN)
		return 0;
	return (uint64_t)found.id.idiag_cookie[1] << 32 | found.id.idiag_cookie[0];
}
