/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi_sample.h - the HELLO and the PORTS that tests of providers/ofi begin with. */
#ifndef TESTS_UNIT_OFI_SAMPLE_H
#define TESTS_UNIT_OFI_SAMPLE_H

#include <rdma/rdma_cma.h>
#include <string.h>

#include "providers/ofi/hello.h"
#include "tests/cmocka_all.h"

/* "10.0.0.1", or with a port; "" for none. */
static inline union sim_sockaddr sample_addr(const char *text, uint16_t port)
{
	union sim_sockaddr addr;
	uint8_t prefix_len;

	memset(&addr, 0, sizeof(addr));
	if (*text)
		assert_int_equal(sim_addr_parse(text, &addr, &prefix_len), 0);
	sim_addr_set_port(&addr, port);
	return addr;
}

/* One port, an address of each family, a carrier, a key. */
static inline void sample_hello(struct ofi_hello *hello)
{
	struct ofi_carrier_name *carrier = &hello->carriers[0];
	struct ofi_ports *ports = &hello->ports;

	memset(hello, 0, sizeof(*hello));
	for (unsigned int i = 0; i < 16; i++) {
		hello->host[i] = (uint8_t)(0x10 + i);
		hello->nonce[i] = (uint8_t)(0x80 + i);
	}
	hello->slot = 0x0123;
	hello->generation = 0x89abcdef;
	hello->has_key = true;
	strcpy(hello->name, "hosta");
	strcpy(hello->transport, "roce");
	hello->rules = 0x0102030405060708;
	hello->token = 0x1112131415161718;
	hello->want.kind = OFI_WANT_SERVICE;
	hello->want.ps = RDMA_PS_TCP;
	hello->want.addr = sample_addr("10.0.0.7", 4791);

	ports->num_ports = 1;
	memcpy(ports->ports[0].guid, "\x02\x02\xc9\xff\xfe\x01\x02\x03", 8);
	memcpy(ports->ports[0].mac, "\x02\x02\xc9\x01\x02\x03", 6);
	ports->ports[0].lid = 11;
	ports->ports[0].mtu = 1500;
	ports->ports[0].active_mtu = IBV_MTU_1024;
	ports->ports[0].up = true;
	ports->num_addresses = 2;
	ports->addresses[0].addr = sample_addr("10.0.0.8", 0);
	ports->addresses[0].prefix_len = 24;
	ports->addresses[1].addr = sample_addr("fd00::8", 0);
	ports->addresses[1].prefix_len = 64;

	hello->num_carriers = 1;
	strcpy(carrier->provider, "tcp");
	strcpy(carrier->protocol, "rxm");
	carrier->format = 2;
	carrier->len = 4;
	memcpy(carrier->name, "\xc0\x00\x35\xff", 4);
}

#endif
