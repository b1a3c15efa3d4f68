/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iwarp_peer.h - a peer of our own making for the iWARP engine: it talks to the
 * engine segment by segment, where that listens, waits for a request or for a
 * reply, has a request, or is connected.
 */
#ifndef TESTS_UNIT_IWARP_PEER_H
#define TESTS_UNIT_IWARP_PEER_H

#include "providers/soft/cm/iwcm.h"
#include "sim_world.h"

/* Segments of the stream. */
enum { SYN = 1, SYN_ACK, RST, DATA, FIN };

#define PEER_HEADER 16u
#define PEER_MAX_SEGMENT 2048u	/* without the header */

/* Where the engine is. */
enum place {
	LISTENING,		/* nothing but segments makes sense */
	WAITS_FOR_REQUEST,
	HAS_REQUEST,
	ACCEPTED,
	WAITS_FOR_REPLY,
	CONNECTED,
	PLACES
};

struct peer {
	struct sim_port *ours, *engines;
	uint32_t engine_id;		/* its side of the stream */
	struct polycm_id *listener, *active, *child;
	struct ibv_qp *qp;
	uint8_t first[MPA_MAX_FRAME];	/* frame of the engine's */
	size_t first_len;
	unsigned int ended;		/* FINs and RSTs of the engine's */
};

extern struct peer peer;

void peer_set(enum place place);
/* Ends what there is; nothing may be left. */
void peer_leave(void);

/* A packet as it is, or a segment on the stream; 1 ms passes. */
void peer_send_raw(const uint8_t *data, size_t len);
void peer_send(uint8_t type, const uint8_t *data, size_t len);
/* 7 bytes of private data. */
size_t peer_make_frame(enum mpa_type type, uint8_t revision, uint8_t buf[MPA_MAX_FRAME]);

/* What the engine's program does with its requests. */
enum peer_answer { LEAVE, ACCEPT, REJECT };
void peer_serve(enum peer_answer answer);

#endif
