/* SPDX-License-Identifier: BSD-2-Clause */
/* tests/api/rsockets.c - see rsockets.h. */
#include "rsockets.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

unsigned int rsockets_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int num = 0;

	assert_non_null(dir);
	while (readdir(dir))
		num++;
	closedir(dir);
	return num;
}

short rsockets_poll(int fd, short events, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = events };
	int num = rpoll(&pfd, 1, timeout_ms);

	assert_true(num >= 0);
	assert_int_equal(num, !!pfd.revents);
	return pfd.revents;
}

void rsockets_open(struct rsockets *r, enum transport transport)
{
	struct sockaddr_in at = pair_address(SERVER_ADDRESS, SERVER_PORT);

	/* What the simulator opens once. */
	assert_int_equal(polycm_sim_create(42), 0);
	assert_int_equal(polycm_sim_destroy(), 0);
	r->descriptors = rsockets_descriptors();
	r->server = -1;
	pair_open_nodes(transport, &r->server_node, &r->client_node);
	assert_int_equal(polycm_sim_node_use(r->server_node), 0);
	r->listener = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_true(r->listener >= 0);
	assert_int_equal(rbind(r->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(rlisten(r->listener, 8), 0);
	assert_int_equal(polycm_sim_node_use(r->client_node), 0);
	r->client = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_TCP);
	assert_true(r->client >= 0);
}

int rsockets_connect_client(struct rsockets *r)
{
	struct sockaddr_in to = pair_address(SERVER_ADDRESS, SERVER_PORT);

	return rconnect(r->client, (struct sockaddr *)&to, sizeof(to));
}

void rsockets_connect_opened(struct rsockets *r)
{
	struct pollfd fds[2] = {
		{ .fd = r->client, .events = POLLOUT },
		{ .fd = r->listener, .events = POLLIN },
	};

	assert_errno(rsockets_connect_client(r), EINPROGRESS);
	while (r->server < 0 || !fds[0].revents) {
		fds[0].fd = fds[0].revents ? -1 : r->client;
		assert_true(rpoll(fds, 2, 10000) > 0);
		if (fds[1].revents) {
			r->server = raccept(r->listener, NULL, NULL);
			assert_true(r->server >= 0);
			fds[1].fd = -1;
		}
		if (fds[0].fd < 0)
			break;
	}
	assert_int_equal(rsockets_poll(r->client, POLLOUT, 1000), POLLOUT);
	assert_int_equal(rsockets_poll(r->server, POLLOUT, 1000), POLLOUT);
}

void rsockets_connect(struct rsockets *r, enum transport transport)
{
	rsockets_open(r, transport);
	rsockets_connect_opened(r);
}

void rsockets_close(struct rsockets *r)
{
	if (r->client >= 0)
		assert_int_equal(rclose(r->client), 0);
	if (r->server >= 0)
		assert_int_equal(rclose(r->server), 0);
	if (r->listener >= 0)
		assert_int_equal(rclose(r->listener), 0);
	pair_close_nodes();
	assert_int_equal(rsockets_descriptors(), r->descriptors);
}

static uint8_t byte_of(size_t i)
{
	return (uint8_t)(i * 31 + i / 251);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

void rsockets_carry(struct rsockets *r, bool from_client, size_t len, size_t piece)
{
	struct pollfd fds[2] = {
		{ .fd = from_client ? r->client : r->server, .events = POLLOUT },
		{ .fd = from_client ? r->server : r->client, .events = POLLIN },
	};
	uint8_t *buf = malloc(piece);
	size_t sent = 0, received = 0;

	assert_non_null(buf);
	while (received < len) {
		ssize_t num;

		fds[0].events = sent < len ? POLLOUT : 0;
		assert_true(rpoll(fds, 2, 10000) > 0);
		if (fds[0].revents) {
			for (size_t i = 0; i < least(piece, len - sent); i++)
				buf[i] = byte_of(sent + i);
			num = rsend(fds[0].fd, buf, least(piece, len - sent), 0);
			assert_true(num > 0);
			sent += (size_t)num;
		}
		if (fds[1].revents) {
			num = rrecv(fds[1].fd, buf, piece, 0);
			assert_true(num > 0);
			for (size_t i = 0; i < (size_t)num; i++)
				if (buf[i] != byte_of(received + i))
					fail_msg("byte %zu of %zu is %#x instead of %#x", received + i,
						 len, buf[i], byte_of(received + i));
			received += (size_t)num;
		}
	}
	assert_int_equal(sent, len);
	free(buf);
}
