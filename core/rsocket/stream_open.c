/* SPDX-License-Identifier: BSD-2-Clause */
/* rsocket/stream_open.c - a stream's life, and its side of the table of operations. */
#include "config.h"
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>

#include "core/base/clock.h"

static void release(struct rsocket *rs)
{
	struct stream *s = stream_of(rs);
	struct stream *child;

	while ((child = s->accepted)) {
		s->accepted = child->next;
		if (rsocket_unpublish(&child->rs))
			rsocket_put(&child->rs);
	}
	stream_free_iomaps(s);
	stream_endpoint_destroy(s);
	if (s->id)
		rdma_destroy_id(s->id);
	if (s->channel)
		rdma_destroy_event_channel(s->channel);
	free(s->route);
}

static void advance(struct rsocket *rs)
{
	struct stream *s = stream_of(rs);

	if ((stream_opening(s) || s->state == STREAM_LISTENING) && !rs->sleepers)
		stream_follow_events(s);
	if (stream_was_connected(s))
		stream_poll(s);
	if (s->keepalive_ns)
		stream_keep_alive(s);
}

static short events_connected(struct stream *s, short wanted)
{
	short events = 0;

	if (s->unread || !s->can_read || s->state != STREAM_CONNECTED)
		events |= POLLIN;
	if (s->state != STREAM_CONNECTED || !s->can_write || stream_can_send(s))
		events |= POLLOUT;
	events &= wanted;
	if (s->state == STREAM_FAILED)
		events |= POLLERR;
	/* What came before the end is read before the program hears of it. */
	if (s->state == STREAM_ENDED && !s->unread)
		events |= POLLHUP;
	return events;
}

static short events(struct rsocket *rs, short wanted)
{
	struct stream *s = stream_of(rs);

	if (s->state == STREAM_LISTENING)
		return s->accepted ? wanted & POLLIN : 0;
	if (s->state >= STREAM_CONNECTED)
		return events_connected(s, wanted);
	return 0;
}

static bool arm(struct rsocket *rs)
{
	struct stream *s = stream_of(rs);

	if (s->armed || s->state != STREAM_CONNECTED)
		return false;
	if (ibv_req_notify_cq(s->cq, 0))
		stream_fail(s, -EIO);
	s->armed = true;
	return true;
}

static void collect(struct rsocket *rs)
{
	struct stream *s = stream_of(rs);
	struct ibv_cq *cq;
	void *context;

	if (s->armed && !ibv_get_cq_event(s->completions, &cq, &context)) {
		s->armed = false;
		s->unacked++;
	}
	stream_follow_events(s);
}

static uint64_t due_ns(const struct rsocket *rs)
{
	const struct stream *s = (const struct stream *)rs;

	return s->keepalive_ns && s->state == STREAM_CONNECTED ? s->keepalive_due_ns : UINT64_MAX;
}

static int get_name(struct rsocket *rs, bool peer, struct sockaddr *addr, socklen_t *len)
{
	struct stream *s = stream_of(rs);

	if (peer && s->state < STREAM_ACCEPTING)
		return -ENOTCONN;
	rsocket_put_addr(peer ? rdma_get_peer_addr(s->id) : rdma_get_local_addr(s->id), addr, len);
	return 0;
}

const struct rsocket_ops stream_ops = {
	.advance = advance,
	.events = events,
	.arm = arm,
	.collect = collect,
	.send = stream_send,
	.receive = stream_receive,
	.due_ns = due_ns,
	.get_name = get_name,
	.end = stream_end,
	.ended = stream_ended,
	.release = release,
};

/* A stream with an event channel, and without an id. */
int stream_create(const struct stream *like, struct stream **ret_stream)
{
	struct rsocket *rs;
	struct stream *s;
	int err;

	err = rsocket_create(RSOCKET_STREAM, &stream_ops, sizeof(*s), &rs);
	if (err)
		return err;
	s = stream_of(rs);
	if (like) {
		rs->sizes = like->rs.sizes;
		rs->fd_flags = like->rs.fd_flags;
		rs->status_flags = like->rs.status_flags;
	}
	s->channel = rdma_create_event_channel();
	if (!s->channel || fcntl(s->channel->fd, F_SETFL, O_NONBLOCK)) {
		err = -errno;
		goto err_discard;
	}
	err = rsocket_watch(rs, s->channel->fd);
	if (err)
		goto err_discard;
	*ret_stream = s;
	return 0;

err_discard:
	rsocket_discard(rs);
	return err;
}

int rsocket_open_stream(int domain, struct rsocket **ret_rs)
{
	struct stream *s;
	int err;

	err = stream_create(NULL, &s);
	if (err)
		return err;
	if (rdma_create_id(s->channel, &s->id, NULL, RDMA_PS_TCP)) {
		err = -errno;
		rsocket_discard(&s->rs);
		return err;
	}
	s->id->route.addr.src_addr.sa_family = (sa_family_t)domain;
	*ret_rs = &s->rs;
	return 0;
}
