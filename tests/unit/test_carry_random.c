/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random lives of TCP connections that polycm carry carries: whatever programs and the network do, in
 * whatever order, what one end writes the other one reads, and nothing is left.  $CARRY_SEED is another
 * first seed, $CARRY_SEEDS how many there are.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "carrier_world.h"

#define STEPS 2000u
#define MOST 4u				/* connections at once */
#define LONGEST 30000u			/* of what is written or read at once */

static uint64_t random_state;

static uint32_t below(uint32_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 32) % limit;
}

/* Both ends of a connection as their programs know it. */
struct life {
	struct client client;
	int fds[2];			/* the client's and the server's; -1: closed, or not there yet */
	bool opens, is_used;
	bool is_reset;			/* by a program: what is under way may be lost */
	size_t written[2], got[2];	/* by each end */
	bool has_shut[2], at_end[2];
	uint8_t key;			/* of its bytes */
};

static const struct life none = { .fds = { -1, -1 } };
static struct life lives[MOST];
static bool resets;			/* programs do that in this run, and the network */
static bool has_lost;			/* a RST, or what somebody has given up */
static uint64_t seed;

#define CHECK(what)										\
	do {											\
		if (!(what))									\
			fail_msg("seed %llu: not so: %s", (unsigned long long)seed, #what);	\
	} while (0)

static uint8_t byte_of(const struct life *life, int end, size_t at)
{
	return (uint8_t)(at ^ at >> 8 ^ at >> 16 ^ life->key ^ (uint8_t)(end << 7));
}

static void begin(struct life *life)
{
	static uint16_t num_begun;
	const union turn_address to = carrier_address("127.0.0.1", carrier_server_port());
	char from[32];

	num_begun++;
	snprintf(from, sizeof(from), "127.1.%u.%u", num_begun / 256u, num_begun % 256u);
	*life = (struct life){ .is_used = true, .opens = true, .key = (uint8_t)below(128) };
	life->client = carrier_connect(from, &to, false);
	life->fds[0] = life->client.fd;
	life->fds[1] = -1;
}

/* The server learns whose a connection is by its client's address. */
static void accept_one(void)
{
	union turn_address peer;
	socklen_t len = sizeof(peer);
	int fd = accept4(listener, &peer.sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct life *life = lives;

	if (fd < 0)
		return;
	while (life < lives + MOST && (!life->is_used || life->client.own.in.sin_addr.s_addr !=
				       peer.in.sin_addr.s_addr))
		life++;
	CHECK(life < lives + MOST);
	CHECK(life->fds[1] < 0 && !life->has_shut[1]);
	life->fds[1] = fd;
}

static void write_some(struct life *life, int end)
{
	uint8_t bytes[LONGEST];
	size_t len = 1 + below(below(2) ? 100 : LONGEST);
	ssize_t num;

	if (life->fds[end] < 0 || life->has_shut[end] || (!end && life->opens))
		return;
	for (size_t i = 0; i < len; i++)
		bytes[i] = byte_of(life, end, life->written[end] + i);
	num = send(life->fds[end], bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	CHECK(num > 0 || errno == EAGAIN || life->is_reset);
	life->written[end] += num > 0 ? (size_t)num : 0;
}

/* False: there is nothing. */
static bool read_some(struct life *life, int end)
{
	uint8_t bytes[LONGEST];
	ssize_t num;

	if (life->fds[end] < 0 || life->at_end[end] || (!end && life->opens))
		return false;
	num = recv(life->fds[end], bytes, 1 + below(LONGEST), MSG_DONTWAIT);
	if (num < 0) {
		CHECK(errno == EAGAIN || life->is_reset);
		life->at_end[end] = errno != EAGAIN;
		return life->at_end[end];
	}
	for (ssize_t i = 0; i < num; i++)
		CHECK(bytes[i] == byte_of(life, !end, life->got[end] + (size_t)i));
	life->got[end] += (size_t)num;
	CHECK(life->got[end] <= life->written[!end]);
	if (!num) {
		CHECK((life->has_shut[!end] && life->got[end] == life->written[!end]) ||
		      life->is_reset);
		life->at_end[end] = true;
	}
	return true;
}

static void shut(struct life *life, int end)
{
	if (life->fds[end] < 0 || life->has_shut[end] || (!end && life->opens))
		return;
	CHECK(!shutdown(life->fds[end], SHUT_WR) || life->is_reset);
	life->has_shut[end] = true;
}

/* With a RST, or because something is unread. */
static void reset(struct life *life, int end)
{
	if (life->fds[end] < 0 || (!end && life->opens))
		return;
	life->is_reset = life->has_shut[end] = true;
	if (below(2))
		abort_socket(life->fds[end]);
	else
		close(life->fds[end]);
	life->fds[end] = -1;
}

/* Segments of one direction arrive in order, except for a RST, and for an ACK. */
static bool is_next(unsigned int i)
{
	const struct polycm_tcp_segment *segment = &under_way[i];

	if (segment->kind == POLYCM_TCP_RST || segment->kind == POLYCM_TCP_ACK)
		return true;
	for (unsigned int n = 0; n < i; n++)
		if (under_way[n].connection == segment->connection &&
		    under_way[n].to_server == segment->to_server &&
		    under_way[n].kind != POLYCM_TCP_RST && under_way[n].kind != POLYCM_TCP_ACK)
			return false;
	return true;
}

static void deliver_one(void)
{
	unsigned int i = num_under_way ? below(num_under_way) : 0;

	if (num_under_way && is_next(i))
		carrier_deliver_nth(i);
}

/* NULL: it has been forgotten. */
static struct life *life_of(uint32_t number)
{
	const struct carry_connection *connection = carry_connections;

	while (connection && connection->number != number)
		connection = connection->next;
	for (unsigned int i = 0; connection && i < MOST; i++)
		if (lives[i].is_used && lives[i].client.own.in.sin_addr.s_addr ==
					connection->from.in.sin_addr.s_addr)
			return &lives[i];
	return NULL;
}

/* A RST is lost, or the sender of another segment gives up: with it all is lost that follows. */
static void lose_one(void)
{
	unsigned int i = num_under_way ? below(num_under_way) : 0;
	struct polycm_tcp_segment segment;
	struct life *life;

	if (!num_under_way || !is_next(i) || under_way[i].kind == POLYCM_TCP_ACK)
		return;
	segment = under_way[i];
	carrier_lose_nth(i);
	has_lost = true;
	if (segment.kind == POLYCM_TCP_RST)
		return;
	for (i = num_under_way; i--;)
		if (under_way[i].connection == segment.connection &&
		    under_way[i].to_server == segment.to_server &&
		    under_way[i].kind != POLYCM_TCP_RST && under_way[i].kind != POLYCM_TCP_ACK)
			carrier_lose_nth(i);
	life = life_of(segment.connection);
	if (life)
		life->is_reset = true;
	segment.kind = POLYCM_TCP_GIVES_UP;
	carry_arrived(&segment);
	carry_forget_ended();
}

static void look_at_opening(struct life *life)
{
	if (!life->opens || carrier_result(&life->client) == NO_RESULT)
		return;
	life->opens = false;
	/* It is refused where the server's RST has overtaken its SYN_ACK. */
	if (carrier_result(&life->client)) {
		CHECK(life->is_reset);
		CHECK(carrier_result(&life->client) == -ECONNREFUSED ||
		      carrier_result(&life->client) == -ETIMEDOUT);
		life->has_shut[0] = true;
	}
}

static void step(void)
{
	struct life *life = &lives[below(MOST)];
	int end = (int)below(2);

	switch (below(16)) {
	case 0:
		if (!life->is_used)
			begin(life);
		break;
	case 1:
		accept_one();
		break;
	case 2: case 3: case 4:
		write_some(life, end);
		break;
	case 5: case 6: case 7:
		read_some(life, end);
		break;
	case 8:
		if (!below(6))
			shut(life, end);
		break;
	case 9:
		if (resets && !below(12))
			reset(life, end);
		else if (resets && !below(20))
			lose_one();
		break;
	case 10: case 11: case 12:
		(void)carrier_step(0);
		break;
	default:
		deliver_one();
		break;
	}
	look_at_opening(life);
	/* It has ended: there can be another one in its place. */
	if (life->is_used && life->at_end[0] && life->at_end[1] && life->has_shut[0] &&
	    life->has_shut[1]) {
		for (end = 0; end < 2; end++)
			close(life->fds[end]);
		*life = none;
	}
}

static bool all_have_ended(void)
{
	bool all = true;

	accept_one();
	for (unsigned int i = 0; i < MOST; i++) {
		struct life *life = &lives[i];

		look_at_opening(life);
		for (int end = 0; end < 2 && life->is_used; end++) {
			while (read_some(life, end))
				;
			shut(life, end);
			/* Who was reset may never hear of it, and never come to accept(). */
			if (!life->is_reset && (life->fds[end] < 0 || !life->at_end[end]))
				all = false;
		}
	}
	return all;
}

/* The end of what was lost would come with the next data, but programs have closed. */
static void reset_all(void)
{
	carrier_settle();
	for (const struct carry_connection *at = carry_connections; at; at = at->next)
		for (unsigned int i = 0; i < 2; i++)
			carry_arrived(&(const struct polycm_tcp_segment){
				.connection = at->number, .kind = POLYCM_TCP_RST, .to_server = i,
			});
}

static void end_all(void)
{
	carrier_until(all_have_ended());
	for (unsigned int i = 0; i < MOST; i++) {
		struct life *life = &lives[i];

		for (int end = 0; end < 2 && life->is_used; end++) {
			if (!life->is_reset)
				CHECK(life->got[end] == life->written[!end]);
			if (life->fds[end] >= 0)
				close(life->fds[end]);
		}
		*life = none;
	}
	if (has_lost)
		reset_all();
	carrier_until(!carry_connections);
	for (int fd; (fd = carrier_accept()) >= 0; close(fd))
		CHECK(resets);
}

static void run(void **state)
{
	const char *first = getenv("CARRY_SEED"), *num = getenv("CARRY_SEEDS");
	const uint64_t begin_seed = first ? strtoull(first, NULL, 0) : 1;
	const uint64_t num_seeds = num ? strtoull(num, NULL, 0) : 10;

	for (seed = begin_seed; seed < begin_seed + num_seeds; seed++) {
		random_state = seed * UINT64_C(0x9e3779b97f4a7c15);
		for (unsigned int i = 0; i < MOST; i++)
			lives[i] = none;
		has_lost = false;
		for (unsigned int i = 0; i < STEPS; i++)
			step();
		end_all();
		carrier_close(state);
		carrier_open(state);
	}
}

static void test_without_resets(void **state)
{
	resets = false;
	run(state);
}

static void test_with_resets(void **state)
{
	resets = true;
	run(state);
}

#define test(f) cmocka_unit_test_setup_teardown(f, carrier_open, carrier_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_without_resets),
		test(test_with_resets),
	};

	return carrier_run_twice(tests);
}
