/* SPDX-License-Identifier: BSD-2-Clause */
/* acmesock.h - what the files of provider-acmesock.so share; see provider-acmesock.c. */
#ifndef ACMESOCK_H
#define ACMESOCK_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include <polycm/provider.h>
#include <polycm/verbs.h>

#define MAX_DATA	65536u	/* of one message: the port's max_msg_sz */
#define MAX_PRIVATE	196u
#define MAX_WR		256u
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

#define FRAME_MAGIC	0x61636d32u	/* a new protocol changes it */

/*
 * Both processes run on one host, so numbers go as the host has them.  They may
 * be built with different versions of polycm, so no struct of <polycm/provider.h>
 * goes over the wire.
 */
struct frame_head {
	uint32_t magic;
	uint8_t type;
	uint8_t status;			/* REJECT: reason; REPLY: enum ibv_wc_status */
	uint8_t responder_resources, initiator_depth;	/* CONNECT, ACCEPT: the sender's */
	uint64_t addr;			/* WRITE, READ */
	uint32_t rkey;			/* WRITE, READ */
	uint32_t length;		/* READ */
	uint32_t qp_num;		/* CONNECT, ACCEPT */
	uint32_t zero;
	struct sockaddr_in src, dst;	/* CONNECT */
};

/* No byte that nobody wrote goes to the peer. */
_Static_assert(sizeof(struct frame_head) == 64, "the head of a frame has no gaps");

struct frame {
	struct frame_head head;
	uint8_t data[MAX_DATA];
};

/* ------------------------------------------------------------------------
 * What there is.
 */

/* Everything that is found by a number is on a list of its kind. */
struct object {
	struct object *next;
	uint32_t number;	/* 24 bits, not 0 */
	void *self;
};

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
	struct object object;
	struct polycm_id *id;
	enum conn_state state;
	int fd;			/* -1: none */
	uint32_t listener;	/* ARRIVED: the listener's number */
	struct sockaddr_in src, dst;
	struct qp *qp;
	bool paused;		/* the QP cannot take the next frame yet */
	unsigned int frames;	/* received */
};

struct channel {
	struct ibv_comp_channel base;	/* base.fd: the reading end of a pipe of CQ numbers */
	int write_fd;
};

struct cq {
	struct ibv_cq base;
	struct object object;
	bool armed;
	unsigned int events, acked;
	unsigned int first, count;
	struct ibv_wc ring[];	/* of base.cqe */
};

struct mr {
	struct ibv_mr base;	/* lkey and rkey are the object's number */
	struct object object;
	unsigned int access;
};

struct wr {
	uint64_t id;
	enum ibv_wr_opcode opcode;
	unsigned int flags;
	uint64_t addr;
	uint32_t rkey;
	struct ibv_sge sge;	/* length 0: none */
};

struct wr_queue {
	unsigned int first, count, max;
	struct wr ring[MAX_WR];
};

struct qp {
	struct ibv_qp base;	/* qp_num is the object's number */
	struct object object;
	struct conn *conn;
	struct wr_queue send, recv;
	bool all_signaled;
	bool waiting;		/* the first of `send' is on its way */
};

struct acme {
	pthread_mutex_t lock;
	pthread_cond_t acked;		/* of CQ events, for destroy_cq() */
	struct polycm_device *device;	/* the core's */
	struct object *conns, *qps, *cqs, *mrs;
	uint32_t last_number;
	pthread_t thread;
	bool has_thread;
	int epoll, wake;
	struct frame frame;		/* what the thread received last */
};

extern const struct polycm_core *core;
extern struct acme acme;

/* All that follows is called with the lock held, unless said otherwise.  NULL: there is none. */

/* --- acmesock-verbs.c: the device. --- */

extern struct polycm_verbs_device acme_device;

/* Without the lock: attributes that bring a QP to attr->qp_state. */
int qp_attr(struct ibv_qp_attr *attr, int *ret_mask);

/* --- acmesock-data.c: the data path. --- */

/* ibv_context.ops: they take the lock. */
int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* A QP and the connection of its id belong together until one of them ends. */
void qp_attach(uint32_t qp_num, struct conn *conn);
void qp_detach(struct qp *qp);
/* To ERR: what was posted comes back flushed. */
void qp_fail(struct qp *qp);
/* May a frame of this type be given to the QP (which may be NULL) now? */
bool qp_takes(const struct qp *qp, uint8_t type);
void qp_receive(struct qp *qp, const struct frame *frame, uint32_t len);

/* --- acmesock-conn.c: connections. --- */

void object_add(struct object **list, struct object *object, void *self);
/* May be called twice. */
void object_remove(struct object **list, struct object *object);
void *object_find(struct object *list, uint32_t number);

/* Again in a child that fork() made, which has no thread. */
int start_thread(void);
/* These four without the lock; the last three for pthread_atfork(). */
void stop_thread(void);
void before_fork(void);
void after_fork(void);
void in_child(void);

/* Takes the conn off the list, closes its socket.  May be called twice. */
void conn_remove(struct conn *conn);

/* A socket whose name is the port; port 0 takes a free one. */
int conn_take_port(struct conn *conn, const struct sockaddr_in *addr);
socklen_t port_name(struct sockaddr_un *name, unsigned int port);
bool is_own_user(int fd);
bool is_loopback(const struct sockaddr_in *addr);
/* Wait for the socket: op is epoll_ctl()'s. */
int conn_watch(struct conn *conn, int op);

/* Sends a frame.  An error needs no care: the end of the connection follows. */
void conn_send(struct conn *conn, const struct frame_head *head, const void *data, size_t len);

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
/* For the thread: the socket of the connection of that number is readable, or at its end. */
void conn_ready(uint32_t number, bool at_end);

#endif
