/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shm_pair.h - two processes on a shared fabric, with a connected QP each: the test, and a
 * child that is the same program.  The test writes to the child's standard input and reads from
 * its standard output; the child ends when its input does.
 */
#ifndef TESTS_UNIT_SHM_PAIR_H
#define TESTS_UNIT_SHM_PAIR_H

#include <sys/types.h>

#include "providers/soft/nic/sq.h"
#include "tests/cmocka_all.h"

#define SIZE (2u << 20)
#define RECEIVES 4u

/* What both must know of each other. */
struct pair_numbers {
	uint32_t qpn, rkey;
	uint64_t addr;
};

/* The end of this process; its buffer has SIZE to send from and SIZE to receive to. */
extern struct pair_end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;		/* NULL: the test has destroyed it; mr likewise */
	struct ibv_mr *mr;
	uint8_t *buf;
	struct sim_port *port;
} my;
/* The child's. */
extern struct pair_numbers its;
extern pid_t pair_pid;
extern int pair_from_child;

/* The next connection's, which then has no retries; 0: none. */
extern uint8_t pair_timeout;

bool pair_open(struct pair_numbers *ret_numbers);
bool pair_connect(const struct pair_numbers *peer);
void pair_close(void);		/* and assert that nothing is left */

/* A request of len bytes at the offset of the buffer; a receive to its second half. */
int pair_post(enum ibv_wr_opcode opcode, size_t offset, uint32_t len, uint64_t remote, uint32_t rkey);
/* Fetch and add; the old value goes to the beginning of the buffer. */
int pair_add(uint64_t remote, uint64_t value);
int pair_post_receive(void);
struct ibv_wc pair_next_completion(void);
void pair_fill(size_t len, uint8_t seed);

/* --- The child. --- */

/* Called for `--child MODE': prepare() before the test goes on, work() then; its exit status. */
int pair_child(const char *mode, bool (*prepare)(const char *mode), bool (*work)(const char *mode));
bool pair_input_ended(void);

/* --- The test. --- */

void pair_start(const char *mode, const char *pull);
/* The child ends with that status of waitpid(). */
void pair_reap(int expected);
void pair_end(void);		/* both end without an error */
int pair_make_folder(void **state);
int pair_remove_folder(void **state);

#endif
