/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire/mad_rows.h - where each field of each CM message is (IBTA vol. 1, 12.6; the
 * vendor id pieces are those of Enhanced Connection Establishment).
 *
 * A list CM_x_FIELDS(F) is one row per field, in the order of the wire.  Rows
 * give byte and bit from the start of the CM data, bit 0 being the most
 * significant one of its byte, and the width in bits.  What has no row is
 * reserved.  No integer of up to 32 bits crosses a 32-bit word of the wire.
 *
 * The user of a list defines what becomes of a row:
 *   F_INT(field, byte, bit, bits, low)		the bits of the member from `low' on
 *   F_U64(field, byte)
 *   F_BYTES(field, byte)			the whole array
 */
#ifndef SIM_MAD_ROWS_H
#define SIM_MAD_ROWS_H

#define CM_BITS(F, field, byte, bit, bits) F##_INT(field, byte, bit, bits, 0u)
#define CM_U8(F, field, byte) CM_BITS(F, field, byte, 0u, 8u)
#define CM_U16(F, field, byte) CM_BITS(F, field, byte, 0u, 16u)
#define CM_U24(F, field, byte) CM_BITS(F, field, byte, 0u, 24u)
#define CM_U32(F, field, byte) CM_BITS(F, field, byte, 0u, 32u)
/* A piece of a member that is in several. */
#define CM_PIECE(F, field, byte, bits, low) F##_INT(field, byte, 0u, bits, low)
#define CM_U64(F, field, byte) F##_U64(field, byte)
#define CM_BYTES(F, field, byte) F##_BYTES(field, byte)

/* A path in a REQ; a LAP orders it otherwise. */
#define CM_REQ_PATH(F, path, byte)								\
	CM_U16(F, path.local_lid, (byte))							\
	CM_U16(F, path.remote_lid, (byte) + 2u)							\
	CM_BYTES(F, path.local_gid, (byte) + 4u)						\
	CM_BYTES(F, path.remote_gid, (byte) + 20u)						\
	CM_BITS(F, path.flow_label, (byte) + 36u, 0u, 20u)					\
	CM_BITS(F, path.packet_rate, (byte) + 39u, 2u, 6u)					\
	CM_U8(F, path.traffic_class, (byte) + 40u)						\
	CM_U8(F, path.hop_limit, (byte) + 41u)							\
	CM_BITS(F, path.sl, (byte) + 42u, 0u, 4u)						\
	CM_BITS(F, path.subnet_local, (byte) + 42u, 4u, 1u)					\
	CM_BITS(F, path.local_ack_timeout, (byte) + 43u, 0u, 5u)

#define CM_REQ_FIELDS(F)									\
	CM_U32(F, local_comm_id, 0u)								\
	CM_U24(F, vendor_id, 5u)								\
	CM_U64(F, service_id, 8u)								\
	CM_U64(F, local_ca_guid, 16u)								\
	CM_U32(F, local_qkey, 28u)								\
	CM_U24(F, local_qpn, 32u)								\
	CM_U8(F, responder_resources, 35u)							\
	CM_U24(F, local_eecn, 36u)								\
	CM_U8(F, initiator_depth, 39u)								\
	CM_U24(F, remote_eecn, 40u)								\
	CM_BITS(F, remote_cm_response_timeout, 43u, 0u, 5u)					\
	CM_BITS(F, transport_service_type, 43u, 5u, 2u)						\
	CM_BITS(F, end_to_end_flow_control, 43u, 7u, 1u)					\
	CM_U24(F, starting_psn, 44u)								\
	CM_BITS(F, local_cm_response_timeout, 47u, 0u, 5u)					\
	CM_BITS(F, retry_count, 47u, 5u, 3u)							\
	CM_U16(F, pkey, 48u)									\
	CM_BITS(F, path_mtu, 50u, 0u, 4u)							\
	CM_BITS(F, rdc_exists, 50u, 4u, 1u)							\
	CM_BITS(F, rnr_retry_count, 50u, 5u, 3u)						\
	CM_BITS(F, max_cm_retries, 51u, 0u, 4u)							\
	CM_BITS(F, srq, 51u, 4u, 1u)								\
	CM_BITS(F, extended_transport_type, 51u, 5u, 3u)					\
	CM_REQ_PATH(F, primary, 52u)								\
	CM_REQ_PATH(F, alternate, 96u)								\
	CM_BITS(F, sap_supported, 139u, 5u, 1u)							\
	CM_BYTES(F, private_data, 140u)

#define CM_MRA_FIELDS(F)									\
	CM_U32(F, local_comm_id, 0u)								\
	CM_U32(F, remote_comm_id, 4u)								\
	CM_BITS(F, message_mraed, 8u, 0u, 2u)							\
	CM_BITS(F, service_timeout, 9u, 0u, 5u)							\
	CM_BYTES(F, private_data, 10u)

#define CM_REJ_FIELDS(F)									\
	CM_U32(F, local_comm_id, 0u)								\
	CM_U32(F, remote_comm_id, 4u)								\
	CM_BITS(F, message_rejected, 8u, 0u, 2u)						\
	CM_BITS(F, info_length, 9u, 0u, 7u)							\
	CM_U16(F, reason, 10u)									\
	CM_BYTES(F, ari, 12u)									\
	CM_BYTES(F, private_data, 84u)

#define CM_REP_FIELDS(F)									\
	CM_U32(F, local_comm_id, 0u)								\
	CM_U32(F, remote_comm_id, 4u)								\
	CM_U32(F, local_qkey, 8u)								\
	CM_U24(F, local_qpn, 12u)								\
	CM_PIECE(F, vendor_id, 15u, 8u, 16u)							\
	CM_U24(F, local_eecn, 16u)								\
	CM_PIECE(F, vendor_id, 19u, 8u, 8u)							\
	CM_U24(F, starting_psn, 20u)								\
	CM_PIECE(F, vendor_id, 23u, 8u, 0u)							\
	CM_U8(F, responder_resources, 24u)							\
	CM_U8(F, initiator_depth, 25u)								\
	CM_BITS(F, target_ack_delay, 26u, 0u, 5u)						\
	CM_BITS(F, failover_accepted, 26u, 5u, 2u)						\
	CM_BITS(F, end_to_end_flow_control, 26u, 7u, 1u)					\
	CM_BITS(F, rnr_retry_count, 27u, 0u, 3u)						\
	CM_BITS(F, srq, 27u, 3u, 1u)								\
	CM_U64(F, local_ca_guid, 28u)								\
	CM_BYTES(F, private_data, 36u)

#define CM_RTU_FIELDS(F)									\
	CM_U32(F, local_comm_id, 0u)								\
	CM_U32(F, remote_comm_id, 4u)								\
	CM_BYTES(F, private_data, 8u)

#define CM_DREQ_FIELDS(F)									\
	CM_U32(F, local_comm_id, 0u)								\
	CM_U32(F, remote_comm_id, 4u)								\
	CM_U24(F, remote_qpn, 8u)								\
	CM_BYTES(F, private_data, 12u)

#define CM_DREP_FIELDS(F)									\
	CM_U32(F, local_comm_id, 0u)								\
	CM_U32(F, remote_comm_id, 4u)								\
	CM_BYTES(F, private_data, 8u)

#define CM_SIDR_REQ_FIELDS(F)									\
	CM_U32(F, request_id, 0u)								\
	CM_U16(F, pkey, 4u)									\
	CM_U64(F, service_id, 8u)								\
	CM_BYTES(F, private_data, 16u)

#define CM_SIDR_REP_FIELDS(F)									\
	CM_U32(F, request_id, 0u)								\
	CM_U8(F, status, 4u)									\
	CM_U8(F, info_length, 5u)								\
	CM_PIECE(F, vendor_id, 6u, 16u, 8u)							\
	CM_U24(F, qpn, 8u)									\
	CM_PIECE(F, vendor_id, 11u, 8u, 0u)							\
	CM_U64(F, service_id, 12u)								\
	CM_U32(F, qkey, 20u)									\
	CM_BYTES(F, info, 24u)									\
	CM_BYTES(F, private_data, 96u)

#define CM_LAP_FIELDS(F)									\
	CM_U32(F, local_comm_id, 0u)								\
	CM_U32(F, remote_comm_id, 4u)								\
	CM_U24(F, remote_qpn, 12u)								\
	CM_BITS(F, remote_cm_response_timeout, 15u, 0u, 5u)					\
	CM_U16(F, alternate.local_lid, 20u)							\
	CM_U16(F, alternate.remote_lid, 22u)							\
	CM_BYTES(F, alternate.local_gid, 24u)							\
	CM_BYTES(F, alternate.remote_gid, 40u)							\
	CM_BITS(F, alternate.flow_label, 56u, 0u, 20u)						\
	CM_U8(F, alternate.traffic_class, 59u)							\
	CM_U8(F, alternate.hop_limit, 60u)							\
	CM_BITS(F, alternate.packet_rate, 61u, 2u, 6u)						\
	CM_BITS(F, alternate.sl, 62u, 0u, 4u)							\
	CM_BITS(F, alternate.subnet_local, 62u, 4u, 1u)						\
	CM_BITS(F, alternate.local_ack_timeout, 63u, 0u, 5u)					\
	CM_BYTES(F, private_data, 64u)

#define CM_APR_FIELDS(F)									\
	CM_U32(F, local_comm_id, 0u)								\
	CM_U32(F, remote_comm_id, 4u)								\
	CM_U8(F, info_length, 8u)								\
	CM_U8(F, status, 9u)									\
	CM_BYTES(F, info, 12u)									\
	CM_BYTES(F, private_data, 84u)

/* Every message: X(attribute, struct and member, its list). */
#define CM_MESSAGES(X)										\
	X(REQ, req, CM_REQ_FIELDS)								\
	X(MRA, mra, CM_MRA_FIELDS)								\
	X(REJ, rej, CM_REJ_FIELDS)								\
	X(REP, rep, CM_REP_FIELDS)								\
	X(RTU, rtu, CM_RTU_FIELDS)								\
	X(DREQ, dreq, CM_DREQ_FIELDS)								\
	X(DREP, drep, CM_DREP_FIELDS)								\
	X(SIDR_REQ, sidr_req, CM_SIDR_REQ_FIELDS)						\
	X(SIDR_REP, sidr_rep, CM_SIDR_REP_FIELDS)						\
	X(LAP, lap, CM_LAP_FIELDS)								\
	X(APR, apr, CM_APR_FIELDS)

#endif
