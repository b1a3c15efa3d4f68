/* SPDX-License-Identifier: BSD-2-Clause */
/* rsocket/stream.h - connected rsockets: their states, their endpoint, their bytes. */
#ifndef POLYCM_CORE_RSOCKET_STREAM_H
#define POLYCM_CORE_RSOCKET_STREAM_H

#include "rsocket.h"
#include "wire.h"

#define STREAM_CONTROLS		4u	/* sends that are kept back for messages without data */
/* Receives beyond those that the peer has credits for: its messages without data. */
#define STREAM_SPARE_RECEIVES	8u
#define STREAM_LAST_RETRY	6u	/* of resolving: 1, 2, ..., 64 s */

enum stream_state {
	STREAM_NEW,
	STREAM_BOUND,
	STREAM_LISTENING,
	STREAM_RESOLVING_ADDR,
	STREAM_RESOLVING_ROUTE,
	STREAM_CONNECTING,
	STREAM_ACCEPTING,
	STREAM_CONNECTED,
	STREAM_ENDED,			/* by a message or an event of the peer, or by our own message */
	STREAM_FAILED,			/* `failure' says why */
};

/* What a work request was, in its wr_id, above the bytes of the send buffer that it frees. */
enum stream_wr { WR_RECEIVE, WR_DATA, WR_CONTROL, WR_DISCONNECT };

/* Memory that is registered by riomap(). */
struct stream_iomap {
	struct stream_iomap *next;
	struct ibv_mr *mr;
	uint64_t offset;
	int index;			/* in the peer's table; -1: the peer is not to know it */
	bool pending;			/* the peer was not told yet */
};

struct stream {
	struct rsocket rs;		/* first */
	enum stream_state state;
	bool can_read, can_write;	/* neither end has ended this direction */
	int failure;			/* negative errno */

	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct sockaddr_storage to;
	unsigned int retries;
	void *route;			/* RDMA_ROUTE */
	socklen_t route_len;
	struct stream *next;		/* in a listener's queue */
	struct stream *accepted;	/* a listener's: nobody has called raccept() for them */

	/* The endpoint (stream_endpoint.c). */
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	bool armed;
	unsigned int unacked;		/* completion events */
	bool messages;			/* are sends: iWARP */
	bool silent;			/* iWARP's responder, until the initiator has sent something */
	bool swap;			/* the peer has the other byte order */
	bool by_offset;			/* stream_register() */
	unsigned int keepalive_idle;	/* TCP_KEEPIDLE; 0: not known yet */
	uint64_t keepalive_ns;		/* 0: off */
	uint64_t keepalive_due_ns;

	/* What the peer writes. */
	uint8_t *receive_buffer;	/* two halves, then the messages of iWARP */
	struct ibv_mr *receive_mr;
	uint32_t half;
	uint32_t read_at, unread;	/* where the program reads on, and how much there is */
	uint32_t freed;			/* that was read and not granted again */
	uint32_t granted;		/* that the peer may write */
	uint32_t grant_at;		/* the half that is granted next */
	uint16_t received;		/* messages that used up a credit */
	uint16_t received_at_grant;
	unsigned int peer_entry;	/* of the peer's table that is written next */
	struct rsocket_range peer_table, peer_iomaps;

	/* What we write. */
	struct stream_table {
		struct rsocket_range buffers[RSOCKET_TABLE_BUFFERS];
		struct rsocket_iomap iomaps[];
	} *table;			/* the peer writes into it at any time */
	struct ibv_mr *table_mr;
	unsigned int entry;		/* of the table that comes next */
	struct rsocket_range target;	/* of the peer's buffer, what is left */
	uint16_t sent, credits;		/* messages; may go up to */
	uint8_t *send_buffer;		/* a ring, then the grants that are not sent inline */
	struct ibv_mr *send_mr;
	uint32_t send_at, send_free;
	unsigned int sends_free;	/* of the queue, but for controls */
	unsigned int controls;		/* messages without data so far */
	unsigned int controls_free;

	struct stream_iomap *iomaps;	/* in the order of the calls */
	unsigned int pending_iomaps;
};

static inline struct stream *stream_of(struct rsocket *rs)
{
	return (struct stream *)rs;
}

static inline bool stream_opening(const struct stream *s)
{
	return s->state >= STREAM_RESOLVING_ADDR && s->state <= STREAM_ACCEPTING;
}

/* Was it connected once?  Then it has an endpoint. */
static inline bool stream_was_connected(const struct stream *s)
{
	return s->state == STREAM_CONNECTED ||
	       ((s->state == STREAM_ENDED || s->state == STREAM_FAILED) && s->peer_table.length);
}

/* --- stream_open.c --- */

extern const struct rsocket_ops stream_ops;

int stream_create(const struct stream *like, struct stream **ret_stream);

/* --- stream_connect.c --- */

/* As the calls, but they do not wait. */
int stream_connect(struct stream *s, const struct sockaddr *addr, socklen_t len);
int stream_listen(struct stream *s, int backlog);
/* The first that was accepted, or NULL. */
struct stream *stream_take_accepted(struct stream *s);
/* Take the events of its id, and do what comes next. */
void stream_follow_events(struct stream *s);
void stream_fail(struct stream *s, int err);

/* --- stream_endpoint.c --- */

/*
 * Memory that the peer may write into.  It knows it by its address, or on simulated
 * devices by an offset: what goes over a simulated wire is the same in each run.
 */
struct ibv_mr *stream_register(const struct stream *s, void *memory, size_t len,
			       unsigned int access);
uint64_t stream_address(const struct stream *s, const struct ibv_mr *mr, const void *at);

int stream_endpoint_create(struct stream *s);
void stream_endpoint_destroy(struct stream *s);
void stream_hello(const struct stream *s, struct rsocket_hello *hello);
/* -EPROTO: it is no rsocket that this one could talk to. */
int stream_take_hello(struct stream *s, const struct rsocket_hello *hello);

/* --- stream_queue.c --- */

/* Take completions, and give the peer what it may have. */
void stream_poll(struct stream *s);
bool stream_can_send(struct stream *s);
/* Room for messages without data: 2 on iWARP for one that goes with a write. */
bool stream_has_controls(const struct stream *s, unsigned int num);
int stream_post_receive(struct stream *s, unsigned int index);
/* RDMA write to there, if anywhere; a message with it, if there is one. */
int stream_post(struct stream *s, enum stream_wr kind, struct ibv_send_wr *wr,
		const struct rsocket_range *to, const uint32_t *message);
/* Credits and a buffer for the peer, if that is due. */
void stream_grant(struct stream *s);
int stream_post_control(struct stream *s, enum rsocket_control what);
/* Post what lies in the send buffer or, inline, elsewhere: so much of the message to there. */
int stream_post_bytes(struct stream *s, const struct msghdr *msg, size_t at, uint32_t len,
		      const struct rsocket_range *to, const uint32_t *message);
bool stream_all_sent(const struct stream *s);

/* --- stream_data.c --- */

ssize_t stream_send(struct rsocket *rs, const struct msghdr *msg, size_t done, int flags);
ssize_t stream_receive(struct rsocket *rs, struct msghdr *msg, size_t done, int flags);
/* The next piece of a call that has sent `done' of its bytes and has `left': small ones first. */
uint32_t stream_piece(const struct stream *s, size_t done, size_t left);
/* 0, -EAGAIN, or why it cannot send. */
int stream_ready_to_send(struct stream *s);

/* --- stream_shutdown.c --- */

int stream_shutdown(struct stream *s, int how);
void stream_end(struct rsocket *rs);
bool stream_ended(const struct rsocket *rs);

/* --- stream_iomap.c --- */

/* Tell the peer of maps that it does not know; 0, -EAGAIN or why it cannot send. */
int stream_send_iomaps(struct stream *s);
void stream_free_iomaps(struct stream *s);

/* --- keepalive, in stream_shutdown.c --- */

void stream_set_keepalive(struct stream *s, uint64_t seconds);
void stream_keep_alive(struct stream *s);

#endif
