/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/queue.c - see queue.h. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "providers/soft/link/block.h"
#include "queue.h"

#define MAX_BYTES ((size_t)64 << 20)

static bool is_repeated(enum sim_packet_type type)
{
	return type == SIM_PACKET_RC || type == SIM_PACKET_UD;
}

int ofi_queue_put(struct ofi_queue *queue, enum sim_packet_type type, const struct iovec *parts,
		  unsigned int num, size_t len)
{
	struct ofi_waiting *waiting;
	size_t at = 0;

	if (queue->bytes >= MAX_BYTES && is_repeated(type))
		return -ENOBUFS;
	waiting = sim_block_get(sizeof(*waiting) + len, type);
	if (!waiting)
		return -ENOMEM;
	*waiting = (struct ofi_waiting){ .type = type, .len = len };
	for (unsigned int i = 0; i < num; at += parts[i++].iov_len)
		if (parts[i].iov_len)
			memcpy(waiting->bytes + at, parts[i].iov_base, parts[i].iov_len);
	if (!queue->first)
		queue->end = &queue->first;
	*queue->end = waiting;
	queue->end = &waiting->next;
	queue->bytes += len;
	return 0;
}

struct ofi_waiting *ofi_queue_take(struct ofi_queue *queue)
{
	struct ofi_waiting *waiting = queue->first;

	if (!waiting)
		return NULL;
	queue->first = waiting->next;
	queue->bytes -= waiting->len;
	return waiting;
}

void ofi_waiting_free(struct ofi_waiting *waiting)
{
	sim_block_put(waiting);
}

void ofi_queue_move(struct ofi_queue *to, struct ofi_queue *from)
{
	if (!from->first)
		return;
	if (!to->first)
		to->end = &to->first;
	*to->end = from->first;
	to->end = from->end;
	to->bytes += from->bytes;
	*from = (struct ofi_queue){ 0 };
}

void ofi_queue_clear(struct ofi_queue *queue)
{
	struct ofi_waiting *waiting;

	while ((waiting = ofi_queue_take(queue)))
		ofi_waiting_free(waiting);
}
