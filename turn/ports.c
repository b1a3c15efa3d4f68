/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/ports.c - see ports.h.
 *
 * Linux chooses ports by numbers that differ from boot to boot and from socket to socket, in
 * network namespaces too.  Here a socket without a port is bound to the next one of the system
 * before the kernel would choose.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

#include "carried.h"
#include "descriptors.h"
#include "hand.h"
#include "pointers.h"
#include "ports.h"
#include "raw.h"
#include "reuse.h"
#include "tcp.h"

/* Linux's own range, if nobody has changed it. */
#define FIRST_PORT 32768u
#define NUM_PORTS (61000u - FIRST_PORT)
#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE 51
#endif
#define NUM_NAMES 0x100000u	/* five hexadecimal digits */

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
};

/* NULL: that family has none, or the address is too short. */
static in_port_t *port_in(union address *address, size_t len)
{
	if (len < sizeof(sa_family_t))
		return NULL;
	if (address->sa.sa_family == AF_INET && len >= sizeof(address->in))
		return &address->in.sin_port;
	if (address->sa.sa_family == AF_INET6 && len >= offsetof(struct sockaddr_in6, sin6_scope_id))
		return &address->in6.sin6_port;
	return NULL;
}

static size_t smaller(size_t one, size_t two)
{
	return one < two ? one : two;
}

static int option_of(int fd, int level, int option)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return TURN_RAW(SYS_getsockopt, fd, level, option, &value, &len) < 0 ? -1 : value;
}

static bool has_ports(int fd)
{
	int type = option_of(fd, SOL_SOCKET, SO_TYPE);

	return type == SOCK_STREAM || type == SOCK_DGRAM;
}

/* It stands for no other one any more (carried.h): its connection is gone. */
static void take_port(uint32_t port)
{
	turn_segment->ports_for[port] = 0;
}

/* The result of bind(), with the first port from the system's next one on that is free. */
static long bind_to_port(int fd, union address *address, in_port_t *port, size_t len)
{
	long result = -EADDRINUSE;

	for (uint32_t i = 0; i < NUM_PORTS && result == -EADDRINUSE; i++) {
		*port = htons((in_port_t)(FIRST_PORT + turn_segment->ports++ % NUM_PORTS));
		result = TURN_RAW(SYS_bind, fd, &address->sa, len);
	}
	if (!result)
		take_port(ntohs(*port));
	return result;
}

/* ------------------------------------------------------------------------
 * The address of this host.
 */

static bool is_mapped(const struct in6_addr *address)
{
	return IN6_IS_ADDR_V4MAPPED(address);
}

/* As IPv6 has it; false: of another family. */
static bool get_ipv6(const union address *address, size_t len, struct in6_addr *ret)
{
	if (address->sa.sa_family == AF_INET && len >= sizeof(address->in)) {
		*ret = (struct in6_addr)IN6ADDR_ANY_INIT;
		ret->s6_addr[10] = ret->s6_addr[11] = 0xff;
		memcpy(ret->s6_addr + 12, &address->in.sin_addr, 4);
		return true;
	}
	if (address->sa.sa_family != AF_INET6 || len < offsetof(struct sockaddr_in6, sin6_scope_id))
		return false;
	*ret = address->in6.sin6_addr;
	return true;
}

static unsigned int bits_alike(const uint8_t *one, const uint8_t *two)
{
	unsigned int num = 0;

	while (num < 128 && !((one[num / 8] ^ two[num / 8]) >> (7 - num % 8) & 1))
		num++;
	return num;
}

/* Of this host's addresses the one most like it, as for a route; NULL: it has none of that family. */
static const uint8_t *own_address_for(const struct in6_addr *to)
{
	const uint32_t program = turn_segment->members[turn_member].files.program;
	const struct turn_host *host = &turn_segment->hosts[program];
	const uint8_t *best = NULL;
	unsigned int most = 0;

	for (uint32_t i = 0; i < host->num; i++) {
		const uint8_t *own = host->addresses[i];
		const unsigned int alike = bits_alike(own, to->s6_addr);

		if (is_mapped((const struct in6_addr *)own) != is_mapped(to))
			continue;
		if (!best || alike > most) {
			best = own;
			most = alike;
		}
	}
	return best;
}

static bool is_loopback_or_any(const struct in6_addr *address)
{
	const uint8_t *bytes = address->s6_addr;

	if (is_mapped(address))
		return bytes[12] == 127 || !(bytes[12] | bytes[13] | bytes[14] | bytes[15]);
	return IN6_IS_ADDR_LOOPBACK(address) || IN6_IS_ADDR_UNSPECIFIED(address);
}

/*
 * All addresses of the system are this kernel's, which would connect to each of them from itself.
 * own: the address of a socket that has none yet, for a connection to that one.
 */
static void set_source(union address *own, const struct in6_addr *to)
{
	const uint8_t *from;

	if (is_loopback_or_any(to))
		return;
	from = own_address_for(to);
	if (from && own->sa.sa_family == AF_INET)
		memcpy(&own->in.sin_addr, from + 12, 4);
	else if (from)
		memcpy(&own->in6.sin6_addr, from, 16);
}

static bool is_any(const union address *address)
{
	if (address->sa.sa_family == AF_INET)
		return address->in.sin_addr.s_addr == INADDR_ANY;
	return IN6_IS_ADDR_UNSPECIFIED(&address->in6.sin6_addr);
}

/* ------------------------------------------------------------------------
 * Calls.
 */

/* to: NULL: from any address. */
static void choose(int fd, const struct in6_addr *to)
{
	union address own, source;
	socklen_t len = sizeof(own);
	in_port_t *port;

	if (TURN_RAW(SYS_getsockname, fd, &own, &len) < 0)
		return;
	port = port_in(&own, len);
	if (!port || *port || !has_ports(fd))
		return;
	source = own;
	if (to && is_any(&own) && option_of(fd, SOL_SOCKET, SO_TYPE) == SOCK_STREAM)
		set_source(&source, to);
	/* Who has no such address has none of its own. */
	if (bind_to_port(fd, &source, port_in(&source, len), len) == -EADDRNOTAVAIL)
		bind_to_port(fd, &own, port, len);
}

/* ------------------------------------------------------------------------
 * The address that datagrams come from.
 *
 * A socket that is bound to no address gets one when it is connected, and keeps it for further
 * connections; the kernel takes the receiver's, which is its own, too.  So here it is connected to
 * an address of this host first.
 */

long turn_disconnect(int fd)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };

	return TURN_RAW(SYS_connect, fd, &none, sizeof(none));
}

static bool has_address(const union address *one, size_t len, const union address *two, size_t two_len)
{
	struct in6_addr a, b;

	return get_ipv6(one, len, &a) && get_ipv6(two, two_len, &b) && IN6_ARE_ADDR_EQUAL(&a, &b);
}

/* What the program gave; false: it has no address of another host. */
static bool get_receiver(const struct sockaddr *given, socklen_t len, union address *ret)
{
	struct in6_addr ip;

	if (!given || len < sizeof(sa_family_t) || !turn_can_read(given, smaller(len, sizeof(*ret))))
		return false;
	memcpy(ret, given, smaller(len, sizeof(*ret)));
	if (!get_ipv6(ret, len, &ip) || is_loopback_or_any(&ip))
		return false;
	/* Nobody is reached there. */
	return is_mapped(&ip) ? ip.s6_addr[12] < 224 : !IN6_IS_ADDR_MULTICAST(&ip);
}

/* True: it has an address of this host now, and is connected to that. */
static bool take_own_address(int fd, const struct sockaddr *given, socklen_t len)
{
	union address to, own, is;
	socklen_t own_len = sizeof(own);
	struct in6_addr ip;

	if (!get_receiver(given, len, &to) || option_of(fd, SOL_SOCKET, SO_TYPE) != SOCK_DGRAM)
		return false;
	if (TURN_RAW(SYS_getsockname, fd, &is, &own_len) < 0 || !port_in(&is, own_len) ||
	    !is_any(&is))
		return false;
	own = to;
	len = (socklen_t)smaller(len, sizeof(own));
	get_ipv6(&to, len, &ip);
	set_source(&own, &ip);
	if (!memcmp(&own, &to, len) || TURN_RAW(SYS_connect, fd, &own.sa, len) < 0)
		return false;
	/* Without namespaces it is an address of another machine. */
	own_len = sizeof(is);
	if (!TURN_RAW(SYS_getsockname, fd, &is, &own_len) && has_address(&is, own_len, &own, len))
		return true;
	turn_disconnect(fd);
	return false;
}

/*
 * An error that comes back goes to a socket that is connected to the receiver, or to nobody.  Who asks
 * for errors would lose them while the socket is connected to an address of its own host.
 */
static bool asks_for_errors(int fd)
{
	return option_of(fd, IPPROTO_IP, IP_RECVERR) == 1 ||
	       option_of(fd, IPPROTO_IPV6, IPV6_RECVERR) == 1;
}

bool turn_ports_before_send(int fd, const struct sockaddr *to, socklen_t len)
{
	choose(fd, NULL);
	return !asks_for_errors(fd) && take_own_address(fd, to, len);
}

void turn_ports_after_send(int fd)
{
	turn_disconnect(fd);
}

bool turn_ports_read(const struct sockaddr *given, socklen_t len, uint8_t ret[static 16])
{
	union address to;
	struct in6_addr ip;

	if (!given || len < sizeof(sa_family_t) || !turn_can_read(given, smaller(len, sizeof(to))))
		return false;
	memcpy(&to, given, smaller(len, sizeof(to)));
	if (!get_ipv6(&to, len, &ip))
		return false;
	memcpy(ret, &ip, 16);
	return true;
}

void turn_ports_before_carried(int fd, const struct sockaddr *given, socklen_t len,
			       union turn_address *ret_from, union turn_address *ret_to)
{
	struct in6_addr ip = IN6ADDR_ANY_INIT;
	union address own;
	socklen_t own_len = sizeof(own);

	memset(ret_to, 0, sizeof(*ret_to));
	memset(ret_from, 0, sizeof(*ret_from));
	memcpy(ret_to, given, smaller(len, sizeof(*ret_to)));
	get_ipv6((const union address *)ret_to, len, &ip);
	choose(fd, &ip);
	if (TURN_RAW(SYS_getsockname, fd, &own, &own_len) < 0)
		return;
	if (is_any(&own))
		set_source(&own, &ip);
	memcpy(ret_from, &own, smaller(own_len, sizeof(*ret_from)));
}

/*
 * From that port only, if the socket has none: the kernel lets go of it when the connection fails,
 * unlike one that the socket was bound to.  False: Linux before 6.3.
 */
static bool set_range(int fd, uint32_t first, uint32_t last)
{
	const uint32_t range = last << 16 | first;

	return !TURN_RAW(SYS_setsockopt, fd, IPPROTO_IP, IP_LOCAL_PORT_RANGE, &range, sizeof(range));
}

static bool set_next_port(struct turn_source *source)
{
	const uint32_t port = FIRST_PORT + turn_segment->ports % NUM_PORTS;

	if (source->tries >= NUM_PORTS || !set_range(source->fd, port, port))
		return false;
	source->tries++;
	source->port = port;
	turn_segment->ports++;
	return true;
}

static bool has_port(int fd, uint32_t port)
{
	union address own;
	socklen_t len = sizeof(own);

	return TURN_RAW(SYS_getsockname, fd, &own, &len) >= 0 && port_in(&own, len) &&
	       ntohs(*port_in(&own, len)) == port;
}

static void bind_without_port(int fd, union address *address, socklen_t len)
{
	const int was = option_of(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT), on = 1;

	*port_in(address, len) = 0;
	TURN_RAW(SYS_setsockopt, fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	TURN_RAW(SYS_bind, fd, &address->sa, len);
	TURN_RAW(SYS_setsockopt, fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &was, sizeof(was));
}

void turn_ports_before_connect(int fd, const struct sockaddr *to, socklen_t len,
			       struct turn_source *source)
{
	struct in6_addr address;
	union address own;
	socklen_t own_len = sizeof(own);

	*source = (struct turn_source){ .fd = fd };
	/* Where none is the kernel says so. */
	if (len < sizeof(sa_family_t) || !turn_can_read(to, smaller(len, sizeof(union address))) ||
	    !get_ipv6((const union address *)to, len, &address))
		return;
	if (!turn_tcp_is(fd) || !set_next_port(source)) {
		choose(fd, &address);
		source->is_connected = take_own_address(fd, to, len);
		return;
	}
	if (TURN_RAW(SYS_getsockname, fd, &own, &own_len) < 0 || !port_in(&own, own_len) ||
	    !is_any(&own))
		return;
	source->is_any = true;
	set_source(&own, &address);
	if (!is_any(&own))
		bind_without_port(fd, &own, own_len);
}

bool turn_ports_try_next(struct turn_source *source, long result)
{
	if (!source->tries)
		return false;
	if (result == -EADDRNOTAVAIL && set_next_port(source))
		return true;
	set_range(source->fd, 0, 0);
	if (turn_segment->ports_for[source->port] && has_port(source->fd, source->port))
		take_port(source->port);
	return false;
}

void turn_ports_connect_failed(const struct turn_source *source)
{
	union address own;
	socklen_t len = sizeof(own);

	if (source->is_connected)
		turn_disconnect(source->fd);
	if (!source->is_any || TURN_RAW(SYS_getsockname, source->fd, &own, &len) < 0)
		return;
	if (own.sa.sa_family == AF_INET)
		own.in.sin_addr.s_addr = INADDR_ANY;
	else
		own.in6.sin6_addr = (struct in6_addr)IN6ADDR_ANY_INIT;
	bind_without_port(source->fd, &own, len);
}

/* Who finds no room in a backlog of TCP would try again after a second of real time. */
long turn_listen(const struct turn_call *call)
{
	struct turn_call roomy = *call;
	long result;

	choose((int)call->arguments[0], NULL);
	if (turn_tcp_is((int)call->arguments[0]))
		roomy.arguments[1] = INT_MAX;
	result = turn_through(&roomy);
	if (!result)
		turn_reuse_join((int)call->arguments[0]);
	return turn_done(result);
}

/* A name of the kernel's choice, which nobody else has. */
static long bind_to_name(int fd)
{
	static const char digits[] = "0123456789abcdef";
	union address name = { .un = { .sun_family = AF_UNIX } };
	long result = -EADDRINUSE;

	for (uint32_t i = 0; i < NUM_NAMES && result == -EADDRINUSE; i++) {
		const uint32_t number = turn_segment->names++ % NUM_NAMES;

		for (unsigned int at = 0; at < 5; at++)
			name.un.sun_path[1 + at] = digits[number >> (16 - 4 * at) & 15];
		result = TURN_RAW(SYS_bind, fd, &name, offsetof(struct sockaddr_un, sun_path) + 6);
	}
	return result;
}

long turn_bind(const struct turn_call *call)
{
	const int fd = (int)call->arguments[0];
	const size_t len = (size_t)call->arguments[2];
	const struct sockaddr *given = (const struct sockaddr *)call->arguments[1];
	union address address = { .sa = { .sa_family = AF_UNSPEC } };
	in_port_t *port = NULL;
	long result = -EADDRINUSE;

	if (len >= sizeof(sa_family_t) && len <= sizeof(address) && turn_can_read(given, len)) {
		memcpy(&address, given, len);
		port = port_in(&address, len);
	}
	if (address.sa.sa_family == AF_UNIX && len == sizeof(sa_family_t))
		result = bind_to_name(fd);
	/* With that option the port is chosen by connect() or listen(). */
	else if (port && !*port && has_ports(fd) &&
		 option_of(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT) != 1)
		result = bind_to_port(fd, &address, port, len);
	if (result == -EADDRINUSE)
		result = turn_through(call);
	if (!result)
		turn_reuse_join(fd);
	return turn_done(result);
}
