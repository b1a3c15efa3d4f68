/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/stream.h - a TCP connection that carries frames (frame.h): what does not fit into the
 * kernel's buffers waits here, and frames are handed on whole.
 *
 * Engine lock held for all functions, and while those of the owner run.
 */
#ifndef OFI_STREAM_H
#define OFI_STREAM_H

#include <sys/socket.h>
#include <sys/uio.h>

#include "chunks.h"
#include "incoming.h"
#include "io.h"

struct ofi_stream;

/* The owner's functions.  Each may close the stream. */
struct ofi_stream_ops {
	/* A connection that ofi_stream_connect() began is there. */
	void (*connected)(struct ofi_stream *stream);
	/* A frame came; the body is valid during the call.  False: it is nonsense, the stream ends. */
	bool (*frame)(struct ofi_stream *stream, uint8_t type, uint8_t *body, size_t len);
	/* Or NULL: a place for the rest of a long frame, and it is there (incoming.h). */
	unsigned int (*place)(struct ofi_stream *stream, uint8_t type, const uint8_t *head,
			      size_t len, struct iovec to[static OFI_PLACE_MAX]);
	void (*placed)(struct ofi_stream *stream, const uint8_t *head, size_t len);
	/*
	 * The peer has closed it (0), or it broke: -ECONNREFUSED, -ETIMEDOUT, -EBADMSG, ...
	 * The owner closes it.
	 */
	void (*ended)(struct ofi_stream *stream, int error);
};

struct ofi_stream {
	struct ofi_source source;
	const struct ofi_stream_ops *ops;
	void *owner;
	bool connecting, closed;
	bool in_use;			/* a function of the owner runs */
	struct ofi_incoming incoming;
	struct ofi_chunks chunks;	/* to be sent */
	struct ofi_stream *next_put_off;
	bool put_off;			/* some of it was put off, and the kernel has room */
	int error;			/* why nothing can be sent any more, or 0 */
	int broken;			/* what sending was told, and reading then is not, or 0 */
};

/* Begin to connect.  Errors of socket() and connect(). */
int ofi_stream_connect(const struct sockaddr *to, socklen_t len, const struct ofi_stream_ops *ops,
		       void *owner, struct ofi_stream **ret_stream);
/* A connected socket, which is the stream's from now on, unless this fails. */
int ofi_stream_adopt(int fd, const struct ofi_stream_ops *ops, void *owner,
		     struct ofi_stream **ret_stream);
/* Until then a frame that is longer than a greeting ends the stream. */
static inline void ofi_stream_allow_long(struct ofi_stream *stream)
{
	stream->incoming.max = UINT32_MAX;
}
/* Of a host that is gone nothing comes, not even the end: it is asked while nothing else is sent. */
void ofi_stream_keep_alive(const struct ofi_stream *stream);
/* What was not sent is lost; the stream is freed, at the latest when its owner's function returns. */
void ofi_stream_close(struct ofi_stream *stream);
/* Close the stream, but not its descriptor, which is the caller's from now on. */
int ofi_stream_take(struct ofi_stream *stream);

/*
 * Send a frame with the body in so many parts (at most OFI_PARTS), copied as far as the kernel
 * does not take it.  -ENOMEM: it is lost.  -ENOBUFS: the peer does not read, and too much waits:
 * the stream ends.  A broken stream says so by ended(), later.
 */
#define OFI_PARTS 40u
int ofi_stream_send(struct ofi_stream *stream, uint8_t type, const struct iovec *body,
		    unsigned int parts, size_t len);
/*
 * The same of a short frame that may wait a few microseconds for another one to go with it, so that
 * both cost one system call.  It waits only where that is known to come to an end.
 */
int ofi_stream_put_off(struct ofi_stream *stream, uint8_t type, const struct iovec *body,
		       unsigned int parts, size_t len);
/* Bytes that wait here. */
static inline size_t ofi_stream_waiting(const struct ofi_stream *stream)
{
	return stream->chunks.bytes;
}
/* So much that data would better be lost: of this stream, or of all and this has its share. */
bool ofi_stream_is_full(const struct ofi_stream *stream);
/* Try now to send what waits, for the end of the process.  True: nothing waits that could be sent. */
bool ofi_stream_flush(struct ofi_stream *stream);

/* In the child of a fork(): the connection stays the parent's. */
void ofi_stream_forget(struct ofi_stream *stream);

#endif
