/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rsocket_dgram.c - datagram rsockets: two on one node.  Their first messages go over UDP
 * sockets of the host, so the node has an address of it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

#include "rsockets.h"

#define MS UINT64_C(1000000)

static char host_address[INET_ADDRSTRLEN], host_address6[INET6_ADDRSTRLEN];

struct dgrams {
	unsigned int descriptors;
	struct sockaddr_in server_at;
	int server, client;
};

/* A host without an address but loopback's has nothing to test with: status 77. */
static int find_address(void **state)
{
	struct ifaddrs *all, *one;

	if (pair_group_setup(state) || getifaddrs(&all))
		return -1;
	for (one = all; one; one = one->ifa_next) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)one->ifa_addr;
		const struct sockaddr_in *in = (const struct sockaddr_in *)one->ifa_addr;

		if (!one->ifa_addr || one->ifa_flags & IFF_LOOPBACK)
			continue;
		if (one->ifa_addr->sa_family == AF_INET)
			inet_ntop(AF_INET, &in->sin_addr, host_address, sizeof(host_address));
		else if (one->ifa_addr->sa_family == AF_INET6 &&
			 !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
			inet_ntop(AF_INET6, &in6->sin6_addr, host_address6, sizeof(host_address6));
	}
	freeifaddrs(all);
	return 0;
}

static void open_node(struct dgrams *d, enum transport t)
{
	struct polycm_sim_node *node;
	char address[INET_ADDRSTRLEN + 3];

	assert_int_equal(polycm_sim_create(42), 0);
	assert_int_equal(polycm_sim_destroy(), 0);
	memset(d, 0, sizeof(*d));
	d->descriptors = rsockets_descriptors();
	strcat(strcpy(address, host_address), "/24");
	assert_int_equal(polycm_sim_create(42), 0);
	assert_int_equal(polycm_sim_node_add("host", transport_name[t], address, &node), 0);
	assert_int_equal(polycm_sim_node_use(node), 0);
}

static void open_dgrams(struct dgrams *d, enum transport t)
{
	socklen_t len = sizeof(d->server_at);

	open_node(d, t);
	d->server = rsocket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_true(d->server >= 0);
	d->client = rsocket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, IPPROTO_UDP);
	assert_true(d->client >= 0);
	d->server_at = pair_address(host_address, 0);
	assert_int_equal(rbind(d->server, (struct sockaddr *)&d->server_at, sizeof(d->server_at)), 0);
	assert_int_equal(rgetsockname(d->server, (struct sockaddr *)&d->server_at, &len), 0);
}

static void close_dgrams(struct dgrams *d)
{
	assert_int_equal(rclose(d->server), 0);
	assert_int_equal(rclose(d->client), 0);
	pair_close_nodes();
	assert_int_equal(rsockets_descriptors(), d->descriptors);
}

/* Both go on until one has a datagram. */
static void wait_for(struct dgrams *d, int fd)
{
	struct pollfd fds[2] = { { .fd = d->server }, { .fd = d->client } };

	fds[fd == d->client].events = POLLIN;
	assert_int_equal(rpoll(fds, 2, 10000), 1);
}

static void echo(struct dgrams *d, size_t size)
{
	uint8_t out[2048], in[2048];
	struct sockaddr_in from;
	socklen_t len = sizeof(from);

	for (size_t i = 0; i < size; i++)
		out[i] = (uint8_t)(i + size);
	assert_int_equal(rsendto(d->client, out, size, 0, (struct sockaddr *)&d->server_at,
				 sizeof(d->server_at)), size);
	wait_for(d, d->server);
	memset(in, 0, sizeof(in));
	assert_int_equal(rrecvfrom(d->server, in, sizeof(in), 0, (struct sockaddr *)&from, &len), size);
	assert_memory_equal(in, out, size);
	assert_int_equal(len, sizeof(from));
	assert_int_equal(from.sin_addr.s_addr, d->server_at.sin_addr.s_addr);
	assert_int_equal(rsendto(d->server, in, size, 0, (struct sockaddr *)&from, len), size);
	wait_for(d, d->client);
	assert_int_equal(rrecv(d->client, in, sizeof(in), 0), size);
	assert_memory_equal(in, out, size);
	assert_errno(rrecv(d->client, in, sizeof(in), 0), EAGAIN);
}

static unsigned int live_ahs(void)
{
	struct polycm_sim_counts counts = { .size = sizeof(counts) };

	assert_int_equal(polycm_sim_live(&counts), 0);
	return (unsigned int)counts.ahs;
}

/* The first ones go by UDP; once both know the other's queue pair, they go there. */
static void datagrams_come_back(void **state)
{
	static const size_t sizes[] = { 1, 0, 16, 1000, 2032 };

	(void)state;
	if (!host_address[0])
		skip();
	for (enum transport t = ROCE; t <= IB; t++) {
		struct dgrams d;

		open_dgrams(&d, t);
		echo(&d, 1);
		for (int i = 0; i < 10 && live_ahs() < 2; i++) {
			struct pollfd fds[2] = { { .fd = d.server }, { .fd = d.client } };

			assert_int_equal(rpoll(fds, 2, 100), 0);
		}
		assert_int_equal(live_ahs(), 2);
		for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
			if (t == IB || sizes[i] <= 1000)
				echo(&d, sizes[i]);
		close_dgrams(&d);
	}
}

/* The longer headers. */
static void datagrams_of_ipv6(void **state)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6 }, from;
	char address[INET6_ADDRSTRLEN + 4], buf[16];
	socklen_t len = sizeof(at), from_len = sizeof(from);
	struct polycm_sim_node *node;
	struct dgrams d;

	(void)state;
	if (!host_address6[0])
		skip();
	open_node(&d, ROCE);
	strcat(strcpy(address, host_address6), "/64");
	assert_int_equal(polycm_sim_node_find("host", &node), 0);
	assert_int_equal(polycm_sim_node_add_address(node, address), 0);
	assert_int_equal(inet_pton(AF_INET6, host_address6, &at.sin6_addr), 1);
	d.server = rsocket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	d.client = rsocket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_int_equal(rbind(d.server, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(rgetsockname(d.server, (struct sockaddr *)&at, &len), 0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(rsendto(d.client, "hello", 6, 0, (struct sockaddr *)&at, len), 6);
		wait_for(&d, d.server);
		assert_int_equal(rrecvfrom(d.server, buf, sizeof(buf), 0, (struct sockaddr *)&from,
					   &from_len), 6);
		assert_string_equal(buf, "hello");
		assert_int_equal(from_len, sizeof(from));
		assert_memory_equal(&from.sin6_addr, &at.sin6_addr, sizeof(at.sin6_addr));
		assert_int_equal(rsockets_poll(d.client, POLLIN, 10), 0);
	}
	assert_int_equal(live_ahs(), 2);
	close_dgrams(&d);
}

static void connected_datagrams(void **state)
{
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	struct dgrams d;
	char buf[8];

	(void)state;
	if (!host_address[0])
		skip();
	open_dgrams(&d, IB);
	assert_errno(rsend(d.client, "x", 1, 0), EDESTADDRREQ);
	assert_errno(rgetpeername(d.client, (struct sockaddr *)&name, &len), ENOTCONN);
	assert_int_equal(rconnect(d.client, (struct sockaddr *)&d.server_at, sizeof(d.server_at)), 0);
	assert_int_equal(rgetpeername(d.client, (struct sockaddr *)&name, &len), 0);
	assert_int_equal(name.sin_port, d.server_at.sin_port);
	assert_int_equal(rsend(d.client, "hello", 6, 0), 6);
	wait_for(&d, d.server);
	/* What does not fit is cut off, and what is looked at stays. */
	assert_int_equal(rrecv(d.server, buf, 3, MSG_PEEK), 3);
	assert_int_equal(rrecv(d.server, buf, 3, 0), 3);
	assert_memory_equal(buf, "hel", 3);
	assert_errno(rrecv(d.server, buf, 3, 0), EAGAIN);
	close_dgrams(&d);
}

static void refused_datagrams(void **state)
{
	struct sockaddr_in loopback = pair_address("127.0.0.1", 9);
	uint8_t big[4096] = { 0 };
	struct dgrams d;
	int value = 1;
	socklen_t len = sizeof(value);

	(void)state;
	if (!host_address[0])
		skip();
	open_dgrams(&d, ROCE);
	assert_errno(rsendto(d.client, big, 1024 - 8 + 1, 0, (struct sockaddr *)&d.server_at,
			     sizeof(d.server_at)), EMSGSIZE);
	assert_int_equal(rsendto(d.client, big, 1024 - 8, 0, (struct sockaddr *)&d.server_at,
				 sizeof(d.server_at)), 1024 - 8);
	assert_errno(rsendto(d.client, big, 1, 0, (struct sockaddr *)&loopback, sizeof(loopback)),
		     ENODEV);
	assert_errno(rsendto(d.client, big, 1, 0, (struct sockaddr *)&d.server_at, 3), EINVAL);
	assert_errno(rlisten(d.client, 1), EOPNOTSUPP);
	assert_errno(raccept(d.client, NULL, NULL), EINVAL);
	assert_errno(rshutdown(d.client, SHUT_WR), EOPNOTSUPP);
	assert_errno((int)riomap(d.client, big, 4, 0, 0, -1), EOPNOTSUPP);
	assert_int_equal(rsetsockopt(d.server, SOL_SOCKET, SO_REUSEADDR, &value, sizeof(value)), 0);
	assert_int_equal(rgetsockopt(d.server, SOL_SOCKET, SO_TYPE, &value, &len), 0);
	assert_int_equal(value, SOCK_DGRAM);
	assert_errno(rsocket(AF_IB, SOCK_DGRAM, 0), EAFNOSUPPORT);
	close_dgrams(&d);
}

/* iWARP has no datagrams. */
static void none_on_iwarp(void **state)
{
	struct dgrams d;

	(void)state;
	if (!host_address[0])
		skip();
	open_dgrams(&d, IWARP);
	assert_int_equal(rsendto(d.client, "x", 1, 0, (struct sockaddr *)&d.server_at,
				 sizeof(d.server_at)), -1);
	close_dgrams(&d);
}

/* What is no message of rsockets comes to nobody. */
static void strangers_on_the_socket(void **state)
{
	static const struct {
		uint32_t tag;
		uint8_t version, op, length, reserved;
	} packets[] = {
		{ 0x12345678, 4, 0, 16, 0 },
		{ 0x55555555, 6, 0, 28, 0 },
		{ 0x55555555, 4, 0, 200, 0 },
		{ 0x55555555, 4, 99, 16, 0 },
	};
	uint8_t packet[16] = { 0 };
	struct dgrams d;
	int udp;

	(void)state;
	if (!host_address[0])
		skip();
	open_dgrams(&d, IB);
	udp = socket(AF_INET, SOCK_DGRAM, 0);
	for (size_t i = 0; i < ARRAY_LEN(packets); i++) {
		memcpy(packet, &packets[i], sizeof(packets[i]));
		assert_int_equal(sendto(udp, packet, sizeof(packet), 0, (struct sockaddr *)&d.server_at,
					sizeof(d.server_at)), sizeof(packet));
		assert_int_equal(sendto(udp, packet, i, 0, (struct sockaddr *)&d.server_at,
					sizeof(d.server_at)), i);
	}
	assert_int_equal(rsockets_poll(d.server, POLLIN, 100), 0);
	close(udp);
	echo(&d, 10);
	close_dgrams(&d);
}

/* More than there are buffers for: some are lost, and those that come later are not. */
static void more_than_there_is_room_for(void **state)
{
	struct dgrams d;
	uint8_t buf[16] = { 0 };
	unsigned int received = 0;

	(void)state;
	if (!host_address[0])
		skip();
	open_dgrams(&d, IB);
	echo(&d, 10);
	assert_int_equal(rsockets_poll(d.client, POLLIN, 100), 0);
	for (int i = 0; i < 1000; i++) {
		while (rsendto(d.client, buf, sizeof(buf), 0, (struct sockaddr *)&d.server_at,
			       sizeof(d.server_at)) < 0) {
			assert_int_equal(errno, EAGAIN);
			assert_int_equal(rsockets_poll(d.client, POLLOUT, 100), POLLOUT);
		}
	}
	assert_int_equal(polycm_sim_advance(1000 * MS), 0);
	while (rrecv(d.server, buf, sizeof(buf), 0) == sizeof(buf))
		received++;
	assert_int_equal(errno, EAGAIN);
	assert_in_range(received, 1, 999);
	echo(&d, 10);
	close_dgrams(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(datagrams_come_back),
		cmocka_unit_test(datagrams_of_ipv6),
		cmocka_unit_test(connected_datagrams),
		cmocka_unit_test(refused_datagrams),
		cmocka_unit_test(none_on_iwarp),
		cmocka_unit_test(strangers_on_the_socket),
		cmocka_unit_test(more_than_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, find_address, NULL);
}
