/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/ibcm.h - shared by the files of the InfiniBand CM engine, which plays the
 * Linux ib_cm module: ibcm.c (the engine's table, what comes in, events),
 * ibcm_table.c (lookup by communication ids), ibcm_send.c (messages out, with
 * repetition), ibcm_active.c, ibcm_passive.c, ibcm_reject.c,
 * ibcm_disconnect.c (the steps of a connection), ibcm_qp.c (attributes of
 * QPs), sidr.c (UD).
 *
 * Engine lock held for all.  A struct ibcm (ibcm_id.h) is part of its sim_id
 * and in use until the engine's free(); close() takes it out of the lookup
 * tables and stops its timer, so nothing happens to it in between.
 */
#ifndef SIM_IBCM_H
#define SIM_IBCM_H

#include <stddef.h>

#include "providers/soft/link/link.h"
#include "providers/soft/shm/segment.h"
#include "providers/soft/wire/mad.h"
#include "cma.h"

/*
 * IBCM_IDLE and so on: the states of a communication id, below those of the
 * rdma_cm_id.  In MRA_*_SENT the program has not answered a REQ or REP; an MRA
 * goes out when that is repeated.  In MRA_*_RCVD an MRA has come.
 */
#define IBCM_STATES(X) \
	X(IDLE) X(REQ_SENT) X(REQ_RCVD) X(MRA_REQ_SENT) X(MRA_REQ_RCVD) X(REP_SENT) X(REP_RCVD) \
	X(MRA_REP_SENT) X(MRA_REP_RCVD) X(ESTABLISHED) X(DREQ_SENT) X(DREQ_RCVD) X(TIMEWAIT) \
	X(SIDR_REQ_SENT) X(SIDR_REQ_RCVD)
#define IBCM_STATE(name) IBCM_##name,

enum ibcm_state { IBCM_STATES(IBCM_STATE) };

#define IBCM_MAX_EXPONENT 31u

/*
 * A wait of 2^(n-8) ms, at least 1: what Linux makes of 4.096 us * 2^n.  Five
 * bits on the wire, but programs give paths and ACK time-outs of more.
 */
static inline uint32_t ibcm_exponent_to_ms(uint8_t exponent)
{
	if (exponent > IBCM_MAX_EXPONENT)
		exponent = IBCM_MAX_EXPONENT;
	return exponent > 8 ? 1u << (exponent - 8) : 1;
}

/* What a program may pass, and what fits: a vendor's rules could say more. */
static inline size_t ibcm_limit(const struct sim_id *id, enum polycm_msg msg, size_t room)
{
	uint16_t limit = cma_rules(id)->limit[cma_kind(id)][msg];

	return limit < room ? limit : room;
}

/* What the receiver's event shows.  The length sent is not on the wire. */
static inline uint8_t ibcm_reported(const struct sim_id *id, enum polycm_msg msg, size_t room)
{
	uint16_t reported = cma_rules(id)->reported[cma_kind(id)][msg];

	return (uint8_t)(reported && reported < room ? reported : room);
}

/* --- ibcm.c --- */

/* Start taking MADs; and the end, when no id is left. */
void sim_ibcm_start(void);
void sim_ibcm_stop(void);
/* A MAD came in. */
void ibcm_receive(const struct sim_packet *packet);

/* A number for a communication id, to be used at once; 0: no memory, or all 2^22 are in use. */
uint32_t ibcm_take_number(void);
/* The communication id of an id that has none. */
struct ibcm *ibcm_create_with(struct sim_id *id, uint32_t number);
/* Both; NULL: there is no number. */
struct ibcm *ibcm_create(struct sim_id *id);
/* End its timer, and take it out of all tables. */
void ibcm_destroy(struct ibcm *cm);

void ibcm_set_state(struct ibcm *cm, enum ibcm_state state);
/* -EINVAL with the reason. */
int ibcm_wrong_state(const struct ibcm *cm);
/*
 * That state, and no longer a connection that a request could repeat or find
 * stale.  TIMEWAIT while a message is still repeated lasts until the last
 * repetition, which is longer than the kernel's; nobody can see that.
 */
void ibcm_leave(struct ibcm *cm, enum ibcm_state state);
/* TIMEWAIT, its timer started; a repetition ends. */
void ibcm_enter_timewait(struct ibcm *cm);

/* Post an event unless the rdma_cm_id has left CONNECT. */
void ibcm_post(struct ibcm *cm, const struct polycm_event *event);
void ibcm_post_disconnected(struct ibcm *cm, int status);

static inline struct sim_node *ibcm_node(const struct sim_packet *packet)
{
	return packet->to->device->node;
}

/* The id that a message means by both communication ids, or NULL. */
struct ibcm *ibcm_find(const struct sim_packet *packet, uint32_t local_id, uint32_t remote_id);

/* Our CA's GUID in host order. */
uint64_t ibcm_ca_guid(const struct sim_id *id);

/* --- ibcm_table.c --- */

/* Make room for one more id, so that adding it cannot fail.  -ENOMEM. */
int ibcm_table_reserve(void);
void ibcm_table_add(struct ibcm *cm, enum ibcm_table table);
void ibcm_table_remove(struct ibcm *cm, enum ibcm_table table);
struct ibcm *ibcm_find_local(uint32_t local_id);
/* It will be looked for soon. */
void ibcm_table_prefetch(uint32_t local_id);
/* Bring what a connection's end needs of its id into the cache, if it is not there. */
static inline void ibcm_prefetch(const struct ibcm *cm)
{
	cma_prefetch(sim_container(cm, struct sim_id, cm));
}
struct ibcm *ibcm_find_remote(const struct sim_node *node, uint32_t remote_id, uint64_t ca_guid,
			      bool sidr);
struct ibcm *ibcm_find_qpn(const struct sim_node *node, uint32_t remote_qpn, uint64_t ca_guid);
unsigned int ibcm_table_count(enum ibcm_table table);
void ibcm_table_free(void);

/* --- ibcm_send.c --- */

/* A transaction id of our own: the agent of the port, and the communication id. */
uint64_t ibcm_new_tid(const struct ibcm *cm);
/* Begin a message of this id. */
void ibcm_init_msg(const struct ibcm *cm, struct cm_msg *ret_msg, enum cm_attr_id attr_id);
/* Send once. */
void ibcm_send(struct ibcm *cm, const struct cm_msg *msg);
/* An RTU or DREP: nothing but both communication ids. */
void ibcm_send_plain(struct ibcm *cm, enum cm_attr_id attr_id);
/*
 * Send after delay ns, and again after each wait of cm->timeout_ms until
 * ibcm_stop_repeating().  -ENOMEM: not a DREQ, and nothing is sent.
 */
int ibcm_send_repeatedly(struct ibcm *cm, const struct cm_msg *msg, uint64_t delay);
void ibcm_stop_repeating(struct ibcm *cm);
/* This and all later waits are that long. */
void ibcm_stretch_wait(struct ibcm *cm, uint32_t wait_ms);
/* The timer fired.  true: all repetitions went unanswered. */
bool ibcm_repeat(struct ibcm *cm);
/* Send an answer to a packet without an id of ours, to the process of conn_id. */
void ibcm_answer(const struct sim_packet *packet, uint32_t conn_id, const struct cm_msg *msg);
void ibcm_send_free(void);

/* --- The handlers of messages, and the calls of the engine. --- */

int ibcm_connect(struct sim_id *id, const struct polycm_conn_param *param);
int ibcm_establish(struct sim_id *id);
void ibcm_recv_rep(const struct sim_packet *packet, const struct cm_msg *msg);

int ibcm_accept(struct sim_id *id, const struct polycm_conn_param *param);
int ibcm_notify(struct sim_id *id, enum ibv_event_type event);
void ibcm_recv_req(const struct sim_packet *packet, const struct cm_msg *msg);
void ibcm_recv_rtu(const struct sim_packet *packet, const struct cm_msg *msg);

int ibcm_reject(struct sim_id *id, const void *data, uint8_t len, uint8_t reason);
/* Send a REJ and leave the connection.  -EINVAL: nothing to reject in this state. */
int ibcm_send_rej(struct ibcm *cm, uint16_t reason, const void *ari, uint8_t ari_len,
		  const void *data, uint8_t len);
/* Refuse a REQ or REP that has no id of ours. */
void ibcm_issue_rej(const struct sim_packet *packet, const struct cm_msg *msg, uint16_t reason,
		    const void *ari, uint8_t ari_len);
/* A fault rule refuses a REQ or REP in the receiver's place. */
void ibcm_reject_by_rule(const struct sim_packet *packet, uint16_t reason);
void ibcm_send_mra(struct ibcm *cm, enum cm_which_message which);
void ibcm_recv_rej(const struct sim_packet *packet, const struct cm_msg *msg);
void ibcm_recv_mra(const struct sim_packet *packet, const struct cm_msg *msg);

int ibcm_disconnect(struct sim_id *id);
/* The same each time for one connection. */
void ibcm_init_dreq(struct ibcm *cm, struct cm_msg *ret_msg);
/* Ask for the end of an established connection.  -EINVAL in any other state. */
int ibcm_send_dreq(struct ibcm *cm);
void ibcm_recv_dreq(const struct sim_packet *packet, const struct cm_msg *msg);
void ibcm_recv_drep(const struct sim_packet *packet, const struct cm_msg *msg);
void ibcm_close(struct sim_id *id);
/* What a REJ says of the message that it rejects. */
void ibcm_set_which(enum ibcm_state state, struct cm_rej *rej);

/* --- The death of processes (cma_death.c). --- */

/* Send our state to the process of the peer, if our host would now send something else for us. */
void ibcm_send_note(const struct ibcm *cm, enum ibcm_state before);
/* Such a message came: it shows the sender's state, even if the sender died before its note. */
void ibcm_peer_sent(struct ibcm *cm, enum cm_attr_id attr_id);
/* A note came. */
void ibcm_recv_note(const struct sim_packet *packet);
/* The process at the other end died: its kernel closes the id there, if there still is one. */
void ibcm_peer_died(struct ibcm *cm);

/* Exponent of the local ACK time-out for a responder with this delay. */
uint8_t ibcm_ack_timeout(const struct sim_id *id, uint8_t ack_delay, uint8_t packet_lifetime);
/* Address vector of the connection, or of the path to a UD peer. */
void ibcm_fill_ah(const struct ibcm *cm, struct ibv_ah_attr *ret_ah);
int ibcm_init_qp_attr(struct sim_id *id, struct ibv_qp_attr *attr, int *ret_mask);

int sidr_connect(struct sim_id *id, const struct polycm_conn_param *param);
int sidr_accept(struct sim_id *id, const struct polycm_conn_param *param);
/* Answer a request that waits.  -EINVAL: none does, or too much data. */
int sidr_reply(struct ibcm *cm, uint8_t status, const struct polycm_conn_param *param);
/* The port space's Q_Key, unless the id has one. */
void sidr_set_default_qkey(struct ibcm *cm);
void sidr_recv_req(const struct sim_packet *packet, const struct cm_msg *msg);
void sidr_recv_rep(const struct sim_packet *packet, const struct cm_msg *msg);

/* --- Requests of either kind (ibcm_request.c). --- */

/* The service at an address, for the id's port space. */
uint64_t ibcm_service_id(const struct sim_id *id, const union sim_sockaddr *addr);

/* Which port space that is at the id's destination. */
enum rdma_port_space ibcm_dst_port_space(const struct sim_id *id);

/* What of the private data of a REQ or SIDR_REQ is the RDMA CM's own. */
static inline size_t ibcm_header_size(const struct sim_id *id)
{
	return cma_is_af_ib(id) ? 0 : CMA_HDR_SIZE;
}

/* Where the id's route leads. */
void ibcm_take_route(struct ibcm *cm);
/* Add the private data to a REQ or SIDR_REQ and send it.  On an error cm goes, if it is new. */
int ibcm_send_request(struct ibcm *cm, struct cm_msg *msg, const struct polycm_conn_param *param);
/* The port space that a service id names, or -ENOENT. */
int ibcm_service(uint64_t service_id, enum rdma_port_space *ret_ps, uint16_t *ret_port);
/* Does anyone on the node listen on that port, whatever the address? */
bool ibcm_service_exists(struct sim_node *node, enum rdma_port_space ps, uint16_t port);
/* What a REQ or SIDR_REQ asks for. */
struct ibcm_asked {
	uint64_t service_id;
	enum ibv_qp_type qp_type;
	const struct cm_path *path;	/* REQ only */
	const uint8_t *data;		/* all of the private data */
	size_t len;
};

/*
 * Find the listener and make the child, with its communication id.  Errors as
 * of cma_request(); -ENOMEM; -EPROTO: the CMA header is bad.
 */
int ibcm_request(const struct sim_packet *packet, const struct ibcm_asked *asked,
		 struct sim_id **ret_listener, struct ibcm **ret_cm);

#endif
