/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads: events are posted while others are retrieved, ids move between
 * channels and requests come and go; none gets lost or comes twice.
 */
#include "cm_fake.h"
#include "polycm/polycm.h"

#include <pthread.h>
#include <sched.h>

#include "core/base/log.h"

#define ROUNDS 300
#define NUM_IDS 3

static struct rdma_event_channel *channels[2];
static struct rdma_cm_id *ids[NUM_IDS];
static unsigned int next_status[NUM_IDS];
static unsigned int received;

static struct polycm_id *internal(struct rdma_cm_id *id)
{
	return (struct polycm_id *)(void *)id;
}

/* As a provider's thread: numbers its events, and tells of the ids in its log. */
static void *post_all(void *arg)
{
	char text[200];

	for (int i = 1; i <= ROUNDS; i++) {
		for (int n = 0; n < NUM_IDS; n++) {
			assert_int_equal(post(ids[n], RDMA_CM_EVENT_ADDR_CHANGE, i), 0);
			polycm_id_describe(internal(ids[n]), text, sizeof(text));
		}
	}
	return arg;
}

static unsigned int index_of(const struct rdma_cm_id *id)
{
	unsigned int n = 0;

	while (ids[n] != id)
		n++;
	return n;
}

/* In order per id, from whichever channel. */
static void *retrieve_all(void *arg)
{
	struct rdma_event_channel *channel = arg;
	struct rdma_cm_event *event;

	while (__atomic_load_n(&received, __ATOMIC_SEQ_CST) < ROUNDS * NUM_IDS) {
		if (rdma_get_cm_event(channel, &event)) {
			assert_int_equal(errno, EAGAIN);
			sched_yield();
			continue;
		}
		if (event->event == RDMA_CM_EVENT_ADDR_CHANGE) {
			__atomic_add_fetch(&next_status[index_of(event->id)], 1, __ATOMIC_SEQ_CST);
			__atomic_add_fetch(&received, 1, __ATOMIC_SEQ_CST);
		}
		assert_int_equal(rdma_ack_cm_event(event), 0);
	}
	return NULL;
}

static void *move_all(void *arg)
{
	for (int i = 0; i < ROUNDS / 4; i++)
		for (int n = 0; n < NUM_IDS; n++)
			assert_int_equal(rdma_migrate_id(ids[n], channels[(i + n) % 2]), 0);
	return arg;
}

static void nothing_gets_lost_between_channels(void **state)
{
	pthread_t poster, mover, retrievers[2];

	(void)state;
	received = 0;
	memset(next_status, 0, sizeof(next_status));
	for (int c = 0; c < 2; c++) {
		channels[c] = rdma_create_event_channel();
		assert_int_equal(fcntl(channels[c]->fd, F_SETFL, O_NONBLOCK), 0);
	}
	for (int n = 0; n < NUM_IDS; n++)
		ids[n] = new_id(channels[0]);

	for (int c = 0; c < 2; c++)
		assert_int_equal(pthread_create(&retrievers[c], NULL, retrieve_all, channels[c]),
				 0);
	assert_int_equal(pthread_create(&mover, NULL, move_all, NULL), 0);
	assert_int_equal(pthread_create(&poster, NULL, post_all, NULL), 0);
	assert_int_equal(pthread_join(poster, NULL), 0);
	assert_int_equal(pthread_join(mover, NULL), 0);
	for (int c = 0; c < 2; c++)
		assert_int_equal(pthread_join(retrievers[c], NULL), 0);

	for (int n = 0; n < NUM_IDS; n++) {
		assert_int_equal(next_status[n], ROUNDS);
		assert_int_equal(rdma_destroy_id(ids[n]), 0);
	}
	for (int c = 0; c < 2; c++)
		rdma_destroy_event_channel(channels[c]);
}

/* Requests pour in while the program takes some and then ends the listener. */
static void *request_all(void *arg)
{
	struct rdma_cm_id *listener = arg;
	int err = 0;

	/* fake->ids is this thread's while it runs, but for what the main thread ends. */
	while (err != -ECANCELED)
		err = post_request(fakes, internal(listener), NULL, NULL);
	return NULL;
}

static void listeners_end_under_requests(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	(void)state;
	for (int round = 0; round < 30; round++) {
		struct rdma_cm_id *listener = new_id(channel);
		struct rdma_cm_event *event;
		pthread_t thread;

		assert_int_equal(rdma_bind_addr(listener, addr4("0.0.0.0", 7471)), 0);
		assert_int_equal(rdma_listen(listener, 4), 0);
		/* The fake's stop() waits for this thread, as a provider's does for its own. */
		fakes[0].stop_joins = &thread;
		assert_int_equal(pthread_create(&thread, NULL, request_all, listener), 0);
		for (int i = 0; i < 10; i++) {
			event = next_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
			fakes[0].stop_joins = NULL;
			assert_int_equal(rdma_destroy_id(event->id), 0);
			fakes[0].stop_joins = &thread;
			assert_int_equal(rdma_ack_cm_event(event), 0);
		}
		assert_int_equal(rdma_destroy_id(listener), 0);
	}
	rdma_destroy_event_channel(channel);
}

/* Posts find the channel in memory while the program destroys it after a move. */
static void channels_go_while_others_look_for_them(void **state)
{
	struct rdma_event_channel *old = rdma_create_event_channel(), *fresh;
	pthread_t poster, retriever;

	(void)state;
	received = 0;
	memset(next_status, 0, sizeof(next_status));
	for (int n = 0; n < NUM_IDS; n++)
		ids[n] = new_id(old);
	assert_int_equal(pthread_create(&poster, NULL, post_all, NULL), 0);
	for (int i = 0; i < 50; i++) {
		fresh = rdma_create_event_channel();
		for (int n = 0; n < NUM_IDS; n++)
			assert_int_equal(rdma_migrate_id(ids[n], fresh), 0);
		rdma_destroy_event_channel(old);
		old = fresh;
	}
	assert_int_equal(fcntl(old->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(pthread_create(&retriever, NULL, retrieve_all, old), 0);
	assert_int_equal(pthread_join(poster, NULL), 0);
	assert_int_equal(pthread_join(retriever, NULL), 0);
	for (int n = 0; n < NUM_IDS; n++)
		assert_int_equal(rdma_destroy_id(ids[n]), 0);
	rdma_destroy_event_channel(old);
}

/* A request is on its way to the provider's post when its listener moves. */
static void late_requests_follow_their_listener(void **state)
{
	struct rdma_event_channel *old = rdma_create_event_channel();
	struct rdma_event_channel *fresh = rdma_create_event_channel();
	struct rdma_cm_id *listener = listening_id(old);
	struct polycm_event request = {
		.size = sizeof(request), .type = RDMA_CM_EVENT_CONNECT_REQUEST,
	};
	struct rdma_cm_event *event;
	struct fake_id *child;
	void *priv;

	(void)state;
	assert_int_equal(polycm_child_create(internal(listener), &request.child, &priv), 0);
	child = priv;
	child->fake = fakes;
	child->id = request.child;
	child->chan = fake_id_of(listener)->chan;
	__atomic_add_fetch(&fakes[0].ids, 1, __ATOMIC_SEQ_CST);
	assert_int_equal(rdma_migrate_id(listener, fresh), 0);
	assert_int_equal(polycm_post_event(internal(listener), &request), 0);

	event = next_event(fresh, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_ptr_equal(event->id->channel, fresh);
	assert_ptr_equal(child->chan, fake_id_of(listener)->chan);
	assert_int_equal(rdma_destroy_id(event->id), 0);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(fresh);
	rdma_destroy_event_channel(old);
}

static void *retrieve_one(void *arg)
{
	expect_event(arg, RDMA_CM_EVENT_ADDR_CHANGE, 7);
	return NULL;
}

/* The channel goes while a thread is about to complete the id of a request. */
static void requests_end_while_they_are_retrieved(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = listening_id(channel);
	struct polycm_id *child;
	pthread_t thread;

	(void)state;
	assert_int_equal(post_request(fakes, internal(listener), NULL, &child), 0);
	/* It has to wait for the listener. */
	polycm_id_lock(internal(listener));
	assert_int_equal(pthread_create(&thread, NULL, retrieve_one, channel), 0);
	for (bool taken = false; !taken; sched_yield()) {
		struct polycm_channel *chan = polycm_channel_lock(child);

		taken = !chan->events;
		polycm_channel_unlock(chan);
	}
	polycm_id_abandon(child);
	polycm_id_unlock(internal(listener));

	assert_int_equal(post(listener, RDMA_CM_EVENT_ADDR_CHANGE, 7), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(channel);
}

static void *destroy_id(void *arg)
{
	return rdma_destroy_id(arg) ? arg : NULL;
}

static void *destroy_ep(void *arg)
{
	rdma_destroy_ep(arg);
	return NULL;
}

/* Of threads that end one id, the first has it; the others follow no pointer. */
static void one_thread_ends_an_id(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	void *(*const ends[])(void *) = { destroy_id, destroy_ep };
	pthread_t thread;
	void *failed;

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct rdma_cm_id *id = new_id(channel);

		polycm_id_lock(internal(id));
		assert_int_equal(pthread_create(&thread, NULL, ends[i], id), 0);
		while (polycm_live(&polycm_live_objects, id))
			sched_yield();
		assert_errno(rdma_destroy_id(id), EINVAL);
		rdma_destroy_ep(id);
		assert_errno(rdma_disconnect(id), EINVAL);
		polycm_id_unlock(internal(id));
		assert_int_equal(pthread_join(thread, &failed), 0);
		assert_null(failed);
	}
	rdma_destroy_event_channel(channel);
}

static void *destroy_channel(void *arg)
{
	rdma_destroy_event_channel(arg);
	return NULL;
}

static void one_thread_ends_a_channel(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct polycm_channel *chan = (struct polycm_channel *)(void *)channel;
	struct rdma_cm_id *id = new_id(channel);
	pthread_t thread;

	(void)state;
	/* It has to wait for the id. */
	polycm_id_lock(internal(id));
	assert_int_equal(pthread_create(&thread, NULL, destroy_channel, channel), 0);
	while (!__atomic_load_n(&chan->ending, __ATOMIC_ACQUIRE))
		sched_yield();
	rdma_destroy_event_channel(channel);
	polycm_id_unlock(internal(id));
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static pthread_t ender;

/* Until it comes to the id, which is locked, or has had time for that. */
static void end_its_channel(struct polycm_id *id)
{
	struct polycm_channel *chan = id->chan;

	assert_int_equal(pthread_create(&ender, NULL, destroy_channel, chan), 0);
	while (!__atomic_load_n(&chan->ending, __ATOMIC_ACQUIRE))
		sched_yield();
	for (int i = 0; i < 200 && __atomic_load_n(&id->id_lock.word, __ATOMIC_RELAXED) !=
					   POLYCM_LATCH_WANTED; i++)
		sched_yield();
}

static void an_id_ends_once_while_its_channel_ends(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(channel);

	(void)state;
	fakes[0].in_stop = end_its_channel;
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_int_equal(pthread_join(ender, NULL), 0);
	assert_int_equal(fakes[0].calls[OP_CLOSE], 1);
	assert_int_equal(fakes[0].calls[OP_STOP], 1);
	assert_int_equal(fakes[0].calls[OP_FREE], 1);
}

/* A call of another thread, and what came of it. */
struct call {
	struct rdma_cm_id *id;
	struct rdma_event_channel *to;
	int ret, error;
};

static void *call_migrate(void *arg)
{
	struct call *call = arg;

	call->ret = rdma_migrate_id(call->id, call->to);
	call->error = errno;
	return NULL;
}

static void *call_option(void *arg)
{
	struct call *call = arg;
	uint8_t tos = 1;

	call->ret = rdma_set_option(call->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos));
	call->error = errno;
	return NULL;
}

static void *call_destroy(void *arg)
{
	struct call *call = arg;

	call->ret = rdma_destroy_id(call->id);
	return NULL;
}

/* It moved already, and waits for the ack; the thread that destroys it waits for both. */
static void an_id_ends_while_it_migrates(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved_id(channel);
	struct polycm_id *self = internal(id);
	struct call migrate = { .id = id, .to = other }, destroy = { .id = id };
	struct rdma_cm_event *event;
	pthread_t migrator, destroyer;

	(void)state;
	assert_int_equal(post(id, RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
	event = next_event(channel, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	assert_int_equal(pthread_create(&migrator, NULL, call_migrate, &migrate), 0);
	while ((void *)__atomic_load_n(&self->chan, __ATOMIC_ACQUIRE) != (void *)other)
		sched_yield();
	assert_int_equal(pthread_create(&destroyer, NULL, call_destroy, &destroy), 0);
	while (!(__atomic_load_n(&self->inside, __ATOMIC_ACQUIRE) & POLYCM_CLOSED))
		sched_yield();
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(pthread_join(migrator, NULL), 0);
	assert_int_equal(pthread_join(destroyer, NULL), 0);
	assert_int_equal(migrate.ret, -1);
	assert_int_equal(migrate.error, EINVAL);
	assert_int_equal(destroy.ret, 0);
	rdma_destroy_event_channel(channel);
	rdma_destroy_event_channel(other);
}

static void *call_leave(void *arg)
{
	struct call *call = arg;

	call->ret = rdma_leave_multicast(call->id, addr4("224.0.0.9", 0));
	return NULL;
}

static bool has_groups(struct polycm_id *id)
{
	bool has;

	polycm_id_lock(id);
	has = id->groups;
	polycm_id_unlock(id);
	return has;
}

/* It left the group already, and waits for the ack. */
static void an_id_ends_while_it_leaves_a_group(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved_id(channel);
	struct polycm_id *self = internal(id);
	struct call leave = { .id = id }, destroy = { .id = id };
	struct rdma_cm_event *event;
	pthread_t leaver, destroyer;
	uint32_t inside;

	(void)state;
	fakes[0].join_event = RDMA_CM_EVENT_MULTICAST_JOIN;
	assert_int_equal(rdma_join_multicast(id, addr4("224.0.0.9", 0), NULL), 0);
	event = next_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(pthread_create(&leaver, NULL, call_leave, &leave), 0);
	while (has_groups(self))
		sched_yield();
	assert_int_equal(pthread_create(&destroyer, NULL, call_destroy, &destroy), 0);
	while (!(__atomic_load_n(&self->inside, __ATOMIC_ACQUIRE) & POLYCM_CLOSED))
		sched_yield();
	inside = __atomic_load_n(&self->inside, __ATOMIC_ACQUIRE);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(pthread_join(leaver, NULL), 0);
	assert_int_equal(pthread_join(destroyer, NULL), 0);
	assert_int_equal(inside, POLYCM_CLOSED | 1);
	assert_int_equal(leave.ret, 0);
	assert_int_equal(destroy.ret, 0);
	rdma_destroy_event_channel(channel);
}

/* Two threads wait for its lock: one calls, one destroys it.  Either may be first. */
static void an_id_ends_while_a_call_waits_for_it(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	(void)state;
	for (int i = 0; i < 100; i++) {
		struct rdma_cm_id *id = resolved_id(channel);
		struct polycm_id *self = internal(id);
		struct call option = { .id = id }, destroy = { .id = id };
		pthread_t caller, destroyer;

		polycm_id_lock(self);
		assert_int_equal(pthread_create(&caller, NULL, call_option, &option), 0);
		while (__atomic_load_n(&self->id_lock.word, __ATOMIC_ACQUIRE) != POLYCM_LATCH_WANTED)
			sched_yield();
		assert_int_equal(pthread_create(&destroyer, NULL, call_destroy, &destroy), 0);
		while (polycm_live(&polycm_live_objects, self))
			sched_yield();
		polycm_id_unlock(self);
		assert_int_equal(pthread_join(caller, NULL), 0);
		assert_int_equal(pthread_join(destroyer, NULL), 0);
		assert_int_equal(destroy.ret, 0);
		if (option.ret)
			assert_int_equal(option.error, EINVAL);
	}
	rdma_destroy_event_channel(channel);
}

static int start(void **state)
{
	(void)state;
	return fakes_start(1);
}

static void a_dump_does_not_wait(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(channel);
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	(void)state;
	/* As if another thread were inside of a call. */
	polycm_id_lock(internal(id));
	assert_int_equal(polycm_dump(to), 0);
	polycm_id_unlock(internal(id));
	assert_non_null(strstr(text, "  busy                     a call with it is under way\n"));
	fclose(to);
	free(text);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RDMA_TEST(nothing_gets_lost_between_channels),
		RDMA_TEST(listeners_end_under_requests),
		RDMA_TEST(channels_go_while_others_look_for_them),
		RDMA_TEST(late_requests_follow_their_listener),
		RDMA_TEST(requests_end_while_they_are_retrieved),
		RDMA_TEST(one_thread_ends_an_id),
		RDMA_TEST(one_thread_ends_a_channel),
		RDMA_TEST(an_id_ends_once_while_its_channel_ends),
		RDMA_TEST(an_id_ends_while_it_migrates),
		RDMA_TEST(an_id_ends_while_it_leaves_a_group),
		RDMA_TEST(an_id_ends_while_a_call_waits_for_it),
		RDMA_TEST(a_dump_does_not_wait),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
