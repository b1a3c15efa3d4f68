/* SPDX-License-Identifier: BSD-2-Clause */
/* rsocket/stream_connect.c - how a stream comes to be connected, and learns that its peer has gone. */
#include "config.h"
#include "stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/ib.h>

#include "core/base/addr.h"
#include "core/base/log.h"
#include "core/base/why.h"
#include "core/cm/event.h"

/* In a request of AF_IB the kernel leaves the addresses in front of the data to the program. */
#define IB_ADDRESSES		36u
#define FIRST_TIMEOUT_MS	1000
#define MOST_RETRIES		7

/* An event, after it was acknowledged. */
struct taken {
	enum rdma_cm_event_type type;
	int err;
	struct rdma_cm_id *id;
	struct rdma_conn_param param;
	uint8_t data[UINT8_MAX];
};

struct request_data {
	uint8_t addresses[IB_ADDRESSES];
	struct rsocket_hello hello;
};

static size_t hello_offset(const struct stream *s)
{
	return s->id->route.addr.src_addr.sa_family == AF_IB ? IB_ADDRESSES : 0;
}

void stream_fail(struct stream *s, int err)
{
	if (s->state == STREAM_FAILED || s->state == STREAM_ENDED)
		return;
	s->state = STREAM_FAILED;
	s->failure = err;
	s->rs.error = -err;
}

static int take_event(struct stream *s, struct taken *taken)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(s->channel, &event))
		return -errno;
	taken->type = event->event;
	taken->id = event->id;
	taken->err = polycm_event_errno(event);
	taken->param = event->param.conn;
	if (!taken->param.private_data)
		taken->param.private_data_len = 0;
	else
		memcpy(taken->data, taken->param.private_data, taken->param.private_data_len);
	taken->param.private_data = taken->data;
	rdma_ack_cm_event(event);
	return 0;
}

/* --- the active side --- */

static int resolve_addr(struct stream *s)
{
	int timeout = FIRST_TIMEOUT_MS << s->retries++;

	if (rdma_resolve_addr(s->id, NULL, (struct sockaddr *)&s->to, timeout))
		return -errno;
	s->state = STREAM_RESOLVING_ADDR;
	return 0;
}

static int resolve_route(struct stream *s)
{
	int timeout = FIRST_TIMEOUT_MS << s->retries++;
	int failed;

	if (s->route)
		failed = rdma_set_option(s->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, s->route,
					 s->route_len);
	else
		failed = rdma_resolve_route(s->id, timeout);
	if (failed)
		return -errno;
	s->state = STREAM_RESOLVING_ROUTE;
	return 0;
}

static int connect_now(struct stream *s)
{
	struct rdma_conn_param param = {
		.flow_control = 1,
		.retry_count = MOST_RETRIES,
		.rnr_retry_count = MOST_RETRIES,
	};
	struct request_data data = { .addresses = { 0 } };
	size_t at = hello_offset(s);
	int err;

	err = stream_endpoint_create(s);
	if (err)
		return err;
	stream_hello(s, &data.hello);
	param.private_data = at ? (void *)&data : (void *)&data.hello;
	param.private_data_len = (uint8_t)(at + sizeof(data.hello));
	/* An iWARP initiator begins with a read. */
	param.initiator_depth = s->messages;
	if (rdma_connect(s->id, &param))
		return -errno;
	s->state = STREAM_CONNECTING;
	return 0;
}

static void established(struct stream *s)
{
	s->state = STREAM_CONNECTED;
	s->can_read = s->can_write = true;
	s->retries = 0;
}

static int read_hello(struct stream *s, const struct taken *taken, size_t at)
{
	struct rsocket_hello hello;

	if (taken->param.private_data_len < at + sizeof(hello))
		return polycm_fail(-EPROTO, "the peer is no rsocket: %u bytes of private data",
				   taken->param.private_data_len);
	memcpy(&hello, taken->data + at, sizeof(hello));
	return stream_take_hello(s, &hello);
}

int stream_connect(struct stream *s, const struct sockaddr *addr, socklen_t len)
{
	size_t size = polycm_addr_len(addr);
	int err;

	if (s->state == STREAM_CONNECTED)
		return 0;
	if (stream_opening(s))
		return -EINPROGRESS;
	if (s->state == STREAM_FAILED || s->state == STREAM_ENDED)
		return polycm_fail(-ENOTCONN, "its connection has ended: make a new one");
	if (s->state == STREAM_LISTENING)
		return polycm_fail(-EINVAL, "it listens");
	if (!size || len < size)
		return polycm_fail(-EINVAL, "no address of %u bytes", len);
	memcpy(&s->to, addr, size);
	s->retries = 0;
	err = resolve_addr(s);
	if (err)
		stream_fail(s, err);
	return err ? err : -EINPROGRESS;
}

/* --- the passive side --- */

int stream_listen(struct stream *s, int backlog)
{
	if (s->state == STREAM_LISTENING)
		return 0;
	if (s->state > STREAM_BOUND)
		return polycm_fail(-EINVAL, "it has or had a connection");
	if (rdma_listen(s->id, backlog))
		return -errno;
	s->state = STREAM_LISTENING;
	return 0;
}

static int accept_on(struct stream *s, struct stream *child, struct taken *taken)
{
	struct rsocket_hello hello;
	int err;

	if (rdma_migrate_id(child->id, child->channel))
		return -errno;
	err = stream_endpoint_create(child);
	if (!err)
		err = read_hello(child, taken, hello_offset(s));
	if (err)
		return err;
	/* Its first frame could reach an initiator that still waits for the reply. */
	child->silent = child->messages;
	stream_hello(child, &hello);
	taken->param.private_data = &hello;
	taken->param.private_data_len = sizeof(hello);
	if (rdma_accept(child->id, &taken->param))
		return -errno;
	child->state = STREAM_ACCEPTING;
	return 0;
}

static void accept_request(struct stream *s, struct taken *taken)
{
	struct stream *child, **last = &s->accepted;
	int err;

	err = stream_create(s, &child);
	if (err)
		goto err_reject;
	child->id = taken->id;
	err = accept_on(s, child, taken);
	if (!err)
		err = rsocket_publish(&child->rs);
	if (err)
		goto err_discard;
	while (*last)
		last = &(*last)->next;
	*last = child;
	return;

err_discard:
	rdma_reject(child->id, NULL, 0);
	rsocket_discard(&child->rs);
	goto out;
err_reject:
	rdma_reject(taken->id, NULL, 0);
	rdma_destroy_id(taken->id);
out:
	(void)rsocket_ret("a request to rlisten", err);
}

struct stream *stream_take_accepted(struct stream *s)
{
	struct stream *child = s->accepted;

	if (child)
		s->accepted = child->next;
	return child;
}

/* --- events --- */

static void opening_event(struct stream *s, const struct taken *taken)
{
	bool again = taken->err == -ETIMEDOUT && s->retries <= STREAM_LAST_RETRY;
	int err = taken->err;

	switch (taken->type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		s->retries = 0;
		err = resolve_route(s);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		err = again ? resolve_addr(s) : err;
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		err = connect_now(s);
		break;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		err = again ? resolve_route(s) : err;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (s->state == STREAM_CONNECTING)
			err = read_hello(s, taken, 0);
		if (!err)
			established(s);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		err = -ECONNRESET;
		break;
	default:
		break;
	}
	if (err)
		stream_fail(s, err);
}

static void connected_event(struct stream *s, const struct taken *taken)
{
	switch (taken->type) {
	case RDMA_CM_EVENT_DISCONNECTED:
		/* What it wrote before comes first. */
		stream_poll(s);
		if (s->state == STREAM_CONNECTED)
			s->state = STREAM_ENDED;
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		stream_fail(s, -ENODEV);
		break;
	default:
		break;
	}
}

void stream_follow_events(struct stream *s)
{
	struct taken taken;
	int saved = errno;

	while (!take_event(s, &taken)) {
		if (taken.type == RDMA_CM_EVENT_CONNECT_REQUEST)
			accept_request(s, &taken);
		else if (stream_opening(s))
			opening_event(s, &taken);
		else if (s->state == STREAM_CONNECTED)
			connected_event(s, &taken);
		else if (s->state == STREAM_LISTENING && taken.type == RDMA_CM_EVENT_DEVICE_REMOVAL)
			stream_fail(s, -ENODEV);
	}
	errno = saved;
}
