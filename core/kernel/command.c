/* SPDX-License-Identifier: BSD-2-Clause */
/* kernel/command.c - giving a command to the kernel's RDMA CM. */
#include "config.h"
#include "internal.h"

#include <pthread.h>

int kernel_command_cancellable(int fd, unsigned int command, void *message, size_t size, size_t out)
{
	struct rdma_ucm_cmd_hdr *hdr = message;
	ssize_t taken;

	hdr->cmd = command;
	hdr->in = (uint16_t)(size - sizeof(*hdr));
	hdr->out = (uint16_t)out;
	taken = polycm_kernel_host->command(fd, message, size);
	if (taken < 0)
		return (int)taken;
	return (size_t)taken == size ? 0 : -ENODATA;
}

int kernel_command(int fd, unsigned int command, void *message, size_t size, size_t out)
{
	int old, r;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	r = kernel_command_cancellable(fd, command, message, size, out);
	pthread_setcancelstate(old, NULL);
	return r;
}
