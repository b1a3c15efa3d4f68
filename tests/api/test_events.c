/* SPDX-License-Identifier: BSD-2-Clause */
/* test_events.c - event channels: the descriptor, order, acknowledging, destroying. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#include "steps.h"

#define MOMENT 1000000u	/* 1 ms of virtual time, in which any answer arrives */

/* --- The descriptor. --- */

static int by_poll(int fd)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };
	int num = poll(&poller, 1, 0);

	if (num == 1)
		assert_int_equal(poller.revents, POLLIN);
	return num;
}

static int by_select(int fd)
{
	struct timeval at_once = { 0 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return select(fd + 1, &set, NULL, NULL, &at_once);
}

static int by_epoll(int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(0), num;

	assert_true(set >= 0);
	assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), 0);
	num = epoll_wait(set, &event, 1, 0);
	if (num == 1)
		assert_int_equal(event.events, EPOLLIN);
	close(set);
	return num;
}

/* An epoll set in an epoll set, which is polled in its turn. */
static int by_nested_epoll(int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	int inner = epoll_create1(0), outer = epoll_create1(0), num;

	assert_true(inner >= 0 && outer >= 0);
	assert_int_equal(epoll_ctl(inner, EPOLL_CTL_ADD, fd, &event), 0);
	assert_int_equal(epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event), 0);
	num = epoll_wait(outer, &event, 1, 0);
	assert_int_equal(by_poll(outer), num);
	close(inner);
	close(outer);
	return num;
}

static const struct {
	const char *name;
	int (*readable)(int fd);
} pollers[] = {
	{ "poll", by_poll },
	{ "select", by_select },
	{ "epoll", by_epoll },
	{ "nested epoll", by_nested_epoll },
};

static void assert_readable(struct rdma_event_channel *channel, int want)
{
	for (size_t i = 0; i < ARRAY_LEN(pollers); i++)
		if (pollers[i].readable(channel->fd) != want)
			fail_msg("%s says %d instead of %d", pollers[i].name, !want, want);
}

static void is_readable_while_an_event_waits(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_readable(pair.client_channel, 0);
	assert_int_equal(rdma_resolve_addr(pair.client, NULL,
					   step_sa(SERVER_ADDRESS, SERVER_PORT), 2000), 0);
	assert_readable(pair.client_channel, 0);
	assert_int_equal(polycm_sim_advance(MOMENT), 0);
	assert_readable(pair.client_channel, 1);
	assert_readable(pair.client_channel, 1);
	assert_readable(pair.server_channel, 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_readable(pair.client_channel, 0);
	pair_close(&pair);
}

/* A program that reads one event for each edge, as with the kernel's descriptor, misses none. */
static void each_event_is_an_edge(void **state)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	struct rdma_cm_id *ids[3];
	struct pair pair;
	int set;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	set = epoll_create1(0);
	assert_true(set >= 0);
	assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, pair.client_channel->fd, &event), 0);
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		assert_int_equal(rdma_create_id(pair.client_channel, &ids[i], NULL, RDMA_PS_TCP), 0);
		assert_int_equal(rdma_resolve_addr(ids[i], NULL,
						   step_sa(SERVER_ADDRESS, SERVER_PORT), 2000), 0);
		assert_int_equal(polycm_sim_advance(MOMENT), 0);
		assert_int_equal(epoll_wait(set, &event, 1, 0), 1);
		assert_int_equal(epoll_wait(set, &event, 1, 0), 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		assert_int_equal(epoll_wait(set, &event, 1, 0), 0);
		assert_int_equal(rdma_destroy_id(ids[i]), 0);
	}
	assert_readable(pair.client_channel, 0);
	close(set);
	pair_close(&pair);
}

/* Of several events that one moment brings to a thread that waits, it takes the first. */
static void what_a_wait_leaves_is_readable(void **state)
{
	struct rdma_cm_id *ids[2];
	struct rdma_cm_event *event;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(polycm_sim_node_use(pair.server_node), 0);
	for (uint16_t i = 0; i < 2; i++) {
		assert_int_equal(rdma_create_id(pair.server_channel, &ids[i], NULL, RDMA_PS_TCP), 0);
		assert_int_equal(rdma_bind_addr(ids[i], step_sa(SERVER_ADDRESS,
							       (uint16_t)(SERVER_PORT + 1 + i))),
				 0);
	}
	assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(
				.action = POLYCM_SIM_REMOVE_DEVICE, .on = pair.server_node,
				.from_ns = pair_now() + MOMENT), NULL), 0);
	assert_readable(pair.server_channel, 0);
	/* The listener is on the device, too. */
	for (int left = 2; left >= 0; left--) {
		assert_int_equal(rdma_get_cm_event(pair.server_channel, &event), 0);
		assert_int_equal(event->event, RDMA_CM_EVENT_DEVICE_REMOVAL);
		assert_int_equal(rdma_ack_cm_event(event), 0);
		assert_readable(pair.server_channel, left > 0);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(rdma_destroy_id(ids[i]), 0);
	pair_close(&pair);
}

/* An edge-triggered watcher sees each event, if it takes all there is each time. */
static void makes_an_edge_for_each_event(void **state)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	struct pair pair;
	int set;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	set = epoll_create1(0);
	assert_true(set >= 0);
	assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, pair.client_channel->fd, &event), 0);
	assert_int_equal(epoll_wait(set, &event, 1, 0), 0);
	assert_int_equal(rdma_resolve_addr(pair.client, NULL,
					   step_sa(SERVER_ADDRESS, SERVER_PORT), 2000), 0);
	assert_int_equal(polycm_sim_advance(MOMENT), 0);
	assert_int_equal(epoll_wait(set, &event, 1, 0), 1);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	pair_none(pair.client_channel);
	assert_int_equal(rdma_resolve_route(pair.client, 2000), 0);
	assert_int_equal(polycm_sim_advance(MOMENT), 0);
	assert_int_equal(epoll_wait(set, &event, 1, 0), 1);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(epoll_wait(set, &event, 1, 0), 0);
	close(set);
	pair_close(&pair);
}

static void non_blocking_calls_end_at_once(void **state)
{
	struct rdma_cm_event *event = NULL;
	uint64_t before;
	struct pair pair;
	int flags;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	before = pair_now();
	flags = fcntl(pair.client_channel->fd, F_GETFL);
	assert_int_equal(fcntl(pair.client_channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
	assert_errno(rdma_get_cm_event(pair.client_channel, &event), EAGAIN);
	assert_null(event);
	assert_int_equal(rdma_resolve_addr(pair.client, NULL,
					   step_sa(SERVER_ADDRESS, SERVER_PORT), 2000), 0);
	assert_errno(rdma_get_cm_event(pair.client_channel, &event), EAGAIN);
	assert_elapsed(before, 0);
	assert_int_equal(polycm_sim_advance(MOMENT), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_errno(rdma_get_cm_event(pair.client_channel, &event), EAGAIN);
	assert_int_equal(fcntl(pair.client_channel->fd, F_SETFL, flags), 0);
	pair_close(&pair);
}

static void by_fcntl(int fd, bool blocking)
{
	assert_int_equal(fcntl(fd, F_SETFL, blocking ? 0 : O_NONBLOCK), 0);
}

static void by_ioctl(int fd, bool blocking)
{
	int on = !blocking;

	assert_int_equal(ioctl(fd, FIONBIO, &on), 0);
}

/* The flag is the open file's, not the descriptor's. */
static void by_another_descriptor(int fd, bool blocking)
{
	int copy = dup(fd);

	assert_true(copy >= 0);
	by_fcntl(copy, blocking);
	close(copy);
}

static void by_a_child(int fd, bool blocking)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child)
		_exit(fcntl(fd, F_SETFL, blocking ? 0 : O_NONBLOCK) != 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* Whether a channel blocks is what was said last, also after it did otherwise for a while. */
static void a_channel_blocks_as_was_said_last(void **state)
{
	static void (*const ways[])(int fd, bool blocking) = {
		by_fcntl, by_ioctl, by_another_descriptor, by_a_child,
	};
	struct rdma_cm_event *event;
	struct pair pair;
	uint64_t before;
	int fd;

	(void)state;
	for (size_t w = 0; w < ARRAY_LEN(ways); w++) {
		pair_open(&pair, ROCE, RDMA_PS_TCP);
		fd = pair.client_channel->fd;
		assert_int_equal(rdma_resolve_addr(pair.client, NULL,
						   step_sa(SERVER_ADDRESS, SERVER_PORT), 2000), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		before = pair_now();
		ways[w](fd, false);
		assert_int_equal(rdma_resolve_route(pair.client, 2000), 0);
		for (int i = 0; i < 3; i++)
			assert_errno(rdma_get_cm_event(pair.client_channel, &event), EAGAIN);
		assert_elapsed(before, 0);
		ways[w](fd, true);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
		pair_close(&pair);
	}
}

/* A channel is no file that has bytes.  Which errno says so depends on what the descriptor is. */
static void has_no_bytes_to_read(void **state)
{
	struct pair pair;
	int bytes = -1;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(ioctl(pair.client_channel->fd, FIONREAD, &bytes), -1);
	assert_true(errno == ENOTTY || errno == EINVAL);
	assert_int_equal(bytes, -1);
	pair_close(&pair);
}

/* A wait that nothing can ever end is an error, not a hang. */
static void waiting_for_nothing_is_an_error(void **state)
{
	struct rdma_cm_event *event = NULL;
	struct pair pair;

	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		pair_open(&pair, t, RDMA_PS_TCP);
		assert_errno(rdma_get_cm_event(pair.client_channel, &event), EDEADLK);
		assert_errno(rdma_get_cm_event(pair.server_channel, &event), EDEADLK);
		assert_null(event);
		/* The channel is none the worse. */
		pair_connect(&pair);
		assert_errno(rdma_get_cm_event(pair.client_channel, &event), EDEADLK);
		pair_close(&pair);
	}
}

static void refuses_null(void **state)
{
	struct rdma_cm_event *event;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_errno(rdma_get_cm_event(pair.client_channel, NULL), EINVAL);
	assert_errno(rdma_get_cm_event(NULL, &event), EINVAL);
	assert_errno(rdma_ack_cm_event(NULL), EINVAL);
	rdma_destroy_event_channel(NULL);
	pair_close(&pair);
}

/* --- Order. --- */

static void keeps_the_order_in_which_things_happen(void **state)
{
	enum { NUM = 5 };
	static const unsigned int order[NUM] = { 3, 0, 4, 1, 2 };
	struct rdma_cm_id *id[NUM];
	struct rdma_cm_event *event;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	for (unsigned int i = 0; i < NUM; i++)
		assert_int_equal(rdma_create_id(pair.client_channel, &id[i], NULL, RDMA_PS_TCP), 0);
	for (unsigned int i = 0; i < NUM; i++)
		assert_int_equal(rdma_resolve_addr(id[order[i]], NULL,
						   step_sa(SERVER_ADDRESS, SERVER_PORT), 2000), 0);
	assert_int_equal(polycm_sim_advance(MOMENT), 0);
	for (unsigned int i = 0; i < NUM; i++) {
		event = pair_expect(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		assert_ptr_equal(event->id, id[order[i]]);
		rdma_ack_cm_event(event);
	}
	for (unsigned int i = 0; i < NUM; i++)
		assert_int_equal(rdma_destroy_id(id[i]), 0);
	pair_close(&pair);
}

static void gives_each_channel_its_own(void **state)
{
	struct rdma_event_channel *other;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	other = rdma_create_event_channel();
	assert_non_null(other);
	assert_int_not_equal(other->fd, pair.client_channel->fd);
	assert_int_equal(rdma_create_id(other, &id, NULL, RDMA_PS_TCP), 0);
	assert_ptr_equal(id->channel, other);
	assert_int_equal(rdma_resolve_addr(id, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT), 2000),
			 0);
	pair_resolve(&pair);
	pair_none(pair.client_channel);
	assert_readable(other, 1);
	event = pair_expect(other, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_ptr_equal(event->id, id);
	rdma_ack_cm_event(event);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(other);
	pair_close(&pair);
}

/* --- Acknowledging and destroying. --- */

static void events_may_be_acked_in_any_order(void **state)
{
	struct rdma_cm_event *event[2];
	struct rdma_cm_id *id[2];
	struct pair pair;

	(void)state;
	for (unsigned int first = 0; first < 2; first++) {
		pair_open(&pair, ROCE, RDMA_PS_TCP);
		for (unsigned int i = 0; i < 2; i++) {
			assert_int_equal(rdma_create_id(pair.client_channel, &id[i], NULL,
							RDMA_PS_TCP), 0);
			assert_int_equal(rdma_resolve_addr(id[i], NULL, step_sa(SERVER_ADDRESS, 1),
							   2000), 0);
			event[i] = pair_expect(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		}
		assert_int_equal(rdma_ack_cm_event(event[first]), 0);
		assert_int_equal(rdma_destroy_id(id[first]), 0);
		assert_int_equal(rdma_ack_cm_event(event[!first]), 0);
		assert_int_equal(rdma_destroy_id(id[!first]), 0);
		pair_close(&pair);
	}
}

static void destroying_drops_what_nobody_took(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(rdma_resolve_addr(pair.client, NULL,
					   step_sa(SERVER_ADDRESS, SERVER_PORT), 2000), 0);
	assert_int_equal(polycm_sim_advance(MOMENT), 0);
	assert_readable(pair.client_channel, 1);
	assert_int_equal(rdma_destroy_id(pair.client), 0);
	pair.client = NULL;
	assert_readable(pair.client_channel, 0);
	pair_none(pair.client_channel);
	pair_close(&pair);
}

/* In a query: the answer, when it comes, finds nobody. */
static void destroying_ends_what_is_under_way(void **state)
{
	static const enum step steps[] = { STEP_ADDR_QUERY, STEP_ROUTE_QUERY };
	struct pair pair;

	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
			step_open(&pair, t, steps[i]);
			assert_int_equal(rdma_destroy_id(pair.client), 0);
			pair.client = NULL;
			assert_int_equal(polycm_sim_advance(10 * SECONDS(1)), 0);
			pair_none(pair.client_channel);
			pair_close(&pair);
		}
	}
}

struct destroyer {
	struct rdma_cm_id *id;
	atomic_bool done;
	pthread_t thread;
};

static void *destroy(void *arg)
{
	struct destroyer *destroyer = arg;
	int r = rdma_destroy_id(destroyer->id);

	atomic_store(&destroyer->done, true);
	return r ? destroyer : NULL;
}

/* rdma_destroy_id() in another thread does not return before the event is acked. */
static void assert_destroy_waits(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct destroyer destroyer = { .id = id };
	void *result;

	assert_int_equal(pthread_create(&destroyer.thread, NULL, destroy, &destroyer), 0);
	for (int i = 0; i < 2000; i++) {
		assert_false(atomic_load(&destroyer.done));
		sched_yield();
	}
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(pthread_join(destroyer.thread, &result), 0);
	assert_null(result);
}

static void destroying_waits_for_acks(void **state)
{
	struct rdma_cm_event *event;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(rdma_resolve_addr(pair.client, NULL,
					   step_sa(SERVER_ADDRESS, SERVER_PORT), 2000), 0);
	event = pair_expect(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_destroy_waits(pair.client, event);
	pair.client = NULL;
	pair_close(&pair);
}

/* A CONNECT_REQUEST is charged to the listener, not to the new id. */
static void requests_are_charged_to_the_listener(void **state)
{
	struct rdma_cm_event *event;
	struct pair pair;

	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);

		pair_open_resolved(&pair, t);
		event = pair_request(&pair, &param);
		assert_int_equal(rdma_destroy_id(pair.server), 0);
		pair.server = NULL;
		assert_destroy_waits(pair.listener, event);
		pair.listener = NULL;
		pair_close(&pair);
	}
}

static void private_data_lives_until_the_ack(void **state)
{
	struct rdma_conn_param param = pair_param("still here", 11);
	struct rdma_cm_event *event;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	pair_resolve(&pair);
	event = pair_request(&pair, &param);
	assert_int_equal(rdma_destroy_id(pair.server), 0);
	pair.server = NULL;
	pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, 28);
	assert_memory_equal(event->param.conn.private_data, "still here", 11);
	rdma_ack_cm_event(event);
	pair_close(&pair);
}

/* --- Names. --- */

static const char *const names[] = {
	"RDMA_CM_EVENT_ADDR_RESOLVED", "RDMA_CM_EVENT_ADDR_ERROR",
	"RDMA_CM_EVENT_ROUTE_RESOLVED", "RDMA_CM_EVENT_ROUTE_ERROR",
	"RDMA_CM_EVENT_CONNECT_REQUEST", "RDMA_CM_EVENT_CONNECT_RESPONSE",
	"RDMA_CM_EVENT_CONNECT_ERROR", "RDMA_CM_EVENT_UNREACHABLE",
	"RDMA_CM_EVENT_REJECTED", "RDMA_CM_EVENT_ESTABLISHED",
	"RDMA_CM_EVENT_DISCONNECTED", "RDMA_CM_EVENT_DEVICE_REMOVAL",
	"RDMA_CM_EVENT_MULTICAST_JOIN", "RDMA_CM_EVENT_MULTICAST_ERROR",
	"RDMA_CM_EVENT_ADDR_CHANGE", "RDMA_CM_EVENT_TIMEWAIT_EXIT",
};

static void names_events(void **state)
{
	static const int unknown[] = { -1, 16, 17, 18, 19, 1000, 0x7fffffff };

	(void)state;
	assert_int_equal(ARRAY_LEN(names), RDMA_CM_EVENT_TIMEWAIT_EXIT + 1);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_string_equal(rdma_event_str((enum rdma_cm_event_type)i), names[i]);
	for (size_t i = 0; i < ARRAY_LEN(unknown); i++)
		assert_string_equal(rdma_event_str((enum rdma_cm_event_type)unknown[i]),
				    "UNKNOWN EVENT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_readable_while_an_event_waits),
		cmocka_unit_test(each_event_is_an_edge),
		cmocka_unit_test(what_a_wait_leaves_is_readable),
		cmocka_unit_test(makes_an_edge_for_each_event),
		cmocka_unit_test(non_blocking_calls_end_at_once),
		cmocka_unit_test(a_channel_blocks_as_was_said_last),
		cmocka_unit_test(has_no_bytes_to_read),
		cmocka_unit_test(waiting_for_nothing_is_an_error),
		cmocka_unit_test(refuses_null),
		cmocka_unit_test(keeps_the_order_in_which_things_happen),
		cmocka_unit_test(gives_each_channel_its_own),
		cmocka_unit_test(events_may_be_acked_in_any_order),
		cmocka_unit_test(destroying_drops_what_nobody_took),
		cmocka_unit_test(destroying_ends_what_is_under_way),
		cmocka_unit_test(destroying_waits_for_acks),
		cmocka_unit_test(requests_are_charged_to_the_listener),
		cmocka_unit_test(private_data_lives_until_the_ack),
		cmocka_unit_test(names_events),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
