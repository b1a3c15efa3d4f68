/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/gids.c - a port's GID table as its transport's kernel drivers fill it.
 *
 * InfiniBand: subnet prefix and port GUID.  RoCE: the link-local GID of the
 * MAC, then one of each address, each once for v1 and once for v2.  iWARP: the
 * MAC, which is no more than a name there.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "providers/soft/wire/address.h"
#include "gids.h"

/* FNV-1a, 64 bits. */
static uint64_t hash_name(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 0x100000001b3u;
	return hash;
}

void sim_mac_of_name(const char *name, uint8_t mac[6])
{
	uint64_t hash = hash_name(name);

	mac[0] = 0x02;
	for (unsigned int i = 1; i < 6; i++, hash >>= 8)
		mac[i] = (uint8_t)(hash ^ hash >> 40);
}

void sim_eui64_of_mac(const uint8_t mac[6], uint8_t eui64[8])
{
	const uint8_t bytes[8] = {
		mac[0] ^ 0x02, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5],
	};

	memcpy(eui64, bytes, sizeof(bytes));
}

bool sim_gid_is_set(const struct sim_gid *entry)
{
	static const union ibv_gid none;

	return memcmp(entry->gid.raw, none.raw, sizeof(none.raw)) != 0;
}

/* As in the kernel, the first free place. */
static struct sim_gid *free_entry(struct sim_port *port)
{
	for (unsigned int i = 0; i < port->num_gids; i++)
		if (!sim_gid_is_set(&port->gids[i]))
			return &port->gids[i];
	return &port->gids[port->num_gids++];
}

static unsigned int num_free(const struct sim_port *port)
{
	unsigned int num = SIM_MAX_GIDS - port->num_gids;

	for (unsigned int i = 0; i < port->num_gids; i++)
		num += !sim_gid_is_set(&port->gids[i]);
	return num;
}

static void add(struct sim_port *port, const union ibv_gid *gid, uint32_t type, uint32_t ifindex)
{
	*free_entry(port) = (struct sim_gid){ .gid = *gid, .type = type, .ifindex = ifindex };
}

static void add_both(struct sim_port *port, const union ibv_gid *gid, uint32_t ifindex)
{
	add(port, gid, IBV_GID_TYPE_ROCE_V1, ifindex);
	add(port, gid, IBV_GID_TYPE_ROCE_V2, ifindex);
}

static union ibv_gid link_local_of(const uint8_t mac[6])
{
	union ibv_gid gid = { .raw = { 0xfe, 0x80 } };

	sim_eui64_of_mac(mac, gid.raw + 8);
	return gid;
}

void sim_gids_init(struct sim_port *port, uint32_t ifindex)
{
	union ibv_gid link_local = link_local_of(port->mac), mac = { .raw = { 0 } };

	port->num_gids = 0;
	switch (sim_wire_of(port->device->rules)) {
	case SIM_WIRE_IB:
		add(port, &link_local, IBV_GID_TYPE_IB, 0);
		break;
	case SIM_WIRE_ROCE:
		add_both(port, &link_local, ifindex);
		break;
	case SIM_WIRE_IWARP:
		memcpy(mac.raw, port->mac, 6);
		add(port, &mac, IBV_GID_TYPE_IB, ifindex);
		break;
	}
}

void sim_gid_of_address(const union sim_sockaddr *addr, union ibv_gid *ret_gid)
{
	uint8_t bytes[16];

	if (sim_addr_bytes(addr, bytes) == 4) {
		memset(ret_gid->raw, 0, 10);
		ret_gid->raw[10] = ret_gid->raw[11] = 0xff;
		memcpy(ret_gid->raw + 12, bytes, 4);
	} else {
		memcpy(ret_gid->raw, bytes, 16);
	}
}

bool sim_gids_add_address(struct sim_port *port, const union sim_sockaddr *addr, uint32_t ifindex)
{
	union ibv_gid gid;

	if (sim_wire_of(port->device->rules) != SIM_WIRE_ROCE)
		return true;
	sim_gid_of_address(addr, &gid);
	for (unsigned int i = 0; i < port->num_gids; i++)
		if (!memcmp(&port->gids[i].gid, &gid, sizeof(gid)))
			return true;
	if (num_free(port) < 2)
		return false;
	add_both(port, &gid, ifindex);
	return true;
}

/* The link-local GID of the MAC stays also where it was an address as well. */
static bool is_of_mac(const struct sim_port *port, const union ibv_gid *gid)
{
	union ibv_gid link_local = link_local_of(port->mac);

	return !memcmp(gid, &link_local, sizeof(link_local));
}

void sim_gids_remove_address(struct sim_port *port, const union sim_sockaddr *addr)
{
	union ibv_gid gid;

	if (sim_wire_of(port->device->rules) != SIM_WIRE_ROCE)
		return;
	sim_gid_of_address(addr, &gid);
	if (is_of_mac(port, &gid))
		return;
	for (unsigned int i = 0; i < port->num_gids; i++)
		if (!memcmp(&port->gids[i].gid, &gid, sizeof(gid)))
			memset(&port->gids[i].gid, 0, sizeof(port->gids[i].gid));
}

void sim_gids_renew_mac(struct sim_port *port, const uint8_t mac[6])
{
	enum sim_wire wire = sim_wire_of(port->device->rules);

	for (unsigned int i = 0; i < port->num_gids; i++) {
		uint8_t *gid = port->gids[i].gid.raw;

		if (wire == SIM_WIRE_ROCE && is_of_mac(port, &port->gids[i].gid))
			sim_eui64_of_mac(mac, gid + 8);
		else if (wire == SIM_WIRE_IWARP && !memcmp(gid, port->mac, 6))
			memcpy(gid, mac, 6);
	}
	memcpy(port->mac, mac, 6);
	/* InfiniBand has none on its wire, and the kernel's TCP asks again. */
	if (wire == SIM_WIRE_ROCE)
		port->mac_number++;
}

int sim_port_gid_of_address(const struct sim_port *port, const struct sockaddr *addr,
			    union ibv_gid *ret_gid)
{
	union sim_sockaddr copy = sim_addr_copy(addr);
	union ibv_gid gid;

	if (!copy.sa.sa_family)
		return -EADDRNOTAVAIL;
	sim_gid_of_address(&copy, &gid);
	if (sim_wire_of(port->device->rules) != SIM_WIRE_ROCE) {
		*ret_gid = port->gids[0].gid;
		return 0;
	}
	for (unsigned int i = 0; i < port->num_gids; i++) {
		const struct sim_gid *entry = &port->gids[i];

		if (entry->type == IBV_GID_TYPE_ROCE_V2 &&
		    !memcmp(&entry->gid, &gid, sizeof(gid))) {
			*ret_gid = entry->gid;
			return (int)i;
		}
	}
	return -EADDRNOTAVAIL;
}
