/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire/address.h - IPv4, IPv6 and AF_IB addresses as the fabric and its port table
 * compare them.  Arguments may be unaligned and are of any family.
 */
#ifndef SIM_ADDRESS_H
#define SIM_ADDRESS_H

#include <endian.h>
#include <infiniband/ib.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* An IPv4, IPv6 or InfiniBand address with its port, small enough to keep per connection. */
union sim_sockaddr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_ib ib;
};

/* Of an address that may be unaligned; the same place in all families. */
static inline sa_family_t sim_addr_family(const struct sockaddr *addr)
{
	sa_family_t family;

	memcpy(&family, (const char *)addr + offsetof(struct sockaddr, sa_family), sizeof(family));
	return family;
}

/* Likewise the IPv4 address, in network byte order. */
static inline in_addr_t sim_addr_ipv4(const struct sockaddr *addr)
{
	in_addr_t value;

	memcpy(&value, (const char *)addr + offsetof(struct sockaddr_in, sin_addr), sizeof(value));
	return value;
}

/* Only what belongs to the family, so that equal addresses are equal bytes; else family 0. */
static inline union sim_sockaddr sim_addr_copy(const struct sockaddr *addr)
{
	union sim_sockaddr copy;
	sa_family_t family = sim_addr_family(addr);

	memset(&copy, 0, sizeof(copy));
	if (family == AF_INET)
		memcpy(&copy.in, addr, offsetof(struct sockaddr_in, sin_zero));
	else if (family == AF_INET6)
		memcpy(&copy.in6, addr, sizeof(copy.in6));
	else if (family == AF_IB)
		memcpy(&copy.ib, addr, sizeof(copy.ib));
	return copy;
}

/* Is it that address, or on AF_IB, whose addresses are GIDs, that GID? */
bool sim_addr_is_in6(const struct sockaddr *addr, const struct in6_addr *in6);

/* As the kernel's RDMA CM has it: 0.0.0.0 and :: are "zero", 127/8 and ::1 "loopback", GIDs likewise. */
static inline bool sim_addr_is_zero(const struct sockaddr *addr)
{
	return sim_addr_family(addr) == AF_INET ? !sim_addr_ipv4(addr)
						: sim_addr_is_in6(addr, &in6addr_any);
}

static inline bool sim_addr_is_loopback(const struct sockaddr *addr)
{
	return sim_addr_family(addr) == AF_INET ? ntohl(sim_addr_ipv4(addr)) >> 24 == 127
						: sim_addr_is_in6(addr, &in6addr_loopback);
}

/* An IPv6 one. */
static inline bool sim_addr_is_link_local(const struct sockaddr *addr)
{
	union sim_sockaddr a;

	if (sim_addr_family(addr) != AF_INET6)
		return false;
	a = sim_addr_copy(addr);
	return IN6_IS_ADDR_LINKLOCAL(&a.in6.sin6_addr);
}

bool sim_addr_is_mapped(const struct sockaddr *addr);		/* an IPv4-mapped IPv6 address */
bool sim_addr_is_multicast(const struct sockaddr *addr);

/* The bytes of the address itself: 4, 16, or 0 of another family. */
static inline unsigned int sim_addr_bytes(const union sim_sockaddr *addr, uint8_t bytes[16])
{
	memset(bytes, 0, 16);
	switch (addr->sa.sa_family) {
	case AF_INET:
		memcpy(bytes, &addr->in.sin_addr, 4);
		return 4;
	case AF_INET6:
		memcpy(bytes, &addr->in6.sin6_addr, 16);
		return 16;
	case AF_IB:
		memcpy(bytes, &addr->ib.sib_addr, 16);
		return 16;
	default:
		return 0;
	}
}

/* Ports do not count; link-local addresses may be equal on different interfaces. */
bool sim_addr_equal_in6(const struct sockaddr *a, const struct sockaddr *b);
static inline bool sim_addr_equal(const struct sockaddr *a, const struct sockaddr *b)
{
	if (sim_addr_family(a) != sim_addr_family(b))
		return false;
	return sim_addr_family(a) == AF_INET ? sim_addr_ipv4(a) == sim_addr_ipv4(b)
					     : sim_addr_equal_in6(a, b);
}

/* Do the first bits agree? */
bool sim_addr_in_prefix(const struct sockaddr *addr, const struct sockaddr *prefix,
			unsigned int bits);

uint16_t sim_addr_ib_port(const struct sockaddr *addr);
/* In host byte order; AF_IB: of the bits that the mask of its service id covers. */
static inline uint16_t sim_addr_port(const struct sockaddr *addr)
{
	sa_family_t family = sim_addr_family(addr);
	in_port_t port;

	if (family == AF_IB)
		return sim_addr_ib_port(addr);
	if (family != AF_INET && family != AF_INET6)
		return 0;
	/* In the same place for both. */
	memcpy(&port, (const char *)addr + offsetof(struct sockaddr_in, sin_port), sizeof(port));
	return ntohs(port);
}

void sim_addr_set_port(union sim_sockaddr *addr, uint16_t port);

/* The port and the address as headers have them, IP version 4 or 6; port NULL: there is none. */
void sim_addr_put_ip(const union sim_sockaddr *addr, uint8_t version, uint8_t *port, uint8_t *ip);
union sim_sockaddr sim_addr_get_ip(uint8_t version, const uint8_t *port, const uint8_t *ip);

/* "10.0.0.1/24", "fd00::1"; without a length the whole address.  0 or -EINVAL. */
int sim_addr_parse(const char *text, union sim_sockaddr *ret_addr, uint8_t *ret_prefix_len);

#endif
