/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * acmesock-conn.c - connections of provider-acmesock.so: their sockets, what
 * arrives on them, and the events that follow.  All with the lock held.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "acmesock.h"

#define FIRST_FREE_PORT	32768u

/* ------------------------------------------------------------------------
 * Sockets.  All with the lock held.
 */

void conn_send(struct conn *conn, const struct frame_head *head, struct iovec *parts,
	       unsigned int num_parts)
{
	struct msghdr msg = { .msg_iov = parts, .msg_iovlen = num_parts };
	struct frame_head full = *head;

	full.magic = FRAME_MAGIC;
	parts[0] = (struct iovec){ &full, sizeof(full) };
	if (sendmsg(conn->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EPIPE)
		(void)shutdown(conn->fd, SHUT_RDWR);	/* never full, so it is broken */
}

void conn_message(struct conn *conn, const struct frame_head *head, const void *data, size_t len)
{
	struct iovec parts[2] = { [1] = { (void *)(uintptr_t)data, len } };

	conn_send(conn, head, parts, 2);
}

/* Listen to the socket, or while a SEND is held only to its end. */
int conn_watch(struct conn *conn, int op)
{
	struct epoll_event event = {
		.events = EPOLLRDHUP | (conn->held ? 0 : EPOLLIN), .data.u32 = conn->number,
	};

	return epoll_ctl(acme.epoll, op, conn->fd, &event) ? -errno : 0;
}

socklen_t port_name(struct sockaddr_un *name, unsigned int port)
{
	int len;

	*name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	len = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "acmesock/%u/%u",
		       (unsigned int)geteuid(), port);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

/* The name of a port is anybody's to take; only this user's processes are trusted. */
bool is_own_user(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) && peer.uid == geteuid();
}

/* A socket whose name is the port; port 0 takes a free one. */
int conn_take_port(struct conn *conn, const struct sockaddr_in *addr)
{
	unsigned int port = ntohs(addr->sin_port), last = port;
	struct sockaddr_un name;
	int fd, err, size = 4 * (int)MAX_DATA;

	if (!port) {
		port = FIRST_FREE_PORT;
		last = UINT16_MAX;
	}
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	while (bind(fd, (struct sockaddr *)&name, port_name(&name, port))) {
		err = -errno;
		if (err == -EADDRINUSE && port++ < last)
			continue;
		close(fd);
		return err;
	}
	conn->fd = fd;
	conn->src = *addr;
	conn->src.sin_port = htons((uint16_t)port);
	return 0;
}

/* ------------------------------------------------------------------------
 * Events.  All with the lock held.
 */

/*
 * The core copies all of it.  An error means that the id is closing or that the
 * program is out of memory; either way nobody is left to tell.
 */
int conn_post(struct conn *conn, enum rdma_cm_event_type type, int status, const char *why,
		struct conn *child, const struct frame *frame, uint32_t len)
{
	struct polycm_event event = {
		.size = sizeof(event), .type = type, .status = status, .why = why,
		.child = child ? child->id : NULL,
	};
	struct rdma_conn_param *param = &event.param.conn;

	if (frame) {
		param->private_data = len ? frame->data : NULL;
		param->private_data_len = (uint8_t)len;
		/* Each side is told what it is to provide: what the other side asked for. */
		param->responder_resources = frame->head.initiator_depth;
		param->initiator_depth = frame->head.responder_resources;
		param->flow_control = frame->head.flow_control;
		param->retry_count = frame->head.retry_count;
		param->rnr_retry_count = frame->head.rnr_retry_count;
		param->srq = frame->head.srq;
		param->qp_num = frame->head.qp_num;
	}
	return core->post_event(conn->id, &event);
}

void conn_post_plain(struct conn *conn, enum rdma_cm_event_type type)
{
	(void)conn_post(conn, type, 0, NULL, NULL, NULL, 0);
}

/* ------------------------------------------------------------------------
 * What arrives.  All with the lock held.
 */

struct conn *conn_find(uint32_t number)
{
	struct conn *conn;

	for (conn = acme.conns; conn && conn->number != number; conn = conn->next)
		;
	return conn;
}

void conn_add(struct conn *conn)
{
	conn->number = ++acme.last_number;
	conn->next = acme.conns;
	acme.conns = conn;
}

/* Nothing of ours points to it any more.  May be called twice. */
void conn_remove(struct conn *conn)
{
	struct conn **link;

	for (link = &acme.conns; *link && *link != conn; link = &(*link)->next)
		;
	if (*link)
		*link = conn->next;
	if (conn->qp)
		qp_fail(conn->qp);
	qp_detach(conn->qp);
	free(conn->held);
	conn->held = NULL;
	if (conn->fd >= 0)
		close(conn->fd);	/* and leaves the epoll set */
	conn->fd = -1;
}

/* This side ends the connection, or the peer has. */
void conn_end(struct conn *conn)
{
	(void)epoll_ctl(acme.epoll, EPOLL_CTL_DEL, conn->fd, NULL);
	(void)shutdown(conn->fd, SHUT_RDWR);
	free(conn->held);
	conn->held = NULL;
	conn->state = ENDED;
	if (conn->qp)
		qp_fail(conn->qp);
}

/* End of file: the peer disconnected, destroyed its id, or died. */
void conn_ended(struct conn *conn)
{
	enum conn_state state = conn->state;

	conn_end(conn);
	switch (state) {
	case ARRIVED:		/* the program never heard of it */
		conn_remove(conn);
		core->child_destroy(conn->id);
		break;
	case CONNECTING:
	case REQUESTED:
	case ACCEPTED:
	case ANSWERED:
		(void)conn_post(conn, RDMA_CM_EVENT_REJECTED, REASON_CONSUMER,
			   "the peer ended before it was connected", NULL, NULL, 0);
		break;
	case CONNECTED:
		conn_post_plain(conn, RDMA_CM_EVENT_DISCONNECTED);
		break;
	default:
		break;
	}
}

/* The first frame on an accepted socket. */
static void on_connect(struct conn *child, const struct frame *frame, uint32_t len)
{
	struct conn *listener = conn_find(child->listener);

	child->src = frame->head.dst;
	child->dst = frame->head.src;
	child->state = REQUESTED;
	/* Posted, it is the core's.  Otherwise it is still ours to destroy. */
	if (!listener || conn_post(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0, NULL, child, frame, len)) {
		child->state = ARRIVED;
		conn_ended(child);
	}
}

static bool is_loopback(const struct sockaddr_in *addr)
{
	return addr->sin_family == AF_INET &&
	       ntohl(addr->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* A connection message.  false: not what the peer may send now. */
static bool on_message(struct conn *conn, const struct frame *frame, uint32_t len)
{
	const struct frame_head *head = &frame->head;

	if (len > MAX_PRIVATE)
		return false;
	if (head->type == FRAME_CONNECT && conn->state == ARRIVED &&
	    is_loopback(&head->src) && is_loopback(&head->dst)) {
		on_connect(conn, frame, len);
	} else if (head->type == FRAME_ACCEPT && conn->state == CONNECTING) {
		conn->state = ANSWERED;
		(void)conn_post(conn, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, NULL, NULL, frame, len);
	} else if (head->type == FRAME_REJECT && conn->state == CONNECTING) {
		conn_end(conn);
		(void)conn_post(conn, RDMA_CM_EVENT_REJECTED, head->status, NULL, NULL, frame, len);
	} else if (head->type == FRAME_READY && conn->state == ACCEPTED) {
		conn->state = CONNECTED;
		conn_post_plain(conn, RDMA_CM_EVENT_ESTABLISHED);
	} else {
		return false;
	}
	return true;
}

/* Keep a frame until the QP can take it, and read no further. */
static void hold(struct conn *conn, const struct frame *frame, uint32_t len)
{
	size_t size = sizeof(frame->head) + len;
	int r = -ENOMEM;

	conn->held = malloc(size);
	if (conn->held) {
		memcpy(conn->held, frame, size);
		conn->held_len = len;
		r = conn_watch(conn, EPOLL_CTL_MOD);
	}
	if (r)
		conn_ended(conn);
}

void conn_resume(struct conn *conn)
{
	struct frame *frame = conn->held;

	if (!frame || !qp_receive(conn->qp, frame, conn->held_len))
		return;
	conn->held = NULL;
	free(frame);
	if (conn_watch(conn, EPOLL_CTL_MOD))
		conn_ended(conn);
}

/* Frames until there are none, or the QP cannot take one.  The conn may be gone afterwards. */
void conn_read(uint32_t number, bool at_end)
{
	struct frame *frame = &acme.frame;
	struct conn *conn;
	ssize_t size;
	uint32_t len;

	while ((conn = conn_find(number)) && conn->state != ENDED) {
		/* What a QP cannot take when the peer has gone is lost, as on any transport. */
		if (conn->held && !at_end)
			return;
		size = recv(conn->fd, frame, sizeof(*frame), MSG_DONTWAIT);
		if (size < 0 && errno == EAGAIN)
			return;
		if (size < (ssize_t)sizeof(frame->head) || frame->head.magic != FRAME_MAGIC) {
			conn_ended(conn);	/* 0: end of file; else no frame of ours */
			return;
		}
		len = (uint32_t)((size_t)size - sizeof(frame->head));
		if (frame->head.type < FRAME_SEND) {
			if (!on_message(conn, frame, len))
				conn_ended(conn);
		} else if (conn->state != CONNECTED && conn->state != ACCEPTED &&
			   conn->state != ANSWERED) {
			conn_ended(conn);
		} else if (!qp_receive(conn->qp, frame, len) && !at_end) {
			hold(conn, frame, len);
		}
	}
}

/* A process wants to connect.  What it wants it says in its first frame. */
void conn_arrive(struct conn *listener)
{
	int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int size = 4 * (int)MAX_DATA;
	struct polycm_id *id;
	struct conn *child;
	void *priv;

	if (fd < 0)
		return;
	if (!is_own_user(fd) || core->child_create(listener->id, &id, &priv)) {
		close(fd);
		return;
	}
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	child = priv;
	child->id = id;
	child->fd = fd;
	child->state = ARRIVED;
	child->listener = listener->number;
	conn_add(child);
	if (conn_watch(child, EPOLL_CTL_ADD))
		conn_ended(child);
}
