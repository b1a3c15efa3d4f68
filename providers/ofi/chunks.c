/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/chunks.c - see chunks.h. */
#include "config.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chunks.h"

#define CHUNK ((size_t)960)		/* small frames share one */

struct ofi_chunk {
	struct ofi_chunk *next;
	size_t room, len, sent;
	uint8_t bytes[];
};

size_t ofi_chunks_of_all;

void ofi_chunks_drop(struct ofi_chunks *chunks)
{
	struct ofi_chunk *chunk;

	while ((chunk = chunks->first)) {
		chunks->first = chunk->next;
		free(chunk);
	}
	ofi_chunks_of_all -= chunks->bytes;
	*chunks = (struct ofi_chunks){ 0 };
}

unsigned int ofi_chunks_parts(const struct ofi_chunks *chunks, struct iovec *parts, unsigned int max,
			      size_t *ret_len)
{
	unsigned int num = 0;

	*ret_len = 0;
	for (struct ofi_chunk *chunk = chunks->first; chunk && num < max; chunk = chunk->next) {
		parts[num].iov_base = chunk->bytes + chunk->sent;
		parts[num].iov_len = chunk->len - chunk->sent;
		*ret_len += parts[num++].iov_len;
	}
	return num;
}

void ofi_chunks_sent(struct ofi_chunks *chunks, size_t sent)
{
	chunks->bytes -= sent;
	ofi_chunks_of_all -= sent;
	while (sent) {
		struct ofi_chunk *chunk = chunks->first;
		size_t n = chunk->len - chunk->sent < sent ? chunk->len - chunk->sent : sent;

		chunk->sent += n;
		sent -= n;
		if (chunk->sent < chunk->len)
			return;
		chunks->first = chunk->next;
		if (!chunks->first)
			chunks->last = NULL;
		free(chunk);
	}
}

/* Where so many bytes can be added; NULL: no memory. */
static struct ofi_chunk *chunk_for(struct ofi_chunks *chunks, size_t len)
{
	struct ofi_chunk *chunk = chunks->last;
	size_t room = len > CHUNK ? len : CHUNK;

	if (chunk && chunk->room - chunk->len >= len)
		return chunk;
	chunk = malloc(sizeof(*chunk) + room);
	if (!chunk)
		return NULL;
	*chunk = (struct ofi_chunk){ .room = room };
	if (chunks->last)
		chunks->last->next = chunk;
	else
		chunks->first = chunk;
	chunks->last = chunk;
	return chunk;
}

int ofi_chunks_add(struct ofi_chunks *chunks, const struct iovec *parts, unsigned int num,
		   size_t skip, size_t len)
{
	struct ofi_chunk *chunk = chunk_for(chunks, len - skip);

	if (!chunk)
		return -ENOMEM;
	chunks->bytes += len - skip;
	ofi_chunks_of_all += len - skip;
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
