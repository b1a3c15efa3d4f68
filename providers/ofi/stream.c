/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/stream.c - see stream.h. */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <utlist.h>

#include "hello.h"
#include "providers/soft/base/base.h"
#include "stream.h"
#include "sys.h"

#define READ_PER_TURN ((size_t)2 << 20)	/* then others have their turn */
#define READS 64u			/* likewise */
#define KEEPALIVE_S 1
#define KEEPALIVE_TRIES 3
#define SHORT 512u			/* a frame that may be put off, or sent in one piece */
#define MAX_TOGETHER 8u			/* chunks that go with a frame in one system call */
#define MAX_WAITING ((size_t)96 << 20)	/* a peer that takes no more must not cost more memory */
#define MAX_DATA ((size_t)64 << 20)	/* then more data is lost: messages of the CM have room */
#define MAX_OF_ALL ((size_t)256 << 20)	/* nor all such peers; who has less than its share may add */

static unsigned int num_streams;
static struct ofi_stream *put_off;	/* the streams of which something was put off */
static bool urgent;			/* and it is no mere acknowledgement */
static bool receiving;			/* frames are being handled: answers are sent together */

static void send_waiting(struct ofi_stream *stream);

static void free_stream(struct ofi_stream *stream)
{
	if (stream->put_off)
		LL_DELETE2(put_off, stream, next_put_off);
	ofi_chunks_drop(&stream->chunks);
	num_streams--;
	ofi_incoming_drop(&stream->incoming);
	free(stream);
}

int ofi_stream_take(struct ofi_stream *stream)
{
	int fd = stream->source.fd;

	ofi_io_remove(&stream->source);
	stream->closed = true;
	if (!stream->in_use)
		free_stream(stream);
	return fd;
}

void ofi_stream_close(struct ofi_stream *stream)
{
	if (stream->closed)
		return;
	/* The last word may be why it is closed. */
	if (stream->put_off)
		send_waiting(stream);
	close(ofi_stream_take(stream));
}

void ofi_stream_forget(struct ofi_stream *stream)
{
	close(stream->source.fd);
	free_stream(stream);
}

static void end(struct ofi_stream *stream, int error)
{
	if (!stream->closed)
		stream->ops->ended(stream, error);
}

/* ------------------------------------------------------------------------
 * Sending.
 */

static void wait_for(struct ofi_stream *stream)
{
	bool more = stream->connecting || (stream->chunks.first && !stream->put_off);

	ofi_io_change(&stream->source, EPOLLIN | (more ? (uint32_t)EPOLLOUT : 0));
}

/* Few bytes in one piece cost the kernel less than their parts.  0: they are more. */
static size_t join(const struct iovec *parts, unsigned int num, uint8_t bytes[static SHORT])
{
	size_t len = 0;

	for (unsigned int i = 0; i < num; i++) {
		if (parts[i].iov_len > SHORT - len)
			return 0;
		if (parts[i].iov_len)
			memcpy(bytes + len, parts[i].iov_base, parts[i].iov_len);
		len += parts[i].iov_len;
	}
	return len;
}

/*
 * How many bytes were sent: 0 if there is no room, or the connection is broken, of which the owner
 * hears when what came before has been read.
 */
static size_t put(struct ofi_stream *stream, struct iovec *parts, unsigned int num)
{
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = num };
	uint8_t bytes[SHORT];
	size_t len = join(parts, num, bytes);
	ssize_t sent;

	do
		sent = len ? send(stream->source.fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT)
			   : sendmsg(stream->source.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	if (sent < 0 && (errno == ETIMEDOUT || errno == ECONNRESET || errno == EHOSTUNREACH ||
			 errno == ENETUNREACH))
		stream->broken = -errno;
	return sent < 0 ? 0 : (size_t)sent;
}

/* The kernel had no room for all that waits. */
static bool is_blocked(const struct ofi_stream *stream)
{
	return stream->connecting || stream->source.events & EPOLLOUT;
}

static void send_waiting(struct ofi_stream *stream)
{
	struct iovec parts[OFI_PARTS];
	unsigned int num;
	size_t asked, sent;

	do {
		num = ofi_chunks_parts(&stream->chunks, parts, OFI_PARTS, &asked);
		if (!num)
			return;
		sent = put(stream, parts, num);
		ofi_chunks_sent(&stream->chunks, sent);
	} while (sent == asked);
}

/* What waits, and these parts behind it; returns how many bytes of these were sent. */
static size_t put_together(struct ofi_stream *stream, const struct iovec *parts, unsigned int num)
{
	struct iovec all[MAX_TOGETHER + OFI_PARTS + 1];
	unsigned int before;
	size_t len, sent;

	before = ofi_chunks_parts(&stream->chunks, all, MAX_TOGETHER, &len);
	if (len < stream->chunks.bytes) {
		send_waiting(stream);
		before = ofi_chunks_parts(&stream->chunks, all, MAX_TOGETHER, &len);
		if (before)
			return 0;
	}
	memcpy(all + before, parts, num * sizeof(*parts));
	sent = put(stream, all, before + num);
	ofi_chunks_sent(&stream->chunks, sent < len ? sent : len);
	return sent < len ? 0 : sent - len;
}

/* Nothing is sent any more; the owner is told when the stream is read. */
static int give_up(struct ofi_stream *stream, int error)
{
	stream->error = error;
	ofi_chunks_drop(&stream->chunks);
	(void)shutdown(stream->source.fd, SHUT_RDWR);
	return error;
}

/* Beyond the stream's own limit, or that of all and its part of that. */
static bool is_beyond(const struct ofi_stream *stream, size_t len, size_t own, size_t all)
{
	return stream->chunks.bytes + len > own ||
	       (ofi_chunks_of_all + len > all && stream->chunks.bytes + len > all / num_streams);
}

bool ofi_stream_is_full(const struct ofi_stream *stream)
{
	return is_beyond(stream, 0, MAX_DATA, MAX_OF_ALL / 2);
}

/* A frame; late: it is put off, unless the kernel has no room anyway. */
static int send_frame(struct ofi_stream *stream, uint8_t type, const struct iovec *body,
		      unsigned int parts, size_t len, bool late)
{
	struct ofi_frame frame = { .len = (uint32_t)len, .type = type };
	uint8_t header[OFI_FRAME_HEADER];
	struct iovec all[OFI_PARTS + 1];
	size_t sent = 0;
	int r;

	if (parts > OFI_PARTS || len > ofi_frame_max(type))
		return -EMSGSIZE;
	if (stream->error)
		return stream->error;
	ofi_frame_encode(&frame, header);
	all[0] = (struct iovec){ .iov_base = header, .iov_len = sizeof(header) };
	if (parts)
		memcpy(all + 1, body, parts * sizeof(*body));
	len += sizeof(header);
	if (!late && !is_blocked(stream))
		sent = put_together(stream, all, parts + 1);
	if (sent == len)
		return 0;
	if (is_beyond(stream, len, MAX_WAITING, MAX_OF_ALL))
		return give_up(stream, -ENOBUFS);
	r = ofi_chunks_add(&stream->chunks, all, parts + 1, sent, len);
	/* Half a frame is worse than none: nothing behind it can be read. */
	if (r < 0 && sent)
		return give_up(stream, r);
	if (!late)
		wait_for(stream);
	else if (!r && !stream->put_off) {
		stream->put_off = true;
		LL_PREPEND2(put_off, stream, next_put_off);
	}
	return r;
}

int ofi_stream_send(struct ofi_stream *stream, uint8_t type, const struct iovec *body,
		    unsigned int parts, size_t len)
{
	bool late = receiving && len <= SHORT && !is_blocked(stream);

	urgent |= late;
	return send_frame(stream, type, body, parts, len, late);
}

int ofi_stream_put_off(struct ofi_stream *stream, uint8_t type, const struct iovec *body,
		       unsigned int parts, size_t len)
{
	/* Else nobody would send it, as when a timer of the engine's acknowledges. */
	bool soon = receiving || ofi_io_is_watched();

	return send_frame(stream, type, body, parts, len,
			  soon && len <= SHORT && !is_blocked(stream));
}

static bool send_put_off(bool all)
{
	struct ofi_stream *stream;

	if (!all && !urgent)
		return put_off != NULL;
	urgent = false;
	while ((stream = put_off)) {
		LL_DELETE2(put_off, stream, next_put_off);
		stream->put_off = false;
		if (!is_blocked(stream))
			send_waiting(stream);
		wait_for(stream);
	}
	return false;
}

bool ofi_stream_flush(struct ofi_stream *stream)
{
	if (stream->chunks.first && !stream->connecting)
		send_waiting(stream);
	return !stream->chunks.first || stream->connecting;
}

/* ------------------------------------------------------------------------
 * Receiving.
 */

static bool is_closed(void *owner)
{
	return ((struct ofi_stream *)owner)->closed;
}

static bool handle(void *owner, uint8_t type, uint8_t *body, size_t len)
{
	struct ofi_stream *stream = owner;

	return stream->ops->frame(stream, type, body, len);
}

static unsigned int place(void *owner, uint8_t type, const uint8_t *head, size_t len,
			  struct iovec to[static OFI_PLACE_MAX])
{
	struct ofi_stream *stream = owner;

	return stream->ops->place ? stream->ops->place(stream, type, head, len, to) : 0;
}

static void placed(void *owner, const uint8_t *head, size_t len)
{
	struct ofi_stream *stream = owner;

	stream->ops->placed(stream, head, len);
}

static void receive(struct ofi_stream *stream)
{
	static const struct ofi_incoming_ops ops = { is_closed, handle, place, placed };
	enum ofi_incoming_result result = OFI_READ_MORE;
	size_t got, all = 0;
	int error;

	for (unsigned int i = 0; i < READS && all < READ_PER_TURN && result == OFI_READ_MORE; i++) {
		result = ofi_incoming_read(&stream->incoming, stream->source.fd, &ops, stream, &got,
					   &error);
		all += got;
	}
	if (result != OFI_READ_ENDED)
		return;
	end(stream, stream->error ? stream->error : error ? error : stream->broken);
}

/* True: it is connected. */
static bool finish_connecting(struct ofi_stream *stream)
{
	socklen_t len = sizeof(int);
	int error = 0;

	if (getsockopt(stream->source.fd, SOL_SOCKET, SO_ERROR, &error, &len))
		error = errno;
	if (error) {
		end(stream, -error);
		return false;
	}
	stream->connecting = false;
	stream->ops->connected(stream);
	return !stream->closed;
}

static void ready(struct ofi_source *source, uint32_t events)
{
	struct ofi_stream *stream = sim_container(source, struct ofi_stream, source);

	receiving = stream->in_use = true;
	if (!stream->connecting || finish_connecting(stream)) {
		if (events & EPOLLOUT && stream->chunks.first)
			send_waiting(stream);
		if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
			receive(stream);
		if (!stream->closed)
			wait_for(stream);
	}
	receiving = stream->in_use = false;
	if (stream->closed)
		free_stream(stream);
}

/* ------------------------------------------------------------------------
 * Beginning.
 */

static int begin(int fd, bool connecting, const struct ofi_stream_ops *ops, void *owner,
		 struct ofi_stream **ret_stream)
{
	struct ofi_stream *stream = calloc(1, sizeof(*stream));
	int one = 1, r;

	if (!stream)
		return -ENOMEM;
	stream->source.fd = fd;
	stream->source.events = EPOLLIN | (connecting ? (uint32_t)EPOLLOUT : 0);
	stream->source.ready = ready;
	stream->ops = ops;
	ofi_io_put_off = send_put_off;
	stream->owner = owner;
	stream->connecting = connecting;
	stream->incoming.max = OFI_HELLO_MAX;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	r = ofi_io_add(&stream->source);
	if (r < 0) {
		free(stream);
		return r;
	}
	num_streams++;
	*ret_stream = stream;
	return 0;
}

void ofi_stream_keep_alive(const struct ofi_stream *stream)
{
	const int on = 1, seconds = KEEPALIVE_S, tries = KEEPALIVE_TRIES;
	int fd = stream->source.fd;

	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof(tries));
}

int ofi_stream_connect(const struct sockaddr *to, socklen_t len, const struct ofi_stream_ops *ops,
		       void *owner, struct ofi_stream **ret_stream)
{
	int fd, r = 0;

	fd = ofi_socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, to, len) && errno != EINPROGRESS)
		r = -errno;
	if (!r)
		r = begin(fd, true, ops, owner, ret_stream);
	if (r < 0)
		close(fd);
	return r;
}

int ofi_stream_adopt(int fd, const struct ofi_stream_ops *ops, void *owner,
		     struct ofi_stream **ret_stream)
{
	return begin(fd, false, ops, owner, ret_stream);
}
