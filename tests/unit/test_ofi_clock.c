/* SPDX-License-Identifier: BSD-2-Clause */
/* How the clock of another host is measured, and when it is asked. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ofi_far.h"
#include "providers/ofi/clock.h"
#include "providers/ofi/peer.h"
#include "providers/ofi/session.h"
#include "providers/soft/watch/watch.h"

#define OPENED SIM_MS(1)

static struct ofi_far far;
static uint8_t body[OFI_FAR_BODY];

/* ------------------------------------------------------------------------
 * The measurement.
 */

static void measure(struct ofi_clock *clock, uint64_t sent, uint64_t answered, uint64_t now)
{
	const struct ofi_ping pong = { .sent = sent, .answered = answered };

	ofi_clock_measure(clock, &pong, now);
}

static void half_a_round_trip_later(void **state)
{
	struct ofi_clock clock = { 0 };

	(void)state;
	measure(&clock, 1000, 900050, 1100);
	assert_uint_equal(clock.measured, 1100);
	assert_uint_equal(clock.round_trip, 100);
	assert_true(clock.offset == 899000);
	clock = (struct ofi_clock){ 0 };
	measure(&clock, 900000, 150, 900300);
	assert_uint_equal(clock.round_trip, 300);
	assert_true(clock.offset == -900000);
	clock = (struct ofi_clock){ 0 };
	measure(&clock, 5, 5, 5);
	assert_uint_equal(clock.round_trip, 0);
	assert_true(clock.offset == 0);
}

static void the_shortest_round_trip_counts(void **state)
{
	struct ofi_clock clock = { 0 };

	(void)state;
	measure(&clock, 1000, 2000, 1100);
	measure(&clock, 2000, 9000, 2200);
	assert_uint_equal(clock.round_trip, 100);
	assert_true(clock.offset == 950);
	measure(&clock, 3000, 4000, 3050);
	assert_uint_equal(clock.round_trip, 50);
	assert_true(clock.offset == 975);
}

/* After a second it may be wrong by 20 us more: then so much worse a measurement is as good. */
static void it_gets_worse_with_time(void **state)
{
	struct ofi_clock clock = { 0 };
	const uint64_t later = SIM_MS(1000);

	(void)state;
	measure(&clock, 1000, 1000, 1100);
	measure(&clock, later - SIM_US(41), later, later);
	assert_uint_equal(clock.measured, 1100);
	measure(&clock, later - SIM_US(40), later, later);
	assert_uint_equal(clock.measured, later);
	assert_uint_equal(clock.round_trip, SIM_US(40));
	assert_true(clock.offset == SIM_US(20));
}

static void nonsense_is_not_measured(void **state)
{
	struct ofi_clock clock = { 0 };

	(void)state;
	measure(&clock, 1001, 5, 1000);
	measure(&clock, UINT64_MAX, 5, 1000);
	measure(&clock, 900, UINT64_MAX, 1000);
	measure(&clock, 900, ((uint64_t)1 << 62) + 1, 1000);
	assert_uint_equal(clock.measured, 0);
	measure(&clock, 900, (uint64_t)1 << 62, 1000);
	assert_true(clock.offset == ((int64_t)1 << 62) - 950);
}

/* ------------------------------------------------------------------------
 * When it is asked.
 */

static struct sim_remote_host *host(void)
{
	return ofi_host_by_id(far.hello.host);
}

static bool is_asked(const void *arg)
{
	(void)arg;
	return host()->clock.asked;
}

static bool is_answered(const void *arg)
{
	(void)arg;
	return !host()->clock.asked || host()->clock.asked == sim_now();
}

/* It is asked now; the far end's clock is ahead. */
static void answer(uint64_t ahead, uint64_t takes)
{
	struct ofi_ping ping;
	size_t len;

	ofi_world_until(is_asked, NULL);
	assert_int_equal(ofi_far_receive(far.fd, body, &len), OFI_PING);
	assert_int_equal(ofi_ping_decode(body, len, &ping), 0);
	assert_uint_equal(ping.sent, host()->clock.asked);
	ping.answered = ping.sent + takes / 2 + ahead;
	ofi_world_pass(takes);
	ofi_pong_encode(&ping, body);
	ofi_far_send(far.fd, OFI_PONG, body, OFI_PONG_SIZE);
	ofi_world_until(is_answered, NULL);
}

static void open_far(void)
{
	ofi_world_pass(OPENED - sim_now());
	ofi_far_init(&far);
	ofi_far_calls(&far);
	ofi_far_hears_hello(&far);
}

static void close_far(void)
{
	ofi_far_closes(&far);
	ofi_world_settle();
	assert_int_equal(ofi_sessions_open(), 0);
	ofi_clock_stop();
}

static void open_trace(char path[])
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(sim_trace_open(path), 0);
}

/* The last line of that kind; the caller frees it. */
static char *last_line(const char *path, const char *kind)
{
	FILE *file = fopen(path, "re");
	char *line = NULL, *last = NULL;
	size_t size = 0;

	assert_non_null(file);
	while (getline(&line, &size, file) > 0) {
		if (!strstr(line, kind))
			continue;
		free(last);
		last = line;
		line = NULL;
		size = 0;
	}
	free(line);
	fclose(file);
	assert_non_null(last);
	return last;
}

static void assert_last(const char *path, const char *kind, const char *members)
{
	char *line = last_line(path, kind);

	if (!strstr(line, members))
		fail_msg("%snot: %s", line, members);
	free(line);
}

static void asked_while_a_trace_is_written(void **state)
{
	char path[] = "/tmp/polycm-clock-XXXXXX";

	(void)state;
	open_trace(path);
	assert_last(path, "\"kind\":\"host\"",
		    "\"node\":\"self\",\"host\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}");
	open_far();
	answer(7000, 300);
	assert_last(path, "\"kind\":\"clock\"", "\"round_trip\":300,\"offset\":7000}");
	assert_last(path, "\"kind\":\"clock\"", "\"node\":\"10.0.0.2\",\"host\":\"");
	/* Three more at once. */
	answer(7900, 500);
	answer(7010, 100);
	answer(9000, 400);
	assert_last(path, "\"kind\":\"clock\"", "\"round_trip\":100,\"offset\":7010}");
	assert_uint_equal(host()->clock.asked, 0);
	for (unsigned int i = 1; i <= 3; i++) {
		ofi_world_pass(OPENED + i * SIM_MS(1000) - sim_now());
		answer((uint64_t)-50, 80);
		assert_last(path, "\"kind\":\"clock\"", "\"round_trip\":80,\"offset\":-50}");
		answer(70, SIM_US(90));
		answer(60, SIM_US(80));
		answer(50, SIM_US(70));
		assert_last(path, "\"kind\":\"clock\"", "\"round_trip\":80,\"offset\":-50}");
		assert_uint_equal(host()->clock.asked, 0);
	}
	close_far();
	/* Nobody is left to ask. */
	ofi_world_pass(SIM_MS(5000));
	sim_trace_close();
	unlink(path);
}

static void not_asked_without_one(void **state)
{
	(void)state;
	open_far();
	ofi_world_pass(SIM_MS(3000));
	assert_uint_equal(host()->clock.asked, 0);
	ofi_far_pings(&far);
	close_far();
}

/* Whoever asks whether the peer stands still has its own answers. */
static void answers_to_others(void **state)
{
	char path[] = "/tmp/polycm-clock-XXXXXX";
	struct ofi_peer *peer;
	struct ofi_ping pong;

	(void)state;
	open_trace(path);
	open_far();
	peer = ofi_peer_of_slot(host(), far.hello.slot);
	answer(0, 100);
	assert_false(peer->ponged);
	pong = (struct ofi_ping){ .sent = host()->clock.asked + 1 };
	assert_false(ofi_clock_ponged(peer, &pong));
	assert_uint_equal(host()->clock.round_trip, 100);
	pong.sent = host()->clock.asked;
	assert_true(ofi_clock_ponged(peer, &pong));
	close_far();
	sim_trace_close();
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_a_round_trip_later),
		cmocka_unit_test(the_shortest_round_trip_counts),
		cmocka_unit_test(it_gets_worse_with_time),
		cmocka_unit_test(nonsense_is_not_measured),
		OFI_WORLD(asked_while_a_trace_is_written),
		OFI_WORLD(not_asked_without_one),
		OFI_WORLD(answers_to_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
