/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tests/api/transfer.h - a connected pair with memory and queue pairs at both
 * ends, for tests of the data path through rdma_verbs.h.
 */
#ifndef TESTS_API_TRANSFER_H
#define TESTS_API_TRANSFER_H

#include <rdma/rdma_verbs.h>

#include "steps.h"

#define TRANSFER_SIZE 65536u	/* bytes of each end's memory */
#define TRANSFER_WRS 16u	/* requests that fit each queue */
#define TRANSFER_SGES 4u
#define TRANSFER_INLINE 64u

struct end {
	struct rdma_cm_id *id;
	struct rdma_event_channel *channel;
	struct ibv_mr *mr;		/* of all of data, any access */
	uint8_t *data;
};

struct transfer {
	struct pair pair;
	struct end client, server;
};

/* Connected; send requests complete if flagged so.  NULL: pair_param(). */
void transfer_open(struct transfer *transfer, enum transport transport,
		   const struct rdma_conn_param *param);
void transfer_close(struct transfer *transfer);

/* Known bytes, other than what is there at first. */
void transfer_fill(struct end *end, size_t at, size_t len, uint8_t seed);
void transfer_check(const struct end *end, size_t at, size_t len, uint8_t seed);
/* Untouched since transfer_open(). */
void transfer_check_clean(const struct end *end, size_t at, size_t len);

/* Post with wr_id and IBV_SEND_SIGNALED, part of the end's own memory. */
void transfer_recv(struct end *end, uint64_t wr_id, size_t at, size_t len);
void transfer_send(struct end *end, uint64_t wr_id, size_t at, size_t len);
int transfer_post(struct end *end, uint64_t wr_id, enum ibv_wr_opcode opcode, size_t at, size_t len,
		  const struct end *remote, size_t remote_at);

/* The next completion, waiting for it: this one, with this status; the whole of it in the result. */
struct ibv_wc transfer_sent(struct end *end, uint64_t wr_id, enum ibv_wc_status status);
struct ibv_wc transfer_received(struct end *end, uint64_t wr_id, enum ibv_wc_status status);
/* No completion is there now; no time passes. */
void transfer_none(struct end *end);

#endif
