/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Layers around fake providers: what they see and in which order, their areas,
 * and events that are lost, changed and late at each moment of an id's life.
 * The outer layer is "outer", the inner one, which is told what to do with
 * events, "inner"; its table is one of version 1 with nothing but what it needs.
 */
#include "cm_fake.h"

#include "core/base/clock.h"
#include "core/plugin/layers.h"
#include "core/base/log.h"

#define MS UINT64_C(1000000)

/* ------------------------------------------------------------------------
 * A clock whose timers fire when a test says so.
 */

struct polycm_timer {
	struct polycm_timer *next;
	uint64_t deadline;
	void (*fn)(void *arg);
	void *arg;
};

static struct {
	uint64_t now;
	struct polycm_timer *timers;
	unsigned int given;		/* and not given back */
	int fail;
} hands;

static uint64_t hands_now(void *ctx)
{
	(void)ctx;
	return hands.now;
}

static int hands_start(void *ctx, uint64_t deadline, void (*fn)(void *arg), void *arg,
		       struct polycm_timer **ret_timer)
{
	struct polycm_timer *timer, **at = &hands.timers;

	(void)ctx;
	if (hands.fail)
		return hands.fail;
	timer = calloc(1, sizeof(*timer));
	*timer = (struct polycm_timer){ .deadline = deadline, .fn = fn, .arg = arg };
	while (*at && (*at)->deadline <= deadline)
		at = &(*at)->next;
	timer->next = *at;
	*at = timer;
	hands.given++;
	*ret_timer = timer;
	return 0;
}

static void unlink_timer(struct polycm_timer *timer)
{
	struct polycm_timer **at = &hands.timers;

	while (*at && *at != timer)
		at = &(*at)->next;
	if (*at)
		*at = timer->next;
}

static void hands_cancel(void *ctx, struct polycm_timer *timer)
{
	(void)ctx;
	unlink_timer(timer);
	free(timer);
	hands.given--;
}

static const struct polycm_clock hands_clock = {
	.size = sizeof(struct polycm_clock),
	.now_ns = hands_now,
	.timer_start = hands_start,
	.timer_cancel = hands_cancel,
};

static void pass_ms(unsigned int ms)
{
	struct polycm_timer *timer;

	hands.now += ms * MS;
	while ((timer = hands.timers) && timer->deadline <= hands.now) {
		unlink_timer(timer);
		timer->fn(timer->arg);
	}
}

/* ------------------------------------------------------------------------
 * The layers.
 */

struct layer_id {
	const struct polycm_layer *layer;
	unsigned char mark[40];
};

static char seen[1024];
static unsigned int begun, ended;
static struct {
	bool lose;
	unsigned int hold_ms;
	int fail_connect;
	enum rdma_cm_event_type becomes;	/* 0 is ADDR_RESOLVED: as it is */
	const char *data;
	uint64_t heard_hold;
} order;

static void see(const char *who, const char *what)
{
	size_t len = strlen(seen);

	snprintf(seen + len, sizeof(seen) - len, "%s%s.%s", len ? " " : "", who, what);
}

static void outer_begin(void *ctx, void *priv, const struct polycm_layer *layer)
{
	struct layer_id *self = priv;

	assert_ptr_equal(ctx, &order);
	assert_int_equal((uintptr_t)priv % 16, 0);
	for (size_t i = 0; i < sizeof(*self); i++)
		assert_int_equal(((unsigned char *)priv)[i], 0);
	memset(self->mark, 'o', sizeof(self->mark));
	self->layer = layer;
	begun++;
}

static void check_area(const struct layer_id *self)
{
	for (size_t i = 0; i < sizeof(self->mark); i++)
		assert_int_equal(self->mark[i], 'o');
}

static void outer_end(void *priv)
{
	check_area(priv);
	ended++;
}

static int outer_init(struct polycm_module *module, void **ret_ctx)
{
	(void)module;
	*ret_ctx = &order;
	return 0;
}

static int outer_connect(void *priv, const struct polycm_conn_param *param)
{
	const struct layer_id *self = priv;
	int err;

	see("outer", "connect");
	err = self->layer->ops->connect(self->layer->priv, param);
	see("outer", err ? "failed" : "connected");
	return err;
}

static int outer_event(void *priv, const struct polycm_event *event, uint64_t hold_ns)
{
	const struct layer_id *self = priv;

	check_area(self);
	see("outer", polycm_event_name(event->type));
	order.heard_hold = hold_ns;
	return self->layer->post(self->layer, event, hold_ns);
}

static const struct polycm_ops outer_ops = {
	.size = sizeof(outer_ops),
	.init = outer_init,
	.connect = outer_connect,
};

static const struct polycm_layer_ops outer_layer = {
	.size = sizeof(outer_layer),
	.begin = outer_begin,
	.event = outer_event,
	.end = outer_end,
};

static void inner_begin(void *ctx, void *priv, const struct polycm_layer *layer)
{
	(void)ctx;
	*(const struct polycm_layer **)priv = layer;
}

static int inner_connect(void *priv, const struct polycm_conn_param *param)
{
	const struct polycm_layer *layer = *(const struct polycm_layer **)priv;

	see("inner", "connect");
	return order.fail_connect ? order.fail_connect : layer->ops->connect(layer->priv, param);
}

static int inner_event(void *priv, const struct polycm_event *event, uint64_t hold_ns)
{
	const struct polycm_layer *layer = *(const struct polycm_layer **)priv;
	struct polycm_event copy = *event;

	see("inner", polycm_event_name(event->type));
	if (order.lose)
		return 0;
	if (order.becomes)
		copy.type = order.becomes;
	if (order.data) {
		copy.param.conn.private_data = order.data;
		copy.param.conn.private_data_len = (uint8_t)strlen(order.data);
	}
	return layer->post(layer, &copy, hold_ns + order.hold_ms * MS);
}

static const struct polycm_ops inner_ops = {
	.size = sizeof(inner_ops),
	.connect = inner_connect,
};

static const struct polycm_layer_ops inner_layer = {
	.size = sizeof(inner_layer),
	.begin = inner_begin,
	.event = inner_event,
};

/* A layer without any operation. */
static const struct polycm_layer_ops empty_layer = { .size = sizeof(empty_layer) };

static const struct polycm_provider layers[] = {
	{
		.size = sizeof(layers[0]),
		.name = "outer",
		.ops = &outer_ops,
		.layer = &outer_layer,
		.id_size = sizeof(struct layer_id),
	},
	{
		.size = sizeof(layers[0]),
		.name = "empty",
		.layer = &empty_layer,
	},
	{
		.size = sizeof(layers[0]),
		.name = "inner",
		.ops = &inner_ops,
		.layer = &inner_layer,
		.id_size = sizeof(void *),
	},
};

/* ------------------------------------------------------------------------
 * Tests.
 */

static struct rdma_event_channel *channel;

static int reset(void **state)
{
	memset(&order, 0, sizeof(order));
	hands.fail = 0;
	begun = ended = 0;
	(void)fakes_reset(state);
	channel = rdma_create_event_channel();
	assert_non_null(channel);
	seen[0] = '\0';
	return 0;
}

static int check(void **state)
{
	rdma_destroy_event_channel(channel);
	assert_int_equal(hands.given, 0);
	assert_null(hands.timers);
	assert_int_equal(begun, ended);
	return fakes_check(state);
}

#define LAYER_TEST(function) cmocka_unit_test_setup_teardown(function, reset, check)

static struct fake_id *fake_of(struct rdma_cm_id *id)
{
	struct polycm_id *self = (struct polycm_id *)(void *)id;

	return (struct fake_id *)(void *)(self->priv + polycm_layers_size());
}

static void start_connecting(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };

	seen[0] = '\0';
	assert_int_equal(rdma_connect(id, &param), 0);
}

static void calls_go_from_outside_to_inside(void **state)
{
	struct rdma_cm_id *id = resolved_id(channel);

	(void)state;
	start_connecting(id);
	assert_string_equal(seen, "outer.connect inner.connect outer.connected");
	assert_int_equal(fakes[0].calls[OP_CONNECT], 1);
	assert_ptr_equal(fake_of(id)->fake, &fakes[0]);

	order.fail_connect = -ECONNREFUSED;
	seen[0] = '\0';
	assert_errno(rdma_connect(id, &(struct rdma_conn_param){ 0 }), ECONNREFUSED);
	assert_string_equal(seen, "outer.connect inner.connect outer.failed");
	assert_int_equal(fakes[0].calls[OP_CONNECT], 1);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void what_a_layer_does_not_have_goes_through(void **state)
{
	struct rdma_cm_id *listener = listening_id(channel), *id = requested_id(listener);
	struct rdma_conn_param param = { .qp_num = 5 };

	(void)state;
	fakes[0].fail[OP_ACCEPT] = -E2BIG;
	assert_errno(rdma_accept(id, &param), E2BIG);
	assert_int_equal(fakes[0].calls[OP_ACCEPT], 1);
	fakes[0].fail[OP_ACCEPT] = 0;
	assert_int_equal(rdma_accept(id, &param), 0);
	assert_int_equal(fakes[0].calls[OP_ACCEPT], 2);
	rdma_destroy_id(id);
	rdma_destroy_id(listener);
}

static void events_go_from_inside_to_outside(void **state)
{
	struct rdma_cm_id *id = resolved_id(channel);
	struct rdma_cm_event *event;

	(void)state;
	seen[0] = '\0';
	order.becomes = RDMA_CM_EVENT_UNREACHABLE;
	order.data = "why";
	assert_int_equal(post(id, RDMA_CM_EVENT_REJECTED, 28), 0);
	assert_string_equal(seen, "inner.REJECTED outer.UNREACHABLE");
	event = next_event(channel, RDMA_CM_EVENT_UNREACHABLE, 28);
	assert_int_equal(event->param.conn.private_data_len, 3);
	assert_memory_equal(event->param.conn.private_data, "why", 3);
	assert_int_equal(rdma_ack_cm_event(event), 0);

	order.becomes = 0;
	order.lose = true;
	seen[0] = '\0';
	assert_int_equal(post(id, RDMA_CM_EVENT_ESTABLISHED, 0), 0);
	assert_string_equal(seen, "inner.ESTABLISHED");
	expect_no_event(channel);
	order.lose = false;
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void wrong_events_are_refused(void **state)
{
	struct rdma_cm_id *id = resolved_id(channel);
	struct polycm_event event = { .size = 8, .type = RDMA_CM_EVENT_ESTABLISHED };

	(void)state;
	seen[0] = '\0';
	assert_int_equal(polycm_post_event((struct polycm_id *)(void *)id, &event), -EINVAL);
	assert_int_equal(polycm_post_event((struct polycm_id *)(void *)id, NULL), -EINVAL);
	event.size = sizeof(event);
	event.type = RDMA_CM_EVENT_MULTICAST_JOIN;
	assert_int_equal(polycm_post_event((struct polycm_id *)(void *)id, &event), -EINVAL);
	assert_string_equal(seen, "");
	event.type = RDMA_CM_EVENT_ESTABLISHED;
	assert_int_equal(polycm_post_event((struct polycm_id *)(void *)id, &event), 0);
	expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void late_events_keep_their_order(void **state)
{
	struct rdma_cm_id *id = resolved_id(channel), *other = resolved_id(channel);

	(void)state;
	order.hold_ms = 10;
	assert_int_equal(post(id, RDMA_CM_EVENT_ESTABLISHED, 0), 0);
	assert_int_equal(order.heard_hold, 10 * MS);
	order.hold_ms = 5;
	assert_int_equal(post(id, RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
	order.hold_ms = 0;
	assert_int_equal(post(id, RDMA_CM_EVENT_DISCONNECTED, 0), 0);
	expect_no_event(channel);
	assert_int_equal(post(other, RDMA_CM_EVENT_ESTABLISHED, 0), 0);
	expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pass_ms(9);
	expect_no_event(channel);
	pass_ms(1);
	expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	expect_event(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(hands.given, 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_int_equal(rdma_destroy_id(other), 0);
}

/* The provider's words, also through layers that hand on a copy. */
static void late_events_keep_their_words(void **state)
{
	const struct polycm_event event = {
		.size = sizeof(event), .type = RDMA_CM_EVENT_UNREACHABLE, .status = -ETIMEDOUT,
		.why = "the cat ate it",
	};
	struct rdma_cm_id *id = resolved_id(channel);
	struct capture capture;

	(void)state;
	order.hold_ms = 10;
	assert_int_equal(polycm_post_event((struct polycm_id *)(void *)id, &event), 0);
	pass_ms(10);
	polycm_log_level = POLYCM_LOG_WARN;
	capture_begin(&capture);
	expect_event(channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	(void)capture_end(&capture);
	polycm_log_level = POLYCM_LOG_ERROR;
	assert_non_null(strstr(capture.text, "UNREACHABLE: the cat ate it"));
	assert_int_equal(rdma_destroy_id(id), 0);
}

/* Before its time, after it and not fetched, fetched and acked: the timer is given back each time. */
static void ids_end_with_late_events(void **state)
{
	struct rdma_cm_id *id;

	(void)state;
	for (unsigned int when = 0; when < 3; when++) {
		order.hold_ms = 0;
		id = resolved_id(channel);
		order.hold_ms = 10;
		assert_int_equal(post(id, RDMA_CM_EVENT_ESTABLISHED, 0), 0);
		assert_int_equal(hands.given, 1);
		if (when > 0)
			pass_ms(10);
		if (when > 1)
			expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_int_equal(rdma_destroy_id(id), 0);
		assert_int_equal(hands.given, 0);
		pass_ms(20);
		expect_no_event(channel);
	}
}

static void late_events_go_to_another_channel(void **state)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved_id(channel);

	(void)state;
	order.hold_ms = 10;
	assert_int_equal(post(id, RDMA_CM_EVENT_ESTABLISHED, 0), 0);
	assert_int_equal(rdma_migrate_id(id, other), 0);
	pass_ms(10);
	expect_no_event(channel);
	expect_event(other, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(other);
}

static void without_a_timer_nothing_is_lost(void **state)
{
	struct rdma_cm_id *id = resolved_id(channel);

	(void)state;
	order.hold_ms = 10;
	hands.fail = -ENOMEM;
	assert_int_equal(post(id, RDMA_CM_EVENT_ESTABLISHED, 0), 0);
	expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void a_lost_request_is_the_providers(void **state)
{
	struct rdma_cm_id *listener = listening_id(channel);

	(void)state;
	order.lose = true;
	assert_int_equal(post_request(fakes, (struct polycm_id *)(void *)listener, NULL, NULL),
			 -ENOMEM);
	expect_no_event(channel);
	order.lose = false;
	assert_int_equal(rdma_destroy_id(requested_id(listener)), 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
}

/* The provider did its part: it is not given up for what a layer loses. */
static void a_lost_answer_is_an_answer(void **state)
{
	struct rdma_cm_id *id = new_id(channel);

	(void)state;
	order.lose = true;
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.0.2", 7471), 100), 0);
	assert_int_equal(hands.given, 0);
	order.lose = false;

	fakes[0].quiet = true;
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.0.2", 7471), 100), 0);
	assert_int_equal(hands.given, 1);
	order.lose = true;
	assert_int_equal(post(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0), 0);
	order.lose = false;
	pass_ms(10000);
	expect_no_event(channel);
	assert_int_equal(rdma_destroy_id(id), 0);
}

/* What is posted for the new id does not overtake the event that tells of it. */
static void a_late_request_comes_first(void **state)
{
	struct rdma_cm_id *listener = listening_id(channel);
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	struct polycm_id *child;

	(void)state;
	order.hold_ms = 10;
	assert_int_equal(post_request(fakes, (struct polycm_id *)(void *)listener, NULL, &child), 0);
	order.hold_ms = 0;
	assert_int_equal(post(&child->pub, RDMA_CM_EVENT_DISCONNECTED, 0), 0);
	expect_no_event(channel);
	pass_ms(10);
	event = next_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	id = event->id;
	assert_int_equal(rdma_ack_cm_event(event), 0);
	expect_event(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
}

static void late_requests_end_with_their_listener(void **state)
{
	struct rdma_cm_id *listener = listening_id(channel);
	struct polycm_id *child;

	(void)state;
	order.hold_ms = 10;
	assert_int_equal(post_request(fakes, (struct polycm_id *)(void *)listener, NULL, &child), 0);
	assert_int_equal(post(&child->pub, RDMA_CM_EVENT_DISCONNECTED, 0), 0);
	assert_int_equal(hands.given, 2);
	assert_int_equal(rdma_destroy_id(listener), 0);
	assert_int_equal(hands.given, 0);
	assert_int_equal(fakes[0].ids, 0);
	pass_ms(20);
	expect_no_event(channel);
}

static void late_requests_count_for_the_backlog(void **state)
{
	struct rdma_cm_id *listener = new_id(channel);

	(void)state;
	assert_int_equal(rdma_bind_addr(listener, addr4("0.0.0.0", 7471)), 0);
	assert_int_equal(rdma_listen(listener, 1), 0);
	order.hold_ms = 10;
	assert_int_equal(post_request(fakes, (struct polycm_id *)(void *)listener, NULL, NULL), 0);
	assert_int_equal(post_request(fakes, (struct polycm_id *)(void *)listener, NULL, NULL),
			 -ENOMEM);
	assert_int_equal(rdma_destroy_id(listener), 0);
}

static void a_channel_ends_under_late_events(void **state)
{
	struct rdma_cm_id *id = resolved_id(channel);

	(void)state;
	order.hold_ms = 10;
	assert_int_equal(post(id, RDMA_CM_EVENT_ESTABLISHED, 0), 0);
	rdma_destroy_event_channel(channel);
	channel = rdma_create_event_channel();
	pass_ms(20);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static int start(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(layers); i++)
		if (polycm_registry_add_static(&layers[i]))
			return -1;
	return polycm_clock_install(&hands_clock, NULL) ? -1 : fakes_start(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LAYER_TEST(calls_go_from_outside_to_inside),
		LAYER_TEST(what_a_layer_does_not_have_goes_through),
		LAYER_TEST(events_go_from_inside_to_outside),
		LAYER_TEST(wrong_events_are_refused),
		LAYER_TEST(late_events_keep_their_order),
		LAYER_TEST(late_events_keep_their_words),
		LAYER_TEST(ids_end_with_late_events),
		LAYER_TEST(late_events_go_to_another_channel),
		LAYER_TEST(without_a_timer_nothing_is_lost),
		LAYER_TEST(a_lost_request_is_the_providers),
		LAYER_TEST(a_lost_answer_is_an_answer),
		LAYER_TEST(a_late_request_comes_first),
		LAYER_TEST(late_requests_end_with_their_listener),
		LAYER_TEST(late_requests_count_for_the_backlog),
		LAYER_TEST(a_channel_ends_under_late_events),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
