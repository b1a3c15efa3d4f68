/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire/address.h - IPv4, IPv6 and AF_IB addresses as the fabric and its port table
 * compare them.  Arguments may be unaligned and are of any family.
 */
#ifndef SIM_ADDRESS_H
#define SIM_ADDRESS_H

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

/* IPv4, the most frequent, is read in place; others are copied first. */
union sim_sockaddr sim_addr_copy_slow(const struct sockaddr *addr);
bool sim_addr_is_zero_slow(const struct sockaddr *addr);
bool sim_addr_is_loopback_slow(const struct sockaddr *addr);
bool sim_addr_is_link_local_slow(const struct sockaddr *addr);
bool sim_addr_is_multicast_slow(const struct sockaddr *addr);
uint16_t sim_addr_port_slow(const struct sockaddr *addr);

/* Only what belongs to the family, so that equal addresses are equal bytes; else family 0. */
static inline union sim_sockaddr sim_addr_copy(const struct sockaddr *addr)
{
	union sim_sockaddr copy = { .ib = { .sib_family = 0 } };

	if (sim_addr_family(addr) != AF_INET)
		return sim_addr_copy_slow(addr);
	memcpy(&copy.in, addr, offsetof(struct sockaddr_in, sin_zero));
	return copy;
}

/* As the kernel's RDMA CM has it: 0.0.0.0 and :: are "zero", 127/8 and ::1 "loopback", GIDs likewise. */
static inline bool sim_addr_is_zero(const struct sockaddr *addr)
{
	return sim_addr_family(addr) == AF_INET ? !sim_addr_ipv4(addr)
						: sim_addr_is_zero_slow(addr);
}

static inline bool sim_addr_is_loopback(const struct sockaddr *addr)
{
	return sim_addr_family(addr) == AF_INET ? ntohl(sim_addr_ipv4(addr)) >> 24 == 127
						: sim_addr_is_loopback_slow(addr);
}

/* IPv6 */
static inline bool sim_addr_is_link_local(const struct sockaddr *addr)
{
	return sim_addr_family(addr) == AF_INET6 && sim_addr_is_link_local_slow(addr);
}

bool sim_addr_is_mapped(const struct sockaddr *addr);		/* an IPv4-mapped IPv6 address */

static inline bool sim_addr_is_multicast(const struct sockaddr *addr)
{
	return sim_addr_family(addr) == AF_INET ? IN_MULTICAST(ntohl(sim_addr_ipv4(addr)))
						: sim_addr_is_multicast_slow(addr);
}

/* The bytes of the address itself: 4, 16, or 0 of another family. */
unsigned int sim_addr_bytes(const union sim_sockaddr *addr, uint8_t bytes[16]);
/* Ports do not count; link-local addresses may be equal on different interfaces. */
bool sim_addr_equal_slow(const struct sockaddr *a, const struct sockaddr *b);
static inline bool sim_addr_equal(const struct sockaddr *a, const struct sockaddr *b)
{
	sa_family_t family = sim_addr_family(a);

	if (family != sim_addr_family(b))
		return false;
	return family == AF_INET ? sim_addr_ipv4(a) == sim_addr_ipv4(b) : sim_addr_equal_slow(a, b);
}
/* Do the first bits agree? */
bool sim_addr_in_prefix(const struct sockaddr *addr, const struct sockaddr *prefix,
			unsigned int bits);

/* In host byte order; AF_IB: of the bits that the mask of its service id covers. */
static inline uint16_t sim_addr_port(const struct sockaddr *addr)
{
	in_port_t port;

	if (sim_addr_family(addr) != AF_INET)
		return sim_addr_port_slow(addr);
	memcpy(&port, (const char *)addr + offsetof(struct sockaddr_in, sin_port), sizeof(port));
	return ntohs(port);
}
void sim_addr_set_port(union sim_sockaddr *addr, uint16_t port);

/* "10.0.0.1/24", "fd00::1"; without a length the whole address.  0 or -EINVAL. */
int sim_addr_parse(const char *text, union sim_sockaddr *ret_addr, uint8_t *ret_prefix_len);

#endif
