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
#include <sys/wait.h>
#include <unistd.h>

#include "caught.h"
#include "polycm/polycm.h"
#include "steps.h"

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

static int no_fact(void *arg, const char *name, const char *value)
{
	(void)arg;
	(void)name;
	(void)value;
	return 0;
}

static void refused_walks(void **state)
{
	struct pair pair;

	(void)state;
	step_open(&pair, ROCE, STEP_ROUTE_RESOLVED);
	catch_stderr();
	assert_errno(polycm_id_walk(pair.client, NULL, NULL), EINVAL);
	check_caught("warn", "polycm_id_walk: Invalid argument (no function to call)");
	catch_stderr();
	assert_errno(polycm_device_walk(NULL, no_fact, NULL), EINVAL);
	check_caught("warn", "polycm_device_walk: Invalid argument (no name of a device)");
	catch_stderr();
	assert_errno(polycm_device_walk("sim1", NULL, NULL), EINVAL);
	check_caught("warn", "polycm_device_walk: Invalid argument (no function to call)");
	catch_stderr();
	assert_errno(polycm_device_walk("none", no_fact, NULL), ENODEV);
	check_caught("warn", "polycm_device_walk: No such device (none)");
	pair_close(&pair);
}

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

/* A synchronous id whose channel does not block: the call did its part, the event is to come. */
static void events_that_are_to_come(void **state)
{
	struct polycm_sim_fault *fault;
	struct rdma_cm_id *id;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(fcntl(id->channel->fd, F_SETFL, O_NONBLOCK), 0);
	catch_stderr();
	assert_errno(rdma_resolve_addr(id, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT), 2000), EAGAIN);
	assert_string_equal(caught_text(), "");
	assert_int_equal(rdma_destroy_id(id), 0);

	/* A refusal with that errno is one. */
	assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_FAIL,
							       .message = "resolve_addr",
							       .error = EAGAIN), &fault), 0);
	catch_stderr();
	assert_errno(rdma_resolve_addr(pair.client, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT), 2000),
		     EAGAIN);
	check_caught("warn", "rdma_resolve_addr", "Resource temporarily unavailable");
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

		pair_open_resolved(&pair, t);
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

/* siw hears IPv4 on the wildcard of IPv6, and says nothing of the requests that it refuses there. */
static void a_wildcard_that_takes_no_ipv4(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	const char *text;
	struct pair pair;

	(void)state;
	pair_open_resolved(&pair, IWARP);
	assert_int_equal(rdma_destroy_id(pair.listener), 0);
	assert_int_equal(polycm_sim_node_use(pair.server_node), 0);
	assert_int_equal(rdma_create_id(pair.server_channel, &pair.listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(pair.listener, step_sa("::", 7471)), 0);
	assert_int_equal(polycm_sim_node_use(pair.client_node), 0);
	assert_int_equal(rdma_listen(pair.listener, 1), 0);
	catch_stderr();
	assert_int_equal(rdma_connect(pair.client, &param), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
	text = caught_text();
	if (!strstr(text, "[::]:7471") || !strstr(text, "a request over IPv4 is refused"))
		fail_msg("nothing of IPv4 in: %s", text);
	pair_close(&pair);
}

/* Why nothing came of it: nobody there, or a program that is stuck. */
static void unreachable(void **state)
{
	static const struct {
		bool stuck_client;
		const char *lost;	/* on its way */
		const char *reason;
	} cases[] = {
		{ false, "MRA", "nothing answered the REQ" },
		{ false, NULL, "the peer's kernel answered the REQ with an MRA, but its program neither "
			       "accepted nor rejected" },
		{ true, "MRA", "nothing answered the REP" },
		{ true, NULL, "the peer's kernel answered the REP with an MRA, but its program did not "
			      "fetch its event" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rdma_cm_event *event;
		struct pair pair;

		step_request(&pair, ROCE, RDMA_PS_TCP, false);
		if (cases[i].lost)
			assert_int_equal(polycm_sim_fault_add(
				POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE, .message = cases[i].lost),
				NULL), 0);
		if (cases[i].stuck_client) {
			struct rdma_conn_param param = pair_param(NULL, 0);

			pair_server_qp(&pair);
			assert_int_equal(rdma_accept(pair.server, &param), 0);
			catch_stderr();
			event = pair_expect(pair.server_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
			check_caught("warn", "UNREACHABLE: timed out: ", cases[i].reason);
			assert_non_null(strstr(polycm_status_str(event), cases[i].reason));
		} else {
			event = expect_told(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT,
					    "UNREACHABLE: timed out: ", cases[i].reason);
		}
		rdma_ack_cm_event(event);
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

/* --- Waits. --- */

static void a_disconnect_that_waits(void **state)
{
	struct pair pair;

	(void)state;
	step_request(&pair, IWARP, RDMA_PS_TCP, false);
	catch_stderr();
	assert_int_equal(rdma_disconnect(pair.client), 0);
	check_caught("polycm: warn: rdma_disconnect of id ",
		     " waits until the attempt to connect is over");
	pair_close(&pair);
}

static void a_listener_that_nobody_asks(void **state)
{
	struct rdma_cm_event *event;
	struct pair pair;
	const char *text;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	catch_stderr();
	assert_errno(rdma_get_cm_event(pair.server_channel, &event), EDEADLK);
	text = caught_text();
	assert_non_null(strstr(text, "polycm: error: rdma_get_cm_event waits for what can never "
			       "happen: sim sim0 10.0.0.1:7471"));
	assert_non_null(strstr(text, " (listens, and nobody asks)\n"));
	pair_close(&pair);
}

/* --- Faults that did not happen. --- */

static const struct {
	struct polycm_sim_fault_rule rule;
	const char *line;
} missed[] = {
	{ { .action = POLYCM_SIM_LOSE, .message = "DREQ" },
	  "fault rule 1 (lose DREQ) has never happened: nothing matched it" },
	{ { .action = POLYCM_SIM_DELAY, .message = "REQ", .nth = 3, .delay_ns = 5 },
	  "fault rule 2 (delay REQ) has never happened: only 1 matched, and nth is 3" },
	{ { .action = POLYCM_SIM_CRASH, .from_ns = UINT64_C(1) << 60 },
	  "fault rule 3 (crash on server) has never happened: the time did not come" },
	{ { .action = POLYCM_SIM_FAIL, .message = "listen" },
	  "fault rule 4 (fail listen from server) has never happened: nothing matched it" },
	{ { .action = POLYCM_SIM_LOSE, .message = "REQ", .probability = 1e-300 },
	  "fault rule 5 (lose REQ) has never happened: 1 matched, but chance was against it or it could "
	  "not be done" },
	{ { .action = POLYCM_SIM_DELAY, .message = "REQ", .delay_ns = 5 }, NULL },
};

static void faults_that_did_not_happen(void **state)
{
	struct polycm_sim_fault *faults[ARRAY_LEN(missed)];
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	pair_resolve(&pair);
	for (size_t i = 0; i < ARRAY_LEN(missed); i++) {
		struct polycm_sim_fault_rule rule = missed[i].rule;

		rule.size = sizeof(rule);
		if (rule.action == POLYCM_SIM_CRASH)
			rule.on = pair.server_node;
		if (rule.action == POLYCM_SIM_FAIL)
			rule.from = pair.server_node;
		assert_int_equal(polycm_sim_fault_add(&rule, &faults[i]), 0);
	}
	pair_client_qp(&pair);
	rdma_ack_cm_event(pair_request(&pair, &param));
	for (size_t i = 0; i < ARRAY_LEN(missed); i++) {
		catch_stderr();
		assert_int_equal(polycm_sim_fault_remove(faults[i]), 0);
		if (missed[i].line)
			check_caught("polycm: warn: ", missed[i].line);
		else
			assert_string_equal(caught_text(), "");
	}
	pair_close(&pair);
}

/* Those that are there when the fabric goes are told then. */
static void a_fault_that_is_left(void **state)
{
	struct polycm_sim_node *node;

	(void)state;
	assert_int_equal(polycm_sim_create(1), 0);
	assert_int_equal(polycm_sim_node_add("host", "roce", "10.0.0.1/24", &node), 0);
	assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_REJECT, .to = node,
							       .message = "REP", .reason = 3), NULL), 0);
	catch_stderr();
	assert_int_equal(polycm_sim_destroy(), 0);
	check_caught("polycm: warn: fault rule 1 (reject REP to host) has never happened: nothing "
		     "matched it");
}

/* A child that only has its parent's fabric knows nothing of what will happen there. */
static void a_child_tells_of_no_faults(void **state)
{
	struct polycm_sim_fault *fault;
	struct pair pair;
	pid_t child;
	int status;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE,
							       .message = "REQ"), &fault), 0);
	fflush(NULL);
	catch_stderr();
	child = fork();
	if (!child)
		exit(0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_string_equal(caught_text(), "");
	assert_int_equal(status, 0);
	catch_stderr();
	assert_int_equal(polycm_sim_fault_remove(fault), 0);
	check_caught("polycm: warn: fault rule 1 (lose REQ)");
	pair_close(&pair);
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
		cmocka_unit_test(refused_walks),
		cmocka_unit_test(ports_and_addresses),
		cmocka_unit_test(events_that_are_to_come),
		cmocka_unit_test(bad_events),
		cmocka_unit_test(a_wildcard_that_takes_no_ipv4),
		cmocka_unit_test(unreachable),
		cmocka_unit_test(bad_events_of_datagrams),
		cmocka_unit_test(a_disconnect_that_was_not_answered),
		cmocka_unit_test(a_disconnect_that_waits),
		cmocka_unit_test(a_listener_that_nobody_asks),
		cmocka_unit_test(faults_that_did_not_happen),
		cmocka_unit_test(a_fault_that_is_left),
		cmocka_unit_test(a_child_tells_of_no_faults),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
