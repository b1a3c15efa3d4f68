/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transport rules from plugins: which are refused, what is filled in, and what
 * they look like as text.
 */
#include <errno.h>
#include <infiniband/ib.h>
#include <stdio.h>
#include <string.h>

#include "tests/cmocka_all.h"

#include "core/plugin/plugin_internal.h"
#include "core/plugin/transport.h"

static uint8_t own_ack_timeout(uint8_t ack_delay, uint8_t packet_lifetime)
{
	return (uint8_t)(ack_delay + packet_lifetime);
}

static const struct polycm_transport good = {
	.size = sizeof(good),
	.shape = POLYCM_RULES_SHAPE,
	.name = "wire",
	.protocol = POLYCM_PROTO_IB_CM,
	.services = POLYCM_SVC_UD | POLYCM_SVC_RNR | POLYCM_SVC_ESTABLISH,
	.limit = { [POLYCM_KIND_RC] = { 56, 196, 148 }, [POLYCM_KIND_UD] = { 180, 136, 136 } },
	.reported = { [POLYCM_KIND_RC] = { 56, 196, 148 } },
	.capacity = { [POLYCM_KIND_RC] = { 92, 196, 148 }, [POLYCM_KIND_UD] = { 216, 136, 136 } },
	.cm_header_len = 36,
	.max_retry_count = 7,
	.max_rnr_retry_count = 7,
	.consumer_reject_status = 28,
	.refused_status = 8,
	.cm_response_timeout = 20,
	.max_cm_retries = 15,
	.mra_service_timeout = 24,
	.packet_lifetime = 16,
	.local_ca_ack_delay = 15,
	.max_responder_resources = 128,
	.max_initiator_depth = 64,
	.ack_timeout = own_ack_timeout,
};

/* One member each that cannot be. */
static void spoil(struct polycm_transport *t, int how)
{
	switch (how) {
	case 0: t->size = 64; break;
	case 1: t->name = NULL; break;
	case 2: t->name = "Wire"; break;
	case 3: t->name = "a-name-of-more-than-31-characters"; break;
	case 4: t->name = ""; break;
	case 5: t->protocol = (enum polycm_protocol)3; break;
	case 6: t->reject_domain = (enum polycm_reject_domain)2; break;
	case 7: t->cm_response_timeout = 32; break;
	case 8: t->max_cm_retries = 16; break;
	case 9: t->packet_lifetime = 32; break;
	case 10: t->min_rnr_timer = 32; break;
	case 11: t->max_retry_count = 8; break;
	case 12: t->limit[POLYCM_KIND_RC][POLYCM_MSG_CONNECT] = 57; break;
	case 13: t->limit[POLYCM_KIND_RC][POLYCM_MSG_ACCEPT] = 197; break;
	case 14: t->capacity[POLYCM_KIND_RC][POLYCM_MSG_REJECT] = 149; break;
	case 15: t->reported[POLYCM_KIND_RC][POLYCM_MSG_ACCEPT] = 195; break;
	case 16: t->reported[POLYCM_KIND_UD][POLYCM_MSG_ACCEPT] = 256; break;
	case 17: t->limit[POLYCM_KIND_RC_AF_IB][POLYCM_MSG_CONNECT] = 1; break;
	case 18: t->services = POLYCM_SVC_ESTABLISH; break;	/* but limits for UD */
	case 19: t->protocol = POLYCM_PROTO_MPA; break;	/* but no revision */
	case 20:
		t->protocol = POLYCM_PROTO_MPA;
		t->mpa_revision = 2;
		t->capacity[POLYCM_KIND_RC][POLYCM_MSG_CONNECT] = 513;
		break;
	case 21: t->cm_header_len = 37; break;
	case 22: t->size = 4; break;
	case 23: t->shape = 0; break;
	case 24: t->flags = 1u << 6; break;
	case 25: t->services &= ~POLYCM_SVC_ESTABLISH; break;
	default: fail();
	}
}

static const char *const reasons[] = {
	"its struct of transport rules has 64 bytes",
	"its transport has no name",
	"the name of its transport is not valid",
	"the name of its transport is not valid",
	"the name of its transport is not valid",
	"transport wire: unknown protocol 3",
	"transport wire: unknown numbers of rejects 2",
	"transport wire: CM timers do not fit their fields",
	"transport wire: CM timers do not fit their fields",
	"transport wire: CM timers do not fit their fields",
	"transport wire: QP timers or retries do not fit their fields",
	"transport wire: QP timers or retries do not fit their fields",
	"kind 0, message 0: limit 57, reported 56, capacity 92 cannot be",
	"kind 0, message 1: limit 197, reported 196, capacity 196 cannot be",
	"kind 0, message 2: limit 148, reported 148, capacity 149 cannot be",
	"kind 0, message 1: limit 196, reported 195, capacity 196 cannot be",
	"kind 1, message 1: limit 136, reported 256, capacity 136 cannot be",
	"transport wire: limit for a kind that it does not serve",
	"transport wire: limit for a kind that it does not serve",
	"transport wire: unknown MPA revision 0",
	"kind 0, message 0: limit 56, reported 56, capacity 513 cannot be",
	"kind 0, message 0: limit 56, reported 56, capacity 92 cannot be",
	"its struct of transport rules has 4 bytes",
	"its struct of transport rules is of another shape, 0x0 in place of 0x804",
	"transport wire: its flag 1 << 6 is not known",
	"nobody moves the QP of rdma_connect to RTS",
};

static void rules_that_cannot_be_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		struct polycm_transport theirs = good, ours;
		char why[PROVIDER_WHY_SIZE] = "";

		spoil(&theirs, (int)i);
		assert_int_equal(polycm_transport_copy(&ours, &theirs, POLYCM_ABI_MINOR,
					 why), -EINVAL);
		if (!strstr(why, reasons[i]))
			fail_msg("case %zu: not \"%s\": %s", i, reasons[i], why);
	}
}

static void empty_slots_are_filled(void **state)
{
	struct polycm_transport theirs = good, ours;
	char why[PROVIDER_WHY_SIZE];

	(void)state;
	assert_int_equal(polycm_transport_copy(&ours, &good, POLYCM_ABI_MINOR,
				 why), 0);
	assert_string_equal(ours.name, "wire");
	assert_string_equal(ours.description, "");
	assert_int_equal(ours.ack_timeout(1, 2), 3);
	assert_int_equal(ours.path_mtu(9000), 4096);
	assert_int_equal(ours.path_mtu(4095), 2048);
	assert_int_equal(ours.path_mtu(256), 256);
	assert_int_equal(ours.path_mtu(255), 0);
	assert_null(ours.status_str(RDMA_CM_EVENT_REJECTED, 8));
	assert_int_equal(ours.limit[POLYCM_KIND_UD][POLYCM_MSG_CONNECT], 180);
	assert_int_equal(ours.limit[POLYCM_KIND_UD_AF_IB][POLYCM_MSG_CONNECT], 0);

	/* Of a newer header: services and kinds that we do not know stay theirs. */
	theirs.services |= POLYCM_SERVICES + 1u;
	theirs.limit[POLYCM_KINDS][POLYCM_MSG_CONNECT] = 10;
	theirs.size = sizeof(theirs) + 8;
	assert_int_equal(polycm_transport_copy(&ours, &theirs, POLYCM_ABI_MINOR + 1,
				 why), 0);
	assert_int_equal(ours.size, sizeof(ours));
	assert_int_equal(ours.services, good.services);
}

static int note(void *arg, const char *rule, const char *value)
{
	char *text = arg;

	sprintf(text + strlen(text), "%s = %s\n", rule, value);
	return !strcmp(value, "stop");
}

/* A protocol of the provider's own: no timers of the others, and messages of any length. */
static void a_protocol_may_be_another(void **state)
{
	struct polycm_transport ours, theirs = {
		.size = sizeof(theirs),
		.shape = POLYCM_RULES_SHAPE,
		.name = "own",
		.protocol = POLYCM_PROTO_OTHER,
		.services = POLYCM_SVC_ESTABLISH,
		.limit = { [POLYCM_KIND_RC] = { 255, 200, 1 } },
		.capacity = { [POLYCM_KIND_RC] = { 4096, 200, 1 } },
	};
	char why[PROVIDER_WHY_SIZE] = "", text[2048] = "";

	(void)state;
	assert_int_equal(polycm_transport_copy(&ours, &theirs, POLYCM_ABI_MINOR,
				 why), 0);
	assert_int_equal(polycm_transport_walk(&ours, note, text), 0);
	assert_non_null(strstr(text, "protocol = the provider's own\n"));
	assert_null(strstr(text, "MPA"));
	assert_null(strstr(text, "CM r"));

	theirs.limit[POLYCM_KIND_RC][POLYCM_MSG_CONNECT] = 256;
	assert_int_equal(polycm_transport_copy(&ours, &theirs, POLYCM_ABI_MINOR,
				 why), -EINVAL);
	assert_non_null(strstr(why, "limit 256"));
}

static void the_kind_follows_from_the_id(void **state)
{
	static const struct {
		enum rdma_port_space ps;
		enum ibv_qp_type qp_type;
		sa_family_t family;
		enum polycm_kind kind;
	} tests[] = {
		{ RDMA_PS_TCP, IBV_QPT_RC, AF_INET, POLYCM_KIND_RC },
		{ RDMA_PS_TCP, IBV_QPT_RC, AF_INET6, POLYCM_KIND_RC },
		{ RDMA_PS_UDP, IBV_QPT_UD, AF_INET, POLYCM_KIND_UD },
		{ RDMA_PS_IPOIB, IBV_QPT_UD, AF_INET6, POLYCM_KIND_UD },
		{ RDMA_PS_IB, IBV_QPT_RC, AF_INET, POLYCM_KIND_RC },
		{ RDMA_PS_IB, IBV_QPT_UD, AF_INET, POLYCM_KIND_UD },
		{ RDMA_PS_IB, IBV_QPT_RC, AF_IB, POLYCM_KIND_RC_AF_IB },
		{ RDMA_PS_IB, IBV_QPT_UD, AF_IB, POLYCM_KIND_UD_AF_IB },
		{ RDMA_PS_TCP, IBV_QPT_RC, AF_IB, POLYCM_KIND_RC_AF_IB },
		{ RDMA_PS_UDP, IBV_QPT_UD, AF_IB, POLYCM_KIND_UD_AF_IB },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		struct sockaddr addr = { .sa_family = tests[i].family };

		assert_int_equal(polycm_transport_kind(tests[i].ps, tests[i].qp_type, &addr),
				 tests[i].kind);
	}
	assert_int_equal(polycm_transport_kind(RDMA_PS_UDP, IBV_QPT_UD, NULL), POLYCM_KIND_UD);
}

static void rules_have_a_text(void **state)
{
	static const char want[] =
		"description = \n"
		"protocol = CM datagrams (REQ, REP, RTU)\n"
		"services = RC, UD, rdma_establish, RNR NAK\n"
		"rdma_connect data, RDMA_PS_TCP = 56 bytes, peer sees 56\n"
		"rdma_accept data, RDMA_PS_TCP = 196 bytes, peer sees 196\n"
		"rdma_reject data, RDMA_PS_TCP = 148 bytes, peer sees 148\n"
		"rdma_connect data, RDMA_PS_UDP = 180 bytes, exact length\n"
		"rdma_accept data, RDMA_PS_UDP = 136 bytes, exact length\n"
		"rdma_reject data, RDMA_PS_UDP = 136 bytes, exact length\n"
		"retry_count, largest = 7\n"
		"rnr_retry_count, largest = 7\n"
		"responder_resources, largest = 128 by default\n"
		"initiator_depth, largest = 64 by default\n"
		"status of REJECTED = the REJ reason\n"
		"status after rdma_reject = 28\n"
		"status when nobody listens = 8\n"
		"CM response time-out = 20: 4096 ms\n"
		"CM retries = 15\n"
		"MRA service time-out = 24: 65536 ms\n"
		"packet lifetime = 16: 268.435 ms\n"
		"minimum RNR NAK timer = code 0: 655.36 ms\n"
		"local CA ACK delay = 15: 134.218 ms\n"
		"QP is moved to RTS by = the library\n"
		"RDMA_PS_TCP ports = a space of their own\n";
	struct polycm_transport ours, theirs = good;
	char why[PROVIDER_WHY_SIZE], text[4096] = "";

	(void)state;
	assert_int_equal(polycm_transport_copy(&ours, &good, POLYCM_ABI_MINOR,
				 why), 0);
	assert_int_equal(polycm_transport_walk(&ours, note, text), 0);
	assert_string_equal(text, want);

	*text = '\0';
	theirs.description = "stop";
	assert_int_equal(polycm_transport_copy(&ours, &theirs, POLYCM_ABI_MINOR,
				 why), 0);
	assert_int_equal(polycm_transport_walk(&ours, note, text), 1);
	assert_string_equal(text, "description = stop\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_that_cannot_be_are_refused),
		cmocka_unit_test(empty_slots_are_filled),
		cmocka_unit_test(a_protocol_may_be_another),
		cmocka_unit_test(the_kind_follows_from_the_id),
		cmocka_unit_test(rules_have_a_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
