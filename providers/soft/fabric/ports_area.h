/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/ports_area.h - the table of bound port numbers, with the rules of the
 * kernel's RDMA CM for who may share one.
 *
 * The table is plain memory without pointers, private or in the shared
 * segment; all zero is empty.  Its user keeps others out.
 */
#ifndef SIM_PORTS_AREA_H
#define SIM_PORTS_AREA_H

#include "fabric.h"

#define SIM_PORT_ENTRIES (4u * 65536u)	/* four port spaces */
#define SIM_PORT_BUCKETS 16384u

#define SIM_PORT_SOCKET (1u << 5)	/* beside SIM_BIND_*: listens by TCP */
#define SIM_PORT_LISTENING (1u << 6)
#define SIM_PORT_ANY (1u << 7)		/* wildcard or loopback address */

struct sim_port_binding {
	uint32_t space;			/* port space, and above it the node's number */
	uint16_t port;			/* host byte order */
	uint16_t slot;
	uint8_t family;			/* 0: the entry is free */
	uint8_t flags;
	uint8_t addr[16];
	uint32_t scope;			/* link-local addresses only */
	uint32_t device;		/* port of the fabric that has the address, from 1; 0: any */
};

struct sim_port_entry {
	uint32_t next;			/* number + 1 of the next in bucket or free list */
	struct sim_port_binding binding;
};

struct sim_ports_area {
	uint32_t used;			/* entries that were ever in use */
	uint32_t free;			/* number + 1 */
	uint32_t buckets[SIM_PORT_BUCKETS];
	struct sim_port_entry entries[SIM_PORT_ENTRIES];
};

/* Makes it empty again, at the cost of what was in use. */
void sim_ports_area_clear(struct sim_ports_area *area);

/* The port space of a node. */
static inline uint32_t sim_port_space(uint32_t node, enum rdma_port_space ps)
{
	return node << 16 | (uint16_t)ps;
}

struct sim_port_binding sim_port_binding(uint32_t space, const struct sockaddr *addr,
					 unsigned int flags, unsigned int slot);

/*
 * Enter a binding.  -EADDRINUSE and -EADDRNOTAVAIL as for sim_bind_port(), then
 * *ret_entry is the binding in the way; -ENOMEM: the table is full.
 */
int sim_ports_area_add(struct sim_ports_area *area, const struct sim_port_binding *binding,
		       uint32_t *ret_entry);
void sim_ports_area_remove(struct sim_ports_area *area, uint32_t entry);
/*
 * Start listening: the entry must be unique, whatever its flags, and is not reusable any more.  Of TCP
 * sockets there is one for a port, whatever the port spaces; a socket of one that is in the way is
 * *ret_entry.
 */
int sim_ports_area_listen(struct sim_ports_area *area, uint32_t entry, bool socket,
			  uint32_t *ret_entry);
/* -EADDRINUSE: a listening TCP socket is in the way of one at the binding's address. */
int sim_ports_area_check_socket(const struct sim_ports_area *area,
				const struct sim_port_binding *binding, uint32_t *ret_entry);
/* Is any address bound to this port? */
bool sim_ports_area_taken(const struct sim_ports_area *area, uint32_t space, uint16_t port);

/* The entry of this port and slot after `after` (SIM_PORT_ENTRIES: the first), or SIM_PORT_ENTRIES. */
uint32_t sim_ports_area_next(const struct sim_ports_area *area, uint32_t space, uint16_t port,
			     uint32_t after);
/* The listening entry that suits a destination best, or SIM_PORT_ENTRIES. */
uint32_t sim_ports_area_listener(const struct sim_ports_area *area,
				 const struct sim_port_binding *dst, bool *ret_service);
/* The same of sockets, whatever their port spaces. */
uint32_t sim_ports_area_socket(const struct sim_ports_area *area,
			       const struct sim_port_binding *dst);

void sim_ports_area_drop_slot(void *table, unsigned int slot);
/* Make it whole after a process died in the middle of a change. */
void sim_ports_area_repair(void *table);

#endif
