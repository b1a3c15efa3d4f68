/* SPDX-License-Identifier: BSD-2-Clause */
/* base/addr.h - socket addresses as the rdma_* calls take them: AF_INET, AF_INET6 and AF_IB. */
#ifndef POLYCM_CORE_ADDR_H
#define POLYCM_CORE_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <infiniband/ib.h>

/* Bytes of an address of this family, 0 for a family that RDMA connections do not have. */
static inline size_t polycm_addr_len(const struct sockaddr *addr)
{
	if (!addr)
		return 0;

	switch (addr->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct sockaddr_ib);
	default:
		return 0;
	}
}

/* Is it 0.0.0.0, :: or the AF_IB address of zeros? */
bool polycm_addr_wildcard(const struct sockaddr *addr);
/* The port, network byte order; for AF_IB the low 16 bits of the service id. */
uint16_t polycm_addr_port(const struct sockaddr *addr);
void polycm_addr_set_port(struct sockaddr *addr, uint16_t port);

#define POLYCM_ADDR_TEXT 80
/* "127.0.0.1:7471", "[fd00::1]:7471"; "-" for none.  Returns buf. */
const char *polycm_addr_text(const struct sockaddr *addr, char buf[static POLYCM_ADDR_TEXT]);

#endif
