/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every call with what it cannot be called with: no id, an id that is none,
 * an id that is not there yet, an id whose channel is gone; and what a
 * provider answers comes out as errno.
 */
#include "cm_fake.h"

#include "core/base/log.h"

#define SIMPLE(name, call) \
	static int name(struct rdma_cm_id *id) \
	{ \
		return call; \
	}

static char data[4];
static struct rdma_conn_param param = { .private_data = data, .private_data_len = 4 };

SIMPLE(bind_addr, rdma_bind_addr(id, addr4("10.0.0.1", 1)))
SIMPLE(bind_nothing, rdma_bind_addr(id, NULL))

static int bind_family(struct rdma_cm_id *id)
{
	struct sockaddr addr = { .sa_family = AF_UNIX };

	return rdma_bind_addr(id, &addr);
}

static int resolve_addr(struct rdma_cm_id *id)
{
	return rdma_resolve_addr(id, NULL, addr4("10.0.0.2", 7471), 100);
}

SIMPLE(resolve_nothing, rdma_resolve_addr(id, NULL, NULL, 1))

static int resolve_family(struct rdma_cm_id *id)
{
	struct sockaddr addr = { .sa_family = AF_UNIX };

	return rdma_resolve_addr(id, NULL, &addr, 100);
}

static int resolve_source_family(struct rdma_cm_id *id)
{
	struct sockaddr addr = { .sa_family = AF_UNIX };

	return rdma_resolve_addr(id, &addr, addr4("10.0.0.2", 7471), 100);
}

SIMPLE(resolve_route, rdma_resolve_route(id, 100))
SIMPLE(resolve_route_0, rdma_resolve_route(id, 0))
SIMPLE(listen_on, rdma_listen(id, 1))
SIMPLE(connect_to, rdma_connect(id, &param))
SIMPLE(connect_null, rdma_connect(id, NULL))
SIMPLE(accept_it, rdma_accept(id, &param))
SIMPLE(accept_null, rdma_accept(id, NULL))
SIMPLE(reject, rdma_reject(id, data, 4))
SIMPLE(reject_ece, rdma_reject_ece(id, data, 4))
SIMPLE(establish, rdma_establish(id))
SIMPLE(disconnect, rdma_disconnect(id))
SIMPLE(notify, rdma_notify(id, IBV_EVENT_COMM_EST))

static int set_option(struct rdma_cm_id *id)
{
	uint8_t tos = 1;

	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1);
}

static int set_option_null(struct rdma_cm_id *id)
{
	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 1);
}

static int make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC };

	return rdma_create_qp(id, NULL, &attr);
}

SIMPLE(make_qp_null, rdma_create_qp(id, NULL, NULL))

static int make_qp_ex(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_RC };

	return rdma_create_qp_ex(id, &attr);
}

SIMPLE(make_qp_ex_null, rdma_create_qp_ex(id, NULL))

static int make_srq(struct rdma_cm_id *id)
{
	struct ibv_srq_init_attr attr = { .attr.max_wr = 1 };

	return rdma_create_srq(id, NULL, &attr);
}

SIMPLE(make_srq_null, rdma_create_srq(id, NULL, NULL))

static int make_srq_ex(struct rdma_cm_id *id)
{
	struct ibv_srq_init_attr_ex attr = { .attr.max_wr = 1 };

	return rdma_create_srq_ex(id, &attr);
}

SIMPLE(make_srq_ex_null, rdma_create_srq_ex(id, NULL))

static int init_qp_attr(struct rdma_cm_id *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	return rdma_init_qp_attr(id, &attr, &mask);
}

static int init_qp_attr_null(struct rdma_cm_id *id)
{
	int mask;

	return rdma_init_qp_attr(id, NULL, &mask);
}

static int init_qp_mask_null(struct rdma_cm_id *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };

	return rdma_init_qp_attr(id, &attr, NULL);
}

static int join(struct rdma_cm_id *id)
{
	return rdma_join_multicast(id, addr4("224.0.0.1", 0), NULL);
}

SIMPLE(join_nothing, rdma_join_multicast(id, NULL, NULL))
SIMPLE(join_ex_null, rdma_join_multicast_ex(id, NULL, NULL))

static int join_ex(struct rdma_cm_id *id)
{
	struct rdma_cm_join_mc_attr_ex attr = { .comp_mask = 3, .addr = addr4("224.0.0.1", 0) };

	return rdma_join_multicast_ex(id, &attr, NULL);
}

SIMPLE(leave, rdma_leave_multicast(id, addr4("224.0.0.1", 0)))
SIMPLE(leave_nothing, rdma_leave_multicast(id, NULL))

static int set_local_ece(struct rdma_cm_id *id)
{
	struct ibv_ece ece = { .vendor_id = 1 };

	return rdma_set_local_ece(id, &ece);
}

SIMPLE(set_local_ece_null, rdma_set_local_ece(id, NULL))

static int get_remote_ece(struct rdma_cm_id *id)
{
	struct ibv_ece ece;

	return rdma_get_remote_ece(id, &ece);
}

SIMPLE(get_remote_ece_null, rdma_get_remote_ece(id, NULL))

static int get_request(struct rdma_cm_id *id)
{
	struct rdma_cm_id *child;

	return rdma_get_request(id, &child);
}

SIMPLE(get_request_null, rdma_get_request(id, NULL))

static int migrate_foreign(struct rdma_cm_id *id)
{
	struct { struct rdma_event_channel channel; char more[512]; } foreign = { .more = "" };

	return rdma_migrate_id(id, &foreign.channel);
}

SIMPLE(migrate, rdma_migrate_id(id, NULL))

struct call {
	const char *name;
	int (*fn)(struct rdma_cm_id *id);
	int fresh;	/* errno on an id that was just created, 0: succeeds, -1: not tried */
};

#define CALL(fn, fresh) { #fn, fn, fresh }

static const struct call calls[] = {
	CALL(bind_addr, 0), CALL(bind_nothing, EINVAL), CALL(bind_family, EINVAL),
	CALL(resolve_addr, -1), CALL(resolve_nothing, EINVAL), CALL(resolve_family, EINVAL),
	CALL(resolve_source_family, EINVAL),
	CALL(resolve_route, EINVAL), CALL(resolve_route_0, EINVAL), CALL(listen_on, 0),
	CALL(connect_to, EINVAL), CALL(connect_null, EINVAL), CALL(accept_it, EINVAL),
	CALL(accept_null, EINVAL), CALL(disconnect, EINVAL),
	CALL(reject, 0), CALL(reject_ece, 0), CALL(establish, 0), CALL(notify, 0),
	CALL(set_option, 0), CALL(set_option_null, EFAULT),
	CALL(make_qp, EINVAL), CALL(make_qp_null, EINVAL), CALL(make_qp_ex, EINVAL),
	CALL(make_qp_ex_null, EINVAL), CALL(make_srq, EINVAL), CALL(make_srq_null, EINVAL),
	CALL(make_srq_ex, EINVAL), CALL(make_srq_ex_null, EINVAL),
	CALL(init_qp_attr, EINVAL), CALL(init_qp_attr_null, EINVAL),
	CALL(init_qp_mask_null, EINVAL),
	CALL(join, -1), CALL(join_nothing, EINVAL), CALL(join_ex_null, EINVAL), CALL(join_ex, -1),
	CALL(leave, EADDRNOTAVAIL), CALL(leave_nothing, EINVAL),
	CALL(set_local_ece, 0), CALL(set_local_ece_null, EINVAL),
	CALL(get_remote_ece, 0), CALL(get_remote_ece_null, EINVAL),
	CALL(get_request, EINVAL), CALL(get_request_null, EINVAL),
	CALL(migrate_foreign, EINVAL), CALL(migrate, -1), CALL(rdma_destroy_id, -1),
};

static void unknown_ids_are_refused(void **state)
{
	struct { struct rdma_cm_id id; char more[1024]; } foreign = { .more = "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		print_message("%s\n", calls[i].name);
		assert_errno(calls[i].fn(NULL), EINVAL);
		assert_errno(calls[i].fn(&foreign.id), EINVAL);
	}
	assert_string_equal(fakes[0].trace, "");
}

static void fresh_ids_are_not_ready(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		struct rdma_cm_id *id;

		if (calls[i].fresh < 0)
			continue;
		print_message("%s\n", calls[i].name);
		id = new_id(channel);
		if (calls[i].fresh)
			assert_errno(calls[i].fn(id), calls[i].fresh);
		else
			assert_int_equal(calls[i].fn(id), 0);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
	rdma_destroy_event_channel(channel);
}

static void ids_outlive_their_channel(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = qp_id(channel), *fresh = new_id(channel);

	(void)state;
	fakes[0].trace[0] = '\0';
	rdma_destroy_event_channel(channel);
	assert_string_equal(fakes[0].trace, "close stop free close stop free channel_close");

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		if (calls[i].fn == rdma_destroy_id || calls[i].fn == join_ex_null)
			continue;
		print_message("%s\n", calls[i].name);
		assert_errno(calls[i].fn(id), EBADF);
		assert_errno(calls[i].fn(fresh), EBADF);
	}
	/* The program's own QP can still be destroyed, with libibverbs. */
	assert_int_equal(ibv_destroy_qp(id->qp), 0);
	assert_int_equal(ibv_destroy_cq(id->send_cq), 0);
	assert_int_equal(ibv_destroy_cq(id->recv_cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(id->send_cq_channel), 0);
	assert_int_equal(ibv_destroy_comp_channel(id->recv_cq_channel), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_ep(fresh);
}

/* What the provider says is what the program gets. */
static void errors_of_providers_become_errno(void **state)
{
	static const struct {
		enum fake_op op;
		int (*fn)(struct rdma_cm_id *id);
		bool resolved;
	} cases[] = {
		{ OP_BIND, bind_addr, false },
		{ OP_RESOLVE_ADDR, resolve_addr, false },
		{ OP_LISTEN, listen_on, false },
		{ OP_NOTIFY, notify, false },
		{ OP_REJECT, reject, false },
		{ OP_REJECT, reject_ece, false },
		{ OP_ESTABLISH, establish, false },
		{ OP_SET_OPTION, set_option, false },
		{ OP_JOIN, join, false },
		{ OP_JOIN, join_ex, false },
		{ OP_RESOLVE_ROUTE, resolve_route, true },
		{ OP_CONNECT, connect_to, true },
		{ OP_ACCEPT, accept_it, true },
		{ OP_DISCONNECT, disconnect, true },
		{ OP_INIT_QP_ATTR, init_qp_attr, true },
		{ OP_INIT_QP_ATTR, make_qp, true },
	};
	struct rdma_event_channel *channel = rdma_create_event_channel();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_cm_id *id = cases[i].resolved ? resolved_id(channel) : new_id(channel);

		print_message("case %zu\n", i);
		fakes[0].fail[cases[i].op] = -EXDEV;
		assert_errno(cases[i].fn(id), EXDEV);
		fakes[0].fail[cases[i].op] = 0;
		assert_int_equal(rdma_destroy_id(id), 0);
	}
	rdma_destroy_event_channel(channel);
}

static void creating_ids_fails_cleanly(void **state)
{
	struct { struct rdma_event_channel channel; char more[512]; } foreign = { .more = "" };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = NULL;

	(void)state;
	assert_errno(rdma_create_id(channel, NULL, NULL, RDMA_PS_TCP), EINVAL);
	assert_errno(rdma_create_id(channel, &id, NULL, (enum rdma_port_space)0x107), EINVAL);
	assert_errno(rdma_create_id(&foreign.channel, &id, NULL, RDMA_PS_TCP), EINVAL);
	fakes[0].fail[OP_OPEN] = -ENOSPC;
	assert_errno(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), ENOSPC);
	assert_errno(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), ENOSPC);
	assert_null(id);
	fakes[0].fail[OP_OPEN] = 0;
	rdma_destroy_event_channel(channel);

	/* A provider that cannot open its part of the channel is not asked to close it. */
	channel = rdma_create_event_channel();
	fakes[0].fail[OP_CHANNEL_OPEN] = -EMFILE;
	assert_errno(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), EMFILE);
	fakes[0].fail[OP_CHANNEL_OPEN] = 0;
	fakes[0].channels = 0;
	rdma_destroy_event_channel(channel);
}

static void ids_begin_as_the_port_space_says(void **state)
{
	static const struct { enum rdma_port_space ps; enum ibv_qp_type qp_type; } cases[] = {
		{ RDMA_PS_TCP, IBV_QPT_RC },
		{ RDMA_PS_UDP, IBV_QPT_UD },
		{ RDMA_PS_IPOIB, IBV_QPT_UD },
		{ RDMA_PS_IB, IBV_QPT_RC },
	};
	struct rdma_event_channel *channel = rdma_create_event_channel();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_cm_id *id;

		assert_int_equal(rdma_create_id(channel, &id, &fakes, cases[i].ps), 0);
		assert_int_equal(id->ps, cases[i].ps);
		assert_int_equal(id->qp_type, cases[i].qp_type);
		assert_ptr_equal(id->context, &fakes);
		assert_ptr_equal(id->channel, channel);
		assert_null(id->verbs);
		assert_null(id->qp);
		assert_null(id->pd);
		assert_null(id->event);
		/* librdmacm's rsockets look behind the public part. */
		assert_null(*(void **)(id + 1));
		assert_int_equal(rdma_destroy_id(id), 0);
	}
	rdma_destroy_event_channel(channel);
}

/* The words that librdmacm's rsockets read behind the public part of an id. */
static void rsockets_see_what_is_synchronous(void **state)
{
	struct { void *device, *connect; size_t connect_len; int done, error, sync; } view;
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	(void)state;
	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	memcpy(&view, id + 1, sizeof(view));
	assert_null(view.device);
	assert_int_equal(view.sync, 1);
	assert_int_equal(rdma_migrate_id(id, channel), 0);
	memcpy(&view, id + 1, sizeof(view));
	assert_int_equal(view.sync, 0);
	assert_int_equal(view.connect_len, 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

static void calls_without_a_result_take_nothing(void **state)
{
	struct rdma_cm_event *event;
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct { struct rdma_cm_event event; char more[256]; } foreign = { .more = "" };

	(void)state;
	rdma_destroy_event_channel(NULL);
	rdma_destroy_qp(NULL);
	rdma_destroy_srq(NULL);
	rdma_destroy_ep(NULL);
	rdma_freeaddrinfo(NULL);
	assert_int_equal(rdma_get_src_port(NULL), 0);
	assert_int_equal(rdma_get_dst_port(NULL), 0);
	assert_errno(rdma_ack_cm_event(NULL), EINVAL);
	assert_errno(rdma_ack_cm_event(&foreign.event), EINVAL);
	assert_errno(rdma_get_cm_event(NULL, &event), EINVAL);
	assert_errno(rdma_get_cm_event(channel, NULL), EINVAL);
	rdma_destroy_event_channel(channel);
}

/* One line: call, provider, device, both addresses, the reason. */
static void failures_are_told_in_one_line(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved_id(channel);
	struct rdma_conn_param deep = { .responder_resources = 200 };
	struct capture capture;
	const char *text;

	(void)state;
	polycm_log_level = POLYCM_LOG_WARN;
	capture_begin(&capture);
	assert_errno(rdma_connect(id, &deep), EINVAL);
	text = capture_end(&capture);
	assert_int_equal(count_lines(text), 1);
	assert_non_null(strstr(text, "acme acme0 10.0.0.1:40000 > 10.0.0.2:7471"));
	assert_non_null(strstr(text, "rdma_connect: Invalid argument (responder_resources 200, "
				     "the device has 16)"));

	capture_begin(&capture);
	fakes[0].fail[OP_DISCONNECT] = -ENOTCONN;
	assert_errno(rdma_disconnect(id), ENOTCONN);
	assert_errno(rdma_accept(NULL, NULL), EINVAL);
	text = capture_end(&capture);
	polycm_log_level = POLYCM_LOG_ERROR;
	assert_int_equal(count_lines(text), 2);
	assert_non_null(strstr(text, "rdma_disconnect: Transport endpoint is not connected\n"));
	assert_non_null(strstr(text, "rdma_accept: Invalid argument (no id of rdma_create_id)"));

	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

static int start(void **state)
{
	(void)state;
	return fakes_start(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RDMA_TEST(unknown_ids_are_refused),
		RDMA_TEST(fresh_ids_are_not_ready),
		RDMA_TEST(ids_outlive_their_channel),
		RDMA_TEST(errors_of_providers_become_errno),
		RDMA_TEST(creating_ids_fails_cleanly),
		RDMA_TEST(ids_begin_as_the_port_space_says),
		RDMA_TEST(rsockets_see_what_is_synchronous),
		RDMA_TEST(calls_without_a_result_take_nothing),
		RDMA_TEST(failures_are_told_in_one_line),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
