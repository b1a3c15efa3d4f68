/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transport rules of the three plugins, number by number, and what the
 * plugins themselves answer while they have no devices.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cmocka_all.h"

#include "polycm/kernel.h"
#include "providers/common/ib_rules.h"
#include "providers/ib/rules.h"
#include "providers/iwarp/rules.h"
#include "providers/roce/rules.h"

#define NONE { 0, 0, 0 }

struct lengths {
	const struct polycm_transport *rules;
	uint16_t limit[POLYCM_KINDS][POLYCM_MSGS];
	uint16_t reported[POLYCM_KINDS][POLYCM_MSGS];
	uint16_t capacity[POLYCM_KINDS][POLYCM_MSGS];
	uint8_t header;
};

static const struct lengths lengths[] = {
	{
		&ib_transport,
		{ { 56, 196, 148 }, { 180, 136, 136 }, { 92, 196, 148 }, { 216, 136, 136 } },
		{ { 56, 196, 148 }, { 180, 136, 136 }, { 92, 196, 148 }, { 216, 136, 136 } },
		{ { 92, 196, 148 }, { 216, 136, 136 }, { 92, 196, 148 }, { 216, 136, 136 } },
		36,
	}, {
		&roce_transport,
		{ { 56, 196, 148 }, { 180, 136, 136 }, NONE, NONE },
		{ { 56, 196, 148 }, { 180, 136, 136 }, NONE, NONE },
		{ { 92, 196, 148 }, { 216, 136, 136 }, NONE, NONE },
		36,
	}, {
		&iwarp_transport,
		{ { 251, 251, 251 }, NONE, NONE, NONE },
		{ NONE, NONE, NONE, NONE },
		{ { 256, 256, 256 }, NONE, NONE, NONE },
		0,
	},
};

static void test_private_data(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		const struct lengths *want = &lengths[i];

		for (int kind = 0; kind < POLYCM_KINDS; kind++)
			for (int msg = 0; msg < POLYCM_MSGS; msg++) {
				assert_uint_equal(want->rules->limit[kind][msg],
						  want->limit[kind][msg]);
				assert_uint_equal(want->rules->reported[kind][msg],
						  want->reported[kind][msg]);
				assert_uint_equal(want->rules->capacity[kind][msg],
						  want->capacity[kind][msg]);
			}
		assert_uint_equal(want->rules->cm_header_len, want->header);
	}
}

#define SVC_IB_AND_ROCE                                                                          \
	(POLYCM_SVC_UD | POLYCM_SVC_MULTICAST | POLYCM_SVC_XRC | POLYCM_SVC_SRQ |                \
	 POLYCM_SVC_ECE | POLYCM_SVC_ESTABLISH | POLYCM_SVC_NOTIFY | POLYCM_SVC_TIMEWAIT |       \
	 POLYCM_SVC_IMM | POLYCM_SVC_ATOMIC | POLYCM_SVC_RNR)

static void test_identity(void **state)
{
	static const struct {
		const struct polycm_transport *rules;
		const char *name;
		int protocol;
		uint32_t services, flags;
		int node, transport, link;
	} want[] = {
		{ &ib_transport, "ib", POLYCM_PROTO_IB_CM,
		  SVC_IB_AND_ROCE | POLYCM_SVC_IPOIB | POLYCM_SVC_AF_IB, POLYCM_T_HAS_SA,
		  IBV_NODE_CA, IBV_TRANSPORT_IB, IBV_LINK_LAYER_INFINIBAND },
		{ &roce_transport, "roce", POLYCM_PROTO_IB_CM, SVC_IB_AND_ROCE, 0,
		  IBV_NODE_CA, IBV_TRANSPORT_IB, IBV_LINK_LAYER_ETHERNET },
		{ &iwarp_transport, "iwarp", POLYCM_PROTO_MPA, POLYCM_SVC_SRQ,
		  POLYCM_T_DEVICE_MOVES_QP | POLYCM_T_EXACT_LENGTH | POLYCM_T_PORT_IS_TCP |
		  POLYCM_T_CONNECT_BLOCKS,
		  IBV_NODE_RNIC, IBV_TRANSPORT_IWARP, IBV_LINK_LAYER_ETHERNET },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_uint_equal(want[i].rules->size, sizeof(struct polycm_transport));
		assert_string_equal(want[i].rules->name, want[i].name);
		assert_true(strlen(want[i].rules->description) > 0);
		assert_null(strchr(want[i].rules->description, '\n'));
		assert_int_equal(want[i].rules->protocol, want[i].protocol);
		assert_uint_equal(want[i].rules->services, want[i].services);
		assert_uint_equal(want[i].rules->flags, want[i].flags);
		assert_int_equal(want[i].rules->node_type, want[i].node);
		assert_int_equal(want[i].rules->transport_type, want[i].transport);
		assert_int_equal(want[i].rules->link_layer, want[i].link);
	}
}

static void test_timers_and_widths(void **state)
{
	static const struct polycm_transport *const ib_cm[] = { &ib_transport, &roce_transport };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ib_cm); i++) {
		assert_uint_equal(ib_cm[i]->max_retry_count, 7);
		assert_uint_equal(ib_cm[i]->max_rnr_retry_count, 7);
		assert_int_equal(ib_cm[i]->reject_domain, POLYCM_REJECT_REASON);
		assert_int_equal(ib_cm[i]->consumer_reject_status, 28);
		assert_int_equal(ib_cm[i]->refused_status, 8);
		assert_uint_equal(ib_cm[i]->cm_response_timeout, 20);
		assert_uint_equal(ib_cm[i]->max_cm_retries, 15);
		assert_uint_equal(ib_cm[i]->mra_service_timeout, 24);
		assert_uint_equal(ib_cm[i]->mpa_reply_timeout_ms, 0);
		assert_uint_equal(ib_cm[i]->mpa_request_timeout_ms, 0);
		assert_uint_equal(ib_cm[i]->mpa_revision, 0);
		assert_uint_equal(ib_cm[i]->min_rnr_timer, 0);
		assert_ptr_equal(ib_cm[i]->ack_timeout, ib_rules_ack_timeout);
	}
	assert_uint_equal(ib_transport.packet_lifetime, 18);
	assert_uint_equal(roce_transport.packet_lifetime, 16);
	assert_uint_equal(ib_transport.local_ca_ack_delay, 16);
	assert_uint_equal(roce_transport.local_ca_ack_delay, 15);
	assert_uint_equal(ib_transport.max_responder_resources, 16);
	assert_uint_equal(ib_transport.max_initiator_depth, 16);
	assert_uint_equal(roce_transport.max_responder_resources, 128);
	assert_uint_equal(roce_transport.max_initiator_depth, 128);

	assert_uint_equal(iwarp_transport.max_retry_count, 0);
	assert_uint_equal(iwarp_transport.max_rnr_retry_count, 0);
	assert_int_equal(iwarp_transport.reject_domain, POLYCM_REJECT_ERRNO);
	assert_int_equal(iwarp_transport.consumer_reject_status, -ECONNRESET);
	assert_int_equal(iwarp_transport.refused_status, -ECONNREFUSED);
	assert_uint_equal(iwarp_transport.cm_response_timeout, 0);
	assert_uint_equal(iwarp_transport.max_cm_retries, 0);
	assert_uint_equal(iwarp_transport.mra_service_timeout, 0);
	assert_uint_equal(iwarp_transport.packet_lifetime, 0);
	assert_uint_equal(iwarp_transport.mpa_reply_timeout_ms, 10000);
	assert_uint_equal(iwarp_transport.mpa_request_timeout_ms, 5000);
	assert_uint_equal(iwarp_transport.mpa_revision, 2);
	assert_uint_equal(iwarp_transport.max_responder_resources, 128);
	assert_uint_equal(iwarp_transport.max_initiator_depth, 128);
	assert_null(iwarp_transport.ack_timeout);
}

static void test_ack_timeout(void **state)
{
	static const struct {
		uint8_t lifetime, delay, timeout;
	} want[] = {
		{ 14, 4, 15 }, { 14, 12, 15 }, { 14, 15, 16 }, { 14, 16, 17 }, { 14, 17, 17 },
		{ 14, 18, 18 }, { 14, 20, 20 },
		{ 16, 4, 17 }, { 16, 12, 17 }, { 16, 15, 17 }, { 16, 16, 18 }, { 16, 17, 18 },
		{ 16, 18, 19 }, { 16, 20, 20 },
		{ 18, 0, 19 }, { 18, 15, 19 }, { 18, 16, 19 }, { 18, 17, 19 }, { 18, 18, 20 },
		{ 18, 20, 21 },
		/* The ends: both 0, and the 5 bits of the field. */
		{ 0, 0, 2 }, { 0, 31, 31 }, { 30, 0, 31 }, { 30, 31, 31 }, { 31, 31, 31 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		assert_uint_equal(roce_transport.ack_timeout(want[i].delay, want[i].lifetime),
				  want[i].timeout);
}

static void test_path_mtu(void **state)
{
	static const struct {
		const struct polycm_transport *rules;
		uint32_t netdev, path;
	} want[] = {
		{ &roce_transport, 0, 0 }, { &roce_transport, 96, 0 },
		{ &roce_transport, 351, 0 }, { &roce_transport, 352, 256 },
		{ &roce_transport, 607, 256 }, { &roce_transport, 608, 512 },
		{ &roce_transport, 1119, 512 }, { &roce_transport, 1120, 1024 },
		{ &roce_transport, 1500, 1024 }, { &roce_transport, 2143, 1024 },
		{ &roce_transport, 2144, 2048 }, { &roce_transport, 4191, 2048 },
		{ &roce_transport, 4192, 4096 }, { &roce_transport, 4200, 4096 },
		{ &roce_transport, 9000, 4096 }, { &roce_transport, 65536, 4096 },
		{ &roce_transport, UINT32_MAX, 4096 },
		{ &ib_transport, 0, 0 }, { &ib_transport, 251, 0 }, { &ib_transport, 252, 256 },
		{ &ib_transport, 2043, 1024 }, { &ib_transport, 2044, 2048 },
		{ &ib_transport, 4092, 4096 }, { &ib_transport, 65520, 4096 },
		{ &ib_transport, UINT32_MAX, 4096 },
		{ &iwarp_transport, 1500, 1500 }, { &iwarp_transport, 9000, 9000 },
		{ &iwarp_transport, 65536, 65536 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		assert_uint_equal(want[i].rules->path_mtu(want[i].netdev), want[i].path);
}

static void check_prefixed(const char *text, const char *what, int number)
{
	char prefix[32];

	(void)snprintf(prefix, sizeof(prefix), "%s %d, ", what, number);
	assert_non_null(text);
	assert_int_equal(strncmp(text, prefix, strlen(prefix)), 0);
	assert_true(strlen(text) > strlen(prefix));
	assert_null(strchr(text, '\n'));
}

static void test_status_str_ib_cm(void **state)
{
	const char *(*str)(enum rdma_cm_event_type event, int status) = ib_transport.status_str;

	(void)state;
	assert_ptr_equal(roce_transport.status_str, str);
	for (int reason = 1; reason <= 35; reason++)
		check_prefixed(str(RDMA_CM_EVENT_REJECTED, reason), "REJ", reason);
	for (int status = 1; status <= 5; status++)
		check_prefixed(str(RDMA_CM_EVENT_UNREACHABLE, status), "SIDR status", status);
	assert_string_equal(str(RDMA_CM_EVENT_REJECTED, 8),
			    "REJ 8, invalid service id: nobody listens on that port");
	assert_non_null(str(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT));
	assert_non_null(str(RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT));

	assert_null(str(RDMA_CM_EVENT_REJECTED, 0));
	assert_null(str(RDMA_CM_EVENT_REJECTED, -ECONNRESET));
	assert_null(str(RDMA_CM_EVENT_REJECTED, 36));
	assert_null(str(RDMA_CM_EVENT_UNREACHABLE, 0));
	assert_null(str(RDMA_CM_EVENT_UNREACHABLE, 6));
	assert_null(str(RDMA_CM_EVENT_UNREACHABLE, -EINVAL));
	assert_null(str(RDMA_CM_EVENT_DISCONNECTED, 0));
	assert_null(str(RDMA_CM_EVENT_ESTABLISHED, 8));
}

static void test_status_str_iwarp(void **state)
{
	static const struct {
		enum rdma_cm_event_type event;
		int status;
		bool named;
	} want[] = {
		{ RDMA_CM_EVENT_REJECTED, -ECONNRESET, true },
		{ RDMA_CM_EVENT_REJECTED, -ECONNREFUSED, true },
		{ RDMA_CM_EVENT_REJECTED, 28, false },
		{ RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, true },
		{ RDMA_CM_EVENT_CONNECT_ERROR, -ENOMEM, true },
		{ RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO, true },
		{ RDMA_CM_EVENT_CONNECT_ERROR, -EHOSTUNREACH, true },
		{ RDMA_CM_EVENT_CONNECT_ERROR, -1, false },
		{ RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, true },
		{ RDMA_CM_EVENT_UNREACHABLE, 2, false },
		{ RDMA_CM_EVENT_DISCONNECTED, -ECONNRESET, true },
		{ RDMA_CM_EVENT_DISCONNECTED, 0, false },
		{ RDMA_CM_EVENT_ESTABLISHED, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		const char *text = iwarp_transport.status_str(want[i].event, want[i].status);

		assert_int_equal(text != NULL, want[i].named);
	}
}

/* The plugins as files: a struct and rules each, all else is the kernel client's. */

static const struct polycm_core no_core = { .size = sizeof(no_core) };

static void check_plugin(const char *name, const struct polycm_transport *rules)
{
	const struct polycm_provider *provider = NULL;
	int (*query)(const struct polycm_core *core, const struct polycm_provider **ret);
	void *handle, *symbol;
	char path[1024];

	(void)snprintf(path, sizeof(path), "%s/providers/%s/.libs/provider-%s.so",
		       getenv("abs_top_builddir"), name, name);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		fail_msg("%s", dlerror());
	symbol = dlsym(handle, "polycm_provider_query_v1");
	assert_non_null(symbol);
	memcpy(&query, &symbol, sizeof(query));
	assert_int_equal(query(&no_core, &provider), 0);

	assert_uint_equal(provider->size, sizeof(*provider));
	assert_uint_equal(provider->abi_minor, POLYCM_ABI_MINOR);
	assert_string_equal(provider->name, name);
	assert_string_equal(provider->transport->name, rules->name);
	assert_memory_equal(provider->transport->limit, rules->limit, sizeof(rules->limit));
	assert_null(provider->extension);
	assert_uint_equal(provider->num_options, 0);

	assert_uint_equal(provider->flags, POLYCM_PROVIDER_KERNEL);
	assert_null(provider->ops);
	assert_int_equal(dlclose(handle), 0);
}

static void test_plugins(void **state)
{
	(void)state;
	if (!getenv("abs_top_builddir"))
		skip();
	check_plugin("ib", &ib_transport);
	check_plugin("roce", &roce_transport);
	check_plugin("iwarp", &iwarp_transport);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_private_data),
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_timers_and_widths),
		cmocka_unit_test(test_ack_timeout),
		cmocka_unit_test(test_path_mtu),
		cmocka_unit_test(test_status_str_ib_cm),
		cmocka_unit_test(test_status_str_iwarp),
		cmocka_unit_test(test_plugins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
