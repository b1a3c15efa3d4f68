/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "carrier_world.h"

/* ------------------------------------------------------------------------
 * What polycm carry has around it.
 */

void tool_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
}

void *tool_realloc(void *memory, size_t num, size_t size)
{
	void *more = reallocarray(memory, num, size);

	assert_non_null(more);
	return more;
}

struct polycm_tcp_segment under_way[MANY];
unsigned int num_under_way;
int send_fails;
char sent[1024];
uint16_t ports_for[65536];
bool knows_listeners = true;

static const char *const kinds[] = {
	[POLYCM_TCP_SYN] = "SYN", [POLYCM_TCP_SYN_ACK] = "SYN_ACK", [POLYCM_TCP_ACK] = "ACK",
	[POLYCM_TCP_DATA] = "DATA", [POLYCM_TCP_FIN] = "FIN", [POLYCM_TCP_RST] = "RST",
	[POLYCM_TCP_REFUSED] = "REFUSED",
};

static void note_sent(const struct polycm_tcp_segment *segment)
{
	const size_t len = strlen(sent);
	char data[16] = "";

	if (segment->kind == POLYCM_TCP_DATA)
		snprintf(data, sizeof(data), ":%u", segment->len);
	snprintf(sent + len, sizeof(sent) - len, "%s%s%c%s", len ? " " : "", kinds[segment->kind],
		 segment->to_server ? '>' : '<', data);
}

static int send_segment(const struct polycm_tcp_segment *segment, const struct sockaddr *from,
			const struct sockaddr *to)
{
	assert_true(segment->kind < POLYCM_TCP_GIVES_UP);
	assert_int_equal(from->sa_family, to->sa_family);
	assert_true((segment->kind == POLYCM_TCP_DATA) == (segment->len > 0));
	if (send_fails)
		return send_fails;
	assert_true(num_under_way < MANY);
	under_way[num_under_way++] = *segment;
	note_sent(segment);
	return 0;
}

static const struct polycm_tcp_ops network = { .size = sizeof(network), .send = send_segment };
const struct polycm_tcp_ops *carry_network = &network;

/* By the number of the connect(). */
static int results[MANY];
static uint32_t num_connects;

static void disconnect(int fd)
{
	static const struct sockaddr none = { .sa_family = AF_UNSPEC };

	(void)connect(fd, &none, sizeof(none));
}

static int connect_now(uint32_t number, int fd, const struct sockaddr *to, socklen_t len)
{
	assert_in_range(number, 1, num_connects);
	assert_true(results[number] == NO_RESULT || results[number] == GIVEN_UP);
	if (results[number] == GIVEN_UP)
		return -ECANCELED;
	disconnect(fd);
	/* The second call ends what the first one has begun. */
	if (connect(fd, to, len) && (errno != EINPROGRESS || connect(fd, to, len)))
		return -errno;
	results[number] = 0;
	return 0;
}

static void connect_fails(uint32_t number, int fd, int result)
{
	assert_in_range(number, 1, num_connects);
	assert_true(results[number] == NO_RESULT || results[number] == GIVEN_UP);
	assert_true(result < 0);
	if (results[number] == GIVEN_UP)
		return;
	if (fd >= 0)
		disconnect(fd);
	results[number] = result;
}

int reset_means;

static void reset_has_meaning(uint64_t cookie, int error)
{
	/* 0: the program's socket is gone. */
	if (cookie)
		reset_means = error;
}

static void port_is_for(uint16_t port, uint16_t other)
{
	ports_for[port] = other;
}

static void keep_turn(bool keeps)
{
	static bool keeps_it;

	assert_int_not_equal(keeps, keeps_it);
	keeps_it = keeps;
}

static const struct turn_tells tells = {
	.size = sizeof(tells),
	.keep_turn = keep_turn,
	.connect_now = connect_now,
	.connect_fails = connect_fails,
	.reset_means = reset_has_meaning,
	.port_is_for = port_is_for,
};
const struct turn_tells *carry_tells = &tells;

enum carry_listens __real_carry_listens(const union turn_address *from, const union turn_address *to);
enum carry_listens __wrap_carry_listens(const union turn_address *from, const union turn_address *to);
enum carry_listens __wrap_carry_listens(const union turn_address *from, const union turn_address *to)
{
	return knows_listeners ? __real_carry_listens(from, to) : CARRY_UNKNOWN;
}

/* ------------------------------------------------------------------------
 * The programs.
 */

int listener = -1;
static union turn_address server;

union turn_address carrier_address(const char *text, uint16_t port)
{
	union turn_address address;

	memset(&address, 0, sizeof(address));
	if (inet_pton(AF_INET, text, &address.in.sin_addr) == 1) {
		address.in.sin_family = AF_INET;
	} else {
		assert_int_equal(inet_pton(AF_INET6, text, &address.in6.sin6_addr), 1);
		address.in6.sin6_family = AF_INET6;
	}
	carry_set_port(&address, port);
	return address;
}

int carrier_listen(const char *text, union turn_address *ret)
{
	socklen_t len;
	int fd;

	*ret = carrier_address(text, 0);
	len = carry_address_len(ret);
	fd = socket(ret->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fd;
	if (bind(fd, &ret->sa, len)) {
		close(fd);
		return -1;
	}
	assert_int_equal(listen(fd, 1000), 0);
	assert_int_equal(getsockname(fd, &ret->sa, &len), 0);
	return fd;
}

uint16_t carrier_server_port(void)
{
	return carry_port(&server);
}

/* A port that the kernel chose would not stay the socket's when it is no longer a listener. */
static void bind_to_next_port(int fd, union turn_address *own)
{
	static uint16_t next = 20000;
	int r;

	do {
		if (next == 30000)
			next = 20000;
		carry_set_port(own, next++);
		r = bind(fd, &own->sa, carry_address_len(own));
		assert_true(!r || errno == EADDRINUSE);
	} while (r);
}

static struct client make_client(const char *from, bool waits)
{
	struct client client = { .number = 0 };

	client.own = carrier_address(from, 0);
	client.fd = socket(client.own.sa.sa_family,
			   SOCK_STREAM | SOCK_CLOEXEC | (waits ? 0 : SOCK_NONBLOCK), 0);
	assert_true(client.fd >= 0);
	bind_to_next_port(client.fd, &client.own);
	return client;
}

/* As turn/carried.c does it. */
static void begin_connect(struct client *client)
{
	assert_true(num_connects + 1 < MANY);
	client->number = ++num_connects;
	results[client->number] = NO_RESULT;
	assert_int_equal(listen(client->fd, 0), 0);
}

void carrier_give_up_connect(const struct client *client)
{
	assert_int_equal(results[client->number], NO_RESULT);
	results[client->number] = GIVEN_UP;
	disconnect(client->fd);
}

struct client carrier_socket(const char *from)
{
	struct client client = make_client(from, false);

	begin_connect(&client);
	return client;
}

void carrier_connect_again(struct client *client, const union turn_address *to)
{
	struct turn_connect_request request = {
		.cookie = 1, .from = client->own, .to = to ? *to : server,
	};
	int held = dup(client->fd);

	assert_true(held >= 0);
	begin_connect(client);
	request.number = client->number;
	carry_begin(&request, held);
}

struct client carrier_connect(const char *from, const union turn_address *to, bool waits)
{
	struct client client = make_client(from, waits);

	carrier_connect_again(&client, to);
	return client;
}

struct client carrier_connect_to_server(void)
{
	return carrier_connect("127.0.0.2", &server, false);
}

int carrier_result(const struct client *client)
{
	return results[client->number];
}

int carrier_accept(void)
{
	return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

struct pair carrier_pair(void)
{
	struct pair pair = { .client = carrier_connect_to_server() };

	carrier_until(carrier_result(&pair.client) == 0);
	carrier_until((pair.server = carrier_accept()) >= 0);
	sent[0] = '\0';
	return pair;
}

void carrier_close_pair(struct pair *pair)
{
	close(pair->client.fd);
	close(pair->server);
	carrier_until(!carry_connections);
	sent[0] = '\0';
}

short ready(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN | POLLOUT };

	assert_true(poll(&poll_fd, 1, 0) >= 0);
	return poll_fd.revents;
}

const char *received(int fd)
{
	static char text[256];
	ssize_t num = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	if (num < 0)
		return strerrorname_np(errno);
	text[num] = '\0';
	return text;
}

void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT), strlen(text));
}

void abort_socket(int fd)
{
	const struct linger at_once = { .l_onoff = 1 };

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
	close(fd);
}

/* ------------------------------------------------------------------------
 * Going on.
 */

bool carrier_step(int timeout_ms)
{
	unsigned int others;
	int num = carry_wait(timeout_ms, &others);

	assert_true(num >= 0 && !others);
	carry_forget_ended();
	return num > 0;
}

static struct polycm_tcp_segment take(unsigned int i)
{
	const struct polycm_tcp_segment segment = under_way[i];

	assert_true(i < num_under_way);
	memmove(&under_way[i], &under_way[i + 1], (--num_under_way - i) * sizeof(segment));
	return segment;
}

struct polycm_tcp_segment carrier_take(enum polycm_tcp_kind kind)
{
	for (unsigned int i = 0; i < num_under_way; i++)
		if (under_way[i].kind == kind)
			return take(i);
	fail_msg("no %s is under way", kinds[kind]);
	return take(0);
}

void carrier_lose_nth(unsigned int i)
{
	(void)take(i);
}

void carrier_deliver_nth(unsigned int i)
{
	const struct polycm_tcp_segment segment = take(i);

	carry_arrived(&segment);
	carry_forget_ended();
}

void carrier_deliver(enum polycm_tcp_kind kind)
{
	const struct polycm_tcp_segment segment = carrier_take(kind);

	carry_arrived(&segment);
	carry_forget_ended();
}

void carrier_give_up(enum polycm_tcp_kind kind)
{
	struct polycm_tcp_segment segment = carrier_take(kind);

	segment.kind = POLYCM_TCP_GIVES_UP;
	carry_arrived(&segment);
	carry_forget_ended();
}

void carrier_settle(void)
{
	bool goes_on;

	do {
		goes_on = carrier_step(0);
		while (num_under_way) {
			carrier_deliver_nth(0);
			goes_on = true;
		}
	} while (goes_on);
}

void assert_sent(const char *text)
{
	assert_string_equal(sent, text);
	sent[0] = '\0';
}

/* ------------------------------------------------------------------------
 * Beginning and end.
 */

unsigned int num_connections(void)
{
	unsigned int num = 0;

	for (const struct carry_connection *at = carry_connections; at; at = at->next)
		num++;
	return num;
}

unsigned int num_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned int num = 0;

	assert_non_null(folder);
	while (readdir(folder))
		num++;
	closedir(folder);
	return num;
}

static unsigned int num_before;

int carrier_open(void **state)
{
	(void)state;
	if (listener < 0)
		listener = carrier_listen("127.0.0.1", &server);
	assert_true(listener >= 0);
	(void)carrier_step(0);
	num_before = num_descriptors();
	num_under_way = 0;
	num_connects = 0;
	send_fails = reset_means = 0;
	sent[0] = '\0';
	return 0;
}

int carrier_close(void **state)
{
	(void)state;
	assert_true(carrier_accept() < 0);
	carrier_until(!carry_connections);
	assert_int_equal(num_under_way, 0);
	assert_int_equal(num_descriptors(), num_before);
	return 0;
}

int carrier_forget_listeners(void **state)
{
	(void)state;
	knows_listeners = false;
	return 0;
}
