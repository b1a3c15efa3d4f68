/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/route.h - packets to processes of other machines and from them: to whom they go, and what
 * waits until that is known.  Engine lock held for all.
 */
#ifndef OFI_ROUTE_H
#define OFI_ROUTE_H

#include "incoming.h"
#include "peer.h"

struct ofi_stream;

/* A host answers through this peer, or no program of ours runs there, or it is silent. */
void ofi_route_opened(struct sim_remote_host *host, struct ofi_peer *peer);
void ofi_route_bare(struct sim_remote_host *host);
void ofi_route_silent(struct sim_remote_host *host);

/* What waits until somebody of the host is found is old: it is sent again, or nobody wants it. */
void ofi_route_drop_waiting(struct sim_remote_host *host);
/* Send what waits for the peer, which has a session. */
void ofi_route_flush(struct ofi_peer *peer);
/* What waits for it goes to whoever answers for its host. */
void ofi_route_again(struct sim_remote_host *host, struct ofi_queue *waiting);
/* No stream leads to the peer: it answers nothing that it was asked. */
void ofi_route_closed(struct ofi_peer *peer);
/* The peer has ended: forget which numbers it had. */
void ofi_route_forget(struct ofi_peer *peer);
/* Forget all of a host. */
void ofi_route_drop(struct sim_remote_host *host);

/* Somebody has answered who has a QP number. */
void ofi_route_found(struct ofi_peer *peer, const struct ofi_found *found);

/*
 * Send the body of a PACKET frame of a type, or let it wait until there is a session.  -ENOMEM: it
 * is lost.
 */
int ofi_send_to(struct ofi_peer *peer, enum sim_packet_type type, const struct iovec *parts,
		unsigned int num, size_t len);

/* A frame of an open session; false: it is nonsense (receive.c). */
bool ofi_route_frame(struct ofi_peer *peer, uint8_t type, uint8_t *body, size_t len);
/* A long PACKET frame, of which the head is here: where the rest goes, and it is there (incoming.h). */
unsigned int ofi_route_place(struct ofi_stream *stream, uint8_t type, const uint8_t *head, size_t len,
			     struct iovec to[static OFI_PLACE_MAX]);
void ofi_route_placed(struct ofi_stream *stream, const uint8_t *head, size_t len);

void ofi_route_start(void);		/* sets sim_link_to_machine */
void ofi_route_stop(void);

#endif
