/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Providers that break a rule of the plugin ABI: one line at `error' names the
 * provider, the operation and the rule, and nothing crashes.
 */
#include "cm_fake.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "polycm/polycm.h"

static struct polycm_id *internal(struct rdma_cm_id *id)
{
	return (struct polycm_id *)(void *)id;
}

/* One line, at `error', with these parts. */
static void check_line(struct capture *capture, const char *who, const char *operation,
		       const char *rule)
{
	const char *text = capture_end(capture);

	if (count_lines(text) == 1 && strstr(text, "polycm: error: ") && strstr(text, who) &&
	    strstr(text, operation) && strstr(text, rule))
		return;
	fail_msg("no line of %s, %s, %s: %s", who, operation, rule, text);
}

/* Errnos that are positive are taken for what was meant. */
static int call_bind(struct rdma_cm_id *id)
{
	return rdma_bind_addr(id, addr4("10.0.0.1", 0));
}

static int call_resolve_addr(struct rdma_cm_id *id)
{
	return rdma_resolve_addr(id, NULL, addr4("10.0.0.2", 7471), 100);
}

static int call_listen(struct rdma_cm_id *id)
{
	return rdma_listen(id, 1);
}

static int call_option(struct rdma_cm_id *id)
{
	uint8_t tos = 1;

	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos));
}

static void positive_errnos_are_errors(void **state)
{
	static const struct {
		enum fake_op op;
		const char *name;
		int (*call)(struct rdma_cm_id *id);
	} tests[] = {
		{ OP_BIND, "bind()", call_bind },
		{ OP_RESOLVE_ADDR, "resolve_addr()", call_resolve_addr },
		{ OP_LISTEN, "listen()", call_listen },
		{ OP_SET_OPTION, "set_option()", call_option },
	};
	struct rdma_event_channel *channel = rdma_create_event_channel();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		struct rdma_cm_id *id = new_id(channel);
		struct capture capture;

		fakes[0].fail[tests[i].op] = EBUSY;
		capture_begin(&capture);
		assert_errno(tests[i].call(id), EBUSY);
		check_line(&capture, "provider acme", tests[i].name, "it returned 16");
		fakes[0].fail[tests[i].op] = 0;
		assert_int_equal(rdma_destroy_id(id), 0);
	}
	rdma_destroy_event_channel(channel);
}

static void bad_events_are_told(void **state)
{
	static int group;
	const struct {
		struct polycm_event event;
		const char *rule;
	} tests[] = {
		{ { .size = 0, .type = RDMA_CM_EVENT_DISCONNECTED }, "the event has 0 bytes" },
		{ { .size = 8, .type = RDMA_CM_EVENT_DISCONNECTED }, "the event has 8 bytes" },
		{ { .size = sizeof(struct polycm_event), .type = (enum rdma_cm_event_type)16 },
		  "event type 16 answers a call that no operation stands for" },
		{ { .size = sizeof(struct polycm_event), .type = (enum rdma_cm_event_type)19 },
		  "event type 19 answers a call that no operation stands for" },
		{ { .size = sizeof(struct polycm_event), .type = (enum rdma_cm_event_type)20 },
		  "20 is no type of event" },
		{ { .size = sizeof(struct polycm_event), .type = (enum rdma_cm_event_type)-1 },
		  "-1 is no type of event" },
		{ { .size = sizeof(struct polycm_event), .type = RDMA_CM_EVENT_CONNECT_REQUEST },
		  "the child of a CONNECT_REQUEST" },
		{ { .size = offsetof(struct polycm_event, child),
		    .type = RDMA_CM_EVENT_CONNECT_REQUEST }, "the event has " },
		{ { .size = sizeof(struct polycm_event), .type = RDMA_CM_EVENT_CONNECT_REQUEST,
		    .child = (struct polycm_id *)(void *)&group }, "the child of a CONNECT_REQUEST" },
		{ { .size = sizeof(struct polycm_event), .type = RDMA_CM_EVENT_MULTICAST_JOIN },
		  "without the group" },
	};
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved_id(channel);
	struct capture capture;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		capture_begin(&capture);
		assert_int_equal(polycm_post_event(internal(id), &tests[i].event), -EINVAL);
		check_line(&capture, "provider acme", "post_event()", tests[i].rule);
	}
	capture_begin(&capture);
	assert_int_equal(polycm_post_event(internal(id), NULL), -EINVAL);
	check_line(&capture, "provider acme", "post_event()", "no event");
	expect_no_event(channel);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

static void a_child_ends_once(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = listening_id(channel), *other = new_id(channel);
	struct polycm_event event = {
		.size = sizeof(event), .type = RDMA_CM_EVENT_CONNECT_REQUEST,
	};
	struct capture capture;
	struct polycm_id *child;
	void *priv;

	(void)state;
	assert_int_equal(polycm_child_create(internal(listener), &child, &priv), 0);
	event.child = child;
	assert_int_equal(rdma_bind_addr(other, addr4("10.0.0.1", 0)), 0);
	capture_begin(&capture);
	assert_int_equal(polycm_post_event(internal(other), &event), -EINVAL);
	check_line(&capture, "provider acme", "post_event()", "another listener's");

	polycm_child_destroy(child);
	capture_begin(&capture);
	polycm_child_destroy(child);
	check_line(&capture, "provider ", "child_destroy()", "destroyed before");
	capture_begin(&capture);
	assert_int_equal(polycm_post_event(internal(listener), &event), -EINVAL);
	check_line(&capture, "provider acme", "post_event()", "the child of a CONNECT_REQUEST");

	/* Once it was posted it is the core's, and posted once. */
	assert_int_equal(post_request(fakes, internal(listener), NULL, &child), 0);
	capture_begin(&capture);
	polycm_child_destroy(child);
	check_line(&capture, "provider ", "child_destroy()", "was posted");
	event.child = child;
	capture_begin(&capture);
	assert_int_equal(polycm_post_event(internal(listener), &event), -EINVAL);
	check_line(&capture, "provider acme", "post_event()", "the child of a CONNECT_REQUEST");
	assert_int_equal(rdma_destroy_id(other), 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(channel);
}

static void nothing(void *arg)
{
	(void)arg;
}

static void a_timer_is_cancelled_once(void **state)
{
	struct polycm_timer *timer;
	struct capture capture;

	(void)state;
	assert_int_equal(polycm_timer_start(UINT64_MAX, nothing, NULL, &timer), 0);
	polycm_timer_cancel(timer);
	capture_begin(&capture);
	polycm_timer_cancel(timer);
	check_line(&capture, "provider ", "timer_cancel()", "once for each");
}

static void a_device_is_removed_once(void **state)
{
	static struct polycm_verbs_device vdev = { .verbs = &fake_verbs_table };
	struct polycm_device_info info = {
		.size = sizeof(info), .name = "acme7", .transport = "acme", .verbs = &vdev,
	};
	struct polycm_device *device;
	struct capture capture;

	(void)state;
	assert_int_equal(polycm_device_add(fakes[0].module, &info, &device), 0);
	polycm_device_remove(device);
	capture_begin(&capture);
	polycm_device_remove(device);
	check_line(&capture, "provider ", "device_remove()", "removed before");
	capture_begin(&capture);
	polycm_device_gone(device);
	check_line(&capture, "provider ", "device_gone()", "removed before");
}

static void put_nonsense(const struct polycm_report *to)
{
	to->put(to, "first", "1\n2%c3", '\0');
	to->put(to, "se\ncond", "%s", "");
	to->put(to, "third", "3");
}

static void put_nothing(const struct polycm_report *to)
{
	const char *none = NULL;

	to->put(to, none, "%s", "value");
}

static int add_fact(void *arg, const char *name, const char *value)
{
	char *text = arg;

	sprintf(text + strlen(text), "%s=%s;", name, value);
	return 0;
}

/* A fact is one line, and does not shift what comes after it. */
static void facts_are_lines(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(channel);
	struct capture capture;
	char text[1024] = "";

	(void)state;
	assert_int_equal(call_bind(id), 0);
	fakes[0].inspect = put_nonsense;
	assert_int_equal(polycm_id_walk(id, add_fact, text), 0);
	assert_non_null(strstr(text, ";first=1?2;se?cond=;third=3;"));

	fakes[0].inspect = put_nothing;
	text[0] = '\0';
	capture_begin(&capture);
	assert_int_equal(polycm_id_walk(id, add_fact, text), 0);
	check_line(&capture, "provider ", "put()", "a name and a format");
	assert_null(strstr(text, "value"));
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

/* By real time, for a program that waits on a channel, and in a synchronous call. */
static void unanswered_questions_end(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(channel);
	uint64_t slack = polycm_answer_slack_ns;
	struct capture capture;

	(void)state;
	polycm_answer_slack_ns = 0;
	fakes[0].quiet = true;
	capture_begin(&capture);
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.0.2", 7471), 1), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	assert_non_null(strstr(capture_end(&capture), "provider acme: resolve_addr(): neither "));
	assert_int_equal(rdma_destroy_id(id), 0);

	id = new_id(NULL);
	capture_begin(&capture);
	assert_errno(rdma_resolve_addr(id, NULL, addr4("10.0.0.2", 7471), 1), ETIMEDOUT);
	assert_non_null(strstr(capture_end(&capture), "provider acme: resolve_addr(): neither "));
	assert_int_equal(rdma_destroy_id(id), 0);
	polycm_answer_slack_ns = slack;
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
		RDMA_TEST(positive_errnos_are_errors),
		RDMA_TEST(bad_events_are_told),
		RDMA_TEST(a_child_ends_once),
		RDMA_TEST(a_timer_is_cancelled_once),
		RDMA_TEST(a_device_is_removed_once),
		RDMA_TEST(facts_are_lines),
		RDMA_TEST(unanswered_questions_end),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
