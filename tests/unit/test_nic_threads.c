/* SPDX-License-Identifier: BSD-2-Clause */
/* Several threads on one NIC with the real clock: some poll, some wait for events. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nic_pair.h"
#include "providers/soft/nic/objects.h"

enum { PAIRS = 3, MESSAGES = 400, LEN = 100 };

struct connection {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq[2];		/* of A, of B */
	struct ibv_qp *qp[2];
	pthread_t thread[2];
	unsigned int failures;
	size_t offset;			/* of its part of both buffers */
};

static struct connection connections[PAIRS];

static int post(struct pair_side *side, struct ibv_qp *qp, size_t offset, bool send)
{
	struct ibv_sge sge = pair_sge(side, offset, LEN);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad_wr;
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;

	return send ? ibv_post_send(qp, &wr, &bad_wr) : ibv_post_recv(qp, &recv, &bad_recv);
}

/* A sends what B sends back, and polls. */
static void *run_client(void *arg)
{
	struct connection *c = arg;
	struct ibv_wc wc;

	for (unsigned int i = 0; i < MESSAGES; i++) {
		memset(a.buf + c->offset, (int)i, LEN);
		if (post(&a, c->qp[0], c->offset + LEN, false) || post(&a, c->qp[0], c->offset, true))
			c->failures++;
		for (int n = 0; n < 2; n++) {
			while (!ibv_poll_cq(c->cq[0], 1, &wc))
				;
			c->failures += wc.status != IBV_WC_SUCCESS;
		}
		c->failures += memcmp(a.buf + c->offset, a.buf + c->offset + LEN, LEN) != 0;
	}
	return NULL;
}

/* B waits for an event whenever there is nothing. */
static void *run_server(void *arg)
{
	struct connection *c = arg;
	unsigned int received = 0, sent = 0, events = 0;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	while (sent < MESSAGES) {
		if (!ibv_poll_cq(c->cq[1], 1, &wc)) {
			ibv_req_notify_cq(c->cq[1], 0);
			if (!ibv_poll_cq(c->cq[1], 1, &wc)) {
				if (sim_verbs.get_cq_event(c->channel, &cq, &context))
					break;
				events++;
				continue;
			}
		}
		if (wc.status != IBV_WC_SUCCESS)
			break;
		if (!(wc.opcode & IBV_WC_RECV)) {
			sent++;
			continue;
		}
		received++;
		if (post(&b, c->qp[1], c->offset, true) ||
		    (received < MESSAGES && post(&b, c->qp[1], c->offset, false)))
			break;
	}
	sim_verbs.ack_cq_events(c->cq[1], events);
	if (received != MESSAGES || sent != MESSAGES)
		__atomic_fetch_add(&c->failures, 1000000, __ATOMIC_RELAXED);
	return NULL;
}

static void open_connection(struct connection *c, size_t index)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_cq *cq_a = a.cq, *cq_b = b.cq;

	c->failures = 0;
	c->offset = index * 4096;
	c->channel = sim_verbs.create_comp_channel(b.context);
	c->cq[0] = a.cq = sim_verbs.create_cq(a.context, 16, NULL, NULL, 0);
	c->cq[1] = b.cq = sim_verbs.create_cq(b.context, 16, NULL, c->channel, 0);
	pair_connect(&conn);
	c->qp[0] = a.qp;
	c->qp[1] = b.qp;
	a.cq = cq_a;
	b.cq = cq_b;
	a.qp = b.qp = NULL;
	assert_int_equal(post(&b, c->qp[1], c->offset, false), 0);
}

static void close_connection(struct connection *c)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(sim_verbs.destroy_qp(c->qp[i]), 0);
		assert_int_equal(sim_verbs.destroy_cq(c->cq[i]), 0);
	}
	assert_int_equal(sim_verbs.destroy_comp_channel(c->channel), 0);
}

static void threads_of_all_kinds(void **state)
{
	(void)state;
	pair_open(PAIR_ROCE);
	sim_engine_stop();
	assert_int_equal(sim_engine_start(SIM_CLOCK_REAL, 1), 0);
	for (size_t i = 0; i < PAIRS; i++)
		open_connection(&connections[i], i);
	for (size_t i = 0; i < PAIRS; i++) {
		struct connection *c = &connections[i];

		assert_int_equal(pthread_create(&c->thread[0], NULL, run_client, c), 0);
		assert_int_equal(pthread_create(&c->thread[1], NULL, run_server, c), 0);
	}
	for (size_t i = 0; i < PAIRS; i++) {
		assert_int_equal(pthread_join(connections[i].thread[0], NULL), 0);
		assert_int_equal(pthread_join(connections[i].thread[1], NULL), 0);
		assert_int_equal(connections[i].failures, 0);
	}
	for (size_t i = 0; i < PAIRS; i++)
		close_connection(&connections[i]);
	pair_close();
}

/* ------------------------------------------------------------------------
 * iWARP: a call waits until the peer has what was posted, and meanwhile another
 * thread destroys the QP.
 */

static struct ibv_qp *doomed, *successor;	/* this as soon as that is gone */
static pthread_t waiter;
static bool armed;				/* the next wait of that thread is the one */

static bool lose(const struct sim_packet *packet)
{
	(void)packet;
	return false;
}

/* The stream has ended, so nothing is to be waited for. */
static void *destroy_it(void *arg)
{
	struct pair_conn conn = pair_defaults();

	(void)arg;
	sim_lock();
	sim_qp_stream_error(nic_qp(doomed));
	sim_unlock();
	if (sim_verbs.destroy_qp(doomed))
		return NULL;
	/* As a rule where the other one was. */
	successor = pair_qp(&a, &conn);
	return NULL;
}

/* In place of the C library's: a thread that waits without the lock comes here. */
int sched_yield(void)
{
	pthread_t thread;

	if (armed && pthread_equal(pthread_self(), waiter)) {
		armed = false;
		if (!pthread_create(&thread, NULL, destroy_it, NULL))
			pthread_join(thread, NULL);
	}
	return (int)syscall(SYS_sched_yield);
}

static int send_one(struct ibv_qp *qp)
{
	return post(&a, qp, 0, true);
}

static int post_and_sleep(struct ibv_qp *qp)
{
	ibv_req_notify_cq(qp->send_cq, 0);
	armed = true;
	return send_one(qp);
}

static int post_after_pause(struct ibv_qp *qp)
{
	uint64_t posted;

	assert_int_equal(send_one(qp), 0);
	for (posted = sim_now(); sim_now() - posted < SIM_US(10);)
		;
	armed = true;
	return send_one(qp);
}

static int post_by_builder(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = a.cq, .recv_cq = a.cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 2, .max_recv_sge = 2 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = a.pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp_ex *ex;

	assert_int_equal(sim_verbs.destroy_qp(qp), 0);
	doomed = qp = verbs_get_ctx(a.context)->create_qp_ex(a.context, &attr);
	assert_non_null(qp);
	ex = sim_verbs.qp_to_qp_ex(qp);
	sim_lock();
	assert_int_equal(sim_qp_stream_connect(nic_qp(qp), &b.device->ports[0], b.qp->qp_num,
					       1, 1), 0);
	sim_unlock();
	ibv_req_notify_cq(qp->send_cq, 0);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	armed = true;
	return ibv_wr_complete(ex);
}

static int move_to_error(struct ibv_qp *qp)
{
	assert_int_equal(send_one(qp), 0);
	armed = true;
	return pair_modify(qp, IBV_QPS_ERR);
}

static int destroy_twice(struct ibv_qp *qp)
{
	assert_int_equal(send_one(qp), 0);
	armed = true;
	return sim_verbs.destroy_qp(qp);
}

static void qp_is_destroyed_while_a_call_waits(void **state)
{
	static const struct {
		int (*call)(struct ibv_qp *qp);
		int result;
	} rows[] = {
		{ post_and_sleep, 0 },
		{ post_after_pause, EINVAL },
		{ post_by_builder, 0 },
		{ move_to_error, EINVAL },
		{ destroy_twice, EINVAL },
	};

	(void)state;
	waiter = pthread_self();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct pair_conn conn = pair_defaults();

		pair_open(PAIR_IWARP);
		sim_engine_stop();
		assert_int_equal(sim_engine_start(SIM_CLOCK_REAL, 1), 0);
		pair_connect(&conn);
		pair_filter = lose;
		doomed = a.qp;
		successor = NULL;
		assert_int_equal(rows[i].call(doomed), rows[i].result);
		assert_false(armed);
		assert_non_null(successor);
		assert_int_equal(nic_qp(successor)->posted_at, 0);
		assert_int_equal(nic_qp(successor)->mark_at, 0);
		a.qp = successor;
		pair_disconnect();
		pair_close();
	}
}

static atomic_uint opened;

/* Until the device is gone; the last context. */
static void *open_contexts(void *device)
{
	struct ibv_context *last = NULL, *next;

	while ((next = sim_verbs.open_device(device))) {
		if (last)
			sim_verbs.close_device(last);
		last = next;
		atomic_fetch_add(&opened, 1);
	}
	return last;
}

/* Who still gets a context is told that the device is gone. */
static void device_is_removed_while_it_is_opened(void **state)
{
	struct ibv_async_event event;
	pthread_t thread;
	void *last;

	(void)state;
	pair_open(PAIR_ROCE);
	assert_int_equal(pthread_create(&thread, NULL, open_contexts, a.context->device), 0);
	while (atomic_load(&opened) < 10)
		sched_yield();
	sim_lock();
	a.device->removed = true;
	sim_nic_device_removed(a.device);
	sim_unlock();
	assert_int_equal(pthread_join(thread, &last), 0);
	assert_non_null(last);
	assert_int_equal(sim_verbs.get_async_event(last, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_DEVICE_FATAL);
	assert_int_equal(sim_verbs.close_device(last), 0);
	pair_abandon();
}

static struct ibv_dm *shared_dm;
static pthread_barrier_t both;

static void *free_dm(void *freed)
{
	(void)pthread_barrier_wait(&both);
	*(int *)freed = ibv_free_dm(shared_dm);
	return NULL;
}

/* Either there is a region of it, or it is freed. */
static void device_memory_is_freed_while_it_is_registered(void **state)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };

	(void)state;
	pair_open(PAIR_ROCE);
	assert_int_equal(pthread_barrier_init(&both, NULL, 2), 0);
	for (int i = 0; i < 500; i++) {
		struct ibv_dm *its_dm;
		struct ibv_mr *mr;
		pthread_t thread;
		int freed;

		shared_dm = ibv_alloc_dm(a.context, &attr);
		its_dm = sim_verbs.import_dm(a.context, shared_dm->handle);
		assert_int_equal(pthread_create(&thread, NULL, free_dm, &freed), 0);
		(void)pthread_barrier_wait(&both);
		mr = ibv_reg_dm_mr(a.pd, its_dm, 0, 64, IBV_ACCESS_ZERO_BASED);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(freed, mr ? EBUSY : 0);
		if (mr) {
			assert_int_equal(sim_verbs.dereg_mr(mr), 0);
			assert_int_equal(ibv_free_dm(shared_dm), 0);
		}
		sim_verbs.unimport_dm(its_dm);
	}
	(void)pthread_barrier_destroy(&both);
	pair_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_of_all_kinds),
		cmocka_unit_test(qp_is_destroyed_while_a_call_waits),
		cmocka_unit_test(device_is_removed_while_it_is_opened),
		cmocka_unit_test(device_memory_is_freed_while_it_is_registered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
