/* SPDX-License-Identifier: BSD-2-Clause */
/* bench/ends.h - two processes with a connection through the simulator, and what the machine can do. */
#ifndef BENCH_ENDS_H
#define BENCH_ENDS_H

#include <stdint.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define PORT "7472"
#define BLOCK (1u << 20)

struct buffer_info {	/* sent by the server first */
	uint64_t addr;
	uint32_t rkey;
};

double seconds(void);
void die(const char *what);

/*
 * The yardsticks, from run_pairs() on: seconds of a cache line from one core to the other, one
 * way; bytes a second of memcpy().
 */
extern double line, copy;

struct rdma_addrinfo *address(int flags);
struct ibv_qp_init_attr qp_attr(void);
/* Two blocks, registered for everything. */
char *blocks(struct rdma_cm_id *id, struct ibv_mr **ret_mr);
/* Polls. */
void wait_completion(struct ibv_cq *cq);

/*
 * Measure and print what the machine can do.  Then, on each transport: a server, which gets an
 * id that listens, and a client.  The exit status.
 */
int run_pairs(const char *what, void (*serve)(struct rdma_cm_id *listener), void (*client)(void));

#endif
