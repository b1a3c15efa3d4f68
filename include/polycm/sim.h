/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * polycm/sim.h - control of the simulator from tests, in one process: make a
 * fabric, put nodes on it, move its time, break it on command.
 *
 * A test links with -lpolycm only; the calls go to the "sim" provider, which
 * POLYCM_PROVIDER must select before the program's first call.  All return 0,
 * or -1 with errno, and then nothing has changed but where that is said:
 *   ENODEV  the sim provider is not selected or not there, or rdma_* are librdmacm's
 *   EBUSY   the program still uses the fabric, or the device
 *   EINVAL  an argument that cannot be, or not this fabric
 *   ENOENT  the fabric, and with it the handle, is gone; the fault was removed
 *   ENOMEM
 * Since such a mistake is the test's own, each is a line of log at level error,
 * which is always on standard error, with the reason in words; ENODEV once.
 *
 * Nodes, devices and faults are the fabric's; nobody frees them.  Their handles
 * are valid until it is dropped; one that is not is looked up in vain, never
 * followed.  Strings and structs that are given are copied, and a ret_ pointer
 * is written on success only, and may be NULL only where that is said.  Times
 * are nanoseconds of the fabric's clock, which begins at 0.
 *
 * Calls that make nodes, devices and addresses need a fabric of a test's.  The
 * others also work on the one that the environment asks for (a scenario's
 * nodes, faults on its only node), those that move time if its clock is virtual.
 *
 * Threads: any; the calls serialise themselves.  None may be made in a signal
 * handler.
 */
#ifndef POLYCM_SIM_H
#define POLYCM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rdma_cm_id;
struct polycm_sim_node;
struct polycm_sim_device;
struct polycm_sim_fault;

/* ------------------------------------------------------------------------
 * The fabric.
 */

/*
 * Replace the process's fabric by a private, empty one with a virtual clock
 * at 0 and this seed.  The old one's trace and capture end; the new one is in
 * the files of POLYCM_SIM_TRACE and POLYCM_SIM_PCAP, if they are set: the first
 * on which anything happens in FILE itself, the next in FILE.2, and so on.
 * EBUSY: an rdma_cm_id, a context that the program opened, a PD, MR, MW, CQ, SRQ, QP,
 * AH or completion channel of the old one is left.  A line of log names each.
 * Event channels may stay; contexts of rdma_get_devices() go with the fabric.
 */
int polycm_sim_create(uint64_t seed);
/*
 * The same, with all that a scenario file says (polycm-scenario(5)).  Its seed
 * counts, or 1, whatever the environment says.  EINVAL: the file is wrong, and
 * a line of log at error level says where, or its clock is real; errors of
 * open(2).  The old fabric stays if the file cannot be read or parsed; if it is
 * wrong in what it says, the old one is gone, too.
 */
int polycm_sim_load(const char *path);
/*
 * Drop it; the next call that needs one gets the fabric that the environment
 * asks for.  EBUSY as above.  Without a fabric: 0.
 * ENOSPC, EFBIG, EIO and other errors of write(2): it was dropped, but its
 * trace or its capture could not be written in full, as a line of log at error
 * level says.
 */
int polycm_sim_destroy(void);
/*
 * For tear-downs: the same, whatever is left.  It ends what the program has of
 * the simulator's: events count as acknowledged, ids and event channels as
 * destroyed, contexts and all that was made with ibv_* as closed.  Pointers to
 * these are invalid afterwards; rdma_* calls refuse them, ibv_* calls cannot.
 * No other thread may use the fabric meanwhile.
 */
int polycm_sim_reset(void);

/* ------------------------------------------------------------------------
 * Nodes and devices.
 */

/*
 * A node with one device that plays `transport` ("roce", "ib", "iwarp", a
 * vendor's) and has `address` ("10.0.0.1/24", "fd00::1/64").  Name and address
 * are the only such ones on the fabric (EINVAL).
 */
int polycm_sim_node_add(const char *name, const char *transport, const char *address,
			struct polycm_sim_node **ret_node);
/* One more address for the node's first device. */
int polycm_sim_node_add_address(struct polycm_sim_node *node, const char *address);
/* Calls without a source address come from this node from now on; the first one added before. */
int polycm_sim_node_use(struct polycm_sim_node *node);
/* The node of that name.  EINVAL: there is none. */
int polycm_sim_node_find(const char *name, struct polycm_sim_node **ret_node);

/*
 * Limits of a device; 0: as the simulator has them, and none may be above that
 * (EINVAL).  What ibv_query_device() shows; what is used up fails with ENOMEM.
 */
struct polycm_sim_limits {
	size_t size;			/* of the struct, set by the caller */
	unsigned int max_qp, max_cq, max_cqe, max_mr, max_pd, max_srq, max_ah;
	unsigned int max_qp_wr, max_sge;
	unsigned int max_responder_resources, max_initiator_depth;	/* to 255 */
	unsigned int max_mcast_grp;
};

/*
 * One more device for a node.  limits may be NULL; ret_device, too.  Devices
 * are named sim0, sim1, ... in the order in which they come to the fabric.
 * From an address of one of a node's devices to an address of another it goes
 * out of the one and in at the other, as over a cable.
 */
int polycm_sim_device_add(struct polycm_sim_node *node, const char *transport,
			  const char *address, const struct polycm_sim_limits *limits,
			  struct polycm_sim_device **ret_device);
int polycm_sim_device_add_address(struct polycm_sim_device *device, const char *address);
/* The device of that name; NULL: the node's first.  EINVAL: there is none. */
int polycm_sim_device_find(struct polycm_sim_node *node, const char *name,
			   struct polycm_sim_device **ret_device);
/* In place of those that it has.  Before the program or an id has opened it, else EBUSY. */
int polycm_sim_device_limit(struct polycm_sim_device *device,
			    const struct polycm_sim_limits *limits);

/* ------------------------------------------------------------------------
 * Links: between each two nodes, and of a node to itself.
 */

/* Chances are from 0 to 1. */
struct polycm_sim_link {
	size_t size;			/* of the struct, set by the caller */
	uint64_t latency_ns;		/* of a packet of no length; 1000 where nothing is said */
	uint64_t jitter_ns;		/* up to so much more, evenly; the order of packets stays */
	uint64_t bandwidth;		/* bits a second; 0: no limit */
	double loss, duplication;
	double reordering;		/* a packet waits so long that later ones overtake it */
};

/*
 * Both directions, for packets that are sent from now on.  A NULL stands for all
 * nodes; the last call that names a pair counts, with all its members.
 */
int polycm_sim_link_set(struct polycm_sim_node *a, struct polycm_sim_node *b,
			const struct polycm_sim_link *link);

/* ------------------------------------------------------------------------
 * Time.
 */

int polycm_sim_now(uint64_t *ret_ns);
/*
 * Time moves in these, and in whatever waits (docs/time.md).  EINVAL: the
 * fabric's clock is the real one.  Where other threads have something to do at
 * a time, they do it before it passes.
 *
 * Move it by so much, with all that happens meanwhile.
 */
int polycm_sim_advance(uint64_t ns);
/*
 * Until nothing is left that could happen, which is then the time.  ETIMEDOUT:
 * so much has passed, and there is still something.
 */
int polycm_sim_run(uint64_t limit_ns);
/*
 * Until an event for this id (for a listener: a request too) waits on its
 * channel; at once if one does.  It is still to be retrieved.  ETIMEDOUT: so much
 * has passed; EDEADLK: nothing is left that could bring one; EINVAL: no such id,
 * or it was destroyed meanwhile.
 */
int polycm_sim_run_until_event(struct rdma_cm_id *id, uint64_t limit_ns);

/* ------------------------------------------------------------------------
 * Faults.  A rule has a match, which says when, and an action.  Members that
 * are 0 or NULL match everything.
 */

enum polycm_sim_action {
	/* On a packet that matches: */
	POLYCM_SIM_LOSE = 1,		/* iWARP: TCP sends it again, and the rule is asked again */
	POLYCM_SIM_DELAY,		/* by delay_ns; later packets may overtake it */
	POLYCM_SIM_DUPLICATE,		/* `count' copies more (0: one), delay_ns apart */
	POLYCM_SIM_REORDER,		/* it goes after the next one of the same direction */
	POLYCM_SIM_CORRUPT,		/* the byte at `offset' is xored with `value' (0: at random) */
	POLYCM_SIM_REJECT,		/* a REQ, REP, MPA_REQ: answered with a REJ of this reason;
					   SEND, WRITE, READ, ATOMIC: with a NAK of this code */
	/* On a call that matches `message', one of the operations named below: */
	POLYCM_SIM_FAIL,		/* it fails with `error' (0: ENOMEM) */
	/* On a lookup that matches `message', "path" (an SA's) or "neighbour": */
	POLYCM_SIM_ANSWER_LATE,		/* by delay_ns */
	POLYCM_SIM_ANSWER_NEVER,
	/* On the node or device `on', when something matches, or at from_ns where nothing is named: */
	POLYCM_SIM_FREEZE,		/* for delay_ns (0: ever) nothing in, nothing out, no time */
	POLYCM_SIM_CRASH,		/* the same for ever */
	POLYCM_SIM_PORT_DOWN,		/* for delay_ns; 0: until PORT_UP */
	POLYCM_SIM_PORT_UP,
	POLYCM_SIM_REMOVE_DEVICE,
	POLYCM_SIM_CHANGE_ADDRESS,	/* `address' becomes `new_address'; NULL: it goes, or comes */
	POLYCM_SIM_CHANGE_MAC,		/* of the port with `address': its neighbours learn of it */
	POLYCM_SIM_FULL_BACKLOG,	/* its listeners take no request, for delay_ns; 0: ever */
};

/*
 * What `message' names, in any case of letters:
 *   IB CM      REQ MRA REJ REP RTU DREQ DREP SIDR_REQ SIDR_REP
 *   iWARP      MPA_REQ MPA_REP MPA_REJ (a reply with the reject bit) FIN RST
 *   data       SEND WRITE READ READ_REPLY ATOMIC ACK NAK RNR_NAK UD
 *   of all     "cm": connection management (NULL means that, too); "data"; "any"
 *   FAIL       the calls: create_id bind resolve_addr resolve_route listen connect accept
 *              reject disconnect create_qp create_cq reg_mr alloc_pd create_srq join_multicast
 */
struct polycm_sim_fault_rule {
	size_t size;			/* of the struct, set by the caller */
	enum polycm_sim_action action;
	/* match */
	struct polycm_sim_node *from, *to;	/* of a packet; a call or lookup is `from' its node */
	const char *message;
	unsigned int nth;		/* of what matches the rest, from 1; 0: each */
	unsigned int times;		/* from the nth on, so many; 0: one with nth, else all */
	double probability;		/* of each; 0 is 1 */
	uint64_t from_ns, until_ns;	/* window; until 0: for ever */
	/* what happens */
	struct polycm_sim_node *on;	/* NULL: `from', or the receiver if that is not named */
	const char *device;		/* of `on'; NULL: the first */
	uint64_t delay_ns;
	unsigned int count;
	uint16_t reason;		/* REJECT: as in the REJ; MPA: ignored; of data 1 (invalid
					   request), 2 (remote access), 3 or 0 (remote operation) */
	int error;			/* FAIL: an errno */
	int offset;			/* CORRUPT: of the message; -1: anywhere */
	uint8_t value;
	const char *address, *new_address;
};

/* In C++ (sim_cxx.h) the members stand in the order of the struct. */
#ifndef __cplusplus
#define POLYCM_SIM_FAULT(...)                                                                      \
	(&(struct polycm_sim_fault_rule){ .size = sizeof(struct polycm_sim_fault_rule),            \
					  __VA_ARGS__ })
#endif

/*
 * polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE, .message = "REQ", .nth = 2), NULL)
 *
 * From now on: what happened before is not counted.  Of several rules that match a
 * packet each does its part, of a call the first.  EINVAL: the rule cannot be.
 * ret_fault may be NULL.
 */
int polycm_sim_fault_add(const struct polycm_sim_fault_rule *rule,
			 struct polycm_sim_fault **ret_fault);
/* It happens no more; what it did stays, and its handle is gone (ENOENT). */
int polycm_sim_fault_remove(struct polycm_sim_fault *fault);
/* How often it did something: a test that expects a fault to happen should ask. */
int polycm_sim_fault_hits(struct polycm_sim_fault *fault, unsigned int *ret_hits);

/* ------------------------------------------------------------------------
 * Seeing.
 */

/*
 * From now on and until the fabric goes, one JSON object per line
 * (polycm-trace(5)), in place of the file so far, also of that of
 * POLYCM_SIM_TRACE; "-": standard error; NULL: no
 * more.  A file that is there is begun anew.  Errors of open(2), and then the
 * file so far goes on.
 */
int polycm_sim_trace(const char *path);
/* The same with the packets, as a capture that tshark reads (polycm(1)); ENOENT without libpcap. */
int polycm_sim_pcap(const char *path);

/*
 * What the program has: all zero after a clean test.  The context and the PD
 * that the library keeps of a device for all ids are not counted.  An id counts
 * until it is destroyed, also after its channel was; so does a request that
 * nobody has retrieved.
 */
struct polycm_sim_counts {
	size_t size;	/* of the struct, set by the caller */
	unsigned int ids, contexts, pds, mrs, comp_channels, cqs, srqs, qps, ahs;
	unsigned int ports;		/* numbers bound */
	unsigned int packets;		/* under way */
	unsigned int mws;		/* memory windows */
	unsigned int channels;		/* of rdma_create_event_channel(); they keep no fabric */
	unsigned int events;		/* retrieved and not acknowledged */
};
int polycm_sim_live(struct polycm_sim_counts *counts);

struct polycm_sim_object {
	size_t size;
	const char *kind;	/* "rdma_cm_id", "event", "event channel", "QP", "CQ", "context", ... */
	const void *handle;	/* the program's pointer to it */
	/*
	 * "CONNECT_REQUEST from 10.0.0.2:43326 to 10.0.0.1:7471, created by
	 * rdma_get_cm_event in serve+0x44 (server)".  During the callback; for
	 * people, and may change.
	 */
	const char *text;
};
/*
 * The same, one by one: fn is called for each until it returns other than 0,
 * which is then the result.  fn may call nothing that makes or ends objects.
 */
int polycm_sim_live_walk(int (*fn)(void *arg, const struct polycm_sim_object *object), void *arg);

#ifdef __cplusplus
}
#include <polycm/sim_cxx.h>
#endif

#endif /* POLYCM_SIM_H */
