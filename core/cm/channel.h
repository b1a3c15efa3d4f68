/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/channel.h - event channels: their lives, descriptors, queues and ids, and
 * threads that wait on them.  Locks and lifetimes: id_internal.h.
 */
#ifndef POLYCM_CORE_CM_CHANNEL_H
#define POLYCM_CORE_CM_CHANNEL_H

#include <pthread.h>

#include "core/base/fork.h"
#include "core/base/latch.h"
#include "core/plugin/registry.h"
#include "polycm/provider.h"

struct polycm_ev;

/* A carrier's part in a channel, opened when its first id comes to the channel. */
struct polycm_channel_slot {
	bool open;			/* atomic */
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
	unsigned int blocks_at;		/* the descriptor did, at this polycm_flag_changes() */
	bool ending;			/* a thread destroys it; atomic */
	bool gone;			/* destroyed, its memory kept for late callers; atomic */
	bool private;			/* of a synchronous id */
	/* Threads inside rdma_get_cm_event() that may sleep, and POLYCM_CLOSED; atomic. */
	uint32_t inside;
	struct polycm_latch channel_lock;	/* the members below */
	int wake_fd;			/* eventfd in the set, readable while events wait; -1: native */
	uint32_t posts;			/* a count to sleep on; atomic */
	unsigned int sleepers;		/* threads that sleep on posts */
	bool stuck_logged;		/* by another thread that is stuck, when posts were so many: */
	uint32_t stuck_posts;
	bool readable;			/* what wake_fd says */
	bool taken_at_once;		/* the only thread lets time move, and takes what this brings */
	pthread_t destroyer;		/* the thread that did it */
	struct polycm_ev *events;
	struct polycm_id *ids;
	struct polycm_channel *prev, *next;	/* under the channels lock */
	pthread_mutex_t pull_lock;	/* one reader of the slots' fds at a time; before channel_lock */
	unsigned int num_pull;		/* slots with a fd in the set */
	unsigned int num_slots;
	struct polycm_channel_slot *slots;
	pthread_mutex_t slots_lock;	/* held while one is opened; before channel_lock */
	_Alignas(16) unsigned char areas[];	/* of the providers, then the slots */
};

/* --- channel.c --- */

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

/* --- channel_fd.c --- */

int polycm_channel_open_fds(struct polycm_channel *chan);
void polycm_channel_close_fds(struct polycm_channel *chan);
/* The provider's area in the channel, opened if need be. */
int polycm_channel_area(struct polycm_channel *chan, struct polycm_module *module, void **ret_area);
/* Under chan->channel_lock: let the descriptor say whether an event waits. */
void polycm_channel_show(struct polycm_channel *chan);
/* Under chan->channel_lock: put an event at the end, take one out (NULL: the first). */
void polycm_channel_push(struct polycm_channel *chan, struct polycm_ev *ev);
struct polycm_ev *polycm_channel_pop(struct polycm_channel *chan, struct polycm_ev *ev);

/* --- channel_ids.c --- */

void polycm_channels_add(struct polycm_channel *chan);
void polycm_channels_remove(struct polycm_channel *chan);
/* Until nobody is left who read a pointer to a channel from an id that is not on it any more. */
void polycm_channels_wait_lookups(void);

void polycm_channel_add_id_locked(struct polycm_channel *chan, struct polycm_id *id);
void polycm_channel_add_id(struct polycm_channel *chan, struct polycm_id *id);
void polycm_channel_remove_id_locked(struct polycm_channel *chan, struct polycm_id *id);
void polycm_channel_remove_id(struct polycm_id *id);
/* Move the id, what waits for it in the queue and the requests that nobody has retrieved. */
void polycm_channel_move_id(struct polycm_id *id, struct polycm_channel *to);
/*
 * fn for every id on every channel, under their locks, then for those whose channel was
 * destroyed, with NULL for it.
 */
void polycm_ids_walk(void (*fn)(struct polycm_channel *chan, struct polycm_id *id, void *arg),
		     void *arg);
/* fn for every channel that the program has not destroyed, under its lock. */
void polycm_channels_walk(void (*fn)(const struct polycm_channel *chan, void *arg), void *arg);
/* Ids whose channel was destroyed and that the program still has; under the id's lock. */
void polycm_orphan_add(struct polycm_id *id);
void polycm_orphan_remove(struct polycm_id *id);
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
bool polycm_channel_stuck_logged_locked(struct polycm_channel *chan);
/* Is it a channel's descriptor?  Then also which, and whether a provider fetches from outside. */
bool polycm_channel_describe_fd(int fd, char *text, size_t size, bool *ret_fetched);

/* --- wait.c --- */

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
 * What a thread does whose channel another one destroys: it sleeps on, as in a
 * kernel whose descriptor is closed meanwhile.  -EBADF once a signal ends that.
 */
int polycm_channel_sleep_on(void);

#endif
