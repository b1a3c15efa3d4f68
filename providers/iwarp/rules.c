/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules.c - the rules of iWARP, as Linux's software device siw has them:
 * MPA revision 2 over TCP, the device moves the queue pair, statuses are
 * errnos and private data arrives with the length it was sent with.
 */
#include <errno.h>

#include "rules.h"

/* A byte counts the data, 4 bytes of it are revision 2's own. */
#define MPA_PRIVATE_DATA 251

/* TCP cuts the stream into segments; the MTU of the path is the interface's. */
static uint32_t iwarp_path_mtu(uint32_t netdev_mtu)
{
	return netdev_mtu;
}

static const char *iwarp_rejected_str(int status)
{
	switch (status) {
	case -ECONNRESET:
		return "connection reset: rejected by the peer's program, or closed before the "
		       "MPA reply";
	case -ECONNREFUSED:
		return "connection refused: nobody listens on that TCP port";
	default:
		return NULL;
	}
}

static const char *iwarp_connect_error_str(int status)
{
	switch (status) {
	case -EINVAL:
		return "invalid MPA reply, data of the peer right behind it, or its depths do not "
		       "fit ours";
	case -EHOSTUNREACH:
		return "no route to the peer for TCP";
	case -ENOMEM:
		return "no memory, or the peer's depths are above the device's";
	case -EPROTO:
		return "the peer's MPA reply breaks the protocol";
	default:
		return NULL;
	}
}

static const char *iwarp_status_str(enum rdma_cm_event_type event, int status)
{
	switch (event) {
	case RDMA_CM_EVENT_REJECTED:
		return iwarp_rejected_str(status);
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return iwarp_connect_error_str(status);
	case RDMA_CM_EVENT_UNREACHABLE:
		return status == -ETIMEDOUT ?
		       "timed out: TCP connected but no MPA reply came" : NULL;
	case RDMA_CM_EVENT_DISCONNECTED:
		return status == -ECONNRESET ? "connection reset: the stream was aborted" : NULL;
	default:
		return NULL;
	}
}

const struct polycm_transport iwarp_transport = {
	.size = sizeof(iwarp_transport),
	.shape = POLYCM_RULES_SHAPE,
	.name = "iwarp",
	.description = "iWARP: MPA over TCP",
	.protocol = POLYCM_PROTO_MPA,
	.services = POLYCM_SVC_SRQ,
	.flags = POLYCM_T_DEVICE_MOVES_QP | POLYCM_T_EXACT_LENGTH | POLYCM_T_PORT_IS_TCP |
		 POLYCM_T_CONNECT_BLOCKS,
	.node_type = IBV_NODE_RNIC,
	.transport_type = IBV_TRANSPORT_IWARP,
	.link_layer = IBV_LINK_LAYER_ETHERNET,
	/* connect, accept, reject */
	.limit = {
		[POLYCM_KIND_RC] = { MPA_PRIVATE_DATA, MPA_PRIVATE_DATA, MPA_PRIVATE_DATA },
	},
	/* reported: all 0, exact */
	.capacity = {
		[POLYCM_KIND_RC] = { 256, 256, 256 },
	},
	.reject_domain = POLYCM_REJECT_ERRNO,
	.consumer_reject_status = -ECONNRESET,
	.refused_status = -ECONNREFUSED,
	.mpa_reply_timeout_ms = 10000,
	.mpa_request_timeout_ms = 5000,
	.mpa_revision = 2,
	.max_responder_resources = 128,
	.max_initiator_depth = 128,
	.path_mtu = iwarp_path_mtu,
	.status_str = iwarp_status_str,
};
