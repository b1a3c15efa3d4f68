/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/event.h - events, from a provider to the program: posted, held back, queued,
 * retrieved, acknowledged.  Locks and lifetimes: id_internal.h.
 */
#ifndef POLYCM_CORE_CM_EVENT_H
#define POLYCM_CORE_CM_EVENT_H

#include "answer.h"
#include "polycm/provider.h"

struct polycm_channel;
struct polycm_group;
struct polycm_module;

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

/* --- ev_block.c --- */

/*
 * Events of an id, and of a multicast group, that must not be lost: all that the program may
 * hold at once.  An id's are the ends of both resolutions, the request or the answer,
 * ESTABLISHED, DISCONNECTED, TIMEWAIT_EXIT, ADDR_CHANGE and DEVICE_REMOVAL.
 */
#define POLYCM_ID_EVENTS	8u
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

/* --- event.c --- */

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
/* The core answers in place of a provider that was given up. */
enum polycm_poster { POLYCM_BY_PROVIDER, POLYCM_BY_CORE };
/* polycm_post_event() behind the layers, hold_ns late. */
int polycm_post(struct polycm_id *id, const struct polycm_event *event, uint64_t hold_ns,
		enum polycm_poster poster);
/* Types of librdmacm 60, which no provider posts. */
enum {
	POLYCM_EVENT_ADDRINFO_RESOLVED = RDMA_CM_EVENT_TIMEWAIT_EXIT + 1,
	POLYCM_EVENT_ADDRINFO_ERROR,
	POLYCM_EVENT_USER,
	POLYCM_EVENT_INTERNAL,
};
/* An event of the id that is the core's own; arg is param.arg.  0 or a negative errno. */
int polycm_post_own(struct polycm_id *id, enum rdma_cm_event_type type, int status, uint64_t arg);
/* Whose answer an event is. */
enum polycm_question polycm_event_question(enum rdma_cm_event_type type);
/*
 * The event with this version's size: itself, or the copy.  NULL, after a line that names the
 * module: what it says of itself is wrong.  Layers and provider may be built for other
 * versions, so after this check nothing knows who made it.
 */
const struct polycm_event *polycm_event_checked(const struct polycm_module *module,
						const struct polycm_event *event,
						struct polycm_event *copy);

/* --- ack.c --- */

/* Charge an event that leaves the queue; under the channel's lock. */
void polycm_ev_charge(struct polycm_ev *ev);
/* The program is done with it: frees. */
void polycm_ev_ack(struct polycm_ev *ev);
/* The same for a pointer of a program's; -EINVAL: it is none of a live event. */
int polycm_ev_ack_pub(struct rdma_cm_event *pub);
/* Of an id: all that the program holds. */
void polycm_ev_ack_all(struct polycm_id *id);
/* How long a wait for acks lasts before it is logged; for tests. */
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

/* --- hold.c; the channel's lock is the id's channel's --- */

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

/* --- retrieve.c --- */

/* rdma_get_cm_event() without errno. */
int polycm_get_event(struct polycm_channel *chan, struct rdma_cm_event **ret_event);
/* A synchronous id: give back its last event, wait for the next, its status as -errno. */
int polycm_complete(struct polycm_id *id);
/* What a synchronous call returns for this event. */
int polycm_event_errno(const struct rdma_cm_event *event);
void polycm_release_event(struct polycm_id *id);

#endif
