/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log lines: which are written, what they look like, and that hostile text
 * cannot break them.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "tests/cmocka_all.h"
#include "capture.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/plugin/options.h"

static struct capture capture;

static void levels_decide(void **state)
{
	static const char *const lines[] = {
		"polycm: error: it is 1\n", "polycm: warn: it is 1\n", "polycm: info: it is 1\n",
	};
	char want[256];

	(void)state;
	for (int level = POLYCM_LOG_ERROR; level <= POLYCM_LOG_INFO; level++) {
		polycm_log_level = level;
		*want = '\0';
		for (int i = 0; i <= level; i++)
			strcat(want, lines[i]);
		capture_begin(&capture);
		for (int i = POLYCM_LOG_ERROR; i <= POLYCM_LOG_TRACE; i++) {
			assert_int_equal(polycm_log_enabled((enum polycm_log_level)i), i <= level);
			polycm_log((enum polycm_log_level)i, "it is %d", 1);
		}
		assert_string_equal(capture_end(&capture), want);
	}
}

static uint64_t fake_now(void *ctx)
{
	return *(uint64_t *)ctx;
}

static int fake_start(void *ctx, uint64_t deadline_ns, void (*fn)(void *arg), void *arg,
		      struct polycm_timer **ret_timer)
{
	(void)ctx;
	(void)deadline_ns;
	(void)fn;
	(void)arg;
	(void)ret_timer;
	return -ENOTSUP;
}

static void fake_cancel(void *ctx, struct polycm_timer *timer)
{
	(void)ctx;
	(void)timer;
}

static void verbose_lines_have_the_time(void **state)
{
	static uint64_t now = 12345006789123;
	static const struct polycm_clock clock = {
		.size = sizeof(clock),
		.now_ns = fake_now,
		.timer_start = fake_start,
		.timer_cancel = fake_cancel,
	};

	(void)state;
	assert_int_equal(polycm_clock_install(&clock, &now), 0);
	polycm_log_level = POLYCM_LOG_DEBUG;
	capture_begin(&capture);
	polycm_log(POLYCM_LOG_DEBUG, "a");
	polycm_log(POLYCM_LOG_ERROR, "b");
	polycm_log(POLYCM_LOG_TRACE, "c");
	assert_string_equal(capture_end(&capture), "polycm: 12345.006789 debug: a\n"
						   "polycm: 12345.006789 error: b\n");
	polycm_log_level = POLYCM_LOG_WARN;
}

static void errno_stays(void **state)
{
	int before;

	(void)state;
	capture_begin(&capture);
	before = dup(STDERR_FILENO);
	close(STDERR_FILENO);
	errno = EDOM;
	polycm_log(POLYCM_LOG_ERROR, "nobody reads this: %s", strerror(EBADF));
	assert_int_equal(errno, EDOM);
	dup2(before, STDERR_FILENO);
	close(before);
	polycm_log(POLYCM_LOG_WARN, "but this");
	assert_int_equal(errno, EDOM);
	assert_string_equal(capture_end(&capture), "polycm: warn: but this\n");
}

static void *log_when_cancelled(void *arg)
{
	(void)arg;
	pthread_cancel(pthread_self());
	polycm_log(POLYCM_LOG_ERROR, "text");
	return NULL;
}

/* Who logs may hold locks. */
static void a_line_is_no_place_to_be_cancelled_in(void **state)
{
	void *result = PTHREAD_CANCELED;
	pthread_t thread;

	(void)state;
	capture_begin(&capture);
	assert_int_equal(pthread_create(&thread, NULL, log_when_cancelled, NULL), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_string_equal(capture_end(&capture), "polycm: error: text\n");
	assert_null(result);
}

static void a_message_is_one_line(void **state)
{
	(void)state;
	capture_begin(&capture);
	polycm_log(POLYCM_LOG_WARN, "%s", "a\nb\r\tc\x1b[0m\x7f \xc3\xa9");
	assert_string_equal(capture_end(&capture), "polycm: warn: a?b??c?[0m? \xc3\xa9\n");
}

static void long_messages_are_cut(void **state)
{
	static char text[5000];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	capture_begin(&capture);
	polycm_log(POLYCM_LOG_WARN, "%s", text);
	polycm_log(POLYCM_LOG_WARN, "next");
	capture_end(&capture);
	assert_int_equal(count_lines(capture.text), 2);
	assert_int_equal(strchr(capture.text, '\n') - capture.text, 2046);
	assert_non_null(strstr(capture.text, "xxx...\npolycm: warn: next\n"));
}

static void unknown_levels_are_quiet(void **state)
{
	(void)state;
	polycm_log_level = INT32_MAX;
	capture_begin(&capture);
	polycm_log((enum polycm_log_level)5, "from a provider of the future");
	assert_string_equal(capture_end(&capture), "");
	polycm_log_level = POLYCM_LOG_ERROR;
}

/* POLYCM_LOG itself, which is read once. */
static void the_setting_counts(void **state)
{
	(void)state;
	setenv("POLYCM_LOG", "info", 1);
	polycm_log_init();
	assert_int_equal(polycm_log_level, POLYCM_LOG_INFO);
	setenv("POLYCM_LOG", "trace", 1);
	polycm_log_init();
	assert_int_equal(polycm_log_level, POLYCM_LOG_INFO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels_decide),
		cmocka_unit_test(verbose_lines_have_the_time),
		cmocka_unit_test(errno_stays),
		cmocka_unit_test(a_line_is_no_place_to_be_cancelled_in),
		cmocka_unit_test(a_message_is_one_line),
		cmocka_unit_test(long_messages_are_cut),
		cmocka_unit_test(unknown_levels_are_quiet),
		cmocka_unit_test(the_setting_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
