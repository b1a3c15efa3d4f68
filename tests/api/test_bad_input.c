/* SPDX-License-Identifier: BSD-2-Clause */
/* test_bad_input.c - nulls, strangers and the dead as arguments: an errno each, no crash. */
#include <errno.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#include "steps.h"

/* --- No id. --- */

static struct rdma_cm_id *other_id;
static struct ibv_qp_init_attr qp_attr = {
	.qp_type = IBV_QPT_RC,
	.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
};

#define CALL(name, expression)                                                                     \
	static int name(struct rdma_cm_id *id)                                                     \
	{                                                                                          \
		return expression;                                                                 \
	}

CALL(bind_addr, rdma_bind_addr(id, step_sa(CLIENT_ADDRESS, 0)))
CALL(resolve_addr, rdma_resolve_addr(id, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT), 2000))
CALL(resolve_route, rdma_resolve_route(id, 2000))
CALL(create_qp, rdma_create_qp(id, NULL, &qp_attr))
CALL(create_qp_ex, rdma_create_qp_ex(id, NULL))
CALL(create_srq, rdma_create_srq(id, NULL, &(struct ibv_srq_init_attr) { .attr.max_wr = 1 }))
CALL(create_srq_ex, rdma_create_srq_ex(id, NULL))
CALL(connect_to, rdma_connect(id, &(struct rdma_conn_param) { 0 }))
CALL(establish, rdma_establish(id))
CALL(start_listening, rdma_listen(id, 1))
CALL(get_request, rdma_get_request(id, &other_id))
CALL(accept_it, rdma_accept(id, &(struct rdma_conn_param) { 0 }))
CALL(reject, rdma_reject(id, NULL, 0))
CALL(reject_ece, rdma_reject_ece(id, NULL, 0))
CALL(notify, rdma_notify(id, IBV_EVENT_COMM_EST))
CALL(disconnect, rdma_disconnect(id))
CALL(join, rdma_join_multicast(id, step_sa("239.0.0.1", 0), NULL))
CALL(join_ex, rdma_join_multicast_ex(id, &(struct rdma_cm_join_mc_attr_ex) { 0 }, NULL))
CALL(leave, rdma_leave_multicast(id, step_sa("239.0.0.1", 0)))
CALL(set_option, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &(uint8_t) { 1 }, 1))
CALL(migrate, rdma_migrate_id(id, NULL))
CALL(init_qp_attr, rdma_init_qp_attr(id, &(struct ibv_qp_attr) { .qp_state = IBV_QPS_INIT },
				     &(int) { 0 }))
CALL(set_local_ece, rdma_set_local_ece(id, &(struct ibv_ece) { .vendor_id = 1 }))
CALL(get_remote_ece, rdma_get_remote_ece(id, &(struct ibv_ece) { 0 }))
CALL(destroy_id, rdma_destroy_id(id))

static const struct {
	const char *name;
	int (*call)(struct rdma_cm_id *id);
} calls[] = {
	{ "rdma_bind_addr", bind_addr },
	{ "rdma_resolve_addr", resolve_addr },
	{ "rdma_resolve_route", resolve_route },
	{ "rdma_create_qp", create_qp },
	{ "rdma_create_qp_ex", create_qp_ex },
	{ "rdma_create_srq", create_srq },
	{ "rdma_create_srq_ex", create_srq_ex },
	{ "rdma_connect", connect_to },
	{ "rdma_establish", establish },
	{ "rdma_listen", start_listening },
	{ "rdma_get_request", get_request },
	{ "rdma_accept", accept_it },
	{ "rdma_reject", reject },
	{ "rdma_reject_ece", reject_ece },
	{ "rdma_notify", notify },
	{ "rdma_disconnect", disconnect },
	{ "rdma_join_multicast", join },
	{ "rdma_join_multicast_ex", join_ex },
	{ "rdma_leave_multicast", leave },
	{ "rdma_set_option", set_option },
	{ "rdma_migrate_id", migrate },
	{ "rdma_init_qp_attr", init_qp_attr },
	{ "rdma_set_local_ece", set_local_ece },
	{ "rdma_get_remote_ece", get_remote_ece },
	{ "rdma_destroy_id", destroy_id },
};

static void assert_all_refuse(struct rdma_cm_id *id)
{
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		int r;

		errno = 0;
		r = calls[i].call(id);
		if (r != -1 || errno != EINVAL)
			fail_msg("%s: %d, %s", calls[i].name, r, strerror(errno));
	}
}

static void null_is_no_id(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_all_refuse(NULL);
	rdma_destroy_qp(NULL);
	rdma_destroy_srq(NULL);
	rdma_destroy_ep(NULL);
	assert_int_equal(rdma_get_src_port(NULL), 0);
	assert_int_equal(rdma_get_dst_port(NULL), 0);
	pair_close(&pair);
}

/* Memory that looks like anything but an id of ours. */
static void a_stranger_is_no_id(void **state)
{
	static const uint8_t fills[] = { 0, 0xff, 0x5a };
	static _Alignas(64) uint8_t memory[8192];
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	for (size_t i = 0; i < ARRAY_LEN(fills); i++) {
		memset(memory, fills[i], sizeof(memory));
		assert_all_refuse((struct rdma_cm_id *)(void *)memory);
		assert_errno(rdma_ack_cm_event((struct rdma_cm_event *)(void *)memory), EINVAL);
	}
	memset(memory, 0, sizeof(memory));
	assert_errno(rdma_get_cm_event((struct rdma_event_channel *)(void *)memory,
				       &(struct rdma_cm_event *) { NULL }), EINVAL);
	assert_errno(rdma_create_id((struct rdma_event_channel *)(void *)memory, &other_id, NULL,
				    RDMA_PS_TCP), EINVAL);
	assert_errno(rdma_migrate_id(pair.client, (struct rdma_event_channel *)(void *)memory),
		     EINVAL);
	pair_close(&pair);
}

/* An id whose channel was destroyed under it: still refused, and still to be destroyed. */
static void an_id_without_its_channel(void **state)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	channel = rdma_create_event_channel();
	assert_non_null(channel);
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(resolve_addr(id), 0);
	rdma_destroy_event_channel(channel);
	assert_int_equal(rdma_bind_addr(id, step_sa(CLIENT_ADDRESS, 0)), -1);
	assert_int_equal(rdma_resolve_route(id, 2000), -1);
	assert_int_equal(rdma_listen(id, 1), -1);
	assert_int_equal(polycm_sim_advance(SECONDS(5)), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	pair_close(&pair);
}

/* --- Null arguments beside a good id. --- */

static void null_arguments(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct pair pair;
	int mask;

	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		pair_open(&pair, t, RDMA_PS_TCP);
		assert_errno(rdma_create_id(pair.client_channel, NULL, NULL, RDMA_PS_TCP), EINVAL);
		assert_errno(rdma_bind_addr(pair.client, NULL), EINVAL);
		assert_errno(rdma_resolve_addr(pair.client, NULL, NULL, 2000), EINVAL);
		assert_errno(rdma_get_request(pair.listener, NULL), EINVAL);
		pair_resolve(&pair);
		assert_errno(rdma_create_qp(pair.client, NULL, NULL), EINVAL);
		assert_errno(rdma_create_qp_ex(pair.client, NULL), EINVAL);
		assert_errno(rdma_create_srq(pair.client, NULL, NULL), EINVAL);
		assert_errno(rdma_create_srq_ex(pair.client, NULL), EINVAL);
		assert_errno(rdma_init_qp_attr(pair.client, NULL, &mask), EINVAL);
		assert_errno(rdma_init_qp_attr(pair.client, &attr, NULL), EINVAL);
		assert_errno(rdma_set_local_ece(pair.client, NULL), EINVAL);
		assert_errno(rdma_get_remote_ece(pair.client, NULL), EINVAL);
		assert_errno(rdma_join_multicast(pair.client, NULL, NULL), EINVAL);
		assert_errno(rdma_join_multicast_ex(pair.client, NULL, NULL), EINVAL);
		assert_errno(rdma_leave_multicast(pair.client, NULL), EINVAL);
		assert_errno(rdma_set_option(pair.client, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 1),
			     EFAULT);
		assert_errno(rdma_create_ep(NULL, NULL, NULL, NULL), EINVAL);
		assert_errno(rdma_create_ep(&other_id, NULL, NULL, NULL), EINVAL);
		rdma_freeaddrinfo(NULL);
		rdma_free_devices(NULL);
		pair_close(&pair);
	}
}

/* A length without data, and data without a length, are no data. */
static void half_given_private_data_is_none(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (int i = 0; i < 2; i++) {
			struct rdma_conn_param param = pair_param(i ? "x" : NULL, i ? 0 : 255);
			struct rdma_cm_event *event;
			struct pair pair;

			pair_open_resolved(&pair, t);
			event = pair_request(&pair, &param);
			assert_int_equal(event->param.conn.private_data_len, t == IWARP ? 0 : 56);
			rdma_ack_cm_event(event);
			assert_int_equal(rdma_reject(pair.server, i ? "x" : NULL, i ? 0 : 255), 0);
			event = pair_expect(pair.client_channel, RDMA_CM_EVENT_REJECTED,
					    t == IWARP ? -ECONNRESET : 28);
			assert_int_equal(event->param.conn.private_data_len, t == IWARP ? 0 : 148);
			rdma_ack_cm_event(event);
			pair_close(&pair);
		}
	}
}

/* --- Kinds of ids. --- */

static const struct {
	enum rdma_port_space ps;
	int error;
	enum ibv_qp_type qp_type;
} spaces[] = {
	{ RDMA_PS_TCP, 0, IBV_QPT_RC },
	{ RDMA_PS_UDP, 0, IBV_QPT_UD },
	{ RDMA_PS_IPOIB, 0, IBV_QPT_UD },
	{ RDMA_PS_IB, 0, IBV_QPT_RC },
	{ (enum rdma_port_space)0, EINVAL, 0 },
	{ (enum rdma_port_space)0x0107, EINVAL, 0 },
	{ (enum rdma_port_space)0x7fff, EINVAL, 0 },
};

static void port_spaces(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
		struct rdma_cm_id *id = NULL;

		if (spaces[i].error) {
			assert_errno(rdma_create_id(pair.client_channel, &id, NULL, spaces[i].ps),
				     spaces[i].error);
			assert_null(id);
			continue;
		}
		assert_int_equal(rdma_create_id(pair.client_channel, &id, &pair, spaces[i].ps), 0);
		assert_int_equal(id->qp_type, spaces[i].qp_type);
		assert_int_equal(id->ps, spaces[i].ps);
		assert_ptr_equal(id->context, &pair);
		assert_ptr_equal(id->channel, pair.client_channel);
		assert_null(id->verbs);
		assert_null(id->qp);
		assert_null(id->event);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
	pair_close(&pair);
}

/* IP over InfiniBand needs InfiniBand. */
static void ipoib_elsewhere(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_cm_id *id;
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		assert_int_equal(rdma_create_id(pair.client_channel, &id, NULL, RDMA_PS_IPOIB), 0);
		if (t == IB) {
			assert_int_equal(bind_addr(id), 0);
		} else {
			assert_errno(bind_addr(id), EINVAL);
			assert_int_equal(resolve_addr(id), 0);
			pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_ERROR, -EINVAL);
		}
		assert_int_equal(rdma_destroy_id(id), 0);
		pair_close(&pair);
	}
}

/* --- Queue pairs. --- */

static void queue_pairs_that_do_not_fit(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct ibv_qp_init_attr attr = qp_attr;
		struct ibv_context *verbs;
		struct ibv_device **list;
		struct ibv_cq *cq;
		struct ibv_pd *pd;
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		assert_errno(create_qp(pair.client), EINVAL);
		pair_resolve(&pair);

		/* Of the other node's device. */
		pd = pair.listener->pd;
		assert_ptr_not_equal(pair.listener->verbs, pair.client->verbs);
		assert_errno(rdma_create_qp(pair.client, pd, &attr), EINVAL);

		/* The same device opened once more is another context, too. */
		list = ibv_get_device_list(NULL);
		assert_non_null(list);
		verbs = ibv_open_device(pair.client->verbs->device);
		ibv_free_device_list(list);
		assert_non_null(verbs);
		pd = ibv_alloc_pd(verbs);
		assert_non_null(pd);
		cq = ibv_create_cq(verbs, 1, NULL, NULL, 0);
		assert_non_null(cq);
		assert_errno(rdma_create_qp(pair.client, pd, &attr), EINVAL);
		assert_null(pair.client->qp);
		assert_int_equal(ibv_destroy_cq(cq), 0);
		assert_int_equal(ibv_dealloc_pd(pd), 0);
		assert_int_equal(ibv_close_device(verbs), 0);

		attr.cap.max_send_wr = 1u << 30;
		assert_int_equal(rdma_create_qp(pair.client, NULL, &attr), -1);
		assert_null(pair.client->qp);
		assert_null(pair.client->send_cq);
		assert_null(pair.client->recv_cq);
		pair_client_qp(&pair);
		assert_errno(create_qp(pair.client), EINVAL);
		pair_close(&pair);
	}
}

/* What was given back is known to be gone, without a look at its memory. */
static void stale_pointers(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(rdma_create_id(pair.client_channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_errno(rdma_destroy_id(id), EINVAL);
	assert_errno(rdma_listen(id, 1), EINVAL);
	assert_errno(rdma_connect(id, &param), EINVAL);
	assert_errno(rdma_disconnect(id), EINVAL);

	pair_resolve(&pair);
	event = pair_request(&pair, &param);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_errno(rdma_ack_cm_event(event), EINVAL);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stale_pointers),
		cmocka_unit_test(null_is_no_id),
		cmocka_unit_test(a_stranger_is_no_id),
		cmocka_unit_test(an_id_without_its_channel),
		cmocka_unit_test(null_arguments),
		cmocka_unit_test(half_given_private_data_is_none),
		cmocka_unit_test(port_spaces),
		cmocka_unit_test(ipoib_elsewhere),
		cmocka_unit_test(queue_pairs_that_do_not_fit),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
