/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * acmesock-conn.c - connections of provider-acmesock.so: their sockets, what
 * arrives on them, the events that follow, and the thread that waits for it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "acmesock.h"

#define FIRST_FREE_PORT	32768u

/* ------------------------------------------------------------------------
 * Objects.
 */

void object_add(struct object **list, struct object *object, void *self)
{
	do
		object->number = ++acme.last_number & 0xffffff;
	while (!object->number || object_find(*list, object->number));
	object->self = self;
	object->next = *list;
	*list = object;
}

void object_remove(struct object **list, struct object *object)
{
	while (*list && *list != object)
		list = &(*list)->next;
	if (*list)
		*list = object->next;
}

void *object_find(struct object *list, uint32_t number)
{
	while (list && list->number != number)
		list = list->next;
	return list ? list->self : NULL;
}

/* ------------------------------------------------------------------------
 * Sockets.
 */

void conn_send(struct conn *conn, const struct frame_head *head, const void *data, size_t len)
{
	struct frame_head full = *head;
	struct iovec parts[2] = { { &full, sizeof(full) }, { (void *)(uintptr_t)data, len } };
	struct msghdr msg = { .msg_iov = parts, .msg_iovlen = 2 };

	full.magic = FRAME_MAGIC;
	if (sendmsg(conn->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EPIPE)
		(void)shutdown(conn->fd, SHUT_RDWR);	/* never full, so it is broken */
}

/* Listen to the socket, or while it is paused only to its end. */
int conn_watch(struct conn *conn, int op)
{
	struct epoll_event event = {
		.events = EPOLLRDHUP | (conn->paused ? 0 : EPOLLIN),
		.data.u32 = conn->object.number,
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

/* For all that may be on its way at a time. */
static void make_room(int fd)
{
	int size = 4 * (int)MAX_DATA;

	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

int conn_take_port(struct conn *conn, const struct sockaddr_in *addr)
{
	unsigned int port = ntohs(addr->sin_port), last = port;
	struct sockaddr_un name;
	int fd, err;

	if (!port) {
		port = FIRST_FREE_PORT;
		last = UINT16_MAX;
	}
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	make_room(fd);
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
 * Events.
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
		param->qp_num = frame->head.qp_num;
	}
	return core->post_event(conn->id, &event);
}

void conn_post_plain(struct conn *conn, enum rdma_cm_event_type type)
{
	(void)conn_post(conn, type, 0, NULL, NULL, NULL, 0);
}

/* ------------------------------------------------------------------------
 * What arrives.
 */

/* Nothing of ours points to it any more. */
void conn_remove(struct conn *conn)
{
	object_remove(&acme.conns, &conn->object);
	if (conn->qp)
		qp_fail(conn->qp);
	qp_detach(conn->qp);
	if (conn->fd >= 0)
		close(conn->fd);	/* and leaves the epoll set */
	conn->fd = -1;
}

void conn_end(struct conn *conn)
{
	(void)epoll_ctl(acme.epoll, EPOLL_CTL_DEL, conn->fd, NULL);
	(void)shutdown(conn->fd, SHUT_RDWR);
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
	struct conn *listener = object_find(acme.conns, child->listener);

	child->src = frame->head.dst;
	child->dst = frame->head.src;
	child->state = REQUESTED;
	/* Posted, it is the core's.  Otherwise it is still ours to destroy. */
	if (!listener || conn_post(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0, NULL, child, frame,
				   len)) {
		child->state = ARRIVED;
		conn_ended(child);
	}
}

bool is_loopback(const struct sockaddr_in *addr)
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

/* A frame that has arrived whole.  false: not what the peer may send now. */
static bool on_frame(struct conn *conn, const struct frame *frame, size_t size)
{
	uint32_t len = (uint32_t)(size - sizeof(frame->head));

	if (size < sizeof(frame->head) || frame->head.magic != FRAME_MAGIC)
		return false;
	conn->frames++;
	if (frame->head.type < FRAME_SEND)
		return on_message(conn, frame, len);
	if (conn->state != CONNECTED && conn->state != ACCEPTED && conn->state != ANSWERED)
		return false;
	qp_receive(conn->qp, frame, len);
	return true;
}

/* Is the next frame one that the QP cannot take yet?  Then nothing is read until it can. */
static bool must_wait(struct conn *conn)
{
	struct frame_head head = { .type = 0 };

	return recv(conn->fd, &head, sizeof(head), MSG_PEEK | MSG_DONTWAIT) == sizeof(head) &&
	       head.type >= FRAME_SEND && !qp_takes(conn->qp, head.type);
}

void conn_resume(struct conn *conn)
{
	if (!conn->paused)
		return;
	conn->paused = false;
	if (conn_watch(conn, EPOLL_CTL_MOD))
		conn_ended(conn);
}

static void read_frame(struct conn *conn, bool at_end)
{
	ssize_t size;

	/* What a QP cannot take when the peer has gone is lost, as on any transport. */
	if (!at_end && must_wait(conn)) {
		conn->paused = true;
		if (conn_watch(conn, EPOLL_CTL_MOD))
			conn_ended(conn);
		return;
	}
	size = recv(conn->fd, &acme.frame, sizeof(acme.frame), MSG_DONTWAIT);
	if (size < 0 && errno == EAGAIN)
		return;
	/* Nothing at all is the end of file. */
	if (size <= 0 || !on_frame(conn, &acme.frame, (size_t)size))
		conn_ended(conn);
}

/* A process wants to connect.  What it wants it says in its first frame. */
static void accept_socket(struct conn *listener)
{
	int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct polycm_id *id;
	struct conn *child;
	void *priv;

	if (fd < 0)
		return;
	if (!is_own_user(fd) || core->child_create(listener->id, &id, &priv)) {
		close(fd);
		return;
	}
	make_room(fd);
	child = priv;
	child->id = id;
	child->fd = fd;
	child->state = ARRIVED;
	child->listener = listener->object.number;
	object_add(&acme.conns, &child->object, child);
	if (conn_watch(child, EPOLL_CTL_ADD))
		conn_ended(child);
}

/* One frame; for the next one the thread comes again. */
void conn_ready(uint32_t number, bool at_end)
{
	struct conn *conn = object_find(acme.conns, number);

	if (conn && conn->state == LISTENING)
		accept_socket(conn);
	else if (conn && conn->state != ENDED)
		read_frame(conn, at_end);
}

/* ------------------------------------------------------------------------
 * The thread, and fork().
 */

static void *run(void *arg)
{
	struct epoll_event event;

	for (;;) {
		if (epoll_wait(acme.epoll, &event, 1, -1) < 1)
			continue;	/* a debugger or SIGCONT interrupts it, too */
		if (!event.data.u32)
			break;		/* acme.wake: the provider ends */
		pthread_mutex_lock(&acme.lock);
		conn_ready(event.data.u32, event.events & (EPOLLRDHUP | EPOLLHUP));
		pthread_mutex_unlock(&acme.lock);
	}
	return arg;
}

/* The program's signals are for the program's threads, but for those that a thread itself causes. */
static int create_thread(void)
{
	static const int faults[] = { SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP };
	sigset_t others, old;
	int err;

	sigfillset(&others);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&others, faults[i]);
	pthread_sigmask(SIG_BLOCK, &others, &old);
	err = pthread_create(&acme.thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

int start_thread(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int err;

	if (acme.has_thread)
		return 0;
	acme.epoll = epoll_create1(EPOLL_CLOEXEC);
	acme.wake = eventfd(0, EFD_CLOEXEC);
	if (acme.epoll < 0 || acme.wake < 0 ||
	    epoll_ctl(acme.epoll, EPOLL_CTL_ADD, acme.wake, &event)) {
		err = errno;
		goto err_close;
	}
	err = create_thread();
	if (err)
		goto err_close;
	acme.has_thread = true;
	return 0;

err_close:
	if (acme.epoll >= 0)
		close(acme.epoll);
	if (acme.wake >= 0)
		close(acme.wake);
	return -err;
}

void stop_thread(void)
{
	uint64_t one = 1;

	if (!acme.has_thread || write(acme.wake, &one, sizeof(one)) != sizeof(one))
		return;
	pthread_join(acme.thread, NULL);
	close(acme.epoll);
	close(acme.wake);
	acme.has_thread = false;
}

/* For pthread_atfork(). */
void before_fork(void)
{
	pthread_mutex_lock(&acme.lock);
}

void after_fork(void)
{
	pthread_mutex_unlock(&acme.lock);
}

/*
 * The connections stay the parent's.  A copy of their sockets here would keep
 * them open after the parent has ended, so that no peer would notice.
 */
void in_child(void)
{
	for (struct object *object = acme.conns; object; object = object->next) {
		struct conn *conn = object->self;

		close(conn->fd);
		conn->fd = -1;
		qp_detach(conn->qp);
	}
	acme.conns = NULL;
	if (acme.has_thread) {
		close(acme.epoll);
		close(acme.wake);
	}
	acme.has_thread = false;
	after_fork();
}
