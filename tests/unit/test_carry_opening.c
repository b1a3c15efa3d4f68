/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP connections that polycm carry carries: how they begin, over sockets of this process.  Tests are
 * run twice: the kernel says whether a server listens, or does not.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "carrier_world.h"

/* ------------------------------------------------------------------------
 * Opening.
 */

/* Nobody has the connection before its opening has come so far. */
static void test_opens(void **state)
{
	struct client client = carrier_connect_to_server();
	union turn_address peer;
	socklen_t len = sizeof(peer);
	int server;

	(void)state;
	assert_int_equal(ready(client.fd), 0);
	assert_int_equal(carrier_result(&client), NO_RESULT);
	assert_sent("SYN>");
	carrier_deliver(POLYCM_TCP_SYN);
	carrier_stays_until(num_under_way);
	assert_sent("SYN_ACK<");
	assert_int_equal(ready(client.fd), 0);
	if (knows_listeners)
		assert_true(carrier_accept() < 0);
	carrier_deliver(POLYCM_TCP_SYN_ACK);
	assert_sent("ACK>");
	assert_int_equal(carrier_result(&client), 0);
	assert_int_equal(ready(client.fd), POLLOUT);
	if (knows_listeners)
		assert_true(carrier_accept() < 0);
	carrier_deliver(POLYCM_TCP_ACK);
	carrier_stays_until((server = accept(listener, &peer.sa, &len)) >= 0);
	/* Both see our ports, which stand for those of the other one. */
	assert_int_equal(peer.in.sin_addr.s_addr, client.own.in.sin_addr.s_addr);
	assert_int_equal(ports_for[carry_port(&peer)], carry_port(&client.own));
	assert_int_equal(getpeername(client.fd, &peer.sa, &len), 0);
	assert_int_equal(peer.in.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	assert_int_equal(ports_for[carry_port(&peer)], carrier_server_port());
	say(client.fd, "question");
	carrier_until(receives(server, "question"));
	say(server, "answer");
	carrier_until(receives(client.fd, "answer"));
	assert_sent("DATA>:8 DATA<:6");
	close(client.fd);
	close(server);
	carrier_until(!carry_connections);
	assert_sent("FIN> FIN<");
}

/* The first data ends the opening, if the ACK comes late. */
static void test_data_before_the_ack(void **state)
{
	struct client client = carrier_connect_to_server();
	struct polycm_tcp_segment ack;
	int server;

	(void)state;
	carrier_deliver(POLYCM_TCP_SYN);
	carrier_stays_until(num_under_way);
	carrier_deliver(POLYCM_TCP_SYN_ACK);
	ack = carrier_take(POLYCM_TCP_ACK);
	say(client.fd, "early");
	shutdown(client.fd, SHUT_WR);
	carrier_until((server = carrier_accept()) >= 0);
	carrier_until(receives(server, "early"));
	carry_arrived(&ack);
	carrier_until(receives(server, ""));
	close(client.fd);
	close(server);
}

static void test_program_that_waits(void **state)
{
	union turn_address to = carrier_address("127.0.0.1", carrier_server_port());
	struct client client = carrier_connect("127.0.0.3", &to, true);
	int server;

	(void)state;
	carrier_until((server = carrier_accept()) >= 0);
	assert_int_equal(carrier_result(&client), 0);
	say(client.fd, "a");
	carrier_until(receives(server, "a"));
	close(client.fd);
	close(server);
}

/* IPv6, and IPv4 in its clothes. */
static void test_other_families(void **state)
{
	static const struct {
		const char *listens, *to, *from;
	} rows[] = {
		{ "::1", "::1", "::1" },
		{ "127.0.0.1", "::ffff:127.0.0.1", "::ffff:127.0.0.2" },
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		union turn_address address, to;
		struct client client;
		unsigned int num_before;
		int here = carrier_listen(rows[i].listens, &address), server;

		if (here < 0) {
			print_message("[  no %s ]\n", rows[i].listens);
			continue;
		}
		to = carrier_address(rows[i].to, carry_port(&address));
		address = carry_plain(&to);
		num_before = num_descriptors();
		client = carrier_connect(rows[i].from, &to, false);
		carrier_until(carrier_result(&client) == 0);
		carrier_until((server = accept(here, NULL, NULL)) >= 0);
		say(client.fd, "a");
		carrier_until(receives(server, "a"));
		say(server, "b");
		carrier_until(receives(client.fd, "b"));
		close(server);
		carrier_until(receives(client.fd, ""));
		close(client.fd);
		carrier_until(!carry_connections);
		/* Nothing is left of the place where its clients connect to us. */
		assert_int_equal(num_descriptors(), num_before);
		close(here);
	}
}

/* Each client of a port is connected at the same port of ours, and each server has another one. */
static void test_many(void **state)
{
	enum { NUM = 100 };
	struct client clients[NUM];
	int servers[NUM];
	char text[16], expected[16];

	(void)state;
	for (unsigned int i = 0; i < NUM; i++)
		clients[i] = carrier_connect_to_server();
	carrier_settle();
	for (unsigned int i = 0; i < NUM; i++) {
		carrier_until((servers[i] = carrier_accept()) >= 0);
		snprintf(text, sizeof(text), "%u", i);
		say(clients[i].fd, text);
	}
	assert_int_equal(num_connections(), NUM);
	for (unsigned int i = 0; i < NUM; i++) {
		snprintf(expected, sizeof(expected), "%u", i);
		carrier_until(receives(servers[i], expected));
		close(servers[i]);
		carrier_until(receives(clients[i].fd, ""));
		close(clients[i].fd);
	}
}

/* Who finds our port by itself does not get in the way. */
static void test_strangers(void **state)
{
	union turn_address server = carrier_address("127.0.0.1", carrier_server_port());
	struct carry_service *service = carry_service_for(&server);
	union turn_address ours = carrier_address("127.0.0.1", service->port);
	int strangers[3];
	struct pair pair;

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(strangers); i++) {
		strangers[i] = socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(connect(strangers[i], &ours.sa, sizeof(ours.in)), 0);
	}
	pair = carrier_pair();
	for (unsigned int i = 0; i < ARRAY_SIZE(strangers); i++) {
		carrier_until(receives(strangers[i], "") || receives(strangers[i], "ECONNRESET"));
		close(strangers[i]);
	}
	carry_leave_service(service);
	say(pair.client.fd, "a");
	carrier_until(receives(pair.server, "a"));
	carrier_close_pair(&pair);
}

/* ------------------------------------------------------------------------
 * Connections that are not opened.
 */

static void assert_not_connected(struct client *client)
{
	assert_true(ready(client->fd) & POLLHUP);
	assert_string_equal(received(client->fd), "ENOTCONN");
	/* It can connect, and is what it was before. */
	carrier_connect_again(client, NULL);
	carrier_until(carrier_result(client) == 0);
}

static void end_second(struct client *client)
{
	int server;

	carrier_until((server = carrier_accept()) >= 0);
	say(client->fd, "again");
	carrier_until(receives(server, "again"));
	close(server);
	close(client->fd);
	carrier_until(!carry_connections);
	sent[0] = '\0';
}

static void test_refused(void **state)
{
	union turn_address nobody;
	struct client client;

	(void)state;
	close(carrier_listen("127.0.0.1", &nobody));
	client = carrier_connect("127.0.0.2", &nobody, false);
	for (unsigned int i = 0; i < 3; i++) {
		carrier_deliver(POLYCM_TCP_SYN);
		carrier_stays_until(num_under_way);
		assert_sent("SYN> REFUSED<");
		assert_int_equal(carrier_result(&client), NO_RESULT);
		carrier_deliver(POLYCM_TCP_REFUSED);
		assert_int_equal(carrier_result(&client), -ECONNREFUSED);
		assert_null(carry_connections);
		carrier_connect_again(&client, &nobody);
	}
	carrier_until(!carry_connections);
	assert_not_connected(&client);
	end_second(&client);
}

/* The network has no such address, or no memory. */
static void test_network_fails(void **state)
{
	static const struct {
		int fails, result;
	} rows[] = { { -EADDRNOTAVAIL, -ENETUNREACH }, { -ENOMEM, -ENOMEM } };

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct client client;

		send_fails = rows[i].fails;
		client = carrier_connect_to_server();
		assert_int_equal(carrier_result(&client), rows[i].result);
		carry_forget_ended();
		assert_null(carry_connections);
		send_fails = 0;
		assert_not_connected(&client);
		end_second(&client);
	}
}

static void test_network_fails_later(void **state)
{
	struct client client = carrier_connect_to_server();
	struct pair pair;

	(void)state;
	send_fails = -ENOMEM;
	carrier_deliver(POLYCM_TCP_SYN);
	carrier_stays_until(carrier_result(&client) == -ENOBUFS);
	send_fails = 0;
	if (!knows_listeners)
		close(carrier_accept());
	close(client.fd);
	pair = carrier_pair();
	send_fails = -ENOMEM;
	say(pair.client.fd, "a");
	carrier_until(receives(pair.client.fd, "ECONNRESET"));
	carrier_until(receives(pair.server, "ECONNRESET"));
	send_fails = 0;
	carrier_close_pair(&pair);
}

static void test_opening_gives_up(void **state)
{
	struct client client = carrier_connect_to_server();

	(void)state;
	carrier_give_up(POLYCM_TCP_SYN);
	assert_int_equal(carrier_result(&client), -ETIMEDOUT);
	assert_null(carry_connections);
	assert_not_connected(&client);
	end_second(&client);

	client = carrier_connect_to_server();
	carrier_deliver(POLYCM_TCP_SYN);
	carrier_stays_until(num_under_way);
	carrier_give_up(POLYCM_TCP_SYN_ACK);
	assert_int_equal(carrier_result(&client), -ETIMEDOUT);
	assert_null(carry_connections);
	if (!knows_listeners)
		close(carrier_accept());
	close(client.fd);
}

/* A rule of the scenario resets it. */
static void test_opening_is_reset(void **state)
{
	struct client client = carrier_connect_to_server();
	struct polycm_tcp_segment reset;

	(void)state;
	carrier_deliver(POLYCM_TCP_SYN);
	carrier_stays_until(num_under_way);
	reset = carrier_take(POLYCM_TCP_SYN_ACK);
	reset.kind = POLYCM_TCP_RST;
	carry_arrived(&reset);
	assert_int_equal(carrier_result(&client), -ECONNREFUSED);
	reset.to_server = true;
	carry_arrived(&reset);
	carry_forget_ended();
	assert_null(carry_connections);
	if (!knows_listeners)
		close(carrier_accept());
	close(client.fd);
}

/* The server has gone when its opening ends. */
static void test_server_goes_meanwhile(void **state)
{
	union turn_address address;
	int here = carrier_listen("127.0.0.1", &address);
	struct client client = carrier_connect("127.0.0.2", &address, false);

	(void)state;
	carrier_deliver(POLYCM_TCP_SYN);
	carrier_stays_until(num_under_way);
	close(here);
	carrier_until(carrier_result(&client) != NO_RESULT);
	assert_int_equal(carrier_result(&client), 0);
	carrier_until(receives(client.fd, "ECONNRESET"));
	close(client.fd);
}

/* Its SYN_ACK is answered with a RST. */
static void test_client_goes_meanwhile(void **state)
{
	struct client client = carrier_connect_to_server();
	int server;

	(void)state;
	carrier_deliver(POLYCM_TCP_SYN);
	carrier_stays_until(num_under_way);
	close(client.fd);
	carrier_until(!carry_connections);
	assert_sent("SYN> SYN_ACK< REFUSED>");
	if (knows_listeners)
		return;
	server = carrier_accept();
	assert_string_equal(received(server), "ECONNRESET");
	close(server);
}

/* It is not connected, whatever the answer is; and can connect elsewhere before that comes. */
static void test_program_gives_up(void **state)
{
	enum { SYN_ACK, REFUSED, GIVES_UP, NUM };
	union turn_address nobody;
	int server;

	(void)state;
	close(carrier_listen("127.0.0.1", &nobody));
	for (unsigned int i = 0; i < 2 * NUM; i++) {
		const unsigned int answer = i % NUM;
		const bool again = i >= NUM;
		struct client client = answer == REFUSED ?
			carrier_connect("127.0.0.2", &nobody, false) : carrier_connect_to_server();

		if (answer != GIVES_UP)
			carrier_deliver(POLYCM_TCP_SYN);
		carrier_stays_until(num_under_way);
		carrier_give_up_connect(&client);
		if (again)
			carrier_connect_again(&client, NULL);
		if (answer == SYN_ACK)
			carrier_deliver(POLYCM_TCP_SYN_ACK);
		else if (answer == REFUSED)
			carrier_deliver(POLYCM_TCP_REFUSED);
		else
			carrier_give_up(POLYCM_TCP_SYN);
		assert_int_equal(carrier_result(&client), again ? NO_RESULT : GIVEN_UP);
		assert_int_equal(ready(client.fd), again ? 0 : POLLOUT | POLLHUP);
		if (answer == SYN_ACK && !knows_listeners) {
			carrier_until((server = carrier_accept()) >= 0);
			carrier_until(receives(server, "ECONNRESET"));
			close(server);
		}
		if (again) {
			carrier_until(carrier_result(&client) == 0);
			carrier_until(num_connections() == 1);
			end_second(&client);
		} else {
			carrier_until(!carry_connections);
			assert_not_connected(&client);
			end_second(&client);
		}
	}
}

/* The server gets the connection, and learns that it was reset. */
static void test_client_resets_before_the_ack(void **state)
{
	struct client client = carrier_connect_to_server();
	int server;

	(void)state;
	carrier_deliver(POLYCM_TCP_SYN);
	carrier_stays_until(num_under_way);
	carrier_deliver(POLYCM_TCP_SYN_ACK);
	abort_socket(client.fd);
	carrier_stays_until(num_under_way == 2);
	assert_sent("SYN> SYN_ACK< ACK> RST>");
	carrier_deliver(POLYCM_TCP_ACK);
	carrier_stays_until((server = carrier_accept()) >= 0);
	carrier_deliver(POLYCM_TCP_RST);
	carrier_until(receives(server, "ECONNRESET"));
	close(server);
}

/* The RST comes first: the server never hears of it. */
static void test_reset_overtakes_the_ack(void **state)
{
	struct client client = carrier_connect_to_server();

	(void)state;
	knows_listeners = true;
	carrier_deliver(POLYCM_TCP_SYN);
	carrier_deliver(POLYCM_TCP_SYN_ACK);
	abort_socket(client.fd);
	carrier_stays_until(num_under_way == 2);
	carrier_deliver(POLYCM_TCP_RST);
	carrier_deliver(POLYCM_TCP_ACK);
	carrier_until(!carry_connections);
	assert_true(carrier_accept() < 0);
}

#define test(f) cmocka_unit_test_setup_teardown(f, carrier_open, carrier_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_opens),
		test(test_data_before_the_ack),
		test(test_program_that_waits),
		test(test_other_families),
		test(test_many),
		test(test_strangers),
		test(test_refused),
		test(test_network_fails),
		test(test_network_fails_later),
		test(test_opening_gives_up),
		test(test_opening_is_reset),
		test(test_server_goes_meanwhile),
		test(test_client_goes_meanwhile),
		test(test_program_gives_up),
		test(test_client_resets_before_the_ack),
	};
	const struct CMUnitTest last[] = {
		test(test_reset_overtakes_the_ack),
	};

	return carrier_run_twice(tests) +
	       cmocka_run_group_tests_name("only then", last, NULL, NULL);
}
