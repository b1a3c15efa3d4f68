/* SPDX-License-Identifier: BSD-2-Clause */
/* rsocket/dgram.c - a datagram rsocket's life, and what it does for calls. */
#include "config.h"
#include "dgram.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/rsockets.h"
#include "core/base/why.h"

#define UDP_EVERY 64u

static void release(struct rsocket *rs)
{
	struct dgram *d = dgram_of(rs);

	while (d->first) {
		struct dgram_message *message = d->first;

		d->first = message->next;
		if (!message->qp)
			free(message);
	}
	dgram_free_peers(d);
	while (d->qps) {
		struct dgram_qp *qp = d->qps;

		d->qps = qp->next;
		dgram_free_qp(qp);
	}
	if (d->channel)
		rdma_destroy_event_channel(d->channel);
	if (d->udp >= 0)
		close(d->udp);
}

/* A thread that sleeps is woken up by the UDP socket, and reads it. */
static void advance(struct rsocket *rs)
{
	struct dgram *d = dgram_of(rs);

	dgram_poll(d);
	if (!d->qps)
		polycm_clock_spin();
	if (++d->calls % UDP_EVERY == 0 && !rs->sleepers)
		rs->ops->collect(rs);
}

static short events(struct rsocket *rs, short wanted)
{
	struct dgram *d = dgram_of(rs);
	short events = POLLOUT;

	for (struct dgram_qp *qp = d->qps; qp; qp = qp->next)
		if (!qp->num_free)
			events = 0;
	if (d->first)
		events |= POLLIN;
	return events & wanted;
}

static bool arm(struct rsocket *rs)
{
	bool changed = false;

	for (struct dgram_qp *qp = dgram_of(rs)->qps; qp; qp = qp->next) {
		if (qp->armed)
			continue;
		(void)ibv_req_notify_cq(qp->cq, 0);
		qp->armed = true;
		changed = true;
	}
	return changed;
}

static void collect(struct rsocket *rs)
{
	struct dgram *d = dgram_of(rs);
	struct ibv_cq *cq;
	void *context;

	for (struct dgram_qp *qp = d->qps; qp; qp = qp->next) {
		if (!qp->armed || ibv_get_cq_event(qp->completions, &cq, &context))
			continue;
		qp->armed = false;
		qp->unacked++;
	}
	dgram_follow_events(d);
	dgram_take_udp(d);
}

static ssize_t send_to(struct rsocket *rs, const struct msghdr *msg, size_t done, int flags)
{
	struct dgram *d = dgram_of(rs);
	struct dgram_peer *peer = d->to;
	ssize_t len = rsocket_msg_len(msg);
	int err = 0;

	(void)done;
	(void)flags;
	if (msg->msg_name)
		err = dgram_get_peer(d, msg->msg_name, msg->msg_namelen, &peer);
	else if (!peer)
		err = polycm_fail(-EDESTADDRREQ, "it is not connected, and there is no address");
	if (err)
		return err;
	if ((size_t)len > peer->qp->max_len)
		return polycm_fail(-EMSGSIZE, "%zd bytes, at most %u", len, peer->qp->max_len);
	/* The answer with its queue pair may be there. */
	if (!peer->ah && !rs->sleepers)
		collect(rs);
	if (!peer->ah)
		return dgram_send_udp(d, peer, RSOCKET_DATA, msg);
	if (!peer->qp->num_free)
		return -EAGAIN;
	err = dgram_post_send(peer, msg, (uint32_t)len);
	return err ? err : len;
}

static void consume(struct dgram *d)
{
	struct dgram_message *message = d->first;

	d->first = message->next;
	if (!d->first)
		d->last = &d->first;
	if (message->qp) {
		(void)dgram_post_receive(message->qp, message->slot);
	} else {
		d->num_own--;
		free(message);
	}
}

static ssize_t receive(struct rsocket *rs, struct msghdr *msg, size_t done, int flags)
{
	struct dgram *d = dgram_of(rs);
	struct dgram_message *message = d->first;
	size_t len = (size_t)rsocket_msg_len(msg);

	(void)done;
	if (!message)
		return -EAGAIN;
	if (len >= message->len)
		len = message->len;
	else
		msg->msg_flags |= MSG_TRUNC;
	rsocket_scatter(msg, 0, message->data, len);
	if (msg->msg_name)
		rsocket_put_addr((struct sockaddr *)&message->from, msg->msg_name, &msg->msg_namelen);
	if (!(flags & MSG_PEEK))
		consume(d);
	return (ssize_t)len;
}

void dgram_queue(struct dgram *d, struct dgram_message *message)
{
	message->next = NULL;
	*d->last = message;
	d->last = &message->next;
}

static uint64_t due_ns(const struct rsocket *rs)
{
	(void)rs;
	return UINT64_MAX;
}

static int get_name(struct rsocket *rs, bool peer, struct sockaddr *addr, socklen_t *len)
{
	int udp = dgram_of(rs)->udp;

	return (peer ? getpeername(udp, addr, len) : getsockname(udp, addr, len)) ? -errno : 0;
}

static void end(struct rsocket *rs)
{
	(void)rs;
}

/* What was posted is on its way. */
static bool ended(const struct rsocket *rs)
{
	for (const struct dgram_qp *qp = ((const struct dgram *)rs)->qps; qp; qp = qp->next)
		if (qp->num_free != qp->num_sends)
			return false;
	return true;
}

static const struct rsocket_ops dgram_ops = {
	.advance = advance,
	.events = events,
	.arm = arm,
	.collect = collect,
	.send = send_to,
	.receive = receive,
	.due_ns = due_ns,
	.get_name = get_name,
	.end = end,
	.ended = ended,
	.release = release,
};

int rsocket_open_dgram(int domain, struct rsocket **ret_rs)
{
	struct rsocket *rs;
	struct dgram *d;
	int err;

	if (domain != AF_INET && domain != AF_INET6)
		return polycm_fail(-EAFNOSUPPORT, "datagrams need a family that UDP has");
	err = rsocket_create(RSOCKET_DGRAM, &dgram_ops, sizeof(*d), &rs);
	if (err)
		return err;
	d = dgram_of(rs);
	d->last = &d->first;
	d->udp = polycm_udp_socket(domain, SOCK_NONBLOCK);
	if (d->udp < 0)
		goto err_errno;
	d->channel = rdma_create_event_channel();
	if (!d->channel || fcntl(d->channel->fd, F_SETFL, O_NONBLOCK))
		goto err_errno;
	err = rsocket_watch(rs, d->udp);
	if (!err)
		err = rsocket_watch(rs, d->channel->fd);
	if (err)
		goto err_discard;
	*ret_rs = rs;
	return 0;

err_errno:
	err = -errno;
err_discard:
	rsocket_discard(rs);
	return err;
}

int dgram_bind(struct dgram *d, const struct sockaddr *addr, socklen_t len)
{
	return bind(d->udp, addr, len) ? -errno : 0;
}

int dgram_connect(struct dgram *d, const struct sockaddr *addr, socklen_t len)
{
	if (connect(d->udp, addr, len))
		return -errno;
	d->to = NULL;
	return addr->sa_family == AF_UNSPEC ? 0 : dgram_get_peer(d, addr, len, &d->to);
}

int dgram_set_option(struct rsocket *rs, int level, int name, const void *value, socklen_t len)
{
	return setsockopt(dgram_of(rs)->udp, level, name, value, len) ? -errno : 0;
}

int dgram_get_option(struct rsocket *rs, int level, int name, void *value, socklen_t *len)
{
	return getsockopt(dgram_of(rs)->udp, level, name, value, len) ? -errno : 0;
}

bool dgram_has_queues(const struct rsocket *rs)
{
	return ((const struct dgram *)rs)->qps;
}
