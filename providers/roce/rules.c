/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules.c - the rules of RoCE, versions 1 and 2.
 *
 * The same connection manager as InfiniBand's, with the same messages.  What
 * differs: no subnet administrator, so packet lifetime is a constant and the
 * path MTU comes from the Ethernet interface; no IPoIB; and no addresses of
 * family AF_IB, because a path without an interface cannot be resolved.
 */
#include "providers/common/cm_rej.h"
#include "providers/common/ib_rules.h"
#include "rules.h"

/* GRH 40, UDP 8, BTH 12, XRC ETH 4, AtomicETH 28, ICRC 4. */
#define HEADERS 96u

static uint32_t roce_path_mtu(uint32_t netdev_mtu)
{
	return netdev_mtu > HEADERS ? ib_rules_mtu_floor(netdev_mtu - HEADERS) : 0;
}

const struct polycm_transport roce_transport = {
	.size = sizeof(roce_transport),
	.shape = POLYCM_RULES_SHAPE,
	.name = "roce",
	.description = "RDMA over Converged Ethernet: CM datagrams, paths from the IP routes",
	.protocol = POLYCM_PROTO_IB_CM,
	.services = POLYCM_SVC_UD | POLYCM_SVC_MULTICAST | POLYCM_SVC_XRC | POLYCM_SVC_SRQ |
		    POLYCM_SVC_ECE | POLYCM_SVC_ESTABLISH | POLYCM_SVC_NOTIFY |
		    POLYCM_SVC_TIMEWAIT | POLYCM_SVC_IMM | POLYCM_SVC_ATOMIC | POLYCM_SVC_RNR,
	.node_type = IBV_NODE_CA,
	.transport_type = IBV_TRANSPORT_IB,
	.link_layer = IBV_LINK_LAYER_ETHERNET,
	/* connect, accept, reject */
	.limit = {
		[POLYCM_KIND_RC] = { 56, 196, 148 },
		[POLYCM_KIND_UD] = { 180, 136, 136 },
	},
	.reported = {
		[POLYCM_KIND_RC] = { 56, 196, 148 },
		[POLYCM_KIND_UD] = { 180, 136, 136 },
	},
	.capacity = {
		[POLYCM_KIND_RC] = { 92, 196, 148 },
		[POLYCM_KIND_UD] = { 216, 136, 136 },
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
	.packet_lifetime = 16,		/* 268 ms; kernels before 2021 had 18 */
	.min_rnr_timer = 0,
	.local_ca_ack_delay = 15,
	.max_responder_resources = 128,
	.max_initiator_depth = 128,
	.ack_timeout = ib_rules_ack_timeout,
	.path_mtu = roce_path_mtu,
	.status_str = ib_rules_status_str,
};
