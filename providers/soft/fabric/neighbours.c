/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/neighbours.c - what a node's ports have learned of neighbours' link addresses:
 * asked once, an answer stays known, as in the kernel, which goes on using an
 * old entry as long as nothing contradicts it.  Engine lock held.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "providers/soft/wire/address.h"
#include "fabric.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct key {
	uint32_t family;
	uint32_t scope;
	uint32_t port;
	uint8_t bytes[16];
};

struct sim_known {
	struct key key;
	UT_hash_handle hh;
};

static struct key key_of(const struct sim_port *port, const struct sockaddr *addr)
{
	union sim_sockaddr copy = sim_addr_copy(addr);
	struct key key;

	memset(&key, 0, sizeof(key));
	key.family = copy.sa.sa_family;
	key.port = port->fabric_index;
	if (sim_addr_is_link_local(addr))
		key.scope = copy.in6.sin6_scope_id;
	sim_addr_bytes(&copy, key.bytes);
	return key;
}

bool sim_port_knows(struct sim_port *port, const struct sockaddr *addr)
{
	bool is_ipv4 = sim_addr_family(addr) == AF_INET;
	struct sim_known *known;
	struct key key;

	if (is_ipv4 && port->known_lately && port->known_lately == sim_addr_ipv4(addr))
		return true;
	key = key_of(port, addr);
	HASH_FIND(hh, port->device->node->known, &key, sizeof(key), known);
	if (known && is_ipv4)
		port->known_lately = sim_addr_ipv4(addr);
	return known != NULL;
}

void sim_port_learn(struct sim_port *port, const struct sockaddr *addr)
{
	struct sim_known *known;

	if (sim_port_knows(port, addr))
		return;
	known = calloc(1, sizeof(*known));
	if (!known)
		return;			/* it asks once more */
	known->key = key_of(port, addr);
	HASH_ADD(hh, port->device->node->known, key, sizeof(known->key), known);
	if (!known->hh.tbl)
		free(known);
}

void sim_node_unlearn_all(struct sim_node *node)
{
	struct sim_known *known, *next;

	for (struct sim_device *device = node->devices; device; device = device->next)
		for (unsigned int i = 0; i < device->num_ports; i++)
			device->ports[i].known_lately = 0;
	HASH_ITER(hh, node->known, known, next) {
		HASH_DELETE(hh, node->known, known);
		free(known);
	}
}
