/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/ack.c - events that the program holds: charged to their id when they
 * are retrieved, given back by the ack, and waited for by who ends the id.
 *
 * Who waits for acks waits outside of the id, in one of a few places, so that
 * an ack needs neither the id's lock nor a channel that may be gone by then; it
 * says that it waits and looks at the count, an ack counts and looks whether
 * somebody waits.
 */
#include "config.h"
#include "id_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/export.h"
#include "hand_over.h"
#include "core/base/log.h"
#include "ret.h"
#include "core/base/interposer.h"
#include "core/base/turns.h"

#define NUM_ACK_WAITS	16
#define NSEC_PER_SEC	UINT64_C(1000000000)

/* A wait for acks is logged after 1 s, 11 s, 111 s ... */
uint64_t polycm_ack_warning_ns = NSEC_PER_SEC;

static struct ack_wait {
	pthread_mutex_t ack_lock;
	pthread_cond_t acked;
	unsigned int waiters;		/* on acked; atomic */
} ack_waits[NUM_ACK_WAITS] = {
	[0 ... NUM_ACK_WAITS - 1] = { .ack_lock = PTHREAD_MUTEX_INITIALIZER },
};
static pthread_once_t acked_once = PTHREAD_ONCE_INIT;

static uint64_t num_charged;		/* ever; atomic */

static void init_acked(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	for (size_t i = 0; i < NUM_ACK_WAITS; i++)
		pthread_cond_init(&ack_waits[i].acked, &attr);
	pthread_condattr_destroy(&attr);
}

static struct ack_wait *ack_wait_of(const struct polycm_id *id)
{
	return &ack_waits[((uintptr_t)id >> 9) % NUM_ACK_WAITS];
}

/* What people wait for, so never the simulator's time. */
static uint64_t wall_ns(void)
{
	return polycm_real_ns(CLOCK_MONOTONIC_COARSE);
}

void polycm_ev_charge(struct polycm_ev *ev)
{
	if (ev->child) {
		ev->owner->pending--;
		ev->child->listener = NULL;
	}
	ev->since_ns = wall_ns();
	__atomic_store_n(&ev->charge, polycm_count_up(&num_charged), __ATOMIC_RELEASE);
	(void)polycm_count_up(&ev->owner->unacked);
	if (ev->group)
		__atomic_add_fetch(&ev->group->unacked, 1, __ATOMIC_RELAXED);
}

/* The id, and the group before it, may be gone as soon as they have nothing that is not acked. */
static void uncharge(struct polycm_ev *ev)
{
	struct ack_wait *wait = ack_wait_of(ev->owner);
	bool last = false;

	if (!polycm_alone())
		hand_over(ev->owner);
	if (ev->group)
		last = !__atomic_sub_fetch(&ev->group->unacked, 1, __ATOMIC_SEQ_CST);
	last |= !polycm_count_down(&ev->owner->unacked);
	if (!last || !__atomic_load_n(&wait->waiters, __ATOMIC_SEQ_CST))
		return;
	pthread_mutex_lock(&wait->ack_lock);
	pthread_cond_broadcast(&wait->acked);
	pthread_mutex_unlock(&wait->ack_lock);
}

void polycm_ev_ack(struct polycm_ev *ev)
{
	uncharge(ev);
	polycm_ev_free(ev);
}

static bool is_charged(const void *object)
{
	const struct polycm_ev *ev = object;

	return __atomic_load_n(&ev->charge, __ATOMIC_ACQUIRE);
}

static bool may_leave(const void *object)
{
	const struct polycm_ev *ev = object;

	return !ev->reserved && is_charged(ev);
}

/* A block of the reserve stays in the set. */
static bool claim_reserved(const void *object)
{
	struct polycm_ev *ev = (struct polycm_ev *)(uintptr_t)object;

	return ev->reserved && __atomic_exchange_n(&ev->charge, 0, __ATOMIC_ACQ_REL);
}

/* Of several threads that ack it only one may follow the pointer. */
static bool claim(struct polycm_ev *ev)
{
	/* A stale pointer may be that of an event which still waits in a queue, or of a spare block. */
	if (polycm_alone())
		return polycm_live(&polycm_live_events, ev) && is_charged(ev);
	if (polycm_live_remove_if(&polycm_live_events, ev, may_leave)) {
		ev->listed = false;
		return true;
	}
	return polycm_live_ask(&polycm_live_events, ev, claim_reserved);
}

int polycm_ev_ack_pub(struct rdma_cm_event *pub)
{
	struct polycm_ev *ev = (struct polycm_ev *)(void *)pub;

	if (!claim(ev))
		return -EINVAL;
	polycm_ev_ack(ev);
	return 0;
}

/* Those of an id that the program holds, the oldest first. */
struct held {
	const struct polycm_id *id;
	unsigned int num;
	struct held_event {
		enum rdma_cm_event_type type;
		uint64_t charge, since_ns;
	} events[8];
};

static void find_held(const void *object, void *arg)
{
	const struct polycm_ev *ev = object;
	uint64_t charge = __atomic_load_n(&ev->charge, __ATOMIC_ACQUIRE);
	const unsigned int max = sizeof(((struct held *)0)->events) / sizeof(struct held_event);
	struct held *held = arg;
	unsigned int i;

	if (!charge || ev->owner != held->id)
		return;
	for (i = 0; i < held->num && held->events[i].charge < charge; i++)
		;
	if (i == max)
		return;
	if (held->num < max)
		held->num++;
	memmove(&held->events[i + 1], &held->events[i],
		(held->num - i - 1) * sizeof(held->events[0]));
	/* Who retrieves it may just be making another one of it. */
	held->events[i] = (struct held_event){
		__atomic_load_n(&ev->pub.event, __ATOMIC_RELAXED), charge, ev->since_ns,
	};
}

static void describe_unacked(const struct polycm_id *id, char *buf, size_t size)
{
	struct held held = { .id = id };
	uint64_t now = wall_ns();
	size_t len = 0;

	polycm_live_walk(&polycm_live_events, find_held, &held);
	buf[0] = '\0';
	for (unsigned int i = 0; i < held.num && len < size; i++) {
		uint64_t ms = (now - held.events[i].since_ns) / 1000000;

		len += (size_t)snprintf(buf + len, size - len, "%s%s (%u.%u s ago)",
					len ? ", " : "", polycm_event_name(held.events[i].type),
					(unsigned int)(ms / 1000), (unsigned int)(ms % 1000 / 100));
	}
}

struct search {
	const struct polycm_id *owner;
	struct rdma_cm_event *found;
};

static void find_one(const void *object, void *arg)
{
	const struct polycm_ev *ev = object;
	struct search *search = arg;

	if (ev->owner == search->owner && is_charged(ev))
		search->found = (struct rdma_cm_event *)(uintptr_t)&ev->pub;
}

void polycm_ev_ack_all(struct polycm_id *id)
{
	struct search search = { .owner = id };

	polycm_live_walk(&polycm_live_events, find_one, &search);
	while (search.found) {
		(void)polycm_ev_ack_pub(search.found);
		search.found = NULL;
		polycm_live_walk(&polycm_live_events, find_one, &search);
	}
}

static bool is_acked(const struct polycm_id *id, const struct polycm_group *group)
{
	if (__atomic_load_n(group ? &group->unacked : &id->unacked, __ATOMIC_SEQ_CST))
		return false;
	take_over(id);
	return true;
}

static void end_wait(void *arg)
{
	struct ack_wait *wait = arg;

	polycm_waits_for(TURN_FOR_ANY);
	__atomic_sub_fetch(&wait->waiters, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&wait->ack_lock);
}

/* Until it is acked, or the time has come: false.  A place to be cancelled in. */
static bool wait_until(struct ack_wait *wait, const struct polycm_id *id,
		       const struct polycm_group *group, uint64_t until_ns)
{
	bool acked;
	int err = 0;

	pthread_once(&acked_once, init_acked);
	pthread_mutex_lock(&wait->ack_lock);
	__atomic_add_fetch(&wait->waiters, 1, __ATOMIC_SEQ_CST);
	pthread_cleanup_push(end_wait, wait);
	polycm_waits_for(TURN_FOR_ACK);
	while (!(acked = is_acked(id, group)) && err != ETIMEDOUT)
		err = polycm_cond_wait(&wait->acked, &wait->ack_lock, until_ns);
	pthread_cleanup_pop(1);
	return acked;
}

/* The program mostly hangs then, so this is logged at every level. */
static void tell_wait(struct polycm_id *id, const struct polycm_group *group, const char *call)
{
	unsigned int unacked = __atomic_load_n(group ? &group->unacked : &id->unacked, __ATOMIC_RELAXED);
	char text[400];

	describe_unacked(id, text, sizeof(text));
	polycm_log_id(POLYCM_LOG_ERROR, id, "%s waits %sfor rdma_ack_cm_event of %u event%s: %s", call,
		      polycm_alone() ? "for ever, since there is no other thread, " : "", unacked,
		      unacked == 1 ? "" : "s", text);
}

/* The event of a synchronous id is the library's to acknowledge. */
int polycm_ev_check_acks(struct polycm_id *id, const struct polycm_group *group, const char *call)
{
	const unsigned int *count = group ? &group->unacked : &id->unacked;
	unsigned int unacked = __atomic_load_n(count, __ATOMIC_RELAXED);

	if (unacked <= (id->pub.event != NULL) || !polycm_alone() || polycm_time_is_real())
		return 0;
	tell_wait(id, group, call);
	return polycm_fail(-EDEADLK, "no other thread can acknowledge what the program holds");
}

void polycm_ev_wait_acked(struct polycm_id *id, const struct polycm_group *group, const char *call)
{
	uint64_t pause_ns = polycm_ack_warning_ns, until_ns;

	if (is_acked(id, group))
		return;
	if (polycm_alone())
		tell_wait(id, group, call);
	until_ns = polycm_real_ns(CLOCK_MONOTONIC);
	for (;; pause_ns *= 10) {
		until_ns += pause_ns;
		if (wait_until(ack_wait_of(id), id, group, until_ns))
			return;
		tell_wait(id, group, call);
	}
}

static void leave_cancelled(void *id)
{
	(void)polycm_leave_unlocked(id);
}

bool polycm_ev_wait_and_leave(struct polycm_id *id, const struct polycm_group *group,
			      const char *call)
{
	pthread_cleanup_push(leave_cancelled, id);
	polycm_ev_wait_acked(id, group, call);
	pthread_cleanup_pop(0);
	return polycm_leave_unlocked(id);
}

POLYCM_EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	int err = polycm_ev_ack_pub(event);

	if (!err)
		return 0;
	polycm_why_clear();
	return polycm_ret("rdma_ack_cm_event", NULL,
			  polycm_fail(err, "no event of rdma_get_cm_event"));
}
