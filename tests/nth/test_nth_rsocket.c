/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a connection of rsockets, on each transport, with the n-th allocation or
 * descriptor failing, for every n.  A call may fail, and then the rest is closed;
 * nothing crashes, and nothing is left.
 */
#include <errno.h>
#include <string.h>

#include "tests/api/rsockets.h"
#include "nth.h"

struct life {
	int listener, client, server;
	bool carried;
};

static bool begin(struct life *life)
{
	struct sockaddr_in at = pair_address(SERVER_ADDRESS, SERVER_PORT);

	life->listener = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (life->listener < 0 || rbind(life->listener, (struct sockaddr *)&at, sizeof(at)) ||
	    rlisten(life->listener, 4))
		return false;
	life->client = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	return life->client >= 0 && rconnect(life->client, (struct sockaddr *)&at, sizeof(at)) < 0 &&
	       errno == EINPROGRESS;
}

/* One step of what is ready; false: it is over. */
static bool go_on(struct life *life, const struct pollfd fds[3])
{
	char buf[16];

	if ((fds[0].revents | fds[1].revents | fds[2].revents) & (POLLERR | POLLHUP))
		return false;
	if (fds[1].revents & POLLIN)
		life->server = raccept(life->listener, NULL, NULL);
	if (fds[0].revents & POLLOUT && life->server >= 0)
		return rsend(life->client, "hello", 6, 0) == 6;
	if (fds[2].revents & POLLIN) {
		life->carried = rrecv(life->server, buf, sizeof(buf), 0) == 6;
		return false;
	}
	return true;
}

static void live(struct life *life)
{
	bool sent = false;

	if (!begin(life))
		return;
	for (;;) {
		struct pollfd fds[3] = {
			{ .fd = life->client, .events = sent || life->server < 0 ? 0 : POLLOUT },
			{ .fd = life->server < 0 ? life->listener : -1, .events = POLLIN },
			{ .fd = life->server, .events = POLLIN },
		};

		if (rpoll(fds, 3, 300000) <= 0 || !go_on(life, fds))
			return;
		sent |= fds[0].revents & POLLOUT;
	}
}

static void end(int fd)
{
	if (fd >= 0)
		assert_int_equal(rclose(fd), 0);
}

/* With the n-th failing, or none: 0.  false: there were fewer. */
static bool live_with(enum transport transport, enum nth_kind kind, unsigned long n)
{
	struct life life = { .listener = -1, .client = -1, .server = -1 };
	struct polycm_sim_node *server;
	unsigned int descriptors = rsockets_descriptors();
	bool failed;

	/* One node talks to itself: who makes which rsocket is no matter. */
	assert_int_equal(polycm_sim_create(42), 0);
	assert_int_equal(polycm_sim_node_add("server", transport_name[transport], SERVER_ADDRESS "/24",
					     &server), 0);
	assert_int_equal(polycm_sim_node_use(server), 0);
	nth_arm(kind, n, 1);
	live(&life);
	failed = nth_disarm(NULL);
	if (!n && !life.carried)
		fail_msg("without a failure nothing comes");
	end(life.client);
	end(life.server);
	end(life.listener);
	pair_close_nodes();
	if (rsockets_descriptors() != descriptors)
		fail_msg("%s, %lu: a descriptor is left; %s failed", transport_name[transport], n,
			 nth_last());
	return failed;
}

static void sweep(enum nth_kind kind)
{
	for (enum transport t = ROCE; t < NUM_TRANSPORTS; t++) {
		unsigned long n = 1;

		(void)live_with(t, kind, 0);
		while (live_with(t, kind, n))
			n++;
		print_message("%s: %lu\n", transport_name[t], n - 1);
		assert_true(n > 5);
	}
}

static void allocations(void **state)
{
	(void)state;
	sweep(NTH_ALLOC);
}

static void descriptors(void **state)
{
	(void)state;
	sweep(NTH_DESCRIPTOR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allocations),
		cmocka_unit_test(descriptors),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
