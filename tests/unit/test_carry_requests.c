/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs ask of polycm carry, which may be anything, and the ports at which it serves them. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "carrier_world.h"

/* ------------------------------------------------------------------------
 * Requests.
 */

/* The socket that programs send to, and that of polycm carry. */
static int program = -1, requests = -1;

static int open_requests(void **state)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
	program = ends[0];
	requests = ends[1];
	return carrier_open(state);
}

static int close_requests(void **state)
{
	int r = carrier_close(state);

	close(program);
	close(requests);
	return r;
}

struct message {
	union {
		struct turn_connect_request request;
		char bytes[2 * sizeof(struct turn_connect_request)];
	};
	size_t len;
	int descriptors[32];
	unsigned int num_descriptors;
};

static void send_message(const struct message *message)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(message->descriptors))] = { 0 };
	const size_t len = message->num_descriptors * sizeof(int);
	struct iovec part = { (void *)(uintptr_t)message->bytes, message->len };
	struct msghdr header = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = message->num_descriptors ? CMSG_SPACE(len) : 0,
	};
	struct cmsghdr *rights = (struct cmsghdr *)control;

	*rights = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(len), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
	};
	memcpy(CMSG_DATA(rights), message->descriptors, len);
	assert_int_equal(sendmsg(program, &header, 0), message->len);
}

/* Of a socket that listens, as libpolycm-turn sends it. */
static struct message sound_message(const struct client *client)
{
	struct message message = { .len = sizeof(message.request), .num_descriptors = 1 };

	memset(message.bytes, 0, sizeof(message.bytes));
	message.request.number = client->number;
	message.request.from = client->own;
	message.request.to = carrier_address("127.0.0.1", carrier_server_port());
	message.descriptors[0] = client->fd;
	return message;
}

/* Its connect() succeeds, the server gets what it sends, and it ends. */
static void assert_is_carried(const struct client *client)
{
	int server;

	carrier_until(carrier_result(client) == 0);
	carrier_until((server = carrier_accept()) >= 0);
	say(client->fd, "a");
	carrier_until(receives(server, "a"));
	close(server);
	close(client->fd);
}

static void test_sound_request(void **state)
{
	(void)state;
	for (unsigned int num = 1; num <= 3; num++) {
		struct client client = carrier_socket("127.0.0.2");
		struct message message = sound_message(&client);

		/* More than one descriptor: the first one counts. */
		message.num_descriptors = num;
		message.descriptors[1] = listener;
		message.descriptors[2] = program;
		send_message(&message);
		assert_true(carry_take_request(requests));
		assert_is_carried(&client);
		carrier_until(!carry_connections);
	}
	assert_false(carry_take_request(requests));
	assert_null(carry_connections);
}

static void set_families(struct message *message, int from, int to)
{
	message->request.from.sa.sa_family = (sa_family_t)from;
	message->request.to.sa.sa_family = (sa_family_t)to;
}

/* Its connect() fails, where it says whose it is. */
static void test_unsound_requests(void **state)
{
	static const struct {
		int from, to;			/* families */
		int more;			/* bytes than there should be */
		unsigned int num_descriptors;
		int result;
	} rows[] = {
		{ AF_INET, AF_INET, 0, 0, -ENOBUFS },
		{ AF_INET, AF_INET6, 0, 1, -EAFNOSUPPORT },
		{ AF_INET6, AF_INET, 0, 1, -EAFNOSUPPORT },
		{ AF_UNSPEC, AF_UNSPEC, 0, 1, -EAFNOSUPPORT },
		{ AF_UNIX, AF_UNIX, 0, 1, -EAFNOSUPPORT },
		{ UINT16_MAX, UINT16_MAX, 0, 3, -EAFNOSUPPORT },
		{ AF_INET, AF_INET, -1, 1, NO_RESULT },
		{ AF_INET, AF_INET, 1, 1, NO_RESULT },
		{ AF_INET, AF_INET, sizeof(struct turn_connect_request), 2, NO_RESULT },
		{ AF_INET, AF_INET, -(int)sizeof(struct turn_connect_request), 1, NO_RESULT },
		{ AF_INET, AF_INET, -(int)sizeof(struct turn_connect_request), 0, NO_RESULT },
		{ AF_INET, AF_INET, 8 - (int)sizeof(struct turn_connect_request), 0, NO_RESULT },
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct client client = carrier_socket("127.0.0.2");
		struct message message = sound_message(&client);

		set_families(&message, rows[i].from, rows[i].to);
		message.len = (size_t)((int)message.len + rows[i].more);
		message.num_descriptors = rows[i].num_descriptors;
		message.descriptors[1] = message.descriptors[2] = listener;
		send_message(&message);
		assert_true(carry_take_request(requests));
		assert_int_equal(carrier_result(&client), rows[i].result);
		assert_null(carry_connections);
		close(client.fd);
	}
}

/* More than it takes: the kernel drops what does not fit. */
static void test_many_descriptors(void **state)
{
	struct client client = carrier_socket("127.0.0.2");
	struct message message = sound_message(&client);

	(void)state;
	set_families(&message, AF_UNSPEC, AF_UNSPEC);
	message.num_descriptors = ARRAY_SIZE(message.descriptors);
	for (unsigned int i = 1; i < message.num_descriptors; i++)
		message.descriptors[i] = program;
	send_message(&message);
	assert_true(carry_take_request(requests));
	assert_int_equal(carrier_result(&client), -EAFNOSUPPORT);
	close(client.fd);
}

/* What is no socket that connects: its connect() fails. */
static void test_other_descriptors(void **state)
{
	int pipes[2], datagrams = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	for (unsigned int i = 0; i < 3; i++) {
		const int others[] = { pipes[0], pipes[1], datagrams };
		struct client client = carrier_socket("127.0.0.2");
		struct message message = sound_message(&client);
		int server;

		message.descriptors[0] = others[i];
		send_message(&message);
		assert_true(carry_take_request(requests));
		carrier_until(!carry_connections);
		assert_int_not_equal(carrier_result(&client), NO_RESULT);
		while ((server = carrier_accept()) >= 0)
			close(server);
		close(client.fd);
	}
	close(pipes[0]);
	close(pipes[1]);
	close(datagrams);
}

static int accept_fails;		/* an errno, or 0 */

int __real_accept4(int fd, struct sockaddr *address, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
	if (!accept_fails)
		return __real_accept4(fd, address, len, flags);
	errno = accept_fails;
	return -1;
}

/* The program learns of it, and does not wait for ever; so does the server. */
static void test_out_of_descriptors(void **state)
{
	struct client client = carrier_connect_to_server();

	(void)state;
	carrier_deliver(POLYCM_TCP_SYN);
	carrier_stays_until(num_under_way);
	accept_fails = EMFILE;
	carrier_deliver(POLYCM_TCP_SYN_ACK);
	accept_fails = 0;
	assert_string_equal(received(client.fd), "ECONNRESET");
	carrier_until(!carry_connections);
	assert_sent("SYN> SYN_ACK< REFUSED>");
	/* What is left of it at our port is nobody's. */
	carrier_connect_again(&client, NULL);
	assert_is_carried(&client);
}

/* ------------------------------------------------------------------------
 * Ports.
 */

static unsigned int num_binds;
static int bind_fails;			/* an errno, or 0 */

int __real_bind(int fd, const struct sockaddr *address, socklen_t len);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t len);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t len)
{
	num_binds++;
	if (!bind_fails)
		return __real_bind(fd, address, len);
	errno = bind_fails;
	return -1;
}

/* Each address and port of a server has one port of ours, for as long as it has clients. */
static void test_services(void **state)
{
	static const char *const texts[] = { "127.0.0.1", "127.0.0.3" };
	struct carry_service *services[4];

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(services); i++) {
		const union turn_address to = carrier_address(texts[i / 2], (uint16_t)(1000 + i % 2));

		services[i] = carry_service_for(&to);
		assert_non_null(services[i]);
		assert_int_equal(ports_for[services[i]->port], 1000 + i % 2);
		assert_in_range(services[i]->port, 61000, 65535);
		for (unsigned int n = 0; n < i; n++) {
			assert_ptr_not_equal(services[i], services[n]);
			assert_int_not_equal(services[i]->port, services[n]->port);
		}
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(services); i++) {
		const union turn_address to = carrier_address(texts[i / 2], (uint16_t)(1000 + i % 2));

		const uint16_t port = services[i]->port;

		assert_ptr_equal(carry_service_for(&to), services[i]);
		carry_leave_service(services[i]);
		assert_int_equal(ports_for[port], 1000 + i % 2);
		carry_leave_service(services[i]);
		assert_int_equal(ports_for[port], 0);
	}
}

/* The next one is tried if another program has a port; but not for any other error. */
static void test_ports_of_others(void **state)
{
	const unsigned int pid = (unsigned int)getpid();
	const union turn_address nowhere = carrier_address("192.0.2.1", 2002);
	union turn_address first, second, taken;
	int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct carry_service *service;
	uint16_t port;
	char here[INET_ADDRSTRLEN];

	(void)state;
	/* Tests that run beside have ports at 127.0.0.1. */
	taken.in.sin_addr.s_addr = htonl(0x7f000000 | (1u << 16) | (pid & 0xffff) << 4 | 1);
	assert_non_null(inet_ntop(AF_INET, &taken.in.sin_addr, here, sizeof(here)));
	first = carrier_address(here, 2000);
	second = carrier_address(here, 2001);
	service = carry_service_for(&first);
	port = service->port;
	carry_leave_service(service);
	taken = carrier_address(here, (uint16_t)(port - 2));
	assert_int_equal(bind(other, &taken.sa, sizeof(taken.in)), 0);
	num_binds = 0;
	assert_null(carry_service_for(&nowhere));
	assert_int_equal(num_binds, 1);
	service = carry_service_for(&second);
	assert_non_null(service);
	assert_int_equal(num_binds, 3);
	assert_int_equal(service->port, port - 3);
	carry_leave_service(service);
	close(other);
}

/* connect() fails, and the server is told; the next one finds a port again. */
static void test_out_of_ports(void **state)
{
	union turn_address address;
	int here = carrier_listen("127.0.0.1", &address);

	for (unsigned int i = 0; i < 2; i++) {
		struct client client = carrier_connect("127.0.0.2", &address, false);
		int server = -1;

		carrier_deliver(POLYCM_TCP_SYN);
		carrier_stays_until(num_under_way);
		bind_fails = i ? 0 : EADDRINUSE;
		carrier_deliver(POLYCM_TCP_SYN_ACK);
		bind_fails = 0;
		assert_int_equal(carrier_result(&client), i ? 0 : -EADDRNOTAVAIL);
		if (i)
			carrier_until((server = accept(here, NULL, NULL)) >= 0);
		close(client.fd);
		close(server);
		carrier_until(!carry_connections);
	}
	close(here);
	(void)state;
}

#define test(f) cmocka_unit_test_setup_teardown(f, open_requests, close_requests)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_sound_request),
		test(test_unsound_requests),
		test(test_many_descriptors),
		test(test_other_descriptors),
		test(test_out_of_descriptors),
		test(test_services),
		test(test_ports_of_others),
		test(test_out_of_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
