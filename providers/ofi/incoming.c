/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/incoming.c - see incoming.h. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "incoming.h"

#define READ_SIZE (256u << 10)
#define LONG 16384u			/* a body that is worth a read of its own */
#define EXPECT_LONG 4u
#define AHEAD (OFI_FRAME_HEADER + OFI_PLACE_HEAD)	/* enough to place the next one */

/* All streams read into this one after the other. */
static uint8_t buffer[OFI_FRAME_HEADER + READ_SIZE];

void ofi_incoming_drop(struct ofi_incoming *in)
{
	free(in->body);
	in->body = NULL;
	in->inside = false;
	in->start_len = 0;
}

/* ------------------------------------------------------------------------
 * The frame of which not all has come.
 */

static size_t rest_of(const struct ofi_incoming *in)
{
	return in->frame.len - in->have;
}

/* Is there a place for all that is behind the head?  It is left in `to'. */
static unsigned int find_place(const struct ofi_incoming *in, const struct ofi_incoming_ops *ops,
			       void *owner, struct iovec to[static OFI_PLACE_MAX])
{
	size_t len = in->frame.len - OFI_PLACE_HEAD;
	unsigned int parts;

	parts = ops->place(owner, in->frame.type, in->head, in->frame.len, to);
	for (unsigned int i = 0; i < parts; i++) {
		if (to[i].iov_len > len)
			return 0;
		len -= to[i].iov_len;
	}
	return len ? 0 : parts;
}

/* The place is the program's memory, which it may take back at any time. */
static void check_place(struct ofi_incoming *in, const struct ofi_incoming_ops *ops, void *owner)
{
	struct iovec to[OFI_PLACE_MAX];

	if (in->spoiled)
		return;
	in->spoiled = find_place(in, ops, owner, to) != in->parts ||
		      memcmp(to, in->to, in->parts * sizeof(to[0]));
}

/* What is behind the first `skip' bytes of the place. */
static unsigned int rest_of_place(const struct ofi_incoming *in, size_t skip, struct iovec *parts)
{
	unsigned int num = 0;

	for (unsigned int i = 0; i < in->parts; i++) {
		if (skip >= in->to[i].iov_len) {
			skip -= in->to[i].iov_len;
			continue;
		}
		parts[num++] = (struct iovec){
			(char *)in->to[i].iov_base + skip, in->to[i].iov_len - skip,
		};
		skip = 0;
	}
	return num;
}

static void copy_to_place(const struct ofi_incoming *in, const uint8_t *bytes, size_t len)
{
	for (unsigned int i = 0; len; i++) {
		size_t n = in->to[i].iov_len < len ? in->to[i].iov_len : len;

		memcpy(in->to[i].iov_base, bytes, n);
		bytes += n;
		len -= n;
	}
}

/* The first bytes of a frame are here, but not all.  -ENOMEM. */
static int begin_frame(struct ofi_incoming *in, const struct ofi_incoming_ops *ops, void *owner,
		       const struct ofi_frame *frame, const uint8_t *bytes, size_t len)
{
	in->frame = *frame;
	in->have = len;
	in->spoiled = false;
	in->parts = 0;
	if (frame->len >= LONG)
		in->expect_long = EXPECT_LONG;
	if (frame->len >= LONG && len >= OFI_PLACE_HEAD) {
		memcpy(in->head, bytes, OFI_PLACE_HEAD);
		in->parts = find_place(in, ops, owner, in->to);
	}
	if (in->parts) {
		copy_to_place(in, bytes + OFI_PLACE_HEAD, len - OFI_PLACE_HEAD);
	} else {
		in->body = malloc(frame->len);
		if (!in->body)
			return -ENOMEM;
		memcpy(in->body, bytes, len);
	}
	in->inside = true;
	return 0;
}

/* It is whole.  false: it is nonsense. */
static bool finish_frame(struct ofi_incoming *in, const struct ofi_incoming_ops *ops, void *owner)
{
	uint8_t *body = in->body;
	bool good = true;

	in->inside = false;
	in->body = NULL;
	if (body)
		good = ops->handle(owner, in->frame.type, body, in->frame.len);
	else if (!in->spoiled)
		ops->placed(owner, in->head, in->frame.len);
	free(body);
	return good;
}

/* ------------------------------------------------------------------------
 * Reading.
 */

/* The frames in a run of bytes; what is left is the beginning of one.  0, -EBADMSG, -ENOMEM. */
static int take_frames(struct ofi_incoming *in, const struct ofi_incoming_ops *ops, void *owner,
		       uint8_t *bytes, size_t len)
{
	struct ofi_frame frame;

	while (len >= OFI_FRAME_HEADER) {
		if (ofi_frame_decode(bytes, &frame) < 0 || frame.len > in->max)
			return -EBADMSG;
		bytes += OFI_FRAME_HEADER;
		len -= OFI_FRAME_HEADER;
		if (len < frame.len)
			return begin_frame(in, ops, owner, &frame, bytes, len);
		if (!ops->handle(owner, frame.type, bytes, frame.len))
			return -EBADMSG;
		if (ops->is_closed(owner))
			return 0;
		bytes += frame.len;
		len -= frame.len;
	}
	memcpy(in->start, bytes, len);
	in->start_len = (unsigned int)len;
	return 0;
}

/* Where the next bytes go; the last part is in the buffer.  Returns the number of parts. */
static unsigned int prepare(struct ofi_incoming *in, const struct ofi_incoming_ops *ops, void *owner,
			    struct iovec parts[static OFI_PLACE_MAX + 1], size_t *ret_len)
{
	size_t ahead = in->expect_long ? AHEAD : READ_SIZE;
	unsigned int num = 0;

	*ret_len = 0;
	if (!in->inside) {
		memcpy(buffer, in->start, in->start_len);
		if (in->expect_long)
			in->expect_long--;
	} else if (in->body) {
		parts[num++] = (struct iovec){ in->body + in->have, rest_of(in) };
	} else {
		check_place(in, ops, owner);
		if (in->spoiled)
			ahead = rest_of(in);	/* to nowhere */
		else
			num = rest_of_place(in, in->have - OFI_PLACE_HEAD, parts);
	}
	parts[num++] = (struct iovec){ buffer + (in->inside ? 0 : in->start_len), ahead };
	for (unsigned int i = 0; i < num; i++)
		*ret_len += parts[i].iov_len;
	return num;
}

/* 0, -EBADMSG, -ENOMEM. */
static int take(struct ofi_incoming *in, const struct ofi_incoming_ops *ops, void *owner, size_t got)
{
	size_t n, had = in->start_len;

	if (in->inside) {
		n = got < rest_of(in) ? got : rest_of(in);
		in->have += n;
		got -= n;
		if (rest_of(in))
			return 0;
		if (!finish_frame(in, ops, owner))
			return -EBADMSG;
		if (ops->is_closed(owner))
			return 0;
		had = 0;
	}
	in->start_len = 0;
	return take_frames(in, ops, owner, buffer, had + got);
}

static ssize_t receive(int fd, struct iovec *parts, unsigned int num)
{
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = num };

	/* Most reads, and cheaper. */
	if (num == 1)
		return recv(fd, parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT);
	return recvmsg(fd, &message, MSG_DONTWAIT);
}

enum ofi_incoming_result ofi_incoming_read(struct ofi_incoming *in, int fd,
					   const struct ofi_incoming_ops *ops, void *owner,
					   size_t *ret_got, int *ret_error)
{
	struct iovec parts[OFI_PLACE_MAX + 1];
	unsigned int num;
	size_t asked;
	ssize_t got;

	*ret_error = 0;
	*ret_got = 0;
	num = prepare(in, ops, owner, parts, &asked);
	do
		got = receive(fd, parts, num);
	while (got < 0 && errno == EINTR);
	if (got < 0 && errno == EAGAIN)
		return OFI_READ_ALL;
	/* The place is not there any more. */
	if (got < 0 && errno == EFAULT && in->inside && !in->body && !in->spoiled) {
		in->spoiled = true;
		return OFI_READ_MORE;
	}
	if (got <= 0) {
		*ret_error = got < 0 ? -errno : 0;
		return OFI_READ_ENDED;
	}
	*ret_got = (size_t)got;
	*ret_error = take(in, ops, owner, (size_t)got);
	if (ops->is_closed(owner))
		return OFI_READ_ALL;
	if (*ret_error)
		return OFI_READ_ENDED;
	return (size_t)got < asked ? OFI_READ_ALL : OFI_READ_MORE;
}
