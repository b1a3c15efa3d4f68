/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues and channels. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "providers/soft/engine/engine_internal.h"
#include "nic_pair.h"
#include "providers/soft/fabric/profile.h"

static void connect_default(void)
{
	struct pair_conn conn = pair_defaults();

	pair_connect(&conn);
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* One completion on A. */
static void complete_one(uint64_t wr_id)
{
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, wr_id, 0, 8, 0), 0);
	assert_int_equal(sim_advance(SIM_US(10)), 0);
}

static void expect_event(struct pair_side *side)
{
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(sim_verbs.get_cq_event(side->channel, &cq, &context), 0);
	assert_ptr_equal(cq, side->cq);
	assert_ptr_equal(context, side);
	sim_verbs.ack_cq_events(cq, 1);
}

static void create_checks_its_arguments(void **state)
{
	static const struct { int cqe, vector, err; } cases[] = {
		{ 1, 0, 0 }, { 1, 3, 0 }, { 0, 0, EINVAL }, { -1, 0, EINVAL }, { 1, -1, EINVAL },
		{ 1, 4, EINVAL }, { (1 << 22) - 1, 0, 0 }, { 1 << 22, 0, EINVAL },
	};

	(void)state;
	assert_int_equal(a.context->num_comp_vectors, 4);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_cq *cq;

		errno = 0;
		cq = sim_verbs.create_cq(a.context, cases[i].cqe, NULL, NULL, cases[i].vector);
		assert_int_equal(errno, cases[i].err);
		assert_int_equal(cq != NULL, !cases[i].err);
		if (cq) {
			assert_in_range(cq->cqe, cases[i].cqe, INT32_MAX);
			assert_int_equal(sim_verbs.destroy_cq(cq), 0);
		}
	}
	assert_null(sim_verbs.create_cq(a.context, 1, NULL, b.channel, 0));
	assert_int_equal(errno, EINVAL);
}

static void what_is_in_use_is_busy(void **state)
{
	(void)state;
	connect_default();
	assert_int_equal(sim_verbs.destroy_cq(a.cq), EBUSY);
	assert_int_equal(sim_verbs.destroy_comp_channel(a.channel), EBUSY);
}

static void polling_takes_as_many_as_asked_for(void **state)
{
	struct ibv_wc wc[10];

	(void)state;
	connect_default();
	for (uint64_t i = 0; i < 7; i++)
		complete_one(i);
	assert_int_equal(ibv_poll_cq(a.cq, 0, wc), 0);
	assert_int_equal(ibv_poll_cq(a.cq, 3, wc), 3);
	assert_int_equal(wc[0].wr_id, 0);
	assert_int_equal(wc[2].wr_id, 2);
	assert_int_equal(ibv_poll_cq(a.cq, 10, wc), 4);
	assert_int_equal(wc[0].wr_id, 3);
	assert_int_equal(wc[3].wr_id, 6);
	assert_int_equal(ibv_poll_cq(a.cq, 10, wc), 0);
}

static void armed_once_tells_once(void **state)
{
	(void)state;
	connect_default();
	complete_one(1);
	assert_false(readable(a.channel->fd));
	/* What was there before counts no more. */
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	assert_int_equal(sim_advance(SIM_MS(1)), 0);
	assert_false(readable(a.channel->fd));
	complete_one(2);
	assert_true(readable(a.channel->fd));
	complete_one(3);
	expect_event(&a);
	assert_false(readable(a.channel->fd));
	complete_one(4);
	assert_false(readable(a.channel->fd));
	for (uint64_t i = 1; i <= 4; i++)
		pair_expect(&a, i, IBV_WC_SUCCESS);
}

static void post_flagged(unsigned int flags)
{
	struct ibv_sge sge = pair_sge(&a, 0, 8);
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = flags,
	};

	assert_int_equal(pair_post(&a, &wr), 0);
	assert_int_equal(sim_advance(SIM_US(10)), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
}

static void send_flagged(unsigned int flags)
{
	assert_int_equal(pair_recv(&b, 1, 0, 8), 0);
	post_flagged(flags);
	pair_expect(&b, 1, IBV_WC_SUCCESS);
}

static void solicited_only(void **state)
{
	(void)state;
	connect_default();
	assert_int_equal(ibv_req_notify_cq(b.cq, 1), 0);
	send_flagged(0);
	assert_false(readable(b.channel->fd));
	send_flagged(IBV_SEND_SOLICITED);
	assert_true(readable(b.channel->fd));
	expect_event(&b);
	/* The weaker wish does not replace the stronger. */
	assert_int_equal(ibv_req_notify_cq(b.cq, 0), 0);
	assert_int_equal(ibv_req_notify_cq(b.cq, 1), 0);
	send_flagged(0);
	expect_event(&b);
	/* Failures always count. */
	assert_int_equal(ibv_req_notify_cq(b.cq, 1), 0);
	assert_int_equal(pair_recv(&b, 2, 0, 8), 0);
	assert_int_equal(pair_modify(b.qp, IBV_QPS_ERR), 0);
	expect_event(&b);
}

/* As mlx4's and mlx5's cards, which are told when they are armed how far the program has polled. */
static void some_cards_tell_what_was_there_before(void **state)
{
	(void)state;
	connect_default();
	a.device->attr.vendor_id = b.device->attr.vendor_id = 0x02c9;
	complete_one(1);
	complete_one(2);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	assert_false(readable(a.channel->fd));
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	assert_true(readable(a.channel->fd));
	expect_event(&a);
	/* Once for each time that it is armed. */
	complete_one(3);
	assert_false(readable(a.channel->fd));
	assert_int_equal(ibv_req_notify_cq(a.cq, 1), 0);
	assert_false(readable(a.channel->fd));
	pair_expect(&a, 2, IBV_WC_SUCCESS);
	pair_expect(&a, 3, IBV_WC_SUCCESS);
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	assert_false(readable(a.channel->fd));
	complete_one(4);
	expect_event(&a);
	pair_expect(&a, 4, IBV_WC_SUCCESS);
	/* Of what was there, a solicited one. */
	assert_int_equal(pair_recv(&b, 1, 0, 8), 0);
	assert_int_equal(pair_recv(&b, 2, 0, 8), 0);
	post_flagged(0);
	assert_int_equal(ibv_req_notify_cq(b.cq, 1), 0);
	assert_false(readable(b.channel->fd));
	post_flagged(IBV_SEND_SOLICITED);
	expect_event(&b);
	assert_int_equal(ibv_req_notify_cq(b.cq, 1), 0);
	expect_event(&b);
	pair_expect(&b, 1, IBV_WC_SUCCESS);
	pair_expect(&b, 2, IBV_WC_SUCCESS);
	assert_int_equal(ibv_req_notify_cq(b.cq, 1), 0);
	assert_false(readable(b.channel->fd));
}

static void events_of_several_queues_come_in_order(void **state)
{
	struct ibv_cq *cqs[3], *cq;
	struct ibv_qp *qps[3];
	struct pair_conn conn = pair_defaults();
	struct ibv_cq *own = a.cq;
	void *context;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		cqs[i] = sim_verbs.create_cq(a.context, 4, &cqs[i], a.channel, 0);
		a.cq = cqs[i];
		qps[i] = pair_qp(&a, &conn);
		assert_int_equal(pair_to_init(&a, qps[i], &conn), 0);
		assert_int_equal(ibv_req_notify_cq(cqs[i], 0), 0);
	}
	a.cq = own;
	/* A flushed receive is a completion. */
	for (size_t i = 0; i < 3; i++) {
		size_t n = (i + 1) % 3;

		a.qp = qps[n];
		assert_int_equal(pair_modify(qps[n], IBV_QPS_ERR), 0);
		assert_int_equal(pair_recv(&a, n, 0, 8), 0);
	}
	a.qp = NULL;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(sim_verbs.get_cq_event(a.channel, &cq, &context), 0);
		assert_ptr_equal(cq, cqs[(i + 1) % 3]);
		assert_ptr_equal(context, &cqs[(i + 1) % 3]);
		sim_verbs.ack_cq_events(cq, 1);
	}
	assert_false(readable(a.channel->fd));
	/* An event that nobody read goes with its queue. */
	assert_int_equal(ibv_req_notify_cq(cqs[0], 0), 0);
	a.qp = qps[0];
	assert_int_equal(pair_recv(&a, 9, 0, 8), 0);
	a.qp = NULL;
	assert_true(readable(a.channel->fd));
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(sim_verbs.destroy_qp(qps[i]), 0);
		assert_int_equal(sim_verbs.destroy_cq(cqs[i]), 0);
	}
	assert_false(readable(a.channel->fd));
}

static void waiting_moves_virtual_time(void **state)
{
	uint64_t start = sim_now();

	(void)state;
	connect_default();
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, 1, 0, 8, 0), 0);
	expect_event(&a);
	assert_int_equal(sim_now() - start, 2 * PAIR_LATENCY);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
}

static void waiting_in_vain_is_a_deadlock(void **state)
{
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;

	(void)state;
	errno = 0;
	assert_int_equal(sim_verbs.get_cq_event(a.channel, &cq, &context), -1);
	assert_int_equal(errno, EDEADLK);
	errno = 0;
	assert_int_equal(sim_verbs.get_async_event(a.context, &event), -1);
	assert_int_equal(errno, EDEADLK);
}

static void nonblocking_channels(void **state)
{
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;
	int flags = fcntl(a.channel->fd, F_GETFL);

	(void)state;
	assert_false(flags & O_NONBLOCK);
	assert_int_equal(fcntl(a.channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
	assert_int_equal(sim_verbs.get_cq_event(a.channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	flags = fcntl(a.context->async_fd, F_GETFL);
	assert_int_equal(fcntl(a.context->async_fd, F_SETFL, flags | O_NONBLOCK), 0);
	assert_int_equal(sim_verbs.get_async_event(a.context, &event), -1);
	assert_int_equal(errno, EAGAIN);
	connect_default();
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	complete_one(1);
	expect_event(&a);
	assert_int_equal(sim_verbs.get_cq_event(a.channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
}

static void *ack_later(void *arg)
{
	sim_verbs.ack_cq_events(arg, 2);
	return NULL;
}

static void destroying_waits_for_acknowledgements(void **state)
{
	struct ibv_cq *cq;
	pthread_t thread;
	void *context;

	(void)state;
	connect_default();
	for (uint64_t i = 0; i < 2; i++) {
		assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
		complete_one(i);
		assert_int_equal(sim_verbs.get_cq_event(a.channel, &cq, &context), 0);
	}
	pair_disconnect();
	assert_int_equal(pthread_create(&thread, NULL, ack_later, a.cq), 0);
	assert_int_equal(sim_verbs.destroy_cq(a.cq), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	a.cq = sim_verbs.create_cq(a.context, 1, NULL, NULL, 0);
}

static void full_queue_is_an_error(void **state)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_cq *own = a.cq;
	struct ibv_wc wc[8];

	(void)state;
	a.cq = sim_verbs.create_cq(a.context, 3, NULL, NULL, 0);
	assert_int_equal(a.cq->cqe, 3);
	pair_connect(&conn);
	for (uint64_t i = 0; i < 3; i++)
		complete_one(i);
	pair_no_async(&a);
	complete_one(3);
	pair_async(&a, IBV_EVENT_CQ_ERR);
	pair_async(&a, IBV_EVENT_QP_FATAL);
	pair_no_async(&a);
	assert_int_equal(pair_state(a.qp), IBV_QPS_ERR);
	/* What was in it can still be read, but nothing more comes. */
	assert_int_equal(ibv_poll_cq(a.cq, 8, wc), 3);
	assert_int_equal(wc[2].wr_id, 2);
	assert_int_equal(pair_recv(&a, 9, 0, 8), 0);
	assert_int_equal(ibv_poll_cq(a.cq, 8, wc), 0);
	assert_int_equal(sim_verbs.destroy_qp(a.qp), 0);
	a.qp = NULL;
	assert_int_equal(sim_verbs.destroy_cq(a.cq), 0);
	a.cq = own;
}

static void resizing_keeps_what_is_in_it(void **state)
{
	(void)state;
	connect_default();
	for (uint64_t round = 0; round < 5; round++) {
		static const int sizes[] = { 10, 300, 11, 64, 10 };

		for (uint64_t i = 0; i < 10; i++)
			complete_one(i);
		assert_int_equal(sim_verbs.resize_cq(a.cq, 9), EINVAL);
		assert_int_equal(sim_verbs.resize_cq(a.cq, 0), EINVAL);
		assert_int_equal(sim_verbs.resize_cq(a.cq, 1 << 22), EINVAL);
		assert_int_equal(sim_verbs.resize_cq(a.cq, sizes[round]), 0);
		assert_int_equal(a.cq->cqe, sizes[round]);
		for (uint64_t i = 0; i < 10; i++)
			pair_expect(&a, i, IBV_WC_SUCCESS);
	}
	pair_no_async(&a);
}

static void extended_queue_is_read_through_a_cursor(void **state)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_poll_cq_attr poll_attr = { 0 };
	struct ibv_cq *own = a.cq;
	struct ibv_cq_ex *cq;

	(void)state;
	attr.wc_flags = IBV_WC_EX_WITH_CVLAN;
	assert_null(ibv_create_cq_ex(a.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
	cq = ibv_create_cq_ex(a.context, &attr);
	assert_non_null(cq);
	a.cq = ibv_cq_ex_to_cq(cq);
	connect_default();
	assert_int_equal(ibv_start_poll(cq, &poll_attr), ENOENT);
	for (uint64_t i = 0; i < 2; i++)
		complete_one(i);
	assert_int_equal(ibv_start_poll(cq, &poll_attr), 0);
	assert_int_equal(cq->wr_id, 0);
	assert_int_equal(cq->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RDMA_WRITE);
	assert_int_equal(ibv_wc_read_qp_num(cq), a.qp->qp_num);
	assert_int_equal(ibv_wc_read_byte_len(cq), 8);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(cq->wr_id, 1);
	assert_int_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	/* The plain way works too. */
	complete_one(7);
	pair_expect(&a, 7, IBV_WC_SUCCESS);
	assert_int_equal(sim_verbs.destroy_qp(a.qp), 0);
	a.qp = NULL;
	assert_int_equal(sim_verbs.destroy_cq(a.cq), 0);
	a.cq = own;
}

/* Times are those of completing, whenever they are read, also after the queue was resized. */
static void completions_have_their_times(void **state)
{
	static struct sim_profile slow = { .core_clock_khz = 156250, .timestamp_mask = 0xffff };
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 2,
		.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_poll_cq_attr poll_attr = { 0 };
	struct ibv_cq *own = a.cq;
	struct ibv_cq_ex *cq;
	uint64_t time = 0, wallclock = 0, begin = sim_now();

	(void)state;
	cq = ibv_create_cq_ex(a.context, &attr);
	assert_non_null(cq);
	a.cq = ibv_cq_ex_to_cq(cq);
	connect_default();
	for (uint64_t i = 0; i < 3; i++) {
		if (i == 2)
			assert_int_equal(sim_verbs.resize_cq(a.cq, 7), 0);
		complete_one(i);
		assert_int_equal(sim_advance(SIM_US(10) << i), 0);
	}
	assert_int_equal(ibv_start_poll(cq, &poll_attr), 0);
	for (unsigned int i = 0; i < 3; i++) {
		if (i) {
			uint64_t later = SIM_US(10) + (SIM_US(10) << (i - 1));

			assert_int_equal(ibv_wc_read_completion_ts(cq), time + later);
			assert_int_equal(ibv_wc_read_completion_wallclock_ns(cq), wallclock + later);
		}
		time = ibv_wc_read_completion_ts(cq);
		wallclock = ibv_wc_read_completion_wallclock_ns(cq);
		assert_in_range(time, begin, begin + SIM_US(60));
		a.device->profile = &slow;
		assert_int_equal(ibv_wc_read_completion_ts(cq), time * 15625 / 100000 & 0xffff);
		a.device->profile = NULL;
		assert_int_equal(ibv_next_poll(cq), i < 2 ? 0 : ENOENT);
	}
	ibv_end_poll(cq);
	assert_int_equal(sim_verbs.destroy_qp(a.qp), 0);
	a.qp = NULL;
	assert_int_equal(sim_verbs.destroy_cq(a.cq), 0);
	a.cq = own;
}

/* --- Real clock: threads that wait. --- */

static void *wait_for_event(void *arg)
{
	struct ibv_cq *cq;
	void *context;

	(void)arg;
	return (void *)(intptr_t)sim_verbs.get_cq_event(a.channel, &cq, &context);
}

static void ignore(int signal)
{
	(void)signal;
}

/* AddressSanitizer takes the end of a cancelled thread for an error. */
#if defined(__SANITIZE_ADDRESS__)
#define CANCEL_WORKS false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CANCEL_WORKS false
#endif
#endif
#ifndef CANCEL_WORKS
#define CANCEL_WORKS true
#endif

static void handle_signals(int flags)
{
	struct sigaction action = { .sa_handler = ignore, .sa_flags = flags };

	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
}

static void interrupt(pthread_t thread)
{
	void *result;

	/* It may not wait yet when the signal comes. */
	while (pthread_tryjoin_np(thread, &result) == EBUSY) {
		pthread_kill(thread, SIGUSR1);
		sched_yield();
	}
	assert_int_equal((intptr_t)result, -1);
}

/* A signal ends the wait only if the program wants it to, as it would that of a read(). */
static void signals_and_cancellation(void **state)
{
	pthread_t thread;
	void *result;

	(void)state;
	sim_engine_stop();
	assert_int_equal(sim_engine_start(SIM_CLOCK_REAL, 1), 0);
	handle_signals(0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_event, NULL), 0);
	interrupt(thread);

	handle_signals(SA_RESTART);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_event, NULL), 0);
	for (int n = 0; n < 100; n++) {
		pthread_kill(thread, SIGUSR1);
		sched_yield();
	}
	assert_int_equal(pthread_tryjoin_np(thread, &result), EBUSY);
	if (!CANCEL_WORKS) {
		handle_signals(0);
		interrupt(thread);
		return;
	}
	assert_int_equal(pthread_cancel(thread), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
}

/* Virtual time: threads that wait have to look before it goes on, though no timer came of it. */
static void an_event_is_a_change(void **state)
{
	struct pair_conn conn = pair_defaults();
	uint64_t before;

	(void)state;
	pair_open(PAIR_ROCE);
	pair_connect(&conn);
	assert_int_equal(pair_recv(&a, 1, 0, 8), 0);
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	sim_lock();
	before = sim_engine.changes;
	sim_unlock();
	assert_int_equal(pair_modify(a.qp, IBV_QPS_ERR), 0);
	sim_lock();
	assert_true(sim_engine.changes > before);
	assert_int_equal(sim_engine.woken_at, sim_engine.changes);
	sim_unlock();
	pair_expect(&a, 1, IBV_WC_WR_FLUSH_ERR);
	pair_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_is_a_change),
		cmocka_unit_test_setup_teardown(create_checks_its_arguments, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(what_is_in_use_is_busy, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(polling_takes_as_many_as_asked_for, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(armed_once_tells_once, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(solicited_only, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(some_cards_tell_what_was_there_before, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(events_of_several_queues_come_in_order, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(waiting_moves_virtual_time, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(waiting_in_vain_is_a_deadlock, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(nonblocking_channels, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(destroying_waits_for_acknowledgements, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(full_queue_is_an_error, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(resizing_keeps_what_is_in_it, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(completions_have_their_times, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(extended_queue_is_read_through_a_cursor, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(signals_and_cancellation, open_roce, close_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
