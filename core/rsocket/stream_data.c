/* SPDX-License-Identifier: BSD-2-Clause */
/* rsocket/stream_data.c - what programs send and receive. */
#include "config.h"
#include "stream.h"

#include <errno.h>

#include "core/base/why.h"

#define FIRST_PIECE	2048u
#define LARGEST_PIECE	65536u

/* The device has something to do while the rest is copied. */
uint32_t stream_piece(const struct stream *s, size_t done, size_t left)
{
	size_t piece = done + FIRST_PIECE < LARGEST_PIECE ? done + FIRST_PIECE : LARGEST_PIECE;

	if (piece > left)
		piece = left;
	return piece < s->send_free ? (uint32_t)piece : s->send_free;
}

int stream_ready_to_send(struct stream *s)
{
	if (stream_opening(s))
		return -EAGAIN;
	if (s->state == STREAM_FAILED)
		return polycm_fail(s->failure, "the connection has failed");
	if (s->state < STREAM_CONNECTED)
		return polycm_fail(-ENOTCONN, "it is not connected");
	if (!s->can_write)
		return polycm_fail(-EPIPE, "rshutdown() has ended this direction");
	if (s->state == STREAM_ENDED)
		return polycm_fail(-ECONNRESET, "the peer has ended the connection");
	return s->pending_iomaps ? stream_send_iomaps(s) : 0;
}

static int send_piece(struct stream *s, const struct msghdr *msg, size_t at, uint32_t len)
{
	uint32_t message = rsocket_message(RSOCKET_DATA, len);
	struct rsocket_range to = s->target;

	s->target.addr += len;
	s->target.length -= len;
	s->sent++;
	return stream_post_bytes(s, msg, at, len, &to, &message);
}

ssize_t stream_send(struct rsocket *rs, const struct msghdr *msg, size_t done, int flags)
{
	struct stream *s = stream_of(rs);
	size_t left = (size_t)rsocket_msg_len(msg) - done, begun = done;
	int err;

	(void)flags;
	err = stream_ready_to_send(s);
	while (!err && left && stream_can_send(s)) {
		uint32_t len = stream_piece(s, done, left);

		if (len > s->target.length)
			len = s->target.length;
		err = send_piece(s, msg, done, len);
		if (!err) {
			done += len;
			left -= len;
		}
	}
	if (done > begun)
		return (ssize_t)(done - begun);
	return err || !left ? err : -EAGAIN;
}

/* Bytes that are there go to the program, also after the end. */
static size_t read_bytes(struct stream *s, struct msghdr *msg, size_t at, size_t len, bool peek)
{
	uint32_t end = 2 * s->half, read_at = s->read_at;

	if (len > s->unread)
		len = s->unread;
	for (size_t done = 0, part; done < len; done += part) {
		part = len - done < end - read_at ? len - done : end - read_at;
		rsocket_scatter(msg, at + done, s->receive_buffer + read_at, part);
		read_at = (uint32_t)((read_at + part) % end);
	}
	if (!peek) {
		s->read_at = read_at;
		s->unread -= (uint32_t)len;
		s->freed += (uint32_t)len;
		stream_grant(s);
	}
	return len;
}

ssize_t stream_receive(struct rsocket *rs, struct msghdr *msg, size_t done, int flags)
{
	struct stream *s = stream_of(rs);
	size_t left = (size_t)rsocket_msg_len(msg) - done;

	if (stream_opening(s))
		return -EAGAIN;
	if (s->unread)
		return (ssize_t)read_bytes(s, msg, done, left, flags & MSG_PEEK);
	/* As librdmacm: the reason is told by SO_ERROR, and by the next send. */
	if (s->state == STREAM_FAILED && !stream_was_connected(s))
		return polycm_fail(s->failure, "the connection has failed");
	if (s->state < STREAM_CONNECTED)
		return polycm_fail(-ENOTCONN, "it is not connected");
	return s->can_read && s->state == STREAM_CONNECTED && left ? -EAGAIN : 0;
}
