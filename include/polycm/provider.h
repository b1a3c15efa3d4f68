/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * polycm/provider.h - the ABI between libpolycm and its transport providers.
 *
 * A provider is a shared object provider-NAME.so that exports one function,
 * polycm_provider_query_v1().  It links to nothing of libpolycm: everything it
 * needs comes through struct polycm_core, everything it offers through struct
 * polycm_provider.
 *
 * A simple provider includes only this header, which includes core.h and rules.h.  The
 * other headers are for special providers:
 *
 *  <polycm/core.h>	what the core offers to providers
 *  <polycm/rules.h>	the rules of a transport
 *  <polycm/kernel.h>	devices that the kernel's RDMA CM knows
 *  <polycm/verbs.h>	devices that libibverbs does not know
 *  <polycm/layer.h>	providers around others
 *  <polycm/clock.h>	providers that own time
 *
 * Rules that hold for all of them
 *
 *  Growth    Every struct starts with `size'.  Whoever fills the struct sets it
 *            to the sizeof() that it was compiled with.  New members come only
 *            at the end, and each adds 1 to POLYCM_ABI_MINOR.  Members of
 *            minor 0 are always there; before a provider reads a newer one it
 *            asks POLYCM_HAS().  The core copies what a provider fills in, up to
 *            the smaller of both sizes.  An operation that is NULL, or that the
 *            provider does not know yet, answers -EOPNOTSUPP.
 *  Results   If a provider fills in a struct of the core (query()), `size' is the
 *            core's capacity.  The provider writes no more than that and leaves
 *            `size' as it is.
 *  Errors    0 or a negative errno.  Only the exported rdma_* calls set errno.
 *            If a provider breaks a rule that the core can check (a positive
 *            errno, a bad event, something given back twice), the core logs one
 *            line at `error'.  The call has no other effect than its error.
 *  Events    What a call starts and cannot finish at once is reported by
 *            polycm_core.post_event() and in no other way.
 *  Threads   The core calls one operation at a time for each id, and operations
 *            of different ids at the same time.  During an operation the core
 *            may hold the lock of the id or of its listener.  It never holds a
 *            lock that post_event() takes.  One more lock may be held around channel_read(); it only
 *            keeps other threads out of channel_read().  A provider must not
 *            call rdma_* functions.
 *  Memory    Pointers handed over are valid during the call only, unless a
 *            member says otherwise.
 *  fork()    A child has none of its parent's ids and channels: the core refuses
 *            them with -EACCES and calls no operation on them.  It calls fini()
 *            only in the process that called init().  The child may make ids of
 *            its own.  If these need threads or descriptors, the provider
 *            creates new ones, in pthread_atfork() or at the next open().
 */
#ifndef POLYCM_PROVIDER_H
#define POLYCM_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <polycm/core.h>
#include <polycm/rules.h>

#ifdef __cplusplus
extern "C" {
#endif

#define POLYCM_ABI_MAJOR 1	/* part of the query function's name */
#define POLYCM_ABI_MINOR 0	/* counts members appended since the first release */

/*
 * Does the table that the other side filled in reach to the end of this member?
 * For members newer than minor 0: POLYCM_HAS(core, member) ? core->member : ...
 */
#define POLYCM_HAS(table, member)						\
	((size_t)((const char *)(&(table)->member + 1) - (const char *)(table)) <=	\
	 (size_t)(table)->size)

struct polycm_layer_ops;	/* <polycm/layer.h> */
struct polycm_verbs_device;	/* <polycm/verbs.h> */

/* --- Structs of ids and connections. --- */

struct polycm_ece {
	uint32_t vendor_id;	/* 24 bits, 0: no options */
	uint32_t options;
};

/*
 * Of connect and accept.  The core has checked the depths and filled in
 * defaults.  It has not checked private_data_len: see the operations.
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
	/*
	 * ADDR_RESOLVED to TIMEWAIT_EXIT.  The core refuses the newer types of
	 * librdmacm 60 (-EINVAL): the core alone posts those.
	 */
	enum rdma_cm_event_type type;
	int status;
	bool is_ud;			/* param.ud is filled in, not param.conn */
	union {
		struct rdma_conn_param conn;
		struct rdma_ud_param ud;
	} param;
	struct polycm_ece ece;		/* the peer's, with CONNECT_REQUEST and CONNECT_RESPONSE */
	struct polycm_id *child;	/* CONNECT_REQUEST: from child_create() */
	void *group;			/* multicast: what join() was given */
	const char *why;		/* what the status means here; a constant, or NULL */
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

/* A multicast join; valid until leave_multicast() for the same group returned 0. */
struct polycm_multicast {
	uint32_t size;
	void *group;			/* handle for events and for leave_multicast() */
	const struct sockaddr *addr;
	uint32_t join_flags;		/* enum rdma_cm_mc_join_flags */
};

/* What open() gets for a new id. */
struct polycm_open {
	uint32_t size;
	enum rdma_port_space ps;
	enum ibv_qp_type qp_type;
	void *channel_priv;		/* this provider's area of the id's channel */
};

/*
 * Where inspect() and inspect_device() write what they know, line by line:
 *
 *	to->put(to, "retries", "%u", retries);
 *
 * The name of a counter stays the same, and its value is a decimal number.
 */
struct polycm_report {
	uint32_t size;
	void (*put)(const struct polycm_report *to, const char *name, const char *format, ...)
		__attribute__((format(printf, 3, 4)));
};

/* ------------------------------------------------------------------------
 * The operations.
 *
 * ctx is what init() returned.  priv is the provider's area of the id
 * (polycm_provider.id_size bytes, zeroed, 16-byte aligned, owned by the core
 * until free() returned); chan likewise for a channel.
 *
 * Operation       Legal in           Waits Keeps    Threads Errors            Posts
 * init            once               yes   module   start   any (2)           -
 * fini            once, after init   short -        start   -                 -
 * enumerate       always             yes   -        any     any: logged       -
 * match           always             no    -        any     ENODEV            -
 * channel_open    once a channel     no    chan     chan    any: the call's   -
 * channel_read    open, with a fd    (3)   -        chan    EAGAIN EINTR      what there is
 * channel_close   open               no    -        chan    -                 -
 * open            first of an id     no    id, priv id      ENODEV            -
 * bind            IDLE               no    -        id      ENODEV EADDRINUSE -
 *                                                           EADDRNOTAVAIL
 * resolve_addr    IDLE ADDR_BOUND    no    -        id      ENODEV EADDRINUSE ADDR_RESOLVED/_ERROR
 * resolve_route   ADDR_RESOLVED      no    -        id      -                 ROUTE_RESOLVED/_ERROR
 * listen          ADDR_BOUND IDLE    no    -        id      ENODEV EADDRINUSE CONNECT_REQUEST each
 * connect         ROUTE_RESOLVED     (4)   -        id      (4)               the outcome (5)
 * accept          CONNECT, request   no    -        id      -                 ESTABLISHED or error
 * reject          CONNECT, request   no    -        id      -                 -
 * establish       CONNECT            no    -        id      -                 -
 * disconnect      CONNECT (8)        no    -        id      -                 DISCONNECTED (6)
 * notify          CONNECT            no    -        id      -                 ESTABLISHED, if new
 * set_option      any                no    -        id      ENOSYS            -
 * init_qp_attr    on a device        no    -        id      -                 -
 * query           any                no    -        id      ENODEV            -
 * join_multicast  ADDR_BOUND         no    *mc      id      ENODEV ENOSYS     MULTICAST_JOIN/_ERROR
 *                 ADDR_RESOLVED
 * leave_multicast any                short -        id      EADDRNOTAVAIL     nothing more of it
 * migrate         any                no    new_chan id      -                 -
 * inspect         any                no    -        id      -                 -
 * inspect_device  always             no    -        any     (7)               -
 * close           any                no    -        id      -                 -
 * stop            after close        short -        id      -                 nothing more
 * free            after stop         no    -        id      -                 -
 *
 * Legal in: states of an id as the Linux RDMA CM has them.  Elsewhere the
 *	operation returns -EINVAL.  The provider keeps the state and checks it.
 * Waits: for anything but its own locks.  short: for threads of the provider
 *	that are about to be done, not for a peer or the program.
 * Keeps: what it may use after it returned; all else is the caller's.  An id and
 *	priv are kept until free(), chan until channel_close(), *mc until
 *	leave_multicast() returned 0.
 * Threads: start: the thread that starts or ends the library.  any: any threads
 *	of the program, at the same time.  chan: one at a time for each channel,
 *	but see channel_read().  id: one at a time for each id, on any thread.
 * Errors: those that programs know from librdmacm, besides EINVAL and ENOMEM.
 *	Any errno is passed on to the program.
 * Posts: later or before the operation returns; where it returned an error,
 *	nothing.  DEVICE_REMOVAL, ADDR_CHANGE and, on connected ids, DISCONNECTED
 *	may come at any time.
 * (2) Any error means that the provider does not start.
 * (3) See channel_read().
 * (4) With POLYCM_T_CONNECT_BLOCKS it waits for the TCP connection, and returns
 *	that connection's errors.  Otherwise it does not wait.
 * (5) CONNECT_RESPONSE (ESTABLISHED for datagrams and where POLYCM_SVC_ESTABLISH
 *	is absent), REJECTED, UNREACHABLE or CONNECT_ERROR.
 * (6) At both ends; then TIMEWAIT_EXIT, with POLYCM_SVC_TIMEWAIT.
 * (7) Any error means that nothing can connect on the device now.  -ENODEV: there
 *	is no such device.
 * (8) And after DISCONNECTED, where it returns 0 and posts nothing: both ends may
 *	disconnect.
 */
struct polycm_ops {
	uint32_t size;

	/*
	 * Start and end the provider.  Threads that it creates block all signals but those that
	 * a thread itself causes (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS).  Not required.
	 */
	int (*init)(struct polycm_module *module, void **ret_ctx);
	void (*fini)(void *ctx);

	/*
	 * Call device_add() for each device that the core does not know yet.  Called
	 * again whenever the program asks for devices, so it should be cheap.
	 * Required.
	 */
	int (*enumerate)(void *ctx);

	/*
	 * Would this provider carry an id from src (may be NULL) to dst (may be
	 * NULL)?  0: yes.  -ENODEV: no device of its own has the addresses.
	 * Wildcard and no addresses: 0 if it has any device.  The core does not ask
	 * if only one provider is in use: then each operation refuses the addresses.
	 * Required.
	 */
	int (*match)(void *ctx, const struct sockaddr *src, const struct sockaddr *dst);

	/*
	 * A program's event channel.  Not required.
	 *
	 * A provider that has to fetch its events returns a descriptor in *ret_fd;
	 * all others return -1.  The core sets O_NONBLOCK on it.  When it is
	 * readable the core calls channel_read(), which posts what there is and
	 * does not wait.  It runs in one thread at a time for each channel, with
	 * cancellation disabled, and may call all functions of struct polycm_core.
	 *
	 * It is different where all providers have POLYCM_PROVIDER_KERNEL.  Then
	 * the descriptor is the program's own (rdma_event_channel.fd), and the core
	 * does not set O_NONBLOCK.  channel_read() waits for one event, unless the
	 * descriptor has O_NONBLOCK (-EAGAIN) or a signal comes (-EINTR), and posts
	 * at most one.  Any number of threads may be in it, and may be cancelled.
	 */
	int (*channel_open)(void *ctx, void *chan, int *ret_fd);
	int (*channel_read)(void *chan);
	void (*channel_close)(void *chan);

	/*
	 * A new id.  Not called for ids of child_create().  Called again for the same
	 * id, after free(), if the id has no device yet and its next address belongs
	 * to another provider.  Required.
	 */
	int (*open)(void *ctx, struct polycm_id *id, void *priv, const struct polycm_open *how);

	/* rdma_bind_addr().  If the port is 0, the provider chooses a free one. */
	int (*bind)(void *priv, const struct sockaddr *addr);
	/*
	 * rdma_resolve_addr(), whose src may be NULL, and rdma_resolve_route().  The
	 * provider answers each with one event within timeout_ms; a negative number
	 * means without limit.  The event is ADDR_RESOLVED or ADDR_ERROR, or
	 * ROUTE_RESOLVED or ROUTE_ERROR.  If it finds nothing in that time, the
	 * status is -ETIMEDOUT.
	 *
	 * The core waits for the answer for 1.25 times timeout_ms and one second.
	 * Then it logs an error and gives the program ADDR_ERROR or
	 * ROUTE_ERROR with -ETIMEDOUT.  It drops a later answer: post_event() returns
	 * -ETIMEDOUT.  This does not apply to POLYCM_PROVIDER_KERNEL, nor to a
	 * provider that owns time.
	 */
	int (*resolve_addr)(void *priv, const struct sockaddr *src, const struct sockaddr *dst,
			    int timeout_ms);
	int (*resolve_route)(void *priv, int timeout_ms);
	/* rdma_listen().  backlog is at least 1; over the kernel it is what the program passed. */
	int (*listen)(void *priv, int backlog);
	/*
	 * rdma_connect().  On error the state stays, and the program may call again.
	 * The provider refuses private data above its rules' limit with -EINVAL.
	 * When nothing answers, the provider ends the wait (UNREACHABLE): the core
	 * has no time-out here.
	 */
	int (*connect)(void *priv, const struct polycm_conn_param *param);
	/*
	 * rdma_accept() on a child id.  The core has moved the QP to RTS before,
	 * and moves it to ERR after an error.  With POLYCM_T_DEVICE_MOVES_QP the
	 * provider moves it to RTS.  After an error, such as -EINVAL for private data
	 * above the limit, the provider rejects the peer, as Linux does.
	 */
	int (*accept)(void *priv, const struct polycm_conn_param *param);
	/*
	 * rdma_reject().  reason 0: consumer defined; 35: rdma_reject_ece().  -EINVAL
	 * for data above the limit; then the request stays unanswered.
	 */
	int (*reject)(void *priv, const void *data, uint8_t len, uint8_t reason);
	/* The active side's RTU: from rdma_establish(), or by the core when the id has a QP. */
	int (*establish)(void *priv);
	/*
	 * rdma_disconnect().  The core has moved the QP to ERR before.  With
	 * POLYCM_T_DEVICE_MOVES_QP it has moved it to SQD: the provider then moves it
	 * to ERR, which flushes its requests.  Returns 0 after DISCONNECTED, too.
	 */
	int (*disconnect)(void *priv);
	/* rdma_notify().  IBV_EVENT_COMM_EST: a message of the peer's came before its RTU. */
	int (*notify)(void *priv, enum ibv_event_type event);
	/*
	 * rdma_set_option().  Options that were set before the id had a provider
	 * follow after open(), in the same order.  If only one provider is in use,
	 * open() and this come before the first address.  Return -ENOSYS for an
	 * unknown option.  If this operation is missing, each option fails with
	 * -EOPNOTSUPP, those of RDMA_OPTION_ID, too.
	 */
	int (*set_option)(void *priv, int level, int optname, const void *optval, size_t optlen);
	/* Attributes that bring the QP to attr->qp_state, as rdma_init_qp_attr(). */
	int (*init_qp_attr)(void *priv, struct ibv_qp_attr *attr, int *ret_mask);
	/*
	 * The device, addresses and paths of the id.  Writes no more than
	 * ret_info->size bytes, and of path only num_paths rows.  If query() fails,
	 * the call of the program fails.  The core has zeroed all before path.
	 */
	int (*query)(void *priv, struct polycm_route_info *ret_info);
	/* rdma_join_multicast_ex().  The answer is one event with mc->group. */
	int (*join_multicast)(void *priv, const struct polycm_multicast *mc);
	/* rdma_leave_multicast().  After 0 nothing is posted for the group. */
	int (*leave_multicast)(void *priv, void *group);
	/* The id now belongs to another channel.  Not required: 0 without it. */
	int (*migrate)(void *priv, void *new_chan);

	/*
	 * For support, see <polycm/polycm.h>.  Report the state and the counters of
	 * an id.  Not required.
	 */
	void (*inspect)(void *priv, const struct polycm_report *to);
	/*
	 * The same of a device, by its name.  The result is its health: 0, or an
	 * error, with lines that say what is wrong.  Not required.
	 */
	int (*inspect_device)(void *ctx, const char *name, const struct polycm_report *to);

	/*
	 * The end of an id, in this order, always all three, also after a failed
	 * open().  close() starts it (notifies the peer) and does not wait for the
	 * peer.  After stop() returned nothing is posted for the id and no thread
	 * of the provider uses it; stop() may wait for such a thread.
	 * free() releases what priv refers to.  All required.
	 */
	void (*close)(void *priv);
	void (*stop)(void *priv);
	void (*free)(void *priv);
};

/* --- Settings.  A provider declares each of its settings here, and nowhere else. --- */

struct polycm_option {
	uint32_t size;
	const char *name;		/* environment variable, POLYCM_<PROVIDER>_<NAME> */
	const char *default_value;	/* as text; "": no default */
	const char *choices;		/* "a|b|c": refuses to start with another; NULL: free text */
	const char *help;		/* one sentence for people */
};

/* A device, for device_add(), which copies it. */
struct polycm_device_info {
	uint32_t size;
	const char *name;		/* as libibverbs calls it; that of verbs->device, if any */
	const char *transport;		/* name of its rules */
	__be64 node_guid;		/* that of verbs, too, if any */
	struct polycm_verbs_device *verbs;	/* NULL: a device of libibverbs */
	void *cookie;			/* the provider's, see device_cookie() */
};

/* --- The provider. --- */

/* Carries connections only where POLYCM_PROVIDER names it, never by default. */
#define POLYCM_PROVIDER_ON_REQUEST (1u << 0)
/*
 * Carries connections with the operations of <polycm/kernel.h>.  All such
 * providers share one area and one descriptor for each channel.  An id belongs
 * to the one whose device it is on, which may change.  They report
 * DEVICE_REMOVAL themselves.
 */
#define POLYCM_PROVIDER_KERNEL (1u << 1)
/*
 * Loses connection requests as Linux does since 5.11: if a listener moves to
 * another channel, the requests that wait on the old one are never retrieved.
 * Their ids end with the old channel.
 */
#define POLYCM_PROVIDER_LOSES_REQUESTS (1u << 2)
/* All flags.  A provider with another one is refused: each changes who owns what. */
#define POLYCM_PROVIDER_FLAGS \
	(POLYCM_PROVIDER_ON_REQUEST | POLYCM_PROVIDER_KERNEL | POLYCM_PROVIDER_LOSES_REQUESTS)

struct polycm_provider {
	uint32_t size;
	uint32_t abi_minor;		/* POLYCM_ABI_MINOR that it was built with */
	const char *name;		/* NAME of provider-NAME.so: [a-z][a-z0-9_-]* */
	const char *version;
	const char *description;	/* one line for people */
	uint32_t flags;			/* POLYCM_PROVIDER_* */
	/* Bytes of priv, at least 1.  Ignored over the kernel; 0 for a layer without begin(). */
	uint32_t id_size;
	uint32_t channel_size;		/* bytes of chan */
	uint32_t num_options;
	const struct polycm_option *options;
	const struct polycm_transport *transport;	/* its rules; NULL: it has no rules */
	/* Its operations.  NULL with POLYCM_PROVIDER_KERNEL: those of the kernel's client. */
	const struct polycm_ops *ops;
	/* A layer's operations.  NULL: the provider is not a layer. */
	const struct polycm_layer_ops *layer;
	/*
	 * Returns the provider's table of that name and version, or NULL if there is
	 * none.  Not required.  Called from any thread, between init() and fini().
	 *
	 * Names with a dot ("acme.qos") are for programs, which get the table with
	 * polycm_provider_extension(); it stays valid until the process ends.  Names
	 * without one are polycm's own.  "place" 1 is a string for people: the folder
	 * of the network that processes share through this provider.
	 */
	const void *(*extension)(const char *name, unsigned int version);
};

/*
 * The one function that a provider exports.  It is pure: it starts no thread,
 * touches no device, reads no environment.  Returns 0, or a negative errno if
 * the provider cannot serve this core at all, after a line of core->log() that
 * says why.  *ret_provider stays valid and unchanged until the process ends.
 * The attribute exports it from a plugin that is built with -fvisibility=hidden.
 */
__attribute__((visibility("default")))
int polycm_provider_query_v1(const struct polycm_core *core,
			     const struct polycm_provider **ret_provider);

#ifdef __cplusplus
}
#endif

#endif /* POLYCM_PROVIDER_H */
