/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connecting, accepting, rejecting, disconnecting: which parameters reach the
 * provider, which values are refused, and how the QP moves on the way.
 */
#include "cm_fake.h"

#include "core/base/log.h"

static struct rdma_event_channel *channel;

static int open_channel(void **state)
{
	fakes_reset(state);
	channel = rdma_create_event_channel();
	return channel ? 0 : -1;
}

static int close_channel(void **state)
{
	rdma_destroy_event_channel(channel);
	return fakes_check(state);
}

#define CONNECT_TEST(function) \
	cmocka_unit_test_setup_teardown(function, open_channel, close_channel)

static void destroy(struct rdma_cm_id *id)
{
	rdma_destroy_ep(id);
}

/* ------------------------------------------------------------------------
 * Parameters.
 */

struct depths {
	bool accept, null, external;
	enum rdma_port_space ps;
	uint8_t responder_resources, initiator_depth;
	int error;
	uint8_t want_resources, want_depth;
};

/* The device has 16 and 8; the request, as the acceptor sees it, 5 and 3. */
static const struct depths depth_cases[] = {
	{ .ps = RDMA_PS_TCP, .responder_resources = 4, .initiator_depth = 2,
	  .want_resources = 4, .want_depth = 2 },
	{ .ps = RDMA_PS_TCP, .responder_resources = 16, .initiator_depth = 8,
	  .want_resources = 16, .want_depth = 8 },
	{ .ps = RDMA_PS_TCP, .responder_resources = 17, .initiator_depth = 8, .error = EINVAL },
	{ .ps = RDMA_PS_TCP, .responder_resources = 16, .initiator_depth = 9, .error = EINVAL },
	{ .ps = RDMA_PS_TCP, .responder_resources = 254, .error = EINVAL },
	{ .ps = RDMA_PS_TCP, .initiator_depth = 254, .error = EINVAL },
	{ .ps = RDMA_PS_TCP, .responder_resources = RDMA_MAX_RESP_RES,
	  .initiator_depth = RDMA_MAX_INIT_DEPTH, .want_resources = 16, .want_depth = 8 },
	{ .ps = RDMA_PS_TCP, .null = true, .want_resources = 16, .want_depth = 8 },
	{ .ps = RDMA_PS_TCP, .null = true, .external = true, .error = EINVAL },
	{ .ps = RDMA_PS_IB, .responder_resources = 17, .initiator_depth = 9,
	  .want_resources = 17, .want_depth = 9 },
	{ .ps = RDMA_PS_IB, .responder_resources = RDMA_MAX_RESP_RES, .initiator_depth = 1,
	  .want_resources = 16, .want_depth = 1 },
	{ .ps = RDMA_PS_IB, .null = true, .external = true, .want_resources = 16, .want_depth = 8 },
	{ .accept = true, .responder_resources = 16, .initiator_depth = 8,
	  .want_resources = 16, .want_depth = 8 },
	{ .accept = true, .responder_resources = 1, .initiator_depth = 0,
	  .want_resources = 1, .want_depth = 0 },
	{ .accept = true, .responder_resources = 17, .initiator_depth = 8, .error = EINVAL },
	{ .accept = true, .responder_resources = 16, .initiator_depth = 9, .error = EINVAL },
	{ .accept = true, .responder_resources = RDMA_MAX_RESP_RES,
	  .initiator_depth = RDMA_MAX_INIT_DEPTH, .want_resources = 5, .want_depth = 3 },
	{ .accept = true, .null = true, .want_resources = 5, .want_depth = 3 },
	{ .accept = true, .null = true, .external = true, .error = EINVAL },
};

static struct rdma_cm_id *active_id(enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, ps), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.0.2", 7471), 100), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_route(id, 100), 0);
	expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return id;
}

static void depths_are_checked_and_completed(void **state)
{
	struct rdma_cm_id *listener = listening_id(channel);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(depth_cases); i++) {
		const struct depths *c = &depth_cases[i];
		struct rdma_conn_param param = {
			.responder_resources = c->responder_resources,
			.initiator_depth = c->initiator_depth,
		};
		struct rdma_cm_id *id = c->accept ? requested_id(listener) : active_id(c->ps);
		int (*call)(struct rdma_cm_id *id, struct rdma_conn_param *param) =
			c->accept ? rdma_accept : rdma_connect;
		unsigned int calls = fakes[0].calls[c->accept ? OP_ACCEPT : OP_CONNECT];

		print_message("case %zu\n", i);
		if (!c->external)
			create_qp(id);
		if (c->error) {
			assert_errno(call(id, c->null ? NULL : &param), c->error);
			assert_int_equal(fakes[0].calls[c->accept ? OP_ACCEPT : OP_CONNECT], calls);
		} else {
			assert_int_equal(call(id, c->null ? NULL : &param), 0);
			assert_int_equal(fakes[0].param.responder_resources, c->want_resources);
			assert_int_equal(fakes[0].param.initiator_depth, c->want_depth);
		}
		destroy(id);
	}
	destroy(listener);
}

/* A request for more than the device has, answered without parameters. */
static void requests_are_lowered_to_the_device(void **state)
{
	const struct rdma_conn_param conn = { .responder_resources = 100, .initiator_depth = 100 };
	struct rdma_cm_id *listener = listening_id(channel), *id;
	struct rdma_cm_event *event;

	(void)state;
	assert_int_equal(post_request(fakes, (struct polycm_id *)(void *)listener, &conn, NULL), 0);
	event = next_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	id = event->id;
	create_qp(id);
	/* The event's own parameters may be passed, too; these are too much. */
	assert_errno(rdma_accept(id, &event->param.conn), EINVAL);
	assert_int_equal(rdma_accept(id, NULL), 0);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(fakes[0].param.responder_resources, FAKE_RESPONDER_RESOURCES);
	assert_int_equal(fakes[0].param.initiator_depth, FAKE_INITIATOR_DEPTH);
	destroy(id);
	destroy(listener);
}

static void other_parameters_pass_through(void **state)
{
	static const struct {
		struct rdma_conn_param in;
		uint8_t retry, rnr, flow, srq;
		uint32_t qp_num;
	} cases[] = {
		{ { .retry_count = 7, .rnr_retry_count = 7 }, 7, 7, 0, 0, 0 },
		{ { .retry_count = 3, .rnr_retry_count = 0, .flow_control = 1, .srq = 1,
		    .qp_num = 0x7fabcdef }, 3, 0, 1, 1, 0xabcdef },
		/* Three bits each: more is lowered, not cut. */
		{ { .retry_count = 8, .rnr_retry_count = 255, .flow_control = 2, .srq = 2 },
		  7, 7, 0, 1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_cm_id *id = resolved_id(channel);
		struct rdma_conn_param param = cases[i].in;

		print_message("case %zu\n", i);
		assert_int_equal(rdma_connect(id, &param), 0);
		assert_int_equal(fakes[0].param.size, sizeof(struct polycm_conn_param));
		assert_int_equal(fakes[0].param.retry_count, cases[i].retry);
		assert_int_equal(fakes[0].param.rnr_retry_count, cases[i].rnr);
		assert_int_equal(fakes[0].param.flow_control, cases[i].flow);
		assert_int_equal(fakes[0].param.srq, cases[i].srq);
		assert_int_equal(fakes[0].param.qp_num, cases[i].qp_num);
		assert_int_equal(fakes[0].param.qkey, 0);
		assert_int_equal(fakes[0].param.ece.vendor_id, 0);
		destroy(id);
	}
}

static void the_qp_of_the_id_counts(void **state)
{
	struct rdma_conn_param param = { .qp_num = 99, .srq = 1 };
	struct rdma_cm_id *id = qp_id(channel);

	(void)state;
	assert_int_equal(rdma_connect(id, &param), 0);
	assert_int_equal(fakes[0].param.qp_num, 0x123456);
	assert_int_equal(fakes[0].param.srq, 0);
	/* No parameters. */
	assert_int_equal(rdma_connect(id, NULL), 0);
	assert_int_equal(fakes[0].param.qp_num, 0x123456);
	assert_int_equal(fakes[0].param.retry_count, 7);
	assert_int_equal(fakes[0].param.rnr_retry_count, 7);
	assert_int_equal(fakes[0].param.flow_control, 0);
	assert_int_equal(fakes[0].param.private_data_len, 0);
	destroy(id);
}

static void private_data_is_handed_over(void **state)
{
	static const char data[] = "0123456789";
	static const struct { const void *data; uint8_t len, want; } cases[] = {
		{ data, 10, 10 }, { data, 1, 1 }, { data, 0, 0 }, { NULL, 10, 0 }, { NULL, 0, 0 },
	};
	struct rdma_cm_id *listener = listening_id(channel);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_conn_param param = { .private_data = cases[i].data,
						 .private_data_len = cases[i].len };
		struct rdma_cm_id *active = resolved_id(channel);
		struct rdma_cm_id *passive = requested_id(listener);

		print_message("case %zu\n", i);
		assert_int_equal(rdma_connect(active, &param), 0);
		assert_int_equal(fakes[0].param.private_data_len, cases[i].want);
		assert_memory_equal(fakes[0].data, data, cases[i].want);
		assert_int_equal(rdma_reject(passive, cases[i].data, cases[i].len), 0);
		assert_int_equal(fakes[0].reason, 0);
		assert_memory_equal(fakes[0].data, data, cases[i].want);
		assert_int_equal(rdma_reject_ece(passive, cases[i].data, cases[i].len), 0);
		assert_int_equal(fakes[0].reason, 35);
		assert_int_equal(rdma_accept(passive, &param), 0);
		assert_int_equal(fakes[0].param.private_data_len, cases[i].want);
		assert_memory_equal(fakes[0].data, data, cases[i].want);
		destroy(active);
		destroy(passive);
	}
	destroy(listener);
}

static void service_lookups_need_no_parameters(void **state)
{
	struct rdma_cm_id *id = active_id(RDMA_PS_UDP);

	(void)state;
	assert_int_equal(rdma_connect(id, NULL), 0);
	assert_int_equal(fakes[0].param.qp_num, 0);
	destroy(id);
}

/* ------------------------------------------------------------------------
 * The QP.
 */

static void accepting_moves_the_qp_first(void **state)
{
	struct rdma_cm_id *listener = listening_id(channel), *id = requested_id(listener);
	struct rdma_conn_param param = { .responder_resources = 4, .initiator_depth = 2 };

	(void)state;
	create_qp(id);
	assert_string_equal(fake_verbs.moves, "INIT");
	fake_verbs.moves[0] = '\0';
	assert_int_equal(rdma_accept(id, &param), 0);
	assert_string_equal(fake_verbs.moves, "RTR(4) RTS(2)");
	/* The kernel's bits are not for InfiniBand ports; what INIT said is said again. */
	assert_int_equal(fake_verbs.mask, IBV_QP_STATE | IBV_QP_MAX_DEST_RD_ATOMIC |
			 IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX);
	assert_int_equal(fake_verbs.rtr.pkey_index, 3);
	assert_int_equal(rdma_disconnect(id), 0);
	assert_string_equal(fake_verbs.moves, "RTR(4) RTS(2) ERR");
	assert_int_equal(fakes[0].calls[OP_DISCONNECT], 1);
	destroy(id);
	destroy(listener);
}

/*
 * What INIT has to say once the connection is known: the QP takes it along to
 * RTR, unless it is not INIT any more, or was so on another port.
 */
static void a_connected_qp_has_what_init_says_last(void **state)
{
	static const struct {
		bool request;		/* the QP is that of a request's id, else the active one */
		bool reset;		/* by the program */
		uint8_t port;		/* later */
		unsigned int flags;	/* later */
		const char *moves;
		unsigned int rtr_flags;	/* 0: not said */
	} cases[] = {
		{ false, false, 1, 6, "RTR(7) RTS(6)", 6 },
		{ false, true, 1, 6, "RESET INIT RTR(7) RTS(6)", 0 },
		{ false, false, 2, 6, "INIT RTR(7) RTS(6)", 0 },
		{ true, false, 1, 2, "RTR(5) RTS(3)", 2 },
		{ true, true, 1, 2, "RESET INIT RTR(5) RTS(3)", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_cm_id *listener = listening_id(channel);
		struct rdma_cm_id *id = cases[i].request ? requested_id(listener) : resolved_id(channel);
		struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

		print_message("case %zu\n", i);
		fakes[0].access_flags = 2;
		fakes[0].qp_port = 1;
		create_qp(id);
		fake_verbs.moves[0] = '\0';
		fakes[0].access_flags = cases[i].flags;
		fakes[0].qp_port = cases[i].port;
		if (cases[i].reset)
			assert_int_equal(ibv_modify_qp(id->qp, &reset, IBV_QP_STATE), 0);
		if (cases[i].request) {
			assert_int_equal(rdma_accept(id, NULL), 0);
		} else {
			assert_int_equal(rdma_connect(id, NULL), 0);
			assert_int_equal(post(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0), 0);
			expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		}
		assert_string_equal(fake_verbs.moves, cases[i].moves);
		assert_int_equal(fake_verbs.mask & IBV_QP_ACCESS_FLAGS ? fake_verbs.rtr.qp_access_flags
								       : 0, cases[i].rtr_flags);
		destroy(id);
		destroy(listener);
	}
}

/* Before there is a connection, and on the first port, which is known to be one. */
static void init_of_an_ethernet_port_is_asked_for_once(void **state)
{
	static const struct {
		bool request, connected;
		uint8_t port;
		bool asked;
	} cases[] = {
		{ false, false, 1, true }, { false, false, 1, false }, { false, true, 1, true },
		{ true, false, 1, true }, { true, true, 1, true }, { false, false, 1, false },
		{ false, false, 2, true },
	};
	struct rdma_conn_param param = { .qp_num = 5 };
	struct polycm_device *device = fakes[0].device;
	uint8_t link_layer = IBV_LINK_LAYER_UNSPECIFIED;

	(void)state;
	fakes[0].qp_port = 1;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_cm_id *listener = listening_id(channel);
		struct rdma_cm_id *id = cases[i].request ? requested_id(listener) : resolved_id(channel);
		unsigned int before;

		print_message("case %zu\n", i);
		if (!i) {
			link_layer = device->link_layer;
			device->link_layer = IBV_LINK_LAYER_ETHERNET;
		}
		id->port_num = cases[i].port;
		if (cases[i].connected && cases[i].request)
			assert_int_equal(rdma_accept(id, &param), 0);
		else if (cases[i].connected)
			assert_int_equal(rdma_connect(id, &param), 0);
		before = fakes[0].calls[OP_INIT_QP_ATTR];
		create_qp(id);
		assert_int_equal(fakes[0].calls[OP_INIT_QP_ATTR] - before, cases[i].asked);
		destroy(id);
		destroy(listener);
	}
	device->link_layer = link_layer;
	memset(device->qp_init, 0, sizeof(device->qp_init));
}

static void a_qp_that_does_not_move_is_not_accepted(void **state)
{
	static const struct { enum ibv_qp_state refuse; const char *moves; } cases[] = {
		/* What INIT says shows, as it does where INIT is a move of its own. */
		{ IBV_QPS_RTR, "INIT" },
		{ IBV_QPS_RTS, "RTR(5)" },
	};
	struct rdma_cm_id *listener = listening_id(channel);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_cm_id *id = requested_id(listener);

		print_message("case %zu\n", i);
		create_qp(id);
		fake_verbs.moves[0] = '\0';
		fake_verbs.refuse = cases[i].refuse;
		fake_verbs.refuse_errno = ENOSPC;
		assert_errno(rdma_accept(id, NULL), ENOSPC);
		fake_verbs.refuse_errno = 0;
		assert_string_equal(fake_verbs.moves, cases[i].moves);
		assert_int_equal(fakes[0].calls[OP_ACCEPT], 0);
		destroy(id);
	}
	destroy(listener);
}

static void a_refused_accept_kills_the_qp(void **state)
{
	struct rdma_cm_id *listener = listening_id(channel), *id = requested_id(listener);

	(void)state;
	create_qp(id);
	fake_verbs.moves[0] = '\0';
	fakes[0].fail[OP_ACCEPT] = -EINVAL;
	assert_errno(rdma_accept(id, NULL), EINVAL);
	assert_string_equal(fake_verbs.moves, "RTR(5) RTS(3) ERR");
	destroy(id);
	destroy(listener);
}

static void responses_complete_connections(void **state)
{
	const struct rdma_conn_param conn = { .responder_resources = 2, .initiator_depth = 1 };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id = qp_id(channel);

	(void)state;
	assert_int_equal(rdma_connect(id, NULL), 0);
	fake_verbs.moves[0] = '\0';
	assert_int_equal(post_conn(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, &conn, NULL), 0);
	/* In the thread that retrieves, not before. */
	assert_string_equal(fake_verbs.moves, "");
	assert_int_equal(fakes[0].calls[OP_ESTABLISH], 0);
	event = next_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(event->param.conn.responder_resources, 2);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	/* The provider's depths, which are those of the response. */
	assert_string_equal(fake_verbs.moves, "RTR(7) RTS(6)");
	assert_int_equal(fakes[0].calls[OP_ESTABLISH], 1);
	assert_errno(rdma_establish(id), EINVAL);
	assert_int_equal(fakes[0].calls[OP_ESTABLISH], 1);
	destroy(id);
}

static void responses_without_a_qp_are_the_programs(void **state)
{
	struct rdma_conn_param param = { .qp_num = 5 };
	struct rdma_cm_id *id = resolved_id(channel);

	(void)state;
	assert_int_equal(rdma_connect(id, &param), 0);
	assert_int_equal(post(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0), 0);
	expect_event(channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	assert_int_equal(fakes[0].calls[OP_ESTABLISH], 0);
	assert_int_equal(rdma_establish(id), 0);
	assert_int_equal(fakes[0].calls[OP_ESTABLISH], 1);
	expect_no_event(channel);
	destroy(id);
}

static void failed_responses_are_connect_errors(void **state)
{
	static const struct {
		enum ibv_qp_state refuse;
		int establish;
		const char *moves, *why;
	} cases[] = {
		/* A device that does not take along what INIT says gets it said before. */
		{ IBV_QPS_RTR, 0, "INIT ERR", " cannot become RTR)" },
		{ IBV_QPS_RTS, 0, "RTR(7) ERR", " cannot become RTS)" },
		{ IBV_QPS_RESET, -EINVAL, "RTR(7) RTS(6) ERR", "(the fake does not want to)" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_cm_id *id = qp_id(channel);
		struct capture capture;

		print_message("case %zu\n", i);
		fake_verbs.moves[0] = '\0';
		fake_verbs.refuse = cases[i].refuse;
		fake_verbs.refuse_errno = EINVAL;
		fakes[0].fail[OP_ESTABLISH] = cases[i].establish;
		assert_int_equal(post(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0), 0);
		polycm_log_level = POLYCM_LOG_WARN;
		capture_begin(&capture);
		expect_event(channel, RDMA_CM_EVENT_CONNECT_ERROR, -1);
		capture_end(&capture);
		polycm_log_level = POLYCM_LOG_ERROR;
		if (!strstr(capture.text, "CONNECT_ERROR: ") || !strstr(capture.text, cases[i].why))
			fail_msg("no reason: %s", capture.text);
		fake_verbs.refuse_errno = 0;
		fakes[0].fail[OP_ESTABLISH] = 0;
		assert_string_equal(fake_verbs.moves, cases[i].moves);

		/* That was the end of it; what the peer says then is not told. */
		assert_int_equal(post(id, RDMA_CM_EVENT_REJECTED, 28), 0);
		assert_int_equal(post(id, RDMA_CM_EVENT_DISCONNECTED, 0), 0);
		assert_int_equal(post(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0), 0);
		expect_event(channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		assert_string_equal(fake_verbs.moves, cases[i].moves);
		destroy(id);
	}
}

static void only_rejects_move_the_qp(void **state)
{
	static const struct {
		enum rdma_cm_event_type type;
		int status;
		const char *moves;
	} cases[] = {
		{ RDMA_CM_EVENT_REJECTED, 28, "ERR" },
		{ RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, "" },
		{ RDMA_CM_EVENT_DISCONNECTED, 0, "" },
		{ RDMA_CM_EVENT_CONNECT_ERROR, -EHOSTUNREACH, "" },
		{ RDMA_CM_EVENT_ESTABLISHED, 0, "" },
		{ RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_cm_id *id = qp_id(channel);

		fake_verbs.moves[0] = '\0';
		assert_int_equal(post(id, cases[i].type, cases[i].status), 0);
		expect_event(channel, cases[i].type, cases[i].status);
		assert_string_equal(fake_verbs.moves, cases[i].moves);
		destroy(id);
	}
}

static void notifications_are_the_providers(void **state)
{
	struct rdma_cm_id *id = resolved_id(channel);

	(void)state;
	assert_int_equal(rdma_notify(id, IBV_EVENT_COMM_EST), 0);
	assert_int_equal(fakes[0].notified, IBV_EVENT_COMM_EST);
	fakes[0].fail[OP_NOTIFY] = -EISCONN;
	assert_errno(rdma_notify(id, IBV_EVENT_COMM_EST), EISCONN);
	destroy(id);
}

static int start(void **state)
{
	(void)state;
	return fakes_start(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONNECT_TEST(depths_are_checked_and_completed),
		CONNECT_TEST(requests_are_lowered_to_the_device),
		CONNECT_TEST(other_parameters_pass_through),
		CONNECT_TEST(the_qp_of_the_id_counts),
		CONNECT_TEST(private_data_is_handed_over),
		CONNECT_TEST(service_lookups_need_no_parameters),
		CONNECT_TEST(accepting_moves_the_qp_first),
		CONNECT_TEST(a_connected_qp_has_what_init_says_last),
		CONNECT_TEST(init_of_an_ethernet_port_is_asked_for_once),
		CONNECT_TEST(a_qp_that_does_not_move_is_not_accepted),
		CONNECT_TEST(a_refused_accept_kills_the_qp),
		CONNECT_TEST(responses_complete_connections),
		CONNECT_TEST(responses_without_a_qp_are_the_programs),
		CONNECT_TEST(failed_responses_are_connect_errors),
		CONNECT_TEST(only_rejects_move_the_qp),
		CONNECT_TEST(notifications_are_the_providers),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
