/* SPDX-License-Identifier: BSD-2-Clause */
/* fork.c - scenarios of fork() and exec() with channels that are open. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scene.h"

/* In a child of this process, to its end. */
static void in_child(void (*play)(void))
{
	pid_t process;
	int status;

	fflush(NULL);
	process = fork();
	if (!process) {
		play();
		fflush(NULL);
		_exit(0);
	}
	if (process < 0 || waitpid(process, &status, 0) != process)
		end_failed("fork");
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		say("the child has failed");
}

static void both_disconnect(void)
{
	TRY(rdma_disconnect(client));
	next(server_events);
	TRY(rdma_disconnect(child));
	next(client_events);
}

static void does_nothing(void)
{
	say("in the child");
}

static void fork_exits(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	in_child(does_nothing);
	rest(client_events);
	rest(server_events);
	both_disconnect();
}

static void uses_ids(void)
{
	say("in the child");
	TRY(rdma_bind_addr(client, at(CLIENT4, 2)));
	TRY(rdma_resolve_addr(client, NULL, at(SERVER4, 0), 2000));
	TRY(rdma_listen(server, 0));
}

static void fork_uses(void)
{
	open_scene(RDMA_PS_TCP);
	in_child(uses_ids);
	rest(client_events);
	say("and in the parent");
	TRY(rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), at(SERVER4, 0), 2000));
	next(client_events);
}

static void destroys(void)
{
	say("in the child");
	TRY(rdma_disconnect(client));
	TRY(rdma_destroy_id(server));
}

static void fork_destroys(void)
{
	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	in_child(destroys);
	say("and in the parent");
	make_qp(client);
	TRY(rdma_connect(client, &(struct rdma_conn_param){ .retry_count = 7 }));
	next(server_events);
}

static void own_channel(void)
{
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;

	say("in the child");
	events = make_channel("own");
	TRY(rdma_create_id(events, &id, NULL, RDMA_PS_TCP));
	name_id("own", id);
	TRY(rdma_resolve_addr(id, at(CLIENT4, ANY_PORT), at(SERVER4, 0), 2000));
	next(events);
	TRY(rdma_destroy_id(id));
	rdma_destroy_event_channel(events);
}

static void fork_own_channel(void)
{
	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	in_child(own_channel);
	say("and in the parent");
	show_addresses(client);
	make_qp(client);
	TRY(rdma_connect(client, &(struct rdma_conn_param){ .retry_count = 7 }));
	next(server_events);
}

static void takes_event(void)
{
	struct rdma_cm_event *event;

	say("in the child");
	TRY(fcntl(client_events->fd, F_GETFD) & FD_CLOEXEC);
	fcntl(client_events->fd, F_SETFL, O_NONBLOCK);
	TRY(rdma_get_cm_event(client_events, &event));
}

/* The parent's event is there. */
static void fork_takes_event(void)
{
	open_scene(RDMA_PS_TCP);
	MUST(rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), at(SERVER4, 0), 5000));
	arrived(client_events);
	in_child(takes_event);
	say("and in the parent");
	rest(client_events);
}

/* --- The server's process forks or becomes another program. --- */

static int held[2]; /* a pipe: whom the scenario holds */

/* An event that must come; shown without its contents, as the peer's QP number is unknown here. */
static void take_type(struct rdma_event_channel *events, enum rdma_cm_event_type type)
{
	quiet();
	expect_type(events, type);
	loud();
	say("%s", rdma_event_str(type));
}
#define take(events, type) take_type((events), RDMA_CM_EVENT_##type)

static void accepts(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	tell();
	take(server_events, CONNECT_REQUEST);
	make_qp(child);
	MUST(rdma_accept(child, &with));
	take(server_events, ESTABLISHED);
}

/* The trace ends only when nobody has its pipe any more. */
static void close_other_pipes(void)
{
	struct stat status;
	int fd;

	for (fd = 0; fd < 100; fd++) {
		if (fd != held[0] && !fstat(fd, &status) && S_ISFIFO(status.st_mode))
			close(fd);
	}
}

/* Its child lives on until the pipe is closed, with all else that it has inherited. */
static void accepts_and_forks(void)
{
	char byte;

	accepts();
	close(held[1]);
	if (!fork()) {
		tell();
		close_other_pipes();
		_exit(read(held[0], &byte, 1) != 0);
	}
	await();
}

static void fork_keeps(void)
{
	struct rdma_conn_param with = param();

	MUST(pipe(held));
	start_peer(accepts_and_forks);
	open_scene(RDMA_PS_TCP);
	await();
	client_resolves();
	make_qp(client);
	MUST(rdma_connect(client, &with));
	take(client_events, ESTABLISHED);
	await();
	peer_killed(SIGKILL);
	say("the server is dead, its child is not");
	rest(client_events);
	close(held[1]);
	say("both are dead");
	next(client_events);
	rest(client_events);
}

static void accepts_and_becomes(void)
{
	accepts();
	tell();
	await();
	execl("/bin/sleep", "sleep", "100", NULL);
}

static void fork_exec(void)
{
	struct rdma_conn_param with = param();

	start_peer(accepts_and_becomes);
	open_scene(RDMA_PS_TCP);
	TRY(fcntl(client_events->fd, F_GETFD) & FD_CLOEXEC);
	await();
	client_resolves();
	make_qp(client);
	MUST(rdma_connect(client, &with));
	take(client_events, ESTABLISHED);
	await();
	tell();
	say("the server becomes another program");
	next(client_events);
	peer_killed(SIGKILL);
	rest(client_events);
}

const struct scenario fork_scenarios[] = {
	{ "fork-exits", fork_exits, "a child that ends at once", PROCESSES },
	{ "fork-uses", fork_uses, "a child that uses its parent's ids", PROCESSES },
	{ "fork-destroys", fork_destroys, "a child that destroys its parent's ids", PROCESSES },
	{ "fork-own-channel", fork_own_channel, "a child with a channel of its own", PROCESSES },
	{ "fork-takes-event", fork_takes_event, "a child takes its parent's event", PROCESSES },
	{ "fork-keeps", fork_keeps, "killed, but its child lives", PROCESSES },
	{ "fork-exec", fork_exec, "becomes another program", PROCESSES },
	{ NULL, NULL, NULL, 0 },
};
