/* SPDX-License-Identifier: BSD-2-Clause */
/* carry_request.c - what programs ask of polycm carry: whatever comes, since each can send there. */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "carry.h"

int carry_open_requests(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(name.sun_path + 1, TURN_CARRIER, sizeof(TURN_CARRIER) - 1);
	if (fd >= 0 && bind(fd, (const struct sockaddr *)&name,
			    offsetof(struct sockaddr_un, sun_path) + sizeof(TURN_CARRIER))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* The first descriptor of a message, whose others are closed; -1: it has none. */
static int take_descriptor(struct msghdr *message)
{
	int first = -1, fd;

	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = CMSG_LEN(0); at + sizeof(fd) <= part->cmsg_len; at += sizeof(fd)) {
			memcpy(&fd, (const char *)part + at, sizeof(fd));
			if (first < 0)
				first = fd;
			else
				close(fd);
		}
	}
	return first;
}

static bool is_sound(const struct turn_connect_request *request)
{
	const sa_family_t family = request->from.sa.sa_family;

	return (family == AF_INET || family == AF_INET6) && request->to.sa.sa_family == family;
}

bool carry_take_request(int requests)
{
	struct turn_connect_request request;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))];
	struct iovec part = { &request, sizeof(request) };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	/* Its whole length, also if it is too long. */
	ssize_t len = recvmsg(requests, &message, MSG_CMSG_CLOEXEC | MSG_TRUNC);
	int fd = len < 0 ? -1 : take_descriptor(&message);

	if (len < 0)
		return false;
	if (len == (ssize_t)sizeof(request) && fd >= 0 && is_sound(&request)) {
		carry_begin(&request, fd);
		return true;
	}
	/* Without a descriptor there was no room for it. */
	if (len == (ssize_t)sizeof(request))
		carry_tells->connect_fails(request.number, fd, fd < 0 ? -ENOBUFS : -EAFNOSUPPORT);
	if (fd >= 0)
		close(fd);
	return true;
}
