/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/remote.h - nodes on other machines, and which of their processes a packet is for.
 *
 * Processes of this machine have slots below SIM_MAX_SLOTS; SIM_NOBODY is none.  Those of other
 * machines have slots above it, which this process gives them.  Numbers (of connections, QPs and
 * ports) are each machine's own: so what they mean depends on the node.  If it is not known
 * which process of a node has a number, the slot has SIM_SLOT_ASK: what is sent there waits
 * for the answer.
 *
 * Engine lock held for all.
 */
#ifndef SIM_REMOTE_H
#define SIM_REMOTE_H

#include <sys/uio.h>

#include "fabric.h"

#define SIM_SLOT_ASK 0x80000000u

/* Set before the first node of another machine is added, and never changed: NULL, there are none. */
struct sim_remote_ops {
	/* The process of the node that made a connection id, by its slot there. */
	unsigned int (*slot_of_conn)(struct sim_node *node, unsigned int slot);
	unsigned int (*slot_of_qpn)(struct sim_node *node, uint32_t qpn);
	/*
	 * The process to which a request for a service goes, or a SYN (ps 0); SIM_NOBODY: none
	 * runs there, so any process may answer as that node's CM would.
	 */
	unsigned int (*slot_of_service)(struct sim_node *node, enum rdma_port_space ps,
					const struct sockaddr *addr);
	/*
	 * The port with an address that no known node has: that of a node which is added now, and
	 * is asked whether it is there.  Until it answers, the port is down.  NULL: no other
	 * machine can have it.
	 */
	struct sim_port *(*port_of_address)(const struct sockaddr *addr);
	struct sim_port *(*port_of_gid)(const union ibv_gid *gid);
	struct sim_port *(*port_of_lid)(uint16_t lid);
	/* Ask a node again that is not known to be there. */
	void (*ask)(struct sim_node *node);
	/* A datagram to a group, header first: for the members on other machines. */
	void (*send_to_group)(struct sim_port *from, const void *header, size_t header_len,
			      const struct iovec *payload, unsigned int parts, size_t payload_len);
	/* This process is in a group now: other machines that may send to it are to know of it. */
	void (*joined)(void);
	/* 0, or why the node's machine does not talk to us. */
	int (*status)(const struct sim_node *node);
	/* The source of packets to dst, as the kernel's routing table says.  -ENETUNREACH. */
	int (*source_for)(const struct sockaddr *dst, union sim_sockaddr *ret_source);
	/* Has the process what was sent to it, or will it, so that a card would have answered? */
	bool (*stands_still)(unsigned int slot);
	/* The longest packet that a process gets, from SIM_LINK_MAX_PACKET to SIM_LINK_MAX_LONG. */
	size_t (*max_packet)(unsigned int slot);
	/* A trace begins: it says which machine it is of. */
	void (*trace_begins)(void);
};
extern const struct sim_remote_ops *sim_remote;

/* The process that made a connection id, of whichever machine the port is; port NULL: of this one. */
static inline unsigned int sim_slot_of_peer_conn(const struct sim_port *port, uint32_t conn_id)
{
	struct sim_node *node = port ? port->device->node : NULL;

	if (__builtin_expect(node && node->remote, 0))
		return sim_remote->slot_of_conn(node, sim_slot_of_conn(conn_id));
	return sim_slot_of_conn(conn_id);
}

/* SIM_NOBODY: nobody has that QP number. */
static inline unsigned int sim_slot_of_peer_qpn(const struct sim_port *port, uint32_t qpn)
{
	struct sim_node *node = port ? port->device->node : NULL;

	if (__builtin_expect(node && node->remote, 0))
		return sim_remote->slot_of_qpn(node, qpn);
	return sim_slot_of_qpn(qpn);
}

/*
 * The process that listens for a connection to addr, with its port: of TCP sockets (ps 0), or
 * in a port space.  false: nobody does, and *ret_slot is unchanged.
 */
static inline bool sim_find_service(struct sim_node *node, enum rdma_port_space ps,
				    const struct sockaddr *addr, unsigned int *ret_slot)
{
	struct sim_id *listener;
	unsigned int slot;
	bool service;

	if (__builtin_expect(node->remote != NULL, 0)) {
		slot = sim_remote->slot_of_service(node, ps, addr);
		if (slot != SIM_NOBODY)
			*ret_slot = slot;
		return slot != SIM_NOBODY;
	}
	return ps ? sim_find_listener(node, ps, addr, ret_slot, &listener, &service)
		  : sim_find_socket(node, addr, ret_slot, &listener);
}

/* Is that a process, so that it need not be looked up again? */
static inline bool sim_slot_is_known(unsigned int slot)
{
	return slot != SIM_NOBODY && !(slot & SIM_SLOT_ASK);
}

static inline bool sim_slot_is_remote(unsigned int slot)
{
	return slot > SIM_NOBODY;
}

#endif
