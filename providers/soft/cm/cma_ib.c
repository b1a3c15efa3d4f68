/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/cma_ib.c - addresses of family AF_IB: a GID in place of an IP address, a
 * service id in place of a port number.  Only InfiniBand has all of it; on RoCE
 * such an address resolves as far as the kernel lets it.  Engine lock held.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "cma_internal.h"

#define PKEY_MASK 0x7fffu	/* without the bit for full membership */
#define PREFIX_SIZE 8u		/* of a GID */

/*
 * The port space that a service id names, where the mask leaves it open the
 * first that the id may have.  RDMA_PS_IB ids may have any of the three.
 */
int cma_ib_port_space(struct sim_id *id)
{
	static const struct {
		enum rdma_port_space ps;
		uint64_t service;
	} spaces[] = {
		{ RDMA_PS_IB, RDMA_IB_PS_IB },
		{ RDMA_PS_TCP, RDMA_IB_IP_PS_TCP },
		{ RDMA_PS_UDP, RDMA_IB_IP_PS_UDP },
	};
	struct sockaddr_ib *sib = &id->src.ib;
	uint64_t mask = be64toh(sib->sib_sid_mask) & RDMA_IB_IP_PS_MASK;
	uint64_t service = be64toh(sib->sib_sid) & mask;
	uint16_t port = sim_addr_port(&id->src.sa);

	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		if ((id->ps != RDMA_PS_IB && id->ps != spaces[i].ps) ||
		    service != (spaces[i].service & mask))
			continue;
		sib->sib_sid = htobe64(spaces[i].service | port);
		sib->sib_sid_mask |= htobe64(RDMA_IB_IP_PS_MASK);
		id->bound_ps = spaces[i].ps;
		return 0;
	}
	return sim_refuse(-EPROTONOSUPPORT, "the service id is of another port space");
}

static bool has_gids(const struct sim_port *port)
{
	return port->device->rules->protocol == POLYCM_PROTO_IB_CM;
}

/* The port with the GID that an id is bound to. */
int cma_ib_port_of_source(const struct sim_id *id, const struct sockaddr_ib *sib,
			  struct sim_port **ret_port)
{
	union ibv_gid gid;
	struct sim_port *port;
	int r;

	memcpy(&gid, &sib->sib_addr, sizeof(gid));
	port = sim_port_of_gid(&gid);
	if (!port || !(port->device->rules->services & POLYCM_SVC_AF_IB))
		return sim_refuse(-ENODEV, "no InfiniBand device has this GID");
	r = cma_check_port_space(id, port);
	if (!r)
		*ret_port = port;
	return r;
}

enum suits { NOT, SAME_SUBNET, SAME_GID };

/* The better of what was found before and this port. */
static enum suits consider(struct sim_port *port, const union ibv_gid *dgid, enum suits before,
			   struct sim_port **ret_port, union ibv_gid *ret_sgid)
{
	static const union ibv_gid none;

	for (unsigned int i = 0; has_gids(port) && i < port->num_gids; i++) {
		const union ibv_gid *gid = &port->gids[i].gid;
		enum suits suits = NOT;

		if (!memcmp(gid, &none, sizeof(none)))
			continue;
		if (!memcmp(gid, dgid, sizeof(*gid)))
			suits = SAME_GID;
		else if (!memcmp(gid, dgid, PREFIX_SIZE) && port->state == IBV_PORT_ACTIVE)
			suits = SAME_SUBNET;
		if (suits > before) {
			*ret_port = port;
			*ret_sgid = *gid;
			before = suits;
		}
	}
	return before;
}

/*
 * The way to an id's destination: the node's port that is the destination, or
 * the first active one on its subnet.  No time passes, and nobody is asked.
 */
int cma_ib_resolve(struct sim_id *id)
{
	struct sim_port *port = NULL;
	enum suits found = NOT;
	union ibv_gid dgid, sgid;

	if (id->port)
		return 0;
	memcpy(&dgid, &id->dst.ib.sib_addr, sizeof(dgid));
	if ((be16toh(id->dst.ib.sib_pkey) & PKEY_MASK) != (SIM_PKEY & PKEY_MASK))
		return sim_refuse(-ENODEV, "no port has P_Key 0x%04x",
				  be16toh(id->dst.ib.sib_pkey));
	for (struct sim_device *device = id->node->devices; device; device = device->next)
		for (unsigned int i = 0; !device->removed && i < device->num_ports; i++)
			found = consider(&device->ports[i], &dgid, found, &port, &sgid);
	if (!found)
		return sim_refuse(-ENODEV, "no port is on the subnet of this GID");
	memcpy(&id->src.ib.sib_addr, &sgid, sizeof(sgid));
	id->src.ib.sib_pkey = htobe16(SIM_PKEY);
	cma_set_port(id, port);
	return 0;
}

union sim_sockaddr cma_ib_address(const union ibv_gid *gid, uint64_t service_id,
				  uint32_t flow_label)
{
	union sim_sockaddr addr = cma_any_address(AF_IB);

	addr.ib.sib_pkey = htobe16(SIM_PKEY);
	addr.ib.sib_flowinfo = htobe32(flow_label);
	memcpy(&addr.ib.sib_addr, gid, sizeof(*gid));
	addr.ib.sib_sid = htobe64(service_id);
	addr.ib.sib_sid_mask = htobe64(UINT64_MAX);
	return addr;
}
