/* SPDX-License-Identifier: BSD-2-Clause */
/* sockets/calls.c - the calls on one socket. */
#undef _FORTIFY_SOURCE
#include "config.h"
#include "sockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>

/* A call that rsockets have with the same arguments. */
#define SAME(type, name, params, ...) \
	POLYCM_EXPORT type name params \
	{ \
		int rs = sockets_find(fd, SOCKETS_RSOCKET); \
\
		return rs < 0 ? sockets_next()->name(fd, __VA_ARGS__) : r##name(rs, __VA_ARGS__); \
	}

SAME(int, bind, (int fd, const struct sockaddr *addr, socklen_t len), addr, len)
SAME(int, connect, (int fd, const struct sockaddr *addr, socklen_t len), addr, len)
SAME(int, listen, (int fd, int backlog), backlog)
SAME(int, shutdown, (int fd, int how), how)
SAME(int, getpeername, (int fd, struct sockaddr *addr, socklen_t *len), addr, len)
SAME(int, getsockname, (int fd, struct sockaddr *addr, socklen_t *len), addr, len)
SAME(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *len), level, name, value,
     len)
SAME(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t len), level, name,
     value, len)
SAME(ssize_t, recv, (int fd, void *buf, size_t size, int flags), buf, size, flags)
SAME(ssize_t, recvfrom,
     (int fd, void *buf, size_t size, int flags, struct sockaddr *addr, socklen_t *len), buf, size,
     flags, addr, len)
SAME(ssize_t, recvmsg, (int fd, struct msghdr *msg, int flags), msg, flags)
SAME(ssize_t, read, (int fd, void *buf, size_t size), buf, size)
SAME(ssize_t, readv, (int fd, const struct iovec *vectors, int num), vectors, num)
SAME(ssize_t, send, (int fd, const void *buf, size_t size, int flags), buf, size, flags)
SAME(ssize_t, sendto, (int fd, const void *buf, size_t size, int flags, const struct sockaddr *addr,
		       socklen_t len), buf, size, flags, addr, len)
SAME(ssize_t, sendmsg, (int fd, const struct msghdr *msg, int flags), msg, flags)
SAME(ssize_t, write, (int fd, const void *buf, size_t size), buf, size)
SAME(ssize_t, writev, (int fd, const struct iovec *vectors, int num), vectors, num)

/* Of fortified programs.  The C library's end the program where the buffer is too short. */
POLYCM_EXPORT ssize_t __recv_chk(int fd, void *buf, size_t size, size_t room, int flags)
{
	if (size > room)
		return sockets_next()->__recv_chk(fd, buf, size, room, flags);
	return recv(fd, buf, size, flags);
}

POLYCM_EXPORT ssize_t __recvfrom_chk(int fd, void *buf, size_t size, size_t room, int flags,
				     struct sockaddr *addr, socklen_t *len)
{
	if (size > room)
		return sockets_next()->__recvfrom_chk(fd, buf, size, room, flags, addr, len);
	return recvfrom(fd, buf, size, flags, addr, len);
}

POLYCM_EXPORT ssize_t __read_chk(int fd, void *buf, size_t size, size_t room)
{
	if (size > room)
		return sockets_next()->__read_chk(fd, buf, size, room);
	return read(fd, buf, size);
}

/* --- made and ended --- */

static bool is_for_us(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (!rsocket || (domain != AF_INET && domain != AF_INET6))
		return false;
	return (kind == SOCK_STREAM && (!protocol || protocol == IPPROTO_TCP)) ||
	       (kind == SOCK_DGRAM && (!protocol || protocol == IPPROTO_UDP));
}

POLYCM_EXPORT int socket(int domain, int type, int protocol)
{
	int rs;

	if (!is_for_us(domain, type, protocol))
		return sockets_next()->socket(domain, type, protocol);
	sockets_reserve();
	rs = rsocket(domain, type, protocol);
	return rs < 0 ? -1 : sockets_add(rs, type & SOCK_CLOEXEC);
}

static int accept_on(int listener, struct sockaddr *addr, socklen_t *len, int flags)
{
	int rs;

	if (flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) {
		errno = EINVAL;
		return -1;
	}
	rs = raccept(listener, addr, len);
	if (rs < 0)
		return -1;
	/* An rsocket has its listener's flags. */
	(void)rfcntl(rs, F_SETFL, O_RDWR | (flags & SOCK_NONBLOCK ? O_NONBLOCK : 0));
	return sockets_add(rs, flags & SOCK_CLOEXEC);
}

POLYCM_EXPORT int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	int rs = sockets_find(fd, SOCKETS_RSOCKET);

	return rs < 0 ? sockets_next()->accept4(fd, addr, len, flags) : accept_on(rs, addr, len, flags);
}

POLYCM_EXPORT int accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	int rs = sockets_find(fd, SOCKETS_RSOCKET);

	return rs < 0 ? sockets_next()->accept(fd, addr, len) : accept_on(rs, addr, len, 0);
}

POLYCM_EXPORT int close(int fd)
{
	return sockets_close(fd);
}

/* --- descriptors --- */

POLYCM_EXPORT int dup(int fd)
{
	int new = sockets_next()->dup(fd);

	sockets_copy(fd, new);
	return new;
}

POLYCM_EXPORT int dup2(int fd, int new)
{
	int ret;

	sockets_unreserve(new);
	ret = sockets_next()->dup2(fd, new);
	sockets_copy(fd, ret);
	return ret;
}

POLYCM_EXPORT int dup3(int fd, int new, int flags)
{
	int ret;

	sockets_unreserve(new);
	ret = sockets_next()->dup3(fd, new, flags);
	sockets_copy(fd, ret);
	return ret;
}

static int control(__typeof__(fcntl) *next, int fd, int cmd, void *arg)
{
	int rs = sockets_find(fd, SOCKETS_RSOCKET), ret;

	/* What belongs to the number and not to the rsocket. */
	if (rs < 0 || cmd == F_GETFD || cmd == F_SETFD || cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC) {
		ret = next(fd, cmd, arg);
		if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC)
			sockets_copy(fd, ret);
		return ret;
	}
	return rfcntl(rs, cmd, (int)(intptr_t)arg);
}

POLYCM_EXPORT int fcntl(int fd, int cmd, ...)
{
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	return control(sockets_next()->fcntl, fd, cmd, arg);
}

POLYCM_EXPORT int fcntl64(int fd, int cmd, ...)
{
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	return control(sockets_next()->fcntl64, fd, cmd, arg);
}

static int set_nonblocking(int rs, bool on)
{
	int flags = rfcntl(rs, F_GETFL);

	return flags < 0 ? -1 : rfcntl(rs, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

POLYCM_EXPORT int ioctl(int fd, unsigned long request, ...)
{
	int rs = sockets_find(fd, SOCKETS_RSOCKET);
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (rs < 0 || request != FIONBIO)
		return sockets_next()->ioctl(fd, request, arg);
	return set_nonblocking(rs, *(int *)arg);
}
