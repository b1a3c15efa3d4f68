/* SPDX-License-Identifier: BSD-2-Clause */
/* test_ece.c - enhanced connection establishment: a vendor's options in REQ, REP and SIDR_REP. */
#include <errno.h>
#include <string.h>

#include "steps.h"

#define VENDOR 0x0002c9u

static struct ibv_ece ece_of(uint32_t vendor, uint32_t options)
{
	return (struct ibv_ece) { .vendor_id = vendor, .options = options };
}

static void assert_remote(struct rdma_cm_id *id, uint32_t vendor, uint32_t options)
{
	struct ibv_ece ece = { .vendor_id = 1, .options = 2, .comp_mask = 3 };

	assert_int_equal(rdma_get_remote_ece(id, &ece), 0);
	assert_int_equal(ece.vendor_id, vendor);
	assert_int_equal(ece.options, options);
	assert_int_equal(ece.comp_mask, 0);
}

/* The client's options in the request, the server's in the reply, in the client's vendor's terms. */
static void options_travel_both_ways(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct ibv_ece offer = ece_of(VENDOR, 0x80000001), answer = ece_of(VENDOR, 0x00ffff00);
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		assert_remote(pair.client, 0, 0);
		assert_int_equal(rdma_set_local_ece(pair.client, &offer), 0);
		rdma_ack_cm_event(pair_request(&pair, &param));
		assert_remote(pair.server, VENDOR, 0x80000001);
		assert_int_equal(rdma_set_local_ece(pair.server, &answer), 0);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		assert_remote(pair.client, VENDOR, 0x00ffff00);
		assert_int_equal(rdma_establish(pair.client), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		pair_close(&pair);
	}
}

/* The answer names the vendor that asked, whatever the server set. */
static void the_answer_echoes_the_vendor(void **state)
{
	struct ibv_ece offer = ece_of(0xabcdef, 5), answer = ece_of(0x123456, 6);
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	pair_resolve(&pair);
	assert_int_equal(rdma_set_local_ece(pair.client, &offer), 0);
	rdma_ack_cm_event(pair_request(&pair, &param));
	assert_remote(pair.server, 0xabcdef, 5);
	assert_int_equal(rdma_set_local_ece(pair.server, &answer), 0);
	assert_int_equal(rdma_accept(pair.server, &param), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	assert_remote(pair.client, 0xabcdef, 6);
	pair_close(&pair);
}

static void no_options_are_zeros(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		if (t == IWARP)
			pair_client_qp(&pair);
		rdma_ack_cm_event(pair_request(&pair, &param));
		assert_remote(pair.server, 0, 0);
		pair_close(&pair);
	}
}

/* MPA has no room for them. */
static void iwarp_does_not_carry_them(void **state)
{
	struct ibv_ece offer = ece_of(VENDOR, 7);
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct pair pair;

	(void)state;
	pair_open(&pair, IWARP, RDMA_PS_TCP);
	pair_resolve(&pair);
	assert_int_equal(rdma_set_local_ece(pair.client, &offer), 0);
	pair_client_qp(&pair);
	rdma_ack_cm_event(pair_request(&pair, &param));
	assert_remote(pair.server, 0, 0);
	pair_close(&pair);
}

static const struct {
	uint32_t vendor, options, comp_mask;
	int error;
} locals[] = {
	{ VENDOR, 0, 0, 0 },
	{ 1, 0xffffffff, 0, 0 },
	{ 0, 5, 0, EINVAL },
	{ VENDOR, 5, 1, EINVAL },
	{ 0, 0, 0, EINVAL },
};

static void local_options_are_checked(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		step_open(&pair, t, STEP_ADDR_RESOLVED);
		for (size_t i = 0; i < ARRAY_LEN(locals); i++) {
			struct ibv_ece ece = {
				.vendor_id = locals[i].vendor,
				.options = locals[i].options,
				.comp_mask = locals[i].comp_mask,
			};

			errno = 0;
			assert_int_equal(rdma_set_local_ece(pair.client, &ece),
					 locals[i].error ? -1 : 0);
			assert_int_equal(errno, locals[i].error);
		}
		pair_close(&pair);
	}
}

/* With a queue pair the library does it. */
static void they_are_for_ids_without_a_qp(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct ibv_ece ece = ece_of(VENDOR, 1);
		struct pair pair;

		step_request(&pair, t, RDMA_PS_TCP, true);
		assert_errno(rdma_set_local_ece(pair.client, &ece), EINVAL);
		assert_errno(rdma_get_remote_ece(pair.client, &ece), EINVAL);
		assert_errno(rdma_set_local_ece(pair.server, &ece), EINVAL);
		assert_errno(rdma_get_remote_ece(pair.server, &ece), EINVAL);
		pair_close(&pair);
	}
}

/* QPs of cards have options.  Those of a device without a profile, which is like rxe, have none. */
static int play_cards(void **state)
{
	(void)state;
	pair_kind[ROCE] = "connectx-5";
	pair_kind[IB] = "connectx-6";
	return 0;
}

static int play_transports(void **state)
{
	(void)state;
	pair_kind[ROCE] = transport_name[ROCE];
	pair_kind[IB] = transport_name[IB];
	return 0;
}

#define CARDS(test) cmocka_unit_test_setup_teardown(test, play_cards, play_transports)

/* The server's QP takes what it knows of its own vendor's options, and nothing of another's. */
static void a_qp_of_the_library_answers(void **state)
{
	static const struct {
		uint32_t vendor, options;	/* vendor: changes the device's */
		uint32_t taken;
	} cases[] = { { 0, 0xffffff05, 5 }, { 0, 0, 0 }, { 1, 5, 0 } };

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
		uint32_t options = cases[i / 2].options, taken = cases[i / 2].taken, vendor;
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct ibv_ece offer, its;
		struct pair pair;

		pair_open(&pair, i & 1 ? IB : ROCE, RDMA_PS_TCP);
		pair_resolve(&pair);
		pair_client_qp(&pair);
		assert_int_equal(ibv_query_ece(pair.client->qp, &its), 0);
		vendor = its.vendor_id ^ cases[i / 2].vendor;
		rdma_destroy_qp(pair.client);
		offer = ece_of(vendor, options);
		assert_int_equal(rdma_set_local_ece(pair.client, &offer), 0);
		rdma_ack_cm_event(pair_request(&pair, &param));
		assert_remote(pair.server, vendor, options);
		pair_server_qp(&pair);
		assert_int_equal(ibv_query_ece(pair.server->qp, &its), 0);
		assert_int_equal(its.options, taken);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		assert_remote(pair.client, vendor, taken);
		pair_close(&pair);
	}
}

/* And the client's takes what the server answers. */
static void both_qps_of_the_library_agree(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct ibv_ece before, client, server;
		struct pair pair;

		step_open(&pair, t, STEP_PASSIVE);
		assert_int_equal(ibv_query_ece(pair.client->qp, &client), 0);
		assert_int_equal(ibv_query_ece(pair.server->qp, &server), 0);
		assert_memory_equal(&client, &server, sizeof(client));
		assert_int_not_equal(client.options, 0);
		pair_close(&pair);

		/* The server wants fewer. */
		step_request(&pair, t, RDMA_PS_TCP, true);
		assert_int_equal(ibv_query_ece(pair.client->qp, &before), 0);
		rdma_destroy_qp(pair.server);
		server = ece_of(before.vendor_id, 4);
		assert_int_equal(rdma_set_local_ece(pair.server, &server), 0);
		assert_int_equal(rdma_accept(pair.server, &(struct rdma_conn_param){ .qp_num = 1 }), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_int_equal(ibv_query_ece(pair.client->qp, &client), 0);
		assert_int_equal(client.options, 4);
		assert_int_not_equal(before.options, 4);
		pair_close(&pair);
	}
}

static void datagrams_carry_the_answer(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct ibv_ece offer = ece_of(VENDOR, 3);
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_UDP);
		pair_resolve(&pair);
		assert_int_equal(rdma_set_local_ece(pair.client, &offer), 0);
		rdma_ack_cm_event(pair_request(&pair, &param));
		/* A SIDR_REQ has no room for options. */
		assert_remote(pair.server, 0, 0);
		pair_close(&pair);
	}
}

static void refusing_for_ece(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_cm_event *event;
		struct pair pair;

		step_request(&pair, t, RDMA_PS_TCP, false);
		assert_int_equal(rdma_reject_ece(pair.server, "old", 4), 0);
		event = pair_expect(pair.client_channel, RDMA_CM_EVENT_REJECTED,
				    t == IWARP ? -ECONNRESET : 35);
		assert_memory_equal(event->param.conn.private_data, "old", 4);
		rdma_ack_cm_event(event);
		pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_travel_both_ways),
		cmocka_unit_test(the_answer_echoes_the_vendor),
		cmocka_unit_test(no_options_are_zeros),
		cmocka_unit_test(iwarp_does_not_carry_them),
		cmocka_unit_test(local_options_are_checked),
		cmocka_unit_test(they_are_for_ids_without_a_qp),
		CARDS(a_qp_of_the_library_answers),
		CARDS(both_qps_of_the_library_agree),
		cmocka_unit_test(datagrams_carry_the_answer),
		cmocka_unit_test(refusing_for_ece),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
