/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/sys.h - sockets of the kernel's, also in a program of which libpolycm-sockets makes all
 * sockets rsockets: these would need the very network that is made here.
 */
#ifndef OFI_SYS_H
#define OFI_SYS_H

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As socket(2). */
static inline int ofi_socket(int domain, int type, int protocol)
{
	return (int)syscall(SYS_socket, domain, type, protocol);
}

#endif
