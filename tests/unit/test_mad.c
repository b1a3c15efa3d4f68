/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CM MADs: each field is at its place and nowhere else, everything survives
 * the wire, and no input leads the decoder astray.
 *
 * The places below were taken from IBTA vol. 1, 12.6 once more, not from the
 * codec's own tables.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "providers/soft/wire/mad.h"
#include "tests/cmocka_all.h"

#define DATA_BITS (CM_MAD_DATA_SIZE * 8u)

/* Where a member's bits are: first piece (with the highest bits) first. */
struct place {
	uint16_t attr_id;
	const char *name;
	size_t offset, size;
	struct {
		unsigned int byte, bit, width;
	} piece[3];
};

#define P(attr, arm, member, ...)								\
	{ attr, #member, offsetof(struct cm_msg, arm.member),					\
	  sizeof(((struct cm_msg *)0)->arm.member), { __VA_ARGS__ } }
#define REQ(member, ...)	P(CM_REQ, req, member, { __VA_ARGS__ })
#define MRA(member, ...)	P(CM_MRA, mra, member, { __VA_ARGS__ })
#define REJ(member, ...)	P(CM_REJ, rej, member, { __VA_ARGS__ })
#define REP(member, ...)	P(CM_REP, rep, member, { __VA_ARGS__ })
#define RTU(member, ...)	P(CM_RTU, rtu, member, { __VA_ARGS__ })
#define DREQ(member, ...)	P(CM_DREQ, dreq, member, { __VA_ARGS__ })
#define DREP(member, ...)	P(CM_DREP, drep, member, { __VA_ARGS__ })
#define SREQ(member, ...)	P(CM_SIDR_REQ, sidr_req, member, { __VA_ARGS__ })
#define SREP(member, ...)	P(CM_SIDR_REP, sidr_rep, member, { __VA_ARGS__ })
#define LAP(member, ...)	P(CM_LAP, lap, member, { __VA_ARGS__ })
#define APR(member, ...)	P(CM_APR, apr, member, { __VA_ARGS__ })

static const struct place places[] = {
	REQ(local_comm_id, 0, 0, 32),
	REQ(vendor_id, 5, 0, 24),
	REQ(service_id, 8, 0, 64),
	REQ(local_ca_guid, 16, 0, 64),
	REQ(local_qkey, 28, 0, 32),
	REQ(local_qpn, 32, 0, 24),
	REQ(responder_resources, 35, 0, 8),
	REQ(local_eecn, 36, 0, 24),
	REQ(initiator_depth, 39, 0, 8),
	REQ(remote_eecn, 40, 0, 24),
	REQ(remote_cm_response_timeout, 43, 0, 5),
	REQ(transport_service_type, 43, 5, 2),
	REQ(end_to_end_flow_control, 43, 7, 1),
	REQ(starting_psn, 44, 0, 24),
	REQ(local_cm_response_timeout, 47, 0, 5),
	REQ(retry_count, 47, 5, 3),
	REQ(pkey, 48, 0, 16),
	REQ(path_mtu, 50, 0, 4),
	REQ(rdc_exists, 50, 4, 1),
	REQ(rnr_retry_count, 50, 5, 3),
	REQ(max_cm_retries, 51, 0, 4),
	REQ(srq, 51, 4, 1),
	REQ(extended_transport_type, 51, 5, 3),
	REQ(primary.local_lid, 52, 0, 16),
	REQ(primary.remote_lid, 54, 0, 16),
	REQ(primary.local_gid, 56, 0, 128),
	REQ(primary.remote_gid, 72, 0, 128),
	REQ(primary.flow_label, 88, 0, 20),
	REQ(primary.packet_rate, 91, 2, 6),
	REQ(primary.traffic_class, 92, 0, 8),
	REQ(primary.hop_limit, 93, 0, 8),
	REQ(primary.sl, 94, 0, 4),
	REQ(primary.subnet_local, 94, 4, 1),
	REQ(primary.local_ack_timeout, 95, 0, 5),
	REQ(alternate.local_lid, 96, 0, 16),
	REQ(alternate.remote_lid, 98, 0, 16),
	REQ(alternate.local_gid, 100, 0, 128),
	REQ(alternate.remote_gid, 116, 0, 128),
	REQ(alternate.flow_label, 132, 0, 20),
	REQ(alternate.packet_rate, 135, 2, 6),
	REQ(alternate.traffic_class, 136, 0, 8),
	REQ(alternate.hop_limit, 137, 0, 8),
	REQ(alternate.sl, 138, 0, 4),
	REQ(alternate.subnet_local, 138, 4, 1),
	REQ(alternate.local_ack_timeout, 139, 0, 5),
	REQ(sap_supported, 139, 5, 1),
	REQ(private_data, 140, 0, 736),

	MRA(local_comm_id, 0, 0, 32),
	MRA(remote_comm_id, 4, 0, 32),
	MRA(message_mraed, 8, 0, 2),
	MRA(service_timeout, 9, 0, 5),
	MRA(private_data, 10, 0, 1776),

	REJ(local_comm_id, 0, 0, 32),
	REJ(remote_comm_id, 4, 0, 32),
	REJ(message_rejected, 8, 0, 2),
	REJ(info_length, 9, 0, 7),
	REJ(reason, 10, 0, 16),
	REJ(ari, 12, 0, 576),
	REJ(private_data, 84, 0, 1184),

	REP(local_comm_id, 0, 0, 32),
	REP(remote_comm_id, 4, 0, 32),
	REP(local_qkey, 8, 0, 32),
	REP(local_qpn, 12, 0, 24),
	P(CM_REP, rep, vendor_id, { 15, 0, 8 }, { 19, 0, 8 }, { 23, 0, 8 }),
	REP(local_eecn, 16, 0, 24),
	REP(starting_psn, 20, 0, 24),
	REP(responder_resources, 24, 0, 8),
	REP(initiator_depth, 25, 0, 8),
	REP(target_ack_delay, 26, 0, 5),
	REP(failover_accepted, 26, 5, 2),
	REP(end_to_end_flow_control, 26, 7, 1),
	REP(rnr_retry_count, 27, 0, 3),
	REP(srq, 27, 3, 1),
	REP(local_ca_guid, 28, 0, 64),
	REP(private_data, 36, 0, 1568),

	RTU(local_comm_id, 0, 0, 32),
	RTU(remote_comm_id, 4, 0, 32),
	RTU(private_data, 8, 0, 1792),

	DREQ(local_comm_id, 0, 0, 32),
	DREQ(remote_comm_id, 4, 0, 32),
	DREQ(remote_qpn, 8, 0, 24),
	DREQ(private_data, 12, 0, 1760),

	DREP(local_comm_id, 0, 0, 32),
	DREP(remote_comm_id, 4, 0, 32),
	DREP(private_data, 8, 0, 1792),

	SREQ(request_id, 0, 0, 32),
	SREQ(pkey, 4, 0, 16),
	SREQ(service_id, 8, 0, 64),
	SREQ(private_data, 16, 0, 1728),

	SREP(request_id, 0, 0, 32),
	SREP(status, 4, 0, 8),
	SREP(info_length, 5, 0, 8),
	P(CM_SIDR_REP, sidr_rep, vendor_id, { 6, 0, 16 }, { 11, 0, 8 }),
	SREP(qpn, 8, 0, 24),
	SREP(service_id, 12, 0, 64),
	SREP(qkey, 20, 0, 32),
	SREP(info, 24, 0, 576),
	SREP(private_data, 96, 0, 1088),

	LAP(local_comm_id, 0, 0, 32),
	LAP(remote_comm_id, 4, 0, 32),
	LAP(remote_qpn, 12, 0, 24),
	LAP(remote_cm_response_timeout, 15, 0, 5),
	LAP(alternate.local_lid, 20, 0, 16),
	LAP(alternate.remote_lid, 22, 0, 16),
	LAP(alternate.local_gid, 24, 0, 128),
	LAP(alternate.remote_gid, 40, 0, 128),
	LAP(alternate.flow_label, 56, 0, 20),
	LAP(alternate.traffic_class, 59, 0, 8),
	LAP(alternate.hop_limit, 60, 0, 8),
	LAP(alternate.packet_rate, 61, 2, 6),
	LAP(alternate.sl, 62, 0, 4),
	LAP(alternate.subnet_local, 62, 4, 1),
	LAP(alternate.local_ack_timeout, 63, 0, 5),
	LAP(private_data, 64, 0, 1344),

	APR(local_comm_id, 0, 0, 32),
	APR(remote_comm_id, 4, 0, 32),
	APR(info_length, 8, 0, 8),
	APR(status, 9, 0, 8),
	APR(info, 12, 0, 576),
	APR(private_data, 84, 0, 1184),
};

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static unsigned int width(const struct place *place)
{
	return place->piece[0].width + place->piece[1].width + place->piece[2].width;
}

/* Write the low bits of value to an integer member, as the machine stores it. */
static void set_integer(struct cm_msg *msg, const struct place *place, uint64_t value)
{
	uint8_t *member = (uint8_t *)msg + place->offset;
	uint8_t u8 = (uint8_t)value;
	uint16_t u16 = (uint16_t)value;
	uint32_t u32 = (uint32_t)value;

	switch (place->size) {
	case 1:
		memcpy(member, &u8, 1);
		break;
	case 2:
		memcpy(member, &u16, 2);
		break;
	case 4:
		memcpy(member, &u32, 4);
		break;
	default:
		assert_uint_equal(place->size, 8);
		memcpy(member, &value, 8);
		break;
	}
}

static bool is_array(const struct place *place)
{
	return width(place) > 64;
}

/* All bits that the field can carry. */
static void set_all_ones(struct cm_msg *msg, const struct place *place)
{
	if (is_array(place))
		memset((uint8_t *)msg + place->offset, 0xff, place->size);
	else
		set_integer(msg, place, UINT64_MAX >> (64 - width(place)));
}

static bool bit_is_set(const uint8_t *data, unsigned int bit)
{
	return data[bit / 8] & 0x80u >> bit % 8;
}

static bool belongs_to(const struct place *place, unsigned int bit)
{
	for (size_t i = 0; i < ARRAY_SIZE(place->piece); i++) {
		unsigned int first = place->piece[i].byte * 8 + place->piece[i].bit;

		if (bit >= first && bit < first + place->piece[i].width)
			return true;
	}
	return false;
}

static void check_bits(const struct place *place, const uint8_t *mad)
{
	for (unsigned int bit = 0; bit < DATA_BITS; bit++) {
		bool want = belongs_to(place, bit);

		if (bit_is_set(mad + CM_MAD_HEADER_SIZE, bit) == want)
			continue;
		fail_msg("%s.%s: bit %u.%u is %d", cm_msg_name(place->attr_id), place->name,
			 bit / 8, bit % 8, !want);
	}
}

/* A length is lowered to what the array has. */
static bool is_clamped(const struct place *place)
{
	return strcmp(place->name, "info_length") == 0;
}

static void each_field_has_its_bits(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		const struct place *place = &places[i];
		struct cm_msg msg, decoded;
		uint8_t mad[CM_MAD_SIZE], header[CM_MAD_SIZE];

		memset(&msg, 0, sizeof(msg));
		msg.attr_id = place->attr_id;
		cm_encode(&msg, header);
		set_all_ones(&msg, place);
		cm_encode(&msg, mad);
		check_bits(place, mad);
		assert_memory_equal(mad, header, CM_MAD_HEADER_SIZE);

		if (is_clamped(place))
			set_integer(&msg, place, 72);
		assert_int_equal(cm_decode(mad, sizeof(mad), &decoded), 0);
		assert_memory_equal(&decoded, &msg, sizeof(msg));
	}
}

/* Bits that the field does not have stay off the wire. */
static void values_too_large_are_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		const struct place *place = &places[i];
		struct cm_msg msg;
		uint8_t mad[CM_MAD_SIZE];

		if (is_array(place) || width(place) == 1)
			continue;
		memset(&msg, 0, sizeof(msg));
		msg.attr_id = place->attr_id;
		set_integer(&msg, place, UINT64_MAX);
		cm_encode(&msg, mad);
		check_bits(place, mad);
	}
}

static void make_random(struct cm_msg *msg, uint16_t attr_id, uint64_t *seed)
{
	memset(msg, 0, sizeof(*msg));
	msg->attr_id = attr_id;
	msg->attr_mod = (uint32_t)next_random(seed);
	msg->tid = next_random(seed);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		const struct place *place = &places[i];
		uint64_t value;

		if (place->attr_id != attr_id)
			continue;
		if (is_array(place)) {
			for (size_t k = 0; k < place->size; k++)
				((uint8_t *)msg)[place->offset + k] = (uint8_t)next_random(seed);
			continue;
		}
		value = next_random(seed) >> (64 - width(place));
		set_integer(msg, place, is_clamped(place) ? value % 73 : value);
	}
}

static void random_messages_survive(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15;

	(void)state;
	for (unsigned int round = 0; round < 11 * 500; round++) {
		struct cm_msg msg, decoded;
		uint8_t mad[CM_MAD_SIZE];

		make_random(&msg, (uint16_t)(CM_REQ + round % 11), &seed);
		memset(&decoded, 0xa5, sizeof(decoded));
		cm_encode(&msg, mad);
		assert_int_equal(cm_decode(mad, sizeof(mad), &decoded), 0);
		assert_memory_equal(&decoded, &msg, sizeof(msg));
	}
}

/* Reserved bits and wild lengths in what a peer sends: what was decoded once is stable. */
static void random_bytes_decode(void **state)
{
	uint64_t seed = 0x2545f4914f6cdd1d;

	(void)state;
	for (unsigned int round = 0; round < 11 * 500; round++) {
		struct cm_msg first, second;
		uint8_t mad[CM_MAD_SIZE], again[CM_MAD_SIZE];

		memset(&first, 0, sizeof(first));
		first.attr_id = (uint16_t)(CM_REQ + round % 11);
		cm_encode(&first, mad);
		for (size_t i = CM_MAD_HEADER_SIZE; i < sizeof(mad); i++)
			mad[i] = (uint8_t)next_random(&seed);
		assert_int_equal(cm_decode(mad, sizeof(mad), &first), 0);
		if (first.attr_id == CM_REJ)
			assert_in_range(first.rej.info_length, 0, CM_REJ_ARI_SIZE);
		if (first.attr_id == CM_SIDR_REP)
			assert_in_range(first.sidr_rep.info_length, 0, CM_SIDR_REP_INFO_SIZE);
		if (first.attr_id == CM_APR)
			assert_in_range(first.apr.info_length, 0, CM_APR_INFO_SIZE);
		cm_encode(&first, again);
		assert_int_equal(cm_decode(again, sizeof(again), &second), 0);
		assert_memory_equal(&first, &second, sizeof(first));
	}
}

/* In a block of exactly that size, so that a sanitizer sees a byte too many. */
static void wrong_lengths_are_refused(void **state)
{
	struct cm_msg msg = { .attr_id = CM_REQ }, untouched, decoded;
	uint8_t mad[2 * CM_MAD_SIZE] = { 0 };

	(void)state;
	cm_encode(&msg, mad);
	memset(&untouched, 0x5a, sizeof(untouched));
	for (size_t len = 0; len <= sizeof(mad); len++) {
		uint8_t *block = malloc(len ? len : 1);

		assert_non_null(block);
		memcpy(block, mad, len);
		decoded = untouched;
		assert_int_equal(cm_decode(len ? block : NULL, len, &decoded),
				 len == CM_MAD_SIZE ? 0 : -EBADMSG);
		if (len != CM_MAD_SIZE)
			assert_memory_equal(&decoded, &untouched, sizeof(decoded));
		free(block);
	}
}

/* What the decoder makes of a MAD of which only the header is interesting. */
static int header_verdict(const uint8_t *mad)
{
	unsigned int attr_id = (unsigned int)mad[16] << 8 | mad[17];

	if (mad[0] != 1 || mad[1] != 0x07 || mad[2] != 2 || mad[3] != 0x03)
		return -EBADMSG;
	return attr_id >= 0x0010 && attr_id <= 0x001a ? 0 : -EBADMSG;
}

static void corrupt_headers(void **state)
{
	(void)state;
	for (uint16_t attr_id = CM_REQ; attr_id <= CM_APR; attr_id++) {
		struct cm_msg msg = { .attr_id = attr_id }, decoded;
		uint8_t mad[CM_MAD_SIZE];

		cm_encode(&msg, mad);
		for (unsigned int i = 0; i < CM_MAD_HEADER_SIZE * 255; i++) {
			uint8_t *byte = &mad[i / 255], was = *byte;

			*byte ^= (uint8_t)(1 + i % 255);
			memset(&decoded, 0, sizeof(decoded));
			assert_int_equal(cm_decode(mad, sizeof(mad), &decoded),
					 header_verdict(mad));
			if (header_verdict(mad) == 0)
				assert_uint_equal(decoded.attr_id, mad[17]);
			*byte = was;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_has_its_bits),
		cmocka_unit_test(values_too_large_are_cut),
		cmocka_unit_test(random_messages_survive),
		cmocka_unit_test(random_bytes_decode),
		cmocka_unit_test(wrong_lengths_are_refused),
		cmocka_unit_test(corrupt_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
