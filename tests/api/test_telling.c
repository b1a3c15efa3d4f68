/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_telling.c - what a person is told at level "warn": one line for each
 * refused call and each bad event, with provider, device, both addresses and
 * the reason in words, and polycm_status_str() with the same words.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "polycm/polycm.h"
#include "tests/api/steps.h"

/* --- Standard error, caught. --- */

static int caught = -1, real_stderr;

static void catch_stderr(void)
{
	fflush(stderr);
	caught = memfd_create("stderr", MFD_CLOEXEC);
	assert_true(caught >= 0);
	real_stderr = dup(STDERR_FILENO);
	assert_true(real_stderr >= 0);
	assert_true(dup2(caught, STDERR_FILENO) >= 0);
}

/* What came since, in a static buffer. */
static const char *caught_text(void)
{
	static char text[4096];
	ssize_t len;

	fflush(stderr);
	assert_true(dup2(real_stderr, STDERR_FILENO) >= 0);
	close(real_stderr);
	len = pread(caught, text, sizeof(text) - 1, 0);
	assert_true(len >= 0);
	text[len] = '\0';
	close(caught);
	return text;
}

/* Exactly one line, with all these words. */
static void check_line(const char *text, const char *const *words)
{
	const char *end = strchr(text, '\n');

	if (!end || end[1])
		fail_msg("not one line: %s", text);
	for (; *words; words++)
		if (!strstr(text, *words))
			fail_msg("no \"%s\" in: %s", *words, text);
}

#define check_caught(...) check_line(caught_text(), (const char *const[]) { __VA_ARGS__, NULL })

/* --- Refused calls. --- */

#define BOTH_ADDRESSES " 10.0.0.2:", " > 10.0.0.1:7471: "

static void refused_calls(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		step_open(&pair, t, STEP_ROUTE_RESOLVED);
		param.responder_resources = 200;
		catch_stderr();
		assert_errno(rdma_connect(pair.client, &param), EINVAL);
		check_caught("warn", "sim sim1", BOTH_ADDRESSES, "rdma_connect", "Invalid argument",
			     "responder_resources 200");

		catch_stderr();
		assert_errno(rdma_accept(pair.client, NULL), EINVAL);
		check_caught("warn", "sim sim1", BOTH_ADDRESSES, "rdma_accept", "Invalid argument");

		catch_stderr();
		assert_errno(rdma_disconnect(NULL), EINVAL);
		check_caught("warn", "rdma_disconnect", "Invalid argument", "no id");

		catch_stderr();
		assert_errno(rdma_bind_addr(pair.client, step_sa("10.0.0.2", 80)), EINVAL);
		check_caught("warn", "sim sim1", "rdma_bind_addr", "Invalid argument", "10.0.0.2:80");
		pair_close(&pair);
	}
}

static void ports_and_addresses(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	catch_stderr();
	assert_errno(rdma_bind_addr(pair.client, step_sa(SERVER_ADDRESS, SERVER_PORT)), EADDRINUSE);
	check_caught("warn", "rdma_bind_addr", "Address already in use", "10.0.0.1:7471");
	catch_stderr();
	assert_errno(rdma_resolve_addr(pair.client, NULL, step_sa("fd00::1", 1), 2000), ENETUNREACH);
	check_caught("warn", "rdma_resolve_addr", "Network is unreachable", "[fd00::1]:1");
	pair_close(&pair);
}

/* --- Bad events. --- */

static struct rdma_cm_event *expect_told(struct rdma_event_channel *channel,
					 enum rdma_cm_event_type type, int status, const char *name,
					 const char *reason)
{
	struct rdma_cm_event *event;

	catch_stderr();
	event = pair_expect(channel, type, status);
	check_caught("warn", "sim sim1", BOTH_ADDRESSES, name, reason);
	if (!strstr(polycm_status_str(event), reason))
		fail_msg("no \"%s\" in: %s", reason, polycm_status_str(event));
	return event;
}

static void bad_events(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		step_request(&pair, t, RDMA_PS_TCP, false);
		assert_int_equal(rdma_reject(pair.server, NULL, 0), 0);
		rdma_ack_cm_event(expect_told(pair.client_channel, RDMA_CM_EVENT_REJECTED,
					      t == IWARP ? -ECONNRESET : 28, "REJECTED",
					      t == IWARP ? "connection reset" :
							   "REJ 28, consumer defined"));
		pair_close(&pair);

		step_request(&pair, t, RDMA_PS_TCP, false);
		rdma_ack_cm_event(expect_told(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE,
					      -ETIMEDOUT, "UNREACHABLE", "timed out"));
		pair_close(&pair);

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		pair_client_qp(&pair);
		assert_int_equal(rdma_destroy_id(pair.listener), 0);
		pair.listener = NULL;
		if (t == IWARP) {
			catch_stderr();
			assert_errno(rdma_connect(pair.client, &param), ECONNREFUSED);
			check_caught("warn", "sim sim1", BOTH_ADDRESSES, "rdma_connect",
				     "Connection refused");
		} else {
			assert_int_equal(rdma_connect(pair.client, &param), 0);
			rdma_ack_cm_event(expect_told(pair.client_channel, RDMA_CM_EVENT_REJECTED, 8,
						      "REJECTED", "REJ 8, invalid service id: nobody "
						      "listens on that port"));
		}
		pair_close(&pair);
	}
}

static void bad_events_of_datagrams(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct pair pair;

		step_request(&pair, t, RDMA_PS_UDP, true);
		assert_int_equal(rdma_reject(pair.server, NULL, 0), 0);
		rdma_ack_cm_event(expect_told(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, 2,
					      "UNREACHABLE", "SIDR status 2"));
		pair_close(&pair);
	}
}

static void a_disconnect_that_was_not_answered(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_connect(&pair);
		assert_int_equal(rdma_disconnect(pair.client), 0);
		rdma_ack_cm_event(expect_told(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED,
					      -ETIMEDOUT, "DISCONNECTED", "timed out"));
		pair_close(&pair);
	}
}

/* --- All is well: not a word. --- */

static void a_good_connection_is_silent(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_cm_event *event;
		struct pair pair;

		catch_stderr();
		pair_open(&pair, t, RDMA_PS_TCP);
		pair_connect(&pair);
		assert_int_equal(rdma_disconnect(pair.client), 0);
		event = pair_expect(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		assert_non_null(polycm_status_str(event));
		rdma_ack_cm_event(event);
		/* A program that polls in vain is no news either. */
		if (t != IWARP)
			pair_none(pair.client_channel);
		pair_close(&pair);
		assert_string_equal(caught_text(), "");
	}
}

static int setup(void **state)
{
	(void)state;
	return setenv("POLYCM_PROVIDER", "sim", 1) || setenv("POLYCM_LOG", "warn", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_connection_is_silent),
		cmocka_unit_test(refused_calls),
		cmocka_unit_test(ports_and_addresses),
		cmocka_unit_test(bad_events),
		cmocka_unit_test(bad_events_of_datagrams),
		cmocka_unit_test(a_disconnect_that_was_not_answered),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
