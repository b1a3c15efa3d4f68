/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC: A sends (XRC_SEND), B receives (XRC_RECV) into SRQs of an XRC domain. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "nic_xrc.h"
#include "providers/soft/wire/rc.h"

static void the_request_names_the_srq(void **state)
{
	struct ibv_recv_wr own = { .wr_id = 9 }, *bad;
	struct ibv_wc wc;

	(void)state;
	connect_xrc(7);
	assert_int_equal(ibv_post_recv(a.qp, &own, &bad), EINVAL);
	assert_int_equal(ibv_post_recv(b.qp, &own, &bad), EINVAL);
	receive(first, 1, 0, 100);
	receive(second, 2, 1000, 40000);
	pair_fill(&a, 0, 100, 3);
	assert_int_equal(request(IBV_WR_SEND, second_number, 10, 0, 30000), 0);
	wc = pair_expect(&b, 2, IBV_WC_SUCCESS);
	assert_int_equal(wc.qp_num, b.qp->qp_num);
	assert_int_equal(wc.byte_len, 30000);
	pair_check(&b, 1000, 100, 3);
	pair_expect(&a, 10, IBV_WC_SUCCESS);
	assert_int_equal(request(IBV_WR_SEND, first_number, 11, 0, 100), 0);
	pair_expect(&b, 1, IBV_WC_SUCCESS);
	pair_expect(&a, 11, IBV_WC_SUCCESS);
	pair_check(&b, 0, 100, 3);
	end();
}

static void memory_is_of_the_srqs_pd(void **state)
{
	(void)state;
	connect_xrc(7);
	pair_fill(&a, 0, 20000, 5);
	assert_int_equal(request(IBV_WR_RDMA_WRITE, first_number, 1, 0, 20000), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_check(&b, 0, 20000, 5);
	pair_fill(&b, 0, 20000, 6);
	assert_int_equal(request(IBV_WR_RDMA_READ, second_number, 2, 0, 20000), 0);
	pair_expect(&a, 2, IBV_WC_SUCCESS);
	pair_check(&a, 0, 20000, 6);
	end();
}

static void wrong_srqs_are_refused(void **state)
{
	enum { NONE, UNKNOWN, OTHER_DOMAIN, BASIC, CASES };

	(void)state;
	for (int i = 0; i < CASES; i++) {
		struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };
		uint32_t numbers[CASES] = { 0, 0xffffff, 0, 0 };
		struct ibv_srq *foreign, *basic;
		struct ibv_xrcd *other;

		pair_open(PAIR_ROCE);
		connect_xrc(7);
		other = open_domain(&b, -1, O_CREAT);
		foreign = make_srq(other, &numbers[OTHER_DOMAIN]);
		basic = sim_verbs.create_srq(b.pd, &init);
		assert_int_equal(ibv_get_srq_num(basic, &numbers[BASIC]), 0);
		receive(first, 1, 0, 100);
		receive(foreign, 2, 0, 100);
		assert_int_equal(request(IBV_WR_SEND, numbers[i], 10, 0, 50), 0);
		assert_int_equal(request(IBV_WR_SEND, first_number, 11, 0, 50), 0);
		pair_expect(&a, 10, IBV_WC_REM_INV_REQ_ERR);
		pair_expect(&a, 11, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(pair_state(b.qp), IBV_QPS_ERR);
		pair_async(&b, IBV_EVENT_QP_REQ_ERR);
		pair_none(&b, SIM_MS(10));
		assert_int_equal(sim_verbs.destroy_srq(basic), 0);
		assert_int_equal(sim_verbs.destroy_srq(foreign), 0);
		assert_int_equal(ibv_close_xrcd(other), 0);
		end();
		pair_close();
	}
}

static void an_empty_srq_is_not_ready(void **state)
{
	(void)state;
	connect_xrc(7);
	assert_int_equal(request(IBV_WR_SEND, first_number, 10, 0, 50), 0);
	pair_none(&a, SIM_US(300));
	receive(first, 1, 0, 100);
	pair_expect(&b, 1, IBV_WC_SUCCESS);
	pair_expect(&a, 10, IBV_WC_SUCCESS);
	end();
}

static void not_ready_too_often(void **state)
{
	(void)state;
	connect_xrc(0);
	assert_int_equal(request(IBV_WR_SEND, first_number, 10, 0, 50), 0);
	pair_expect(&a, 10, IBV_WC_RNR_RETRY_EXC_ERR);
	end();
}

static unsigned int to_lose;

static bool lose(const struct sim_packet *packet)
{
	(void)packet;
	return !to_lose || !to_lose--;
}

static void losses_are_repeated(void **state)
{
	(void)state;
	connect_xrc(7);
	pair_filter = lose;
	for (uint64_t i = 0; i < 4; i++) {
		to_lose = (unsigned int)i;
		receive(i & 1 ? second : first, i, i * 1000, 500);
		pair_fill(&a, 0, 500, (uint8_t)i);
		assert_int_equal(request(IBV_WR_SEND, i & 1 ? second_number : first_number, i, 0, 500),
				 0);
		pair_expect(&b, i, IBV_WC_SUCCESS);
		pair_expect(&a, i, IBV_WC_SUCCESS);
		pair_check(&b, i * 1000, 500, (uint8_t)i);
	}
	end();
}

/* The packet finds no SRQ. */
static bool destroy_first(const struct sim_packet *packet)
{
	(void)packet;
	if (!first)
		return true;
	sim_unlock();
	assert_int_equal(sim_verbs.destroy_srq(first), 0);
	sim_lock();
	first = NULL;
	return true;
}

static void srq_goes_while_a_packet_is_under_way(void **state)
{
	(void)state;
	connect_xrc(7);
	receive(first, 1, 0, 100);
	pair_filter = destroy_first;
	assert_int_equal(request(IBV_WR_SEND, first_number, 10, 0, 50), 0);
	pair_expect(&a, 10, IBV_WC_REM_INV_REQ_ERR);
	pair_async(&b, IBV_EVENT_QP_REQ_ERR);
	end();
}

static void domains_of_files(void **state)
{
	char one[] = "/tmp/xrc-one-XXXXXX", two[] = "/tmp/xrc-two-XXXXXX";
	int fd = mkstemp(one), other_fd = mkstemp(two);
	struct ibv_context *context = sim_verbs.open_device(b.context->device);
	struct pair_side again = { .context = context };
	struct ibv_xrcd *x, *y;

	(void)state;
	assert_true(fd >= 0 && other_fd >= 0);
	assert_null(open_domain(&b, fd, 0));
	assert_int_equal(errno, EAGAIN);
	assert_null(open_domain(&b, 12345, O_CREAT));
	assert_int_equal(errno, EBADF);
	assert_null(open_domain(&b, fd, O_CREAT | O_APPEND));
	assert_int_equal(errno, EINVAL);
	x = open_domain(&b, fd, O_CREAT);
	assert_non_null(x);
	assert_null(open_domain(&again, fd, O_CREAT | O_EXCL));
	assert_int_equal(errno, EINVAL);
	assert_null(open_domain(&b, other_fd, 0));
	assert_int_equal(errno, EAGAIN);
	y = open_domain(&again, fd, 0);
	assert_non_null(y);

	/* Each opening is busy with its own objects only, and the last ends the domain. */
	first = make_srq(x, &first_number);
	assert_int_equal(ibv_close_xrcd(y), 0);
	assert_int_equal(ibv_close_xrcd(x), EBUSY);
	assert_int_equal(sim_verbs.destroy_srq(first), 0);
	assert_int_equal(ibv_close_xrcd(x), 0);
	assert_null(open_domain(&b, fd, 0));
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(sim_verbs.close_device(context), 0);
	close(fd);
	close(other_fd);
	unlink(one);
	unlink(two);
}

/* --- ibv_open_qp() --- */

static struct pair_side again;		/* another context of B's device, with the same domain */
static struct ibv_xrcd *again_domain;
static struct ibv_qp *opened;
static int domain_fd;
static char domain_file[] = "/tmp/xrc-file-XXXXXX";

static struct ibv_qp *open_qp(struct ibv_xrcd *xrcd, uint32_t number)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE |
			     IBV_QP_OPEN_ATTR_CONTEXT,
		.qp_num = number,
		.xrcd = xrcd,
		.qp_context = &again,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	errno = 0;
	return ibv_open_qp(xrcd->context, &attr);
}

static int open_handle(void **state)
{
	struct pair_conn conn = pair_defaults();

	(void)state;
	pair_open(PAIR_IB);
	memcpy(domain_file, "/tmp/xrc-file-XXXXXX", sizeof(domain_file));
	domain_fd = mkstemp(domain_file);
	domain = open_domain(&b, domain_fd, O_CREAT);
	assert_non_null(domain);
	first = make_srq(domain, &first_number);
	a.qp = make_qp(&a, IBV_QPT_XRC_SEND);
	b.qp = make_qp(&b, IBV_QPT_XRC_RECV);
	assert_int_equal(pair_to_init(&a, a.qp, &conn), 0);
	assert_int_equal(pair_to_init(&b, b.qp, &conn), 0);
	again = (struct pair_side) { .context = sim_verbs.open_device(b.context->device) };
	again_domain = open_domain(&again, domain_fd, 0);
	assert_non_null(again_domain);
	opened = open_qp(again_domain, b.qp->qp_num);
	assert_non_null(opened);
	return 0;
}

static int close_handle(void **state)
{
	if (a.qp)
		assert_int_equal(sim_verbs.destroy_qp(a.qp), 0);
	a.qp = NULL;
	if (first)
		assert_int_equal(sim_verbs.destroy_srq(first), 0);
	assert_int_equal(ibv_close_xrcd(domain), 0);
	if (again_domain)
		assert_int_equal(ibv_close_xrcd(again_domain), 0);
	if (again.context)
		assert_int_equal(sim_verbs.close_device(again.context), 0);
	close(domain_fd);
	unlink(domain_file);
	return close_pair(state);
}

static int connect_by(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .ah_attr = { .port_num = 1, .dlid = a.device->ports[0].lid },
		.path_mtu = IBV_MTU_1024, .dest_qp_num = a.qp->qp_num, .max_dest_rd_atomic = 16,
		.min_rnr_timer = 1,
	};
	int err = sim_verbs.modify_qp(qp, &attr, RTR_RECV);

	if (err)
		return err;
	attr.dest_qp_num = qp->qp_num;
	attr.ah_attr.dlid = b.device->ports[0].lid;
	err = sim_verbs.modify_qp(a.qp, &attr, RTR_SEND);
	return err ? err : to_rts(&a, RTS_SEND, 7);
}

static void expect_message(uint64_t wr_id)
{
	receive(first, wr_id, 0, 100);
	assert_int_equal(request(IBV_WR_SEND, first_number, wr_id, 0, 50), 0);
	pair_expect(&b, wr_id, IBV_WC_SUCCESS);
	pair_expect(&a, wr_id, IBV_WC_SUCCESS);
}

/* A handle is as good as the first, and the QP ends with the last. */
static void handles_are_of_one_qp(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_recv_wr recv = { .wr_id = 9 }, *bad_recv;
	struct ibv_send_wr send = { .wr_id = 9, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_qp_attr attr;
	uint32_t number = b.qp->qp_num;

	(void)state;
	assert_int_equal(opened->qp_num, number);
	assert_ptr_equal(opened->context, again.context);
	assert_ptr_equal(opened->qp_context, &again);
	assert_int_equal(sim_verbs.query_qp(opened, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_INIT);
	assert_ptr_equal(init.qp_context, &again);
	assert_int_equal(init.qp_type, IBV_QPT_XRC_RECV);
	assert_int_equal(connect_by(opened), 0);
	assert_int_equal(opened->state, IBV_QPS_RTR);
	assert_int_equal(pair_state(b.qp), IBV_QPS_RTR);
	assert_int_equal(ibv_post_recv(opened, &recv, &bad_recv), EINVAL);
	assert_int_equal(ibv_post_send(opened, &send, &bad), EINVAL);
	expect_message(1);

	assert_int_equal(ibv_close_xrcd(again_domain), EBUSY);
	assert_int_equal(sim_verbs.destroy_qp(b.qp), 0);
	b.qp = NULL;
	expect_message(2);
	assert_null(open_qp(domain, number + 1));
	b.qp = open_qp(domain, number);
	assert_non_null(b.qp);
	assert_int_equal(sim_verbs.destroy_qp(opened), 0);
	expect_message(3);
	assert_int_equal(sim_verbs.destroy_qp(b.qp), 0);
	b.qp = NULL;
	assert_null(open_qp(domain, number));
	assert_int_equal(errno, EINVAL);
	receive(first, 4, 0, 100);
	assert_int_equal(request(IBV_WR_SEND, first_number, 4, 0, 50), 0);
	pair_expect(&a, 4, IBV_WC_RETRY_EXC_ERR);
}

/* Each handle's context gets the QP's events, and waits for its own acknowledgements only. */
static void every_handle_gets_events(void **state)
{
	struct ibv_async_event event;

	(void)state;
	assert_int_equal(connect_by(b.qp), 0);
	expect_message(1);
	pair_async(&b, IBV_EVENT_COMM_EST);
	assert_int_equal(sim_verbs.get_async_event(again.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_COMM_EST);
	assert_ptr_equal(event.element.qp, opened);
	assert_int_equal(sim_verbs.destroy_qp(opened), EDEADLK);
	sim_verbs.ack_async_event(&event);
	/* What a closed handle has not read is dropped, and it gets no more. */
	assert_int_equal(request(IBV_WR_SEND, 0xffffff, 2, 0, 50), 0);
	pair_expect(&a, 2, IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(sim_verbs.destroy_qp(opened), 0);
	pair_no_async(&again);
	pair_async(&b, IBV_EVENT_QP_REQ_ERR);
	assert_int_equal(sim_verbs.destroy_qp(b.qp), 0);
	b.qp = NULL;
}

/* The first handle's context is closed; then the other's. */
static void a_closed_context_closes_its_handle(void **state)
{
	static const struct polycm_sim_counts none;
	struct polycm_sim_counts counts;
	struct ibv_context *context = sim_verbs.open_device(b.context->device);
	struct pair_side other = { .context = context };
	struct ibv_xrcd *its = open_domain(&other, domain_fd, 0);
	struct ibv_qp *handle;

	(void)state;
	handle = open_qp(its, b.qp->qp_num);
	assert_non_null(handle);
	assert_int_equal(sim_verbs.destroy_qp(b.qp), 0);
	b.qp = NULL;
	assert_int_equal(connect_by(opened), 0);
	assert_int_equal(sim_verbs.close_device(context), 0);
	expect_message(1);
	assert_int_equal(sim_verbs.close_device(again.context), 0);
	again.context = NULL;
	again_domain = NULL;
	sim_lock();
	sim_nic_counts(&counts);
	sim_unlock();
	assert_int_equal(counts.qps, none.qps + 1);	/* A's */
}

static void wrong_handles_are_refused(void **state)
{
	const uint32_t all = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	const struct {
		uint32_t comp_mask, number;
		struct ibv_xrcd *xrcd;
		enum ibv_qp_type type;
		int err;
	} cases[] = {
		{ all | 16, b.qp->qp_num, domain, IBV_QPT_XRC_RECV, EOPNOTSUPP },
		{ all & ~1u, b.qp->qp_num, domain, IBV_QPT_XRC_RECV, EINVAL },
		{ all & ~2u, b.qp->qp_num, domain, IBV_QPT_XRC_RECV, EINVAL },
		{ all & ~8u, b.qp->qp_num, domain, IBV_QPT_XRC_RECV, EINVAL },
		{ all, b.qp->qp_num, NULL, IBV_QPT_XRC_RECV, EINVAL },
		{ all, b.qp->qp_num, again_domain, IBV_QPT_XRC_RECV, EINVAL },
		{ all, b.qp->qp_num, domain, IBV_QPT_XRC_SEND, EINVAL },
		{ all, b.qp->qp_num, domain, IBV_QPT_RC, EINVAL },
		{ all, a.qp->qp_num, domain, IBV_QPT_XRC_RECV, EINVAL },
	};
	struct ibv_xrcd *other = open_domain(&b, -1, O_CREAT);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_qp_open_attr attr = {
			.comp_mask = cases[i].comp_mask,
			.qp_num = cases[i].number,
			.xrcd = cases[i].xrcd,
			.qp_type = cases[i].type,
		};
		unsigned int before = pair_warnings;

		print_message("case %zu\n", i);
		errno = 0;
		assert_null(ibv_open_qp(b.context, &attr));
		assert_int_equal(errno, cases[i].err);
		assert_int_equal(pair_warnings, before + 1);
		assert_true(pair_warned("ibv_open_qp refused"));
	}
	assert_null(open_qp(other, b.qp->qp_num));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_close_xrcd(other), 0);
	assert_int_equal(sim_verbs.destroy_qp(opened), 0);
	assert_int_equal(sim_verbs.destroy_qp(b.qp), 0);
	b.qp = NULL;
}

#define HANDLE(test) cmocka_unit_test_setup_teardown(test, open_handle, close_handle)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROCE(the_request_names_the_srq),
		ROCE(memory_is_of_the_srqs_pd),
		cmocka_unit_test(wrong_srqs_are_refused),
		ROCE(an_empty_srq_is_not_ready),
		ROCE(not_ready_too_often),
		ROCE(losses_are_repeated),
		ROCE(srq_goes_while_a_packet_is_under_way),
		ROCE(domains_of_files),
		HANDLE(handles_are_of_one_qp),
		HANDLE(every_handle_gets_events),
		HANDLE(a_closed_context_closes_its_handle),
		HANDLE(wrong_handles_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
