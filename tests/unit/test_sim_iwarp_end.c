/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sim_iwarp_end.c - the end of an iWARP connection: disconnecting from
 * either side, lost queue pairs, and what destroying means when.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "sim_iwarp.h"

/* --- Disconnecting. --- */

static void disconnecting_is_immediate(void **state)
{
	struct pair p;

	(void)state;
	iwarp_open(&p);
	iwarp_establish(&p);
	assert_int_equal(world_qp_state(p.client_qp), IBV_QPS_RTS);
	assert_int_equal(world_qp_state(p.server_qp), IBV_QPS_RTS);
	assert_int_equal(iwarp_disconnect(p.active), 0);
	assert_non_null(p.active->first);	/* no time passed */
	world_expect(p.active, RDMA_CM_EVENT_DISCONNECTED, 0);
	world_expect(p.child, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(world_qp_state(p.client_qp), IBV_QPS_ERR);
	assert_int_equal(world_qp_state(p.server_qp), IBV_QPS_ERR);
	assert_int_equal(iwarp_disconnect(p.child), 0);
	assert_int_equal(iwarp_disconnect(p.active), 0);
	/* One each, and no TIMEWAIT_EXIT. */
	world_none(p.active, SIM_MS(60000));
	world_none(p.child, 0);
	assert_int_equal(p.active->sim.state, CMA_CONNECT);
	iwarp_close(&p);
}

/* A second id with the queue pair of the first one gets nowhere and takes nothing from it. */
static void two_ids_name_one_qp(void **state)
{
	struct polycm_id *second;
	struct pair p;

	(void)state;
	iwarp_open(&p);
	iwarp_establish(&p);
	second = world_resolved(RDMA_PS_TCP);
	assert_int_equal(world_connect(second, NULL, 0, p.client_qp), 0);
	world_destroy(world_request(p.listener));
	world_expect(second, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
	world_destroy(second);
	assert_int_equal(world_qp_state(p.client_qp), IBV_QPS_RTS);
	/* The end of the queue pair is still told to the first. */
	assert_int_equal(world_move_qp(p.client_qp, IBV_QPS_ERR), 0);
	world_expect(p.active, RDMA_CM_EVENT_DISCONNECTED, 0);
	world_expect(p.child, RDMA_CM_EVENT_DISCONNECTED, 0);
	iwarp_close(&p);
}

static void both_disconnect(void **state)
{
	struct pair p;

	(void)state;
	iwarp_open(&p);
	iwarp_establish(&p);
	assert_int_equal(iwarp_disconnect(p.active), 0);
	assert_int_equal(iwarp_disconnect(p.child), 0);
	world_expect(p.active, RDMA_CM_EVENT_DISCONNECTED, 0);
	world_expect(p.child, RDMA_CM_EVENT_DISCONNECTED, 0);
	world_none(p.active, SIM_MS(60000));
	world_none(p.child, 0);
	iwarp_close(&p);
}

/* The program ends the stream through its queue pair: what librdmacm does. */
static void moving_the_qp_disconnects(void **state)
{
	static const enum ibv_qp_state to[] = { IBV_QPS_SQD, IBV_QPS_ERR };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(to); i++) {
		struct pair p;

		iwarp_open(&p);
		iwarp_establish(&p);
		assert_int_equal(world_move_qp(p.client_qp, to[i]), 0);
		world_expect(p.active, RDMA_CM_EVENT_DISCONNECTED, 0);
		world_expect(p.child, RDMA_CM_EVENT_DISCONNECTED, 0);
		assert_int_equal(iwarp_disconnect(p.active), 0);
		world_none(p.active, SIM_MS(60000));
		world_none(p.child, 0);
		iwarp_close(&p);
	}
}

static void losing_the_qp(void **state)
{
	uint64_t start;
	struct pair p;

	(void)state;
	/* Established. */
	iwarp_open(&p);
	iwarp_establish(&p);
	world_destroy_qp(p.server_qp);
	world_expect(p.child, RDMA_CM_EVENT_DISCONNECTED, 0);
	world_expect(p.active, RDMA_CM_EVENT_DISCONNECTED, 0);
	p.server_qp = world_qp(&world.server);
	iwarp_close(&p);

	/* Before the reply came: siw's stream holds it until that is over. */
	iwarp_open(&p);
	iwarp_request(&p);
	start = world_now();
	world_destroy_qp(p.client_qp);
	assert_in_range(world_now() - start, SIM_MS(9000), SIM_MS(11000));
	world_expect(p.active, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	world_advance(SIM_MS(1));
	assert_int_equal(iwarp_reject(&p, NULL, 0), -ECONNRESET);
	p.client_qp = world_qp(&world.client);
	iwarp_close(&p);
}

/* While it connects, by the program or by a refused rdma_accept(). */
static void an_errored_qp_waits_for_the_reply(void **state)
{
	struct pair p;

	(void)state;
	iwarp_open(&p);
	iwarp_request(&p);
	assert_int_equal(world_move_qp(p.client_qp, IBV_QPS_ERR), 0);
	world_none(p.active, SIM_MS(1000));
	assert_int_equal(iwarp_reject(&p, world_data, 3), 0);
	iwarp_check_data(world_expect(p.active, RDMA_CM_EVENT_REJECTED, -ECONNRESET), 3);
	iwarp_close(&p);
}

/* ------------------------------------------------------------------------
 * Memory is short.
 */

/* By the linker (--wrap) in malloc()'s place: the n-th from now on fails; 0: none. */
static unsigned int fail_malloc;
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	return fail_malloc && !--fail_malloc ? NULL : __real_malloc(size);
}

/* The end of a stream that there is no memory for is said later, also when the id is gone. */
static void no_end_is_lost(void **state)
{
	struct pair p;

	(void)state;
	for (unsigned int destroyed = 0; destroyed < 2; destroyed++) {
		iwarp_open(&p);
		iwarp_establish(&p);
		fail_malloc = 1;	/* the FIN; the event comes after it */
		assert_int_equal(iwarp_disconnect(p.active), 0);
		assert_int_equal(fail_malloc, 0);
		world_expect(p.active, RDMA_CM_EVENT_DISCONNECTED, 0);
		if (destroyed) {
			world_destroy(p.active);
			p.active = NULL;
		}
		world_expect(p.child, RDMA_CM_EVENT_DISCONNECTED, 0);
		iwarp_close(&p);
	}
}

static void disconnecting_while_connecting_waits(void **state)
{
	uint64_t start;
	struct pair p;

	(void)state;
	iwarp_open(&p);
	iwarp_request(&p);
	assert_int_equal(iwarp_disconnect(p.child), 0);	/* says nothing */
	world_none(p.active, SIM_MS(1));
	start = world_now();
	assert_int_equal(iwarp_disconnect(p.active), 0);
	assert_in_range(world_now() - start, SIM_MS(9000), SIM_MS(10000));
	world_expect(p.active, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	iwarp_close(&p);
}

/* --- Destroying. --- */

static void destroy_established(void **state)
{
	struct pair p;

	(void)state;
	iwarp_open(&p);
	iwarp_establish(&p);
	world_destroy(p.active);
	p.active = NULL;
	assert_int_equal(world_qp_state(p.client_qp), IBV_QPS_ERR);
	world_expect(p.child, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(world_qp_state(p.server_qp), IBV_QPS_ERR);
	iwarp_close(&p);
}

static void destroy_a_request(void **state)
{
	struct pair p;

	(void)state;
	iwarp_open(&p);
	iwarp_request(&p);
	world_destroy(p.child);
	p.child = NULL;
	iwarp_check_data(world_expect(p.active, RDMA_CM_EVENT_REJECTED, -ECONNRESET), 0);
	iwarp_close(&p);
}

/* Requests that nobody fetched go with their listener. */
static void destroy_a_listener(void **state)
{
	struct pair p;

	(void)state;
	iwarp_open(&p);
	assert_int_equal(world_connect(p.active, NULL, 0, p.client_qp), 0);
	world_advance(SIM_MS(1));
	world_destroy(p.listener);
	p.listener = NULL;
	world_expect(p.active, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
	iwarp_close(&p);
}

/* The kernel waits for the answer, at most the 10 s of the MPA reply. */
static void destroy_while_connecting(void **state)
{
	uint64_t start;
	struct pair p;

	(void)state;
	iwarp_open(&p);
	iwarp_request(&p);
	start = world_now();
	world_destroy(p.active);
	p.active = NULL;
	assert_in_range(world_now() - start, SIM_MS(9000), SIM_MS(10000));
	world_advance(SIM_MS(1));
	assert_int_equal(world_accept(p.child, NULL, 0, p.server_qp), -ECONNRESET);
	iwarp_close(&p);

	/* Accepted in the meantime: the acceptor sees both. */
	iwarp_open(&p);
	iwarp_request(&p);
	world_end(p.active);
	assert_int_equal(world_accept(p.child, NULL, 0, p.server_qp), 0);
	start = world_now();
	world_destroy(p.active);
	p.active = NULL;
	assert_in_range(world_now() - start, 1, SIM_MS(1));
	world_expect(p.child, RDMA_CM_EVENT_ESTABLISHED, 0);
	world_expect(p.child, RDMA_CM_EVENT_DISCONNECTED, 0);
	iwarp_close(&p);
}

static void destroy_what_is_over(void **state)
{
	struct pair p;

	(void)state;
	iwarp_open(&p);
	iwarp_request(&p);
	assert_int_equal(iwarp_reject(&p, NULL, 0), 0);
	world_expect(p.active, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
	iwarp_close(&p);
	iwarp_open(&p);
	iwarp_establish(&p);
	assert_int_equal(iwarp_disconnect(p.child), 0);
	iwarp_close(&p);
}

/* What the process's end does: every peer learns it. */
static void abandoned_ids_tell_their_peers(void **state)
{
	struct pair p;

	(void)state;
	iwarp_open(&p);
	iwarp_establish(&p);
	p.active->sim.number += 100;	/* only the active one is ours */
	sim_cma_forked();
	assert_false(sim_cma_has_own());
	sim_lock();
	sim_cma_abandon_all();
	sim_unlock();
	world_expect(p.child, RDMA_CM_EVENT_DISCONNECTED, 0);
	p.child->sim.number += 100;	/* a copy would keep its memory */
	iwarp_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(disconnecting_is_immediate),
		cmocka_unit_test(two_ids_name_one_qp),
		cmocka_unit_test(both_disconnect),
		cmocka_unit_test(moving_the_qp_disconnects),
		cmocka_unit_test(losing_the_qp),
		cmocka_unit_test(an_errored_qp_waits_for_the_reply),
		cmocka_unit_test(no_end_is_lost),
		cmocka_unit_test(disconnecting_while_connecting_waits),
		cmocka_unit_test(destroy_established),
		cmocka_unit_test(destroy_a_request),
		cmocka_unit_test(destroy_a_listener),
		cmocka_unit_test(destroy_while_connecting),
		cmocka_unit_test(destroy_what_is_over),
		cmocka_unit_test(abandoned_ids_tell_their_peers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
