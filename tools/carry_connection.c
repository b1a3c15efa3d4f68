/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * carry_connection.c - a TCP connection between two programs, from the SYN to its end.
 *
 *	client's socket -- ours | segments on the simulated network | ours -- server's socket
 *
 * What an end sends is read, as one segment, and waits in `to_end' of the other end until the network
 * says that it has arrived.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "carry.h"

#define WINDOW (256u * 1024u)		/* bytes under way or not yet read, in one direction */
#define MOST_DATA (16u * 1024u)		/* of one segment */

struct carry_connection *carry_connections;
static uint32_t num_connections;

static struct carry_connection *find(uint32_t number)
{
	struct carry_connection *connection = carry_connections;

	while (connection && connection->number != number)
		connection = connection->next;
	return connection;
}

static void pass_on(struct carry_connection *connection, enum carry_end end);

static enum carry_end other(enum carry_end end)
{
	return end == CARRY_CLIENT ? CARRY_SERVER : CARRY_CLIENT;
}

/* In the name of the other end. */
static int send_to(const struct carry_connection *connection, enum carry_end end,
		   enum polycm_tcp_kind kind, size_t len)
{
	const struct polycm_tcp_segment segment = {
		.connection = connection->number, .to_server = end == CARRY_SERVER, .kind = kind,
		.len = (uint32_t)len,
	};

	return carry_network->send(&segment, &connection->ends[other(end)].sa,
				   &connection->ends[end].sa);
}

static void close_socket(struct carry_connection *connection, enum carry_end end)
{
	struct carry_way *way = &connection->to_end[end];

	if (connection->sockets[end] >= 0)
		close(connection->sockets[end]);
	if (end == CARRY_SERVER && connection->port) {
		carry_tells->port_is_for(connection->port, 0);
		connection->port = 0;
	}
	connection->sockets[end] = -1;
	free(way->bytes);
	/* What the other one still sends is answered with a RST. */
	*way = (struct carry_way){ .is_closed = way->is_closed, .ends = true, .has_ended = true };
}

/* The end gets a RST. */
static void reset_socket(struct carry_connection *connection, enum carry_end end)
{
	const struct linger at_once = { .l_onoff = 1 };

	if (connection->sockets[end] >= 0)
		setsockopt(connection->sockets[end], SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close_socket(connection, end);
}

/* The end has gone, or has no memory of the connection. */
static void tell_other(struct carry_connection *connection, enum carry_end end)
{
	close_socket(connection, end);
	(void)send_to(connection, other(end), POLYCM_TCP_RST, 0);
}

/* ------------------------------------------------------------------------
 * Connecting.
 */

/* Away from listening, which was to be ready for nothing. */
static void release(const struct carry_connection *connection)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };

	(void)connect(connection->held, &none, sizeof(none));
}

/* The client's connect() has that result, a negative errno; nothing is left of the connection. */
static void fail(struct carry_connection *connection, int result)
{
	if (connection->held >= 0) {
		release(connection);
		close(connection->held);
		connection->held = -1;
		carry_tells->connect_ends(connection->cookie, result);
	}
	reset_socket(connection, CARRY_CLIENT);
	reset_socket(connection, CARRY_SERVER);
}

void carry_begin(const struct turn_connect_request *request, int fd)
{
	struct carry_connection *connection = tool_realloc(NULL, 1, sizeof(*connection));
	int err;

	*connection = (struct carry_connection){
		.number = ++num_connections,
		.cookie = request->cookie,
		.held = fd,
		.from = request->from,
		.to = request->to,
		.ends = { carry_plain(&request->from), carry_plain(&request->to) },
		.sockets = { -1, -1 },
	};
	DL_APPEND(carry_connections, connection);
	err = send_to(connection, CARRY_SERVER, POLYCM_TCP_SYN, 0);
	if (err)
		fail(connection, err == -EADDRNOTAVAIL ? -ENETUNREACH : err);
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
	if (send_to(connection, CARRY_CLIENT, listens ? POLYCM_TCP_SYN_ACK : POLYCM_TCP_REFUSED, 0))
		fail(connection, -ENOBUFS);
}

/* The server is connected; before that its client is only if the kernel said that it listens. */
static void reach_server(struct carry_connection *connection)
{
	connection->is_reached[CARRY_SERVER] = true;
	if (connection->held >= 0)
		answer_syn(connection, true);
	else
		pass_on(connection, CARRY_SERVER);
}

static void miss_server(struct carry_connection *connection)
{
	if (connection->held < 0) {
		tell_other(connection, CARRY_SERVER);
		return;
	}
	close_socket(connection, CARRY_SERVER);
	answer_syn(connection, false);
}

static void begin_server(struct carry_connection *connection)
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

/* A server's accept() has a connection when its opening has ended, and not before. */
static void take_syn(struct carry_connection *connection)
{
	switch (carry_listens(&connection->ends[CARRY_CLIENT], &connection->ends[CARRY_SERVER])) {
	case CARRY_LISTENS:
		answer_syn(connection, true);
		break;
	case CARRY_NOBODY:
		answer_syn(connection, false);
		break;
	case CARRY_UNKNOWN:
		begin_server(connection);
		break;
	}
}

/* What connect() to the server has come to. */
static void end_connecting(struct carry_connection *connection)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (getsockopt(connection->sockets[CARRY_SERVER], SOL_SOCKET, SO_ERROR, &err, &len) || err)
		miss_server(connection);
	else
		reach_server(connection);
}

/* Of the client's socket, which is connected to it; or -1. */
static int accept_client(const struct carry_connection *connection,
			 const struct carry_service *service)
{
	union turn_address peer;
	socklen_t len = sizeof(peer);
	int fd;

	while ((fd = accept4(service->listener, &peer.sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0 &&
	       carry_port(&peer) != carry_port(&connection->from)) {
		/* A program that has found our port by itself. */
		close(fd);
		len = sizeof(peer);
	}
	return fd;
}

static void take_syn_ack(struct carry_connection *connection)
{
	const struct carry_service *service;
	union turn_address to = connection->to;

	if (connection->held < 0)
		return;
	service = carry_service_for(&connection->ends[CARRY_SERVER]);
	if (!service) {
		fail(connection, -EADDRNOTAVAIL);
		return;
	}
	release(connection);
	carry_set_port(&to, service->port);
	/* The second call ends what the first one has begun, if the program's socket does not wait. */
	if (connect(connection->held, &to.sa, carry_address_len(&to)) &&
	    (errno != EINPROGRESS || connect(connection->held, &to.sa, carry_address_len(&to)))) {
		fail(connection, -errno);
		return;
	}
	connection->sockets[CARRY_CLIENT] = accept_client(connection, service);
	if (connection->sockets[CARRY_CLIENT] < 0) {
		fail(connection, -ECONNABORTED);
		return;
	}
	close(connection->held);
	connection->held = -1;
	connection->is_reached[CARRY_CLIENT] = true;
	carry_tells->connect_ends(connection->cookie, 0);
	(void)send_to(connection, CARRY_SERVER, POLYCM_TCP_ACK, 0);
}

/* ------------------------------------------------------------------------
 * Data.
 */

static size_t kept(const struct carry_way *way)
{
	return way->end - way->begin;
}

/* Room for another segment behind what is kept. */
static char *make_room(struct carry_way *way)
{
	if (way->size - way->end >= MOST_DATA)
		return way->bytes + way->end;
	if (way->begin) {
		memmove(way->bytes, way->bytes + way->begin, kept(way));
		way->arrived -= way->begin;
		way->end -= way->begin;
		way->begin = 0;
	}
	if (way->size - way->end < MOST_DATA) {
		way->size = way->size ? 2 * way->size : 2 * MOST_DATA;
		way->bytes = tool_realloc(way->bytes, way->size, 1);
	}
	return way->bytes + way->end;
}

/* What has arrived goes to the end, as far as it takes it. */
static void pass_on(struct carry_connection *connection, enum carry_end end)
{
	struct carry_way *way = &connection->to_end[end];
	ssize_t num;

	if (!connection->is_reached[end])
		return;
	while (way->begin < way->arrived) {
		num = send(connection->sockets[end], way->bytes + way->begin,
			   way->arrived - way->begin, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (num < 0 && errno == EAGAIN)
			return;
		if (num < 0 && errno != EINTR) {
			tell_other(connection, end);
			return;
		}
		way->begin += num > 0 ? (size_t)num : 0;
	}
	if (way->ends && !way->has_ended && connection->sockets[end] >= 0) {
		way->has_ended = true;
		shutdown(connection->sockets[end], SHUT_WR);
	}
}

/* A segment of what the end has sent, to the other one. */
static void take_data(struct carry_connection *connection, enum carry_end end)
{
	struct carry_way *way = &connection->to_end[other(end)];
	const enum carry_end to = other(end);
	ssize_t num = recv(connection->sockets[end], make_room(way), MOST_DATA, MSG_DONTWAIT);

	if (num < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (num < 0) {
		tell_other(connection, end);
		return;
	}
	way->end += (size_t)num;
	way->is_closed = !num;
	if (send_to(connection, to, num ? POLYCM_TCP_DATA : POLYCM_TCP_FIN, (size_t)num))
		fail(connection, -ENOBUFS);
}

short carry_events(const struct carry_connection *connection, enum carry_end end)
{
	const struct carry_way *in = &connection->to_end[end], *out = &connection->to_end[other(end)];
	short events = 0;

	if (connection->sockets[end] < 0)
		return 0;
	if (!connection->is_reached[end])
		return POLLOUT;
	if (!out->is_closed && kept(out) < WINDOW)
		events |= POLLIN;
	if (in->begin < in->arrived)
		events |= POLLOUT;
	return events;
}

void carry_ready(struct carry_connection *connection, enum carry_end end)
{
	if (!connection->is_reached[end]) {
		end_connecting(connection);
		return;
	}
	pass_on(connection, end);
	if (carry_events(connection, end) & POLLIN)
		take_data(connection, end);
}

/* ------------------------------------------------------------------------
 * What the network brings.
 */

static void take_reset(struct carry_connection *connection, enum carry_end end)
{
	if (connection->held >= 0)
		fail(connection, -ECONNREFUSED);
	else
		reset_socket(connection, end);
}

/* Of the program's socket at that end. */
static uint64_t cookie_of(const struct carry_connection *connection, enum carry_end end)
{
	union turn_address from = connection->ends[CARRY_CLIENT];

	if (end == CARRY_CLIENT)
		return connection->cookie;
	carry_set_port(&from, connection->port);
	return carry_cookie(&from, &connection->ends[CARRY_SERVER]);
}

/* The end that sent in vain gets an error; the other one learns nothing of it. */
static void give_up(struct carry_connection *connection, enum carry_end sender)
{
	if (connection->held >= 0) {
		fail(connection, -ETIMEDOUT);
		return;
	}
	if (connection->sockets[sender] >= 0)
		carry_tells->reset_means(cookie_of(connection, sender), ETIMEDOUT);
	reset_socket(connection, sender);
}

void carry_arrived(const struct polycm_tcp_segment *segment)
{
	struct carry_connection *connection = find(segment->connection);
	const enum carry_end end = segment->to_server ? CARRY_SERVER : CARRY_CLIENT;
	struct carry_way *way;

	if (!connection)
		return;
	way = &connection->to_end[end];
	switch (segment->kind) {
	case POLYCM_TCP_SYN:
		take_syn(connection);
		return;
	case POLYCM_TCP_SYN_ACK:
		take_syn_ack(connection);
		return;
	case POLYCM_TCP_RST:
	case POLYCM_TCP_REFUSED:
		take_reset(connection, end);
		return;
	case POLYCM_TCP_GIVES_UP:
		give_up(connection, other(end));
		return;
	case POLYCM_TCP_ACK:
	case POLYCM_TCP_DATA:
	case POLYCM_TCP_FIN:
		break;
	}
	if (segment->to_server)
		begin_server(connection);
	if (segment->kind == POLYCM_TCP_ACK)
		return;
	if (connection->sockets[end] < 0) {
		/* Nobody is there any more. */
		(void)send_to(connection, other(end), POLYCM_TCP_RST, 0);
		return;
	}
	if (segment->kind == POLYCM_TCP_FIN)
		way->ends = true;
	else if (segment->len <= way->end - way->arrived)
		way->arrived += segment->len;
	pass_on(connection, end);
}

/* Both ends have closed, and know it of each other; or there is nobody who could. */
static bool has_ended(const struct carry_connection *connection)
{
	if (connection->held >= 0)
		return false;
	for (enum carry_end end = 0; end < CARRY_ENDS; end++)
		if (connection->sockets[end] >= 0 && !connection->to_end[end].has_ended)
			return false;
	return true;
}

void carry_forget_ended(void)
{
	struct carry_connection *connection, *next;

	DL_FOREACH_SAFE(carry_connections, connection, next) {
		if (!has_ended(connection))
			continue;
		close_socket(connection, CARRY_CLIENT);
		close_socket(connection, CARRY_SERVER);
		DL_DELETE(carry_connections, connection);
		free(connection);
	}
}
