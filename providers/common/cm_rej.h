/* SPDX-License-Identifier: BSD-2-Clause */
/* cm_rej.h - why the InfiniBand connection manager rejects. */
#ifndef COMMON_CM_REJ_H
#define COMMON_CM_REJ_H

/*
 * cm_rej.reason; IBTA vol. 1, 12.6.7.2: the number, the name, the word of scenario files
 * (NULL: they have none), and what it means.
 */
#define CM_REJ_REASONS(X)								\
	X(1, NO_QP, "no_qp", "no QP available at the peer")				\
	X(2, NO_EEC, NULL, "no EE context available at the peer")			\
	X(3, NO_RESOURCES, "no_resources", "the peer is out of resources")		\
	X(4, TIMEOUT, "timeout", "timeout: the peer gave up waiting")			\
	X(5, UNSUPPORTED, "unsupported", "unsupported request")				\
	X(6, INVALID_COMM_ID, "invalid_comm_id", "invalid communication id")		\
	X(7, INVALID_COMM_INSTANCE, "invalid_comm_instance",				\
	  "invalid communication instance")						\
	X(8, INVALID_SERVICE_ID, "invalid_service_id",					\
	  "invalid service id: nobody listens on that port")				\
	X(9, INVALID_TRANSPORT_TYPE, "invalid_transport_type",				\
	  "invalid transport service type")						\
	X(10, STALE_CONN, "stale_conn",							\
	  "stale connection: the peer still has a connection with this QP number")	\
	X(11, RDC_NOT_EXIST, NULL, "no such RD channel")				\
	X(12, INVALID_GID, "invalid_gid", "invalid GID: the peer has no path back")	\
	X(13, INVALID_LID, "invalid_lid", "invalid LID")				\
	X(14, INVALID_SL, "invalid_sl", "invalid service level")			\
	X(15, INVALID_TRAFFIC_CLASS, "invalid_traffic_class", "invalid traffic class")	\
	X(16, INVALID_HOP_LIMIT, "invalid_hop_limit", "invalid hop limit")		\
	X(17, INVALID_PACKET_RATE, "invalid_packet_rate", "invalid packet rate")	\
	X(18, INVALID_ALT_GID, "invalid_alt_gid", "invalid alternate GID")		\
	X(19, INVALID_ALT_LID, "invalid_alt_lid", "invalid alternate LID")		\
	X(20, INVALID_ALT_SL, NULL, "invalid alternate service level")			\
	X(21, INVALID_ALT_TRAFFIC_CLASS, NULL, "invalid alternate traffic class")	\
	X(22, INVALID_ALT_HOP_LIMIT, NULL, "invalid alternate hop limit")		\
	X(23, INVALID_ALT_PACKET_RATE, NULL, "invalid alternate packet rate")		\
	X(24, PORT_CM_REDIRECT, NULL, "the connection manager is at another port")	\
	X(25, PORT_REDIRECT, "port_redirect", "the service is at another port")		\
	X(26, INVALID_MTU, "invalid_mtu", "invalid path MTU")				\
	X(27, INSUFFICIENT_RESP_RESOURCES, "insufficient_resp_resources",		\
	  "not enough responder resources")						\
	X(28, CONSUMER_DEFINED, "consumer_defined",					\
	  "consumer defined: rejected by the peer's program, or its "			\
	  "listener is for another address or type")					\
	X(29, INVALID_RNR_RETRY, "invalid_rnr_retry", "invalid RNR retry count")	\
	X(30, DUPLICATE_LOCAL_COMM_ID, "duplicate_local_comm_id",			\
	  "communication id is in use")							\
	X(31, INVALID_CLASS_VERSION, "invalid_class_version", "invalid class version")	\
	X(32, INVALID_FLOW_LABEL, "invalid_flow_label", "invalid flow label")		\
	X(33, INVALID_ALT_FLOW_LABEL, NULL, "invalid alternate flow label")		\
	X(35, VENDOR_OPTION_NOT_SUPPORTED, "vendor_option_not_supported",		\
	  "vendor option not supported: the peer's program refused our ECE options")

enum cm_rej_reason {
#define X(number, name, word, text) CM_REJ_##name = number,
	CM_REJ_REASONS(X)
#undef X
};

#endif
