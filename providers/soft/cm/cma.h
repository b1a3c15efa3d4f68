/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/cma.h - an rdma_cm_id on the simulator: what the kernel's RDMA CM does
 * above the connection protocols.  States, address and route resolution,
 * bindings, listeners, options and the choice of protocol engine are in
 * cma*.c; ibcm*.c (MADs, SIDR included) and iwcm*.c (MPA over a simulated
 * stream) are the two engines.
 *
 * All under the engine's lock; the operations in struct polycm_ops take it.
 */
#ifndef SIM_CMA_H
#define SIM_CMA_H

#include <stddef.h>
#include <string.h>

#include "providers/soft/fabric/fabric.h"
#include "ibcm_id.h"

/* CMA_IDLE and so on; the names are in traces. */
#define CMA_STATES(X) \
	X(IDLE) X(ADDR_QUERY) X(ADDR_RESOLVED) X(ROUTE_QUERY) X(ROUTE_RESOLVED) X(CONNECT) \
	X(DISCONNECT) X(ADDR_BOUND) X(LISTEN) X(DEVICE_REMOVAL) X(DESTROYING)
#define CMA_STATE(name) CMA_##name,

enum cma_state { CMA_STATES(CMA_STATE) };

struct sim_id;

/* A connection protocol.  All return 0 or a negative errno as the kernel would. */
struct cm_engine {
	int (*connect)(struct sim_id *id, const struct polycm_conn_param *param);
	int (*accept)(struct sim_id *id, const struct polycm_conn_param *param);
	int (*reject)(struct sim_id *id, const void *data, uint8_t len, uint8_t reason);
	int (*establish)(struct sim_id *id);
	int (*disconnect)(struct sim_id *id);
	int (*notify)(struct sim_id *id, enum ibv_event_type event);
	int (*init_qp_attr)(struct sim_id *id, struct ibv_qp_attr *attr, int *ret_mask);
	/* Send the peer what destroying means in this state; no events afterwards. */
	void (*close)(struct sim_id *id);
	void (*free)(struct sim_id *id);
	/* After close: wait for what must not be interrupted. */
	void (*stop)(struct sim_id *id);
	void (*inspect)(const struct sim_id *id, const struct polycm_report *to);
};

#define CMA_QPN_MASK 0xffffffu
#define CMA_IPOIB_QKEY 0x0b1bu	/* of the broadcast group, as subnet managers set it up */

extern const struct cm_engine sim_ibcm_engine, sim_iwcm_engine;

struct iwcm;			/* of the other engine, allocated on first use */

struct cma_group;		/* a multicast join (cma_multicast.c) */

/*
 * The provider's part of an id.  It is small, since there may be 100,000.  What the
 * end of a connection needs comes first, up to the line, so that it can be prefetched.
 */
struct sim_id {
	struct polycm_id *id;		/* the core's handle */
	struct sim_node *node;
	struct sim_port *port;		/* NULL: no device yet */
	const struct cm_engine *engine;	/* set with port; a wildcard listener has none */
	union {
		struct ibcm *ib;	/* cm, below; NULL: not in use */
		struct iwcm *iw;
	};
	struct cma_group *groups;
	struct sim_id *next, *prev;	/* all ids of the process, in order of creation */
	enum cma_state state;
	enum rdma_port_space ps;
	enum rdma_port_space bound_ps;	/* of the port: ps, unless an AF_IB service id says another */
	enum ibv_qp_type qp_type;
	uint32_t qp_num;		/* given with connect or accept */
	uint32_t number;		/* in traces */
	uint32_t peer_mac;		/* number of the MAC that we learned of the peer's port */
	bool bound;			/* the port table has src's port as this id's */
	bool bind_asked;		/* by rdma_bind_addr(), not for resolving */
	bool active;			/* has resolved an address, or tried to */
	bool bound_any;			/* it was taken with the wildcard address */
	bool accepted;			/* or created by the program: events may be posted */
	bool reuse, afonly, afonly_set;
	struct sim_timer timer;		/* resolution in progress */
	union sim_sockaddr src;
	struct ibcm cm;

	/* --- */
	union sim_sockaddr dst;
	struct sim_port *way_out;	/* of the last lookup of an address */
	uint16_t interface;		/* see cma_interface(): number + 1 of the address; 0: none */
	bool ack_timeout_set;
	uint8_t tos, ack_timeout;
	uint8_t packet_lifetime;	/* of the path, valid from ROUTE_RESOLVED */
	uint8_t traffic_class;		/* likewise; as it was when the route was asked for */
	uint8_t hop_limit, rate, sl;	/* likewise */
	bool path_given;		/* by the program or by the peer's REQ, its flow label too */
	uint32_t flow_label;
	enum ibv_mtu path_mtu;
	uint32_t starting_psn;		/* 24 bits: the peer must start here */
	union ibv_gid sgid, dgid;
	uint64_t ask_until;		/* for the neighbour; 0: nobody is being asked */
	int pending_status;		/* what it will end with */
};

/* The core's part of an id lies before ours, and the last of it is what an event needs. */
#define CMA_CORE_PREFETCHED 192u

static inline void cma_prefetch(const struct sim_id *id)
{
	sim_prefetch((const void *)((uintptr_t)id - CMA_CORE_PREFETCHED),
		     CMA_CORE_PREFETCHED + offsetof(struct sim_id, dst));
}

/* The operations for struct polycm_ops (cma_ops.c). */
extern const struct polycm_ops sim_cma_ops;	/* all id ops; module ops are the provider's */

/*
 * Packet handlers of both engines.  Resolving an address or a route, joining a group and
 * sending a request each take delay ns more than the simulator's own time.
 */
void sim_cma_start(uint64_t delay);
extern uint64_t cma_delay;
void sim_cma_stop(void);
/* The process ends without having destroyed its ids: notify the peers, as the kernel does. */
void sim_cma_abandon_all(void);
/* In the child of a fork(): the ids so far are copies of the parent's. */
void sim_cma_forked(void);
/* No lock needed: may there be ids that are not such copies? */
bool sim_cma_has_own(void);
unsigned int sim_cma_live_ids(void);

/* Ids that wait for a neighbour ask again now: a node has answered, or never will. */
void sim_cma_ask_again(void);

/* --- For the engines. --- */

/*
 * Post an event.  As in the kernel, nothing but CONNECT_REQUEST is posted for
 * an id that the program has not accepted yet: -ECANCELED.  The core has reserved
 * the memory: -ENOMEM, which is logged, needs a program that acknowledges nothing.
 */
int cma_post(struct sim_id *id, const struct polycm_event *event);
/* Without contents. */
int cma_post_simple(struct sim_id *id, enum rdma_cm_event_type type, int status);
/* With a reason in words, which is a constant. */
int cma_post_why(struct sim_id *id, enum rdma_cm_event_type type, int status, const char *why);

/*
 * A request for src -> dst came in on port.  Finds the listener (listener's
 * qp_type and ps must match), makes the child in state CONNECT with addresses,
 * port and engine, but none of the listener's options, unaccepted.
 * -ECONNREFUSED: a listening service but none for this address or type;
 * -ENOENT: no such service; -EAFNOSUPPORT: it listens with an address of
 * AF_IB, and src and dst are not, or the other way round.
 */
int cma_request(struct sim_port *port, enum rdma_port_space ps, enum ibv_qp_type qp_type,
		const union sim_sockaddr *src, const union sim_sockaddr *dst,
		struct sim_id **ret_listener, struct sim_id **ret_child);
/* Post CONNECT_REQUEST for the child; on an error the child is destroyed (engine's free included). */
int cma_post_request(struct sim_id *listener, struct sim_id *child, struct polycm_event *event);

/* As cma_request(), for a listener that the engine found itself. */
int cma_child(struct sim_id *listener, struct sim_port *port, const union sim_sockaddr *src,
	      const union sim_sockaddr *dst, struct sim_id **ret_child);

/* Changes the state, and traces it. */
void cma_set_state(struct sim_id *id, enum cma_state state);

/* The port at the other end of a resolved id or of a child, or NULL: it is gone. */
struct sim_port *cma_peer_port(const struct sim_id *id);

/* Of the path of an id, from ROUTE_RESOLVED on.  Not for iWARP. */
uint32_t cma_flow_label(const struct sim_id *id);
uint16_t cma_dlid(const struct sim_id *id);	/* 0 on Ethernet */

/*
 * Is the id live (not closing, its device there)?  Engines' timers and packets
 * come through their own tables.
 */
static inline bool cma_live(const struct sim_id *id)
{
	return id->state != CMA_DESTROYING && id->state != CMA_DEVICE_REMOVAL;
}

static inline const struct polycm_transport *cma_rules(const struct sim_id *id)
{
	return id->port->device->rules;
}

enum polycm_kind cma_kind(const struct sim_id *id);

/* Its addresses are GIDs and service ids, and so its requests have no header for IP addresses. */
static inline bool cma_is_af_ib(const struct sim_id *id)
{
	return id->src.sa.sa_family == AF_IB;
}

static inline union sim_sockaddr cma_any_address(sa_family_t family)
{
	union sim_sockaddr any;

	memset(&any, 0, sizeof(any));
	any.sa.sa_family = family;
	return any;
}

/* An address of a port that talks AF_IB (cma_ib.c). */
union sim_sockaddr cma_ib_address(const union ibv_gid *gid, uint64_t service_id,
				  uint32_t flow_label);

/* -EINVAL with the reason: not in the state that the id is in; more data than the rules allow. */
int cma_wrong_state(const struct sim_id *id);
int cma_too_long(const struct sim_id *id, size_t len, size_t limit);

/* --- From the NIC. --- */

/* The program (or the NIC) ended this id's stream. */
void sim_iw_qp_closed(struct sim_id *id, bool by_program);
/* Is its queue pair part of an attempt to connect? */
bool sim_iw_qp_connecting(const struct sim_id *id);

#endif
