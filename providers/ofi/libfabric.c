/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/libfabric.c - ofi-carrier.so: a reliable-datagram endpoint of libfabric (carrier.h).
 *
 * A library of its own, which has nothing of polycm in it: it is loaded so that libfabric does not
 * find polycm's librdmacm and libibverbs in the program.
 *
 * One domain with one endpoint, one completion queue for both directions, one address vector.
 * Messages are received into buffers that are posted all the time, and copied into buffers to be
 * sent: libfabric never holds memory of the program.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "libfabric.h"

#define EVENTS 16u
#define TURNS 8u			/* of so many events, then others have theirs */
#define OWN_PROGRESS_MS 1000		/* a provider that has a thread: in case it forgets us */
#define MANUAL_PROGRESS_MS 10

/* ------------------------------------------------------------------------
 * Buffers.
 */

static bool is_again(ssize_t r)
{
	return r == -FI_EAGAIN;
}

static void post(struct ofi_carrier *c, struct libfabric_buffer *buffer)
{
	/* If it does not go now it goes later; what breaks the endpoint says so elsewhere. */
	if (fi_recv(c->ep, buffer->bytes, LIBFABRIC_SIZE, c->desc, FI_ADDR_UNSPEC, &buffer->context)) {
		buffer->next = c->unposted;
		c->unposted = buffer;
	}
}

static void post_all(struct ofi_carrier *c)
{
	struct libfabric_buffer *buffer, *list = c->unposted;

	c->unposted = NULL;
	while ((buffer = list)) {
		list = buffer->next;
		post(c, buffer);
	}
}

static struct libfabric_buffer *take(struct ofi_carrier *c)
{
	struct libfabric_buffer *buffer = c->free;

	if (buffer) {
		c->free = buffer->next;
		c->num_free--;
	}
	return buffer;
}

static void give(struct ofi_carrier *c, struct libfabric_buffer *buffer)
{
	buffer->peer = NULL;
	buffer->next = c->free;
	c->free = buffer;
	c->num_free++;
}

int libfabric_make_buffers(struct ofi_carrier *c)
{
	const size_t size = (size_t)2 * OFI_CARRIER_BUFFERS * LIBFABRIC_SIZE;
	int r;

	c->memory = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
	if (!c->memory)
		return -ENOMEM;
	if (c->info->domain_attr->mr_mode & FI_MR_LOCAL) {
		r = fi_mr_reg(c->domain, c->memory, size, FI_SEND | FI_RECV, 0, 1, 0, &c->mr, NULL);
		if (r)
			return r;
		if (c->info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
			r = fi_mr_bind(c->mr, &c->ep->fid, 0);
			if (!r)
				r = fi_mr_enable(c->mr);
			if (r)
				return r;
		}
		c->desc = fi_mr_desc(c->mr);
	}
	for (unsigned int i = 0; i < OFI_CARRIER_BUFFERS; i++) {
		c->receives[i].bytes = c->memory + (size_t)2 * i * LIBFABRIC_SIZE;
		c->sends[i].bytes = c->receives[i].bytes + LIBFABRIC_SIZE;
		c->sends[i].sends = true;
		give(c, &c->sends[i]);
		post(c, &c->receives[i]);
	}
	return c->unposted == NULL || c->unposted->next == NULL ? 0 : -EIO;
}

/* ------------------------------------------------------------------------
 * Peers and messages.
 */

static int carrier_peer_add(struct ofi_carrier *c, const struct ofi_carrier_name *name, void *owner,
			    struct ofi_carrier_peer **ret_peer)
{
	struct ofi_carrier_peer *peer;
	uint8_t bytes[OFI_CARRIER_NAME] = { 0 };

	/* As long as ours: libfabric takes the length from the format. */
	if (name->format != c->info->addr_format || name->len > sizeof(bytes))
		return -EINVAL;
	if (libfabric_is_ip(c->info) && name->len < sizeof(struct sockaddr_in))
		return -EINVAL;
	memcpy(bytes, name->name, name->len);
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return -ENOMEM;
	peer->owner = owner;
	if (fi_av_insert(c->av, bytes, 1, &peer->addr, 0, NULL) != 1) {
		free(peer);
		return -EADDRNOTAVAIL;
	}
	*ret_peer = peer;
	return 0;
}

static void carrier_peer_remove(struct ofi_carrier *c, struct ofi_carrier_peer *peer)
{
	for (unsigned int i = 0; i < OFI_CARRIER_BUFFERS; i++)
		if (c->sends[i].peer == peer)
			c->sends[i].peer = NULL;
	(void)fi_av_remove(c->av, &peer->addr, 1, 0);
	free(peer);
}

static int carrier_send(struct ofi_carrier *c, struct ofi_carrier_peer *peer, const struct iovec *parts,
			unsigned int num, size_t len)
{
	struct libfabric_buffer *buffer;
	uint8_t *to;
	ssize_t r;

	if (len > OFI_CARRIER_MESSAGE)
		return -EMSGSIZE;
	buffer = take(c);
	if (!buffer)
		return -EAGAIN;
	to = buffer->bytes;
	for (unsigned int i = 0; i < num; to += parts[i++].iov_len)
		if (parts[i].iov_len)
			memcpy(to, parts[i].iov_base, parts[i].iov_len);
	r = fi_send(c->ep, buffer->bytes, len, c->desc, peer->addr, &buffer->context);
	if (!r) {
		buffer->peer = peer;
		return 0;
	}
	give(c, buffer);
	return is_again(r) ? -EAGAIN : libfabric_error(r);
}

static struct libfabric_buffer *buffer_of(void *context)
{
	return (struct libfabric_buffer *)((char *)context - offsetof(struct libfabric_buffer, context));
}

static void complete(struct ofi_carrier *c, const struct fi_cq_msg_entry *event)
{
	struct libfabric_buffer *buffer;

	if (!event->op_context)
		return;
	buffer = buffer_of(event->op_context);
	if (buffer->sends) {
		give(c, buffer);
		return;
	}
	c->user->received(buffer->bytes, event->len);
	post(c, buffer);
}

static void fail(struct ofi_carrier *c)
{
	struct fi_cq_err_entry error;
	struct ofi_carrier_peer *peer;
	struct libfabric_buffer *buffer;

	memset(&error, 0, sizeof(error));
	if (fi_cq_readerr(c->cq, &error, 0) != 1 || !error.op_context)
		return;
	buffer = buffer_of(error.op_context);
	if (!buffer->sends) {
		post(c, buffer);
		return;
	}
	peer = buffer->peer;
	give(c, buffer);
	if (peer)
		c->user->failed(peer->owner, error.err ? libfabric_error(-error.err) : -EIO);
}

static bool carrier_progress(struct ofi_carrier *c)
{
	struct fi_cq_msg_entry events[EVENTS];
	bool some = false;
	ssize_t r = EVENTS;

	for (unsigned int i = 0; i < TURNS && r == EVENTS; i++) {
		r = fi_cq_read(c->cq, events, EVENTS);
		if (r == -FI_EAVAIL)
			fail(c);
		else if (r < 0 && !is_again(r) && r != -FI_EINTR)
			c->user->failed(NULL, libfabric_error(r));
		for (ssize_t e = 0; e < r; e++)
			complete(c, &events[e]);
		some |= r > 0 || r == -FI_EAVAIL;
	}
	if (c->unposted)
		post_all(c);
	return some;
}

static int carrier_wait_fd(const struct ofi_carrier *c)
{
	return c->fd;
}

static bool carrier_may_sleep(struct ofi_carrier *c)
{
	struct fid *fids[] = { &c->cq->fid };

	return c->fd < 0 || fi_trywait(c->fabric, fids, 1) == FI_SUCCESS;
}

static int carrier_sleep_ms(const struct ofi_carrier *c)
{
	return c->info->domain_attr->data_progress == FI_PROGRESS_MANUAL || c->unposted
		       ? MANUAL_PROGRESS_MS : OWN_PROGRESS_MS;
}

static bool carrier_is_idle(const struct ofi_carrier *c)
{
	return c->num_free == OFI_CARRIER_BUFFERS;
}

__attribute__((visibility("default")))
const struct ofi_carrier_ops *ofi_carrier_query_v1(void)
{
	static const struct ofi_carrier_ops ops = {
		.version = OFI_CARRIER_VERSION,
		.open = libfabric_open,
		.close = libfabric_close,
		.peer_add = carrier_peer_add,
		.peer_remove = carrier_peer_remove,
		.send = carrier_send,
		.progress = carrier_progress,
		.wait_fd = carrier_wait_fd,
		.may_sleep = carrier_may_sleep,
		.sleep_ms = carrier_sleep_ms,
		.is_idle = carrier_is_idle,
	};

	return &ops;
}
