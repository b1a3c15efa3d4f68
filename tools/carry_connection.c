/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * carry_connection.c - a TCP connection between two programs: what they send, and its end.
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
static struct carry_connection *by_number;
static struct carry_connection *touched;	/* since carry_forget_ended() */

/* It may wait for something else now, or have ended. */
static void touch(struct carry_connection *connection)
{
	if (connection->is_touched)
		return;
	connection->is_touched = true;
	LL_PREPEND2(touched, connection, next_touched);
}

void carry_add(struct carry_connection *connection)
{
	DL_APPEND(carry_connections, connection);
	HASH_ADD(hh, by_number, number, sizeof(connection->number), connection);
	touch(connection);
}

struct carry_connection *carry_find(uint32_t number)
{
	struct carry_connection *connection;

	HASH_FIND(hh, by_number, &number, sizeof(number), connection);
	return connection;
}

size_t carry_num_connections(void)
{
	return HASH_COUNT(by_number);
}

int carry_send(const struct carry_connection *connection, enum carry_end end,
	       enum polycm_tcp_kind kind, size_t len)
{
	const struct polycm_tcp_segment segment = {
		.connection = connection->number, .to_server = end == CARRY_SERVER, .kind = kind,
		.len = (uint32_t)len,
	};

	return carry_network->send(&segment, &connection->ends[carry_other(end)].sa,
				   &connection->ends[end].sa);
}

void carry_close(struct carry_connection *connection, enum carry_end end)
{
	struct carry_way *way = &connection->to_end[end];

	if (connection->sockets[end] >= 0)
		close(connection->sockets[end]);
	connection->watched[end] = 0;
	if (end == CARRY_CLIENT) {
		carry_leave_service(connection->service);
		connection->service = NULL;
	}
	connection->has_begun |= end == CARRY_SERVER;
	connection->sockets[end] = -1;
	free(way->bytes);
	/* What the other one still sends is answered with a RST. */
	*way = (struct carry_way){ .is_closed = way->is_closed, .ends = true, .has_ended = true };
}

void carry_reset(struct carry_connection *connection, enum carry_end end)
{
	const struct linger at_once = { .l_onoff = 1 };

	if (connection->sockets[end] >= 0)
		setsockopt(connection->sockets[end], SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	carry_close(connection, end);
}

void carry_tell_other(struct carry_connection *connection, enum carry_end end)
{
	carry_close(connection, end);
	(void)carry_send(connection, carry_other(end), POLYCM_TCP_RST, 0);
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

void carry_pass_on(struct carry_connection *connection, enum carry_end end)
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
			carry_tell_other(connection, end);
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
	struct carry_way *way = &connection->to_end[carry_other(end)];
	const enum carry_end to = carry_other(end);
	ssize_t num = recv(connection->sockets[end], make_room(way), MOST_DATA, MSG_DONTWAIT);

	if (num < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (num < 0) {
		carry_tell_other(connection, end);
		return;
	}
	way->end += (size_t)num;
	way->is_closed = !num;
	if (carry_send(connection, to, num ? POLYCM_TCP_DATA : POLYCM_TCP_FIN, (size_t)num))
		carry_fail(connection, -ENOBUFS);
}

short carry_events(const struct carry_connection *connection, enum carry_end end)
{
	const struct carry_way *in = &connection->to_end[end];
	const struct carry_way *out = &connection->to_end[carry_other(end)];
	short events = 0;

	if (connection->sockets[end] < 0)
		return 0;
	if (!connection->is_reached[end])
		return POLLOUT;
	/* Without a FIN from us it hangs up by a RST only. */
	if (!in->has_ended)
		events |= POLLERR;
	if (!out->is_closed && kept(out) < WINDOW)
		events |= POLLIN;
	if (in->begin < in->arrived)
		events |= POLLOUT;
	return events;
}

void carry_ready(struct carry_connection *connection, enum carry_end end, short events)
{
	touch(connection);
	if (!connection->is_reached[end]) {
		carry_end_connecting(connection);
		return;
	}
	carry_pass_on(connection, end);
	if (carry_events(connection, end) & POLLIN)
		take_data(connection, end);
	else if (connection->sockets[end] >= 0 && events & (POLLERR | POLLHUP))
		carry_tell_other(connection, end);
}

/* ------------------------------------------------------------------------
 * What the network brings.
 */

static void take_reset(struct carry_connection *connection, enum carry_end end)
{
	if (connection->held >= 0)
		carry_fail(connection, -ECONNREFUSED);
	else
		carry_reset(connection, end);
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

/* The end whose segments do not arrive gets an error; the other end is told nothing. */
static void give_up(struct carry_connection *connection, enum carry_end sender)
{
	if (connection->held >= 0) {
		carry_fail(connection, -ETIMEDOUT);
		return;
	}
	if (connection->sockets[sender] >= 0)
		carry_tells->reset_means(cookie_of(connection, sender), ETIMEDOUT);
	carry_reset(connection, sender);
	if (!connection->has_begun)
		carry_close(connection, CARRY_SERVER);
}

void carry_arrived(const struct polycm_tcp_segment *segment)
{
	struct carry_connection *connection = carry_find(segment->connection);
	const enum carry_end end = segment->to_server ? CARRY_SERVER : CARRY_CLIENT;
	struct carry_way *way;

	if (!connection)
		return;
	touch(connection);
	way = &connection->to_end[end];
	switch (segment->kind) {
	case POLYCM_TCP_SYN:
		carry_take_syn(connection);
		return;
	case POLYCM_TCP_SYN_ACK:
		carry_take_syn_ack(connection);
		return;
	case POLYCM_TCP_RST:
	case POLYCM_TCP_REFUSED:
		take_reset(connection, end);
		return;
	case POLYCM_TCP_GIVES_UP:
		give_up(connection, carry_other(end));
		return;
	case POLYCM_TCP_ACK:
	case POLYCM_TCP_DATA:
	case POLYCM_TCP_FIN:
		break;
	}
	if (segment->to_server)
		carry_begin_server(connection);
	if (segment->kind == POLYCM_TCP_ACK)
		return;
	if (connection->sockets[end] < 0) {
		/* Nobody is there any more. */
		(void)carry_send(connection, carry_other(end), POLYCM_TCP_RST, 0);
		return;
	}
	if (segment->kind == POLYCM_TCP_FIN)
		way->ends = true;
	else if (segment->len <= way->end - way->arrived)
		way->arrived += segment->len;
	carry_pass_on(connection, end);
}

/* Both ends have closed, and know it of each other; or there is nobody who could. */
static bool has_ended(const struct carry_connection *connection)
{
	if (connection->held >= 0 || !connection->has_begun)
		return false;
	for (enum carry_end end = 0; end < CARRY_ENDS; end++)
		if (connection->sockets[end] >= 0 && !(connection->to_end[end].has_ended &&
						       connection->to_end[carry_other(end)].is_closed))
			return false;
	return true;
}

static void forget(struct carry_connection *connection)
{
	carry_close(connection, CARRY_CLIENT);
	carry_close(connection, CARRY_SERVER);
	HASH_DEL(by_number, connection);
	DL_DELETE(carry_connections, connection);
	free(connection);
}

void carry_forget_ended(void)
{
	struct carry_connection *connection, *next;

	LL_FOREACH_SAFE2(touched, connection, next, next_touched) {
		connection->is_touched = false;
		if (has_ended(connection)) {
			forget(connection);
			continue;
		}
		for (enum carry_end end = 0; end < CARRY_ENDS; end++)
			carry_watch(connection, end);
	}
	touched = NULL;
}
