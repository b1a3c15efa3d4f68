/* SPDX-License-Identifier: BSD-2-Clause */
/* What QPs do when their device is removed, their port is down or their peer's node is dead. */
#include "config.h"

#include <errno.h>

#include "providers/soft/fabric/world.h"
#include "nic_pair.h"

#define FOUR_RETRIES (4 * (4096ull << 14))	/* of time-out 14 with retry_cnt 3 */

static void open_pair(enum pair_transport transport, bool srq)
{
	struct pair_conn conn = pair_defaults();

	pair_open(transport);
	conn.srq = srq;
	conn.retry_cnt = 3;
	pair_connect(&conn);
}

static void removed(void **state)
{
	(void)state;
	for (enum pair_transport t = 0; t < PAIR_TRANSPORTS; t++) {
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
		struct ibv_ah_attr ah = { .port_num = 1 };

		open_pair(t, false);
		assert_int_equal(pair_recv(&a, 1, 0, 8), 0);
		assert_int_equal(pair_send(&a, 2, 0, 8), 0);
		sim_lock();
		sim_device_remove(a.device);
		sim_unlock();
		/* What was posted is flushed, as far as it had not gone: TCP had taken it. */
		pair_expect(&a, 2, t == PAIR_IWARP ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
		pair_expect(&a, 1, IBV_WC_WR_FLUSH_ERR);
		pair_async(&a, IBV_EVENT_DEVICE_FATAL);
		pair_no_async(&a);
		assert_int_equal(pair_closed_by_nic, t == PAIR_IWARP);
		assert_int_equal(pair_state(a.qp), IBV_QPS_ERR);
		/* And that is all that is left to do with it. */
		assert_int_equal(pair_send(&a, 3, 0, 8), EIO);
		assert_int_equal(pair_recv(&a, 3, 0, 8), EIO);
		assert_int_equal(sim_verbs.modify_qp(a.qp, &attr, IBV_QP_STATE), EIO);
		assert_null(sim_verbs.create_ah(a.pd, &ah));
		pair_none(&a, SIM_MS(1));
		pair_close();
	}
}

static void removed_with_a_shared_queue(void **state)
{
	(void)state;
	open_pair(PAIR_ROCE, true);
	assert_int_equal(pair_recv(&b, 1, 0, 8), 0);
	sim_lock();
	sim_device_remove(b.device);
	sim_unlock();
	assert_int_equal(pair_recv(&b, 2, 0, 8), EIO);
	pair_async(&b, IBV_EVENT_QP_LAST_WQE_REACHED);
	pair_async(&b, IBV_EVENT_DEVICE_FATAL);
	pair_close();
}

/* Peers notice nothing but silence. */
static void the_peer_of_a_removed_device(void **state)
{
	uint64_t start;

	(void)state;
	open_pair(PAIR_ROCE, false);
	sim_lock();
	sim_device_remove(b.device);
	sim_unlock();
	start = sim_now();
	assert_int_equal(pair_send(&a, 1, 0, 8), 0);
	pair_expect(&a, 1, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(sim_now() - start, FOUR_RETRIES);
	assert_int_equal(pair_state(a.qp), IBV_QPS_ERR);
	pair_async(&b, IBV_EVENT_DEVICE_FATAL);
	pair_close();
}

static void set_port(struct pair_side *side, bool up)
{
	sim_lock();
	sim_port_set_state(&side->device->ports[0], up);
	sim_unlock();
	pair_async(side, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

/* Which port is down, for how long, and how a request ends then. */
static const struct {
	bool ours;
	uint64_t ns;
	enum ibv_wc_status status;
	uint64_t after;
} downs[] = {
	{ true, 0, IBV_WC_RETRY_EXC_ERR, FOUR_RETRIES },
	{ false, 0, IBV_WC_RETRY_EXC_ERR, FOUR_RETRIES },
	{ true, FOUR_RETRIES / 4 - 1, IBV_WC_SUCCESS, FOUR_RETRIES / 4 + 2 * PAIR_LATENCY },
	{ false, FOUR_RETRIES / 4 - 1, IBV_WC_SUCCESS, FOUR_RETRIES / 4 + 2 * PAIR_LATENCY },
	{ true, FOUR_RETRIES / 2, IBV_WC_SUCCESS, 3 * FOUR_RETRIES / 4 + 2 * PAIR_LATENCY },
};

static void a_port_that_is_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(downs); i++) {
		struct pair_side *side = downs[i].ours ? &a : &b;
		uint64_t start;

		open_pair(PAIR_ROCE, false);
		assert_int_equal(pair_recv(&b, 9, 100, 8), 0);
		set_port(side, false);
		start = sim_now();
		assert_int_equal(pair_send(&a, 1, 0, 8), 0);
		if (downs[i].ns) {
			assert_int_equal(sim_advance(downs[i].ns), 0);
			set_port(side, true);
		}
		pair_expect(&a, 1, downs[i].status);
		assert_int_equal(sim_now() - start, downs[i].after);
		pair_close();
	}
}

/* The dead node's own time-outs stand still. */
static void a_node_that_is_dead(void **state)
{
	uint64_t start;

	(void)state;
	open_pair(PAIR_ROCE, false);
	sim_lock();
	sim_node_freeze_until(b.node, SIM_NEVER);
	sim_unlock();
	start = sim_now();
	assert_int_equal(pair_send(&b, 2, 0, 8), 0);
	assert_int_equal(pair_send(&a, 1, 0, 8), 0);
	pair_expect(&a, 1, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(sim_now() - start, FOUR_RETRIES);
	pair_none(&b, 2 * FOUR_RETRIES);
	pair_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(removed),
		cmocka_unit_test(removed_with_a_shared_queue),
		cmocka_unit_test(the_peer_of_a_removed_device),
		cmocka_unit_test(a_port_that_is_down),
		cmocka_unit_test(a_node_that_is_dead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
