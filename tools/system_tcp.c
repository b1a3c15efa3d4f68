/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_tcp.c - what connections over TCP leave in the network of a system: when a process has ended,
 * what the kernel still sends for it; when all have, their addresses and ports, which it keeps for a
 * minute (TIME_WAIT), so that the next run there would not get them.
 */
#include "config.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "system.h"
#include "turn/settle.h"

#define MOST_ROUNDS 4u		/* what ends one may begin another: none of it needs more than two */

struct sockets {
	struct inet_diag_sockid *ids;
	size_t num;
};

static bool ask(int fd, uint16_t type, unsigned int flags, uint8_t family,
		const struct inet_diag_sockid *id)
{
	struct { struct nlmsghdr header; struct inet_diag_req_v2 body; } request = {
		.header = {
			.nlmsg_len = sizeof(request), .nlmsg_type = type,
			.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
		},
		.body = {
			.sdiag_family = family, .sdiag_protocol = IPPROTO_TCP,
			.idiag_states = UINT32_MAX,
		},
	};

	if (id)
		request.body.id = *id;
	return send(fd, &request, sizeof(request), 0) == (ssize_t)sizeof(request);
}

/* 1: there is more.  0: that was all.  Or a negative errno. */
static int take(const struct nlmsghdr *message, struct sockets *sockets)
{
	const struct inet_diag_msg *body = NLMSG_DATA(message);

	switch (message->nlmsg_type) {
	case NLMSG_DONE:
		return 0;
	case NLMSG_ERROR:
		return ((const struct nlmsgerr *)NLMSG_DATA(message))->error;
	}
	sockets->ids = tool_realloc(sockets->ids, sockets->num + 1, sizeof(*sockets->ids));
	sockets->ids[sockets->num++] = body->id;
	return 1;
}

static int take_all(int fd, struct sockets *sockets)
{
	_Alignas(struct nlmsghdr) char answer[16384];
	int more = 1;

	while (more > 0) {
		ssize_t len = recv(fd, answer, sizeof(answer), 0);

		if (len < 0)
			return -errno;
		for (const struct nlmsghdr *message = (const struct nlmsghdr *)answer;
		     more > 0 && NLMSG_OK(message, (size_t)len); message = NLMSG_NEXT(message, len))
			more = take(message, sockets);
	}
	return more;
}

/* How many there were, or a negative errno. */
static int destroy_all(int fd, uint8_t family)
{
	struct sockets sockets = { .num = 0 };
	int err;

	if (!ask(fd, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, family, NULL))
		return -errno;
	err = take_all(fd, &sockets);
	for (size_t i = 0; !err && i < sockets.num; i++) {
		/* One may be gone with another; what cannot be is found again. */
		if (!ask(fd, SOCK_DESTROY, NLM_F_ACK, family, &sockets.ids[i]))
			err = -errno;
		else
			(void)take_all(fd, &(struct sockets){ .num = 0 });
	}
	free(sockets.ids);
	return err ? err : (int)sockets.num;
}

static long ask_kernel(long number, long a, long b, long c, long d, long e, long f)
{
	const long result = syscall(number, a, b, c, d, e, f);

	return result < 0 ? -errno : result;
}

void system_tcp_settle(void)
{
	turn_settle_by(ask_kernel);
}

bool system_tcp_forget(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG), num = fd < 0 ? -1 : 1;

	for (unsigned int round = 0; num > 0 && round < MOST_ROUNDS; round++) {
		int ipv6;

		num = destroy_all(fd, AF_INET);
		/* An error: the kernel has none. */
		ipv6 = num < 0 ? 0 : destroy_all(fd, AF_INET6);
		num += ipv6 > 0 ? ipv6 : 0;
	}
	if (fd >= 0)
		close(fd);
	return !num;
}
