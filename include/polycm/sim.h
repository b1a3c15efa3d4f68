/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * polycm/sim.h - control of the simulator from tests, in one process: make a
 * fabric, put nodes on it, move its time, break it on command.
 *
 * A test links with `pkg-config --libs polycm-sim`.  The calls go to the
 * provider "sim", which POLYCM_PROVIDER must select before the program's first
 * call.  All calls return 0, or -1 with errno.  After an error nothing has
 * changed, unless said otherwise:
 *   ENODEV  "sim" is not selected or not installed, or rdma_* are librdmacm's
 *   EBUSY   the program still uses the fabric, or the device
 *   EINVAL  a wrong argument, or not allowed on this fabric
 *   ENOENT  the fabric of the handle was destroyed; the fault was removed
 *   ENOMEM
 * Each error is logged at level error, with the reason; ENODEV only once.
 *
 * Nodes, devices and faults belong to the fabric; nobody frees them.  Their
 * handles are valid until the fabric is destroyed.  The library looks a handle
 * up and never dereferences it, so an old one is an error and does no harm.
 * Arguments are copied.  A ret_ pointer is written on success only, and must not
 * be NULL unless said otherwise.  Times are nanoseconds of the fabric's clock,
 * which begins at 0.
 *
 * Calls that make nodes, devices and addresses need a fabric that a test made.
 * All others also work on the fabric that the environment asks for.  Calls that
 * move time need a virtual clock.
 *
 * Threads: any, at the same time.  Not in signal handlers.
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
 * at 0 and this seed.  Trace and capture of the old fabric end.  If
 * POLYCM_SIM_TRACE or POLYCM_SIM_PCAP is set, the first fabric on which anything
 * happens writes to that file, the next one to FILE.2, and so on.
 *
 * EBUSY: the program has an rdma_cm_id of the old fabric, a context that it
 * opened, a PD, MR, MW, CQ, SRQ, QP, AH or completion channel.  A line of log
 * names each.  Event channels may stay.  Contexts of rdma_get_devices() are
 * destroyed with the fabric.
 */
int polycm_sim_create(uint64_t seed);
/*
 * The same, with the nodes, links and faults of a scenario file
 * (polycm-scenario(5)) and its seed, or 1; POLYCM_SIM_SEED has no effect.
 * EINVAL: the file is wrong (a log line says where), or its clock is real.  Also
 * errors of open(2).  If the file cannot be read or parsed, the old fabric
 * stays.  If it can, but has an error, the old fabric is destroyed.
 */
int polycm_sim_load(const char *path);
/*
 * Destroy the fabric.  The next call that needs a fabric gets the one that the
 * environment asks for.  EBUSY as above.  Without a fabric: 0.
 * ENOSPC, EFBIG, EIO and other errors of write(2): the fabric was destroyed, but
 * its trace or capture is not complete; a line of log says why.
 */
int polycm_sim_destroy(void);
/*
 * For tear-downs: destroy the fabric and whatever the program has left on it.
 * It acknowledges the program's events, destroys its ids and event channels, and
 * closes its contexts with everything that was made with ibv_*.  All pointers to
 * these are invalid afterwards: rdma_* calls refuse them, ibv_* calls may crash.
 * No other thread may use the fabric meanwhile.
 */
int polycm_sim_reset(void);

/* ------------------------------------------------------------------------
 * Nodes and devices.
 */

/*
 * A node with one device that has `address` ("10.0.0.1/24", "fd00::1/64").
 * `kind` is the transport that the device plays ("roce", "ib", "iwarp", a
 * vendor's), or a device with its limits, as after `polycm run --device`: a
 * name ("connectx-6"), or a file with the output of `ibv_devinfo -v`, with a
 * slash in its path.  EINVAL: another node has the name or the address, or the
 * file is no such output.  ENOENT, EACCES and other errors of open(2): the file.
 */
int polycm_sim_node_add(const char *name, const char *kind, const char *address,
			struct polycm_sim_node **ret_node);
/* Add an address to the node's first device. */
int polycm_sim_node_add_address(struct polycm_sim_node *node, const char *address);
/*
 * From now on, calls without a source address come from this node.  Before, they
 * come from the node that was added first.
 */
int polycm_sim_node_use(struct polycm_sim_node *node);
/* The node of that name.  EINVAL: there is none. */
int polycm_sim_node_find(const char *name, struct polycm_sim_node **ret_node);

/*
 * Limits of a device, as ibv_query_device() shows them.  0: the simulator's own
 * limit, which is also the highest (EINVAL).  A call above a limit fails as on
 * a device of that transport: ENOMEM, or EINVAL with roce.
 */
struct polycm_sim_limits {
	size_t size;			/* of the struct, set by the caller */
	unsigned int max_qp, max_cq, max_cqe, max_mr, max_pd, max_srq, max_ah;
	unsigned int max_qp_wr, max_sge;
	unsigned int max_responder_resources, max_initiator_depth;	/* to 255 */
	unsigned int max_mcast_grp;
};

/*
 * One more device for a node; `kind` as above.  limits and ret_device may be
 * NULL.  Devices are named sim0, sim1, ... in the order in which they are added
 * to the fabric; one of a profile has the profile's name, or that with another
 * number (mlx5_1).
 * Packets between two devices of a node go from the one to the other as over a
 * cable.
 */
int polycm_sim_device_add(struct polycm_sim_node *node, const char *kind,
			  const char *address, const struct polycm_sim_limits *limits,
			  struct polycm_sim_device **ret_device);
int polycm_sim_device_add_address(struct polycm_sim_device *device, const char *address);
/* The device of that name; NULL: the node's first.  EINVAL: there is none. */
int polycm_sim_device_find(struct polycm_sim_node *node, const char *name,
			   struct polycm_sim_device **ret_device);
/* Replace the limits of a device.  EBUSY: the program or an id has opened it. */
int polycm_sim_device_limit(struct polycm_sim_device *device,
			    const struct polycm_sim_limits *limits);

/* ------------------------------------------------------------------------
 * Links: between each two nodes, and of a node to itself.
 */

/* Chances are from 0 to 1. */
struct polycm_sim_link {
	size_t size;			/* of the struct, set by the caller */
	uint64_t latency_ns;		/* of an empty packet; 1000 on links that nobody has set */
	uint64_t jitter_ns;		/* random extra latency up to this; keeps the order */
	uint64_t bandwidth;		/* bits a second; 0: no limit */
	double loss, duplication;
	double reordering;		/* chance that later packets overtake a packet */
};

/*
 * Set a link in both directions, for packets that are sent from now on.  NULL
 * means all nodes.  The last call for a pair replaces all members of the earlier ones.
 */
int polycm_sim_link_set(struct polycm_sim_node *a, struct polycm_sim_node *b,
			const struct polycm_sim_link *link);

/* ------------------------------------------------------------------------
 * Time.
 */

int polycm_sim_now(uint64_t *ret_ns);
/*
 * Virtual time moves in these calls, and in each call of the program that waits
 * (docs/time.md).  Other threads that are due at a time run before time passes.
 * EINVAL: the fabric's clock is real.
 *
 * Move time forward by ns.  Everything that is due until then happens.
 */
int polycm_sim_advance(uint64_t ns);
/*
 * Move time forward until nothing is left to happen.  ETIMEDOUT: limit_ns have
 * passed, and something is still left.
 */
int polycm_sim_run(uint64_t limit_ns);
/*
 * Move time forward until an event for this id waits on its channel; for a
 * listener, also a request.  If one waits already, no time passes.  The program
 * retrieves it afterwards.  ETIMEDOUT: limit_ns have passed; EDEADLK: no event can
 * come any more; EINVAL: no such id, or it was destroyed meanwhile.
 */
int polycm_sim_run_until_event(struct rdma_cm_id *id, uint64_t limit_ns);

/* ------------------------------------------------------------------------
 * Faults.  A rule has a match and an action.  Members of the match that are 0 or
 * NULL match everything.
 */

enum polycm_sim_action {
	/* These act on a packet that matches. */

	/* The packet is lost.  On iWARP, TCP sends it again, and that may match again. */
	POLYCM_SIM_LOSE = 1,
	/* The packet is delayed by delay_ns.  Later packets may overtake it. */
	POLYCM_SIM_DELAY,
	/* `count' more copies (0: one) are sent, delay_ns apart. */
	POLYCM_SIM_DUPLICATE,
	/* The next packet in the same direction overtakes it. */
	POLYCM_SIM_REORDER,
	/* The byte at `offset' is XORed with `value' (0: a random value). */
	POLYCM_SIM_CORRUPT,
	/*
	 * The packet is answered instead of delivered: a REQ, REP or MPA_REQ by a REJ with
	 * `reason', a SEND, WRITE, READ or ATOMIC by a NAK with it.
	 */
	POLYCM_SIM_REJECT,

	/* This acts on a call.  `message' names the call, as below. */

	/* The call fails with `error' (0: ENOMEM). */
	POLYCM_SIM_FAIL,

	/* These act on a lookup.  `message' is "path" (of an SA) or "neighbour". */

	/* The answer is delayed by delay_ns. */
	POLYCM_SIM_ANSWER_LATE,
	/* No answer comes. */
	POLYCM_SIM_ANSWER_NEVER,

	/*
	 * These act on the node `on' or its device, each time that something matches.  If
	 * the rule names nothing to match, they act once, at from_ns.
	 */

	/* The node sends and receives nothing for delay_ns (0: for ever); its timers stop. */
	POLYCM_SIM_FREEZE,
	/* The same for ever. */
	POLYCM_SIM_CRASH,
	/* The device's port is down for delay_ns; 0: until a PORT_UP. */
	POLYCM_SIM_PORT_DOWN,
	POLYCM_SIM_PORT_UP,
	POLYCM_SIM_REMOVE_DEVICE,
	/* `new_address' replaces `address'.  NULL for one: the other is added, or removed. */
	POLYCM_SIM_CHANGE_ADDRESS,
	/* The port with `address' gets another MAC, and its neighbours learn it. */
	POLYCM_SIM_CHANGE_MAC,
	/* The node's listeners accept no request for delay_ns; 0: for ever. */
	POLYCM_SIM_FULL_BACKLOG,
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

	/* These members say what matches. */

	/* The packet's sender and receiver.  A call or lookup is `from' its node. */
	struct polycm_sim_node *from, *to;
	/* The table above lists the names. */
	const char *message;
	/* The rule acts on the nth thing that matches the other members, from 1; 0: on each. */
	unsigned int nth;
	/* It acts on so many, from the nth on.  0: on one if nth is set, else on all. */
	unsigned int times;
	/* It acts on a match with this probability; 0 means 1. */
	double probability;
	/* It acts only between these times.  until_ns 0: it has no end. */
	uint64_t from_ns, until_ns;

	/* These members say what happens.  Each action above names those that it uses. */

	/* An action on a node acts on this one.  NULL: on `from'; if that is NULL, on the receiver. */
	struct polycm_sim_node *on;
	/* An action on a device acts on this one of `on'.  NULL: on its first. */
	const char *device;
	uint64_t delay_ns;
	unsigned int count;
	/*
	 * REJECT: the reason in the REJ of an IB CM message.  MPA has no reasons and ignores it.
	 * For data it selects the NAK: 1 is "invalid request", 2 "remote access error", 3 and 0
	 * "remote operational error".
	 */
	uint16_t reason;
	/* FAIL: an errno. */
	int error;
	/* CORRUPT: the byte's offset in the message; -1: a random one. */
	int offset;
	uint8_t value;
	const char *address, *new_address;
};

/* In C++ (sim_cxx.h) list the members in the order of the struct. */
#ifndef __cplusplus
#define POLYCM_SIM_FAULT(...)                                                                      \
	(&(struct polycm_sim_fault_rule){ .size = sizeof(struct polycm_sim_fault_rule),            \
					  __VA_ARGS__ })
#endif

/*
 * Add a rule: polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE,
 * .message = "REQ", .nth = 2), NULL).
 *
 * It counts what happens from now on.  If several rules match a packet, each
 * takes effect; if several match a call, the first does.  EINVAL: the rule is
 * wrong.  ret_fault may be NULL.
 */
int polycm_sim_fault_add(const struct polycm_sim_fault_rule *rule,
			 struct polycm_sim_fault **ret_fault);
/* Remove a rule.  What it did stays.  Its handle is invalid afterwards (ENOENT). */
int polycm_sim_fault_remove(struct polycm_sim_fault *fault);
/* How often the rule took effect.  A test that expects a fault should check this. */
int polycm_sim_fault_hits(struct polycm_sim_fault *fault, unsigned int *ret_hits);

/* ------------------------------------------------------------------------
 * Watching.
 */

/*
 * Write the trace to PATH until the fabric is destroyed, one JSON object per line
 * (polycm-trace(5)).  Replaces the current trace file, also that of
 * POLYCM_SIM_TRACE.  "-" is standard error; NULL stops tracing.  An existing file
 * is truncated.  After an error of open(2) the current file goes on.
 */
int polycm_sim_trace(const char *path);
/* The same with packets, for tshark and Wireshark (polycm(1)).  ENOENT: no libpcap. */
int polycm_sim_pcap(const char *path);

/*
 * What the program has; all zero after a clean test.  Not counted: the context,
 * the PD and the XRC domain that the library keeps of each device.  An id counts until it is
 * destroyed, even if its channel is destroyed before.  A request that nobody has
 * retrieved counts, too.
 */
struct polycm_sim_counts {
	size_t size;	/* of the struct, set by the caller */
	unsigned int ids, contexts, pds, mrs, comp_channels, cqs, srqs, qps, ahs;
	unsigned int ports;		/* numbers bound */
	unsigned int packets;		/* under way */
	unsigned int mws;		/* memory windows */
	unsigned int channels;		/* of rdma_create_event_channel(); no reason for EBUSY */
	unsigned int events;		/* retrieved and not acknowledged */
	unsigned int tds, dms, xrcds;	/* thread domains, device memory, XRC domains */
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
 * Calls fn for each of these objects until it returns other than 0, which is
 * then the result.  fn must not make or end objects.
 */
int polycm_sim_live_walk(int (*fn)(void *arg, const struct polycm_sim_object *object), void *arg);

#ifdef __cplusplus
}
#include <polycm/sim_cxx.h>
#endif

#endif /* POLYCM_SIM_H */
