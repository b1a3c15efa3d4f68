/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic_pair.h - two simulated NICs, A and B, on a private fabric under the
 * virtual clock, called through sim_verbs as the core would; and a filter
 * through which packets pass.
 */
#ifndef TESTS_UNIT_NIC_PAIR_H
#define TESTS_UNIT_NIC_PAIR_H

#include "tests/cmocka_all.h"

#include "providers/soft/link/link.h"
#include "providers/soft/nic/nic.h"

enum pair_transport { PAIR_ROCE, PAIR_IB, PAIR_IWARP, PAIR_TRANSPORTS };

#define PAIR_BUF (64u << 10)
#define PAIR_ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		  IBV_ACCESS_REMOTE_ATOMIC)
#define PAIR_LATENCY SIM_US(1)	/* of the link */

struct pair_side {
	struct sim_node *node;
	struct sim_device *device;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;		/* sends and receives */
	struct ibv_srq *srq;		/* NULL: none */
	struct ibv_qp *qp;		/* NULL: none */
	uint8_t *buf;			/* PAIR_BUF bytes */
	struct ibv_mr *mr;		/* of buf, PAIR_ALL */
};

/* How the QPs are connected; pair_defaults() is a good start. */
struct pair_conn {
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	unsigned int access;
	bool sq_sig_all;
	bool srq;
	struct ibv_qp_cap cap;
};

extern struct pair_side a, b;

void pair_open(enum pair_transport transport);
/* Fails unless every object is gone. */
void pair_close(void);
/* The same, but objects may be left: closing the contexts takes them. */
void pair_abandon(void);
/* Set-up of a test that has the pair on RoCE, and the tear-down. */
int open_roce(void **state);
int close_pair(void **state);

struct pair_conn pair_defaults(void);
/* QPs a.qp and b.qp, connected.  B's are in its SRQ if conn->srq. */
void pair_connect(const struct pair_conn *conn);
struct ibv_qp *pair_qp(struct pair_side *side, const struct pair_conn *conn);
int pair_modify(struct ibv_qp *qp, enum ibv_qp_state state);
int pair_to_init(struct pair_side *side, struct ibv_qp *qp, const struct pair_conn *conn);
int pair_to_rtr(struct pair_side *side, struct ibv_qp *qp, struct pair_side *peer,
		uint32_t peer_qpn, const struct pair_conn *conn);
int pair_to_rts(struct ibv_qp *qp, const struct pair_conn *conn);
/* UD */
struct ibv_qp *pair_ud_qp(struct pair_side *side, uint32_t qkey);	/* in RTS */
void pair_ud_to_rts(struct ibv_qp *qp, uint32_t qkey);
void pair_disconnect(void);	/* destroys the QPs */
enum ibv_qp_state pair_state(struct ibv_qp *qp);

/* Posting; `offset' and `len' are of the side's buffer.  The results are the calls'. */
struct ibv_sge pair_sge(const struct pair_side *side, size_t offset, size_t len);
int pair_recv(struct pair_side *side, uint64_t wr_id, size_t offset, size_t len);
int pair_post(struct pair_side *side, struct ibv_send_wr *wr);
int pair_send(struct pair_side *side, uint64_t wr_id, size_t offset, size_t len);
/* Write, read and atomics: to the peer's buffer at remote. */
int pair_rdma(struct pair_side *side, enum ibv_wr_opcode opcode, uint64_t wr_id, size_t offset,
	      size_t len, size_t remote);

/* The next completion, moving time; fails unless it is this. */
struct ibv_wc pair_expect(struct pair_side *side, uint64_t wr_id, enum ibv_wc_status status);
/* No completion is there, nor comes within so much time. */
void pair_none(struct pair_side *side, uint64_t ns);
/* The next asynchronous event, acknowledged; fails unless it is this. */
void pair_async(struct pair_side *side, enum ibv_event_type type);
void pair_no_async(struct pair_side *side);

/* Bytes that depend on the place. */
void pair_fill(struct pair_side *side, size_t offset, size_t len, uint8_t seed);
void pair_check(const struct pair_side *side, size_t offset, size_t len, uint8_t seed);

/* Packets of RC and UD pass through this, if set; false: lost. */
extern bool (*pair_filter)(const struct sim_packet *packet);
/* Deliver once more, from within the filter. */
void pair_deliver(const struct sim_packet *packet);

/* What the NIC told the owner of a stream. */
extern unsigned int pair_closed_by_program, pair_closed_by_nic;

/* The newest log line of the level. */
const char *pair_log(void);
/* Was there a line with that text at `warn' since the last call? */
bool pair_warned(const char *text);
/* So many lines at `warn' there were. */
extern unsigned int pair_warnings;

struct pair_refusal {
	int (*call)(void);		/* its error */
	int err;
	const char *name, *text;	/* of the call; in the reason */
};
/* Fails unless the call fails so, with one line at `warn' that has both. */
void pair_refused(const struct pair_refusal *refusal);

#endif
