/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explore_launcher.c - polycm run with several programs, which makes one run after the other
 * (system_again.c), on one processor: only one thread of a system runs at a time.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "explore.h"

int explore_launcher_sockets(int sockets[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	/* SIGIO when it tells. */
	if (!fcntl(sockets[0], F_SETOWN, getpid()) && !fcntl(sockets[0], F_SETFL, O_ASYNC))
		return 0;
	close(sockets[0]);
	close(sockets[1]);
	sockets[0] = sockets[1] = -1;
	return -errno;
}

static void take_processor(unsigned int number)
{
	cpu_set_t allowed, one;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	number %= (unsigned int)CPU_COUNT(&allowed);
	for (size_t i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &allowed) || number--)
			continue;
		CPU_ZERO(&one);
		CPU_SET(i, &one);
		sched_setaffinity(0, sizeof(one), &one);
		return;
	}
}

void explore_launcher_become(int socket, unsigned int number)
{
	char *text = tool_printf("%d", socket);

	setenv(SYSTEM_AGAIN_VARIABLE, text, 1);
	free(text);
	fcntl(socket, F_SETFD, 0);
	take_processor(number);
}

static int send_request(int socket, const char *request, size_t len, int output)
{
	union { struct cmsghdr header; char bytes[CMSG_SPACE(sizeof(int))]; } control = {
		.header = {
			.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof(int)),
		},
	};
	struct iovec part = { .iov_base = (char *)request, .iov_len = len };
	const struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};

	memcpy(CMSG_DATA(&control.header), &output, sizeof(output));
	return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int explore_launcher_ask(int socket, const char *request, size_t len, const char *output)
{
	int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), err;

	if (fd < 0)
		return -errno;
	err = send_request(socket, request, len, fd);
	close(fd);
	return err;
}

bool explore_launcher_told(int socket, int *ret_status)
{
	return recv(socket, ret_status, sizeof(*ret_status), MSG_DONTWAIT) == sizeof(*ret_status);
}
