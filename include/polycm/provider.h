/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * polycm/provider.h - the border between libpolycm and its transport providers.
 *
 * A provider is a shared object provider-NAME.so that exports one function,
 * polycm_provider_query_v1().  It links to nothing of libpolycm: everything it
 * needs comes through struct polycm_core, everything it offers through struct
 * polycm_provider.
 *
 * Rules that hold for the whole page
 *
 *  Growth    Every struct that crosses the border begins with its size, as the
 *            side that fills it in was compiled.  New members come only at the
 *            end.  The core copies the smaller of both sizes into tables of its
 *            own, so a slot that a provider leaves NULL, or does not know yet,
 *            answers -EOPNOTSUPP.
 *  Errors    0 or a negative errno.  Only the exported rdma_* calls set errno.
 *            A provider that breaks a rule which the core can check (a positive
 *            errno, a bad event, something given back twice) is told in one
 *            line at `error'.  The call has no other effect than its error.
 *  Results   What a call starts and cannot finish at once is reported by
 *            polycm_core.post_event() and in no other way.
 *  Threads   The core serialises the operations of one id and calls operations
 *            of different ids at the same time.  It holds no channel lock and
 *            no global lock while it is inside a provider.  A provider must
 *            not call rdma_* functions.
 *  Memory    Pointers handed over are valid during the call only, unless a
 *            member says otherwise.
 */
#ifndef POLYCM_PROVIDER_H
#define POLYCM_PROVIDER_H

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <polycm/rules.h>

#ifdef __cplusplus
extern "C" {
#endif

#define POLYCM_ABI_MAJOR 1	/* part of the query function's name */
#define POLYCM_ABI_MINOR 0	/* counts members appended since the first release */

struct polycm_id;	/* an rdma_cm_id as the core keeps it */
struct polycm_device;	/* a device as the core keeps it */
struct polycm_module;	/* a loaded provider as the core keeps it */
struct polycm_timer;
struct polycm_layer;

/* ------------------------------------------------------------------------
 * What crosses the border per connection.
 */

struct polycm_ece {
	uint32_t vendor_id;	/* 24 bits, 0: no options */
	uint32_t options;
};

/*
 * Parameters of connect and accept, complete: the core has checked them
 * against the device and filled in what the program left out.
 */
struct polycm_conn_param {
	uint32_t size;
	const void *private_data;	/* NULL: none */
	uint8_t private_data_len;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
	uint32_t qp_num;
	uint32_t qkey;			/* 0: the port space's default */
	struct polycm_ece ece;
};

/*
 * One event.  The core copies it, private data included, before post_event()
 * returns.  For multicast events, ud.private_data is the join's context.
 */
struct polycm_event {
	uint32_t size;
	enum rdma_cm_event_type type;
	int status;
	bool is_ud;			/* which member of param is meant */
	union {
		struct rdma_conn_param conn;
		struct rdma_ud_param ud;
	} param;
	struct polycm_ece ece;		/* the peer's, with CONNECT_REQUEST and CONNECT_RESPONSE */
	struct polycm_id *child;	/* CONNECT_REQUEST: from child_create() */
	void *group;			/* multicast: what join() was given */
	/* What the status means here, if more is known than rules can say; constant, or NULL. */
	const char *why;
};

#define POLYCM_MAX_PATHS 6

/* What an id has been bound or resolved to. */
struct polycm_route_info {
	uint32_t size;
	struct polycm_device *device;	/* NULL: not on a device yet */
	uint8_t port_num;
	struct sockaddr_storage src;	/* ss_family 0: none yet */
	struct sockaddr_storage dst;
	union ibv_gid sgid;
	union ibv_gid dgid;
	uint16_t pkey;			/* network byte order */
	uint32_t num_paths;
	struct ibv_sa_path_rec path[POLYCM_MAX_PATHS];
};

/* A multicast join; valid until leave() for the same group returned. */
struct polycm_multicast {
	uint32_t size;
	void *group;			/* handle for events and for leave() */
	const struct sockaddr *addr;
	uint32_t join_flags;		/* enum rdma_cm_mc_join_flags */
};

/* How an id begins. */
struct polycm_open {
	uint32_t size;
	enum rdma_port_space ps;
	enum ibv_qp_type qp_type;
	void *channel_priv;		/* this provider's area of the id's channel */
};

/* ------------------------------------------------------------------------
 * The operations.
 *
 * ctx is what init() returned.  priv is the provider's area of the id
 * (polycm_provider.id_size bytes, zeroed, 16-byte aligned, owned by the core
 * until free() returned); chan likewise for a channel.  "Legal in" names the
 * states of an id as the Linux RDMA CM has them.
 */
struct polycm_ops {
	uint32_t size;

	/*
	 * Start and end the provider, once per process.  init() may create
	 * threads, which block all signals.  Not required.
	 */
	int (*init)(struct polycm_module *module, void **ret_ctx);
	void (*fini)(void *ctx);

	/*
	 * Announce each device of this provider that is new with device_add(),
	 * decline all others silently.  Cheap; called again when the program
	 * asks for devices.  Required.
	 */
	int (*enumerate)(void *ctx);

	/*
	 * Would this provider carry an id from src (may be NULL) to dst (may be
	 * NULL)?  0: yes.  -ENODEV: the addresses are none of its devices'.
	 * Wildcard and no addresses: 0 if it has any device.  Required.
	 */
	int (*match)(void *ctx, const struct sockaddr *src, const struct sockaddr *dst);

	/*
	 * A program's event channel.  A provider whose events must be fetched
	 * gives a descriptor to poll in *ret_fd (else -1); the core calls
	 * channel_read() when it is readable, which posts what there is and
	 * must not block.  Not required.
	 *
	 * Where every provider that may carry ids is one of
	 * POLYCM_PROVIDER_KERNEL, the descriptor becomes the program's own
	 * (rdma_event_channel.fd): channel_read() then waits for one event, as
	 * O_NONBLOCK of the descriptor says (-EAGAIN), returns -EINTR after a
	 * signal, and posts at most one event.  Else the core sets O_NONBLOCK.
	 */
	int (*channel_open)(void *ctx, void *chan, int *ret_fd);
	int (*channel_read)(void *chan);
	void (*channel_close)(void *chan);

	/* An id begins (not called for ids of child_create()).  Required. */
	int (*open)(void *ctx, struct polycm_id *id, void *priv, const struct polycm_open *how);

	/* rdma_bind_addr().  Legal in IDLE.  A port of 0 takes a free one. */
	int (*bind)(void *priv, const struct sockaddr *addr);
	/*
	 * rdma_resolve_addr() and rdma_resolve_route() are answered by one event
	 * within timeout_ms, which a negative number does not limit: ADDR_RESOLVED
	 * or ADDR_ERROR, ROUTE_RESOLVED or ROUTE_ERROR; -ETIMEDOUT is the status
	 * where nothing was found in that time.
	 *
	 * If none was posted a quarter of timeout_ms and a second later, the core
	 * logs that at `error' and gives the program ADDR_ERROR or ROUTE_ERROR
	 * with -ETIMEDOUT.  An answer that comes still later is dropped
	 * (post_event() returns -ETIMEDOUT), until the id is asked again.  Not so
	 * for POLYCM_PROVIDER_KERNEL, nor for a provider whose init() installed
	 * the clock.
	 */
	/* rdma_resolve_addr().  Legal in IDLE, ADDR_BOUND.  src may be NULL. */
	int (*resolve_addr)(void *priv, const struct sockaddr *src, const struct sockaddr *dst,
			    int timeout_ms);
	/* rdma_resolve_route().  Legal in ADDR_RESOLVED. */
	int (*resolve_route)(void *priv, int timeout_ms);
	/*
	 * rdma_listen().  Legal in ADDR_BOUND, IDLE.  backlog is 1 or more, but
	 * for POLYCM_PROVIDER_KERNEL, which gets what the program said.
	 */
	int (*listen)(void *priv, int backlog);
	/* rdma_connect().  Legal in ROUTE_RESOLVED; on error the state stays. */
	int (*connect)(void *priv, const struct polycm_conn_param *param);
	/*
	 * rdma_accept() on a child id.  The core has moved the QP to RTS before,
	 * and moves it to ERR after an error.
	 */
	int (*accept)(void *priv, const struct polycm_conn_param *param);
	/* rdma_reject().  reason 0: consumer defined; 35: rdma_reject_ece(). */
	int (*reject)(void *priv, const void *data, uint8_t len, uint8_t reason);
	/*
	 * The active side's answer to CONNECT_RESPONSE (RTU): from
	 * rdma_establish(), or by the core when the id has a QP.
	 */
	int (*establish)(void *priv);
	int (*disconnect)(void *priv);
	int (*notify)(void *priv, enum ibv_event_type event);
	/* rdma_set_option(); replayed in order when the id meets its provider. */
	int (*set_option)(void *priv, int level, int optname, const void *optval, size_t optlen);
	/* Attributes that bring the QP to attr->qp_state, as rdma_init_qp_attr(). */
	int (*init_qp_attr)(void *priv, struct ibv_qp_attr *attr, int *ret_mask);
	/* Where the id is now.  Asked in any state; an error fails the call that asks. */
	int (*query)(void *priv, struct polycm_route_info *ret_info);
	int (*join_multicast)(void *priv, const struct polycm_multicast *mc);
	int (*leave_multicast)(void *priv, void *group);
	/* The id now belongs to another channel.  Not required: 0 without it. */
	int (*migrate)(void *priv, void *new_chan);

	/*
	 * The end of an id, in this order, always all three, also after a
	 * failed open().  close() starts it (tells the peer) and does not
	 * wait for the peer.  After stop() returned nothing is posted for the id and no
	 * thread of the provider uses it; stop() may wait for such a thread.
	 * free() releases what priv refers to.  All required.
	 */
	void (*close)(void *priv);
	void (*stop)(void *priv);
	void (*free)(void *priv);

	/* Of a layer; see below. */
	void (*begin)(void *ctx, void *priv, const struct polycm_layer *layer);
	int (*event)(void *priv, const struct polycm_event *event, uint64_t hold_ns);
	void (*end)(void *priv);
};

/* ------------------------------------------------------------------------
 * Layers: providers around others.
 *
 * POLYCM_PROVIDER='trace;fault;roce,iwarp' puts the layer trace around the
 * layer fault around each of the providers roce and iwarp.  A layer has the
 * flag POLYCM_PROVIDER_LAYER, an area of its own in each id (id_size bytes)
 * and no rules, devices or channels.  No operation is required of it, and only
 * these are called:
 *
 *  init, fini	as those of any provider, the layers before what they are around
 *  begin	first for each id, those of child_create() too: keep the pointer
 *		to what is below, which is valid until end() was called
 *  open to free
 *		in place of those below, which they call, or not, on priv and
 *		ctx of struct polycm_layer:
 *
 *			return self->layer->ops->connect(self->layer->priv, param);
 *
 *		One that is NULL calls what is below.  close, stop and free must
 *		do so.  As of any provider, a call is one at a time for each id.
 *  event	what is below reports something: hands it, or another event in
 *		its place, to post(), or does not, by which the event is lost;
 *		its result is what post_event() returns.  Of a CONNECT_REQUEST
 *		that is lost the provider hears that it was not taken (-ENOMEM).
 *		Called like post_event(): from any thread, perhaps under locks of
 *		the provider and during an operation.  It must not block, call
 *		operations or take a lock that is held around those.  NULL: as
 *		post().  What the core itself reports (DEVICE_REMOVAL, a provider that
 *		did not answer) does not come here.
 *  end		last for each id, after free(), or for a child without one:
 *		release what priv refers to
 *
 * A late event is the core's to keep: post() with hold_ns gives it to the
 * program so much later, by the core's clock.  It counts as posted at once (the
 * id of a request is the core's from then on), what is posted for the same id
 * after it comes after it, and if the id ends before, it is dropped like any
 * that the program has not fetched.
 */
struct polycm_layer {
	uint32_t size;
	struct polycm_id *id;		/* for log() */
	const struct polycm_ops *ops;	/* below; no slot that a layer may call is NULL */
	void *ctx;			/* for open() below */
	void *priv;			/* for all others */
	/* To the next layer outside, or to the program.  hold_ns adds up; 0: now. */
	int (*post)(const struct polycm_layer *layer, const struct polycm_event *event,
		    uint64_t hold_ns);
};

/* ------------------------------------------------------------------------
 * Settings.  The only place where a setting of a provider exists.
 */
struct polycm_option {
	uint32_t size;
	const char *name;		/* environment variable, POLYCM_<PROVIDER>_<NAME> */
	const char *default_value;	/* as text; "" where unset means something else */
	const char *choices;		/* "a|b|c": with any other it does not start; NULL: free text */
	const char *help;		/* one sentence for people */
};

/* ------------------------------------------------------------------------
 * Simulated verbs: for devices that libibverbs does not know.
 *
 * Each slot has the prototype, the return convention, the errno values and
 * the ownership rules of the libibverbs function ibv_SLOT() of the same name.
 * The inline functions of <infiniband/verbs.h> (ibv_post_send, ibv_poll_cq,
 * ibv_create_qp_ex, ...) go through ibv_context.ops and struct verbs_context,
 * which open_device() fills in.  No slot is required but open_device and
 * close_device; missing ones fail with EOPNOTSUPP.
 */
struct polycm_verbs {
	uint32_t size;
	struct ibv_context *(*open_device)(struct ibv_device *device);
	int (*close_device)(struct ibv_context *context);
	int (*get_async_event)(struct ibv_context *context, struct ibv_async_event *event);
	void (*ack_async_event)(struct ibv_async_event *event);
	int (*query_device)(struct ibv_context *context, struct ibv_device_attr *attr);
	int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
	int (*query_gid)(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid);
	int (*query_gid_ex)(struct ibv_context *context, uint32_t port, uint32_t index,
			    struct ibv_gid_entry *entry, uint32_t flags);
	ssize_t (*query_gid_table)(struct ibv_context *context, struct ibv_gid_entry *entries,
				   size_t max_entries, uint32_t flags);
	int (*query_pkey)(struct ibv_context *context, uint8_t port, int index, __be16 *pkey);
	int (*get_pkey_index)(struct ibv_context *context, uint8_t port, __be16 pkey);
	/* Files below ibdev_path of the device, as in sysfs; returns the length or -1. */
	int (*read_sysfs_file)(struct ibv_device *device, const char *file, char *buf, size_t size);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	int (*dealloc_pd)(struct ibv_pd *pd);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				 unsigned int access);
	int (*rereg_mr)(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
			size_t length, int access);
	int (*dereg_mr)(struct ibv_mr *mr);
	struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *context);
	int (*destroy_comp_channel)(struct ibv_comp_channel *channel);
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int cqe, void *cq_context,
				    struct ibv_comp_channel *channel, int comp_vector);
	int (*resize_cq)(struct ibv_cq *cq, int cqe);
	int (*destroy_cq)(struct ibv_cq *cq);
	int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			    void **cq_context);
	void (*ack_cq_events)(struct ibv_cq *cq, unsigned int nevents);
	struct ibv_srq *(*create_srq)(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
	int (*modify_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
	int (*query_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr);
	int (*destroy_srq)(struct ibv_srq *srq);
	struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
	struct ibv_qp_ex *(*qp_to_qp_ex)(struct ibv_qp *qp);
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init_attr);
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
	int (*destroy_qp)(struct ibv_qp *qp);
	struct ibv_ah *(*create_ah)(struct ibv_pd *pd, struct ibv_ah_attr *attr);
	int (*destroy_ah)(struct ibv_ah *ah);
	int (*attach_mcast)(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
	int (*detach_mcast)(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
	int (*set_ece)(struct ibv_qp *qp, struct ibv_ece *ece);
	int (*query_ece)(struct ibv_qp *qp, struct ibv_ece *ece);
};

/*
 * A simulated device as programs see it.  The provider owns it, fills in
 * device (name, node_type, transport_type, paths; _ops stays zero) and verbs,
 * and leaves the rest zero; the core marks it as its own in device_add().
 */
struct polycm_verbs_device {
	struct ibv_device device;	/* first */
	const struct polycm_verbs *verbs;
	__be64 node_guid;
	void *core;			/* the core's */
	uint64_t zero[64];		/* so that a reader of libibverbs' private tail finds nothing */
};

struct polycm_device_info {
	uint32_t size;
	const char *name;		/* as libibverbs calls it */
	const char *transport;		/* name of its rules */
	__be64 node_guid;
	struct polycm_verbs_device *verbs;	/* NULL: a device of libibverbs */
	void *cookie;			/* the provider's, see device_cookie() */
};

/* ------------------------------------------------------------------------
 * Time.  A provider that owns time (a simulator) installs its clock; then
 * everything in the process that asks polycm for the time lives in it.
 */
struct polycm_clock_wait {
	uint32_t size;
	uint64_t deadline_ns;		/* UINT64_MAX: none */
	/* Holding nothing; does not wait.  May be where the thread is cancelled. */
	bool (*look)(void *arg);
	void *arg;
	bool only_ours;			/* nothing outside of this clock's world ends the wait */
};

struct polycm_clock {
	uint32_t size;
	/* Nanoseconds since an arbitrary start, never going back. */
	uint64_t (*now_ns)(void *ctx);
	/* Also from inside post_event(), when the clock's own provider calls that. */
	int (*timer_start)(void *ctx, uint64_t deadline_ns, void (*fn)(void *arg), void *arg,
			   struct polycm_timer **ret_timer);
	void (*timer_cancel)(void *ctx, struct polycm_timer *timer);
	/*
	 * A thread of the program is about to wait.  1: time moved and something
	 * happened, look again.  0: time passes by itself, block.  -EDEADLK:
	 * nothing that could end the wait can ever happen.  Another errno:
	 * nothing happens for want of a resource (why() says of which).
	 */
	int (*idle)(void *ctx);

	/*
	 * For the waits of a program that are none of polycm's calls: poll(),
	 * nanosleep() and their like.  All four or none; without them, and
	 * while is_virtual() says no, these calls are the C library's.
	 */
	bool (*is_virtual)(void *ctx);
	/*
	 * Let time move until look() sees what the thread waits for: 0.  Or:
	 * -ETIMEDOUT  it is the deadline.  What happens at that time has happened.
	 * -EDEADLK    nothing is left that could happen, and no other thread acts
	 * -EAGAIN     nothing is left, but other threads may act; not if only_ours
	 * -ENODEV     time is not virtual any more
	 */
	int (*wait)(void *ctx, const struct polycm_clock_wait *wait);
	/* A thread looked for something, did not find it and did not wait. */
	void (*spin)(void *ctx);
	/*
	 * Does only what lives on this clock make the descriptor ready?  Then
	 * also what it stands for and waits for, in words.
	 */
	bool (*owns_fd)(void *ctx, int fd, char *text, size_t size);
	/*
	 * now_ns(), for a program that reads a clock of its own, once more in a
	 * row; in a signal handler, too.  The call's stack frame says whether
	 * the same place does so again.  NULL: nothing but now_ns().
	 */
	uint64_t (*read_ns)(void *ctx, const void *frame);
	/*
	 * The timer, whether it has fired or not, fires at that time and at no
	 * other; UINT64_MAX: not before it is restarted.  Cannot fail, so needs
	 * no memory.  NULL: the core cancels it and starts another, which can.
	 */
	void (*timer_restart)(void *ctx, struct polycm_timer *timer, uint64_t deadline_ns);
};

/* ------------------------------------------------------------------------
 * The core's side.  Valid from the query until the process ends.
 */

enum polycm_log_level {
	POLYCM_LOG_ERROR,
	POLYCM_LOG_WARN,
	POLYCM_LOG_INFO,
	POLYCM_LOG_DEBUG,
	POLYCM_LOG_TRACE,
};

struct polycm_core {
	uint32_t size;
	uint32_t abi_minor;

	/*
	 * Queue an event for the program.  From any thread, also from inside an
	 * operation; copies, does not block, runs none of the program's code.
	 * -ECANCELED: the id is closing.  -ENOMEM: the listener's backlog is
	 * full (CONNECT_REQUEST) or no memory.  -EINVAL: no such event, or its
	 * size is not set.  -ETIMEDOUT: an answer after the core gave it up, see
	 * resolve_addr().  On an error of a CONNECT_REQUEST the child is still
	 * the provider's to destroy.
	 */
	int (*post_event)(struct polycm_id *id, const struct polycm_event *event);
	/*
	 * The id of a connection request that came in on a listener.  It is the
	 * provider's until a CONNECT_REQUEST with it was posted, then the
	 * core's, which ends it with close(), stop(), free() like any other.
	 */
	int (*child_create)(struct polycm_id *listener, struct polycm_id **ret_child,
			    void **ret_priv);
	/* Ends a child that was never posted; does not call the operations. */
	void (*child_destroy)(struct polycm_id *child);

	/* Devices come and go.  -EEXIST: a device of that name is there. */
	int (*device_add)(struct polycm_module *module, const struct polycm_device_info *info,
			  struct polycm_device **ret_device);
	void (*device_remove)(struct polycm_device *device);
	void *(*device_cookie)(const struct polycm_device *device);

	/* The rules of a transport, from any installed provider, or NULL. */
	const struct polycm_transport *(*transport)(const char *name);
	/* The value of a setting of this provider's options: the environment's or the default. */
	const char *(*setting)(const char *name);

	bool (*log_enabled)(enum polycm_log_level level);
	/* One line; id (may be NULL) adds provider, device and addresses. */
	void (*log)(enum polycm_log_level level, const struct polycm_id *id, const char *format, ...)
		__attribute__((format(printf, 3, 4)));

	/* Time, virtual where a clock is installed; timers run fn on a thread of the clock's. */
	uint64_t (*now_ns)(void);
	int (*timer_start)(uint64_t deadline_ns, void (*fn)(void *arg), void *arg,
			   struct polycm_timer **ret_timer);
	/*
	 * Gives a timer back, once for each, whether it fired or not.  After it
	 * returned fn neither runs nor will run.  Not from inside fn.
	 */
	void (*timer_cancel)(struct polycm_timer *timer);
	/* -EBUSY: another provider owns time. */
	int (*clock_install)(const struct polycm_clock *clock, void *ctx);

	void *(*alloc)(size_t size);	/* zeroed; NULL: no memory */
	void (*free)(void *memory);

	/*
	 * Why the operation under way is going to fail, in words, for the log
	 * line about the program's call.  Kept per thread until the call ends;
	 * the last one counts.  Not from other threads.
	 */
	void (*why)(const char *format, ...) __attribute__((format(printf, 1, 2)));

	/*
	 * A table of the core's by name and version, or NULL: the kernel's RDMA
	 * CM of <polycm/kernel.h>.
	 */
	const void *(*extension)(const char *name, unsigned int version);

	/*
	 * The device was unplugged: no list shows it any more and nothing opens
	 * it.  What has it open keeps it; its ids are the provider's to tell.
	 * device_remove() follows when nothing refers to it.  From any thread,
	 * also from inside an operation.
	 */
	void (*device_gone)(struct polycm_device *device);

	/*
	 * Lets so much time pass: in virtual time at once, else the thread
	 * sleeps.  From inside an operation, with no lock held that event() or a
	 * timer's function takes.
	 */
	void (*sleep)(uint64_t ns);

	/*
	 * The clocks that the program reads with clock_gettime() and its like
	 * follow the installed clock, from what they show now, or again the
	 * system's.  While they follow it now_ns() does not go back.  Nothing
	 * without an installed clock.  One call at a time.  -EOPNOTSUPP, after a
	 * line of log: the program's clocks cannot be virtual, since
	 * libpolycm-interpose is not loaded.
	 */
	int (*clock_show)(bool is_virtual);
	/* The system's clock, whatever the program's clocks show. */
	uint64_t (*real_ns)(clockid_t clock);
	/*
	 * pthread_cond_timedwait() until such a time, of the clock that the
	 * condition was made with.
	 */
	int (*cond_wait)(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until_ns);
	/*
	 * The installed clock moved time in a call of the program's, and holds no
	 * lock any more: signals of the program's timers are sent.  true: one
	 * interrupts the call, if it is one that waits.
	 */
	bool (*time_moved)(void);
	/*
	 * Is the calling thread in a verb that the core itself calls, for a call of
	 * rdma_* whose own line of log shows what why() was given?  A verb that is
	 * refused then writes no line.  Else it writes one at warn.
	 */
	bool (*why_shown)(void);
};

/* ------------------------------------------------------------------------
 * The provider.
 */

/* Carries connections only where POLYCM_PROVIDER names it, never by default. */
#define POLYCM_PROVIDER_ON_REQUEST (1u << 0)
/*
 * Carries connections with the operations of <polycm/kernel.h>.  All such
 * providers share one area and one descriptor per channel; their ids go over
 * from one to another with the device that they are on; and they report
 * DEVICE_REMOVAL themselves.
 */
#define POLYCM_PROVIDER_KERNEL (1u << 1)
/*
 * Plays Linux' RDMA CM in this, too: since 5.11 requests that wait to be taken
 * when their listener moves to another channel are lost.  Their ids end with
 * the channel that they are on.
 */
#define POLYCM_PROVIDER_LOSES_REQUESTS (1u << 2)
/* Carries nothing itself, but may be put around what does. */
#define POLYCM_PROVIDER_LAYER (1u << 3)

struct polycm_provider {
	uint32_t size;
	uint32_t abi_minor;		/* POLYCM_ABI_MINOR it was built with */
	const char *name;		/* NAME of provider-NAME.so: [a-z][a-z0-9_-]* */
	const char *version;
	const char *description;	/* one line for people */
	const struct polycm_transport *transport;	/* its rules; NULL: none of its own */
	const struct polycm_ops *ops;
	/* Bytes of priv: 1 or more, but for a layer without begin(); over the kernel it is not read. */
	uint32_t id_size;
	uint32_t channel_size;		/* bytes of chan */
	const struct polycm_option *options;
	uint32_t num_options;
	/*
	 * A table of the provider's own by name and version, or NULL.  May be NULL
	 * itself.  "place" 1 is a string: the folder by which processes meet that
	 * share the provider's network, for people; asked for between init() and fini().
	 */
	const void *(*extension)(const char *name, unsigned int version);
	uint32_t flags;			/* POLYCM_PROVIDER_* */
};

/*
 * The one function that a provider exports.  It is pure: it starts no thread,
 * touches no device, reads no environment.  Returns 0, or a negative errno if
 * the provider cannot serve this core at all.  *ret_provider stays valid and
 * unchanged until the process ends.
 */
int polycm_provider_query_v1(const struct polycm_core *core,
			     const struct polycm_provider **ret_provider);

#ifdef __cplusplus
}
#endif

#endif /* POLYCM_PROVIDER_H */
