/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibcm_flips.c - every message of a connection, corrupted in each of its
 * bytes in turn, to both ends of a connection in each of its states: what no
 * longer decodes or names nobody changes nothing, and anything else is
 * answered as the protocol answers a message with these contents.
 */
#include "config.h"

#include <string.h>

#include "ibcm_exchange.h"
#include "ibcm_scene.h"

#define BYTE_ATTR_ID 16u	/* of the MAD; two of them */
#define BYTE_REMOTE_ID 28u	/* four: the receiver's own communication id */
#define BYTE_DATA 164u		/* private data from there on: it means nothing to the protocol */
#define DATA_STEP 16u		/* so many bytes of that are one that is tried */
#define NO_STATE 0xffu

static struct exchanged messages[EXCHANGE_MAX];
static unsigned int num_messages;

/* What a message did to the two ends. */
struct effect {
	uint8_t client, server;		/* states afterwards; NO_STATE: there is none */
	unsigned int events, requests, answers;
};

static uint8_t state_of(struct polycm_id *id)
{
	return id && world_sim(id)->ib ? world_sim(id)->ib->state : NO_STATE;
}

static unsigned int drain(struct polycm_id *id)
{
	unsigned int num = 0;

	while (id && world_event(id))
		num++;
	return num;
}

static unsigned int drain_requests(struct polycm_id *listener)
{
	const struct world_event *event;
	unsigned int num = 0;

	while (listener && (event = world_event(listener))) {
		world_destroy(event->event.child);
		num++;
	}
	return num;
}

static struct effect inject(struct scene *scene, bool to_server, const uint8_t mad[CM_MAD_SIZE])
{
	struct effect effect;

	world_forget();
	world_inject_bytes(to_server, mad, CM_MAD_SIZE);
	world_run(2 * LATENCY);
	effect.client = state_of(scene->pair.client);
	effect.server = state_of(scene->pair.server);
	effect.events = drain(scene->pair.client) + drain(scene->pair.server);
	effect.answers = 0;
	for (unsigned int i = 0; i < world.num_mads; i++)
		effect.answers += world.mads[i].to_server != to_server;
	effect.requests = drain_requests(scene->pair.listener);
	return effect;
}

static struct scene open_scene(enum situation situation)
{
	struct scene scene;

	world_open_roce(NULL);
	scene = set_scene(situation);
	if (!scene.pair.listener)
		scene.pair.listener = world_listen(RDMA_PS_TCP);
	return scene;
}

static void close_scene(struct scene *scene)
{
	world_run_ms(500);
	clear_scene(scene);
	world_run_ms(1);
	world_close(NULL);
}

static bool may_follow(uint8_t before, uint8_t intact, uint8_t after)
{
	return after == before || after == intact || after == IBCM_IDLE ||
	       after == IBCM_TIMEWAIT ||
	       /* Stale: the QP's number is another connection's now, and the old one ends. */
	       (before == IBCM_ESTABLISHED &&
		(after == IBCM_DREQ_SENT || after == IBCM_DREQ_RCVD));
}

static bool names_receiver(const struct cm_msg *msg)
{
	switch (msg->attr_id) {
	case CM_REQ:
	case CM_SIDR_REQ:
	case CM_SIDR_REP:
		return false;
	case CM_REJ:
		return msg->rej.reason != CM_REJ_TIMEOUT;
	default:
		return true;
	}
}

/* Nothing happens to either end: the MAD is none, or none for them. */
static bool must_be_ignored(const struct exchanged *message, unsigned int byte,
			    const uint8_t mad[CM_MAD_SIZE])
{
	struct cm_msg msg;

	if (cm_decode(mad, CM_MAD_SIZE, &msg) < 0)
		return true;
	return names_receiver(&message->msg) && byte >= BYTE_REMOTE_ID && byte < BYTE_REMOTE_ID + 4;
}

static const uint8_t values[] = { 0xff, 0x01, 0x80, 0x10 };

struct flip {
	enum situation situation;
	const struct exchanged *message;
	bool to_server;
	unsigned int byte;
	uint8_t value;
};

static void check(const struct flip *flip, const uint8_t mad[CM_MAD_SIZE],
		  const struct effect *before, const struct effect *intact,
		  const struct effect *after)
{
	bool other_message = flip->byte == BYTE_ATTR_ID || flip->byte == BYTE_ATTR_ID + 1;
	bool ok;

	if (must_be_ignored(flip->message, flip->byte, mad))
		ok = after->client == before->client && after->server == before->server &&
		     !after->events && !after->requests;
	else
		ok = (other_message ||
		      (may_follow(before->client, intact->client, after->client) &&
		       may_follow(before->server, intact->server, after->server))) &&
		     after->events + after->requests <= 1 && after->answers <= 2;
	for (unsigned int i = 0; !ok && i < world.num_mads; i++)
		print_message("%s to the %s\n", cm_msg_name(world.mads[i].msg.attr_id),
			      world.mads[i].to_server ? "server" : "client");
	if (!ok)
		fail_msg("%s in situation %d, to the %s, byte %u xor 0x%02x: states %u %u -> %u %u "
			 "(intact: %u %u), %u events, %u requests, %u answers",
			 flip->message->name, flip->situation,
			 flip->to_server ? "server" : "client", flip->byte, flip->value,
			 before->client, before->server, after->client, after->server,
			 intact->client, intact->server, after->events, after->requests,
			 after->answers);
}

static bool nothing_happened(const struct effect *after, const struct effect *before)
{
	return after->client == before->client && after->server == before->server &&
	       !after->events && !after->requests && !after->answers;
}

/*
 * Is a byte of a message corrupted with that value?  Each byte is in all
 * situations: with 0xff, and one more that takes its turn.  Of private data some
 * are, and of another message others.
 */
static bool is_tried(const struct flip *flip, size_t value)
{
	unsigned int turn = flip->byte + (unsigned int)(flip->message - messages) * 2 +
			    flip->to_server + flip->situation;

	if (flip->byte >= BYTE_DATA)
		return !value && !(turn % DATA_STEP);
	return !value || value == 1 + turn % (sizeof(values) - 1);
}

/* Corrupt one byte after the other; a new scene only where the old one has changed. */
static void flip_message(struct flip *flip)
{
	struct effect before, intact, after;
	uint8_t mad[CM_MAD_SIZE];
	struct scene scene;

	scene = open_scene(flip->situation);
	before = (struct effect){ .client = state_of(scene.pair.client),
				  .server = state_of(scene.pair.server) };
	cm_encode(&flip->message->msg, mad);
	intact = inject(&scene, flip->to_server, mad);
	close_scene(&scene);
	scene = open_scene(flip->situation);
	for (flip->byte = 0; flip->byte < CM_MAD_SIZE; flip->byte++) {
		for (size_t v = 0; v < sizeof(values); v++) {
			if (!is_tried(flip, v))
				continue;
			flip->value = values[v];
			mad[flip->byte] ^= flip->value;
			after = inject(&scene, flip->to_server, mad);
			check(flip, mad, &before, &intact, &after);
			mad[flip->byte] ^= flip->value;
			if (nothing_happened(&after, &before))
				continue;
			close_scene(&scene);
			scene = open_scene(flip->situation);
		}
	}
	close_scene(&scene);
}

static void test_situation(void **state)
{
	struct flip flip = { .situation = *(const enum situation *)*state };

	for (unsigned int i = 0; i < num_messages; i++)
		for (unsigned int side = 0; side < 2; side++) {
			flip.message = &messages[i];
			flip.to_server = side;
			flip_message(&flip);
		}
}

static int record(void **state)
{
	(void)state;
	num_messages = record_exchange(messages);
	return num_messages ? 0 : -1;
}

int main(void)
{
	static enum situation situations[SITUATIONS] = {
		REQ_SENT, MRA_REQ_RCVD, MRA_REQ_SENT, REP_SENT, MRA_REP_RCVD, MRA_REP_SENT,
		ESTABLISHED_ACTIVE, ESTABLISHED_PASSIVE, DREQ_SENT, DREQ_RCVD, TIMEWAIT, IDLE,
	};
	static const char *const names[SITUATIONS] = {
		"REQ_SENT", "MRA_REQ_RCVD", "MRA_REQ_SENT", "REP_SENT", "MRA_REP_RCVD",
		"MRA_REP_SENT", "ESTABLISHED, active", "ESTABLISHED, passive", "DREQ_SENT",
		"DREQ_RCVD", "TIMEWAIT", "IDLE",
	};
	struct CMUnitTest tests[SITUATIONS];

	for (unsigned int i = 0; i < SITUATIONS; i++)
		tests[i] = (struct CMUnitTest){ .name = names[i], .test_func = test_situation,
						.initial_state = &situations[i] };
	return cmocka_run_group_tests(tests, record, NULL);
}
