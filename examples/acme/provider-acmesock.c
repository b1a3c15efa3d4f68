/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * provider-acmesock.c - a whole transport without the kernel's RDMA CM, to copy
 * from.  Begin here: this file has the plugin and its operations.  The others
 * are acmesock.h (the structs and states), acmesock-conn.c (sockets, the thread,
 * and events from what arrives), acmesock-verbs.c (the device) and
 * acmesock-data.c (the data path).
 *
 * It connects processes of one user on one host through Unix sockets, and
 * brings its own device, "acme0", which libibverbs does not know.  Every
 * address in 127.0.0.0/8 is the device's.  It has RC queue pairs with send,
 * receive, RDMA write and RDMA read, with one buffer for each request.
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
 * Threads.  acme.lock protects everything.  post_event(), child_create() and
 * device_add() may be called with it held, since they never call back.  One thread waits for the
 * sockets.  It knows them by number, not by pointer: a conn may have ended
 * between epoll_wait() and the lock.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "acmesock.h"

const struct polycm_core *core;
struct acme acme = { .lock = PTHREAD_MUTEX_INITIALIZER, .acked = PTHREAD_COND_INITIALIZER };

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
	(void)ctx;
	stop_thread();
	if (acme.device)
		core->device_remove(acme.device);
	acme.device = NULL;
}

/* Any threads call this, at the same time. */
static int enumerate(void *ctx)
{
	const struct polycm_device_info info = {
		.size = sizeof(info),
		.name = "acme0",
		.transport = "acmesock",
		.verbs = &acme_device,
	};
	int r = 0;

	pthread_mutex_lock(&acme.lock);
	if (!acme.device)
		r = core->device_add(ctx, &info, &acme.device);
	pthread_mutex_unlock(&acme.lock);
	return r;
}

static bool is_wildcard(const struct sockaddr_in *addr)
{
	return addr->sin_addr.s_addr == htonl(INADDR_ANY);
}

static bool is_ours(const struct sockaddr *addr)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

	return addr->sa_family == AF_INET && (is_wildcard(in) || is_loopback(in));
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
		object_add(&acme.conns, &conn->object, conn);
	pthread_mutex_unlock(&acme.lock);
	return r;
}

/* The lock around what an operation does: it begins with enter() and returns leave(). */
static struct conn *enter(void *priv)
{
	pthread_mutex_lock(&acme.lock);
	return priv;
}

static int leave(int r)
{
	pthread_mutex_unlock(&acme.lock);
	return r;
}

static int bind_conn(struct conn *conn, const struct sockaddr *addr)
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

static int op_bind(void *priv, const struct sockaddr *addr)
{
	struct conn *conn = enter(priv);

	return leave(bind_conn(conn, addr));
}

/* rdma_resolve_addr() without a source binds the id to 127.0.0.1 and a free port. */
static int op_resolve_addr(void *priv, const struct sockaddr *src, const struct sockaddr *dst,
			   int timeout_ms)
{
	struct sockaddr_in loopback = { .sin_family = AF_INET };
	struct conn *conn = enter(priv);
	int r = 0;

	(void)timeout_ms;
	loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (conn->state != IDLE && conn->state != BOUND)
		return leave(-EINVAL);
	if (!is_ours(dst))
		return leave(-ENODEV);
	if (conn->state == IDLE)
		r = bind_conn(conn, src ? src : (struct sockaddr *)&loopback);
	if (r)
		return leave(r);
	if (is_wildcard(&conn->src))
		conn->src.sin_addr = loopback.sin_addr;
	conn->dst = *(const struct sockaddr_in *)dst;
	if (is_wildcard(&conn->dst))
		conn->dst.sin_addr = loopback.sin_addr;
	conn->state = ADDRESSED;
	conn_post_plain(conn, RDMA_CM_EVENT_ADDR_RESOLVED);
	return leave(0);
}

/* The route is known at once: there is one. */
static int op_resolve_route(void *priv, int timeout_ms)
{
	struct conn *conn = enter(priv);

	(void)timeout_ms;
	if (conn->state != ADDRESSED)
		return leave(-EINVAL);
	conn->state = ROUTED;
	conn_post_plain(conn, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return leave(0);
}

static int op_listen(void *priv, int backlog)
{
	const struct sockaddr_in any = { .sin_family = AF_INET };
	struct conn *conn = enter(priv);
	int r = conn->state == IDLE ? bind_conn(conn, (const struct sockaddr *)&any) : 0;

	if (!r && conn->state != BOUND)
		r = -EINVAL;
	if (!r && listen(conn->fd, backlog))
		r = -errno;
	if (!r)
		r = conn_watch(conn, EPOLL_CTL_ADD);
	if (!r)
		conn->state = LISTENING;
	return leave(r);
}

/* The core does not check it. */
static int check_length(unsigned int len)
{
	if (len <= MAX_PRIVATE)
		return 0;
	core->why("%u bytes of private data, there is room for %u", len, MAX_PRIVATE);
	return -EINVAL;
}

/* CONNECT or ACCEPT.  The depths go as this side sees them; conn_post() swaps them. */
static void send_param(struct conn *conn, enum frame_type type,
		       const struct polycm_conn_param *param)
{
	const struct frame_head head = {
		.type = (uint8_t)type,
		.qp_num = param->qp_num,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth,
		.src = conn->src,
		.dst = conn->dst,
	};

	qp_attach(param->qp_num, conn);
	conn_send(conn, &head, param->private_data, param->private_data_len);
}

static void send_reject(struct conn *conn, uint8_t reason, const void *data, uint8_t len)
{
	const struct frame_head head = { .type = FRAME_REJECT, .status = reason };

	conn_send(conn, &head, data, len);
	conn_end(conn);
}

/*
 * The outcome is an event, even if it is known at once.  Nothing here waits: a
 * connect() to a Unix socket succeeds, or fails, without the peer's program.
 */
static int op_connect(void *priv, const struct polycm_conn_param *param)
{
	struct conn *conn = enter(priv);
	struct sockaddr_un name;
	socklen_t len = port_name(&name, ntohs(conn->dst.sin_port));
	bool there;
	int r;

	/* Before anything happens: on error the state stays. */
	r = conn->state == ROUTED ? check_length(param->private_data_len) : -EINVAL;
	if (r)
		return leave(r);
	there = !connect(conn->fd, (struct sockaddr *)&name, len);
	if (!there && errno == EAGAIN) {
		conn->state = ENDED;
		(void)conn_post(conn, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT,
				"the listener's queue is full", NULL, NULL, 0);
		return leave(0);
	}
	if (!there || !is_own_user(conn->fd)) {
		conn->state = ENDED;
		(void)conn_post(conn, RDMA_CM_EVENT_REJECTED, REASON_NO_LISTENER, NULL, NULL, NULL,
				0);
		return leave(0);
	}
	r = conn_watch(conn, EPOLL_CTL_ADD);
	if (r) {
		conn_end(conn);
		(void)conn_post(conn, RDMA_CM_EVENT_UNREACHABLE, r, NULL, NULL, NULL, 0);
		return leave(0);
	}
	send_param(conn, FRAME_CONNECT, param);
	conn->state = CONNECTING;
	return leave(0);
}

/* The peer must not wait for an accept that failed. */
static int op_accept(void *priv, const struct polycm_conn_param *param)
{
	struct conn *conn = enter(priv);
	int r;

	if (conn->state != REQUESTED)
		return leave(-EINVAL);
	r = check_length(param->private_data_len);
	if (r) {
		send_reject(conn, REASON_CONSUMER, NULL, 0);
		return leave(r);
	}
	send_param(conn, FRAME_ACCEPT, param);
	conn->state = ACCEPTED;
	return leave(0);
}

/* Reason 0 is rdma_reject(): the program's own, for which IB's number is 28. */
static int op_reject(void *priv, const void *data, uint8_t len, uint8_t reason)
{
	struct conn *conn = enter(priv);
	int r = conn->state == REQUESTED ? check_length(len) : -EINVAL;

	if (!r)
		send_reject(conn, reason ? reason : REASON_CONSUMER, data, len);
	return leave(r);
}

static int op_establish(void *priv)
{
	struct conn *conn = enter(priv);

	if (conn->state != ANSWERED)
		return leave(-EINVAL);
	conn_send(conn, &(struct frame_head){ .type = FRAME_READY }, NULL, 0);
	conn->state = CONNECTED;
	return leave(0);
}

/* The peer hears of it from the end of its socket.  Again is no error: both sides may begin. */
static int op_disconnect(void *priv)
{
	struct conn *conn = enter(priv);

	if (conn->state == ENDED)
		return leave(0);
	if (conn->state != CONNECTED && conn->state != ACCEPTED && conn->state != ANSWERED)
		return leave(-EINVAL);
	conn_end(conn);
	conn_post_plain(conn, RDMA_CM_EVENT_DISCONNECTED);
	return leave(0);
}

static int op_init_qp_attr(void *priv, struct ibv_qp_attr *attr, int *ret_mask)
{
	(void)priv;
	return qp_attr(attr, ret_mask);
}

/* Where the id is.  One bound to 0.0.0.0 is on no device yet. */
static int op_query(void *priv, struct polycm_route_info *ret_info)
{
	const struct conn *conn = enter(priv);

	if (conn->state == IDLE)
		return leave(0);
	memcpy(&ret_info->src, &conn->src, sizeof(conn->src));
	if (conn->dst.sin_family)
		memcpy(&ret_info->dst, &conn->dst, sizeof(conn->dst));
	if (!is_wildcard(&conn->src)) {
		ret_info->device = acme.device;
		ret_info->port_num = 1;
	}
	return leave(0);
}

/* What polycm_dump() shows of an id. */
static void op_inspect(void *priv, const struct polycm_report *to)
{
	const struct conn *conn = enter(priv);

	to->put(to, "state", "%d", conn->state);
	to->put(to, "descriptor", "%d", conn->fd);
	to->put(to, "frames received", "%u", conn->frames);
	(void)leave(0);
}

/* The peer hears of it now.  stop() takes the conn away from the thread. */
static void op_close(void *priv)
{
	struct conn *conn = enter(priv);

	if (conn->fd >= 0)
		conn_end(conn);
	(void)leave(0);
}

/* Sockets that this listener accepted and whose CONNECT is not here yet end with it. */
static void op_stop(void *priv)
{
	struct conn *conn = enter(priv), *child;
	struct object *object, *next;

	for (object = acme.conns; object; object = next) {
		next = object->next;
		child = object->self;
		if (child->state == ARRIVED && child->listener == conn->object.number)
			conn_ended(child);
	}
	conn_remove(conn);
	(void)leave(0);
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
	.services = POLYCM_SVC_ESTABLISH,
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
	.init_qp_attr = op_init_qp_attr, .query = op_query, .inspect = op_inspect,
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
int polycm_provider_query_v1(const struct polycm_core *its,
			     const struct polycm_provider **ret_provider)
{
	core = its;
	*ret_provider = &provider;
	return 0;
}
