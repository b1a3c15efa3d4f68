/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules.c - the rules of InfiniBand.
 *
 * CM messages have fixed sizes, so a receiver sees the room of the message
 * and never the length that was sent.  Between IP addresses the RDMA CM puts
 * a header of 36 bytes in front of the data of REQ and SIDR_REQ.
 */
#include "providers/common/cm_rej.h"
#include "providers/common/ib_rules.h"
#include "rules.h"

#define IPOIB_HEADER 4u	/* RFC 4391: what IPoIB takes from the MTU of the link */

/* The link's MTU as the interface on top of it shows it. */
static uint32_t ib_path_mtu(uint32_t netdev_mtu)
{
	return ib_rules_mtu_floor(netdev_mtu < UINT32_MAX - IPOIB_HEADER ?
				  netdev_mtu + IPOIB_HEADER : netdev_mtu);
}

const struct polycm_transport ib_transport = {
	.size = sizeof(ib_transport),
	.shape = POLYCM_RULES_SHAPE,
	.name = "ib",
	.description = "InfiniBand: CM datagrams, paths from the subnet administrator",
	.protocol = POLYCM_PROTO_IB_CM,
	.services = POLYCM_SVC_UD | POLYCM_SVC_IPOIB | POLYCM_SVC_AF_IB | POLYCM_SVC_MULTICAST |
		    POLYCM_SVC_XRC | POLYCM_SVC_SRQ | POLYCM_SVC_ECE | POLYCM_SVC_ESTABLISH |
		    POLYCM_SVC_NOTIFY | POLYCM_SVC_TIMEWAIT | POLYCM_SVC_IMM | POLYCM_SVC_ATOMIC |
		    POLYCM_SVC_RNR,
	.flags = POLYCM_T_HAS_SA,
	.node_type = IBV_NODE_CA,
	.transport_type = IBV_TRANSPORT_IB,
	.link_layer = IBV_LINK_LAYER_INFINIBAND,
	/* connect, accept, reject */
	.limit = {
		[POLYCM_KIND_RC] = { 56, 196, 148 },
		[POLYCM_KIND_UD] = { 180, 136, 136 },
		[POLYCM_KIND_RC_AF_IB] = { 92, 196, 148 },
		[POLYCM_KIND_UD_AF_IB] = { 216, 136, 136 },
	},
	.reported = {
		[POLYCM_KIND_RC] = { 56, 196, 148 },
		[POLYCM_KIND_UD] = { 180, 136, 136 },
		[POLYCM_KIND_RC_AF_IB] = { 92, 196, 148 },
		[POLYCM_KIND_UD_AF_IB] = { 216, 136, 136 },
	},
	.capacity = {
		[POLYCM_KIND_RC] = { 92, 196, 148 },
		[POLYCM_KIND_UD] = { 216, 136, 136 },
		[POLYCM_KIND_RC_AF_IB] = { 92, 196, 148 },
		[POLYCM_KIND_UD_AF_IB] = { 216, 136, 136 },
	},
	.cm_header_len = 36,
	.max_retry_count = IB_MAX_RETRY_COUNT,
	.max_rnr_retry_count = IB_MAX_RETRY_COUNT,
	.reject_domain = POLYCM_REJECT_REASON,
	.consumer_reject_status = CM_REJ_CONSUMER_DEFINED,
	.refused_status = CM_REJ_INVALID_SERVICE_ID,
	.cm_response_timeout = IB_CM_RESPONSE_TIMEOUT,
	.max_cm_retries = IB_CM_MAX_RETRIES,
	.mra_service_timeout = IB_CM_MRA_TIMEOUT,
	.packet_lifetime = 18,		/* what subnet managers hand out unless told otherwise */
	.min_rnr_timer = 0,
	.local_ca_ack_delay = 16,
	.max_responder_resources = 16,
	.max_initiator_depth = 16,
	.ack_timeout = ib_rules_ack_timeout,
	.path_mtu = ib_path_mtu,
	.status_str = ib_rules_status_str,
};
