/* SPDX-License-Identifier: BSD-2-Clause */
/* wire/address.c - comparing IPv4, IPv6 and AF_IB addresses, and parsing those of IP. */
#include "config.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"

bool sim_addr_is_in6(const struct sockaddr *addr, const struct in6_addr *in6)
{
	union sim_sockaddr copy = sim_addr_copy(addr);
	uint8_t bytes[16];

	return sim_addr_bytes(&copy, bytes) == sizeof(bytes) && !memcmp(bytes, in6, sizeof(bytes));
}

bool sim_addr_is_mapped(const struct sockaddr *addr)
{
	union sim_sockaddr a = sim_addr_copy(addr);

	return a.sa.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a.in6.sin6_addr);
}

bool sim_addr_is_multicast(const struct sockaddr *addr)
{
	union sim_sockaddr a = sim_addr_copy(addr);

	if (a.sa.sa_family == AF_INET)
		return IN_MULTICAST(ntohl(a.in.sin_addr.s_addr));
	return a.sa.sa_family == AF_INET6 && IN6_IS_ADDR_MULTICAST(&a.in6.sin6_addr);
}

bool sim_addr_in_prefix(const struct sockaddr *addr, const struct sockaddr *prefix,
			unsigned int bits)
{
	unsigned int whole = bits / 8;
	uint8_t a_bytes[16], p_bytes[16];
	union sim_sockaddr a, p;

	if (sim_addr_family(addr) == AF_INET && sim_addr_family(prefix) == AF_INET && bits <= 32)
		return !(ntohl(sim_addr_ipv4(addr) ^ sim_addr_ipv4(prefix)) &
			 (uint32_t)(UINT64_MAX << (32 - bits)));
	a = sim_addr_copy(addr);
	p = sim_addr_copy(prefix);
	if (a.sa.sa_family != p.sa.sa_family || bits > 8 * sim_addr_bytes(&a, a_bytes))
		return false;
	sim_addr_bytes(&p, p_bytes);
	if (memcmp(a_bytes, p_bytes, whole))
		return false;
	return !(bits % 8) || (a_bytes[whole] ^ p_bytes[whole]) >> (8 - bits % 8) == 0;
}

bool sim_addr_equal_in6(const struct sockaddr *a, const struct sockaddr *b)
{
	union sim_sockaddr x = sim_addr_copy(a), y = sim_addr_copy(b);
	uint8_t x_bytes[16], y_bytes[16];

	if (!sim_addr_bytes(&x, x_bytes))
		return false;
	sim_addr_bytes(&y, y_bytes);
	if (memcmp(x_bytes, y_bytes, 16))
		return false;
	return !sim_addr_is_link_local(&x.sa) || !x.in6.sin6_scope_id || !y.in6.sin6_scope_id ||
	       x.in6.sin6_scope_id == y.in6.sin6_scope_id;
}

uint16_t sim_addr_ib_port(const struct sockaddr *addr)
{
	union sim_sockaddr a = sim_addr_copy(addr);

	return (uint16_t)be64toh(a.ib.sib_sid & a.ib.sib_sid_mask);
}

void sim_addr_set_port(union sim_sockaddr *addr, uint16_t port)
{
	if (addr->sa.sa_family == AF_INET) {
		addr->in.sin_port = htons(port);
	} else if (addr->sa.sa_family == AF_INET6) {
		addr->in6.sin6_port = htons(port);
	} else if (addr->sa.sa_family == AF_IB) {
		addr->ib.sib_sid = (addr->ib.sib_sid & ~htobe64(UINT16_MAX)) | htobe64(port);
		addr->ib.sib_sid_mask = htobe64(UINT64_MAX);
	}
}

void sim_addr_put_ip(const union sim_sockaddr *addr, uint8_t version, uint8_t *port, uint8_t *ip)
{
	/* The same place in both. */
	if (port)
		memcpy(port, &addr->in.sin_port, sizeof(addr->in.sin_port));
	if (version == 4)
		memcpy(ip, &addr->in.sin_addr, sizeof(addr->in.sin_addr));
	else
		memcpy(ip, &addr->in6.sin6_addr, sizeof(addr->in6.sin6_addr));
}

union sim_sockaddr sim_addr_get_ip(uint8_t version, const uint8_t *port, const uint8_t *ip)
{
	union sim_sockaddr addr;

	memset(&addr, 0, sizeof(addr));
	addr.sa.sa_family = version == 4 ? AF_INET : AF_INET6;
	if (port)
		memcpy(&addr.in.sin_port, port, sizeof(addr.in.sin_port));
	if (version == 4)
		memcpy(&addr.in.sin_addr, ip, sizeof(addr.in.sin_addr));
	else
		memcpy(&addr.in6.sin6_addr, ip, sizeof(addr.in6.sin6_addr));
	return addr;
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
