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

#include "providers/soft/base/base.h"
#include "stream.h"

#define READ_SIZE (256u << 10)
#define READS 8u			/* per turn, then others have theirs */
#define CHUNK ((size_t)4 << 10)		/* small frames share one */
#define MAX_WAITING ((size_t)96 << 20)	/* a peer that takes no more must not cost more memory */

/* What waits to be sent. */
struct ofi_chunk {
	struct ofi_chunk *next;
	size_t room, len, sent;
	uint8_t bytes[];
};

/* All streams read into this one after the other. */
static uint8_t buffer[OFI_FRAME_HEADER + OFI_RETURNED_HEADER + OFI_PACKET_MAX + READ_SIZE];

static void forget_queue(struct ofi_stream *stream)
{
	struct ofi_chunk *chunk;

	while ((chunk = stream->first)) {
		stream->first = chunk->next;
		free(chunk);
	}
	stream->last = NULL;
	stream->waiting = 0;
}

static void free_stream(struct ofi_stream *stream)
{
	forget_queue(stream);
	free(stream->part);
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
	if (!stream->closed)
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
	bool more = stream->connecting || stream->first;

	ofi_io_change(&stream->source, EPOLLIN | (more ? (uint32_t)EPOLLOUT : 0));
}

/* How many bytes were sent: 0 if there is no room, or the connection is broken, which reading says. */
static size_t put(const struct ofi_stream *stream, struct iovec *parts, unsigned int num)
{
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = num };
	ssize_t sent;

	do
		sent = sendmsg(stream->source.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? 0 : (size_t)sent;
}

static void send_waiting(struct ofi_stream *stream)
{
	struct iovec parts[OFI_PARTS];
	struct ofi_chunk *chunk;
	unsigned int num;
	size_t asked, sent;

	do {
		num = 0;
		asked = 0;
		for (chunk = stream->first; chunk && num < OFI_PARTS; chunk = chunk->next) {
			parts[num].iov_base = chunk->bytes + chunk->sent;
			parts[num].iov_len = chunk->len - chunk->sent;
			asked += parts[num++].iov_len;
		}
		if (!num)
			return;
		sent = put(stream, parts, num);
		stream->waiting -= sent;
		for (size_t left = sent; left;) {
			size_t n;

			chunk = stream->first;
			n = chunk->len - chunk->sent < left ? chunk->len - chunk->sent : left;
			chunk->sent += n;
			left -= n;
			if (chunk->sent < chunk->len)
				break;
			stream->first = chunk->next;
			if (!stream->first)
				stream->last = NULL;
			free(chunk);
		}
	} while (sent == asked);
}

/* Where so many bytes can be added to what waits; NULL: no memory. */
static struct ofi_chunk *chunk_for(struct ofi_stream *stream, size_t len)
{
	struct ofi_chunk *chunk = stream->last;
	size_t room = len > CHUNK ? len : CHUNK;

	if (chunk && chunk->room - chunk->len >= len)
		return chunk;
	chunk = malloc(sizeof(*chunk) + room);
	if (!chunk)
		return NULL;
	*chunk = (struct ofi_chunk){ .room = room };
	if (stream->last)
		stream->last->next = chunk;
	else
		stream->first = chunk;
	stream->last = chunk;
	return chunk;
}

/* Keep what is behind the first `skip' bytes of the parts. */
static int keep(struct ofi_stream *stream, const struct iovec *parts, unsigned int num, size_t skip,
		size_t len)
{
	struct ofi_chunk *chunk = chunk_for(stream, len - skip);

	if (!chunk)
		return -ENOMEM;
	stream->waiting += len - skip;
	for (unsigned int i = 0; i < num; i++) {
		size_t left = skip < parts[i].iov_len ? parts[i].iov_len - skip : 0;

		if (left)
			memcpy(chunk->bytes + chunk->len,
			       (const char *)parts[i].iov_base + parts[i].iov_len - left, left);
		chunk->len += left;
		skip -= parts[i].iov_len - left;
	}
	return 0;
}

/* Nothing is sent any more; the owner is told when the stream is read. */
static int give_up(struct ofi_stream *stream, int error)
{
	stream->error = error;
	forget_queue(stream);
	(void)shutdown(stream->source.fd, SHUT_RDWR);
	return error;
}

int ofi_stream_send(struct ofi_stream *stream, uint8_t type, const struct iovec *body,
		    unsigned int parts, size_t len)
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
	if (!stream->first && !stream->connecting)
		sent = put(stream, all, parts + 1);
	if (sent == len)
		return 0;
	if (stream->waiting + len > MAX_WAITING)
		return give_up(stream, -ENOBUFS);
	r = keep(stream, all, parts + 1, sent, len);
	/* Half a frame is worse than none: nothing behind it can be read. */
	if (r < 0 && sent)
		return give_up(stream, r);
	wait_for(stream);
	return r;
}

bool ofi_stream_flush(struct ofi_stream *stream)
{
	if (stream->first && !stream->connecting)
		send_waiting(stream);
	return !stream->first || stream->connecting;
}

/* ------------------------------------------------------------------------
 * Receiving.
 */

/* Hand on the frames that are whole; returns how many bytes they had, or -EBADMSG. */
static ssize_t take_frames(struct ofi_stream *stream, uint8_t *bytes, size_t len)
{
	struct ofi_frame frame;
	size_t at = 0;

	while (!stream->closed && len - at >= OFI_FRAME_HEADER) {
		if (ofi_frame_decode(bytes + at, &frame) < 0)
			return -EBADMSG;
		if (len - at - OFI_FRAME_HEADER < frame.len)
			break;
		if (!stream->ops->frame(stream, frame.type, bytes + at + OFI_FRAME_HEADER, frame.len))
			return -EBADMSG;
		at += OFI_FRAME_HEADER + frame.len;
	}
	return (ssize_t)at;
}

static int keep_part(struct ofi_stream *stream, const uint8_t *bytes, size_t len)
{
	free(stream->part);
	stream->part = NULL;
	stream->part_len = 0;
	if (!len)
		return 0;
	stream->part = malloc(len);
	if (!stream->part)
		return -ENOMEM;
	memcpy(stream->part, bytes, len);
	stream->part_len = len;
	return 0;
}

/* One read; 0: there may be more, 1: there is not, a negative errno: it ends. */
static int read_once(struct ofi_stream *stream, int *ret_error)
{
	size_t had = stream->part_len;
	ssize_t got, used;

	*ret_error = 0;
	if (had)
		memcpy(buffer, stream->part, had);
	do
		got = recv(stream->source.fd, buffer + had, READ_SIZE, MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	if (got < 0 && errno == EAGAIN)
		return 1;
	if (got <= 0) {
		*ret_error = got < 0 ? -errno : 0;
		return -1;
	}
	used = take_frames(stream, buffer, had + (size_t)got);
	if (stream->closed)
		return 1;
	if (used >= 0)
		*ret_error = keep_part(stream, buffer + used, had + (size_t)got - (size_t)used);
	else
		*ret_error = (int)used;
	if (*ret_error)
		return -1;
	return (size_t)got < READ_SIZE;
}

static void receive(struct ofi_stream *stream)
{
	int error = 0, r = 0;

	for (unsigned int i = 0; i < READS && !r; i++)
		r = read_once(stream, &error);
	if (r < 0)
		end(stream, stream->error ? stream->error : error);
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

	stream->in_use = true;
	if (!stream->connecting || finish_connecting(stream)) {
		if (events & EPOLLOUT && stream->first)
			send_waiting(stream);
		if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
			receive(stream);
		if (!stream->closed)
			wait_for(stream);
	}
	stream->in_use = false;
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
	stream->owner = owner;
	stream->connecting = connecting;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	r = ofi_io_add(&stream->source);
	if (r < 0) {
		free(stream);
		return r;
	}
	*ret_stream = stream;
	return 0;
}

int ofi_stream_connect(const struct sockaddr *to, socklen_t len, const struct ofi_stream_ops *ops,
		       void *owner, struct ofi_stream **ret_stream)
{
	int fd, r = 0;

	fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
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
