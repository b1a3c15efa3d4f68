/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * id_internal.h - ids, channels and events as the rdma_*.c files keep them.
 *
 * Locks, in this order:
 *   id->lock         one program call on the id at a time, and with it the
 *                    operations of its provider; a listener's before a child's
 *   (a provider's own locks)
 *   channels lock    the list of all channels, and moves of ids between them
 *   chan->lock       queue and ids of a channel; two of them by address
 * No provider is called, and nothing is logged about an id, under the last
 * two.  Members of the public structs are written under the id's lock; what
 * a log line shows of them (addresses, device, module) under both.
 *
 * Lifetime: an event that the program holds keeps the id that it is charged
 * to alive (rdma_destroy_id() waits); an id keeps its device; a channel lives
 * until the program destroys it and the last thread has left it.
 */
#ifndef POLYCM_CORE_ID_INTERNAL_H
#define POLYCM_CORE_ID_INTERNAL_H

#include <pthread.h>

#include "alone.h"
#include "device.h"
#include "fork.h"
#include "id.h"
#include "latch.h"
#include "live.h"
#include "registry.h"

#define POLYCM_MAX_BACKLOG	1024
/* The channel is destroyed, and who leaves last frees it; the id is, and who destroys it waits. */
#define POLYCM_CLOSED		(UINT32_C(1) << 31)

/* An event, queued on a channel or held by the program. */
struct polycm_ev {
	struct rdma_cm_event pub;	/* first */
	struct polycm_ev *prev, *next;	/* of the channel's queue */
	struct polycm_id *owner;	/* charged to it; a CONNECT_REQUEST to the listener */
	struct polycm_id *child;	/* CONNECT_REQUEST: the new id */
	struct polycm_group *group;	/* multicast events */
	struct polycm_ece ece;
	const char *why;		/* the provider's words for the status, or NULL */
	bool is_ud;
	bool held;			/* in its id's list of those that are late, then */
	bool due, armed;		/* its time has come; timer is set */
	bool keepable;			/* the block has room for any data */
	bool listed;			/* the block is in the set of live events */
	bool reserved;			/* the block is the reserve's: it stays in that set */
	struct polycm_timer *timer;	/* of one that was late; else NULL */
	uint64_t charge;		/* counts up with each that is retrieved; 0: not yet; atomic */
	uint64_t since_ns;		/* retrieved then */
	uint8_t data[];			/* private data */
};

/* A carrier's part in a channel, opened when its first id comes to the channel. */
struct polycm_channel_slot {
	enum { POLYCM_SLOT_CLOSED, POLYCM_SLOT_OPENING, POLYCM_SLOT_OPEN } state;	/* atomic */
	int fd;				/* to poll, then channel_read(); -1: none */
	struct polycm_module *module;
	void *area;
};

/*
 * Where the kernel carries everything, the kernel's descriptor is the
 * channel's own: what waits on it is what the kernel has queued, and a thread
 * that wants an event waits inside of channel_read().  The program may move it
 * to another number, in pub.fd, which is read each time.  Else the descriptor is
 * an epoll set of wake_fd and of what the providers give.
 */

struct polycm_channel {
	struct rdma_event_channel pub;	/* first */
	bool native;			/* pub.fd is the kernel's; never changes */
	struct polycm_forks forks;	/* when it was made */
	bool ending;			/* a thread destroys it; atomic */
	bool gone;			/* destroyed, its memory kept for late callers; atomic */
	bool private;			/* of a synchronous id */
	/* Threads inside rdma_get_cm_event() that may sleep, and POLYCM_CLOSED; atomic. */
	uint32_t inside;
	struct polycm_latch lock;	/* the members below */
	int wake_fd;			/* eventfd in the set, readable while events wait; -1: native */
	uint32_t posts;			/* a count to sleep on; atomic */
	unsigned int sleepers;		/* threads that sleep on posts */
	bool stuck_told;		/* by another thread that is stuck, when posts were so many: */
	uint32_t stuck_posts;
	bool readable;			/* what wake_fd says */
	pthread_t destroyer;		/* the thread that did it */
	struct polycm_ev *events;
	struct polycm_id *ids;
	struct polycm_channel *prev, *next;	/* under the channels lock */
	pthread_mutex_t pull_lock;	/* one reader of the slots' fds at a time; before lock */
	unsigned int num_pull;		/* slots with a fd in the set */
	unsigned int num_slots;
	struct polycm_channel_slot *slots;
	pthread_mutex_t slots_lock;	/* their states; before lock */
	pthread_cond_t slot_opened;
	_Alignas(16) unsigned char areas[];	/* of the providers, then the slots */
};

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
	POLYCM_ROAMING,			/* not on a device: the next address decides */
	POLYCM_RESOLVING,		/* resolve_addr() is under way */
	POLYCM_PLACED,			/* on a device, listening, or a child: no */
};

/* What its provider is asked, and answers with an event. */
enum polycm_question {
	POLYCM_NO_QUESTION,
	POLYCM_ASKED_ADDR,		/* resolve_addr() */
	POLYCM_ASKED_ROUTE,		/* resolve_route() */
};

struct polycm_asked {
	enum polycm_question open;	/* not answered yet */
	enum polycm_question given_up;	/* not answered in time: an answer is dropped */
	bool extended;			/* once more time was given */
	int timeout_ms;
	uint64_t until_ns;		/* given up then */
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
	struct polycm_latch lock;

	struct polycm_channel *chan;	/* atomic; NULL: the channel was destroyed under the id */
	struct polycm_id *prev, *next;	/* under chan->lock, and all down to the blank line */
	struct polycm_id *listener;	/* of a child whose request nobody has retrieved */
	enum polycm_place place;
	bool closing;			/* nothing is posted any more; written under id->lock too */
	bool stranded;			/* a child that nobody can take: ends with its channel */
	bool announced;			/* a child's CONNECT_REQUEST was posted */
	bool live_reserved;		/* a child's place in the set of live objects is */
	bool accepted;			/* created or accepted by the program; as closing */
	bool request_held;		/* a child's CONNECT_REQUEST is late */
	struct polycm_ev *held;		/* posted, but late */
	unsigned int backlog, pending;	/* CONNECT_REQUESTs: most, and waiting in the queue */
	struct polycm_asked asked;

	struct polycm_module *module;	/* NULL: not settled; written under chan->lock too */
	struct polycm_device *device;	/* NULL: none yet; referenced; likewise */
	struct polycm_id *master;	/* the visible listener of a shadow; never changes */
	struct polycm_id *shadows, *next_shadow;
	struct polycm_saved_option *options;
	struct polycm_group *groups;
	struct polycm_ep *ep;
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
	/* The call by which the program got it, and from where; atomic, for leak reports. */
	const char *made_by;
	const void *made_at;

	/* Calls of the program that are inside, and POLYCM_CLOSED once one destroys the id; atomic. */
	uint32_t inside;
	unsigned int unacked;		/* events that the program holds; atomic */
	_Alignas(16) unsigned char priv[];	/* the provider's */
};

/* --- rdma_devices.c --- */

/* The registry is loaded and there is a device; else -ENODEV, said once. */
int polycm_start(void);

/* --- rdma_channel.c --- */

int polycm_channel_create(bool private, struct polycm_channel **ret_chan);
void polycm_channel_destroy(struct polycm_channel *chan);
/*
 * A thread that may sleep is counted, and keeps the channel's memory.  false:
 * the channel was destroyed.
 */
bool polycm_channel_enter(struct polycm_channel *chan);
/* true: the channel was destroyed meanwhile, and may be gone now. */
bool polycm_channel_leave(struct polycm_channel *chan);
/* The channel behind a program's pointer, or NULL. */
struct polycm_channel *polycm_channel_of(struct rdma_event_channel *pub);
/* Has another thread destroyed it, not long ago? */
bool polycm_channel_gone(const struct rdma_event_channel *pub);
size_t polycm_channels_live(void);

/* May a child have it too? */
static inline bool polycm_channel_has_children(const struct polycm_channel *chan)
{
	return chan->forks.children != polycm_forks.children;
}

/* Is it of a process that this one was forked from?  The kernel takes no commands there (EACCES). */
static inline bool polycm_channel_inherited(const struct polycm_channel *chan)
{
	return chan->forks.before != polycm_forks.before;
}

/* --- rdma_channel_fd.c --- */

int polycm_channel_open_fds(struct polycm_channel *chan);
void polycm_channel_close_fds(struct polycm_channel *chan);
/* The provider's area in the channel, opened if need be. */
int polycm_channel_area(struct polycm_channel *chan, struct polycm_module *module, void **ret_area);
/* Under chan->lock: let the descriptor say whether an event waits. */
void polycm_channel_show(struct polycm_channel *chan);
/* Under chan->lock: put an event at the end, take one out (NULL: the first). */
void polycm_channel_push(struct polycm_channel *chan, struct polycm_ev *ev);
struct polycm_ev *polycm_channel_pop(struct polycm_channel *chan, struct polycm_ev *ev);

/* --- rdma_channel_ids.c --- */

void polycm_channels_add(struct polycm_channel *chan);
void polycm_channels_remove(struct polycm_channel *chan);
/* Until nobody is left who read a pointer to a channel from an id that is not on it any more. */
void polycm_channels_wait_lookups(void);

static inline void polycm_channel_take_lock(struct polycm_channel *chan)
{
	polycm_latch_take(&chan->lock);
}

static inline void polycm_channel_give_lock(struct polycm_channel *chan)
{
	polycm_latch_give(&chan->lock);
}

static inline void polycm_id_lock(struct polycm_id *id)
{
	polycm_latch_take(&id->lock);
}

static inline void polycm_id_unlock(struct polycm_id *id)
{
	polycm_latch_give(&id->lock);
}

/* Where nobody is there who could move the id or destroy its channel. */
static inline struct polycm_channel *polycm_channel_lock_alone(struct polycm_id *id)
{
	if (id->chan)
		polycm_channel_take_lock(id->chan);
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
		polycm_channel_give_lock(chan);
}

void polycm_channel_add_id_locked(struct polycm_channel *chan, struct polycm_id *id);
void polycm_channel_add_id(struct polycm_channel *chan, struct polycm_id *id);
void polycm_channel_remove_id_locked(struct polycm_channel *chan, struct polycm_id *id);
void polycm_channel_remove_id(struct polycm_id *id);
/* Move the id, what waits for it in the queue and the requests that nobody has retrieved. */
void polycm_channel_move_id(struct polycm_id *id, struct polycm_channel *to);
/* fn for every id on every channel, under their locks. */
void polycm_channels_walk_ids(void (*fn)(struct polycm_channel *chan, struct polycm_id *id,
					 void *arg), void *arg);
/* fn for every channel that the program has not destroyed, under its lock. */
void polycm_channels_walk(void (*fn)(const struct polycm_channel *chan, void *arg), void *arg);
/* Ids whose channel was destroyed and that the program still has; under the id's lock. */
void polycm_orphan_add(struct polycm_id *id);
void polycm_orphan_remove(struct polycm_id *id);
/* The same as polycm_channels_walk_ids() for these; chan is NULL. */
void polycm_orphans_walk(void (*fn)(struct polycm_channel *chan, struct polycm_id *id, void *arg),
			 void *arg);
/* The ids on it, for a log line; under its lock. */
void polycm_channel_describe_ids_locked(const struct polycm_channel *chan, char *text, size_t size);
/* A line of log about a wait that nothing can end, with what describe_ids says. */
#define POLYCM_STUCK "rdma_get_cm_event waits for what can never happen: %s"
/*
 * Threads inside rdma_get_cm_event() on other channels than this one: what they wait for, once,
 * for nothing can end that either.
 */
void polycm_channels_tell_stuck(const struct polycm_channel *but);
/* Under the channel's lock: was that told of this one, and nothing has happened since? */
bool polycm_channel_stuck_told_locked(struct polycm_channel *chan);
/* Is it a channel's descriptor?  Then also which, and whether a provider fetches from outside. */
bool polycm_channel_describe_fd(int fd, char *text, size_t size, bool *ret_fetched);

/* --- rdma_wait.c --- */

/*
 * The next event, charged to its owner.  Waits as the channel's fd says:
 * -EAGAIN with O_NONBLOCK; -EINTR; -EDEADLK where nothing can ever come.
 */
int polycm_channel_next(struct polycm_channel *chan, struct polycm_ev **ret_ev);
/*
 * Under the channel's lock: does this thread wait for an event in a provider?
 * Then this is the one; it is charged, and not queued.
 */
bool polycm_wait_hand_over(struct polycm_ev *ev);
/* The channel on which it does, or NULL. */
struct polycm_channel *polycm_wait_channel(void);
/*
 * Does this thread, and the program has no other, let time move for an event of
 * the channel?  Then it takes what is posted before anybody can look.
 */
bool polycm_wait_takes(const struct polycm_channel *chan);
/*
 * What a thread does whose channel another one destroys: it sleeps on, as in a
 * kernel whose descriptor is closed meanwhile.  -EBADF once a signal ends that.
 */
int polycm_channel_sleep_on(void);

/* --- rdma_ev_block.c --- */

/* Events of an id, and of a multicast group, that may wait at once and must not be lost. */
#define POLYCM_ID_EVENTS	4u	/* ESTABLISHED, DISCONNECTED, TIMEWAIT_EXIT, DEVICE_REMOVAL */
#define POLYCM_GROUP_EVENTS	2u
/* Before what they may report can begin: so many events more have a block.  0 or -ENOMEM. */
int polycm_ev_reserve(unsigned int num);
void polycm_ev_unreserve(unsigned int num);
/*
 * A block for an event with so much private data: it is in the set of live
 * events, and nobody was given it.  NULL: no memory, and the reserve is used up.
 */
struct polycm_ev *polycm_ev_block_get(uint8_t len);
void polycm_ev_block_put(struct polycm_ev *ev);
/* Around fork(), before and after those of live.h. */
void polycm_ev_block_before_fork(void);
void polycm_ev_block_after_fork(void);

/* --- rdma_event.c --- */

size_t polycm_events_live(void);
/* "CONNECT_REQUEST"; the event is one that exists. */
const char *polycm_event_name(enum rdma_cm_event_type event);
/* Does an event for the id (for a listener, a request) wait on its channel? */
bool polycm_ev_waits(struct polycm_id *id);
/* It becomes another one as it is retrieved: who waits for acks may be telling of it meanwhile. */
static inline void polycm_ev_set_type(struct polycm_ev *ev, enum rdma_cm_event_type type)
{
	__atomic_store_n(&ev->pub.event, type, __ATOMIC_RELAXED);
}

void polycm_ev_free(struct polycm_ev *ev);
/* Take out what nobody has retrieved for the id (or for one group of it) and end requests in it. */
void polycm_ev_drop(struct polycm_id *id, const struct polycm_group *group);
/*
 * polycm_post_event() behind the layers, hold_ns late.  The check is of what
 * the event says of itself: -EINVAL, after a line that names the module.
 */
int polycm_post(struct polycm_id *id, const struct polycm_event *event, uint64_t hold_ns);
/* What the core itself answers, in place of a provider that was given up. */
int polycm_post_instead(struct polycm_id *id, const struct polycm_event *event);
/* Whose answer an event is. */
enum polycm_question polycm_event_question(enum rdma_cm_event_type type);
int polycm_event_check(const struct polycm_module *module, const struct polycm_event *event);

/* --- rdma_ack.c --- */

/* Charge an event that leaves the queue; under the channel's lock. */
void polycm_ev_charge(struct polycm_ev *ev);
/* The program is done with it: frees. */
void polycm_ev_ack(struct polycm_ev *ev);
/* The same for a pointer of a program's; -EINVAL: it is none of a live event. */
int polycm_ev_ack_pub(struct rdma_cm_event *pub);
/* Of an id: all that the program holds. */
void polycm_ev_ack_all(struct polycm_id *id);
/* How long a wait for acks lasts before it is told of; for tests. */
extern uint64_t polycm_ack_warning_ns;
/* -EDEADLK, after a line of log: it would wait for ever, in virtual time, where that can be said. */
int polycm_ev_check_acks(struct polycm_id *id, const struct polycm_group *group, const char *call);
/* Wait until everything charged to the id (or for one group of it) is acked. */
void polycm_ev_wait_acked(struct polycm_id *id, const struct polycm_group *group, const char *call);
/*
 * The same at the end of a call that entered the id and has unlocked it: it
 * leaves the id, also where the thread is cancelled.  true: the id was destroyed
 * meanwhile, and may be gone now.
 */
bool polycm_ev_wait_and_leave(struct polycm_id *id, const struct polycm_group *group,
			      const char *call);

/* --- rdma_answer.c: providers that do not answer in time --- */

/*
 * Under the id's lock, before and after the operation that asks: `before' is
 * for the second, which gets what the operation returned.
 */
void polycm_ask(struct polycm_id *id, enum polycm_question question, struct polycm_asked *before);
void polycm_asked(struct polycm_id *id, const struct polycm_asked *before, int timeout_ms, int err);
/* Its provider posts an answer, under the channel's lock.  false: too late, it is dropped. */
bool polycm_answer_locked(struct polycm_id *id, enum polycm_question question);
/* It has posted one, whatever layers do with it. */
void polycm_answer(struct polycm_id *id, enum rdma_cm_event_type type);
/* Under the id's lock: the program has the answer; nothing is posted for the id any more. */
void polycm_answer_seen(struct polycm_id *id);
void polycm_answer_stop(struct polycm_id *id);
/* What a provider gets beyond its time; for tests. */
extern uint64_t polycm_answer_slack_ns;

/* --- rdma_hold.c; the channel's lock is the id's channel's --- */

/* The event is late, or comes after one that is: it does not go into the queue now. */
bool polycm_hold_locked(struct polycm_id *id, struct polycm_ev *ev, uint64_t hold_ns);
/* Without the lock, after the above: its time begins. */
void polycm_hold_start(struct polycm_ev *ev, uint64_t hold_ns);
/* As polycm_ev_drop(): those that are the caller's now. */
void polycm_hold_drop_locked(struct polycm_id *id, const struct polycm_group *group,
			     struct polycm_ev **dropped);
/* The event of a request, out of the list, or NULL. */
struct polycm_ev *polycm_hold_take_locked(struct polycm_id *listener,
					  const struct polycm_id *child);

/* --- rdma_retrieve.c --- */

/* rdma_get_cm_event() without errno. */
int polycm_get_event(struct polycm_channel *chan, struct rdma_cm_event **ret_event);
/* A synchronous id: give back its last event, wait for the next, its status as -errno. */
int polycm_complete(struct polycm_id *id);
/* A call ends that began with polycm_enter(): if it went well, so the above. */
int polycm_leave_to_complete(struct polycm_id *id, int err);
/* What a synchronous call returns for this event. */
int polycm_event_errno(const struct rdma_cm_event *event);
void polycm_release_event(struct polycm_id *id);

/* --- rdma_id.c --- */

/*
 * A call begins: the id behind the pointer, locked.  It is counted in, and a
 * thread that destroys the id waits for it.  -EINVAL: no live id, or another
 * thread just destroyed it.
 */
int polycm_enter(struct rdma_cm_id *pub, struct polycm_id **ret_id);
/* The same, also for an id whose channel was destroyed: calls that end something. */
int polycm_enter_to_end(struct rdma_cm_id *pub, struct polycm_id **ret_id);
void polycm_leave(struct polycm_id *id);
/*
 * The same after polycm_id_unlock(), for what is done to the id without its
 * lock.  true: the id was destroyed meanwhile, and may be gone now.
 */
bool polycm_leave_unlocked(struct polycm_id *id);
/* Count in, for a log line; false: no live id. */
bool polycm_enter_unlocked(const struct polycm_id *id);
/* The program gets the id by this call, which was made there. */
static inline void polycm_id_made(struct polycm_id *id, const char *call, const void *at)
{
	__atomic_store_n(&id->made_by, call, __ATOMIC_RELAXED);
	__atomic_store_n(&id->made_at, at, __ATOMIC_RELAXED);
}

/* A new id on the channel, or on a private one if chan is NULL. */
int polycm_id_create(struct polycm_channel *chan, enum rdma_port_space ps, enum ibv_qp_type qp_type,
		     void *context, struct polycm_id **ret_id);
/*
 * The id is locked, and no call finds it any more.  -EINVAL: no live id, or
 * another thread took it; nothing was read of it then.  -EACCES: it is of the
 * process that this one was forked from, and stays.
 */
int polycm_id_take(struct polycm_id *id);
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

/* --- rdma_migrate.c --- */

/* To another channel, NULL for a private one; events that the program holds are its caller's. */
int polycm_id_migrate(struct polycm_id *id, struct polycm_channel *to);
/* The id of a request: tell its provider if it is on another channel than it was made for. */
int polycm_id_follow(struct polycm_id *id);

/* --- rdma_settle.c --- */

/* Is the choice of a provider open to this id? */
bool polycm_id_roams(struct polycm_id *id);
/* Open the id in the module (out of another, if it was there) and set its options again. */
int polycm_id_settle(struct polycm_id *id, struct polycm_module *module);
void polycm_id_unsettle(struct polycm_id *id);
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

/* --- rdma_option.c --- */

void polycm_options_free(struct polycm_id *id);

/* --- rdma_listen.c --- */

void polycm_shadows_close(struct polycm_id *id);
void polycm_shadows_free(struct polycm_id *id);

/* --- rdma_addr.c --- */

/* Under the id's lock. */
int polycm_bind(struct polycm_id *id, const struct sockaddr *addr);
/* These take it, and wait for the event of a synchronous id. */
int polycm_resolve_addr(struct polycm_id *id, const struct sockaddr *src,
			const struct sockaddr *dst, int timeout_ms);
int polycm_resolve_route(struct polycm_id *id, int timeout_ms);

/* --- rdma_qp.c --- */

int polycm_qp_create(struct polycm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
/* Moves of the id's QP; 0 where it has none or the device does it. */
int polycm_qp_connect(struct polycm_id *id, uint8_t responder_resources, uint8_t initiator_depth,
		      const struct rdma_conn_param *reply);
int polycm_qp_error(struct polycm_id *id);
int polycm_qp_shutdown(struct polycm_id *id);
void polycm_qp_destroy(struct polycm_id *id);

/* --- rdma_srq.c --- */

void polycm_srq_destroy(struct polycm_id *id);

/* --- rdma_ece.c --- */

/* What to tell the peer, and what the QP is to be told of the peer. */
void polycm_ece_offer(struct polycm_id *id, struct polycm_ece *ret_ece);
int polycm_ece_accept(struct polycm_id *id, struct polycm_ece *ret_ece);
int polycm_ece_response(struct polycm_id *id);

/* --- rdma_multicast.c --- */

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
