/* SPDX-License-Identifier: BSD-2-Clause */
/* fault_names.h - what rules may name: messages, calls, lookups, actions.  Pure functions. */
#ifndef COMMON_FAULT_NAMES_H
#define COMMON_FAULT_NAMES_H

#include <stdint.h>

#include "polycm/sim.h"

/* Everything that a rule's `message' may name, and how; bits of a rule's mask. */
#define SIM_WHAT_LIST(X)						\
	/* Messages of the InfiniBand CM. */				\
	X(SIM_MSG_REQ, "REQ")						\
	X(SIM_MSG_MRA, "MRA")						\
	X(SIM_MSG_REJ, "REJ")						\
	X(SIM_MSG_REP, "REP")						\
	X(SIM_MSG_RTU, "RTU")						\
	X(SIM_MSG_DREQ, "DREQ")						\
	X(SIM_MSG_DREP, "DREP")						\
	X(SIM_MSG_SIDR_REQ, "SIDR_REQ")					\
	X(SIM_MSG_SIDR_REP, "SIDR_REP")					\
	X(SIM_MSG_OTHER_MAD, NULL)					\
	/* The stream of an iWARP connection; OTHER is its opening. */	\
	X(SIM_MSG_MPA_REQ, "MPA_REQ")					\
	X(SIM_MSG_MPA_REP, "MPA_REP")					\
	X(SIM_MSG_MPA_REJ, "MPA_REJ")					\
	X(SIM_MSG_FIN, "FIN")						\
	X(SIM_MSG_RST, "RST")						\
	X(SIM_MSG_OTHER_STREAM, NULL)					\
	/* Data. */							\
	X(SIM_MSG_SEND, "SEND")						\
	X(SIM_MSG_WRITE, "WRITE")					\
	X(SIM_MSG_READ, "READ")						\
	X(SIM_MSG_READ_REPLY, "READ_REPLY")				\
	X(SIM_MSG_ATOMIC, "ATOMIC")					\
	X(SIM_MSG_ACK, "ACK")						\
	X(SIM_MSG_NAK, "NAK")						\
	X(SIM_MSG_RNR_NAK, "RNR_NAK")					\
	X(SIM_MSG_UD, "UD")						\
	X(SIM_MSG_OTHER_DATA, NULL)					\
	/* TCP connections of programs (wire/tcp.h). */			\
	X(SIM_MSG_TCP_SYN, "TCP_SYN")					\
	X(SIM_MSG_TCP_SYN_ACK, "TCP_SYN_ACK")				\
	X(SIM_MSG_TCP_ACK, "TCP_ACK")					\
	X(SIM_MSG_TCP_DATA, "TCP_DATA")					\
	X(SIM_MSG_TCP_FIN, "TCP_FIN")					\
	X(SIM_MSG_TCP_RST, "TCP_RST")					\
	/* Calls. */							\
	X(SIM_CALL_CREATE_ID, "create_id")				\
	X(SIM_CALL_BIND, "bind")					\
	X(SIM_CALL_RESOLVE_ADDR, "resolve_addr")			\
	X(SIM_CALL_RESOLVE_ROUTE, "resolve_route")			\
	X(SIM_CALL_LISTEN, "listen")					\
	X(SIM_CALL_CONNECT, "connect")					\
	X(SIM_CALL_ACCEPT, "accept")					\
	X(SIM_CALL_REJECT, "reject")					\
	X(SIM_CALL_DISCONNECT, "disconnect")				\
	X(SIM_CALL_CREATE_QP, "create_qp")				\
	X(SIM_CALL_CREATE_CQ, "create_cq")				\
	X(SIM_CALL_REG_MR, "reg_mr")					\
	X(SIM_CALL_ALLOC_PD, "alloc_pd")				\
	X(SIM_CALL_CREATE_SRQ, "create_srq")				\
	X(SIM_CALL_JOIN_MULTICAST, "join_multicast")			\
	/* Lookups. */							\
	X(SIM_LOOKUP_PATH, "path")					\
	X(SIM_LOOKUP_NEIGHBOUR, "neighbour")

enum sim_what {
#define X(what, name) what,
	SIM_WHAT_LIST(X)
#undef X
	SIM_WHATS
};

#define BIT(what) (UINT64_C(1) << (what))
#define BITS(first, last) (BIT((last) + 1) - BIT(first))
#define CM_MASK BITS(SIM_MSG_REQ, SIM_MSG_OTHER_STREAM)
#define MAD_MASK BITS(SIM_MSG_REQ, SIM_MSG_OTHER_MAD)
#define DATA_MASK BITS(SIM_MSG_SEND, SIM_MSG_OTHER_DATA)
#define TCP_MASK BITS(SIM_MSG_TCP_SYN, SIM_MSG_TCP_RST)
#define PACKET_MASK (CM_MASK | DATA_MASK | TCP_MASK)
#define CALL_MASK BITS(SIM_CALL_CREATE_ID, SIM_CALL_JOIN_MULTICAST)
#define LOOKUP_MASK BITS(SIM_LOOKUP_PATH, SIM_LOOKUP_NEIGHBOUR)
/* Requests between connected QPs. */
#define REQUEST_MASK (BITS(SIM_MSG_SEND, SIM_MSG_READ) | BIT(SIM_MSG_ATOMIC))
/* What is answered with a RST, for which there are no reasons. */
#define RESET_MASK (BIT(SIM_MSG_TCP_SYN) | BIT(SIM_MSG_TCP_SYN_ACK) | BIT(SIM_MSG_TCP_DATA))
#define REJECT_MASK									\
	(BIT(SIM_MSG_REQ) | BIT(SIM_MSG_REP) | BIT(SIM_MSG_MPA_REQ) | REQUEST_MASK | RESET_MASK)

/* "REQ", "create_qp", ...; NULL for those that have no name. */
const char *sim_what_name(enum sim_what what);
/* The kinds that a name stands for, a bit each, groups ("cm") included; 0: no such name. */
uint64_t sim_what_mask(const char *name);
/* What to say behind a name that is none of these (a bit each), as sim_hint(). */
const char *sim_what_hint(const char *name, uint64_t among);

/* The word for an action, "lose"; NULL: there is no such action.  And back; 0: no such word. */
const char *sim_action_name(enum polycm_sim_action action);
enum polycm_sim_action sim_action_of(const char *name);
const char *sim_action_hint(const char *name);
/*
 * What to say behind a name that is none of these: "; nearest: 'lose'", or all of them if none
 * is near; in a static buffer.  NULLs among them are passed over.  What is written like a
 * function of C, "rdma_connect", means "connect".
 */
const char *sim_hint(const char *name, const char *const names[], unsigned int num);

#endif
