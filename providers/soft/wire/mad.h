/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire/mad.h - the messages of the InfiniBand connection manager: 256-byte MADs
 * to and from structs in host order, and the CMA header in front of their
 * private data.
 *
 * Pure functions on the caller's memory; no locks, no allocations.
 */
#ifndef SIM_MAD_H
#define SIM_MAD_H

#include <rdma/rdma_cma.h>
#include <stddef.h>

#include "providers/common/cm_rej.h"
#include "address.h"

#define CM_MAD_SIZE 256u
#define CM_MAD_HEADER_SIZE 24u
#define CM_MAD_DATA_SIZE (CM_MAD_SIZE - CM_MAD_HEADER_SIZE)

#define CM_REQ_PRIVATE_SIZE 92u
#define CM_MRA_PRIVATE_SIZE 222u
#define CM_REJ_PRIVATE_SIZE 148u
#define CM_REP_PRIVATE_SIZE 196u
#define CM_RTU_PRIVATE_SIZE 224u
#define CM_DREQ_PRIVATE_SIZE 220u
#define CM_DREP_PRIVATE_SIZE 224u
#define CM_SIDR_REQ_PRIVATE_SIZE 216u
#define CM_SIDR_REP_PRIVATE_SIZE 136u
#define CM_LAP_PRIVATE_SIZE 168u
#define CM_APR_PRIVATE_SIZE 148u

#define CM_REJ_ARI_SIZE 72u
#define CM_SIDR_REP_INFO_SIZE 72u
#define CM_APR_INFO_SIZE 72u

enum cm_attr_id {
	CM_REQ = 0x0010,
	CM_MRA,
	CM_REJ,
	CM_REP,
	CM_RTU,
	CM_DREQ,
	CM_DREP,
	CM_SIDR_REQ,
	CM_SIDR_REP,
	CM_LAP,
	CM_APR,
};

/* cm_req.transport_service_type */
enum cm_transport_service {
	CM_TRANSPORT_RC = 0,
	CM_TRANSPORT_UC = 1,
	CM_TRANSPORT_EXTENDED = 3,	/* see cm_req.extended_transport_type */
};

#define CM_EXTENDED_TRANSPORT_XRC 1u

/* cm_mra.message_mraed, cm_rej.message_rejected */
enum cm_which_message {
	CM_WHICH_REQ,
	CM_WHICH_REP,
	CM_WHICH_OTHER,
};

/* cm_sidr_rep.status */
enum cm_sidr_status {
	CM_SIDR_SUCCESS,
	CM_SIDR_UNSUPPORTED,
	CM_SIDR_REJECT,
	CM_SIDR_NO_QP,
	CM_SIDR_REDIRECT,
	CM_SIDR_UNSUPPORTED_VERSION,
};

/*
 * Members are in the order of the wire.  Where a field is narrower than its
 * member the comment gives its bits; the encoder sends the low bits of a value
 * that is too large.
 */
struct cm_path {
	uint16_t local_lid;
	uint16_t remote_lid;
	union ibv_gid local_gid;
	union ibv_gid remote_gid;
	uint32_t flow_label;			/* 20 */
	uint8_t packet_rate;			/* 6 */
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;				/* 4 */
	bool subnet_local;
	uint8_t local_ack_timeout;		/* 5; 4.096 us * 2^n */
};

struct cm_req {
	uint32_t local_comm_id;
	uint32_t vendor_id;			/* 24; ECE */
	uint64_t service_id;
	uint64_t local_ca_guid;
	uint32_t local_qkey;
	uint32_t local_qpn;			/* 24 */
	uint8_t responder_resources;
	uint32_t local_eecn;			/* 24 */
	uint8_t initiator_depth;
	uint32_t remote_eecn;			/* 24 */
	uint8_t remote_cm_response_timeout;	/* 5 */
	uint8_t transport_service_type;		/* 2; enum cm_transport_service */
	bool end_to_end_flow_control;
	uint32_t starting_psn;			/* 24 */
	uint8_t local_cm_response_timeout;	/* 5 */
	uint8_t retry_count;			/* 3 */
	uint16_t pkey;
	uint8_t path_mtu;			/* 4; enum ibv_mtu */
	bool rdc_exists;
	uint8_t rnr_retry_count;		/* 3 */
	uint8_t max_cm_retries;			/* 4 */
	bool srq;
	uint8_t extended_transport_type;	/* 3 */
	struct cm_path primary;
	struct cm_path alternate;		/* present: local_lid is not 0 */
	bool sap_supported;
	uint8_t private_data[CM_REQ_PRIVATE_SIZE];
};

struct cm_mra {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	uint8_t message_mraed;			/* 2; enum cm_which_message */
	uint8_t service_timeout;		/* 5 */
	uint8_t private_data[CM_MRA_PRIVATE_SIZE];
};

struct cm_rej {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	uint8_t message_rejected;		/* 2; enum cm_which_message */
	uint8_t info_length;			/* 7; of ari, never above its size when decoded */
	uint16_t reason;			/* enum cm_rej_reason */
	uint8_t ari[CM_REJ_ARI_SIZE];		/* additional reject information */
	uint8_t private_data[CM_REJ_PRIVATE_SIZE];
};

struct cm_rep {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	uint32_t local_qkey;
	uint32_t local_qpn;			/* 24 */
	uint32_t local_eecn;			/* 24; the QP's number if it is an XRC target */
	uint32_t starting_psn;			/* 24 */
	uint32_t vendor_id;			/* 24, in three pieces; ECE */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t target_ack_delay;		/* 5 */
	uint8_t failover_accepted;		/* 2 */
	bool end_to_end_flow_control;
	uint8_t rnr_retry_count;		/* 3 */
	bool srq;
	uint64_t local_ca_guid;
	uint8_t private_data[CM_REP_PRIVATE_SIZE];
};

struct cm_rtu {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	uint8_t private_data[CM_RTU_PRIVATE_SIZE];
};

struct cm_dreq {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	uint32_t remote_qpn;			/* 24 */
	uint8_t private_data[CM_DREQ_PRIVATE_SIZE];
};

struct cm_drep {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	uint8_t private_data[CM_DREP_PRIVATE_SIZE];
};

struct cm_sidr_req {
	uint32_t request_id;
	uint16_t pkey;
	uint64_t service_id;
	uint8_t private_data[CM_SIDR_REQ_PRIVATE_SIZE];
};

struct cm_sidr_rep {
	uint32_t request_id;
	uint8_t status;				/* enum cm_sidr_status */
	uint8_t info_length;			/* of info, never above its size when decoded */
	uint32_t qpn;				/* 24 */
	uint32_t vendor_id;			/* 24, in two pieces; ECE */
	uint64_t service_id;
	uint32_t qkey;
	uint8_t info[CM_SIDR_REP_INFO_SIZE];
	uint8_t private_data[CM_SIDR_REP_PRIVATE_SIZE];
};

struct cm_lap {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	uint32_t remote_qpn;			/* 24 */
	uint8_t remote_cm_response_timeout;	/* 5 */
	struct cm_path alternate;
	uint8_t private_data[CM_LAP_PRIVATE_SIZE];
};

struct cm_apr {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	uint8_t info_length;			/* of info, never above its size when decoded */
	uint8_t status;
	uint8_t info[CM_APR_INFO_SIZE];
	uint8_t private_data[CM_APR_PRIVATE_SIZE];
};

struct cm_msg {
	uint16_t attr_id;			/* enum cm_attr_id: which member of the union */
	uint32_t attr_mod;			/* ECE options in REQ, REP and SIDR_REP, else 0 */
	uint64_t tid;
	union {
		struct cm_req req;
		struct cm_mra mra;
		struct cm_rej rej;
		struct cm_rep rep;
		struct cm_rtu rtu;
		struct cm_dreq dreq;
		struct cm_drep drep;
		struct cm_sidr_req sidr_req;
		struct cm_sidr_rep sidr_rep;
		struct cm_lap lap;
		struct cm_apr apr;
	};
};

/* Reserved bits become 0.  attr_id must be one of enum cm_attr_id. */
void cm_encode(const struct cm_msg *msg, uint8_t mad[CM_MAD_SIZE]);

/*
 * All of *ret_msg is written, padding included, so that equal MADs give equal
 * bytes.  -EBADMSG, and *ret_msg untouched: not a CM MAD (length, versions,
 * class, method or attribute).  Reserved bits and the MAD status are ignored.
 */
int cm_decode(const uint8_t *mad, size_t len, struct cm_msg *ret_msg);

/* "REQ", "SIDR_REP", ...; "?" if there is no such attribute. */
const char *cm_msg_name(uint16_t attr_id);

/* The sender's and the receiver's communication ids; 0: the message has none. */
void cm_msg_ids(const struct cm_msg *msg, uint32_t *ret_local, uint32_t *ret_remote);

/* --- Service ids of the RDMA CM: port space and port. --- */

static inline uint64_t cm_service_id(uint16_t port_space, uint16_t port)
{
	return (uint64_t)port_space << 16 | port;
}

static inline uint16_t cm_service_id_port(uint64_t service_id)
{
	return (uint16_t)service_id;
}

/* 0 if the service id cannot be one of a port space. */
static inline uint16_t cm_service_id_port_space(uint64_t service_id)
{
	return service_id >> 32 ? 0 : (uint16_t)(service_id >> 16);
}

/* --- CMA header: first in the private data of REQ and SIDR_REQ between IP addresses. --- */

#define CMA_HDR_SIZE 36u

struct cma_hdr_info {
	uint8_t ip_version;		/* 4 or 6 */
	union sim_sockaddr src;
	union sim_sockaddr dst;		/* its port is not on the wire: it is in the service id */
};

void cma_hdr_encode(const struct cma_hdr_info *info, uint8_t hdr[CMA_HDR_SIZE]);
/* -EBADMSG: too short, or a version that we do not know.  Leaves dst's port 0. */
int cma_hdr_decode(const uint8_t *hdr, size_t len, struct cma_hdr_info *ret_info);

#endif
