/* SPDX-License-Identifier: BSD-2-Clause */
/* address.c - comparing and parsing IPv4 and IPv6 addresses. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"

union sim_sockaddr sim_addr_copy(const struct sockaddr *addr)
{
	union sim_sockaddr copy;
	sa_family_t family;

	memset(&copy, 0, sizeof(copy));
	memcpy(&family, (const char *)addr + offsetof(struct sockaddr, sa_family), sizeof(family));
	if (family == AF_INET) {
		memcpy(&copy.in, addr, sizeof(copy.in));
		memset(copy.in.sin_zero, 0, sizeof(copy.in.sin_zero));
	} else if (family == AF_INET6) {
		memcpy(&copy.in6, addr, sizeof(copy.in6));
	}
	return copy;
}

bool sim_addr_is_zero(const struct sockaddr *addr)
{
	union sim_sockaddr a = sim_addr_copy(addr);

	if (a.sa.sa_family == AF_INET)
		return !(ntohl(a.in.sin_addr.s_addr) >> 24);
	return a.sa.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&a.in6.sin6_addr);
}

bool sim_addr_is_loopback(const struct sockaddr *addr)
{
	union sim_sockaddr a = sim_addr_copy(addr);

	if (a.sa.sa_family == AF_INET)
		return ntohl(a.in.sin_addr.s_addr) >> 24 == 127;
	return a.sa.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&a.in6.sin6_addr);
}

bool sim_addr_is_link_local(const struct sockaddr *addr)
{
	union sim_sockaddr a = sim_addr_copy(addr);

	return a.sa.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&a.in6.sin6_addr);
}

bool sim_addr_is_multicast(const struct sockaddr *addr)
{
	union sim_sockaddr a = sim_addr_copy(addr);

	if (a.sa.sa_family == AF_INET)
		return IN_MULTICAST(ntohl(a.in.sin_addr.s_addr));
	return a.sa.sa_family == AF_INET6 && IN6_IS_ADDR_MULTICAST(&a.in6.sin6_addr);
}

unsigned int sim_addr_bytes(const union sim_sockaddr *addr, uint8_t bytes[16])
{
	memset(bytes, 0, 16);
	switch (addr->sa.sa_family) {
	case AF_INET:
		memcpy(bytes, &addr->in.sin_addr, 4);
		return 4;
	case AF_INET6:
		memcpy(bytes, &addr->in6.sin6_addr, 16);
		return 16;
	default:
		return 0;
	}
}

bool sim_addr_in_prefix(const struct sockaddr *addr, const struct sockaddr *prefix,
			unsigned int bits)
{
	union sim_sockaddr a = sim_addr_copy(addr), p = sim_addr_copy(prefix);
	uint8_t a_bytes[16], p_bytes[16];
	unsigned int whole = bits / 8;

	if (a.sa.sa_family != p.sa.sa_family || bits > 8 * sim_addr_bytes(&a, a_bytes))
		return false;
	sim_addr_bytes(&p, p_bytes);
	if (memcmp(a_bytes, p_bytes, whole))
		return false;
	return !(bits % 8) || (a_bytes[whole] ^ p_bytes[whole]) >> (8 - bits % 8) == 0;
}

bool sim_addr_equal(const struct sockaddr *a, const struct sockaddr *b)
{
	union sim_sockaddr x = sim_addr_copy(a), y = sim_addr_copy(b);
	uint8_t x_bytes[16], y_bytes[16];

	if (x.sa.sa_family != y.sa.sa_family || !sim_addr_bytes(&x, x_bytes))
		return false;
	sim_addr_bytes(&y, y_bytes);
	if (memcmp(x_bytes, y_bytes, 16))
		return false;
	return !sim_addr_is_link_local(&x.sa) || !x.in6.sin6_scope_id || !y.in6.sin6_scope_id ||
	       x.in6.sin6_scope_id == y.in6.sin6_scope_id;
}

uint16_t sim_addr_port(const struct sockaddr *addr)
{
	union sim_sockaddr a = sim_addr_copy(addr);

	return ntohs(a.sa.sa_family == AF_INET ? a.in.sin_port : a.in6.sin6_port);
}

void sim_addr_set_port(union sim_sockaddr *addr, uint16_t port)
{
	if (addr->sa.sa_family == AF_INET)
		addr->in.sin_port = htons(port);
	else if (addr->sa.sa_family == AF_INET6)
		addr->in6.sin6_port = htons(port);
}

int sim_addr_parse(const char *text, union sim_sockaddr *ret_addr, uint8_t *ret_prefix_len)
{
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	union sim_sockaddr addr;
	char host[INET6_ADDRSTRLEN];
	unsigned long bits, max;
	char *end;

	if (len >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';

	memset(&addr, 0, sizeof(addr));
	if (inet_pton(AF_INET, host, &addr.in.sin_addr) == 1)
		addr.sa.sa_family = AF_INET;
	else if (inet_pton(AF_INET6, host, &addr.in6.sin6_addr) == 1)
		addr.sa.sa_family = AF_INET6;
	else
		return -EINVAL;

	bits = max = addr.sa.sa_family == AF_INET ? 32 : 128;
	if (slash) {
		if (slash[1] < '0' || slash[1] > '9')
			return -EINVAL;
		bits = strtoul(slash + 1, &end, 10);
		if (*end || bits > max)
			return -EINVAL;
	}
	*ret_addr = addr;
	*ret_prefix_len = (uint8_t)bits;
	return 0;
}
