/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * carry_opening.c - a TCP connection between two programs begins: client and server are connected to
 * us, and not before the segments that open it have arrived.
 */
#include "config.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "carry.h"

static uint32_t num_connections;

/* The program's own socket is not needed any more. */
static void let_go(struct carry_connection *connection)
{
	close(connection->held);
	connection->held = -1;
}

void carry_fail(struct carry_connection *connection, int result)
{
	if (connection->held >= 0) {
		carry_tells->connect_fails(connection->connect, connection->held, result);
		let_go(connection);
	}
	carry_reset(connection, CARRY_CLIENT);
	carry_reset(connection, CARRY_SERVER);
}

void carry_begin(const struct turn_connect_request *request, int fd)
{
	struct carry_connection *connection = tool_realloc(NULL, 1, sizeof(*connection));
	int err;

	*connection = (struct carry_connection){
		.number = ++num_connections,
		.cookie = request->cookie,
		.connect = request->number,
		.held = fd,
		.from = request->from,
		.to = request->to,
		.ends = { carry_plain(&request->from), carry_plain(&request->to) },
		.sockets = { -1, -1 },
	};
	carry_add(connection);
	err = carry_send(connection, CARRY_SERVER, POLYCM_TCP_SYN, 0);
	if (err)
		carry_fail(connection, err == -EADDRNOTAVAIL ? -ENETUNREACH : err);
}

/* From the client's address; Linux would take the server's. */
static int connect_to_server(struct carry_connection *connection)
{
	union turn_address from = connection->ends[CARRY_CLIENT];
	const union turn_address *to = &connection->ends[CARRY_SERVER];
	socklen_t len = carry_address_len(&from);
	int fd = socket(from.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	connection->sockets[CARRY_SERVER] = fd;
	carry_set_port(&from, 0);
	if (bind(fd, &from.sa, len) || getsockname(fd, &from.sa, &len))
		return -errno;
	connection->port = carry_port(&from);
	carry_tells->port_is_for(connection->port, carry_port(&connection->ends[CARRY_CLIENT]));
	return connect(fd, &to->sa, carry_address_len(to)) ? -errno : 0;
}

static void answer_syn(struct carry_connection *connection, bool listens)
{
	connection->has_begun |= !listens;
	if (carry_send(connection, CARRY_CLIENT, listens ? POLYCM_TCP_SYN_ACK : POLYCM_TCP_REFUSED, 0))
		carry_fail(connection, -ENOBUFS);
}

/* The server is connected; before that its client is only if the kernel said that it listens. */
static void reach_server(struct carry_connection *connection)
{
	connection->is_reached[CARRY_SERVER] = true;
	if (connection->held >= 0)
		answer_syn(connection, true);
	else
		carry_pass_on(connection, CARRY_SERVER);
}

static void miss_server(struct carry_connection *connection)
{
	if (connection->held < 0) {
		carry_tell_other(connection, CARRY_SERVER);
		return;
	}
	carry_close(connection, CARRY_SERVER);
	answer_syn(connection, false);
}

void carry_begin_server(struct carry_connection *connection)
{
	int err;

	if (connection->has_begun)
		return;
	connection->has_begun = true;
	err = connect_to_server(connection);
	if (!err)
		reach_server(connection);
	else if (err != -EINPROGRESS)
		miss_server(connection);
}

void carry_take_syn(struct carry_connection *connection)
{
	switch (carry_listens(&connection->ends[CARRY_CLIENT], &connection->ends[CARRY_SERVER])) {
	case CARRY_LISTENS:
		answer_syn(connection, true);
		break;
	case CARRY_NOBODY:
		answer_syn(connection, false);
		break;
	case CARRY_UNKNOWN:
		carry_begin_server(connection);
		break;
	}
}

void carry_end_connecting(struct carry_connection *connection)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (getsockopt(connection->sockets[CARRY_SERVER], SOL_SOCKET, SO_ERROR, &err, &len) || err)
		miss_server(connection);
	else
		reach_server(connection);
}

/*
 * Of the client's socket, which has just been connected to it; or -1.  Before it may have come programs
 * that have found our port by themselves, and the same client, when we could not accept it.
 */
static int accept_client(const struct carry_connection *connection)
{
	union turn_address peer;
	socklen_t len = sizeof(peer);
	int last = -1, fd;

	while ((fd = accept4(connection->service->listener, &peer.sa, &len,
			     SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		const bool is_client = carry_port(&peer) == carry_port(&connection->from);
		const int other = is_client ? last : fd;

		if (is_client)
			last = fd;
		if (other >= 0)
			close(other);
		len = sizeof(peer);
	}
	return last;
}

/* The client is not there: its RST is repeated like the SYN_ACK that it answers. */
static void refuse_server(const struct carry_connection *connection)
{
	(void)carry_send(connection, CARRY_SERVER, POLYCM_TCP_REFUSED, 0);
}

/* 0: the program's socket is connected to the service; -ECANCELED: it is not to be any more. */
static int connect_client(const struct carry_connection *connection)
{
	union turn_address to = connection->to;

	if (!connection->service)
		return -EADDRNOTAVAIL;
	carry_set_port(&to, connection->service->port);
	return carry_tells->connect_now(connection->connect, connection->held, &to.sa,
					carry_address_len(&to));
}

/* It is connected to what we cannot accept. */
static void reset_client(const struct carry_connection *connection)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };

	(void)connect(connection->held, &none, sizeof(none));
}

/* Its program has closed the socket, which we had still open. */
static bool is_at_end(int fd)
{
	char byte;

	return !recv(fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);
}

/* 0, -ECANCELED: its program does not want it any more, or another negative errno. */
static int take_client(struct carry_connection *connection)
{
	int err, fd;

	connection->service = carry_service_for(&connection->ends[CARRY_SERVER]);
	err = connect_client(connection);
	if (err)
		return err;
	fd = accept_client(connection);
	if (fd < 0)
		reset_client(connection);
	let_go(connection);
	connection->sockets[CARRY_CLIENT] = fd;
	connection->is_reached[CARRY_CLIENT] = fd >= 0;
	return fd < 0 || is_at_end(fd) ? -ECANCELED : 0;
}

void carry_take_syn_ack(struct carry_connection *connection)
{
	int err;

	if (connection->held < 0)
		return;
	/* Nobody sees less than all of it. */
	carry_tells->keep_turn(true);
	err = take_client(connection);
	carry_tells->keep_turn(false);
	if (!err) {
		(void)carry_send(connection, CARRY_SERVER, POLYCM_TCP_ACK, 0);
	} else if (err != -ECANCELED) {
		carry_fail(connection, err);
	} else {
		if (connection->held >= 0)
			let_go(connection);
		carry_reset(connection, CARRY_CLIENT);
		refuse_server(connection);
	}
}
