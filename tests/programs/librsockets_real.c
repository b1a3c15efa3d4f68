/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librsockets_real.c - loaded before libpolycm, it gives a program librdmacm's rsockets, which
 * then run on libpolycm's rdma_* and ibv_* calls: the other end for those of libpolycm.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <rdma/rsocket.h>

static void *real(const char *name)
{
	void *library = dlopen("librdmacm.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void *function = library ? dlsym(library, name) : NULL;

	if (!function) {
		fprintf(stderr, "librsockets_real: no %s in librdmacm\n", name);
		abort();
	}
	return function;
}

#define FORWARD(result, name, parameters, arguments)					\
	result name parameters								\
	{										\
		static result (*function) parameters;					\
											\
		if (!function)								\
			*(void **)&function = real(#name);				\
		return function arguments;						\
	}

FORWARD(int, rsocket, (int domain, int type, int protocol), (domain, type, protocol))
FORWARD(int, rbind, (int fd, const struct sockaddr *addr, socklen_t len), (fd, addr, len))
FORWARD(int, rlisten, (int fd, int backlog), (fd, backlog))
FORWARD(int, raccept, (int fd, struct sockaddr *addr, socklen_t *len), (fd, addr, len))
FORWARD(int, rconnect, (int fd, const struct sockaddr *addr, socklen_t len), (fd, addr, len))
FORWARD(int, rshutdown, (int fd, int how), (fd, how))
FORWARD(int, rclose, (int fd), (fd))
FORWARD(ssize_t, rrecv, (int fd, void *buf, size_t len, int flags), (fd, buf, len, flags))
FORWARD(ssize_t, rrecvfrom, (int fd, void *buf, size_t len, int flags, struct sockaddr *addr,
			     socklen_t *addrlen), (fd, buf, len, flags, addr, addrlen))
FORWARD(ssize_t, rrecvmsg, (int fd, struct msghdr *msg, int flags), (fd, msg, flags))
FORWARD(ssize_t, rsend, (int fd, const void *buf, size_t len, int flags), (fd, buf, len, flags))
FORWARD(ssize_t, rsendto, (int fd, const void *buf, size_t len, int flags,
			   const struct sockaddr *addr, socklen_t addrlen),
	(fd, buf, len, flags, addr, addrlen))
FORWARD(ssize_t, rsendmsg, (int fd, const struct msghdr *msg, int flags), (fd, msg, flags))
FORWARD(ssize_t, rread, (int fd, void *buf, size_t len), (fd, buf, len))
FORWARD(ssize_t, rreadv, (int fd, const struct iovec *iov, int num), (fd, iov, num))
FORWARD(ssize_t, rwrite, (int fd, const void *buf, size_t len), (fd, buf, len))
FORWARD(ssize_t, rwritev, (int fd, const struct iovec *iov, int num), (fd, iov, num))
FORWARD(int, rpoll, (struct pollfd *fds, nfds_t num, int timeout), (fds, num, timeout))
FORWARD(int, rselect, (int num, fd_set *in, fd_set *out, fd_set *other, struct timeval *timeout),
	(num, in, out, other, timeout))
FORWARD(int, rgetpeername, (int fd, struct sockaddr *addr, socklen_t *len), (fd, addr, len))
FORWARD(int, rgetsockname, (int fd, struct sockaddr *addr, socklen_t *len), (fd, addr, len))
FORWARD(int, rsetsockopt, (int fd, int level, int name, const void *value, socklen_t len),
	(fd, level, name, value, len))
FORWARD(int, rgetsockopt, (int fd, int level, int name, void *value, socklen_t *len),
	(fd, level, name, value, len))
FORWARD(off_t, riomap, (int fd, void *buf, size_t len, int prot, int flags, off_t offset),
	(fd, buf, len, prot, flags, offset))
FORWARD(int, riounmap, (int fd, void *buf, size_t len), (fd, buf, len))
FORWARD(size_t, riowrite, (int fd, const void *buf, size_t len, off_t offset, int flags),
	(fd, buf, len, offset, flags))

int rfcntl(int fd, int cmd, ...)
{
	int (*function)(int, int, ...);
	va_list args;
	int value;

	va_start(args, cmd);
	value = va_arg(args, int);
	va_end(args);
	*(void **)&function = real("rfcntl");
	return function(fd, cmd, value);
}
