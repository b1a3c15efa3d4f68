/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/mad_fields.c - the layouts of the CM messages (IBTA vol. 1, 12.6; the
 * vendor id pieces are those of Enhanced Connection Establishment).
 *
 * Rows give byte and bit from the start of the CM data, bit 0 being the most
 * significant one of its byte, and the width in bits.  What has no row is
 * reserved.
 */
#include "config.h"

#include "mad_fields.h"

#define SIZE_OF(type, field) sizeof(((struct type *)0)->field)

/* An integer of up to 32 bits inside one word: the bits of the member from `low` on. */
#define ROW(label, type, field, byte, bit, bits, low)						\
	{											\
		.name = (label), .member = offsetof(struct type, field), .width = (bits),	\
		.size = SIZE_OF(type, field), .at = (byte) / 4u * 4u,				\
		.lsb = 32u - ((byte) % 4u * 8u + (bit)) - (bits), .shift = (low),		\
		.mask = (uint32_t)((UINT64_C(1) << (bits)) - 1u),				\
	}
#define BITS(type, field, byte, bit, bits)	ROW(#field, type, field, byte, bit, bits, 0u)
#define U8(type, field, byte)			BITS(type, field, byte, 0u, 8u)
#define U16(type, field, byte)			BITS(type, field, byte, 0u, 16u)
#define U24(type, field, byte)			BITS(type, field, byte, 0u, 24u)
#define U32(type, field, byte)			BITS(type, field, byte, 0u, 32u)
/* A member in pieces: the first one has the member's highest bits. */
#define PIECE(type, field, byte, bits, low)	ROW(#field, type, field, byte, 0u, bits, low)
#define MORE(type, field, byte, bits, low)	ROW(NULL, type, field, byte, 0u, bits, low)

#define U64(type, field, byte)									\
	{											\
		.name = #field, .member = offsetof(struct type, field), .width = 64u,		\
		.size = SIZE_OF(type, field), .at = (byte),					\
	}
#define BYTES(type, field, byte)								\
	{											\
		.name = #field, .member = offsetof(struct type, field),				\
		.width = 8u * SIZE_OF(type, field), .size = CM_FIELD_BYTES, .at = (byte),	\
	}

/* A path in a REQ; a LAP orders it otherwise. */
#define REQ_PATH(path, byte)									\
	U16(cm_req, path.local_lid, (byte)),							\
	U16(cm_req, path.remote_lid, (byte) + 2u),						\
	BYTES(cm_req, path.local_gid, (byte) + 4u),						\
	BYTES(cm_req, path.remote_gid, (byte) + 20u),						\
	BITS(cm_req, path.flow_label, (byte) + 36u, 0u, 20u),					\
	BITS(cm_req, path.packet_rate, (byte) + 39u, 2u, 6u),					\
	U8(cm_req, path.traffic_class, (byte) + 40u),						\
	U8(cm_req, path.hop_limit, (byte) + 41u),						\
	BITS(cm_req, path.sl, (byte) + 42u, 0u, 4u),						\
	BITS(cm_req, path.subnet_local, (byte) + 42u, 4u, 1u),					\
	BITS(cm_req, path.local_ack_timeout, (byte) + 43u, 0u, 5u)

static const struct cm_field req_fields[] = {
	U32(cm_req, local_comm_id, 0u),
	U24(cm_req, vendor_id, 5u),
	U64(cm_req, service_id, 8u),
	U64(cm_req, local_ca_guid, 16u),
	U32(cm_req, local_qkey, 28u),
	U24(cm_req, local_qpn, 32u),
	U8(cm_req, responder_resources, 35u),
	U24(cm_req, local_eecn, 36u),
	U8(cm_req, initiator_depth, 39u),
	U24(cm_req, remote_eecn, 40u),
	BITS(cm_req, remote_cm_response_timeout, 43u, 0u, 5u),
	BITS(cm_req, transport_service_type, 43u, 5u, 2u),
	BITS(cm_req, end_to_end_flow_control, 43u, 7u, 1u),
	U24(cm_req, starting_psn, 44u),
	BITS(cm_req, local_cm_response_timeout, 47u, 0u, 5u),
	BITS(cm_req, retry_count, 47u, 5u, 3u),
	U16(cm_req, pkey, 48u),
	BITS(cm_req, path_mtu, 50u, 0u, 4u),
	BITS(cm_req, rdc_exists, 50u, 4u, 1u),
	BITS(cm_req, rnr_retry_count, 50u, 5u, 3u),
	BITS(cm_req, max_cm_retries, 51u, 0u, 4u),
	BITS(cm_req, srq, 51u, 4u, 1u),
	BITS(cm_req, extended_transport_type, 51u, 5u, 3u),
	REQ_PATH(primary, 52u),
	REQ_PATH(alternate, 96u),
	BITS(cm_req, sap_supported, 139u, 5u, 1u),
	BYTES(cm_req, private_data, 140u),
};

static const struct cm_field mra_fields[] = {
	U32(cm_mra, local_comm_id, 0u),
	U32(cm_mra, remote_comm_id, 4u),
	BITS(cm_mra, message_mraed, 8u, 0u, 2u),
	BITS(cm_mra, service_timeout, 9u, 0u, 5u),
	BYTES(cm_mra, private_data, 10u),
};

static const struct cm_field rej_fields[] = {
	U32(cm_rej, local_comm_id, 0u),
	U32(cm_rej, remote_comm_id, 4u),
	BITS(cm_rej, message_rejected, 8u, 0u, 2u),
	BITS(cm_rej, info_length, 9u, 0u, 7u),
	U16(cm_rej, reason, 10u),
	BYTES(cm_rej, ari, 12u),
	BYTES(cm_rej, private_data, 84u),
};

static const struct cm_field rep_fields[] = {
	U32(cm_rep, local_comm_id, 0u),
	U32(cm_rep, remote_comm_id, 4u),
	U32(cm_rep, local_qkey, 8u),
	U24(cm_rep, local_qpn, 12u),
	PIECE(cm_rep, vendor_id, 15u, 8u, 16u),
	U24(cm_rep, local_eecn, 16u),
	MORE(cm_rep, vendor_id, 19u, 8u, 8u),
	U24(cm_rep, starting_psn, 20u),
	MORE(cm_rep, vendor_id, 23u, 8u, 0u),
	U8(cm_rep, responder_resources, 24u),
	U8(cm_rep, initiator_depth, 25u),
	BITS(cm_rep, target_ack_delay, 26u, 0u, 5u),
	BITS(cm_rep, failover_accepted, 26u, 5u, 2u),
	BITS(cm_rep, end_to_end_flow_control, 26u, 7u, 1u),
	BITS(cm_rep, rnr_retry_count, 27u, 0u, 3u),
	BITS(cm_rep, srq, 27u, 3u, 1u),
	U64(cm_rep, local_ca_guid, 28u),
	BYTES(cm_rep, private_data, 36u),
};

static const struct cm_field rtu_fields[] = {
	U32(cm_rtu, local_comm_id, 0u),
	U32(cm_rtu, remote_comm_id, 4u),
	BYTES(cm_rtu, private_data, 8u),
};

static const struct cm_field dreq_fields[] = {
	U32(cm_dreq, local_comm_id, 0u),
	U32(cm_dreq, remote_comm_id, 4u),
	U24(cm_dreq, remote_qpn, 8u),
	BYTES(cm_dreq, private_data, 12u),
};

static const struct cm_field drep_fields[] = {
	U32(cm_drep, local_comm_id, 0u),
	U32(cm_drep, remote_comm_id, 4u),
	BYTES(cm_drep, private_data, 8u),
};

static const struct cm_field sidr_req_fields[] = {
	U32(cm_sidr_req, request_id, 0u),
	U16(cm_sidr_req, pkey, 4u),
	U64(cm_sidr_req, service_id, 8u),
	BYTES(cm_sidr_req, private_data, 16u),
};

static const struct cm_field sidr_rep_fields[] = {
	U32(cm_sidr_rep, request_id, 0u),
	U8(cm_sidr_rep, status, 4u),
	U8(cm_sidr_rep, info_length, 5u),
	PIECE(cm_sidr_rep, vendor_id, 6u, 16u, 8u),
	U24(cm_sidr_rep, qpn, 8u),
	MORE(cm_sidr_rep, vendor_id, 11u, 8u, 0u),
	U64(cm_sidr_rep, service_id, 12u),
	U32(cm_sidr_rep, qkey, 20u),
	BYTES(cm_sidr_rep, info, 24u),
	BYTES(cm_sidr_rep, private_data, 96u),
};

static const struct cm_field lap_fields[] = {
	U32(cm_lap, local_comm_id, 0u),
	U32(cm_lap, remote_comm_id, 4u),
	U24(cm_lap, remote_qpn, 12u),
	BITS(cm_lap, remote_cm_response_timeout, 15u, 0u, 5u),
	U16(cm_lap, alternate.local_lid, 20u),
	U16(cm_lap, alternate.remote_lid, 22u),
	BYTES(cm_lap, alternate.local_gid, 24u),
	BYTES(cm_lap, alternate.remote_gid, 40u),
	BITS(cm_lap, alternate.flow_label, 56u, 0u, 20u),
	U8(cm_lap, alternate.traffic_class, 59u),
	U8(cm_lap, alternate.hop_limit, 60u),
	BITS(cm_lap, alternate.packet_rate, 61u, 2u, 6u),
	BITS(cm_lap, alternate.sl, 62u, 0u, 4u),
	BITS(cm_lap, alternate.subnet_local, 62u, 4u, 1u),
	BITS(cm_lap, alternate.local_ack_timeout, 63u, 0u, 5u),
	BYTES(cm_lap, private_data, 64u),
};

static const struct cm_field apr_fields[] = {
	U32(cm_apr, local_comm_id, 0u),
	U32(cm_apr, remote_comm_id, 4u),
	U8(cm_apr, info_length, 8u),
	U8(cm_apr, status, 9u),
	BYTES(cm_apr, info, 12u),
	BYTES(cm_apr, private_data, 84u),
};

#define LAYOUT(label, table)									\
	{											\
		.name = (label), .fields = (table),						\
		.num_fields = sizeof(table) / sizeof((table)[0]),				\
	}

static const struct cm_layout layouts[] = {
	[CM_REQ - CM_REQ]	= LAYOUT("REQ", req_fields),
	[CM_MRA - CM_REQ]	= LAYOUT("MRA", mra_fields),
	[CM_REJ - CM_REQ]	= LAYOUT("REJ", rej_fields),
	[CM_REP - CM_REQ]	= LAYOUT("REP", rep_fields),
	[CM_RTU - CM_REQ]	= LAYOUT("RTU", rtu_fields),
	[CM_DREQ - CM_REQ]	= LAYOUT("DREQ", dreq_fields),
	[CM_DREP - CM_REQ]	= LAYOUT("DREP", drep_fields),
	[CM_SIDR_REQ - CM_REQ]	= LAYOUT("SIDR_REQ", sidr_req_fields),
	[CM_SIDR_REP - CM_REQ]	= LAYOUT("SIDR_REP", sidr_rep_fields),
	[CM_LAP - CM_REQ]	= LAYOUT("LAP", lap_fields),
	[CM_APR - CM_REQ]	= LAYOUT("APR", apr_fields),
};

const struct cm_layout *cm_layout(uint16_t attr_id)
{
	if (attr_id < CM_REQ || attr_id > CM_APR)
		return NULL;
	return &layouts[attr_id - CM_REQ];
}
