/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/owners.c - see owners.h. */
#include "config.h"

#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "owners.h"
#include "service.h"

#define MAX_BLOCKS 16384u	/* of a host, also if it says nonsense */
#define MAX_SERVICES 65536u

struct ofi_block {
	UT_hash_handle hh;
	uint32_t number;
	struct ofi_peer *peer;
};

/* Who listened at a port when a request was last sent there. */
struct ofi_service {
	UT_hash_handle hh;
	uint32_t number;		/* port space and port */
	struct ofi_peer *peer;
};

struct ofi_peer *ofi_owner(const struct sim_remote_host *host, uint32_t qpn)
{
	uint32_t number = ofi_block_of(qpn);
	struct ofi_block *block;

	HASH_FIND(hh, host->blocks, &number, sizeof(number), block);
	return block ? block->peer : NULL;
}

void ofi_owner_set(struct sim_remote_host *host, uint32_t qpn, struct ofi_peer *peer)
{
	uint32_t number = ofi_block_of(qpn);
	struct ofi_block *block;

	HASH_FIND(hh, host->blocks, &number, sizeof(number), block);
	if (block) {
		block->peer = peer;
		return;
	}
	if (HASH_COUNT(host->blocks) >= MAX_BLOCKS)
		return;
	block = calloc(1, sizeof(*block));
	if (!block)
		return;		/* it is asked for again */
	block->number = number;
	block->peer = peer;
	HASH_ADD(hh, host->blocks, number, sizeof(block->number), block);
	if (!block->hh.tbl)
		free(block);
}

static struct ofi_service *find_service(const struct sim_remote_host *host, uint32_t number)
{
	struct ofi_service *service;

	HASH_FIND(hh, host->services, &number, sizeof(number), service);
	return service;
}

void ofi_service_set(struct sim_remote_host *host, uint32_t number, struct ofi_peer *peer)
{
	struct ofi_service *service = find_service(host, number);

	if (service) {
		service->peer = peer;
		return;
	}
	service = HASH_COUNT(host->services) < MAX_SERVICES ? calloc(1, sizeof(*service)) : NULL;
	if (!service)
		return;
	service->number = number;
	service->peer = peer;
	HASH_ADD(hh, host->services, number, sizeof(service->number), service);
	if (!service->hh.tbl)
		free(service);
}

static unsigned int ask_slot(const struct sim_node *node)
{
	return SIM_SLOT_ASK | node->number;
}

unsigned int ofi_slot_of_conn(struct sim_node *node, unsigned int slot)
{
	const struct ofi_peer *peer = ofi_peer_of_slot(node->remote, (uint16_t)slot);

	return peer ? peer->number : ask_slot(node);
}

unsigned int ofi_slot_of_qpn(struct sim_node *node, uint32_t qpn)
{
	const struct ofi_peer *peer = ofi_owner(node->remote, qpn);

	return peer ? peer->number : ask_slot(node);
}

unsigned int ofi_slot_of_service(struct sim_node *node, enum rdma_port_space ps,
				 const struct sockaddr *addr)
{
	const struct ofi_service *service;

	service = find_service(node->remote, ofi_service_number(ps, sim_addr_port(addr)));
	return service ? service->peer->number : ask_slot(node);
}

void ofi_owners_forget(struct sim_remote_host *host, const struct ofi_peer *peer)
{
	struct ofi_service *service, *next_service;
	struct ofi_block *block, *next_block;

	HASH_ITER(hh, host->blocks, block, next_block) {
		if (peer && block->peer != peer)
			continue;
		HASH_DEL(host->blocks, block);
		free(block);
	}
	HASH_ITER(hh, host->services, service, next_service) {
		if (peer && service->peer != peer)
			continue;
		HASH_DEL(host->services, service);
		free(service);
	}
}
