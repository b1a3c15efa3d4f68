/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm_fake.h - providers for the tests of the rdma_* calls.  They do what they
 * are told, write down what they were called with, and post what a test says.
 *
 * fakes[0], "acme", carries 10.0.0.0/8 and plays an IB-like transport with
 * everything; fakes[1], "beta", carries 20.0.0.0/8, and its devices move QPs
 * themselves.  The device has 16 responder resources and an initiator depth of
 * 8; its QPs are made in cm_fake_verbs.c.
 */
#ifndef TESTS_UNIT_CM_FAKE_H
#define TESTS_UNIT_CM_FAKE_H

#include "tests/cmocka_all.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "capture.h"
#include "core/base/addr.h"
#include "core/cm/id_internal.h"

enum fake_op {
	OP_OPEN, OP_BIND, OP_RESOLVE_ADDR, OP_RESOLVE_ROUTE, OP_LISTEN, OP_CONNECT, OP_ACCEPT,
	OP_REJECT, OP_ESTABLISH, OP_DISCONNECT, OP_NOTIFY, OP_SET_OPTION, OP_INIT_QP_ATTR,
	OP_QUERY, OP_JOIN, OP_LEAVE, OP_MIGRATE, OP_CLOSE, OP_STOP, OP_FREE,
	OP_CHANNEL_OPEN, OP_CHANNEL_READ, OP_CHANNEL_CLOSE,
	NUM_OPS
};

#define FAKE_RESPONDER_RESOURCES	16
#define FAKE_INITIATOR_DEPTH		8

struct fake;

/* A fake's area of an id. */
struct fake_id {
	struct fake *fake;
	struct polycm_id *id;
	bool bound, on_device;
	struct sockaddr_storage src, dst;
	void *chan;
	void *group;		/* of the last join */
};

struct fake {
	const char *name;
	uint8_t net;			/* first octet of what it carries */
	bool absent;			/* as if it had no device */
	bool quiet;			/* resolving posts nothing */
	bool no_device;			/* query() says so */
	int fail[NUM_OPS];		/* what the operations return */
	unsigned int calls[NUM_OPS];
	char trace[512];		/* their names, but for query and init_qp_attr */
	struct polycm_conn_param param;	/* of connect and accept */
	uint8_t data[256];		/* of those and reject */
	uint8_t reason;
	uint8_t option_value;
	enum rdma_cm_event_type option_event;	/* set_option() posts it, if not 0 */
	int backlog;
	enum ibv_event_type notified;
	uint32_t join_flags;
	enum rdma_cm_event_type join_event;	/* join() posts it, if not 0 */
	struct polycm_ece request_ece;		/* of post_request() */
	struct sockaddr_storage last_bind;
	uint16_t next_port;
	int pull_fd;			/* channel_open() gives it; -1: none */
	struct polycm_event pulled;	/* channel_read() posts it */
	struct polycm_id *pulled_id;
	int ids, channels;		/* open and not freed */
	struct polycm_module *module;
	struct polycm_device *device;
	struct fake_id *last;		/* opened last */
	unsigned int access_flags;	/* of its QPs, said with INIT */
	uint8_t qp_port;		/* likewise */
	pthread_t *stop_joins;		/* stop() waits for this thread to end */
	void (*in_stop)(struct polycm_id *id);	/* stop() calls it, once */
	void (*inspect)(const struct polycm_report *to);	/* inspect() calls it */
};

extern struct fake fakes[2];

/* Before the providers start: beta owns time, and installs this. */
extern const struct polycm_clock *beta_clock;

/* What the fake verbs saw. */
struct fake_verbs {
	int contexts, pds, channels, cqs, qps, srqs, attached;
	char moves[256];		/* "INIT RTR(4) RTS(2)": depths in brackets */
	enum ibv_qp_state refuse;	/* moves to it fail with refuse_errno */
	int refuse_errno;
	int attach_errno;
	int create_qp_errno;
	bool no_cq;
	int cqe;			/* of the last CQ */
	int mask;			/* of the last move to RTR */
	struct ibv_qp_attr rtr;		/* likewise */
	struct ibv_qp_init_attr qp_attr;	/* of the last QP */
	bool has_ece;
	struct ibv_ece own_ece, set_ece;
	int set_ece_errno;
};

extern struct fake_verbs fake_verbs;
extern const struct polycm_verbs fake_verbs_table;

/* Add the first `num' fakes to the registry: group set-up of a program, once. */
int fakes_start(unsigned int num);
/* Set-up and tear-down of every test: nothing is left behind. */
int fakes_reset(void **state);
int fakes_check(void **state);

static inline struct fake_id *fake_id_of(struct rdma_cm_id *id)
{
	return (struct fake_id *)(void *)((struct polycm_id *)(void *)id)->priv;
}

/* "10.0.0.1", 7471; the result is static, one for each of a few calls in a row. */
struct sockaddr *addr4(const char *text, uint16_t port);

/* Post for an id; what post_event() returns. */
int post(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status);
/* With connection parameters. */
int post_conn(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status,
	      const struct rdma_conn_param *conn, const struct polycm_ece *ece);
/* A connection request on a listener, made by `fake'; the id as its provider has it. */
int post_request(struct fake *fake, struct polycm_id *listener, const struct rdma_conn_param *conn,
		 struct polycm_id **ret_child);

/* The next event must be this one. */
struct rdma_cm_event *next_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type,
				 int status);
/* The same, acked. */
void expect_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type, int status);
/* There must be none (sets O_NONBLOCK for the look). */
void expect_no_event(struct rdma_event_channel *channel);

/* An id of RDMA_PS_TCP on the channel: created, with its route resolved, with a QP as well. */
struct rdma_cm_id *new_id(struct rdma_event_channel *channel);
struct rdma_cm_id *resolved_id(struct rdma_event_channel *channel);
struct rdma_cm_id *qp_id(struct rdma_event_channel *channel);
/* A listener on port 7471 of the wildcard address. */
struct rdma_cm_id *listening_id(struct rdma_event_channel *channel);
/* The id of a request with responder resources 5 and initiator depth 3. */
struct rdma_cm_id *requested_id(struct rdma_cm_id *listener);

void create_qp(struct rdma_cm_id *id);

#define RDMA_TEST(function) \
	cmocka_unit_test_setup_teardown(function, fakes_reset, fakes_check)

/* A call that fails so. */
#define assert_errno(call, number) do { \
	errno = 0; \
	assert_int_equal((call), -1); \
	assert_int_equal(errno, (number)); \
} while (0)

#endif
