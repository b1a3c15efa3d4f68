/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No memory is left once objects were made: what has to be reported still is.
 * The linker sends the simulator's allocations through here.
 */
#include "config.h"

#include <stdlib.h>

#include "providers/soft/nic/context.h"
#include "providers/soft/nic/qp.h"
#include "providers/soft/nic/verbs.h"
#include "nic_pair.h"

static bool fails;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	return fails ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t num, size_t size);
void *__wrap_calloc(size_t num, size_t size);

void *__wrap_calloc(size_t num, size_t size)
{
	return fails ? NULL : __real_calloc(num, size);
}

static int open_connected(void **state)
{
	struct pair_conn conn = pair_defaults();

	(void)state;
	pair_open(PAIR_ROCE);
	conn.srq = true;
	pair_connect(&conn);
	return 0;
}

static int close_connected(void **state)
{
	(void)state;
	fails = false;
	pair_close();
	return 0;
}

/* From the first packet that comes in to the next one. */
static unsigned int packets;

static bool fail_in_first(const struct sim_packet *packet)
{
	(void)packet;
	fails = packets++ == 0;
	return true;
}

static void expect_received_at_once(void)
{
	struct ibv_wc wc;
	int num;

	packets = 0;
	pair_filter = fail_in_first;
	assert_int_equal(pair_recv(&b, 1, 0, 64), 0);
	assert_int_equal(pair_send(&a, 2, 0, 64), 0);
	assert_int_equal(sim_advance(SIM_US(50)), 0);
	fails = false;
	num = sim_poll_cq(b.cq, 1, &wc);
	pair_filter = NULL;
	assert_int_equal(num, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 1);
	pair_expect(&a, 2, IBV_WC_SUCCESS);	/* its answer was lost, and is repeated */
	pair_no_async(&a);
	pair_no_async(&b);
}

static void the_first_completion_of_a_cq_needs_no_memory(void **state)
{
	struct pair_conn conn = pair_defaults();

	(void)state;
	pair_disconnect();
	pair_connect(&conn);
	expect_received_at_once();
}

static void a_receive_from_an_srq_needs_no_memory(void **state)
{
	(void)state;
	expect_received_at_once();
}

static void the_first_atomic_needs_no_memory(void **state)
{
	uint64_t *target = (uint64_t *)(void *)(b.buf + 8);

	(void)state;
	packets = 0;
	pair_filter = fail_in_first;
	*target = 41;
	assert_int_equal(pair_rdma(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8, 8), 0);
	assert_int_equal(sim_advance(SIM_US(50)), 0);
	fails = false;
	pair_filter = NULL;
	assert_int_equal(*target, 42);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	assert_int_equal(*target, 42);
	assert_int_equal(*(uint64_t *)(void *)a.buf, 41);
}

/* --- Asynchronous events. --- */

static void cq_is_full(void) { nic_async_cq(nic_cq(a.cq), IBV_EVENT_CQ_ERR); }
static void qp_established(void) { nic_async_qp(nic_qp(a.qp), IBV_EVENT_COMM_EST); }
static void qp_drained(void) { nic_async_qp(nic_qp(a.qp), IBV_EVENT_SQ_DRAINED); }
static void qp_fails(void) { nic_qp_fatal(nic_qp(a.qp), IBV_EVENT_QP_ACCESS_ERR); }
static void port_down(void) { sim_nic_port_event(&a.device->ports[0], IBV_EVENT_PORT_ERR); }
static void port_up(void) { sim_nic_port_event(&a.device->ports[0], IBV_EVENT_PORT_ACTIVE); }
static void gid_changes(void) { sim_nic_port_event(&a.device->ports[0], IBV_EVENT_GID_CHANGE); }
static void removed(void) { sim_nic_device_removed(a.device); }
static void qp_on_srq_fails(void) { nic_qp_error(nic_qp(b.qp), false); }
static void srq_runs_low(void) { nic_async_srq(nic_srq(b.srq), IBV_EVENT_SRQ_LIMIT_REACHED); }

/* In an order in which each can still happen. */
static const struct {
	void (*happens)(void);
	struct pair_side *side;
	enum ibv_event_type type;
} events[] = {
	{ cq_is_full, &a, IBV_EVENT_CQ_ERR },
	{ qp_established, &a, IBV_EVENT_COMM_EST },
	{ qp_drained, &a, IBV_EVENT_SQ_DRAINED },
	{ qp_fails, &a, IBV_EVENT_QP_ACCESS_ERR },
	{ port_down, &a, IBV_EVENT_PORT_ERR },
	{ port_up, &a, IBV_EVENT_PORT_ACTIVE },
	{ gid_changes, &a, IBV_EVENT_GID_CHANGE },
	{ removed, &a, IBV_EVENT_DEVICE_FATAL },
	{ srq_runs_low, &b, IBV_EVENT_SRQ_LIMIT_REACHED },
	{ qp_on_srq_fails, &b, IBV_EVENT_QP_LAST_WQE_REACHED },
};

static void all_happen(void)
{
	sim_lock();
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		events[i].happens();
	sim_unlock();
}

static void asynchronous_events_need_no_memory(void **state)
{
	(void)state;
	fails = true;
	all_happen();
	fails = false;
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		pair_async(events[i].side, events[i].type);
	pair_no_async(&a);
	pair_no_async(&b);
}

/* One that was not read yet stands for another of its kind only if there is no memory. */
static void the_same_event_comes_twice_while_there_is_memory(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		fails = i & 1;
		sim_lock();
		port_down();
		sim_unlock();
	}
	fails = false;
	pair_async(&a, IBV_EVENT_PORT_ERR);
	pair_async(&a, IBV_EVENT_PORT_ERR);
	pair_no_async(&a);
}

static void unread_events_go_with_their_object(void **state)
{
	(void)state;
	all_happen();
	pair_disconnect();
	pair_async(&a, IBV_EVENT_CQ_ERR);
	pair_async(&a, IBV_EVENT_PORT_ERR);
}

static void making_an_object_fails_with_enomem(void **state)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .send_cq = b.cq, .recv_cq = b.cq, .srq = b.srq, .cap = conn.cap,
	};

	(void)state;
	fails = true;
	errno = 0;
	assert_null(sim_verbs.create_cq(a.context, 4, NULL, NULL, 0));
	assert_int_equal(errno, ENOMEM);
	errno = 0;
	assert_null(sim_verbs.create_qp(b.pd, &attr));
	assert_int_equal(errno, ENOMEM);
}

int main(void)
{
#define PAIR(test) cmocka_unit_test_setup_teardown(test, open_connected, close_connected)
	const struct CMUnitTest tests[] = {
		PAIR(the_first_completion_of_a_cq_needs_no_memory),
		PAIR(a_receive_from_an_srq_needs_no_memory),
		PAIR(the_first_atomic_needs_no_memory),
		PAIR(asynchronous_events_need_no_memory),
		PAIR(the_same_event_comes_twice_while_there_is_memory),
		PAIR(unread_events_go_with_their_object),
		PAIR(making_an_object_fails_with_enomem),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
