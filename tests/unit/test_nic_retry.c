/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RNR retries and ACK time-outs with their exact times, and connected QPs over
 * a link that loses, repeats and reorders.
 */
#include "config.h"

#include <stdlib.h>

#include "nic_pair.h"
#include "providers/soft/nic/rc_internal.h"

static unsigned int seen, dropped;

static int open_counted(void **state)
{
	(void)state;
	pair_open(PAIR_ROCE);
	seen = dropped = 0;
	return 0;
}

static struct rc_header header_of(const struct sim_packet *packet)
{
	struct rc_header h;

	memcpy(&h, packet->data, sizeof(h));
	return h;
}

static bool count_sends(const struct sim_packet *packet)
{
	seen += header_of(packet).op == RC_SEND;
	return true;
}

/* IBTA vol. 1, table 45: RNR NAK timer field. */
static const uint64_t rnr_us[32] = {
	655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920,
	2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880,
	163840, 245760, 327680, 491520,
};

static void rnr_retries_are_counted_and_timed(void **state)
{
	static const uint8_t codes[] = { 0, 1, 14, 31 };

	(void)state;
	pair_filter = count_sends;
	for (size_t i = 0; i < ARRAY_SIZE(codes) * 7; i++) {
		struct pair_conn conn = pair_defaults();
		uint8_t count = (uint8_t)(i % 7), code = codes[i / 7];
		uint64_t start = sim_now();

		conn.rnr_retry = count;
		conn.min_rnr_timer = code;
		/* What waits for a receive has been answered: no time-out counts meanwhile. */
		conn.timeout = 1;
		conn.retry_cnt = 0;
		pair_connect(&conn);
		seen = 0;
		assert_int_equal(pair_send(&a, 1, 0, 8), 0);
		pair_expect(&a, 1, IBV_WC_RNR_RETRY_EXC_ERR);
		assert_int_equal(sim_now() - start,
				 count * (SIM_US(rnr_us[code]) + 2 * PAIR_LATENCY) + 2 * PAIR_LATENCY);
		assert_int_equal(seen, count + 1);
		assert_int_equal(pair_state(a.qp), IBV_QPS_ERR);
		/* Nothing is wrong with the receiver. */
		assert_int_equal(pair_state(b.qp), IBV_QPS_RTS);
		pair_disconnect();
	}
}

static void every_rnr_timer_code(void **state)
{
	(void)state;
	for (uint8_t code = 0; code < 32; code++) {
		struct pair_conn conn = pair_defaults();
		uint64_t start = sim_now();

		conn.rnr_retry = 1;
		conn.min_rnr_timer = code;
		conn.timeout = 0;
		pair_connect(&conn);
		assert_int_equal(pair_send(&a, 1, 0, 8), 0);
		pair_expect(&a, 1, IBV_WC_RNR_RETRY_EXC_ERR);
		assert_int_equal(sim_now() - start, SIM_US(rnr_us[code]) + 4 * PAIR_LATENCY);
		pair_disconnect();
	}
}

static void seven_rnr_retries_are_endless(void **state)
{
	struct pair_conn conn = pair_defaults();

	(void)state;
	pair_filter = count_sends;
	conn.min_rnr_timer = 1;
	pair_connect(&conn);
	assert_int_equal(pair_send(&a, 1, 0, 8), 0);
	pair_none(&a, SIM_MS(10));
	assert_in_range(seen, 800, 1000);
	assert_int_equal(pair_recv(&b, 2, 100, 8), 0);
	pair_expect(&b, 2, IBV_WC_SUCCESS);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
}

static void success_renews_the_rnr_retries(void **state)
{
	struct pair_conn conn = pair_defaults();

	(void)state;
	conn.rnr_retry = 1;
	conn.min_rnr_timer = 14;
	pair_connect(&conn);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(pair_send(&a, i, 0, 8), 0);
		assert_int_equal(sim_advance(SIM_US(100)), 0);
		assert_int_equal(pair_recv(&b, i, 100, 8), 0);
		pair_expect(&b, i, IBV_WC_SUCCESS);
		pair_expect(&a, i, IBV_WC_SUCCESS);
	}
}

/* What was sent behind the message that had to wait is sent again, in order. */
static void rnr_keeps_the_order(void **state)
{
	struct pair_conn conn = pair_defaults();

	(void)state;
	pair_connect(&conn);
	for (uint64_t i = 0; i < 5; i++) {
		pair_fill(&a, 0, 40, 0);
		assert_int_equal(pair_send(&a, i, i * 8, 8), 0);
	}
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_READ, 5, 1000, 8, 2000), 0);
	assert_int_equal(sim_advance(SIM_US(100)), 0);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(pair_recv(&b, i, i * 8, 8), 0);
	for (uint64_t i = 0; i < 5; i++)
		pair_expect(&b, i, IBV_WC_SUCCESS);
	for (uint64_t i = 0; i < 6; i++)
		pair_expect(&a, i, IBV_WC_SUCCESS);
	pair_check(&b, 0, 40, 0);
}

static bool drop_all(const struct sim_packet *packet)
{
	(void)packet;
	dropped++;
	return false;
}

static const struct { uint8_t timeout, retry_cnt; } timeouts[] = {
	{ 1, 0 }, { 1, 7 }, { 8, 3 }, { 14, 0 }, { 14, 1 }, { 14, 7 }, { 20, 2 }, { 31, 7 },
};

static void ack_timeout_is_exact(void **state)
{
	(void)state;
	pair_filter = drop_all;
	for (size_t i = 0; i < ARRAY_SIZE(timeouts); i++) {
		struct pair_conn conn = pair_defaults();
		uint64_t start = sim_now();

		conn.timeout = timeouts[i].timeout;
		conn.retry_cnt = timeouts[i].retry_cnt;
		pair_connect(&conn);
		dropped = 0;
		assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, 1, 0, 8, 0), 0);
		pair_expect(&a, 1, IBV_WC_RETRY_EXC_ERR);
		assert_int_equal(sim_now() - start,
				 (4096ull << timeouts[i].timeout) * (timeouts[i].retry_cnt + 1u));
		assert_int_equal(dropped, timeouts[i].retry_cnt + 1);
		assert_int_equal(pair_state(a.qp), IBV_QPS_ERR);
		pair_disconnect();
	}
}

static void timeout_zero_waits_for_ever(void **state)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_wc wc;

	(void)state;
	pair_filter = drop_all;
	conn.timeout = 0;
	pair_connect(&conn);
	assert_int_equal(pair_send(&a, 1, 0, 8), 0);
	/* One packet flies, then nothing is left that could happen. */
	assert_int_equal(sim_idle(NULL), 1);
	assert_int_equal(sim_idle(NULL), -EDEADLK);
	assert_int_equal(ibv_poll_cq(a.cq, 1, &wc), 0);
	assert_int_equal(dropped, 1);
}

static void peer_that_is_gone(void **state)
{
	struct pair_conn conn = pair_defaults();

	(void)state;
	pair_connect(&conn);
	assert_int_equal(pair_modify(b.qp, IBV_QPS_ERR), 0);
	assert_int_equal(pair_send(&a, 1, 0, 8), 0);
	pair_expect(&a, 1, IBV_WC_RETRY_EXC_ERR);
}

static void idle_connections_arm_no_timer(void **state)
{
	struct pair_conn conn = pair_defaults();

	(void)state;
	pair_connect(&conn);
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, 1, 0, 8, 0), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	assert_int_equal(sim_idle(NULL), -EDEADLK);
}

/* --- A bad link. --- */

static uint32_t lose, repeat, reorder;	/* in 1000 */
static struct sim_packet held;
static uint8_t held_data[SIM_LINK_MAX_PACKET];
static bool holding;
static unsigned int random_state;

static bool chance(uint32_t of_1000)
{
	return (uint32_t)rand_r(&random_state) % 1000 < of_1000;
}

static bool bad_link(const struct sim_packet *packet)
{
	if (chance(lose)) {
		dropped++;
		return false;
	}
	if (!holding && chance(reorder)) {
		held = *packet;
		memcpy(held_data, packet->data, packet->len);
		held.data = held_data;
		holding = true;
		return false;
	}
	pair_deliver(packet);
	if (chance(repeat))
		pair_deliver(packet);
	if (holding && chance(300)) {
		holding = false;
		pair_deliver(&held);
	}
	return false;
}

enum { BATCH = 24 };

static void post_batch(uint64_t base, const size_t *lens)
{
	for (uint64_t i = 0; i < BATCH; i++) {
		pair_fill(&a, i * 1000, lens[i], (uint8_t)(base + i));
		if (i % 4 == 0)
			assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, base + i, i * 1000, lens[i],
						   i * 1000), 0);
		else if (i % 4 == 1)
			assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_READ, base + i, 30000 + i * 1000,
						   lens[i], 30000 + i * 1000), 0);
		else if (i % 4 == 2)
			assert_int_equal(pair_rdma(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, base + i,
						   60000 + i * 8, 8, 62000), 0);
		else
			assert_int_equal(pair_recv(&b, base + i, i * 1000, 1000) ||
					 pair_send(&a, base + i, i * 1000, lens[i]), 0);
	}
}

static void check_batch(uint64_t base, const size_t *lens, uint64_t *added)
{
	for (uint64_t i = 0; i < BATCH; i++) {
		pair_expect(&a, base + i, IBV_WC_SUCCESS);
		if (i % 4 == 3)
			assert_int_equal(pair_expect(&b, base + i, IBV_WC_SUCCESS).byte_len, lens[i]);
		if (i % 4 == 0 || i % 4 == 3)
			pair_check(&b, i * 1000, lens[i], (uint8_t)(base + i));
		if (i % 4 == 1)
			assert_memory_equal(a.buf + 30000 + i * 1000, b.buf + 30000 + i * 1000, lens[i]);
		if (i % 4 == 2) {
			uint64_t old;

			/* Each atomic happened once. */
			memcpy(&old, a.buf + 60000 + i * 8, sizeof(old));
			assert_int_equal(old, *added);
			++*added;
		}
	}
}

static const struct { uint32_t lose, repeat, reorder; } links[] = {
	{ 100, 0, 0 }, { 0, 300, 0 }, { 0, 0, 200 }, { 150, 150, 150 },
};

static void nothing_is_lost_or_doubled_on_a_bad_link(void **state)
{
	(void)state;
	for (size_t l = 0; l < ARRAY_SIZE(links); l++) {
		struct pair_conn conn = pair_defaults();
		uint64_t added = 0, counter = 0;
		size_t lens[BATCH];

		lose = links[l].lose;
		repeat = links[l].repeat;
		reorder = links[l].reorder;
		random_state = (unsigned int)l + 1;
		holding = false;
		conn.timeout = 4;	/* 65 us */
		memset(b.buf, 0, PAIR_BUF);
		pair_fill(&b, 30000, 30000, 5);
		memcpy(b.buf + 62000, &counter, sizeof(counter));
		pair_connect(&conn);
		pair_filter = bad_link;
		for (uint64_t round = 0; round < 40; round++) {
			for (size_t i = 0; i < BATCH; i++)
				lens[i] = (size_t)rand_r(&random_state) % 1000;
			post_batch(round * 100, lens);
			check_batch(round * 100, lens, &added);
		}
		pair_filter = NULL;
		pair_none(&b, SIM_MS(10));
		if (lose)
			assert_int_not_equal(dropped, 0);
		pair_disconnect();
	}
}

static void large_messages_on_a_bad_link(void **state)
{
	struct pair_conn conn = pair_defaults();

	(void)state;
	lose = repeat = reorder = 100;
	random_state = 3;
	holding = false;
	conn.timeout = 4;
	pair_connect(&conn);
	pair_filter = bad_link;
	for (uint64_t i = 0; i < 200; i++) {
		pair_fill(&a, 0, 20000, (uint8_t)i);
		assert_int_equal(pair_recv(&b, i, 20000, 20000), 0);
		assert_int_equal(pair_send(&a, i, 0, 20000), 0);
		pair_expect(&a, i, IBV_WC_SUCCESS);
		pair_expect(&b, i, IBV_WC_SUCCESS);
		pair_check(&b, 20000, 20000, (uint8_t)i);
		assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_READ, i, 40000, 20000, 20000), 0);
		pair_expect(&a, i, IBV_WC_SUCCESS);
		pair_check(&a, 40000, 20000, (uint8_t)i);
	}
	pair_filter = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rnr_retries_are_counted_and_timed, open_counted,
						close_pair),
		cmocka_unit_test_setup_teardown(every_rnr_timer_code, open_counted, close_pair),
		cmocka_unit_test_setup_teardown(seven_rnr_retries_are_endless, open_counted,
						close_pair),
		cmocka_unit_test_setup_teardown(success_renews_the_rnr_retries, open_counted,
						close_pair),
		cmocka_unit_test_setup_teardown(rnr_keeps_the_order, open_counted, close_pair),
		cmocka_unit_test_setup_teardown(ack_timeout_is_exact, open_counted, close_pair),
		cmocka_unit_test_setup_teardown(timeout_zero_waits_for_ever, open_counted, close_pair),
		cmocka_unit_test_setup_teardown(peer_that_is_gone, open_counted, close_pair),
		cmocka_unit_test_setup_teardown(idle_connections_arm_no_timer, open_counted,
						close_pair),
		cmocka_unit_test_setup_teardown(nothing_is_lost_or_doubled_on_a_bad_link, open_counted,
						close_pair),
		cmocka_unit_test_setup_teardown(large_messages_on_a_bad_link, open_counted,
						close_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
