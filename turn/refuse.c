/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/refuse.c - see refuse.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "carried.h"
#include "loopback.h"
#include "raw.h"
#include "refuse.h"
#include "spare.h"

/* Where nobody listens: the port of `closed', which is set, seen from `own'.  Its length. */
static socklen_t find_closed(const union turn_address *own, int closed, union turn_address *ret)
{
	const bool is_ipv4 = own->sa.sa_family == AF_INET ||
		IN6_IS_ADDR_V4MAPPED(&own->in6.sin6_addr);
	socklen_t len = sizeof(*ret);
	in_port_t port;

	if (is_ipv4)
		*ret = (union turn_address){ .in = {
			.sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } } };
	else
		*ret = (union turn_address){ .in6 = {
			.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT } };
	if (TURN_RAW(SYS_bind, closed, ret, is_ipv4 ? sizeof(ret->in) : sizeof(ret->in6)) ||
	    TURN_RAW(SYS_getsockname, closed, ret, &len))
		return 0;
	port = ret->in.sin_port;
	if (is_ipv4 && own->sa.sa_family == AF_INET6)
		*ret = (union turn_address){ .in6 = {
			.sin6_family = AF_INET6, .sin6_port = port,
			.sin6_addr = { .s6_addr = { [10] = 0xff, 0xff, 127, 0, 0, 1 } } } };
	return own->sa.sa_family == AF_INET ? sizeof(ret->in) : sizeof(ret->in6);
}

void turn_refuse(int fd)
{
	union turn_address own = { .sa = { .sa_family = AF_UNSPEC } }, to;
	socklen_t len = sizeof(own);
	long flags = TURN_RAW(SYS_fcntl, fd, F_GETFL), closed;

	if (flags < 0 || TURN_RAW(SYS_getsockname, fd, &own, &len))
		return;
	closed = turn_spare_socket(turn_raw, own.sa.sa_family == AF_INET ||
				   IN6_IS_ADDR_V4MAPPED(&own.in6.sin6_addr) ? AF_INET : AF_INET6,
				   SOCK_STREAM | SOCK_CLOEXEC);
	if (closed < 0)
		return;
	len = find_closed(&own, (int)closed, &to);
	/* Else the call itself would take the error. */
	TURN_RAW(SYS_fcntl, fd, F_SETFL, flags | O_NONBLOCK);
	if (len && TURN_RAW(SYS_connect, fd, &to, len) == -EINPROGRESS)
		turn_loopback_settle();
	TURN_RAW(SYS_fcntl, fd, F_SETFL, flags);
	TURN_RAW(SYS_close, closed);
}
