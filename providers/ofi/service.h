/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/service.h - what a request asks for: the port space and port in a REQ, SIDR_REQ or SYN.
 * Engine lock held.
 */
#ifndef OFI_SERVICE_H
#define OFI_SERVICE_H

#include "providers/soft/link/link.h"
#include "hello.h"

/* Of a port space (0: of TCP sockets) and a port. */
static inline uint32_t ofi_service_number(unsigned int ps, uint16_t port)
{
	return (uint32_t)ps << 16 | port;
}

/* False: the packet, behind its header of 16 bytes, is no request. */
bool ofi_service_of(uint8_t type, const uint8_t *bytes, size_t len, uint32_t *ret_number);

/* The process of this host that a packet from another one is for: our slot, if it is no request. */
unsigned int ofi_service_owner(const struct sim_packet *packet);

/* What to ask for at the gate: the service, if the parts of a PACKET's body are a request. */
void ofi_service_want(enum sim_packet_type type, const struct iovec *parts, unsigned int num,
		      struct ofi_want *ret_want);

#endif
