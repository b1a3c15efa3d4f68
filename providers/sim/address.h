/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * address.h - IPv4 and IPv6 addresses as the fabric and its port table compare
 * them.  Arguments may be unaligned and are of any family.
 */
#ifndef SIM_ADDRESS_H
#define SIM_ADDRESS_H

#include "fabric.h"

/* Only what belongs to the family, so that equal addresses are equal bytes; else family 0. */
union sim_sockaddr sim_addr_copy(const struct sockaddr *addr);

/* As the kernel's RDMA CM has it: 0/8 and :: are "zero", 127/8 and ::1 "loopback". */
bool sim_addr_is_zero(const struct sockaddr *addr);
bool sim_addr_is_loopback(const struct sockaddr *addr);
bool sim_addr_is_link_local(const struct sockaddr *addr);	/* IPv6 */

bool sim_addr_is_multicast(const struct sockaddr *addr);

/* The bytes of the address itself: 4, 16, or 0 of another family. */
unsigned int sim_addr_bytes(const union sim_sockaddr *addr, uint8_t bytes[16]);
/* Ports do not count; link-local addresses may be equal on different interfaces. */
bool sim_addr_equal(const struct sockaddr *a, const struct sockaddr *b);
/* Do the first bits agree? */
bool sim_addr_in_prefix(const struct sockaddr *addr, const struct sockaddr *prefix,
			unsigned int bits);

uint16_t sim_addr_port(const struct sockaddr *addr);	/* host byte order */
void sim_addr_set_port(union sim_sockaddr *addr, uint16_t port);

/* "10.0.0.1/24", "fd00::1"; without a length the whole address.  0 or -EINVAL. */
int sim_addr_parse(const char *text, union sim_sockaddr *ret_addr, uint8_t *ret_prefix_len);

#endif
