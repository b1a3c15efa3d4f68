/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CM MADs, the CMA header and service ids: known values are known bytes, which
 * were put together by hand.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "providers/soft/wire/mad.h"
#include "tests/cmocka_all.h"

/* Bytes of a MAD from an offset on; the rest is zero. */
struct chunk {
	size_t offset;
	const char *hex;
};

#define D CM_MAD_HEADER_SIZE	/* where the CM data begins */

static size_t put_hex(uint8_t *buf, size_t size, const char *hex)
{
	size_t len = 0;
	char digits[3] = "";

	for (; *hex; hex += 2) {
		while (*hex == ' ')
			hex++;
		assert_in_range(len, 0, size - 1);
		memcpy(digits, hex, 2);
		buf[len++] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return len;
}

static void check_mad(const struct cm_msg *msg, const struct chunk *chunks, size_t num_chunks)
{
	uint8_t want[CM_MAD_SIZE] = { 0 }, mad[CM_MAD_SIZE];
	struct cm_msg decoded;

	for (size_t i = 0; i < num_chunks; i++)
		put_hex(want + chunks[i].offset, sizeof(want) - chunks[i].offset, chunks[i].hex);
	memset(mad, 0xee, sizeof(mad));
	cm_encode(msg, mad);
	assert_memory_equal(mad, want, sizeof(want));
	assert_int_equal(cm_decode(want, sizeof(want), &decoded), 0);
	assert_memory_equal(&decoded, msg, sizeof(*msg));
}

static void fill_path(struct cm_path *path)
{
	put_hex(path->local_gid.raw, 16, "fe80 0000 0000 0000 0202 c9ff fe01 0203");
	put_hex(path->remote_gid.raw, 16, "0000 0000 0000 0000 0000 ffff c0a8 0102");
}

static void req_bytes(void **state)
{
	static const struct chunk chunks[] = {
		{ 0, "01 07 02 03 0000 0000 1122334455667788 0010 0000 a1a2a3a4" },
		{ D + 0, "c0ffee01 00 0a0b0c 0000000001061d2f 0002c90300001234" },
		{ D + 24, "00000000 51525354" },
		/* QPN, responder resources; EECN, initiator depth */
		{ D + 32, "000123 10 456789 07" },
		/* remote EECN; 10100 11 1 */
		{ D + 40, "abcdef a7" },
		/* PSN; 10010 101 */
		{ D + 44, "9a8b7c 95" },
		/* P_Key; 0011 0 110; 1111 1 001 */
		{ D + 48, "8001 36 f9" },
		{ D + 52, "0005 0009 fe80000000000000 0202c9fffe010203" },
		{ D + 72, "00000000000000000000ffff c0a80102" },
		/* flow label, 4 bits nothing, 2 nothing and rate; 0101 1 000; 10001 000 */
		{ D + 88, "abcde0 03 60 40 58 88" },
		{ D + 96, "ffff fffe fe80000000000000 0202c9fffe010203" },
		{ D + 116, "00000000000000000000ffff c0a80102" },
		/* 1111 0 000; 11111 1 00 */
		{ D + 132, "123450 3f 01 02 f0 fc" },
		{ D + 140, "7072697661746500 00" },
		{ D + 231, "21" },
	};
	struct cm_msg msg;

	(void)state;
	memset(&msg, 0, sizeof(msg));
	msg.attr_id = CM_REQ;
	msg.attr_mod = 0xa1a2a3a4;
	msg.tid = 0x1122334455667788;
	msg.req.local_comm_id = 0xc0ffee01;
	msg.req.vendor_id = 0x0a0b0c;
	msg.req.service_id = cm_service_id(RDMA_PS_TCP, 7471);
	msg.req.local_ca_guid = 0x0002c90300001234;
	msg.req.local_qkey = 0x51525354;
	msg.req.local_qpn = 0x123;
	msg.req.responder_resources = 16;
	msg.req.local_eecn = 0x456789;
	msg.req.initiator_depth = 7;
	msg.req.remote_eecn = 0xabcdef;
	msg.req.remote_cm_response_timeout = 20;
	msg.req.transport_service_type = CM_TRANSPORT_EXTENDED;
	msg.req.end_to_end_flow_control = true;
	msg.req.starting_psn = 0x9a8b7c;
	msg.req.local_cm_response_timeout = 18;
	msg.req.retry_count = 5;
	msg.req.pkey = 0x8001;
	msg.req.path_mtu = IBV_MTU_1024;
	msg.req.rnr_retry_count = 6;
	msg.req.max_cm_retries = 15;
	msg.req.srq = true;
	msg.req.extended_transport_type = CM_EXTENDED_TRANSPORT_XRC;
	fill_path(&msg.req.primary);
	msg.req.primary.local_lid = 5;
	msg.req.primary.remote_lid = 9;
	msg.req.primary.flow_label = 0xabcde;
	msg.req.primary.packet_rate = 3;
	msg.req.primary.traffic_class = 0x60;
	msg.req.primary.hop_limit = 64;
	msg.req.primary.sl = 5;
	msg.req.primary.subnet_local = true;
	msg.req.primary.local_ack_timeout = 17;
	fill_path(&msg.req.alternate);
	msg.req.alternate.local_lid = 0xffff;
	msg.req.alternate.remote_lid = 0xfffe;
	msg.req.alternate.flow_label = 0x12345;
	msg.req.alternate.packet_rate = 63;
	msg.req.alternate.traffic_class = 1;
	msg.req.alternate.hop_limit = 2;
	msg.req.alternate.sl = 15;
	msg.req.alternate.local_ack_timeout = 31;
	msg.req.sap_supported = true;
	memcpy(msg.req.private_data, "private", 7);
	msg.req.private_data[CM_REQ_PRIVATE_SIZE - 1] = '!';
	check_mad(&msg, chunks, ARRAY_SIZE(chunks));
}

static void rep_bytes(void **state)
{
	static const struct chunk chunks[] = {
		{ 0, "01 07 02 03 0000 0000 00000007c0ffee01 0013 0000 00000001" },
		{ D + 0, "00000042 c0ffee01 01234567" },
		/* QPN, EECN and PSN, each with a piece of the vendor id 0x0002c9 */
		{ D + 12, "fedcba 00 112233 02 445566 c9" },
		/* 01111 10 1; 101 1 0000 */
		{ D + 24, "04 08 7d b0" },
		{ D + 28, "e41d2d0300112233 524550" },
		{ D + 231, "7e" },
	};
	struct cm_msg msg;

	(void)state;
	memset(&msg, 0, sizeof(msg));
	msg.attr_id = CM_REP;
	msg.attr_mod = 1;
	msg.tid = 0x7c0ffee01;
	msg.rep.local_comm_id = 0x42;
	msg.rep.remote_comm_id = 0xc0ffee01;
	msg.rep.local_qkey = 0x01234567;
	msg.rep.local_qpn = 0xfedcba;
	msg.rep.local_eecn = 0x112233;
	msg.rep.starting_psn = 0x445566;
	msg.rep.vendor_id = 0x0002c9;
	msg.rep.responder_resources = 4;
	msg.rep.initiator_depth = 8;
	msg.rep.target_ack_delay = 15;
	msg.rep.failover_accepted = 2;
	msg.rep.end_to_end_flow_control = true;
	msg.rep.rnr_retry_count = 5;
	msg.rep.srq = true;
	msg.rep.local_ca_guid = 0xe41d2d0300112233;
	memcpy(msg.rep.private_data, "REP", 3);
	msg.rep.private_data[CM_REP_PRIVATE_SIZE - 1] = '~';
	check_mad(&msg, chunks, ARRAY_SIZE(chunks));
}

static void rej_bytes(void **state)
{
	static const struct chunk chunks[] = {
		{ 0, "01 07 02 03 0000 0000 0000000000000001 0012 0000 00000000" },
		/* 01 000000; 0001000 0; reason */
		{ D + 0, "00000000 89abcdef 40 10 001c" },
		{ D + 12, "0002c90300001234" },
		{ D + 83, "99 4e4f" },
		{ D + 231, "01" },
	};
	struct cm_msg msg;

	(void)state;
	memset(&msg, 0, sizeof(msg));
	msg.attr_id = CM_REJ;
	msg.tid = 1;
	msg.rej.remote_comm_id = 0x89abcdef;
	msg.rej.message_rejected = CM_WHICH_REP;
	msg.rej.info_length = 8;
	msg.rej.reason = CM_REJ_CONSUMER_DEFINED;
	put_hex(msg.rej.ari, CM_REJ_ARI_SIZE, "0002c90300001234");
	msg.rej.ari[CM_REJ_ARI_SIZE - 1] = 0x99;
	memcpy(msg.rej.private_data, "NO", 2);
	msg.rej.private_data[CM_REJ_PRIVATE_SIZE - 1] = 1;
	check_mad(&msg, chunks, ARRAY_SIZE(chunks));
}

static void sidr_rep_bytes(void **state)
{
	static const struct chunk chunks[] = {
		{ 0, "01 07 02 03 0000 0000 8000000000000000 0018 0000 deadbeef" },
		/* status, info length, high and (after the QPN) low piece of the vendor id */
		{ D + 0, "13579bdf 02 48 0a0b 00beef 0c" },
		{ D + 12, "0000000001111d2f 01234567 31" },
		{ D + 95, "39 5a" },
		{ D + 231, "7a" },
	};
	struct cm_msg msg;

	(void)state;
	memset(&msg, 0, sizeof(msg));
	msg.attr_id = CM_SIDR_REP;
	msg.attr_mod = 0xdeadbeef;
	msg.tid = 0x8000000000000000;
	msg.sidr_rep.request_id = 0x13579bdf;
	msg.sidr_rep.status = CM_SIDR_REJECT;
	msg.sidr_rep.info_length = CM_SIDR_REP_INFO_SIZE;
	msg.sidr_rep.vendor_id = 0x0a0b0c;
	msg.sidr_rep.qpn = 0xbeef;
	msg.sidr_rep.service_id = cm_service_id(RDMA_PS_UDP, 7471);
	msg.sidr_rep.qkey = 0x01234567;
	msg.sidr_rep.info[0] = 0x31;
	msg.sidr_rep.info[CM_SIDR_REP_INFO_SIZE - 1] = 0x39;
	msg.sidr_rep.private_data[0] = 'Z';
	msg.sidr_rep.private_data[CM_SIDR_REP_PRIVATE_SIZE - 1] = 'z';
	check_mad(&msg, chunks, ARRAY_SIZE(chunks));
}

static void small_messages_bytes(void **state)
{
	static const struct chunk mra[] = {
		{ 0, "01070203 00000000 0000000000000009 0011 0000 00000000" },
		{ D + 0, "00000001 00000002 80 c0 4d" },	/* 10 000000; 11000 000 */
	};
	static const struct chunk dreq[] = {
		{ 0, "01070203 00000000 0000000000000009 0015 0000 00000000" },
		{ D + 0, "00000001 00000002 00abcd 00 44" },
	};
	static const struct chunk sidr_req[] = {
		{ 0, "01070203 00000000 0000000000000009 0017 0000 00000000" },
		{ D + 0, "00000001 ffff 0000 000000000002 1234 53" },
	};
	struct cm_msg msg;

	(void)state;
	memset(&msg, 0, sizeof(msg));
	msg.tid = 9;
	msg.attr_id = CM_MRA;
	msg.mra.local_comm_id = 1;
	msg.mra.remote_comm_id = 2;
	msg.mra.message_mraed = CM_WHICH_OTHER;
	msg.mra.service_timeout = 24;
	msg.mra.private_data[0] = 'M';
	check_mad(&msg, mra, ARRAY_SIZE(mra));

	memset(&msg.mra, 0, sizeof(msg.mra));
	msg.attr_id = CM_DREQ;
	msg.dreq.local_comm_id = 1;
	msg.dreq.remote_comm_id = 2;
	msg.dreq.remote_qpn = 0xabcd;
	msg.dreq.private_data[0] = 'D';
	check_mad(&msg, dreq, ARRAY_SIZE(dreq));

	memset(&msg.dreq, 0, sizeof(msg.dreq));
	msg.attr_id = CM_SIDR_REQ;
	msg.sidr_req.request_id = 1;
	msg.sidr_req.pkey = 0xffff;
	msg.sidr_req.service_id = cm_service_id(RDMA_PS_IPOIB, 0x1234);
	msg.sidr_req.private_data[0] = 'S';
	check_mad(&msg, sidr_req, ARRAY_SIZE(sidr_req));
}

static void names(void **state)
{
	static const char *const want[] = {
		"?", "REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP",
		"SIDR_REQ", "SIDR_REP", "LAP", "APR", "?",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		assert_string_equal(cm_msg_name((uint16_t)(CM_REQ - 1 + i)), want[i]);
	assert_string_equal(cm_msg_name(0), "?");
	assert_string_equal(cm_msg_name(0xffff), "?");
}

static void service_ids(void **state)
{
	(void)state;
	assert_true(cm_service_id(RDMA_PS_TCP, 7471) == 0x0000000001061d2f);
	assert_true(cm_service_id(RDMA_PS_UDP, 65535) == 0x000000000111ffff);
	assert_true(cm_service_id(RDMA_PS_IPOIB, 0) == 0x0000000000020000);
	assert_true(cm_service_id(RDMA_PS_IB, 1) == 0x00000000013f0001);
	assert_uint_equal(cm_service_id_port(0x01061d2f), 7471);
	assert_uint_equal(cm_service_id_port_space(0x01061d2f), RDMA_PS_TCP);
	assert_uint_equal(cm_service_id_port_space(0x013fffff), RDMA_PS_IB);
	assert_uint_equal(cm_service_id_port_space(0x0000000101061d2f), 0);
	assert_uint_equal(cm_service_id_port_space(0x8000000001061d2f), 0);
}

static const struct {
	uint8_t ip_version;
	const char *src, *dst;
	uint16_t port;
	const char *hex;
} hdr_cases[] = {
	{
		4, "10.1.2.3", "192.168.0.254", 0xabcd,
		"00 40 abcd 000000000000000000000000 0a010203 000000000000000000000000 c0a800fe",
	},
	{
		6, "fe80::1:2", "2001:db8::ffff", 1,
		"00 60 0001 fe800000000000000000000000010002 20010db800000000000000000000ffff",
	},
};

static void fill_sockaddr(union sim_sockaddr *addr, uint8_t ip_version, const char *text,
			  uint16_t port)
{
	memset(addr, 0, sizeof(*addr));
	if (ip_version == 4) {
		addr->in.sin_family = AF_INET;
		addr->in.sin_port = htons(port);
		assert_int_equal(inet_pton(AF_INET, text, &addr->in.sin_addr), 1);
	} else {
		addr->in6.sin6_family = AF_INET6;
		addr->in6.sin6_port = htons(port);
		assert_int_equal(inet_pton(AF_INET6, text, &addr->in6.sin6_addr), 1);
	}
}

static void cma_headers(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hdr_cases); i++) {
		uint8_t want[CMA_HDR_SIZE], hdr[CMA_HDR_SIZE];
		struct cma_hdr_info info, decoded;

		memset(&info, 0, sizeof(info));
		info.ip_version = hdr_cases[i].ip_version;
		fill_sockaddr(&info.src, info.ip_version, hdr_cases[i].src, hdr_cases[i].port);
		fill_sockaddr(&info.dst, info.ip_version, hdr_cases[i].dst, 7471);
		assert_uint_equal(put_hex(want, sizeof(want), hdr_cases[i].hex), CMA_HDR_SIZE);
		memset(hdr, 0xee, sizeof(hdr));
		cma_hdr_encode(&info, hdr);
		assert_memory_equal(hdr, want, sizeof(want));

		memset(&decoded, 0xee, sizeof(decoded));
		assert_int_equal(cma_hdr_decode(want, sizeof(want), &decoded), 0);
		fill_sockaddr(&info.dst, info.ip_version, hdr_cases[i].dst, 0);
		assert_memory_equal(&decoded, &info, sizeof(info));
	}
}

static void bad_cma_headers(void **state)
{
	uint8_t hdr[CMA_HDR_SIZE] = { 0 };
	struct cma_hdr_info info, untouched;

	(void)state;
	memset(&untouched, 0x5a, sizeof(untouched));
	info = untouched;
	for (size_t len = 0; len < CMA_HDR_SIZE; len++) {
		uint8_t *block = calloc(1, len ? len : 1);

		assert_non_null(block);
		if (len > 1)
			block[1] = 0x40;
		assert_int_equal(cma_hdr_decode(len ? block : NULL, len, &info), -EBADMSG);
		free(block);
	}
	for (unsigned int i = 0; i < 0x10000; i++) {
		unsigned int ip_version = i >> 4 & 0xf;
		bool good = i >> 8 == 0 && (ip_version == 4 || ip_version == 6);

		hdr[0] = (uint8_t)(i >> 8);
		hdr[1] = (uint8_t)i;
		info = untouched;
		assert_int_equal(cma_hdr_decode(hdr, sizeof(hdr), &info), good ? 0 : -EBADMSG);
		if (good)
			assert_uint_equal(info.ip_version, ip_version);
		else
			assert_memory_equal(&info, &untouched, sizeof(info));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(req_bytes),
		cmocka_unit_test(rep_bytes),
		cmocka_unit_test(rej_bytes),
		cmocka_unit_test(sidr_rep_bytes),
		cmocka_unit_test(small_messages_bytes),
		cmocka_unit_test(names),
		cmocka_unit_test(service_ids),
		cmocka_unit_test(cma_headers),
		cmocka_unit_test(bad_cma_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
