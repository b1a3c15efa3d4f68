/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP connections that polycm carry carries: their data and their end, over sockets of this process.
 * Tests are run twice: the kernel says whether a server listens, or does not.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "carrier_world.h"

/* ------------------------------------------------------------------------
 * Ends.
 */

/* The ends of a pair, by which is the first to do something. */
static int end_of(const struct pair *pair, unsigned int i)
{
	return i ? pair->server : pair->client.fd;
}

static void set_end(struct pair *pair, unsigned int i, int fd)
{
	if (i)
		pair->server = fd;
	else
		pair->client.fd = fd;
}

static void test_half_closed(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct pair pair = carrier_pair();
		int one = end_of(&pair, i), two = end_of(&pair, !i);

		say(one, "last words");
		assert_int_equal(shutdown(one, SHUT_WR), 0);
		carrier_until(receives(two, "last words"));
		carrier_until(receives(two, ""));
		for (unsigned int n = 0; n < 3; n++) {
			say(two, "answer");
			carrier_until(receives(one, "answer"));
		}
		assert_int_equal(num_connections(), 1);
		assert_int_equal(shutdown(two, SHUT_WR), 0);
		carrier_until(receives(one, ""));
		carrier_until(!carry_connections);
		assert_sent(i ? "DATA<:10 FIN< DATA>:6 DATA>:6 DATA>:6 FIN>" :
			    "DATA>:10 FIN> DATA<:6 DATA<:6 DATA<:6 FIN<");
		carrier_close_pair(&pair);
	}
}

static void test_both_close_at_once(void **state)
{
	struct pair pair = carrier_pair();

	(void)state;
	say(pair.client.fd, "a");
	say(pair.server, "b");
	assert_int_equal(shutdown(pair.client.fd, SHUT_WR), 0);
	assert_int_equal(shutdown(pair.server, SHUT_WR), 0);
	carrier_stays_until(num_under_way == 4);
	carrier_until(receives(pair.client.fd, "b"));
	carrier_until(receives(pair.server, "a"));
	carrier_until(receives(pair.client.fd, "") && receives(pair.server, ""));
	carrier_until(!carry_connections);
	carrier_close_pair(&pair);
}

static void test_reset(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct pair pair = carrier_pair();
		int one = end_of(&pair, i % 2), two = end_of(&pair, !(i % 2));

		if (i / 2) {
			/* By what it has not read. */
			say(two, "unread");
			carrier_until(ready(one) & POLLIN);
			close(one);
		} else {
			abort_socket(one);
		}
		carrier_until(ready(two) & POLLERR);
		assert_string_equal(received(two), "ECONNRESET");
		carrier_until(!carry_connections);
		close(two);
	}
}

/* A RST is lost for good: what the other end sends is answered with another one. */
static void test_reset_that_is_lost(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct pair pair = carrier_pair();
		int two = end_of(&pair, !i);

		abort_socket(end_of(&pair, i));
		carrier_stays_until(num_under_way);
		carrier_take(POLYCM_TCP_RST);
		carrier_settle();
		assert_string_equal(received(two), "EAGAIN");
		assert_int_equal(num_connections(), 1);
		say(two, "a");
		carrier_until(receives(two, "ECONNRESET"));
		carrier_until(!carry_connections);
		close(two);
	}
}

/* A rule resets it: who sent is told, and then the other end. */
static void test_reset_by_a_rule(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct pair pair = carrier_pair();
		struct polycm_tcp_segment reset;

		say(end_of(&pair, i), "a");
		carrier_stays_until(num_under_way);
		reset = carrier_take(POLYCM_TCP_DATA);
		reset.kind = POLYCM_TCP_RST;
		carry_arrived(&reset);
		reset.to_server = !reset.to_server;
		carry_arrived(&reset);
		carrier_until(receives(pair.client.fd, "ECONNRESET"));
		carrier_until(receives(pair.server, "ECONNRESET"));
		carrier_until(!carry_connections);
		carrier_close_pair(&pair);
	}
}

/* A sender that gives up gets an error at once, the other end when it sends. */
static void test_gives_up(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct pair pair = carrier_pair();
		int one = end_of(&pair, i % 2), two = end_of(&pair, !(i % 2));

		if (i / 2)
			shutdown(one, SHUT_WR);
		else
			say(one, "a");
		carrier_stays_until(num_under_way);
		carrier_give_up(i / 2 ? POLYCM_TCP_FIN : POLYCM_TCP_DATA);
		/* It means another error for the program. */
		assert_int_equal(reset_means, ETIMEDOUT);
		assert_string_equal(received(one), "ECONNRESET");
		carrier_settle();
		assert_string_equal(received(two), "EAGAIN");
		assert_int_equal(num_connections(), 1);
		say(two, "b");
		carrier_until(receives(two, "ECONNRESET"));
		carrier_until(!carry_connections);
		carrier_close_pair(&pair);
	}
}

/* Who is gone altogether answers what comes with a RST: already the first one. */
static void test_data_for_nobody(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct pair pair = carrier_pair();
		int two = end_of(&pair, !i);

		close(end_of(&pair, i));
		carrier_until(receives(two, ""));
		sent[0] = '\0';
		say(two, "a");
		carrier_until(strstr(sent, "RST"));
		assert_sent(i ? "DATA>:1 RST<" : "DATA<:1 RST>");
		carrier_until(!carry_connections);
		assert_true(ready(two) & POLLERR);
		close(two);
	}
}

/* So does who has said all, and goes without reading all. */
static void test_goes_after_its_last_words(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct pair pair = carrier_pair();
		int one = end_of(&pair, i), two = end_of(&pair, !i);

		shutdown(one, SHUT_WR);
		carrier_until(receives(two, ""));
		say(two, "unread");
		carrier_until(ready(one) & POLLIN);
		close(one);
		carrier_until(ready(two) & POLLERR);
		set_end(&pair, i, -1);
		carrier_until(!carry_connections);
		close(two);
	}
}

/* What is late for a connection that has ended is nobody's. */
static void test_late_segments(void **state)
{
	struct pair pair = carrier_pair();
	struct polycm_tcp_segment late = { .connection = carry_connections->number, .len = 10 };

	(void)state;
	carrier_close_pair(&pair);
	for (unsigned int i = 0; i < 2 * (POLYCM_TCP_GIVES_UP + 1); i++) {
		late.kind = i / 2;
		late.to_server = i % 2;
		carry_arrived(&late);
	}
	assert_null(carry_connections);
	assert_int_equal(num_under_way, 0);
}

/* More data than is under way; a second SYN_ACK. */
static void test_segments_that_are_too_much(void **state)
{
	struct pair pair = carrier_pair();
	struct polycm_tcp_segment more = {
		.connection = carry_connections->number, .kind = POLYCM_TCP_DATA, .len = 10,
	};

	(void)state;
	carry_arrived(&more);
	more.to_server = true;
	carry_arrived(&more);
	more.kind = POLYCM_TCP_SYN_ACK;
	more.to_server = false;
	carry_arrived(&more);
	say(pair.client.fd, "a");
	carrier_until(receives(pair.server, "a"));
	say(pair.server, "b");
	carrier_until(receives(pair.client.fd, "b"));
	carrier_close_pair(&pair);
}

/* ------------------------------------------------------------------------
 * A receiver that does not read.
 */

static size_t kept(enum carry_end end)
{
	return carry_connections->to_end[end].end - carry_connections->to_end[end].begin;
}

static uint8_t byte_at(size_t at)
{
	return (uint8_t)(at ^ at >> 8 ^ at >> 16);
}

/* As much as goes. */
static size_t fill(int fd, size_t at)
{
	uint8_t bytes[4096];
	ssize_t num;

	do {
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = byte_at(at + i);
		num = send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
		at += num > 0 ? (size_t)num : 0;
	} while (num > 0);
	assert_int_equal(errno, EAGAIN);
	return at;
}

static size_t drain(int fd, size_t at)
{
	uint8_t bytes[4096];
	ssize_t num;

	while ((num = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		for (ssize_t i = 0; i < num; i++)
			assert_int_equal(bytes[i], byte_at(at++));
	assert_true(num < 0 && errno == EAGAIN);
	return at;
}

static void test_window(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct pair pair = carrier_pair();
		int one = end_of(&pair, i % 2), two = end_of(&pair, !(i % 2));
		const enum carry_end to = i % 2 ? CARRY_CLIENT : CARRY_SERVER;
		size_t written = 0, before, got = 0;

		/* All stays on the network; or all arrives, and is not read. */
		do {
			before = written;
			written = fill(one, written);
			if (i / 2)
				carrier_settle();
			while (carrier_step(0))
				;
		} while (written > before);
		assert_in_range(kept(to), 256 * 1024, 272 * 1024);
		assert_false(carry_events(carry_connections, to == CARRY_SERVER ? CARRY_CLIENT :
					  CARRY_SERVER) & POLLIN);
		/* The other direction goes on. */
		say(two, "b");
		carrier_stays_until(num_under_way && under_way[num_under_way - 1].len == 1);
		carrier_until(receives(one, "b"));
		carrier_until((got = drain(two, got)) == written);
		assert_int_equal(kept(to), 0);
		carrier_close_pair(&pair);
	}
}

/* What has arrived before the end is read before the end. */
static void test_end_behind_much_data(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct pair pair = carrier_pair();
		int one = end_of(&pair, i), two = end_of(&pair, !i);
		size_t written = fill(one, 0), got = 0;

		assert_int_equal(shutdown(one, SHUT_WR), 0);
		carrier_settle();
		do {
			uint8_t bytes[1000];
			ssize_t num = recv(two, bytes, sizeof(bytes), MSG_DONTWAIT);

			if (!num)
				break;
			assert_true(num > 0 || errno == EAGAIN);
			for (ssize_t n = 0; n < num; n++)
				assert_int_equal(bytes[n], byte_at(got++));
			if (num < 0)
				carrier_settle();
		} while (true);
		assert_int_equal(got, written);
		carrier_close_pair(&pair);
	}
}

#define test(f) cmocka_unit_test_setup_teardown(f, carrier_open, carrier_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_half_closed),
		test(test_both_close_at_once),
		test(test_reset),
		test(test_reset_that_is_lost),
		test(test_reset_by_a_rule),
		test(test_gives_up),
		test(test_data_for_nobody),
		test(test_goes_after_its_last_words),
		test(test_late_segments),
		test(test_segments_that_are_too_much),
		test(test_window),
		test(test_end_behind_much_data),
	};
	return carrier_run_twice(tests);
}
