/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Providers that do not answer resolve_addr() or resolve_route() within
 * timeout_ms, in virtual time: the program gets its event, once.  "beta" owns
 * the clock, so what it does not answer is its own affair; the other is "acme".
 */
#include "cm_fake.h"

#include "core/base/clock.h"
#include "core/base/log.h"

#define MS UINT64_C(1000000)
#define TIMEOUT_MS 2000
#define GIVEN_UP_MS (TIMEOUT_MS + TIMEOUT_MS / 4 + 1000)

/* ------------------------------------------------------------------------
 * A clock that moves from one timer to the next when somebody waits.
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
	assert_non_null(timer);
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

static int hands_idle(void *ctx)
{
	struct polycm_timer *timer = hands.timers;

	(void)ctx;
	if (!timer)
		return -EDEADLK;
	unlink_timer(timer);
	hands.now = timer->deadline;
	timer->fn(timer->arg);
	return 1;
}

static const struct polycm_clock hands_clock = {
	.size = sizeof(struct polycm_clock),
	.now_ns = hands_now,
	.timer_start = hands_start,
	.timer_cancel = hands_cancel,
	.idle = hands_idle,
};

static void pass_ms(unsigned int ms)
{
	uint64_t until = hands.now + ms * MS;

	while (hands.timers && hands.timers->deadline <= until)
		(void)hands_idle(NULL);
	hands.now = until;
}

/* ------------------------------------------------------------------------ */

static struct rdma_event_channel *channel;
static struct capture capture;

static int reset(void **state)
{
	memset(&hands, 0, sizeof(hands));
	(void)fakes_reset(state);
	channel = rdma_create_event_channel();
	assert_non_null(channel);
	polycm_log_level = POLYCM_LOG_WARN;
	return 0;
}

static int check(void **state)
{
	rdma_destroy_event_channel(channel);
	assert_int_equal(hands.given, 0);
	assert_null(hands.timers);
	return fakes_check(state);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, reset, check)

static void check_lines(unsigned int num, const char *text)
{
	const char *lines = capture_end(&capture);

	if (count_lines(lines) == num && (!num || strstr(lines, text)))
		return;
	fail_msg("not %u lines with '%s': %s", num, text, lines);
}

/* An id of acme's which gets no answer from now on. */
static struct rdma_cm_id *begin(bool route)
{
	struct rdma_cm_id *id = new_id(channel);

	fakes[0].quiet = false;
	if (route) {
		assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.0.2", 7471), TIMEOUT_MS), 0);
		expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	}
	assert_int_equal(hands.given, 0);
	fakes[0].quiet = true;
	return id;
}

static int ask(struct rdma_cm_id *id, bool route, int timeout_ms)
{
	return route ? rdma_resolve_route(id, timeout_ms) :
		       rdma_resolve_addr(id, NULL, addr4("10.0.0.2", 7471), timeout_ms);
}

static const struct {
	const char *operation, *good_name, *bad_name;
	enum rdma_cm_event_type good, bad;
} questions[] = {
	{ "provider acme: resolve_addr(): ", "ADDR_RESOLVED", "ADDR_ERROR",
	  RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_ERROR },
	{ "provider acme: resolve_route(): ", "ROUTE_RESOLVED", "ROUTE_ERROR",
	  RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_ROUTE_ERROR },
};

static void the_program_gets_its_event(void **state)
{
	(void)state;
	for (unsigned int route = 0; route < 2; route++) {
		struct rdma_cm_id *id = begin(route);
		uint64_t start = hands.now;

		assert_int_equal(ask(id, route, TIMEOUT_MS), 0);
		capture_begin(&capture);
		pass_ms(GIVEN_UP_MS - 1);
		expect_no_event(channel);
		check_lines(0, NULL);

		capture_begin(&capture);
		expect_event(channel, questions[route].bad, -ETIMEDOUT);
		check_lines(2, questions[route].operation);
		assert_non_null(strstr(capture.text, "timeout_ms, 2000"));
		assert_non_null(strstr(capture.text, "the provider did not answer in time"));
		assert_int_equal(hands.now - start, GIVEN_UP_MS * MS);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
}

static void late_answers_are_dropped(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		bool route = i / 2;
		struct rdma_cm_id *id = begin(route);

		assert_int_equal(ask(id, route, TIMEOUT_MS), 0);
		capture_begin(&capture);
		expect_event(channel, questions[route].bad, -ETIMEDOUT);
		(void)capture_end(&capture);

		capture_begin(&capture);
		assert_int_equal(post(id, i % 2 ? questions[route].good : questions[route].bad, 0),
				 -ETIMEDOUT);
		check_lines(1, "provider acme: post_event(): ");
		assert_non_null(strstr(capture.text, i % 2 ? questions[route].good_name :
							     questions[route].bad_name));
		expect_no_event(channel);
		/* What is no answer comes through. */
		assert_int_equal(post(id, RDMA_CM_EVENT_ADDR_CHANGE, 0), 0);
		expect_event(channel, RDMA_CM_EVENT_ADDR_CHANGE, 0);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
}

/* At the last moment, good or bad; nothing else comes, and nothing is left of the timer. */
static void answers_in_time_are_the_only_ones(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		bool route = i / 2;
		enum rdma_cm_event_type type = i % 2 ? questions[route].bad : questions[route].good;
		struct rdma_cm_id *id = begin(route);
		int status = i % 2 ? -EHOSTUNREACH : 0;

		assert_int_equal(ask(id, route, TIMEOUT_MS), 0);
		pass_ms(GIVEN_UP_MS - 1);
		fake_id_of(id)->on_device = true;
		assert_int_equal(post(id, type, status), 0);
		capture_begin(&capture);
		expect_event(channel, type, status);
		(void)capture_end(&capture);
		assert_int_equal(hands.given, 0);
		capture_begin(&capture);
		pass_ms(10 * GIVEN_UP_MS);
		expect_no_event(channel);
		check_lines(0, NULL);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
}

/* It was answered in time, and the program looks later. */
static void the_program_may_be_late(void **state)
{
	struct rdma_cm_id *id = begin(false);

	(void)state;
	assert_int_equal(ask(id, false, TIMEOUT_MS), 0);
	fake_id_of(id)->on_device = true;
	assert_int_equal(post(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0), 0);
	capture_begin(&capture);
	pass_ms(10 * GIVEN_UP_MS);
	check_lines(0, NULL);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	expect_no_event(channel);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void synchronous_calls_return(void **state)
{
	struct rdma_cm_id *id;

	(void)state;
	for (unsigned int route = 0; route < 2; route++) {
		id = new_id(NULL);
		fakes[0].quiet = false;
		if (route)
			assert_int_equal(ask(id, false, TIMEOUT_MS), 0);
		fakes[0].quiet = true;
		capture_begin(&capture);
		assert_errno(ask(id, route, TIMEOUT_MS), ETIMEDOUT);
		(void)capture_end(&capture);
		assert_non_null(strstr(capture.text, questions[route].operation));
		assert_int_equal(id->event->event, questions[route].bad);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
}

/* After it was given up the same id may be asked again, as rsockets do. */
static void ids_may_be_asked_again(void **state)
{
	struct rdma_cm_id *id = begin(false);

	(void)state;
	assert_int_equal(ask(id, false, TIMEOUT_MS), 0);
	capture_begin(&capture);
	expect_event(channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	/* A refused call changes nothing. */
	fakes[0].fail[OP_RESOLVE_ADDR] = -EINVAL;
	assert_errno(ask(id, false, TIMEOUT_MS), EINVAL);
	assert_int_equal(post(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0), -ETIMEDOUT);
	(void)capture_end(&capture);
	fakes[0].fail[OP_RESOLVE_ADDR] = 0;
	assert_int_equal(ask(id, false, TIMEOUT_MS), 0);
	fake_id_of(id)->on_device = true;
	assert_int_equal(post(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

/* The first is still under way, and given up when it would have been. */
static void a_refused_second_call_leaves_the_first(void **state)
{
	struct rdma_cm_id *id = begin(false);
	uint64_t start = hands.now;

	(void)state;
	assert_int_equal(ask(id, false, TIMEOUT_MS), 0);
	pass_ms(100);
	capture_begin(&capture);
	fakes[0].fail[OP_RESOLVE_ADDR] = -EINVAL;
	assert_errno(ask(id, false, 10 * TIMEOUT_MS), EINVAL);
	expect_event(channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	(void)capture_end(&capture);
	assert_int_equal(hands.now - start, GIVEN_UP_MS * MS);
	assert_int_equal(rdma_destroy_id(id), 0);
}

/* A negative time-out is none, as for the kernel. */
static void without_a_timeout_nothing_is_given_up(void **state)
{
	struct rdma_cm_id *id = begin(false);

	(void)state;
	assert_int_equal(ask(id, false, -1), 0);
	assert_int_equal(hands.given, 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void ids_and_channels_end_meanwhile(void **state)
{
	struct rdma_cm_id *id = begin(false);

	(void)state;
	assert_int_equal(ask(id, false, TIMEOUT_MS), 0);
	assert_int_equal(hands.given, 1);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_int_equal(hands.given, 0);

	id = new_id(channel);
	assert_int_equal(ask(id, false, TIMEOUT_MS), 0);
	rdma_destroy_event_channel(channel);
	channel = rdma_create_event_channel();
	capture_begin(&capture);
	pass_ms(10 * GIVEN_UP_MS);
	check_lines(0, NULL);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void the_event_follows_its_id(void **state)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct rdma_cm_id *id = begin(false);

	(void)state;
	assert_int_equal(ask(id, false, TIMEOUT_MS), 0);
	assert_int_equal(rdma_migrate_id(id, other), 0);
	capture_begin(&capture);
	expect_event(other, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	(void)capture_end(&capture);
	expect_no_event(channel);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(other);
}

static void without_a_timer_the_call_goes_on(void **state)
{
	struct rdma_cm_id *id = begin(false);

	(void)state;
	hands.fail = -ENOMEM;
	capture_begin(&capture);
	assert_int_equal(ask(id, false, TIMEOUT_MS), 0);
	check_lines(1, "no timer to see whether the provider answers in time");
	fake_id_of(id)->on_device = true;
	assert_int_equal(post(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

/* It may let time stand still, so it alone knows when an answer is late. */
static void who_owns_time_is_not_watched(void **state)
{
	struct rdma_cm_id *id = new_id(channel);

	(void)state;
	fakes[1].quiet = true;
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("20.0.0.2", 7471), TIMEOUT_MS), 0);
	assert_int_equal(fakes[1].calls[OP_RESOLVE_ADDR], 1);
	assert_int_equal(hands.given, 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

/* An id that was given up at one provider goes on at another. */
static void another_provider_begins_anew(void **state)
{
	struct rdma_cm_id *id = begin(false);

	(void)state;
	assert_int_equal(ask(id, false, TIMEOUT_MS), 0);
	capture_begin(&capture);
	expect_event(channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	(void)capture_end(&capture);
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("20.0.0.2", 7471), TIMEOUT_MS), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(hands.given, 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static int start(void **state)
{
	(void)state;
	beta_clock = &hands_clock;
	return fakes_start(2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_program_gets_its_event),
		TEST(late_answers_are_dropped),
		TEST(answers_in_time_are_the_only_ones),
		TEST(the_program_may_be_late),
		TEST(synchronous_calls_return),
		TEST(ids_may_be_asked_again),
		TEST(a_refused_second_call_leaves_the_first),
		TEST(without_a_timeout_nothing_is_given_up),
		TEST(ids_and_channels_end_meanwhile),
		TEST(the_event_follows_its_id),
		TEST(without_a_timer_the_call_goes_on),
		TEST(who_owns_time_is_not_watched),
		TEST(another_provider_begins_anew),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
