/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/incoming.h - the bytes that a stream reads: short frames together, into one buffer; the rest
 * of one that is not whole into memory of its own, or straight to where its owner wants it.
 *
 * Engine lock held for all functions, and while those of the owner run.
 */
#ifndef OFI_INCOMING_H
#define OFI_INCOMING_H

#include <stdbool.h>
#include <sys/uio.h>

#include "frame.h"

/* So much of the body of a long frame the owner sees when it says where the rest goes. */
#define OFI_PLACE_HEAD 80u
#define OFI_PLACE_MAX 32u		/* parts */

/* The owner's functions.  handle() and placed() may make is_closed() true: nothing is read then. */
struct ofi_incoming_ops {
	bool (*is_closed)(void *owner);
	/* A frame that is whole; false: it is nonsense. */
	bool (*handle)(void *owner, uint8_t type, uint8_t *body, size_t len);
	/*
	 * Where the rest of a frame goes, which is behind the first OFI_PLACE_HEAD of its len bytes.
	 * Returns the number of parts, which have as many bytes; 0: nowhere.  It is asked before
	 * each read.
	 */
	unsigned int (*place)(void *owner, uint8_t type, const uint8_t *head, size_t len,
			      struct iovec to[static OFI_PLACE_MAX]);
	/* The rest is there, at the place that place() has just said again. */
	void (*placed)(void *owner, const uint8_t *head, size_t len);
};

struct ofi_incoming {
	uint8_t start[OFI_FRAME_HEADER];	/* of a frame whose header is not whole */
	unsigned int start_len;
	bool inside;			/* a frame, of which not all has come: what follows */
	struct ofi_frame frame;
	size_t have;			/* bytes of its body */
	uint8_t *body;			/* NULL: what is behind the head is placed */
	uint8_t head[OFI_PLACE_HEAD];
	struct iovec to[OFI_PLACE_MAX];	/* all of the place */
	unsigned int parts;
	bool spoiled;			/* the place has changed: the frame is lost */
	unsigned int expect_long;	/* so many reads will probably find long frames */
	uint32_t max;			/* a longer body is nonsense */
};

enum ofi_incoming_result {
	OFI_READ_MORE,			/* there may be more now */
	OFI_READ_ALL,			/* there is not, or the owner has closed the stream */
	OFI_READ_ENDED,			/* error 0: the peer has closed it */
};

/* Read once from the socket, at most max bytes or a few more, and hand on the frames. */
enum ofi_incoming_result ofi_incoming_read(struct ofi_incoming *in, int fd,
					   const struct ofi_incoming_ops *ops, void *owner,
					   size_t *ret_got, int *ret_error);
void ofi_incoming_drop(struct ofi_incoming *in);

#endif
