/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/id_internal.h - ids, for those who look into them, and the locks and lifetimes
 * of ids, channels and events.
 *
 * Locks (docs/design.md, section 11): id_lock serialises the program's calls on
 * the id and the operations of its provider.  Members of the public structs are
 * written under it; what a log line shows of them (addresses, device, module)
 * also under the channel_lock of the id's channel.
 *
 * Lifetime: an event that the program holds keeps the id that it is charged
 * to alive (rdma_destroy_id() waits); an id keeps its device; a channel lives
 * until the program destroys it and the last thread has left it.
 */
#ifndef POLYCM_CORE_ID_INTERNAL_H
#define POLYCM_CORE_ID_INTERNAL_H

#include <pthread.h>

#include "answer.h"
#include "channel.h"
#include "core/base/alone.h"
#include "core/base/latch.h"
#include "core/base/live.h"
#include "core/device/device.h"
#include "core/plugin/registry.h"
#include "event.h"
#include "id.h"
#include "ret.h"

#define POLYCM_MAX_BACKLOG	1024
/* The channel is destroyed, and who leaves last frees it; the id is, and who destroys it waits. */
#define POLYCM_CLOSED		(UINT32_C(1) << 31)

/* A multicast group that the id joined. */
struct polycm_group {
	struct polycm_group *next;
	void *context;
	struct sockaddr_storage addr;
	uint32_t join_flags;
	bool attached;			/* the QP is */
	bool left;			/* lives on for events that are not acked */
	union ibv_gid mgid;
	uint16_t mlid;
	unsigned int unacked;		/* events that the program holds; atomic */
};

/* An option that was set before the id met its device. */
struct polycm_saved_option {
	struct polycm_saved_option *next;
	int level, name;
	size_t len;
	unsigned char value[];
};

/* What rdma_create_ep() keeps for later. */
struct polycm_ep {
	struct ibv_pd *pd;
	bool has_qp_attr;
	struct ibv_qp_init_attr qp_attr;	/* for the QPs of requests */
	size_t connect_len;
	uint8_t connect[];		/* goes before the program's data in rdma_connect() */
};

/*
 * librdmacm's rsockets, which call our rdma_* functions when polycm is
 * preloaded, read these words behind the public part of an id, where
 * librdmacm (44 and later) has them.
 */
struct polycm_rsocket_view {
	void *device;			/* librdmacm's own record of it: none */
	void *connect;
	size_t connect_len;
	int events_completed;
	int connect_error;
	int sync;			/* the id has a private channel and waits for its events */
};

/* May the id still change its provider? */
enum polycm_place {
	POLYCM_UNPLACED,			/* not on a device: the next address decides */
	POLYCM_RESOLVING,		/* resolve_addr() is under way */
	POLYCM_PLACED,			/* on a device, listening, or a child: no */
};

/* What its QP was told with INIT. */
struct polycm_qp_init {
	const struct ibv_qp *qp;
	bool final;			/* the connection was known then: a request's */
	uint8_t port_num;
	uint16_t pkey_index;
	unsigned int access_flags;
};

struct polycm_id {
	struct rdma_cm_id pub;		/* first */
	struct polycm_rsocket_view rsocket;
	struct ibv_sa_path_rec path;	/* what pub.route.path_rec points to where there is one */
	/* From here on, beside the provider's part, what each event needs. */
	struct polycm_latch id_lock;

	struct polycm_channel *chan;	/* atomic; NULL: the channel was destroyed under the id */
	struct polycm_id *prev, *next;	/* under chan->channel_lock, and all down to the blank line */
	struct polycm_id *listener;	/* of a child whose request nobody has retrieved */
	enum polycm_place place;
	bool closing;			/* nothing is posted any more; written under id->id_lock too */
	bool stranded;			/* a child that nobody can take: ends with its channel */
	bool announced;			/* a child's CONNECT_REQUEST was posted */
	bool live_reserved;		/* a child's place in the set of live objects is */
	bool accepted;			/* created or accepted by the program; as closing */
	bool request_held;		/* a child's CONNECT_REQUEST is late */
	struct polycm_ev *held;		/* posted, but late */
	unsigned int backlog, pending;	/* CONNECT_REQUESTs: most, and waiting in the queue */
	struct polycm_asked asked;

	struct polycm_module *module;	/* NULL: not settled; written under chan->channel_lock too */
	struct polycm_device *device;	/* NULL: none yet; referenced; likewise */
	struct polycm_id *master;	/* the visible listener of a shadow; never changes */
	struct polycm_id *shadows, *next_shadow;
	struct polycm_saved_option *options;
	struct polycm_group *groups;
	struct polycm_ep *ep;
	struct rdma_addrinfo *found;	/* by rdma_resolve_addrinfo(), not yet queried; or NULL */
	void (*free_found)(struct rdma_addrinfo *found);
	struct polycm_ece local_ece, remote_ece;
	uint8_t responder_resources, initiator_depth;	/* as the request has them */
	struct polycm_qp_init qp_init;
	bool connect_error;		/* reported; what comes later is not; atomic */
	bool pathless;			/* its device has no path records; atomic */
	bool port_asked;		/* bound to a port that the program chose */
	bool knows_peer;		/* of a request, or rdma_connect() was called */
	bool orphan;			/* on the list of those whose channel is destroyed */
	bool watched;			/* a provider was to answer in time */
	struct polycm_timer *answer_timer;	/* for asked.until_ns, or NULL; atomic */
	bool *request_posted;		/* a child's, while its CONNECT_REQUEST passes layers; or NULL */
	/* The call by which the program got it, and from where; atomic, for leak reports. */
	const char *made_by;
	const void *made_at;

	/* Calls of the program that are inside, and POLYCM_CLOSED once one destroys the id; atomic. */
	uint32_t inside;
	unsigned int unacked;		/* events that the program holds; atomic */
	_Alignas(16) unsigned char priv[];	/* the provider's */
};

/* --- locks --- */

static inline void polycm_id_lock(struct polycm_id *id)
{
	polycm_latch_take(&id->id_lock);
}

static inline void polycm_id_unlock(struct polycm_id *id)
{
	polycm_latch_give(&id->id_lock);
}

/* Where nobody is there who could move the id or destroy its channel. */
static inline struct polycm_channel *polycm_channel_lock_alone(struct polycm_id *id)
{
	if (id->chan)
		polycm_latch_take(&id->chan->channel_lock);
	return id->chan;
}

/* With other threads, for the two below. */
struct polycm_channel *polycm_channel_lock_shared(struct polycm_id *id);
struct polycm_channel *polycm_channel_lock_shared_held(struct polycm_id *id);

/* Lock the channel that the id is on; NULL: it has none any more. */
static inline struct polycm_channel *polycm_channel_lock(struct polycm_id *id)
{
	return polycm_alone() ? polycm_channel_lock_alone(id) : polycm_channel_lock_shared(id);
}

/* The same under the id's lock, and cheaper. */
static inline struct polycm_channel *polycm_channel_lock_held(struct polycm_id *id)
{
	return polycm_alone() ? polycm_channel_lock_alone(id)
			      : polycm_channel_lock_shared_held(id);
}

static inline void polycm_channel_unlock(struct polycm_channel *chan)
{
	if (chan)
		polycm_latch_give(&chan->channel_lock);
}

/* --- enter.c --- */

/*
 * An exported call begins: the id behind the pointer, locked.  A thread that destroys
 * the id waits until polycm_leave().  NULL: errno says why, and the call returns
 * polycm_refused().
 */
struct polycm_id *polycm_enter(struct rdma_cm_id *pub);
/* The same, also for an id whose channel was destroyed: calls that end something. */
struct polycm_id *polycm_enter_to_end(struct rdma_cm_id *pub);
void polycm_leave(struct polycm_id *id);
/* Leave; returns what the call returns for this result. */
static inline int polycm_exit(const char *call, struct polycm_id *id, int err)
{
	polycm_leave(id);
	return polycm_ret(call, id, err);
}

/* Leave; a call on a synchronous id that went well then waits for its event. */
static inline int polycm_exit_to_complete(const char *call, struct polycm_id *id, int err)
{
	bool waits = !err && id->rsocket.sync;

	polycm_leave(id);
	return polycm_ret(call, id, waits ? polycm_complete(id) : err);
}

/*
 * The body of an exported call: `result' is what it does to the id, which is `self' there,
 * and `leave' one of the two above.
 */
#define POLYCM_CALL(leave, self, pub, result)						\
	__extension__({									\
		struct polycm_id *self = polycm_enter(pub);				\
											\
		self ? leave(__func__, self, result) : polycm_refused(__func__);	\
	})

/*
 * polycm_leave() after polycm_id_unlock(), for what is done to the id without its
 * lock.  true: the id was destroyed meanwhile, and may be gone now.
 */
bool polycm_leave_unlocked(struct polycm_id *id);
/* Count in, for a log line; false: no live id. */
bool polycm_enter_unlocked(const struct polycm_id *id);
/*
 * The id is locked, and no call finds it any more.  -EINVAL: no live id, or
 * another thread took it; nothing was read of it then.  -EACCES: it is of the
 * process that this one was forked from, and stays.
 */
int polycm_id_take(struct polycm_id *id);
/* Of an id that was taken: until all threads that were inside, or wanted to be, have left it. */
void polycm_wait_until_left(struct polycm_id *id);

/* --- id.c --- */

/* The program gets the id by this call, which was made there. */
static inline void polycm_id_made(struct polycm_id *id, const char *call, const void *at)
{
	__atomic_store_n(&id->made_by, call, __ATOMIC_RELAXED);
	__atomic_store_n(&id->made_at, at, __ATOMIC_RELAXED);
}

/* A new id on the channel, or on a private one if chan is NULL. */
int polycm_id_create(struct polycm_channel *chan, enum rdma_port_space ps, enum ibv_qp_type qp_type,
		     void *context, struct polycm_id **ret_id);
/* One that was taken; gives up its lock. */
void polycm_id_destroy(struct polycm_id *id);
/* End an id that the program has never seen. */
void polycm_id_end_child(struct polycm_id *child);
/*
 * The channel is going away under the id: end it at its provider; the program
 * still has it.  It is locked, and this gives up the lock.
 */
void polycm_id_abandon(struct polycm_id *id);
/* Zeroed, and aligned as the areas of providers must be; free() gives it back. */
void *polycm_block_alloc(size_t size);
int polycm_id_alloc(enum rdma_port_space ps, enum ibv_qp_type qp_type, struct polycm_id **ret_id);
void polycm_id_free(struct polycm_id *id);
void polycm_id_describe_locked(const struct polycm_id *id, char *buf, size_t size);

/* --- migrate.c --- */

/* To another channel, NULL for a private one; events that the program holds are its caller's. */
int polycm_id_migrate(struct polycm_id *id, struct polycm_channel *to);
/* The id of a request: tell its provider if it is on another channel than it was made for. */
int polycm_id_follow(struct polycm_id *id);

/* --- settle.c --- */

/* Is the choice of a provider open to this id? */
bool polycm_id_is_unplaced(struct polycm_id *id);
/* Open the id in the module (out of another, if it was there) and set its options again. */
int polycm_id_settle(struct polycm_id *id, struct polycm_module *module);
void polycm_id_unsettle(struct polycm_id *id);
void polycm_options_free(struct polycm_id *id);
/* The first module that carries an id from src to dst (each may be NULL). */
int polycm_choose_module(const struct sockaddr *src, const struct sockaddr *dst,
			 struct polycm_module **ret_module);
/* The only module there is to choose, or NULL. */
struct polycm_module *polycm_only_module(void);
/* What was taken over of paths, but for the pointer. */
void polycm_id_free_paths(struct polycm_id *id);
/* Ask the provider where the id is; take over device, addresses and, if asked for, paths. */
int polycm_id_update(struct polycm_id *id, bool with_paths);
void polycm_id_set_place(struct polycm_id *id, enum polycm_place place);
/* The module or device, or -EINVAL with the reason in words. */
int polycm_need_module(const struct polycm_id *id);
int polycm_need_device(const struct polycm_id *id);

/* --- qp.c --- */

int polycm_qp_create(struct polycm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
/* Moves of the id's QP; 0 where it has none or the device does it. */
int polycm_qp_connect(struct polycm_id *id, uint8_t responder_resources, uint8_t initiator_depth,
		      const struct rdma_conn_param *reply);
int polycm_qp_error(struct polycm_id *id);
int polycm_qp_shutdown(struct polycm_id *id);
void polycm_qp_destroy(struct polycm_id *id);

/* The further ids of a wildcard listener (api/rdma_listen.c). */
void polycm_shadows_close(struct polycm_id *id);
void polycm_shadows_free(struct polycm_id *id);

/* --- api/rdma_addr.c --- */

/* Under the id's lock. */
int polycm_bind(struct polycm_id *id, const struct sockaddr *addr);
/* These take it, and wait for the event of a synchronous id. */
int polycm_resolve_addr(struct polycm_id *id, const struct sockaddr *src,
			const struct sockaddr *dst, int timeout_ms);
int polycm_resolve_route(struct polycm_id *id, int timeout_ms);

/* --- api/rdma_srq.c --- */

void polycm_srq_destroy(struct polycm_id *id);

/* --- ece.c --- */

/* A new QP, before and after it goes to INIT: its options, and what it makes of the peer's. */
int polycm_ece_begin(struct polycm_id *id, struct ibv_qp *qp);
int polycm_ece_agree(struct polycm_id *id, struct ibv_qp *qp);
/* What to tell the peer in REQ, and in REP. */
void polycm_ece_offer(const struct polycm_id *id, struct polycm_ece *ret_ece);
void polycm_ece_answer(const struct polycm_id *id, struct polycm_ece *ret_ece);
/* The QP is told what the peer has answered. */
int polycm_ece_response(struct polycm_id *id);

/* --- group.c --- */

void polycm_group_free(struct polycm_group *group);
void polycm_group_detach(struct polycm_id *id, struct polycm_group *group);
void polycm_group_joined(struct polycm_id *id, struct polycm_ev *ev);
/* Out of all groups at the device and at the provider; then their memory. */
void polycm_groups_detach(struct polycm_id *id);
void polycm_groups_leave(struct polycm_id *id);
void polycm_groups_free(struct polycm_id *id);

static inline bool polycm_id_is_ud(const struct polycm_id *id)
{
	return id->pub.qp_type == IBV_QPT_UD;
}

#endif
