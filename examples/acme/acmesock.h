/* SPDX-License-Identifier: BSD-2-Clause */
/* acmesock.h - what the files of provider-acmesock.so share; see provider-acmesock.c. */
#ifndef ACMESOCK_H
#define ACMESOCK_H

#include <pthread.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <polycm/provider.h>
#include <polycm/verbs.h>

#define MAX_DATA	65536u	/* of one message: the port's max_msg_sz */
#define MAX_PRIVATE	196u
#define MAX_SGE		4u
#define MAX_RD_ATOMIC	1	/* one request on its way */
#define REASON_NO_LISTENER	8	/* numbers of IB's REJ, whose words the core knows */
#define REASON_CONSUMER		28

/* ------------------------------------------------------------------------
 * The wire.
 */

enum frame_type {
	FRAME_CONNECT = 1, FRAME_ACCEPT, FRAME_REJECT, FRAME_READY,
	FRAME_SEND, FRAME_WRITE, FRAME_READ, FRAME_REPLY,
};

#define FRAME_MAGIC	0x61636d31u

/*
 * Both processes run on one host, so numbers go as the host has them.  They may
 * be built with different versions of polycm, so no struct of <polycm/provider.h>
 * goes over the wire.
 */
struct frame_head {
	uint32_t magic;			/* FRAME_MAGIC, which a new protocol changes */
	uint8_t type;
	uint8_t status;			/* REJECT: reason; REPLY: the requester's enum ibv_wc_status */
	uint8_t solicited, has_imm;	/* SEND */
	uint64_t addr;			/* WRITE, READ */
	uint32_t rkey;			/* WRITE, READ */
	uint32_t length;		/* READ */
	__be32 imm;			/* SEND */
	uint32_t qp_num;		/* CONNECT, ACCEPT; so are the next eight */
	uint8_t responder_resources, initiator_depth;
	uint8_t flow_control, retry_count, rnr_retry_count, srq;
	uint8_t zero[2];
	struct sockaddr_in src, dst;	/* CONNECT */
};

/* No byte that nobody wrote goes to the peer. */
_Static_assert(sizeof(struct frame_head) == 72, "the head of a frame has no gaps");

struct frame {
	struct frame_head head;
	uint8_t data[MAX_DATA];
};

/* ------------------------------------------------------------------------
 * What there is.
 */

/* States of an id.  The comment names the Linux RDMA CM's state. */
enum conn_state {
	IDLE,
	BOUND,			/* ADDR_BOUND */
	ADDRESSED,		/* ADDR_RESOLVED */
	ROUTED,			/* ROUTE_RESOLVED */
	LISTENING,		/* LISTEN */
	ARRIVED,		/* a child whose CONNECT is not here yet */
	CONNECTING,		/* CONNECT: ours is sent */
	REQUESTED,		/* CONNECT: a child that the program is to answer */
	ACCEPTED,		/* CONNECT: a child, answered, waits for READY */
	ANSWERED,		/* CONNECT: the peer accepted, establish() follows */
	CONNECTED,		/* CONNECT */
	ENDED,			/* CONNECT, DISCONNECT: this side or the peer has ended it */
};

struct conn {
	struct conn *next;
	struct polycm_id *id;
	enum conn_state state;
	int fd;			/* -1: none */
	uint32_t number;	/* not 0, never used again */
	uint32_t listener;	/* ARRIVED: the listener's number */
	struct sockaddr_in src, dst;
	struct qp *qp;
	struct frame *held;	/* a SEND that the QP could not take yet */
	uint32_t held_len;	/* of its data */
};

struct channel {
	struct ibv_comp_channel base;	/* base.fd: the reading end of a pipe of CQ numbers */
	int write_fd;
};

struct cq {
	struct ibv_cq base;
	struct cq *next;
	uint32_t number;
	enum { NOT_ARMED, ARMED_SOLICITED, ARMED } armed;
	unsigned int events, acked;
	unsigned int first, count, size;
	struct ibv_wc *ring;
};

struct mr {
	struct ibv_mr base;	/* lkey and rkey are the same number */
	struct mr *next;
	unsigned int access;
};

struct wr {
	uint64_t id;
	enum ibv_wr_opcode opcode;
	unsigned int flags;
	__be32 imm;
	uint64_t addr;
	uint32_t rkey, length, num_sge;
	struct ibv_sge sge[MAX_SGE];
};

struct wr_queue {
	struct wr *ring;
	unsigned int first, count, size;
};

struct qp {
	struct ibv_qp base;
	struct qp *next;
	struct conn *conn;
	struct wr_queue send, recv;
	struct ibv_qp_cap cap;
	bool all_signaled;
	bool waiting;		/* the first of `send' is on its way */
};

struct acme {
	pthread_mutex_t lock;
	pthread_cond_t acked;		/* of CQ events, for destroy_cq() */
	struct polycm_device *device;	/* the core's */
	struct conn *conns;
	struct qp *qps;
	struct cq *cqs;
	struct mr *mrs;
	uint32_t last_number;		/* of conns, CQs and MRs, which begin with 1 */
	pthread_t thread;
	bool has_thread;
	int epoll, wake;
	struct frame frame;		/* what the thread received last */
};

extern const struct polycm_core *core;
extern struct acme acme;

/* --- acmesock-verbs.c: the device. --- */

extern struct polycm_verbs_device acme_device;

/* Attributes that bring a QP to attr->qp_state. */
int qp_attr(struct ibv_qp_attr *attr, int *ret_mask);

/* --- acmesock-data.c: the data path. --- */

/* ibv_context.ops: they take the lock. */
int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* All that follows is called with the lock held.  NULL: there is none. */
struct qp *qp_find(uint32_t qp_num);
/* A QP and the connection of its id belong together until one of them ends. */
void qp_attach(uint32_t qp_num, struct conn *conn);
void qp_detach(struct qp *qp);
/* To ERR: what was posted comes back flushed. */
void qp_fail(struct qp *qp);
/* A frame of the data path.  qp may be NULL.  false: the QP cannot take it yet. */
bool qp_receive(struct qp *qp, const struct frame *frame, uint32_t len);

/* --- acmesock-conn.c: connections.  All with the lock held. --- */

struct conn *conn_find(uint32_t number);
void conn_add(struct conn *conn);
/* Takes the conn off the list, closes its socket.  May be called twice. */
void conn_remove(struct conn *conn);

/* A socket whose name is the port; port 0 takes a free one. */
int conn_take_port(struct conn *conn, const struct sockaddr_in *addr);
socklen_t port_name(struct sockaddr_un *name, unsigned int port);
bool is_own_user(int fd);
/* Wait for the socket: op is epoll_ctl()'s. */
int conn_watch(struct conn *conn, int op);

/*
 * Sends a frame, made of head and parts[1] to parts[num_parts - 1]; parts[0] is
 * for the head.  An error needs no care: the end of the connection follows.
 */
void conn_send(struct conn *conn, const struct frame_head *head, struct iovec *parts,
	       unsigned int num_parts);
void conn_message(struct conn *conn, const struct frame_head *head, const void *data, size_t len);

/* An event.  why, child and frame may be NULL; len is that of the frame's private data. */
int conn_post(struct conn *conn, enum rdma_cm_event_type type, int status, const char *why,
	      struct conn *child, const struct frame *frame, uint32_t len);
void conn_post_plain(struct conn *conn, enum rdma_cm_event_type type);

/* The QP may take now what it could not take before. */
void conn_resume(struct conn *conn);
/* This side ends the connection, or the peer has. */
void conn_end(struct conn *conn);
/* The peer has: conn_end() and the event.  Frees a child that the program does not know. */
void conn_ended(struct conn *conn);
/* For the thread: a listener's socket, any other's. */
void conn_arrive(struct conn *listener);
void conn_read(uint32_t number, bool at_end);

#endif
