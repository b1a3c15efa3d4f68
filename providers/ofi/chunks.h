/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/chunks.h - bytes of frames that wait on a stream, in the order in which they are to be sent.
 * Engine lock held.
 */
#ifndef OFI_CHUNKS_H
#define OFI_CHUNKS_H

#include <stddef.h>
#include <sys/uio.h>

struct ofi_chunk;

struct ofi_chunks {
	struct ofi_chunk *first, *last;
	size_t bytes;
};

extern size_t ofi_chunks_of_all;	/* bytes that wait on all streams */

/* Add what is behind the first `skip' of `len' bytes in the parts.  -ENOMEM. */
int ofi_chunks_add(struct ofi_chunks *chunks, const struct iovec *parts, unsigned int num,
		   size_t skip, size_t len);
/* What waits, in so many parts at most; returns their number. */
unsigned int ofi_chunks_parts(const struct ofi_chunks *chunks, struct iovec *parts, unsigned int max,
			      size_t *ret_len);
/* So many bytes of it are sent. */
void ofi_chunks_sent(struct ofi_chunks *chunks, size_t sent);
void ofi_chunks_drop(struct ofi_chunks *chunks);

#endif
