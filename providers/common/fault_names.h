/* SPDX-License-Identifier: BSD-2-Clause */
/* fault_names.h - what rules may name: messages, calls, lookups, actions.  Pure functions. */
#ifndef COMMON_FAULT_NAMES_H
#define COMMON_FAULT_NAMES_H

#include <stdint.h>

#include "polycm/sim.h"

/* Everything that a rule's `message' may name; bits of a rule's mask. */
enum sim_what {
	/* Messages of the InfiniBand CM. */
	SIM_MSG_REQ,
	SIM_MSG_MRA,
	SIM_MSG_REJ,
	SIM_MSG_REP,
	SIM_MSG_RTU,
	SIM_MSG_DREQ,
	SIM_MSG_DREP,
	SIM_MSG_SIDR_REQ,
	SIM_MSG_SIDR_REP,
	SIM_MSG_OTHER_MAD,
	/* The stream of an iWARP connection; OTHER is its opening. */
	SIM_MSG_MPA_REQ,
	SIM_MSG_MPA_REP,
	SIM_MSG_MPA_REJ,
	SIM_MSG_FIN,
	SIM_MSG_RST,
	SIM_MSG_OTHER_STREAM,
	/* Data. */
	SIM_MSG_SEND,
	SIM_MSG_WRITE,
	SIM_MSG_READ,
	SIM_MSG_READ_REPLY,
	SIM_MSG_ATOMIC,
	SIM_MSG_ACK,
	SIM_MSG_NAK,
	SIM_MSG_RNR_NAK,
	SIM_MSG_UD,
	SIM_MSG_OTHER_DATA,
	/* Calls. */
	SIM_CALL_CREATE_ID,
	SIM_CALL_BIND,
	SIM_CALL_RESOLVE_ADDR,
	SIM_CALL_RESOLVE_ROUTE,
	SIM_CALL_LISTEN,
	SIM_CALL_CONNECT,
	SIM_CALL_ACCEPT,
	SIM_CALL_REJECT,
	SIM_CALL_DISCONNECT,
	SIM_CALL_CREATE_QP,
	SIM_CALL_CREATE_CQ,
	SIM_CALL_REG_MR,
	SIM_CALL_ALLOC_PD,
	SIM_CALL_CREATE_SRQ,
	SIM_CALL_JOIN_MULTICAST,
	/* Lookups. */
	SIM_LOOKUP_PATH,
	SIM_LOOKUP_NEIGHBOUR,
	SIM_WHATS
};

#define BIT(what) (UINT64_C(1) << (what))
#define BITS(first, last) (BIT((last) + 1) - BIT(first))
#define CM_MASK BITS(SIM_MSG_REQ, SIM_MSG_OTHER_STREAM)
#define MAD_MASK BITS(SIM_MSG_REQ, SIM_MSG_OTHER_MAD)
#define DATA_MASK BITS(SIM_MSG_SEND, SIM_MSG_OTHER_DATA)
#define PACKET_MASK (CM_MASK | DATA_MASK)
#define CALL_MASK BITS(SIM_CALL_CREATE_ID, SIM_CALL_JOIN_MULTICAST)
#define LOOKUP_MASK BITS(SIM_LOOKUP_PATH, SIM_LOOKUP_NEIGHBOUR)
/* Requests between connected QPs. */
#define REQUEST_MASK (BITS(SIM_MSG_SEND, SIM_MSG_READ) | BIT(SIM_MSG_ATOMIC))
#define REJECT_MASK (BIT(SIM_MSG_REQ) | BIT(SIM_MSG_REP) | BIT(SIM_MSG_MPA_REQ) | REQUEST_MASK)

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
