/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/queue.h - bodies of PACKET frames that wait until it is known where they go, or until there
 * is a way.  Engine lock held.
 */
#ifndef OFI_QUEUE_H
#define OFI_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "providers/soft/wire/packet.h"

struct ofi_waiting {
	struct ofi_waiting *next;
	enum sim_packet_type type;
	size_t len;
	uint8_t bytes[];
};

struct ofi_queue {
	struct ofi_waiting *first, **end;	/* end NULL: empty */
	size_t bytes;
};

/* 0; -ENOMEM; -ENOBUFS: too much waits, and the protocol of its type repeats it. */
int ofi_queue_put(struct ofi_queue *queue, enum sim_packet_type type, const struct iovec *parts,
		  unsigned int num, size_t len);
/* The first one, which is the caller's to free, or NULL. */
struct ofi_waiting *ofi_queue_take(struct ofi_queue *queue);
void ofi_waiting_free(struct ofi_waiting *waiting);
/* All of `from' behind what is in `to'. */
void ofi_queue_move(struct ofi_queue *to, struct ofi_queue *from);
void ofi_queue_clear(struct ofi_queue *queue);

#endif
