/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/ibcm_id.h - a communication id of the InfiniBand CM engine (ibcm.h), which
 * is part of each id: so one look into the memory of an id finds both.
 */
#ifndef SIM_IBCM_ID_H
#define SIM_IBCM_ID_H

#include "providers/soft/engine/engine.h"

struct sim_id;
struct sim_port;

/* How ids are found. */
enum ibcm_table {
	IBCM_BY_LOCAL,		/* our communication id */
	IBCM_BY_REMOTE,		/* the peer's communication id and CA: repeated requests */
	IBCM_BY_QPN,		/* the peer's QP and CA: stale connections */
	IBCM_TABLES
};

struct ibcm_buffer;

struct ibcm {
	struct sim_id *id;
	struct sim_port *peer;		/* NULL: gone, what is sent there is lost */
	void *next[IBCM_TABLES];	/* cm_table's links */
	struct sim_timer timer;		/* the next repetition, or the end of TIMEWAIT */
	struct ibcm_buffer *repeating;	/* the message that the timer repeats */
	uint64_t tid;
	uint64_t remote_ca_guid;	/* of a SIDR request: the sender's LID */
	uint32_t local_id;
	uint32_t remote_id;		/* 0: not known yet */
	uint32_t remote_qpn;
	uint32_t sq_psn;		/* the peer wants us to start here */
	uint32_t qkey;			/* UD; 0: none yet */
	uint32_t timeout_ms;		/* one wait for an answer */
	uint32_t wait_ms;		/* the same for the message being repeated */
	uint32_t request_slot;		/* process that a REQ went to last */
	uint16_t dlid;
	uint8_t state;			/* enum ibcm_state */
	uint8_t peer_state;		/* as the process of the peer told it: cma_death.c */
	uint8_t in_tables;		/* bit per enum ibcm_table */
	uint8_t max_retries, retries_left;
	uint8_t av_timeout;		/* exponent, twice the packet lifetime and the peer's delay */
	uint8_t retry_count, rnr_retry_count;
	uint8_t responder_resources, initiator_depth;
};

#endif
