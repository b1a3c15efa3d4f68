/* SPDX-License-Identifier: BSD-2-Clause */
/* tests/scenarios/scene_data.h - messages of ids with QPs, for scenarios of the data path. */
#ifndef TESTS_SCENARIOS_SCENE_DATA_H
#define TESTS_SCENARIOS_SCENE_DATA_H

#include "scene.h"

/* Bytes of an id's PD that messages come from (counting) and go to; reachable for the peer. */
enum { MEMORY = 16384 };
uint8_t *memory(struct rdma_cm_id *id);
struct ibv_mr *memory_mr(struct rdma_cm_id *id);

/* Work requests of the id's QP, for TRY(): -1 with errno where ibv_post_...() gives one. */
int post_recv(struct rdma_cm_id *id, uint64_t wr_id, uint32_t len);
int post_send(struct rdma_cm_id *id, uint64_t wr_id, uint32_t len);
/* Any opcode; remote: whose memory is written or read (NULL: none). */
int post_op(struct rdma_cm_id *id, uint64_t wr_id, enum ibv_wr_opcode opcode, uint32_t len,
	    struct rdma_cm_id *remote);
int post_wr(struct rdma_cm_id *id, struct ibv_send_wr *wr);
/* To the peer that a datagram id's ESTABLISHED or MULTICAST_JOIN names. */
int post_datagram(struct rdma_cm_id *id, uint64_t wr_id, uint32_t len,
		  const struct rdma_ud_param *to, uint32_t qkey);

/* The next so many completions of the id's send or receive queue, shown; "nothing" if none comes.
 */
void sent(struct rdma_cm_id *id, unsigned int num);
void received(struct rdma_cm_id *id, unsigned int num);
/* What comes within 0.2 s, both queues. */
void completions_rest(struct rdma_cm_id *id);
/* Of a CQ of the scenario's own. */
void completed(const char *name, struct ibv_cq *cq, unsigned int num);

/* All that ibv_query_qp() tells, and how the two ends fit. */
void show_qp_all(struct rdma_cm_id *id);
void show_qp_pair(struct rdma_cm_id *a, struct rdma_cm_id *b);

/* For scene.c. */
void data_end(void);

#endif
