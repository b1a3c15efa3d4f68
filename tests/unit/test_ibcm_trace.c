/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the InfiniBand CM engine traces: messages and sub-states, one JSON
 * object per line, the same bytes in every run of one seed.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "providers/soft/watch/watch.h"
#include "ibcm_world.h"
#include "providers/soft/trace/trace.h"

#define MAX_TRACE 65536u

/* The trace of what happens meanwhile, to be freed. */
static char *traced(void (*happen)(void))
{
	char *text = calloc(1, MAX_TRACE), path[32];
	int fd = memfd_create("trace", MFD_CLOEXEC);

	assert_non_null(text);
	assert_true(fd >= 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	sim_lock();
	assert_int_equal(sim_trace_open(path), 0);
	sim_unlock();
	happen();
	sim_lock();
	sim_trace_close();
	sim_unlock();
	assert_in_range(pread(fd, text, MAX_TRACE, 0), 1, MAX_TRACE - 1);
	close(fd);
	return text;
}

static unsigned int occurrences(const char *text, const char *what)
{
	unsigned int count = 0;

	for (text = strstr(text, what); text; text = strstr(text + 1, what))
		count++;
	return count;
}

/* Each line is an object, with quotes and brackets in pairs. */
static void check_lines(char *text)
{
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		int braces = 0, brackets = 0, quotes = 0;

		assert_int_equal(line[0], '{');
		assert_int_equal(line[strlen(line) - 1], '}');
		for (const char *c = line; *c; c++) {
			braces += *c == '{' ? 1 : *c == '}' ? -1 : 0;
			brackets += *c == '[' ? 1 : *c == ']' ? -1 : 0;
			quotes += *c == '"';
		}
		assert_int_equal(braces, 0);
		assert_int_equal(brackets, 0);
		assert_int_equal(quotes % 2, 0);
	}
}

static void connection(void)
{
	struct pair pair = world_requested();

	world_run_ms(5000);	/* an MRA */
	assert_int_equal(world_accept(pair.server, 0x22), 0);
	world_run(LATENCY);
	world_expect(pair.client, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	assert_int_equal(world_call(pair.client, establish), 0);
	world_run(LATENCY);
	assert_int_equal(world_call(pair.client, disconnect), 0);
	world_run(LATENCY);
	assert_int_equal(world_call(pair.server, disconnect), 0);
	world_run_ms(1000);
	world_end(&pair);
}

static void refusals(void)
{
	struct polycm_id *client = world_route(RDMA_PS_TCP, PORT), *ud;

	assert_int_equal(world_connect(client, 1), 0);
	ud = world_route(RDMA_PS_UDP, PORT);
	assert_int_equal(world_connect(ud, 1), 0);
	world_run_ms(1);
	world_destroy(client);
	world_destroy(ud);
}

static void test_connection(void **state)
{
	static const struct {
		const char *text;
		unsigned int count;
	} want[] = {
		/* Each message is sent and received; the REQ twice. */
		{ "\"from\":\"client\",\"to\":\"server\",\"message\":\"REQ\"", 4 },
		{ "\"service\":\"0000000001061d2f\",\"qpn\":17,", 4 },
		{ "\"responder_resources\":3,\"initiator_depth\":5,\"retry\":6,\"rnr_retry\":4", 4 },
		{ "\"from\":\"server\",\"to\":\"client\",\"message\":\"MRA\"", 2 },
		{ "\"answers\":\"REQ\",\"service_timeout\":24", 2 },
		{ "\"message\":\"REP\"", 2 },
		{ "\"ack_delay\":15", 2 },
		{ "\"message\":\"RTU\"", 2 },
		{ "\"message\":\"DREQ\"", 2 },
		{ ",\"qpn\":34}", 2 },
		{ "\"message\":\"DREP\"", 2 },
		{ "\"state\":\"REQ_SENT\"", 1 },
		{ "\"state\":\"MRA_REQ_RCVD\"", 1 },
		{ "\"state\":\"REP_RCVD\"", 1 },
		{ "\"of\":\"cm\",\"id\":2,\"state\":\"ESTABLISHED\"", 1 },
		{ "\"of\":\"cm\",\"id\":3,\"state\":\"ESTABLISHED\"", 1 },
		{ "\"state\":\"TIMEWAIT\"", 2 },
		{ "\"of\":\"cm\",\"id\":2,\"state\":\"IDLE\"", 1 },
	};
	char *text = traced(connection);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		if (occurrences(text, want[i].text) != want[i].count)
			fail_msg("%s: %u times in\n%s", want[i].text,
				 occurrences(text, want[i].text), text);
	check_lines(text);
	free(text);
}

static void test_refusals(void **state)
{
	char *text = traced(refusals);

	(void)state;
	assert_uint_equal(occurrences(text, "\"rejected\":\"REQ\",\"reason\":8"), 2);
	assert_uint_equal(occurrences(text, "\"message\":\"SIDR_REQ\""), 2);
	assert_uint_equal(occurrences(text, "\"message\":\"SIDR_REP\""), 2);
	assert_uint_equal(occurrences(text, "\"status\":1,\"qpn\":0,\"qkey\":0"), 2);
	check_lines(text);
	free(text);
}

/* Setup and teardown are the test's own: one world per run. */
static void test_same_bytes(void **state)
{
	char *first = NULL, *text;

	for (int run = 0; run < 20; run++) {
		(void)world_open_roce(state);
		text = traced(connection);
		(void)world_close(state);
		if (first) {
			assert_string_equal(text, first);
			free(text);
		} else {
			first = text;
		}
	}
	free(first);
}

static void fill(struct trace_line *line, size_t room)
{
	size_t len;

	trace_begin(line, 1);
	do {
		len = line->len;
		trace_members(line, "x");
	} while (line->len > len);
	line->len -= room;
}

/* Names may be of any length: what does not fit leaves no part of it behind. */
static void test_full_lines(void **state)
{
	static struct trace_line line;
	size_t len;

	(void)state;
	for (size_t room = 0; room < 20; room++) {
		fill(&line, room);
		len = line.len;
		trace_text(&line, "a longer name", "");
		trace_text(&line, "a longer name", "v");
		trace_bytes(&line, "a longer name", "b", 1);
		assert_true(line.len == len || !strncmp(line.text + len, ",\"a longer name\":\"", 18));
		trace_text(&line, "", "");
		trace_text(&line, "", "");
		assert_true(line.len < sizeof(line.text) - sizeof("}\n") + 1);
	}
}

static void trace_long_members(void)
{
	sim_lock();
	sim_trace("first", "\"text\":\"%2000s\"", "");
	sim_trace("second", "\"text\":\"%9000s\"", "");
	sim_unlock();
}

/* They are whole, or left out. */
static void test_long_members(void **state)
{
	char *text;

	(void)state;
	text = traced(trace_long_members);
	assert_non_null(strstr(text, " \"}\n"));
	assert_non_null(strstr(text, "\"kind\":\"second\"}\n"));
	free(text);
}

static void *write_a_line(void *arg)
{
	struct trace_line line;

	pthread_cancel(pthread_self());
	trace_begin(&line, 1);
	if (!trace_end(&line, *(int *)arg, write))
		*(int *)arg = -1;
	return NULL;
}

/* Lines are written under locks. */
static void test_a_line_is_no_place_to_be_cancelled_in(void **state)
{
	int fd = memfd_create("trace", MFD_CLOEXEC), written = fd;
	pthread_t thread;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(pthread_create(&thread, NULL, write_a_line, &written), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(written, -1);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_connection, world_open_roce, world_close),
		cmocka_unit_test_setup_teardown(test_refusals, world_open_roce, world_close),
		cmocka_unit_test(test_same_bytes),
		cmocka_unit_test(test_full_lines),
		cmocka_unit_test(test_a_line_is_no_place_to_be_cancelled_in),
		cmocka_unit_test_setup_teardown(test_long_members, world_open_roce, world_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
