/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * polycm/rules.h - the rules of a transport: data and a few functions that a
 * provider brings along.  <polycm/provider.h> includes this.  New members come
 * only at the end.
 *
 * The tables of private data have spare rows and columns, so a new kind or
 * message moves no member.  Each side ignores the rows that it does not know.
 *
 * The functions are pure: any thread may call them at any time, they do not
 * wait, and they cannot fail.
 */
#ifndef POLYCM_RULES_H
#define POLYCM_RULES_H

#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which connection protocol carries the calls. */
enum polycm_protocol {
	POLYCM_PROTO_IB_CM,	/* CM MADs: REQ, REP, RTU ... (InfiniBand, RoCE) */
	POLYCM_PROTO_MPA,	/* MPA over TCP (iWARP) */
	POLYCM_PROTO_OTHER,	/* the provider's own; the simulator cannot play it */
};

/* The kind of an id decides its private-data limits. */
enum polycm_kind {
	POLYCM_KIND_RC,		/* connected, IP addresses */
	POLYCM_KIND_UD,		/* SIDR, IP addresses */
	POLYCM_KIND_RC_AF_IB,	/* connected, AF_IB addresses */
	POLYCM_KIND_UD_AF_IB,	/* SIDR, AF_IB addresses */
	POLYCM_KINDS		/* how many this header knows; at most POLYCM_KINDS_ROOM */
};

/* The messages that carry a program's private data. */
enum polycm_msg {
	POLYCM_MSG_CONNECT,
	POLYCM_MSG_ACCEPT,
	POLYCM_MSG_REJECT,
	POLYCM_MSGS		/* at most POLYCM_MSGS_ROOM */
};

/* Rows and columns of the tables.  They never change.  A plugin with others is refused. */
#define POLYCM_KINDS_ROOM	8
#define POLYCM_MSGS_ROOM	4
#define POLYCM_RULES_SHAPE	(POLYCM_KINDS_ROOM << 8 | POLYCM_MSGS_ROOM)

/* Services of a transport (polycm_transport.services).  Unknown ones are dropped. */
#define POLYCM_SVC_UD		(1u << 0)	/* RDMA_PS_UDP, SIDR */
#define POLYCM_SVC_IPOIB	(1u << 1)	/* RDMA_PS_IPOIB */
#define POLYCM_SVC_AF_IB	(1u << 2)	/* AF_IB addresses */
#define POLYCM_SVC_MULTICAST	(1u << 3)
#define POLYCM_SVC_XRC		(1u << 4)
#define POLYCM_SVC_SRQ		(1u << 5)
#define POLYCM_SVC_ECE		(1u << 6)	/* enhanced connection establishment */
#define POLYCM_SVC_ESTABLISH	(1u << 7)	/* CONNECT_RESPONSE and rdma_establish() */
#define POLYCM_SVC_NOTIFY	(1u << 8)	/* rdma_notify() has an effect */
#define POLYCM_SVC_TIMEWAIT	(1u << 9)	/* TIMEWAIT_EXIT is reported */
#define POLYCM_SVC_IMM		(1u << 10)	/* immediate data */
#define POLYCM_SVC_ATOMIC	(1u << 11)
#define POLYCM_SVC_RNR		(1u << 12)	/* RNR NAK and ACK time-outs exist */
#define POLYCM_SERVICES		((1u << 13) - 1)	/* all of them */

/* Other properties (polycm_transport.flags).  Rules with unknown ones are refused. */
/*
 * The device, not user space, brings the QP to RTS, and to ERR at the end: the
 * core only makes it INIT, SQD for a disconnect and ERR after REJECTED.  Required
 * of connected transports without POLYCM_SVC_ESTABLISH.
 */
#define POLYCM_T_DEVICE_MOVES_QP (1u << 0)
/* Private data arrives as long as it was sent.  For readers: `reported' is what counts. */
#define POLYCM_T_EXACT_LENGTH	(1u << 1)
#define POLYCM_T_PORT_IS_TCP	(1u << 2)	/* RDMA_PS_TCP ports are the host's TCP ports */
#define POLYCM_T_HAS_SA		(1u << 3)	/* paths come from a subnet administrator */
#define POLYCM_T_CONNECT_BLOCKS	(1u << 4)	/* rdma_connect() waits for the TCP connection */
#define POLYCM_T_PEER_TO_PEER	(1u << 5)	/* MPA: the initiator asks to send an RTR first */
#define POLYCM_T_FLAGS		((1u << 6) - 1)	/* all of them */

/* In which numbers event->status of REJECTED speaks. */
enum polycm_reject_domain {
	POLYCM_REJECT_REASON,	/* positive REJ reason (IBTA vol. 1, 12.6.7.2) */
	POLYCM_REJECT_ERRNO,	/* negative errno */
};

struct polycm_transport {
	uint32_t size;
	uint32_t shape;			/* POLYCM_RULES_SHAPE */
	const char *name;		/* "ib", "roce", "iwarp", a vendor's; not NULL */
	const char *description;	/* one line for people, or NULL */
	enum polycm_protocol protocol;
	uint32_t services;		/* POLYCM_SVC_* */
	uint32_t flags;			/* POLYCM_T_* */

	/*
	 * How its devices show themselves to libibverbs.  Over the kernel, devices
	 * are recognised by them.  A new kind of device takes what programs expect:
	 * IBV_NODE_CA, IBV_TRANSPORT_IB, IBV_LINK_LAYER_ETHERNET; or UNSPECIFIED.
	 */
	enum ibv_node_type node_type;
	enum ibv_transport_type transport_type;
	uint8_t link_layer;		/* IBV_LINK_LAYER_* */

	/*
	 * Private data, in bytes.  limit: what a program may pass; 0 where the
	 * transport has no such kind.  The provider refuses more (-EINVAL); the core
	 * does not check it.  reported: the length that the receiver's event shows;
	 * 0 means the exact length sent.  The provider that posts the event pads the
	 * data to it.  capacity: what the message holds on the wire, header of the CM
	 * included.
	 */
	uint16_t limit[POLYCM_KINDS_ROOM][POLYCM_MSGS_ROOM];
	uint16_t reported[POLYCM_KINDS_ROOM][POLYCM_MSGS_ROOM];
	uint16_t capacity[POLYCM_KINDS_ROOM][POLYCM_MSGS_ROOM];
	/* Put before the data of a connect over IP addresses: 36 with IB CM; 0: nothing is. */
	uint8_t cm_header_len;

	/* Field widths: larger values are lowered to these, without an error. */
	uint8_t max_retry_count;
	uint8_t max_rnr_retry_count;

	/* Rejects. */
	enum polycm_reject_domain reject_domain;
	int consumer_reject_status;	/* the peer's status after rdma_reject() */
	int refused_status;		/* the peer's status when nobody listens */

	/*
	 * IB CM timers as exponents: a wait of 2^(n-8) ms for n >= 8, which is
	 * how Linux rounds 4.096 us * 2^n, and 1 ms below.  0 where the protocol is
	 * not IB CM.
	 */
	uint8_t cm_response_timeout;
	uint8_t max_cm_retries;
	uint8_t mra_service_timeout;
	uint8_t packet_lifetime;	/* default; a POLYCM_T_HAS_SA transport has it from its paths */

	/* MPA timers in ms and revision; 0 where the protocol is not MPA. */
	uint32_t mpa_reply_timeout_ms;
	uint32_t mpa_request_timeout_ms;
	uint8_t mpa_revision;

	/* Timers of the queue pair. */
	uint8_t min_rnr_timer;		/* code put into the QP; 0 is 655.36 ms */
	uint8_t local_ca_ack_delay;	/* exponent, default of a device of this transport */

	/* Depths of a device of this transport unless the device says otherwise. */
	uint8_t max_responder_resources;
	uint8_t max_initiator_depth;

	/*
	 * Local ACK time-out exponent (4.096 us * 2^n) from packet lifetime and
	 * the responder's ACK delay.  NULL: 0, which is right without POLYCM_SVC_RNR,
	 * and over the kernel, which computes it by itself.
	 */
	uint8_t (*ack_timeout)(uint8_t ack_delay, uint8_t packet_lifetime);
	/*
	 * Path MTU in bytes that a netdev of this MTU gives, or 0 if too small.
	 * NULL: the largest that fits.
	 */
	uint32_t (*path_mtu)(uint32_t netdev_mtu);
	/* The status of an event in words, or NULL to leave it to the core. */
	const char *(*status_str)(enum rdma_cm_event_type event, int status);
};

#ifdef __cplusplus
}
#endif

#endif /* POLYCM_RULES_H */
