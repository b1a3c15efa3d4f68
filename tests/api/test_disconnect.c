/* SPDX-License-Identifier: BSD-2-Clause */
/* test_disconnect.c - how connections end, on each transport. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "steps.h"

#define MOMENT 1000000u		/* 1 ms: any message has arrived */
#define LONG SECONDS(200)	/* every timer of an established connection has fired */

static struct rdma_event_channel *channel_of(struct pair *pair, bool server)
{
	return server ? pair->server_channel : pair->client_channel;
}

static struct rdma_cm_id *end_of(struct pair *pair, bool server)
{
	return server ? pair->server : pair->client;
}

/* What to_ms(local ACK time-out) is on both sides: 2^(17-8) on RoCE, 2^(19-8) on InfiniBand. */
static uint64_t timewait(enum transport transport)
{
	return SECONDS(transport == ROCE ? 0.512 : 2.048);
}

static void either_side_begins(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		for (int server = 0; server < 2; server++) {
			uint64_t answered, arrived;
			struct pair pair;

			print_message("%s, %s\n", transport_name[t], server ? "server" : "client");
			pair_open(&pair, t, RDMA_PS_TCP);
			pair_connect(&pair);
			assert_int_equal(rdma_disconnect(end_of(&pair, server)), 0);
			assert_int_equal(step_qp_state(end_of(&pair, server)), IBV_QPS_ERR);
			pair_take(channel_of(&pair, !server), RDMA_CM_EVENT_DISCONNECTED, 0);
			/* Being told moves no queue pair. */
			assert_int_equal(step_qp_state(end_of(&pair, !server)), IBV_QPS_RTS);
			/* The answer is the program's. */
			assert_int_equal(polycm_sim_advance(MOMENT), 0);
			pair_none(channel_of(&pair, server));

			answered = pair_now();
			assert_int_equal(rdma_disconnect(end_of(&pair, !server)), 0);
			assert_int_equal(step_qp_state(end_of(&pair, !server)), IBV_QPS_ERR);
			pair_take(channel_of(&pair, server), RDMA_CM_EVENT_DISCONNECTED, 0);
			arrived = pair_now();
			pair_take(channel_of(&pair, !server), RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
			assert_elapsed(answered, timewait(t));
			pair_take(channel_of(&pair, server), RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
			assert_elapsed(arrived, timewait(t));
			assert_int_equal(polycm_sim_advance(LONG), 0);
			pair_none(pair.client_channel);
			pair_none(pair.server_channel);
			pair_close(&pair);
		}
	}
}

static void iwarp_ends_at_once(void **state)
{
	(void)state;
	for (int server = 0; server < 2; server++) {
		struct pair pair;

		pair_open(&pair, IWARP, RDMA_PS_TCP);
		pair_connect(&pair);
		assert_int_equal(rdma_disconnect(end_of(&pair, server)), 0);
		/* No program's help is needed for either event. */
		pair_take(channel_of(&pair, server), RDMA_CM_EVENT_DISCONNECTED, 0);
		pair_take(channel_of(&pair, !server), RDMA_CM_EVENT_DISCONNECTED, 0);
		assert_int_not_equal(step_qp_state(pair.client), IBV_QPS_RTS);
		assert_int_not_equal(step_qp_state(pair.server), IBV_QPS_RTS);
		/* Once more does no harm, and nothing more comes. */
		assert_int_equal(rdma_disconnect(end_of(&pair, !server)), 0);
		assert_int_equal(polycm_sim_advance(LONG), 0);
		pair_none(pair.client_channel);
		pair_none(pair.server_channel);
		pair_close(&pair);
	}
}

/* Each has the other's DREQ for an answer; nobody sends a DREP. */
static void both_begin(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_connect(&pair);
		assert_int_equal(rdma_disconnect(pair.client), 0);
		assert_int_equal(rdma_disconnect(pair.server), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		assert_int_equal(polycm_sim_advance(LONG), 0);
		pair_none(pair.client_channel);
		pair_none(pair.server_channel);

		/* TIMEWAIT begins with the answer that a second call sends. */
		assert_int_equal(rdma_disconnect(pair.client), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		pair_none(pair.server_channel);
		assert_int_equal(rdma_disconnect(pair.server), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		pair_close(&pair);
	}
}

static void both_begin_on_iwarp(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, IWARP, RDMA_PS_TCP);
	pair_connect(&pair);
	assert_int_equal(rdma_disconnect(pair.client), 0);
	assert_int_equal(rdma_disconnect(pair.server), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	pair_take(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(polycm_sim_advance(LONG), 0);
	pair_none(pair.client_channel);
	pair_none(pair.server_channel);
	pair_close(&pair);
}

/* 16 waits of the side's own time-out, then TIMEWAIT. */
static const struct silent_case {
	enum transport transport;
	bool server;		/* the one that disconnects */
	double seconds;
} silents[] = {
	{ ROCE, false, 73.728 },	/* 16 * 4.608: twice the lifetime and the peer's response */
	{ ROCE, true, 65.536 },		/* 16 * 4.096 */
	{ IB, false, 98.304 },		/* 16 * 6.144 */
	{ IB, true, 65.536 },
};

static void the_peers_program_does_not_answer(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(silents); i++) {
		const struct silent_case *c = &silents[i];
		uint64_t before;
		struct pair pair;

		print_message("%s, %s\n", transport_name[c->transport],
			      c->server ? "server" : "client");
		pair_open(&pair, c->transport, RDMA_PS_TCP);
		pair_connect(&pair);
		before = pair_now();
		assert_int_equal(rdma_disconnect(end_of(&pair, c->server)), 0);
		pair_take(channel_of(&pair, c->server), RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
		assert_elapsed(before, SECONDS(c->seconds));
		pair_take(channel_of(&pair, c->server), RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		assert_elapsed(before, SECONDS(c->seconds) + timewait(c->transport));

		/* The other side was told once, however often it was asked. */
		pair_take(channel_of(&pair, !c->server), RDMA_CM_EVENT_DISCONNECTED, 0);
		pair_none(channel_of(&pair, !c->server));
		pair_close(&pair);
	}
}

/* One DREQ, not repeated; the peer's answer finds nobody and is answered all the same. */
static void destroying_a_connected_id(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (int server = 0; server < 2; server++) {
			struct rdma_cm_id **gone;
			struct pair pair;

			pair_open(&pair, t, RDMA_PS_TCP);
			pair_connect(&pair);
			gone = server ? &pair.server : &pair.client;
			rdma_destroy_qp(*gone);
			assert_int_equal(rdma_destroy_id(*gone), 0);
			*gone = NULL;
			pair_take(channel_of(&pair, !server), RDMA_CM_EVENT_DISCONNECTED, 0);
			pair_none(channel_of(&pair, server));
			assert_int_equal(rdma_disconnect(end_of(&pair, !server)), 0);
			if (t != IWARP)
				pair_take(channel_of(&pair, !server), RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
			assert_int_equal(polycm_sim_advance(LONG), 0);
			pair_none(channel_of(&pair, !server));
			pair_close(&pair);
		}
	}
}

/* The one that was told is destroyed instead of answering: that answers, too. */
static void destroying_answers(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct pair pair;

		step_open(&pair, t, STEP_DISCONNECTED);
		rdma_destroy_qp(pair.server);
		assert_int_equal(rdma_destroy_id(pair.server), 0);
		pair.server = NULL;
		pair_take(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		pair_close(&pair);
	}
}

/* The RTU is not out yet, or the client never sends it: DISCONNECTED comes first. */
static void disconnecting_before_the_peer_is_established(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct pair pair;

		step_open(&pair, t, STEP_ACCEPTED);
		assert_int_equal(polycm_sim_advance(MOMENT), 0);
		/* Nothing can be sent in this state, and none of it is an error. */
		assert_int_equal(rdma_disconnect(pair.server), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		assert_int_equal(rdma_establish(pair.client), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		pair_close(&pair);
	}
}

static void more_than_once(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_connect(&pair);
		for (int i = 0; i < 3; i++)
			assert_int_equal(rdma_disconnect(pair.client), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		for (int i = 0; i < 3; i++)
			assert_int_equal(rdma_disconnect(pair.server), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		if (t != IWARP) {
			pair_take(pair.server_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
			pair_take(pair.client_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		}
		pair_none(pair.client_channel);
		pair_none(pair.server_channel);
		pair_close(&pair);
	}
}

/* Datagrams have no connection: only the queue pair ends. */
static void datagrams_have_nothing_to_disconnect(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		step_request(&pair, t, RDMA_PS_UDP, true);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_int_equal(rdma_disconnect(pair.client), 0);
		assert_int_equal(step_qp_state(pair.client), IBV_QPS_ERR);
		assert_int_equal(rdma_disconnect(pair.server), 0);
		assert_int_equal(step_qp_state(pair.server), IBV_QPS_ERR);
		assert_int_equal(polycm_sim_advance(LONG), 0);
		pair_none(pair.client_channel);
		pair_none(pair.server_channel);
		pair_close(&pair);
	}
}

/* An attempt that failed was no connection: no TIMEWAIT_EXIT follows. */
static void failed_attempts_have_no_timewait(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		step_open(&pair, t, STEP_REJECTED);
		assert_int_equal(polycm_sim_advance(LONG), 0);
		pair_none(pair.client_channel);
		pair_none(pair.server_channel);
		assert_int_equal(rdma_disconnect(pair.client), 0);
		assert_int_equal(polycm_sim_advance(LONG), 0);
		pair_none(pair.client_channel);
		pair_close(&pair);
	}
}

/* Nor after a reply that was withdrawn, though both sides' connection managers wait then. */
static void a_withdrawn_reply_has_no_timewait(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct pair pair;

		step_open(&pair, t, STEP_RESPONSE);
		assert_int_equal(rdma_reject(pair.server, NULL, 0), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, 28);
		assert_int_equal(polycm_sim_advance(LONG), 0);
		pair_none(pair.client_channel);
		pair_none(pair.server_channel);
		pair_close(&pair);
	}
}

/* ------------------------------------------------------------------------
 * Both ends disconnect at random, and DREQs and DREPs are lost or late.
 */

enum { SEEDS = 150, CALLS = 3, STEPS = 1000 };
#define STEP SECONDS(0.25)

struct end {
	unsigned int calls[CALLS];		/* steps in which it disconnects; 0: not */
	unsigned int first_call, disconnected, timewait;	/* steps; 0: never */
	int status;				/* of DISCONNECTED */
	struct polycm_sim_fault *held[4];	/* DREPs of this side that are lost or late */
};

static uint32_t random_state;

static uint32_t random_below(uint32_t bound)
{
	random_state = random_state * 1664525u + 1013904223u;
	return (random_state >> 8) % bound;
}

static void draw_end(struct end *end, struct polycm_sim_node *node)
{
	memset(end, 0, sizeof(*end));
	for (unsigned int i = random_below(CALLS + 1); i; i--)
		end->calls[i - 1] = 1 + random_below(random_below(2) ? 4 : STEPS / 8);
	for (unsigned int i = 0; i < ARRAY_LEN(end->held); i++) {
		struct polycm_sim_fault_rule rule = {
			.size = sizeof(rule), .action = POLYCM_SIM_LOSE, .message = "DREQ",
			.from = node, .nth = i + 1,
		};

		if (random_below(2))
			assert_int_equal(polycm_sim_fault_add(&rule, NULL), 0);
		rule.message = "DREP";
		rule.action = random_below(2) ? POLYCM_SIM_LOSE : POLYCM_SIM_DELAY;
		rule.delay_ns = 1 + random_below(40) * STEP;
		if (random_below(2))
			assert_int_equal(polycm_sim_fault_add(&rule, &end->held[i]), 0);
	}
}

static void look(struct end *end, struct rdma_event_channel *channel, unsigned int step)
{
	struct rdma_cm_event *event;

	while (!rdma_get_cm_event(channel, &event)) {
		if (event->event == RDMA_CM_EVENT_DISCONNECTED) {
			assert_int_equal(end->disconnected, 0);
			end->disconnected = step;
			end->status = event->status;
		} else {
			assert_int_equal(event->event, RDMA_CM_EVENT_TIMEWAIT_EXIT);
			assert_int_equal(end->timewait, 0);
			end->timewait = step;
			/* Of one id this is the only order that there is. */
			assert_int_not_equal(end->disconnected, 0);
		}
		rdma_ack_cm_event(event);
	}
	assert_int_equal(errno, EAGAIN);
}

static bool was_held(const struct end *end)
{
	unsigned int hits, all = 0;

	for (unsigned int i = 0; i < ARRAY_LEN(end->held); i++) {
		if (!end->held[i])
			continue;
		assert_int_equal(polycm_sim_fault_hits(end->held[i], &hits), 0);
		all += hits;
	}
	return all != 0;
}

/*
 * Is TIMEWAIT_EXIT at one end before the other's DISCONNECTED?  Then its answer was
 * lost or late, or it has given up waiting for one: an id answers no DREQ after its
 * TIMEWAIT.
 */
static bool exits_first(const struct end *first, const struct end *other)
{
	if (!first->timewait || (other->disconnected && other->disconnected <= first->timewait))
		return false;
	assert_true(was_held(first) || first->status == -ETIMEDOUT);
	return true;
}

static unsigned int play_random_ends(enum transport transport, unsigned int seed)
{
	struct end ends[2];
	struct pair pair;
	unsigned int odd;

	random_state = seed;
	pair_open(&pair, transport, RDMA_PS_TCP);
	pair_connect(&pair);
	draw_end(&ends[0], pair.client_node);
	draw_end(&ends[1], pair.server_node);
	for (int i = 0; i < 2; i++)
		fcntl(channel_of(&pair, i)->fd, F_SETFL, O_NONBLOCK);
	for (unsigned int step = 1; step < STEPS; step++) {
		for (int i = 0; i < 2; i++) {
			for (unsigned int n = 0; n < CALLS; n++)
				if (ends[i].calls[n] == step) {
					assert_int_equal(rdma_disconnect(end_of(&pair, i)), 0);
					if (!ends[i].first_call)
						ends[i].first_call = step;
				}
			look(&ends[i], channel_of(&pair, i), step);
		}
		assert_int_equal(polycm_sim_advance(STEP), 0);
	}
	for (int i = 0; i < 2; i++)
		if (ends[i].first_call)
			assert_int_not_equal(ends[i].disconnected, 0);
	odd = exits_first(&ends[0], &ends[1]) + exits_first(&ends[1], &ends[0]);
	pair_close(&pair);
	return odd;
}

static void both_ends_at_random(void **state)
{
	unsigned int odd = 0;

	(void)state;
	for (enum transport t = ROCE; t <= IB; t++)
		for (unsigned int seed = 1; seed <= SEEDS; seed++)
			odd += play_random_ends(t, seed);
	print_message("%u of %u with TIMEWAIT_EXIT before the peer's DISCONNECTED\n", odd, 2 * SEEDS);
	assert_int_not_equal(odd, 0);
}

/* Who answered goes through TIMEWAIT, and nobody answers what is asked again then. */
static void a_lost_answer_is_given_once(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		for (int destroyed = 0; destroyed < 2; destroyed++) {
			struct pair pair;
			uint64_t before;

			pair_open(&pair, t, RDMA_PS_TCP);
			pair_connect(&pair);
			assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(
				.action = POLYCM_SIM_LOSE, .message = "DREP", .nth = 1), NULL), 0);
			before = pair_now();
			assert_int_equal(rdma_disconnect(pair.client), 0);
			pair_take(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
			assert_int_equal(rdma_disconnect(pair.server), 0);
			pair_take(pair.server_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
			pair_none(pair.client_channel);
			if (destroyed) {
				/* For an id that is gone its host answers. */
				rdma_destroy_qp(pair.server);
				assert_int_equal(rdma_destroy_id(pair.server), 0);
				pair.server = NULL;
			}
			pair_take(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED,
				  destroyed ? 0 : -ETIMEDOUT);
			if (!destroyed)
				assert_elapsed(before, SECONDS(t == ROCE ? 73.728 : 98.304));
			pair_close(&pair);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(either_side_begins),
		cmocka_unit_test(iwarp_ends_at_once),
		cmocka_unit_test(both_begin),
		cmocka_unit_test(both_begin_on_iwarp),
		cmocka_unit_test(the_peers_program_does_not_answer),
		cmocka_unit_test(destroying_a_connected_id),
		cmocka_unit_test(destroying_answers),
		cmocka_unit_test(disconnecting_before_the_peer_is_established),
		cmocka_unit_test(more_than_once),
		cmocka_unit_test(datagrams_have_nothing_to_disconnect),
		cmocka_unit_test(failed_attempts_have_no_timewait),
		cmocka_unit_test(a_withdrawn_reply_has_no_timewait),
		cmocka_unit_test(both_ends_at_random),
		cmocka_unit_test(a_lost_answer_is_given_once),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
