/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/fabric.h - nodes, their devices, ports and addresses, and the port numbers
 * that programs bind.
 *
 * A private fabric belongs to one process and has the nodes that a test made.
 * A shared fabric has one node, this host, or the nodes of a scenario file.  Each
 * process of the user that names the same fabric has a copy of it.  Port numbers, QP
 * numbers and connection ids come from the shared segment, so that a packet's
 * destination determines the process ("slot") to which it goes.
 *
 * The engine's lock is held for all functions.
 */
#ifndef SIM_FABRIC_H
#define SIM_FABRIC_H

#include "polycm/verbs.h"
#include "providers/soft/engine/engine.h"
#include "providers/soft/shm/segment.h"
#include "providers/soft/wire/address.h"
#include "counter_area.h"

#define SIM_MAX_GIDS 64u
#define SIM_PKEY 0xffffu
#define SIM_DEVICE_KINDS 11u	/* kinds of objects that a device's limits count */

struct sim_id;
struct sim_profile;
struct sim_remote_host;

/* An address of a node. */
struct sim_address {
	union sim_sockaddr addr;	/* port 0 */
	uint8_t prefix_len;
	char ifname[16];
	struct sim_port *port;		/* the device port behind that interface */
};

struct sim_gid {
	union ibv_gid gid;		/* all zero: it was removed */
	uint32_t type;			/* enum ibv_gid_type */
	uint32_t ifindex;
};

struct sim_port {
	struct sim_device *device;
	uint8_t num;			/* 1.. */
	enum ibv_port_state state;
	enum ibv_mtu active_mtu, max_mtu;
	uint32_t max_msg_sz;
	uint16_t pkey_tbl_len;			/* only the first entry is a P_Key */
	uint32_t netdev_mtu;
	uint16_t lid;			/* IB only */
	uint8_t mac[6];
	uint32_t mac_number;		/* RoCE: the number of earlier MACs; see sim_port_has_mac() */
	uint32_t mac_changes;		/* the same for every transport */
	struct sim_gid gids[SIM_MAX_GIDS];
	unsigned int num_gids;
	uint32_t fabric_index;		/* the same in every process of a shared fabric */
	in_addr_t known_lately;		/* the last neighbour that was asked for; 0: none */
	struct sim_counters *counters;	/* where this process counts */
	bool counters_shared;		/* and others, too */
	struct sim_counters own_counters;
};

struct sim_device {
	struct polycm_verbs_device vdev;	/* first: programs see &vdev.device */
	struct sim_node *node;
	struct polycm_device *core;		/* from device_add() */
	const struct polycm_transport *rules;
	struct sim_profile *profile;		/* what it looks like; NULL: a device of its transport */
	struct ibv_device_attr attr;		/* its limits */
	uint32_t services;			/* POLYCM_SVC_* that attr allows; nic/device.h */
	unsigned int used[SIM_DEVICE_KINDS];	/* how many objects of each kind exist (nic/objects.c) */
	unsigned int contexts;			/* open */
	bool removed;				/* unplugged, for ever */
	uint32_t number;			/* among the devices of the fabric, from 0 */
	unsigned int num_ports;
	struct sim_port ports[2];		/* ports[n - 1] */
	struct sim_device *prev, *next;
};

/* Packets to the network `to' leave from the node's address `source'. */
struct sim_route {
	union sim_sockaddr to, source;
	uint8_t prefix_len;
};

struct sim_node {
	char name[32];
	struct sim_address *addresses;
	unsigned int num_addresses;
	struct sim_device *devices;
	struct sim_ports_table *port_table;	/* ports.c */
	struct sim_known *known;		/* neighbours of its ports (neighbours.c) */
	struct sim_route *routes;		/* before what its addresses' networks say (routes.c) */
	unsigned int num_routes;
	struct {
		uint32_t addresses;		/* as sim_fabric_addresses then */
		in_addr_t dst;
		struct sim_address *src;
	} routed_lately;
	bool described;				/* as it is: no default route, no RoCE on loopback */
	uint64_t frozen_until;			/* 0: it runs (world.c) */
	uint64_t full_until;			/* no listener of it takes a request (fault_action.c) */
	uint32_t number;			/* among the nodes of the fabric, from 0 */
	struct sim_remote_host *remote;		/* NULL: a node of this machine (remote.h) */
	struct sim_node *prev, *next;
};

/* Real clock: when the scenario began, the same for all its processes.  Virtual: the time now. */
uint64_t sim_scenario_began(void);
/* Do all processes of the fabric have the same scenario file, with the same faults? */
bool sim_scenario_is_shared(void);
/* Nobody made this fabric, and under the virtual clock nobody else is on it. */
void sim_fabric_set_own(void);
/* Agree on the scenario file by its digest; -EPROTO: others have another.  Again after fork(). */
int sim_scenario_agree(uint64_t digest);
int sim_scenario_agree_again(void);
/* The fabric was left. */
void sim_fabric_forget_shared(void);
bool sim_fabric_is_shared(void);
/* The shared fabric's folder, or NULL; valid until the next call.  Takes the engine's lock. */
const char *sim_fabric_place(void);
/*
 * Log once that nobody listens where the id connects to, which is on that node, and whose servers it
 * can reach.  taken: that port is bound at some address (sim_port_taken()).
 */
void sim_fabric_log_no_listener(const struct polycm_id *id, const struct sim_node *node, bool taken);

int sim_node_add(const char *name, struct sim_node **ret_node);
/* The newest device looks like the profile.  -ENOMEM. */
int sim_device_set_profile(struct sim_device *device, const struct sim_profile *profile);
/* Remove the newest node with all it has; nobody has seen it yet. */
void sim_node_drop_newest(void);
/* Remove the node's newest device, which is also the fabric's newest. */
void sim_device_drop_newest(struct sim_node *node);
uint32_t sim_num_devices(void);
/* Remove all nodes with all they have; the fabric is being closed. */
void sim_nodes_drop_all(void);
/* A device on a node playing a transport; addresses ("10.0.0.1/24") come next. */
int sim_device_add(struct sim_node *node, const char *name, const struct polycm_transport *rules,
		   struct sim_device **ret_device);
int sim_device_add_address(struct sim_device *device, const char *ifname, const char *address);
/* Add an address of one interface, without a device behind it; no check whether it is in use. */
int sim_node_add_address(struct sim_node *node, const char *ifname,
			 const union sim_sockaddr *addr, uint8_t prefix_len);
/* An address behind one interface of a port; -EEXIST: a node has it, -ENOSPC: no GID is left. */
int sim_port_add_address(struct sim_port *port, const char *ifname, uint32_t ifindex,
			 const union sim_sockaddr *addr, uint8_t prefix_len);
/* Remove an address of the node, and its GIDs. */
void sim_node_remove_address(struct sim_node *node, struct sim_address *address);
/* The verbs and attributes of all devices; set before the first device is added. */
struct sim_device_model {
	const struct polycm_verbs *verbs;
	/* Fills in attr and services of the device and the limits of its ports. */
	void (*init)(struct sim_device *device);
};
void sim_set_device_model(const struct sim_device_model *model);
/* Set the device's limits to those of its profile, or of its transport. */
void sim_device_init_limits(struct sim_device *device);
/* The provider's module, which announces devices; its init sets it before the first one. */
extern struct polycm_module *sim_module;
/* Announce all devices that the core does not know yet. */
int sim_fabric_announce(void);

/* The node from which calls without a source address come. */
struct sim_node *sim_current_node(void);
void sim_set_current_node(struct sim_node *node);
/* Bind this process to one node; otherwise it may be on each. */
void sim_set_home_node(struct sim_node *node);
/* The node of this process that has this address, or NULL. */
struct sim_node *sim_own_node_of_address(const struct sockaddr *addr);
struct sim_node *sim_first_node(void);
struct sim_node *sim_node_by_number(uint32_t number);
struct sim_device *sim_device_by_number(uint32_t number);

/*
 * Counts changes of addresses, routes and what is behind them, from 1 on: what
 * was looked up at a count still holds at the same one.
 */
extern uint32_t sim_fabric_addresses;

/* The node's own address equal to addr (port ignored), or NULL. */
struct sim_address *sim_node_address(struct sim_node *node, const struct sockaddr *addr);
/* The node, other than by wildcard, that has this address, or NULL. */
struct sim_node *sim_node_of_address(const struct sockaddr *addr);
/* The port that owns an address or GID anywhere on the fabric, or NULL. */
struct sim_port *sim_port_of_address(const struct sockaddr *addr);
struct sim_port *sim_port_of_gid(const union ibv_gid *gid);
struct sim_port *sim_port_by_index(uint32_t fabric_index);
/* The GID that stands for an address on a port; returns its table index or -EADDRNOTAVAIL. */
int sim_port_gid_of_address(const struct sim_port *port, const struct sockaddr *addr,
			    union ibv_gid *ret_gid);
/*
 * The source address that the node would use towards dst, as routing does:
 * 0, -ENETUNREACH (no route leads there).  *ret_src has port 0.
 */
int sim_node_route(struct sim_node *node, const struct sockaddr *dst,
		   struct sim_address **ret_src);
/* 255.255.255.255, and the last address of each of the node's IPv4 networks. */
bool sim_node_broadcasts(const struct sim_node *node, const struct sockaddr *dst);
/* Is there a route to dst besides the default one? */
bool sim_node_route_is_exact(struct sim_node *node, const struct sockaddr *dst);
/*
 * Do packets from src (an address of the node, a wildcard or loopback) to dst stay inside
 * the node?  They do if dst is its own address and no cable is between the two.
 */
bool sim_node_keeps(struct sim_node *node, const struct sockaddr *src, const struct sockaddr *dst);
/* Does a route between these two ports of one node use a cable? */
bool sim_ports_are_cabled(const struct sim_port *one, const struct sim_port *other);
/* Do frames from one port arrive at the other?  Between two of one node a cable is needed. */
static inline bool sim_port_reaches(const struct sim_port *from, const struct sim_port *to)
{
	return from == to || from->device->node != to->device->node || sim_ports_are_cabled(from, to);
}
/* The port with this address (also link-local) that packets of `port' reach, or NULL. */
struct sim_port *sim_neighbour(const struct sim_port *port, const struct sockaddr *addr);
/*
 * The neighbours of a port whose link address is known.  When a link of a node goes down,
 * all ports of the node forget theirs.
 */
bool sim_port_knows(struct sim_port *port, const struct sockaddr *addr);
void sim_port_learn(struct sim_port *port, const struct sockaddr *addr);
void sim_node_unlearn_all(struct sim_node *node);

/* --- Port numbers (ports.c): one table per node and port space. --- */

#define SIM_BIND_REUSE (1u << 0)
#define SIM_BIND_AFONLY (1u << 1)

/*
 * Take addr's port for an id; port 0 picks a free one of the local range and
 * writes it back.  -EADDRINUSE: that very address; -EADDRNOTAVAIL: a wildcard
 * or loopback address is in the way, or none is free; -EACCES: below 1024
 * without CAP_NET_BIND_SERVICE.
 */
int sim_bind_port(struct sim_node *node, enum rdma_port_space ps, union sim_sockaddr *addr,
		  unsigned int flags, struct sim_id *id);
void sim_unbind_port(struct sim_node *node, enum rdma_port_space ps,
		     const union sim_sockaddr *addr, struct sim_id *id);
/* An id that was bound to the wildcard has resolved: from now on it has the port at addr only. */
void sim_rebind_port(struct sim_node *node, enum rdma_port_space ps,
		     const union sim_sockaddr *addr, struct sim_id *id);
#define SIM_LISTEN (1u << 0)
#define SIM_LISTEN_SOCKET (1u << 1)	/* with a TCP socket */

/*
 * The id's binding now listens (0: no more).  -EADDRINUSE, -EADDRNOTAVAIL: a reuse sibling is in the
 * way, as for sim_bind_port(); -EADDRINUSE: so is a socket of whichever port space.
 */
int sim_bind_listen(struct sim_node *node, enum rdma_port_space ps,
		    const union sim_sockaddr *addr, struct sim_id *id, unsigned int how);
/* Is a listening socket in the way of another one, of a client, at this address and port? */
bool sim_socket_taken(struct sim_node *node, const union sim_sockaddr *addr);
/* This process's id with the same address and port in another stream port space, or NULL. */
struct sim_id *sim_port_twin(struct sim_node *node, enum rdma_port_space ps,
			     const union sim_sockaddr *addr);

/* Is the port (host byte order) bound at any address of the node, by any process? */
bool sim_port_taken(struct sim_node *node, enum rdma_port_space ps, uint16_t port);
/*
 * Who listens for a connection to addr (its port included) on this node:
 * *ret_slot is the process.  If it is ours, *ret_id is the listening id that
 * matches best (exact address before wildcard); *ret_service says whether
 * anyone listens on that port at all, whatever the address.
 */
bool sim_find_listener(struct sim_node *node, enum rdma_port_space ps, const struct sockaddr *addr,
		       unsigned int *ret_slot, struct sim_id **ret_id, bool *ret_service);

/* The same for a TCP connection: sockets have no port spaces. */
bool sim_find_socket(struct sim_node *node, const struct sockaddr *addr, unsigned int *ret_slot,
		     struct sim_id **ret_id);

/* Numbers that ids of this process have bound on the node. */
unsigned int sim_ports_bound(const struct sim_node *node);

/* --- Numbers that tell the process (numbers.c). --- */

unsigned int sim_self_slot(void);		/* 0 on a private fabric */
/* 256 consecutive QP numbers of ours; -ENOMEM when the 24 bits are used up. */
int sim_qpn_block(uint32_t *ret_first);
unsigned int sim_slot_of_qpn(uint32_t qpn);	/* or SIM_NOBODY */
/* Connection ids (CM comm ids, stream ids): slot in the top 10 bits. */
#define SIM_CONN_INDEX_BITS 22u
static inline uint32_t sim_conn_id(uint32_t index)
{
	return sim_self_slot() << SIM_CONN_INDEX_BITS | index;
}
static inline unsigned int sim_slot_of_conn(uint32_t conn_id)
{
	return conn_id >> SIM_CONN_INDEX_BITS;
}

#endif
