/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * provider-acmesock.c - a whole transport without the kernel's RDMA CM, to copy
 * from.  Begin here: this file has the plugin and its operations.  The others
 * are acmesock.h (the structs and states), acmesock-conn.c (sockets, and events
 * from what arrives), acmesock-verbs.c (the device) and acmesock-data.c (the
 * data path).
 *
 * It connects processes of one user on one host through Unix sockets, and
 * brings its own device, "acme0", which libibverbs does not know.  Every
 * address in 127.0.0.0/8 is the device's.  It has RC queue pairs with send,
 * receive, RDMA write and RDMA read.
 *
 * The protocol.  A port is an abstract Unix socket whose name has the port's
 * number.  A connection is one SOCK_SEQPACKET socket, so each frame arrives
 * whole or not at all.  The connection messages and the data share it:
 *
 *	active side	CONNECT ->
 *	passive side	<- ACCEPT or REJECT
 *	active side	READY ->		the passive side is established
 *	both		SEND, WRITE, READ ->, <- REPLY
 *	both		end of file: the peer disconnected, or its process died
 *
 * A queue pair has one request on its way at a time and waits for its REPLY.
 * So what a socket must hold is bounded (a request, a reply, a connection
 * message), sending never blocks, and there is no queue of outgoing frames.
 *
 * Ownership.  A struct conn is the core's: the area of an id.  It lives until
 * free(), but is on our list only until stop().  Verbs objects are ours from
 * create to destroy.  A conn and a QP that belong together point at each other;
 * the one that ends first clears both pointers.
 *
 * Threads.  acme.lock protects everything.  post_event() and child_create() may
 * be called with it held, since they never call back.  One thread waits for the
 * sockets.  It knows them by number, not by pointer: a conn may have ended
 * between epoll_wait() and the lock.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "acmesock.h"

const struct polycm_core *core;
struct acme acme = { .lock = PTHREAD_MUTEX_INITIALIZER, .acked = PTHREAD_COND_INITIALIZER };

/* ------------------------------------------------------------------------
 * The thread, and fork().
 */

static void *run(void *arg)
{
	struct epoll_event event;
	struct conn *conn;

	for (;;) {
		if (epoll_wait(acme.epoll, &event, 1, -1) < 1)
			continue;	/* a debugger or SIGCONT interrupts it, too */
		if (!event.data.u32)
			break;		/* acme.wake: the provider ends */
		pthread_mutex_lock(&acme.lock);
		conn = conn_find(event.data.u32);
		if (conn && conn->state == LISTENING)
			conn_arrive(conn);
		else if (conn)
			conn_read(event.data.u32, event.events & (EPOLLRDHUP | EPOLLHUP));
		pthread_mutex_unlock(&acme.lock);
	}
	return arg;
}

/* With the lock held.  Again in a child that fork() made, which has no thread. */
static int start_thread(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	sigset_t all, old;
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
	/* The program's signals are for the program's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&acme.thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
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

static void before_fork(void)
{
	pthread_mutex_lock(&acme.lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&acme.lock);
}

/*
 * The connections stay the parent's.  A copy of their sockets here would keep
 * them open after the parent has ended, so that no peer would notice.
 */
static void in_child(void)
{
	for (struct conn *conn = acme.conns; conn; conn = conn->next) {
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

/* ------------------------------------------------------------------------
 * The operations.  The core calls one at a time for each id.
 */

static int init(struct polycm_module *module, void **ret_ctx)
{
	*ret_ctx = module;	/* for enumerate() */
	return -pthread_atfork(before_fork, after_fork, in_child);
}

static void fini(void *ctx)
{
	uint64_t one = 1;

	(void)ctx;
	if (acme.has_thread && write(acme.wake, &one, sizeof(one)) == sizeof(one)) {
		pthread_join(acme.thread, NULL);
		close(acme.epoll);
		close(acme.wake);
		acme.has_thread = false;
	}
	if (acme.device)
		core->device_remove(acme.device);
	acme.device = NULL;
}

static int enumerate(void *ctx)
{
	const struct polycm_device_info info = {
		.size = sizeof(info), .name = "acme0", .transport = "acmesock", .verbs = &acme_device,
	};

	return acme.device ? 0 : core->device_add(ctx, &info, &acme.device);
}

static bool is_wildcard(const struct sockaddr_in *addr)
{
	return addr->sin_addr.s_addr == htonl(INADDR_ANY);
}

static bool is_ours(const struct sockaddr *addr)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

	return addr->sa_family == AF_INET &&
	       (is_wildcard(in) || ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET);
}

static int match(void *ctx, const struct sockaddr *src, const struct sockaddr *dst)
{
	(void)ctx;
	return (!src || is_ours(src)) && (!dst || is_ours(dst)) ? 0 : -ENODEV;
}

static int op_open(void *ctx, struct polycm_id *id, void *priv, const struct polycm_open *how)
{
	struct conn *conn = priv;
	int r;

	(void)ctx;
	/* First of all, since free() follows after an error, too. */
	conn->id = id;
	conn->fd = -1;
	if (how->qp_type != IBV_QPT_RC) {
		core->why("acmesock has no datagrams");
		return -EOPNOTSUPP;
	}
	pthread_mutex_lock(&acme.lock);
	r = start_thread();
	if (!r)
		conn_add(conn);
	pthread_mutex_unlock(&acme.lock);
	return r;
}

static int do_bind(struct conn *conn, const struct sockaddr *addr)
{
	int r;

	if (conn->state != IDLE)
		return -EINVAL;
	if (!is_ours(addr))
		return -ENODEV;
	r = conn_take_port(conn, (const struct sockaddr_in *)addr);
	if (!r)
		conn->state = BOUND;
	return r;
}

/* rdma_resolve_addr() without a source binds the id to 127.0.0.1 and a free port. */
static int do_resolve_addr(struct conn *conn, const struct sockaddr *src,
			   const struct sockaddr *dst)
{
	struct sockaddr_in loopback = { .sin_family = AF_INET };
	int r;

	loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (conn->state != IDLE && conn->state != BOUND)
		return -EINVAL;
	if (!is_ours(dst))
		return -ENODEV;
	r = conn->state == IDLE ? do_bind(conn, src ? src : (struct sockaddr *)&loopback) : 0;
	if (r)
		return r;
	if (is_wildcard(&conn->src))
		conn->src.sin_addr = loopback.sin_addr;
	conn->dst = *(const struct sockaddr_in *)dst;
	if (is_wildcard(&conn->dst))
		conn->dst.sin_addr = loopback.sin_addr;
	conn->state = ADDRESSED;
	conn_post_plain(conn, RDMA_CM_EVENT_ADDR_RESOLVED);
	return 0;
}

/* The route is known at once: there is one. */
static int do_resolve_route(struct conn *conn)
{
	if (conn->state != ADDRESSED)
		return -EINVAL;
	conn->state = ROUTED;
	conn_post_plain(conn, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return 0;
}

static int do_listen(struct conn *conn, int backlog)
{
	const struct sockaddr_in any = { .sin_family = AF_INET };
	int r = conn->state == IDLE ? do_bind(conn, (const struct sockaddr *)&any) : 0;

	if (!r && conn->state != BOUND)
		r = -EINVAL;
	if (!r && listen(conn->fd, backlog))
		r = -errno;
	if (!r)
		r = conn_watch(conn, EPOLL_CTL_ADD);
	if (!r)
		conn->state = LISTENING;
	return r;
}

/* CONNECT or ACCEPT.  The depths go as this side sees them; conn_post() swaps them. */
static int send_param(struct conn *conn, enum frame_type type, const struct polycm_conn_param *param)
{
	const struct frame_head head = {
		.type = (uint8_t)type,
		.qp_num = param->qp_num,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth,
		.flow_control = param->flow_control,
		.retry_count = param->retry_count,
		.rnr_retry_count = param->rnr_retry_count,
		.srq = param->srq,
		.src = conn->src,
		.dst = conn->dst,
	};

	if (param->private_data_len > MAX_PRIVATE) {
		core->why("%u bytes of private data, there is room for %u", param->private_data_len,
			  MAX_PRIVATE);
		return -EINVAL;
	}
	qp_attach(param->qp_num, conn);
	conn_message(conn, &head, param->private_data, param->private_data_len);
	return 0;
}

/*
 * The outcome is an event, even if it is known at once.  Nothing here waits: a
 * connect() to a Unix socket succeeds, or fails, without the peer's program.
 */
static int do_connect(struct conn *conn, const struct polycm_conn_param *param)
{
	struct sockaddr_un name;
	socklen_t len = port_name(&name, ntohs(conn->dst.sin_port));
	int err = 0, r;

	if (conn->state != ROUTED)
		return -EINVAL;
	if (connect(conn->fd, (struct sockaddr *)&name, len))
		err = errno;
	else if (!is_own_user(conn->fd))
		err = EPERM;
	if (err) {
		conn->state = ENDED;
		if (err == EAGAIN)
			(void)conn_post(conn, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT,
					"the listener's queue is full", NULL, NULL, 0);
		else
			(void)conn_post(conn, RDMA_CM_EVENT_REJECTED, REASON_NO_LISTENER, NULL, NULL,
					NULL, 0);
		return 0;
	}
	r = send_param(conn, FRAME_CONNECT, param);
	if (!r)
		r = conn_watch(conn, EPOLL_CTL_ADD);
	if (!r)
		conn->state = CONNECTING;
	return r;
}

static int do_accept(struct conn *conn, const struct polycm_conn_param *param)
{
	int r = conn->state == REQUESTED ? send_param(conn, FRAME_ACCEPT, param) : -EINVAL;

	if (!r)
		conn->state = ACCEPTED;
	return r;
}

/* Reason 0 is rdma_reject(): the program's own, for which IB's number is 28. */
static int do_reject(struct conn *conn, const void *data, uint8_t len, uint8_t reason)
{
	const struct frame_head head = {
		.type = FRAME_REJECT, .status = reason ? reason : REASON_CONSUMER,
	};

	if (conn->state != REQUESTED || len > MAX_PRIVATE)
		return -EINVAL;
	conn_message(conn, &head, data, len);
	conn_end(conn);
	return 0;
}

static int do_establish(struct conn *conn)
{
	const struct frame_head head = { .type = FRAME_READY };

	if (conn->state != ANSWERED)
		return -EINVAL;
	conn_message(conn, &head, NULL, 0);
	conn->state = CONNECTED;
	return 0;
}

/* The peer hears of it from the end of its socket.  Again is no error: both sides may begin. */
static int do_disconnect(struct conn *conn)
{
	bool was_connected = conn->state == CONNECTED || conn->state == ACCEPTED ||
			     conn->state == ANSWERED;

	if (!was_connected && conn->state != ENDED)
		return -EINVAL;
	if (was_connected) {
		conn_end(conn);
		conn_post_plain(conn, RDMA_CM_EVENT_DISCONNECTED);
	}
	return 0;
}

/* Each operation on an id: the lock around what it does. */
#define OPERATION(name, parameters, arguments)				\
static int op_##name parameters						\
{									\
	struct conn *conn = priv;					\
	int r;								\
									\
	pthread_mutex_lock(&acme.lock);					\
	r = do_##name arguments;					\
	pthread_mutex_unlock(&acme.lock);				\
	return r;							\
}

OPERATION(bind, (void *priv, const struct sockaddr *addr), (conn, addr))
OPERATION(resolve_addr, (void *priv, const struct sockaddr *src, const struct sockaddr *dst,
			 int timeout_ms __attribute__((unused))), (conn, src, dst))
OPERATION(resolve_route, (void *priv, int timeout_ms __attribute__((unused))), (conn))
OPERATION(listen, (void *priv, int backlog), (conn, backlog))
OPERATION(connect, (void *priv, const struct polycm_conn_param *param), (conn, param))
OPERATION(accept, (void *priv, const struct polycm_conn_param *param), (conn, param))
OPERATION(reject, (void *priv, const void *data, uint8_t len, uint8_t reason),
	  (conn, data, len, reason))
OPERATION(establish, (void *priv), (conn))
OPERATION(disconnect, (void *priv), (conn))

static int op_init_qp_attr(void *priv, struct ibv_qp_attr *attr, int *ret_mask)
{
	(void)priv;
	return qp_attr(attr, ret_mask);
}

/* Where the id is.  One bound to 0.0.0.0 is on no device yet. */
static int op_query(void *priv, struct polycm_route_info *ret_info)
{
	const struct conn *conn = priv;

	pthread_mutex_lock(&acme.lock);
	if (conn->state != IDLE) {
		memcpy(&ret_info->src, &conn->src, sizeof(conn->src));
		if (conn->dst.sin_family)
			memcpy(&ret_info->dst, &conn->dst, sizeof(conn->dst));
		if (!is_wildcard(&conn->src)) {
			ret_info->device = acme.device;
			ret_info->port_num = 1;
		}
	}
	pthread_mutex_unlock(&acme.lock);
	return 0;
}

/* The peer hears of it now.  stop() takes the conn away from the thread. */
static void op_close(void *priv)
{
	struct conn *conn = priv;

	pthread_mutex_lock(&acme.lock);
	if (conn->fd >= 0)
		conn_end(conn);
	pthread_mutex_unlock(&acme.lock);
}

/* Sockets that this listener accepted and whose CONNECT is not here yet end with it. */
static void op_stop(void *priv)
{
	struct conn *conn = priv, *child, *next;

	pthread_mutex_lock(&acme.lock);
	for (child = acme.conns; child; child = next) {
		next = child->next;
		if (child->state == ARRIVED && child->listener == conn->number)
			conn_ended(child);
	}
	conn_remove(conn);
	pthread_mutex_unlock(&acme.lock);
}

/* Nothing is left that priv refers to. */
static void op_free(void *priv)
{
	(void)priv;
}

/* ------------------------------------------------------------------------
 * What the core gets to know.
 */

static const struct polycm_transport rules = {
	.size = sizeof(rules),
	.shape = POLYCM_RULES_SHAPE,
	.name = "acmesock",
	.description = "Acme's sockets between processes of one host",
	.protocol = POLYCM_PROTO_OTHER,
	.services = POLYCM_SVC_ESTABLISH | POLYCM_SVC_IMM,
	.flags = POLYCM_T_EXACT_LENGTH,
	.node_type = IBV_NODE_CA,
	.transport_type = IBV_TRANSPORT_IB,
	.link_layer = IBV_LINK_LAYER_ETHERNET,
	.limit = { [POLYCM_KIND_RC] = { MAX_PRIVATE, MAX_PRIVATE, MAX_PRIVATE } },
	.capacity = { [POLYCM_KIND_RC] = { MAX_PRIVATE, MAX_PRIVATE, MAX_PRIVATE } },
	.max_retry_count = 7,
	.max_rnr_retry_count = 7,
	.reject_domain = POLYCM_REJECT_REASON,
	.consumer_reject_status = REASON_CONSUMER,
	.refused_status = REASON_NO_LISTENER,
	.max_responder_resources = MAX_RD_ATOMIC,
	.max_initiator_depth = MAX_RD_ATOMIC,
};

static const struct polycm_ops ops = {
	.size = sizeof(ops),
	.init = init, .fini = fini, .enumerate = enumerate, .match = match,
	.open = op_open, .bind = op_bind,
	.resolve_addr = op_resolve_addr, .resolve_route = op_resolve_route,
	.listen = op_listen, .connect = op_connect, .accept = op_accept, .reject = op_reject,
	.establish = op_establish, .disconnect = op_disconnect,
	.init_qp_attr = op_init_qp_attr, .query = op_query,
	.close = op_close, .stop = op_stop, .free = op_free,
};

static const struct polycm_provider provider = {
	.size = sizeof(provider),
	.abi_minor = POLYCM_ABI_MINOR,
	.name = "acmesock",
	.version = "1.0",
	.description = "processes of one host over Unix sockets",
	/* It would take 127.0.0.1 away from other providers. */
	.flags = POLYCM_PROVIDER_ON_REQUEST,
	.id_size = sizeof(struct conn),
	.transport = &rules,
	.ops = &ops,
};

/* The one function that the plugin exports. */
__attribute__((visibility("default")))
int polycm_provider_query_v1(const struct polycm_core *its, const struct polycm_provider **ret_provider)
{
	core = its;
	*ret_provider = &provider;
	return 0;
}
