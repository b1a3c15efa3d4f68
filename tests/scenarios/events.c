/* SPDX-License-Identifier: BSD-2-Clause */
/* events.c - scenarios of event channels: as descriptors, blocking, signals, acknowledging, contents. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include "scene.h"

static void client_asks(void)
{
	MUST(rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), at(SERVER4, 0), 5000));
	arrived(client_events);
}

/* --- The descriptor. --- */

static void show_poll(const char *when)
{
	struct pollfd poll_fd = { .fd = client_events->fd, .events = POLLIN | POLLOUT | POLLPRI };
	int num = poll(&poll_fd, 1, 0);

	say("%s: poll = %d, POLLIN %s, POLLOUT %s, POLLERR %s, POLLHUP %s", when, num,
	    poll_fd.revents & POLLIN ? "yes" : "no", poll_fd.revents & POLLOUT ? "yes" : "no",
	    poll_fd.revents & POLLERR ? "yes" : "no", poll_fd.revents & POLLHUP ? "yes" : "no");
}

static void event_poll(void)
{
	struct rdma_cm_event *event;

	open_scene(RDMA_PS_TCP);
	show_poll("at first");
	client_asks();
	show_poll("one");
	event = next_unacked(client_events);
	show_poll("taken");
	ack(event);
	show_poll("acked");
}

static int select_now(void)
{
	struct timeval none = { 0, 0 };
	fd_set fds;

	FD_ZERO(&fds);
	FD_SET(client_events->fd, &fds);
	return select(client_events->fd + 1, &fds, NULL, NULL, &none);
}

static void event_select(void)
{
	open_scene(RDMA_PS_TCP);
	TRY(select_now());
	client_asks();
	TRY(select_now());
	next(client_events);
	TRY(select_now());
}

static int watch(int epoll, int fd, uint32_t events)
{
	struct epoll_event entry = { .events = events };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &entry);
}

static int epoll_now(int epoll)
{
	struct epoll_event ready[4];

	return epoll_wait(epoll, ready, ARRAY_LEN(ready), 0);
}

static void event_epoll(void)
{
	int level = epoll_create1(EPOLL_CLOEXEC), edge = epoll_create1(EPOLL_CLOEXEC);

	open_scene(RDMA_PS_TCP);
	TRY(watch(level, client_events->fd, EPOLLIN));
	TRY(watch(edge, client_events->fd, EPOLLIN | EPOLLET));
	TRY(epoll_now(level));
	client_asks();
	TRY(epoll_now(level));
	TRY(epoll_now(level));
	TRY(epoll_now(edge));
	TRY(epoll_now(edge));
	next(client_events);
	TRY(epoll_now(level));
	TRY(epoll_now(edge));
	MUST(rdma_resolve_route(client, 2000));
	arrived(client_events);
	TRY(epoll_now(level));
	TRY(epoll_now(edge));
	next(client_events);
	TRY(epoll_now(level));
	close(level);
	close(edge);
}

static void event_nested_epoll(void)
{
	int outer = epoll_create1(EPOLL_CLOEXEC), inner = epoll_create1(EPOLL_CLOEXEC);

	open_scene(RDMA_PS_TCP);
	TRY(watch(outer, inner, EPOLLIN));
	TRY(watch(inner, client_events->fd, EPOLLIN));
	TRY(watch(inner, server_events->fd, EPOLLIN));
	TRY(epoll_now(outer));
	client_asks();
	TRY(epoll_now(outer));
	TRY(epoll_now(inner));
	next(client_events);
	TRY(epoll_now(inner));
	TRY(epoll_now(outer));
	close(inner);
	close(outer);
}

static void event_nonblock(void)
{
	struct rdma_cm_event *event;

	open_scene(RDMA_PS_TCP);
	TRY(fcntl(client_events->fd, F_SETFL, O_NONBLOCK));
	TRY(rdma_get_cm_event(client_events, &event));
	client_asks();
	next(client_events);
	MUST(fcntl(client_events->fd, F_SETFL, O_NONBLOCK));
	TRY(rdma_get_cm_event(client_events, &event));
	TRY(rdma_get_cm_event(client_events, NULL));
	TRY(fcntl(client_events->fd, F_SETFL, 0));
	TRY(rdma_resolve_route(client, 2000));
	next(client_events);
}

/* Two ids on a channel, one on another: each event on the channel of its id. */
static void event_two_channels(void)
{
	struct rdma_cm_id *other;

	open_scene(RDMA_PS_TCP);
	other = make_id("other", client_events, RDMA_PS_TCP);
	client_asks();
	MUST(rdma_resolve_addr(other, at(CLIENT4, ANY_PORT), at(SERVER4, 0), 5000));
	MUST(rdma_resolve_addr(server, at(SERVER4, ANY_PORT), at(CLIENT4, 0), 5000));
	next(client_events);
	next(server_events);
	next(client_events);
	rest(client_events);
	rest(server_events);
}

/* --- Signals. --- */

static volatile sig_atomic_t signals;

static void count_signal(int signal)
{
	(void)signal;
	signals++;
}

static void handle_signals(int flags)
{
	struct sigaction action = { .sa_handler = count_signal, .sa_flags = flags };

	MUST(sigaction(SIGUSR1, &action, NULL));
}

static pthread_t main_thread;

static void interrupt(void)
{
	pass_ms(400);
	pthread_kill(main_thread, SIGUSR1);
	pass_ms(400);
	rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), at(SERVER4, 0), 5000);
}

static void wait_with_signal(int flags)
{
	struct rdma_cm_event *event = NULL;

	handle_signals(flags);
	main_thread = pthread_self();
	open_scene(RDMA_PS_TCP);
	beside(interrupt);
	if (!TRY(rdma_get_cm_event(client_events, &event))) {
		show_event(client_events, event);
		rdma_ack_cm_event(event);
	}
	say("%d signal", (int)signals);
	join();
	if (!event)
		next(client_events);
}

static void event_signal(void)
{
	wait_with_signal(0);
}

static void event_signal_restart(void)
{
	wait_with_signal(SA_RESTART);
}

/* --- Acknowledging. --- */

static void event_ack_null(void)
{
	open_scene(RDMA_PS_TCP);
	TRY(rdma_ack_cm_event(NULL));
}

static void event_ack_order(void)
{
	struct rdma_cm_event *first, *second, *third;

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_asks();
	first = next_unacked(client_events);
	TRY(rdma_resolve_route(client, 2000));
	second = next_unacked(client_events);
	make_qp(client);
	TRY(rdma_connect(client, &(struct rdma_conn_param){ .retry_count = 7 }));
	third = next_unacked(server_events);
	ack(second);
	ack(third);
	show_event(client_events, first);
	ack(first);
	TRY(rdma_destroy_id(child));
	forget_id(child);
	next(client_events);
}

static void event_destroy_untaken(void)
{
	struct rdma_cm_id *other;

	open_scene(RDMA_PS_TCP);
	other = make_id("other", client_events, RDMA_PS_TCP);
	client_asks();
	MUST(rdma_resolve_addr(other, at(CLIENT4, ANY_PORT), at(SERVER4, 0), 5000));
	say("the first of two is destroyed with its event");
	TRY(rdma_destroy_id(client));
	forget_id(client);
	next(client_events);
	show_poll("then");
}

/* --- Contents. --- */

static void event_strings(void)
{
	int type;

	for (type = -1; type <= 16; type++)
		say("%d %s", type, rdma_event_str((enum rdma_cm_event_type)type));
}

static const char *same(const void *a, const void *b)
{
	return a == b ? "same" : "other";
}

static void event_request_contents(void)
{
	struct rdma_cm_event *event;
	int context;

	open_scene(RDMA_PS_TCP);
	server->context = &context;
	server_listens(0);
	client_resolves();
	make_qp(client);
	MUST(rdma_connect(client, &(struct rdma_conn_param){ .retry_count = 7 }));
	event = next_unacked(server_events);
	say("listen_id %s, channel %s, context %s", same(event->listen_id, server),
	    same(event->id->channel, server_events), same(event->id->context, &context));
	say("ps 0x%x, qp_type %d, qp %s, event %s, pd %s, srq %s", (unsigned int)event->id->ps,
	    (int)event->id->qp_type, event->id->qp ? "yes" : "no", event->id->event ? "yes" : "no",
	    event->id->pd ? "yes" : "no", event->id->srq ? "yes" : "no");
	show_addresses(event->id);
	show_route(event->id);
	show_addresses(server);
	ack(event);
}

/* The program's own number for the channel: librdmacm uses channel->fd in each call. */
static void move_channel(struct rdma_event_channel *events)
{
	int fd = fcntl(events->fd, F_DUPFD_CLOEXEC, 100);

	if (fd < 0 || close(events->fd))
		end_failed("move_channel");
	events->fd = fd;
}

static void event_channel_moved(void)
{
	struct rdma_event_channel *other;

	open_scene(RDMA_PS_TCP);
	move_channel(client_events);
	move_channel(server_events);
	established();
	move_channel(client_events);
	other = make_channel("other");
	move_channel(other);
	TRY(rdma_migrate_id(client, other));
	TRY(rdma_disconnect(client));
	rest(other);
	rest(server_events);
	DESTROY(client);
	forget_channel(other);
	rdma_destroy_event_channel(other);
	say("closed %s", fcntl(100, F_GETFD) < 0 ? "yes" : "no");
}

/* The number that the channel had is another file's by then. */
static void event_channel_moved_reused(void)
{
	int pipes[2];

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	move_channel(client_events);
	if (pipe(pipes))
		end_failed("pipe");
	client_resolves();
	make_qp(client);
	TRY(rdma_connect(client, &(struct rdma_conn_param){ .retry_count = 7 }));
	next(server_events);
	DESTROY(client);
	forget_channel(client_events);
	rdma_destroy_event_channel(client_events);
	say("the pipe is open: %s", fcntl(pipes[0], F_GETFD) < 0 ? "no" : "yes");
}

const struct scenario events_scenarios[] = {
	{ "event-poll", event_poll, "the channel in poll()", 0 },
	{ "event-select", event_select, "the channel in select()", 0 },
	{ "event-epoll", event_epoll, "the channel in epoll, by level and by edge", 0 },
	{ "event-nested-epoll", event_nested_epoll, "two channels in an epoll in an epoll", 0 },
	{ "event-nonblock", event_nonblock, "O_NONBLOCK, and back", 0 },
	{ "event-two-channels", event_two_channels, "ids on two channels", 0 },
	{ "event-signal", event_signal, "a signal while waiting", PROCESSES },
	{ "event-signal-restart", event_signal_restart, "the same with SA_RESTART", PROCESSES },
	{ "event-ack-null", event_ack_null, "rdma_ack_cm_event(NULL)", 0 },
	{ "event-ack-order", event_ack_order, "acked in another order", 0 },
	{ "event-destroy-untaken", event_destroy_untaken, "an id's event vanishes with it", 0 },
	{ "event-strings", event_strings, "rdma_event_str() of all", 0 },
	{ "event-channel-moved", event_channel_moved, "channel->fd dup()ed, closed and assigned", 0 },
	{ "event-channel-moved-reused", event_channel_moved_reused,
	  "the number that channel->fd had is another file's", 0 },
	{ "event-request-contents", event_request_contents, "a request and its new id", 0 },
	{ NULL, NULL, NULL, 0 },
};
