/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/numbers.c - MACs and LIDs that say an IPv4 address (self.h).
 *
 * Programs that exchange GIDs or LIDs themselves (ibv_rc_pingpong) never name an address of the
 * peer.  But the default GID of a RoCE port is made of its MAC, the port GID of InfiniBand of its
 * GUID, and a LID needs to be unique in a subnet only.
 */
#include "config.h"

#include <arpa/inet.h>
#include <string.h>

#include "hello.h"
#include "self.h"

/* Locally administered; the second byte marks ours. */
#define MAC_FIRST 0x02u
#define MAC_MARK 0xf1u

void ofi_mac_of_ipv4(in_addr_t addr, uint8_t ret_mac[6])
{
	ret_mac[0] = MAC_FIRST;
	ret_mac[1] = MAC_MARK;
	memcpy(ret_mac + 2, &addr, 4);
}

static void set_ipv4(union sim_sockaddr *ret_addr, const uint8_t *high, const uint8_t *low)
{
	memset(ret_addr, 0, sizeof(*ret_addr));
	ret_addr->in.sin_family = AF_INET;
	memcpy(&ret_addr->in.sin_addr, high, 2);
	memcpy((uint8_t *)&ret_addr->in.sin_addr + 2, low, 2);
}

bool ofi_address_of_gid(const union ibv_gid *gid, union sim_sockaddr *ret_addr)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	const uint8_t *eui64 = gid->raw + 8;
	struct in6_addr in6;

	memcpy(&in6, gid->raw, sizeof(in6));
	if (!memcmp(gid->raw, mapped, sizeof(mapped))) {
		set_ipv4(ret_addr, gid->raw + 12, gid->raw + 14);
		return true;
	}
	if (IN6_IS_ADDR_LINKLOCAL(&in6)) {
		/* An EUI-64 of a MAC: its first byte has a bit turned over, ff:fe is in the middle. */
		if ((eui64[0] ^ 0x02) != MAC_FIRST || eui64[1] != MAC_MARK || eui64[3] != 0xff ||
		    eui64[4] != 0xfe)
			return false;
		set_ipv4(ret_addr, (uint8_t[]){ eui64[2], eui64[5] }, eui64 + 6);
		return true;
	}
	if (IN6_IS_ADDR_UNSPECIFIED(&in6) || IN6_IS_ADDR_MULTICAST(&in6) ||
	    IN6_IS_ADDR_LOOPBACK(&in6))
		return false;
	memset(ret_addr, 0, sizeof(*ret_addr));
	ret_addr->in6.sin6_family = AF_INET6;
	ret_addr->in6.sin6_addr = in6;
	return true;
}

uint16_t ofi_lid_of_ipv4(in_addr_t addr)
{
	uint32_t number = ntohl(addr) & 0xffff;

	return (uint16_t)(number % OFI_MAX_LID + (number % OFI_MAX_LID == 0));
}

bool ofi_address_of_lid(uint16_t lid, const struct sim_address *network,
			union sim_sockaddr *ret_addr)
{
	uint32_t own = ntohl(network->addr.in.sin_addr.s_addr), hosts;

	if (network->addr.sa.sa_family != AF_INET || !network->prefix_len || !lid || lid > OFI_MAX_LID)
		return false;
	hosts = network->prefix_len < 32 ? UINT32_MAX >> network->prefix_len : 0;
	if (lid > hosts && (own & 0xffff & ~hosts) != (lid & ~hosts))
		return false;
	memset(ret_addr, 0, sizeof(*ret_addr));
	ret_addr->in.sin_family = AF_INET;
	ret_addr->in.sin_addr.s_addr = htonl((own & 0xffff0000u) | lid);
	return true;
}
