/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sim_iwarp.c - setting up an iWARP connection: data of exact lengths,
 * depths, timers, and the statuses of what fails.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "sim_iwarp.h"

/* --- Private data. --- */

static const uint8_t fitting[] = { 0, 1, 2, 56, 57, 196, 197, 250, 251 };
static const uint8_t too_long[] = { 252, 253, 254, 255 };

static void requests_carry_exact_lengths(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fitting); i++) {
		const struct polycm_event *event;
		struct pair p;

		iwarp_open(&p);
		assert_int_equal(world_connect(p.active, world_data, fitting[i], p.client_qp), 0);
		event = world_expect(p.listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
		iwarp_check_data(event, fitting[i]);
		assert_int_equal(event->param.conn.flow_control, 0);
		assert_int_equal(event->param.conn.retry_count, 0);
		assert_int_equal(event->param.conn.rnr_retry_count, 0);
		assert_int_equal(event->param.conn.qp_num, 0);
		world_destroy(p.listener);	/* and the child */
		p.listener = NULL;
		world_expect(p.active, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
		iwarp_close(&p);
	}
}

static void replies_carry_exact_lengths(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fitting); i++) {
		struct pair p;

		iwarp_open(&p);
		iwarp_request(&p);
		assert_int_equal(world_accept(p.child, world_data, fitting[i], p.server_qp), 0);
		iwarp_check_data(world_expect(p.active, RDMA_CM_EVENT_ESTABLISHED, 0), fitting[i]);
		iwarp_check_data(world_expect(p.child, RDMA_CM_EVENT_ESTABLISHED, 0), 0);
		iwarp_close(&p);
	}
}

static void rejects_carry_exact_lengths(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fitting); i++) {
		const struct polycm_event *event;
		struct pair p;

		iwarp_open(&p);
		iwarp_request(&p);
		assert_int_equal(iwarp_reject(&p, world_data, fitting[i]), 0);
		event = world_expect(p.active, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
		iwarp_check_data(event, fitting[i]);
		/* No event here, and nothing left to say. */
		world_none(p.child, SIM_MS(20000));
		assert_int_equal(iwarp_reject(&p, NULL, 0), -EINVAL);
		assert_int_equal(world_accept(p.child, NULL, 0, p.server_qp), -EINVAL);
		assert_int_equal(world_qp_state(p.client_qp), IBV_QPS_ERR);
		iwarp_close(&p);
	}
}

static void too_much_data(void **state)
{
	struct pair p;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(too_long); i++) {
		iwarp_open(&p);
		iwarp_request(&p);
		/* An accept is the end: the peer sees a reset without data. */
		assert_int_equal(world_accept(p.child, world_data, too_long[i], p.server_qp),
				 -EINVAL);
		iwarp_check_data(world_expect(p.active, RDMA_CM_EVENT_REJECTED, -ECONNRESET), 0);
		world_none(p.child, SIM_MS(20000));
		assert_int_equal(iwarp_reject(&p, NULL, 0), -EINVAL);
		iwarp_close(&p);
	}
}

/* siw sends a reject that is none, and hangs up. */
static void too_much_data_to_reject(void **state)
{
	struct pair p;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(too_long); i++) {
		iwarp_open(&p);
		iwarp_request(&p);
		assert_int_equal(iwarp_reject(&p, world_data, too_long[i]), 0);
		iwarp_check_data(world_expect(p.active, RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL), 0);
		assert_int_equal(iwarp_reject(&p, NULL, 0), -EINVAL);
		iwarp_close(&p);
	}
}

/* siw sends what is no request then, which the peer's program never sees. */
static void too_much_data_to_connect(void **state)
{
	struct pair p;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(too_long); i++) {
		iwarp_open(&p);
		assert_int_equal(world_connect(p.active, world_data, too_long[i], p.client_qp), 0);
		iwarp_check_data(world_expect(p.active, RDMA_CM_EVENT_REJECTED, -ECONNRESET), 0);
		world_none(p.listener, SIM_MS(20000));
		assert_int_equal(world_qp_state(p.client_qp), IBV_QPS_ERR);
		iwarp_close(&p);
	}
}

/* --- Depths. --- */

static void depths_are_negotiated(void **state)
{
	/* Responder resources (IRD) and initiator depth (ORD). */
	static const struct {
		uint8_t connect_ird, connect_ord;
		uint8_t accept_ird, accept_ord;
		int result;
		uint8_t ird, ord;		/* of the passive side in the end */
	} cases[] = {
		{ 4, 3, 3, 4, 0, 3, 4 },
		{ 4, 3, 5, 4, 0, 5, 4 },	/* more than was asked for */
		{ 4, 3, 3, 9, 0, 3, 4 },	/* lowered to what the peer takes */
		{ 4, 3, 1, 1, 0, 3, 1 },	/* raised to what the peer sends */
		{ 0, 0, 0, 0, 0, 0, 0 },
		{ 128, 128, 0, 128, 0, 128, 128 },
		{ 128, 128, 129, 128, -EINVAL, 0, 0 },
		{ 128, 128, 128, 129, -EINVAL, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct polycm_conn_param param;
		const struct rdma_conn_param *seen;
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;
		struct pair p;

		iwarp_open(&p);
		param = world_param(NULL, 0, p.client_qp->qp_num);
		param.responder_resources = cases[i].connect_ird;
		param.initiator_depth = cases[i].connect_ord;
		assert_int_equal(sim_cma_ops.connect(&p.active->sim, &param), 0);
		p.child = world_request(p.listener);
		seen = &p.listener->taken->event.param.conn;
		assert_int_equal(seen->initiator_depth, cases[i].connect_ird);
		assert_int_equal(seen->responder_resources, cases[i].connect_ord);

		param = world_param(NULL, 0, p.server_qp->qp_num);
		param.responder_resources = cases[i].accept_ird;
		param.initiator_depth = cases[i].accept_ord;
		assert_int_equal(sim_cma_ops.accept(&p.child->sim, &param), cases[i].result);
		if (cases[i].result) {
			world_expect(p.active, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
		} else {
			/* Each end's own IRD as initiator_depth: the kernel has it so. */
			seen = &world_expect(p.child, RDMA_CM_EVENT_ESTABLISHED, 0)->param.conn;
			assert_int_equal(seen->initiator_depth, cases[i].ird);
			assert_int_equal(seen->responder_resources, cases[i].ord);
			seen = &world_expect(p.active, RDMA_CM_EVENT_ESTABLISHED, 0)->param.conn;
			assert_int_equal(seen->initiator_depth, cases[i].ord);
			assert_int_equal(seen->responder_resources, cases[i].ird);
			/* And siw tells each for the other. */
			assert_int_equal(sim_verbs.query_qp(p.server_qp, &attr, 0, &init), 0);
			assert_int_equal(attr.max_rd_atomic, cases[i].ird);
			assert_int_equal(attr.max_dest_rd_atomic, cases[i].ord);
		}
		iwarp_close(&p);
	}
}

static void depths_over_the_device(void **state)
{
	struct polycm_conn_param param;
	struct pair p;

	(void)state;
	iwarp_open(&p);
	param = world_param(NULL, 0, p.client_qp->qp_num);
	param.responder_resources = 129;
	assert_int_equal(sim_cma_ops.connect(&p.active->sim, &param), -ENOMEM);
	param = world_param(NULL, 0, p.client_qp->qp_num);
	param.initiator_depth = 129;
	assert_int_equal(sim_cma_ops.connect(&p.active->sim, &param), -ENOMEM);
	assert_int_equal(p.active->sim.state, CMA_ROUTE_RESOLVED);
	iwarp_establish(&p);
	iwarp_close(&p);
}

/* --- The stream does not come about. --- */

static void nobody_listens(void **state)
{
	struct pair p;

	(void)state;
	iwarp_open(&p);
	world_destroy(p.listener);
	assert_int_equal(world_connect(p.active, NULL, 0, p.client_qp), -ECONNREFUSED);
	assert_int_equal(p.active->sim.state, CMA_ROUTE_RESOLVED);
	assert_int_equal(iwarp_disconnect(p.active), -EINVAL);
	world_none(p.active, SIM_MS(20000));

	p.listener = world_listener(RDMA_PS_TCP);
	iwarp_establish(&p);
	iwarp_close(&p);
}

/* Seven SYNs, one second after the first, two after the second, ... */
static void nobody_answers(void **state)
{
	uint64_t start;
	struct pair p;

	(void)state;
	iwarp_open(&p);
	sim_lock();
	sim_cma_stop();
	sim_unlock();
	start = world_now();
	assert_int_equal(world_connect(p.active, NULL, 0, p.client_qp), -ETIMEDOUT);
	assert_int_equal(world_now() - start, SIM_MS(127000));
	assert_int_equal(p.active->sim.state, CMA_ROUTE_RESOLVED);
	iwarp_close(&p);
}

static void the_host_is_gone(void **state)
{
	unsigned int addresses;
	struct pair p;

	(void)state;
	iwarp_open(&p);
	addresses = world.server.node->num_addresses;
	world.server.node->num_addresses = 0;
	sim_fabric_addresses++;
	assert_int_equal(world_connect(p.active, NULL, 0, p.client_qp), -EHOSTUNREACH);
	assert_int_equal(p.active->sim.state, CMA_ROUTE_RESOLVED);
	world.server.node->num_addresses = addresses;
	sim_fabric_addresses++;
	iwarp_establish(&p);
	iwarp_close(&p);
}

static void the_qp_must_exist(void **state)
{
	struct pair p;

	(void)state;
	iwarp_open(&p);
	assert_int_equal(world_connect(p.active, NULL, 0, NULL), -EINVAL);
	assert_int_equal(p.active->sim.state, CMA_ROUTE_RESOLVED);
	iwarp_request(&p);
	/* An accept with a wrong number rejects the request. */
	assert_int_equal(world_accept(p.child, NULL, 0, NULL), -EINVAL);
	world_expect(p.active, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
	iwarp_close(&p);
}

static void a_full_backlog_rejects(void **state)
{
	struct pair p;

	(void)state;
	iwarp_open(&p);
	p.listener->backlog = 0;
	assert_int_equal(world_connect(p.active, NULL, 0, p.client_qp), 0);
	world_expect(p.active, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
	assert_int_equal(sim_cma_live_ids(), 2);
	iwarp_close(&p);
}

/* Each allocation fails in turn: the call does, or the peer is silent, and nothing is left. */
static void without_memory(void **state)
{
	unsigned int nth = 0, refused = 0;
	bool failed;
	struct pair p;
	int r;

	(void)state;
	do {
		iwarp_open(&p);
		world.fail_allocation = ++nth;
		r = world_connect(p.active, "hello", 5, p.client_qp);
		failed = !world.fail_allocation;
		world.fail_allocation = 0;
		if (r) {
			assert_true(failed);
			assert_int_equal(r, -ENOMEM);
			refused++;
		}
		iwarp_close(&p);
	} while (failed);
	/* The connection, its handshake and the table of streams. */
	assert_int_equal(refused, 3);
}

/* --- Time. --- */

static void a_missing_reply_times_out(void **state)
{
	uint64_t start;
	struct pair p;

	(void)state;
	iwarp_open(&p);
	assert_int_equal(world_connect(p.active, NULL, 0, p.client_qp), 0);
	start = world_now();
	p.child = world_request(p.listener);
	world_expect(p.active, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_int_equal(world_now() - start, SIM_MS(10000));
	/* The stream is closed, which the other side learns when it answers. */
	world_none(p.child, SIM_MS(1));
	assert_int_equal(world_accept(p.child, NULL, 0, p.server_qp), -ECONNRESET);
	assert_int_equal(world_accept(p.child, NULL, 0, p.server_qp), -EINVAL);
	assert_int_equal(world_qp_state(p.server_qp), IBV_QPS_INIT);
	iwarp_close(&p);

	iwarp_open(&p);
	iwarp_request(&p);
	world_expect(p.active, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	world_advance(SIM_MS(1));
	assert_int_equal(iwarp_reject(&p, "no", 2), -ECONNRESET);
	iwarp_close(&p);
}

static void connect_waits_for_the_stream(void **state)
{
	uint64_t start;
	struct pair p;

	(void)state;
	iwarp_open(&p);
	start = world_now();
	assert_int_equal(world_connect(p.active, NULL, 0, p.client_qp), 0);
	assert_true(world_now() > start);
	world_none(p.listener, 0);
	p.child = world_request(p.listener);
	iwarp_close(&p);
}

/* --- Calls that iWARP answers in its own way. --- */

static void establish_rejects(void **state)
{
	struct pair p;

	(void)state;
	iwarp_open(&p);
	iwarp_request(&p);
	assert_int_equal(sim_cma_ops.establish(&p.active->sim), -EINVAL);
	assert_int_equal(sim_cma_ops.establish(&p.child->sim), -EINVAL);
	iwarp_check_data(world_expect(p.active, RDMA_CM_EVENT_REJECTED, -ECONNRESET), 0);
	iwarp_close(&p);
}

static void qp_attributes(void **state)
{
	static const struct {
		enum ibv_qp_state to;
		int result, before, after;	/* masks, without and with a connection */
	} cases[] = {
		{ IBV_QPS_INIT, 0, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT,
		  IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT },
		{ IBV_QPS_RTR, 0, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT,
		  IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT },
		{ IBV_QPS_RTS, 0, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT, IBV_QP_PORT },
		{ IBV_QPS_SQD, -EINVAL, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT, 0 },
	};
	struct ibv_qp_attr attr;
	struct pair p;
	int mask;

	(void)state;
	iwarp_open(&p);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		attr.qp_state = cases[i].to;
		assert_int_equal(sim_cma_ops.init_qp_attr(&p.active->sim, &attr, &mask), 0);
		assert_int_equal(mask, cases[i].before);
		assert_int_equal(attr.qp_access_flags, 0);
		assert_int_equal(attr.port_num, 1);
	}
	iwarp_request(&p);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		attr.qp_state = cases[i].to;
		assert_int_equal(sim_cma_ops.init_qp_attr(&p.child->sim, &attr, &mask),
				 cases[i].result);
		if (cases[i].result)
			continue;
		assert_int_equal(mask, cases[i].after);
		if (mask & IBV_QP_ACCESS_FLAGS)
			assert_int_equal(attr.qp_access_flags,
					 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	}
	iwarp_close(&p);
}

/* Datagrams: all goes well until something would have to be sent. */
static void no_datagrams(void **state)
{
	struct polycm_id *listener, *active;

	(void)state;
	world_open(IWARP);
	listener = world_listener(RDMA_PS_UDP);
	active = world_resolved(RDMA_PS_UDP);
	assert_int_equal(world_connect(active, NULL, 0, NULL), -EINVAL);
	world_destroy(active);
	world_destroy(listener);
	world_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_carry_exact_lengths),
		cmocka_unit_test(replies_carry_exact_lengths),
		cmocka_unit_test(rejects_carry_exact_lengths),
		cmocka_unit_test(too_much_data),
		cmocka_unit_test(too_much_data_to_reject),
		cmocka_unit_test(too_much_data_to_connect),
		cmocka_unit_test(depths_are_negotiated),
		cmocka_unit_test(depths_over_the_device),
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(nobody_answers),
		cmocka_unit_test(the_host_is_gone),
		cmocka_unit_test(the_qp_must_exist),
		cmocka_unit_test(a_full_backlog_rejects),
		cmocka_unit_test(without_memory),
		cmocka_unit_test(a_missing_reply_times_out),
		cmocka_unit_test(connect_waits_for_the_stream),
		cmocka_unit_test(establish_rejects),
		cmocka_unit_test(qp_attributes),
		cmocka_unit_test(no_datagrams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
