/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin/transport.c - checks of a plugin's transport rules, and the look-ups in
 * them.  Rules do not change once they are copied, so there are no locks.
 */
#include "config.h"

#include "transport.h"

#include <errno.h>
#include <infiniband/ib.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/base/abi.h"
#include "plugin_internal.h"

#define MAX_EXPONENT 31u	/* 5-bit fields */
#define MAX_MPA_DATA 512u	/* RFC 5044, 7.1 */
#define MAX_OTHER_DATA UINT16_MAX	/* what the table's cell holds */

/* What the messages of the IB CM hold (IBTA vol. 1, 12.6): connect, accept, reject. */
static const uint16_t ib_cm_capacity[POLYCM_KINDS][POLYCM_MSGS] = {
	[POLYCM_KIND_RC] = { 92, 196, 148 },
	[POLYCM_KIND_UD] = { 216, 136, 136 },
	[POLYCM_KIND_RC_AF_IB] = { 92, 196, 148 },
	[POLYCM_KIND_UD_AF_IB] = { 216, 136, 136 },
};

_Static_assert((int)POLYCM_KINDS <= POLYCM_KINDS_ROOM && (int)POLYCM_MSGS <= POLYCM_MSGS_ROOM,
	       "the tables have room for all kinds and messages");

static uint8_t no_ack_timeout(uint8_t ack_delay, uint8_t packet_lifetime)
{
	(void)ack_delay;
	(void)packet_lifetime;
	return 0;
}

/* The largest MTU that a queue pair can have. */
static uint32_t any_path_mtu(uint32_t netdev_mtu)
{
	uint32_t mtu;

	for (mtu = 4096; mtu >= 256; mtu /= 2)
		if (mtu <= netdev_mtu)
			return mtu;
	return 0;
}

static const char *no_status_str(enum rdma_cm_event_type event, int status)
{
	(void)event;
	(void)status;
	return NULL;
}

static bool kind_is_served(const struct polycm_transport *t, enum polycm_kind kind)
{
	bool ud = kind == POLYCM_KIND_UD || kind == POLYCM_KIND_UD_AF_IB;
	bool af_ib = kind == POLYCM_KIND_RC_AF_IB || kind == POLYCM_KIND_UD_AF_IB;

	return (!ud || t->services & POLYCM_SVC_UD) && (!af_ib || t->services & POLYCM_SVC_AF_IB);
}

/* The longest private data that a message of the protocol can hold. */
static unsigned int most_data(const struct polycm_transport *t, enum polycm_kind kind,
			      enum polycm_msg msg)
{
	switch (t->protocol) {
	case POLYCM_PROTO_IB_CM:
		return ib_cm_capacity[kind][msg];
	case POLYCM_PROTO_MPA:
		return MAX_MPA_DATA;
	case POLYCM_PROTO_OTHER:
		break;
	}
	return MAX_OTHER_DATA;
}

/* Do the limits fit into the messages, and the messages into their length fields? */
static int check_message(const struct polycm_transport *t, enum polycm_kind kind,
			 enum polycm_msg msg, char *why)
{
	unsigned int limit = t->limit[kind][msg], reported = t->reported[kind][msg];
	unsigned int capacity = t->capacity[kind][msg], header = 0;
	unsigned int most = most_data(t, kind, msg);

	if (msg == POLYCM_MSG_CONNECT && (kind == POLYCM_KIND_RC || kind == POLYCM_KIND_UD))
		header = t->cm_header_len;
	if (!limit && !capacity)
		return 0;
	if (!kind_is_served(t, kind))
		return INVALID(why, "transport %s: limit for a kind that it does not serve",
			      t->name);
	if (limit > UINT8_MAX || reported > UINT8_MAX || capacity > most ||
	    limit + header > capacity || (reported && reported < limit))
		return INVALID(why, "transport %s: private data of kind %d, message %d: limit %u, "
			      "reported %u, capacity %u cannot be", t->name, (int)kind, (int)msg,
			      limit, reported, capacity);
	return 0;
}

/* Somebody has to move the QP of the active side to RTS: the device, or the core before the RTU. */
static bool nobody_moves_qp(const struct polycm_transport *t)
{
	if (t->services & POLYCM_SVC_ESTABLISH || t->flags & POLYCM_T_DEVICE_MOVES_QP)
		return false;
	return t->limit[POLYCM_KIND_RC][POLYCM_MSG_CONNECT] ||
	       t->limit[POLYCM_KIND_RC_AF_IB][POLYCM_MSG_CONNECT];
}

static int check(const struct polycm_transport *t, char *why)
{
	int r = 0;

	if (!t->name)
		return INVALID(why, "its transport has no name");
	if (!polycm_provider_name_valid(t->name))
		return INVALID(why, "the name of its transport is not valid");
	if ((unsigned int)t->protocol > POLYCM_PROTO_OTHER)
		return INVALID(why, "transport %s: unknown protocol %d", t->name,
			      (int)t->protocol);
	if (t->reject_domain != POLYCM_REJECT_REASON && t->reject_domain != POLYCM_REJECT_ERRNO)
		return INVALID(why, "transport %s: unknown numbers of rejects %d", t->name,
			      (int)t->reject_domain);
	if (t->flags & ~(uint32_t)POLYCM_T_FLAGS)
		return INVALID(why, "transport %s: its flag 1 << %d is not known", t->name,
			      ffs((int)(t->flags & ~(uint32_t)POLYCM_T_FLAGS)) - 1);
	if (t->protocol == POLYCM_PROTO_MPA && (t->mpa_revision < 1 || t->mpa_revision > 2))
		return INVALID(why, "transport %s: unknown MPA revision %u", t->name,
			      t->mpa_revision);
	if (t->protocol == POLYCM_PROTO_IB_CM &&
	    (t->cm_response_timeout > MAX_EXPONENT || t->packet_lifetime > MAX_EXPONENT ||
	     t->mra_service_timeout > MAX_EXPONENT || t->max_cm_retries > 15))
		return INVALID(why, "transport %s: CM timers do not fit their fields",
			      t->name);
	if (t->min_rnr_timer > MAX_EXPONENT || t->local_ca_ack_delay > MAX_EXPONENT ||
	    t->max_retry_count > 7 || t->max_rnr_retry_count > 7)
		return INVALID(why, "transport %s: QP timers or retries do not fit their fields",
			       t->name);
	for (int kind = 0; kind < POLYCM_KINDS && !r; kind++)
		for (int msg = 0; msg < POLYCM_MSGS && !r; msg++)
			r = check_message(t, (enum polycm_kind)kind, (enum polycm_msg)msg, why);
	if (!r && nobody_moves_qp(t))
		return INVALID(why, "transport %s: nobody moves the QP of rdma_connect to RTS: it needs "
			       "POLYCM_SVC_ESTABLISH or POLYCM_T_DEVICE_MOVES_QP", t->name);
	return r;
}

static const struct polycm_abi_struct rules_struct =
	POLYCM_ABI_STRUCT("its struct of transport rules", struct polycm_transport, status_str);

/* The shape first: tables of another one change the size, too. */
static int check_struct(const struct polycm_transport *theirs, uint32_t minor, char *why)
{
	if (POLYCM_HAS(theirs, shape) && theirs->shape != POLYCM_RULES_SHAPE)
		return INVALID(why, "its struct of transport rules is of another shape, "
			      "0x%x in place of 0x%x: shape must be the POLYCM_RULES_SHAPE of this "
			      "version's headers", theirs->shape, POLYCM_RULES_SHAPE);
	return polycm_abi_check(&rules_struct, theirs->size, minor, why, PROVIDER_WHY_SIZE);
}

int polycm_transport_copy(struct polycm_transport *transport, const struct polycm_transport *theirs,
			  uint32_t minor, char *why)
{
	int r;

	r = check_struct(theirs, minor, why);
	if (r)
		return r;
	polycm_abi_copy(transport, sizeof(*transport), theirs);
	transport->services &= POLYCM_SERVICES;
	r = check(transport, why);
	if (r)
		return r;
	if (!transport->description)
		transport->description = "";
	if (!transport->ack_timeout)
		transport->ack_timeout = no_ack_timeout;
	if (!transport->path_mtu)
		transport->path_mtu = any_path_mtu;
	if (!transport->status_str)
		transport->status_str = no_status_str;
	return 0;
}

enum polycm_kind polycm_transport_kind(enum rdma_port_space ps, enum ibv_qp_type qp_type,
				       const struct sockaddr *addr)
{
	bool ud = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ||
		  (ps == RDMA_PS_IB && qp_type == IBV_QPT_UD);

	if (addr && addr->sa_family == AF_IB)
		return ud ? POLYCM_KIND_UD_AF_IB : POLYCM_KIND_RC_AF_IB;
	return ud ? POLYCM_KIND_UD : POLYCM_KIND_RC;
}

/* ------------------------------------------------------------------------
 * The rules as text.
 */

struct walk {
	int (*fn)(void *arg, const char *rule, const char *value);
	void *arg;
	int result;
};

static void row(struct walk *walk, const char *rule, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void row(struct walk *walk, const char *rule, const char *format, ...)
{
	char value[256];
	va_list args;

	if (walk->result)
		return;
	va_start(args, format);
	vsnprintf(value, sizeof(value), format, args);
	va_end(args);
	walk->result = walk->fn(walk->arg, rule, value);
}

static const struct {
	uint32_t service;
	const char *name;
} services[] = {
	{ POLYCM_SVC_UD, "UD" },
	{ POLYCM_SVC_IPOIB, "IPoIB" },
	{ POLYCM_SVC_AF_IB, "AF_IB" },
	{ POLYCM_SVC_MULTICAST, "multicast" },
	{ POLYCM_SVC_XRC, "XRC" },
	{ POLYCM_SVC_SRQ, "SRQ" },
	{ POLYCM_SVC_ECE, "ECE" },
	{ POLYCM_SVC_ESTABLISH, "rdma_establish" },
	{ POLYCM_SVC_NOTIFY, "rdma_notify" },
	{ POLYCM_SVC_TIMEWAIT, "TIMEWAIT_EXIT" },
	{ POLYCM_SVC_IMM, "immediate data" },
	{ POLYCM_SVC_ATOMIC, "atomics" },
	{ POLYCM_SVC_RNR, "RNR NAK" },
};

static void walk_services(struct walk *walk, const struct polycm_transport *t)
{
	char list[192] = "RC";
	size_t len = strlen(list);

	for (size_t i = 0; i < sizeof(services) / sizeof(services[0]); i++)
		if (t->services & services[i].service)
			len += (size_t)snprintf(list + len, sizeof(list) - len, ", %s",
						services[i].name);
	row(walk, "services", "%s", list);
}

static void walk_private_data(struct walk *walk, const struct polycm_transport *t)
{
	static const char *const kinds[POLYCM_KINDS] = {
		[POLYCM_KIND_RC] = "RDMA_PS_TCP",
		[POLYCM_KIND_UD] = "RDMA_PS_UDP",
		[POLYCM_KIND_RC_AF_IB] = "AF_IB RC",
		[POLYCM_KIND_UD_AF_IB] = "AF_IB UD",
	};
	static const char *const calls[POLYCM_MSGS] = {
		[POLYCM_MSG_CONNECT] = "rdma_connect",
		[POLYCM_MSG_ACCEPT] = "rdma_accept",
		[POLYCM_MSG_REJECT] = "rdma_reject",
	};

	for (int kind = 0; kind < POLYCM_KINDS; kind++) {
		for (int msg = 0; msg < POLYCM_MSGS; msg++) {
			char rule[64];

			if (!t->limit[kind][msg])
				continue;
			snprintf(rule, sizeof(rule), "%s data, %s", calls[msg], kinds[kind]);
			if (t->reported[kind][msg])
				row(walk, rule, "%u bytes, peer sees %u", t->limit[kind][msg],
				    t->reported[kind][msg]);
			else
				row(walk, rule, "%u bytes, exact length", t->limit[kind][msg]);
		}
	}
}

/* The wait that an exponent means in the CM, in ms. */
static unsigned long long cm_ms(unsigned int exponent)
{
	return exponent >= 8 ? 1ull << (exponent - 8) : 1;
}

static void walk_timers(struct walk *walk, const struct polycm_transport *t)
{
	if (t->protocol == POLYCM_PROTO_IB_CM) {
		row(walk, "CM response time-out", "%u: %llu ms", t->cm_response_timeout,
		    cm_ms(t->cm_response_timeout));
		row(walk, "CM retries", "%u", t->max_cm_retries);
		row(walk, "MRA service time-out", "%u: %llu ms", t->mra_service_timeout,
		    cm_ms(t->mra_service_timeout));
		row(walk, "packet lifetime", "%u: %.3f ms%s", t->packet_lifetime,
		    4.096e-3 * (double)(1ull << t->packet_lifetime),
		    t->flags & POLYCM_T_HAS_SA ? " or as the path says" : "");
	} else if (t->protocol == POLYCM_PROTO_MPA) {
		row(walk, "MPA revision", "%u", t->mpa_revision);
		row(walk, "wait for the MPA reply", "%u ms", t->mpa_reply_timeout_ms);
		row(walk, "wait for the MPA request", "%u ms", t->mpa_request_timeout_ms);
	}
	if (t->services & POLYCM_SVC_RNR) {
		if (t->min_rnr_timer)
			row(walk, "minimum RNR NAK timer", "code %u", t->min_rnr_timer);
		else
			row(walk, "minimum RNR NAK timer", "code 0: 655.36 ms");
		row(walk, "local CA ACK delay", "%u: %.3f ms", t->local_ca_ack_delay,
		    4.096e-3 * (double)(1ull << t->local_ca_ack_delay));
	}
}

static const char *protocol_name(enum polycm_protocol protocol)
{
	switch (protocol) {
	case POLYCM_PROTO_IB_CM:
		return "CM datagrams (REQ, REP, RTU)";
	case POLYCM_PROTO_MPA:
		return "MPA over TCP";
	case POLYCM_PROTO_OTHER:
		break;
	}
	return "the provider's own";
}

int polycm_transport_walk(const struct polycm_transport *t,
			  int (*fn)(void *arg, const char *rule, const char *value), void *arg)
{
	struct walk walk = { .fn = fn, .arg = arg };

	row(&walk, "description", "%s", t->description);
	row(&walk, "protocol", "%s", protocol_name(t->protocol));
	walk_services(&walk, t);
	walk_private_data(&walk, t);
	if (t->services & POLYCM_SVC_RNR) {
		row(&walk, "retry_count, largest", "%u", t->max_retry_count);
		row(&walk, "rnr_retry_count, largest", "%u", t->max_rnr_retry_count);
	}
	row(&walk, "responder_resources, largest", "%u by default", t->max_responder_resources);
	row(&walk, "initiator_depth, largest", "%u by default", t->max_initiator_depth);
	row(&walk, "status of REJECTED", "%s",
	    t->reject_domain == POLYCM_REJECT_ERRNO ? "a negative errno" : "the REJ reason");
	row(&walk, "status after rdma_reject", "%d", t->consumer_reject_status);
	row(&walk, "status when nobody listens", "%d", t->refused_status);
	walk_timers(&walk, t);
	row(&walk, "QP is moved to RTS by", "%s",
	    t->flags & POLYCM_T_DEVICE_MOVES_QP ? "the device" : "the library");
	row(&walk, "RDMA_PS_TCP ports", "%s",
	    t->flags & POLYCM_T_PORT_IS_TCP ? "the host's TCP ports" : "a space of their own");
	return walk.result;
}
