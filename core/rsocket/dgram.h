/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rsocket/dgram.h - datagram rsockets: a UDP socket, and a UD queue pair for each local
 * address from which something was sent or at which something came.
 */
#ifndef POLYCM_CORE_RSOCKET_DGRAM_H
#define POLYCM_CORE_RSOCKET_DGRAM_H

#include "rsocket.h"
#include "wire.h"

#define DGRAM_GRH 40u			/* what a UD queue pair puts before each receive */

/* A datagram that the program has not received: in a receive buffer, or in memory of its own. */
struct dgram_message {
	struct dgram_message *next;
	struct dgram_qp *qp;		/* NULL: it came to the UDP socket; free it */
	unsigned int slot;
	struct sockaddr_storage from;
	uint32_t len;
	uint8_t *data;
};

struct dgram_qp {
	struct dgram_qp *next;
	struct rdma_cm_id *id;
	struct sockaddr_storage addr;
	struct rsocket_dgram_header header;
	uint32_t max_len;		/* of a datagram without headers */
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	bool armed;
	unsigned int unacked;
	unsigned int num_sends, num_receives;
	uint16_t *free_sends;		/* a stack of slots */
	unsigned int num_free;
	uint8_t *send_buffer, *receive_buffer;
	struct ibv_mr *send_mr, *receive_mr;
	struct dgram_message *messages;	/* one for each receive */
};

/* Somebody who was sent to, or was heard of. */
struct dgram_peer {
	struct sockaddr_storage addr;	/* first */
	struct dgram_qp *qp;		/* from which it is sent to */
	struct ibv_ah *ah;		/* NULL: by UDP */
	uint32_t qpn;
	uint32_t next_qpn;		/* of the resolving that is under way */
	struct rdma_cm_id *resolving;
};

struct dgram {
	struct rsocket rs;		/* first */
	int udp;
	unsigned int calls;
	struct rdma_event_channel *channel;
	struct dgram_qp *qps;
	void *peers;			/* a tree by address */
	unsigned int num_peers;
	struct dgram_peer *to;		/* of rconnect() */
	struct dgram_message *first, **last;
	unsigned int num_own;		/* messages in memory of their own */
};

static inline struct dgram *dgram_of(struct rsocket *rs)
{
	return (struct dgram *)rs;
}

/* --- dgram.c --- */

int dgram_bind(struct dgram *d, const struct sockaddr *addr, socklen_t len);
int dgram_connect(struct dgram *d, const struct sockaddr *addr, socklen_t len);
int dgram_set_option(struct rsocket *rs, int level, int name, const void *value, socklen_t len);
int dgram_get_option(struct rsocket *rs, int level, int name, void *value, socklen_t *len);
bool dgram_has_queues(const struct rsocket *rs);
void dgram_queue(struct dgram *d, struct dgram_message *message);

/* --- dgram_qp.c --- */

/* The one of this local address, made if need be. */
int dgram_get_qp(struct dgram *d, const struct sockaddr_storage *addr, struct dgram_qp **ret_qp);
void dgram_free_qp(struct dgram_qp *qp);
int dgram_post_receive(struct dgram_qp *qp, unsigned int slot);
void dgram_poll(struct dgram *d);
int dgram_post_send(struct dgram_peer *peer, const struct msghdr *msg, uint32_t len);

/* --- dgram_peer.c --- */

int dgram_get_peer(struct dgram *d, const struct sockaddr *addr, socklen_t len,
		   struct dgram_peer **ret_peer);
void dgram_free_peers(struct dgram *d);
/* Learn how to reach it at that queue pair; what goes there until then goes by UDP. */
void dgram_resolve(struct dgram *d, struct dgram_peer *peer, uint32_t qpn);
void dgram_follow_events(struct dgram *d);
ssize_t dgram_send_udp(struct dgram *d, const struct dgram_peer *peer, uint8_t op,
		       const struct msghdr *msg);
/* Take what came to the UDP socket. */
void dgram_take_udp(struct dgram *d);

#endif
