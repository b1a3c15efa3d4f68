/* SPDX-License-Identifier: BSD-2-Clause */
/* carry_world.c - see carry_world.h. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "carry_world.h"
#include "providers/ofi/load.h"
#include "providers/ofi/route.h"
#include "providers/ofi/session.h"
#include "tests/unit/sim_fake.h"

/* ------------------------------------------------------------------------
 * What carry.c calls.
 */

struct ofi_carrier_news said[MANY];	/* on the stream */
unsigned int num_said;
uint64_t delivered[MANY];		/* numbers of packets, in order */
unsigned int num_delivered;
uint64_t streamed[MANY];			/* likewise: sent on the stream */
unsigned int num_streamed;
bool nonsense;				/* the next one that is delivered */
struct ofi_peer peer;

int __wrap_ofi_session_send(struct ofi_session *session, uint8_t type, const struct iovec *body,
			    unsigned int parts, size_t len);
int __wrap_ofi_session_send(struct ofi_session *session, uint8_t type, const struct iovec *body,
			    unsigned int parts, size_t len)
{
	(void)session;
	assert_uint_equal(type, OFI_CARRIER);
	assert_uint_equal(parts, 1);
	assert_true(num_said < MANY);
	assert_int_equal(ofi_carrier_decode(body->iov_base, len, &said[num_said++]), 0);
	return 0;
}

static uint64_t number_of(const uint8_t *body, size_t len)
{
	struct ofi_packet packet;

	assert_int_equal(ofi_packet_decode(body, len, &packet), 0);
	return packet.number;
}

bool __wrap_ofi_route_frame(struct ofi_peer *from, uint8_t type, uint8_t *body, size_t len);
bool __wrap_ofi_route_frame(struct ofi_peer *from, uint8_t type, uint8_t *body, size_t len)
{
	assert_ptr_equal(from, &peer);
	assert_uint_equal(type, OFI_PACKET);
	assert_true(num_delivered < MANY);
	delivered[num_delivered++] = number_of(body, len);
	return !nonsense;
}

int __wrap_ofi_send_to(struct ofi_peer *to, enum sim_packet_type type, const struct iovec *parts,
		       unsigned int num, size_t len);
int __wrap_ofi_send_to(struct ofi_peer *to, enum sim_packet_type type, const struct iovec *parts,
		       unsigned int num, size_t len)
{
	int r;

	if (ofi_carry_send(to, type, parts, num, len, &r))
		return r;
	assert_true(num_streamed < MANY);
	streamed[num_streamed++] = number_of(parts[0].iov_base, parts[0].iov_len);
	return 0;
}

unsigned int __wrap_ofi_load_common(const struct ofi_hello *theirs,
				    char ret_providers[OFI_MAX_CARRIERS][OFI_NAME]);
unsigned int __wrap_ofi_load_common(const struct ofi_hello *theirs,
				    char ret_providers[OFI_MAX_CARRIERS][OFI_NAME])
{
	strcpy(ret_providers[0], theirs->carriers[0].provider);
	return theirs->num_carriers;
}

bool stands_still;

bool __wrap_ofi_peer_stands_still(unsigned int number);
bool __wrap_ofi_peer_stands_still(unsigned int number)
{
	assert_uint_equal(number, peer.number);
	return stands_still;
}

/* ------------------------------------------------------------------------
 * The carrier.
 */

struct memory_carrier memory;
static void *memory_owner;

static void memory_close(struct ofi_carrier *carrier)
{
	(void)carrier;
	memory.closed = true;
}

static int memory_peer_add(struct ofi_carrier *carrier, const struct ofi_carrier_name *theirs,
			   void *owner, struct ofi_carrier_peer **ret_peer)
{
	(void)carrier;
	if (!theirs->len)
		return -EINVAL;
	memory.num_peers++;
	memory_owner = owner;
	*ret_peer = (struct ofi_carrier_peer *)&memory;
	return 0;
}

static void memory_peer_remove(struct ofi_carrier *carrier, struct ofi_carrier_peer *gone)
{
	(void)carrier;
	(void)gone;
	memory.num_peers--;
}

static int memory_send(struct ofi_carrier *carrier, struct ofi_carrier_peer *to,
		       const struct iovec *parts, unsigned int num, size_t len)
{
	uint8_t bytes[OFI_CARRIER_MESSAGE];
	size_t at = 0;

	(void)carrier;
	(void)to;
	if (memory.refuse)
		return memory.refuse;
	for (unsigned int i = 0; i < num; at += parts[i++].iov_len)
		memcpy(bytes + at, parts[i].iov_base, parts[i].iov_len);
	assert_uint_equal(at, len);
	assert_true(memory.num_sent < MANY);
	assert_int_equal(ofi_carried_decode(bytes, len, &memory.sent[memory.num_sent++]), 0);
	return 0;
}

static bool memory_progress(struct ofi_carrier *carrier)
{
	unsigned int num = memory.num_arrived;
	int error = memory.fails;

	(void)carrier;
	memory.num_arrived = 0;
	for (unsigned int i = 0; i < num; i++)
		ofi_carry_user.received(memory.arrived[i].bytes, memory.arrived[i].len);
	memory.fails = 0;
	if (error)
		ofi_carry_user.failed(memory_owner, error);
	if (memory.dies)
		ofi_carry_user.failed(NULL, -EIO);
	return num || error;
}

const struct ofi_carrier_ops memory_ops = {
	.version = OFI_CARRIER_VERSION,
	.close = memory_close,
	.peer_add = memory_peer_add,
	.peer_remove = memory_peer_remove,
	.send = memory_send,
	.progress = memory_progress,
};

/* ------------------------------------------------------------------------
 * The peer.
 */

const struct ofi_carrier_name name = {
	.provider = "memory", .protocol = "memory/1", .format = 1, .len = 1,
};

void say(enum ofi_carrier_what what, uint16_t window, uint64_t number)
{
	struct ofi_carrier_news news = { .what = (uint8_t)what, .window = window, .number = number };
	uint8_t bytes[OFI_CARRIER_MAX];
	size_t len;

	if (what == OFI_CARRIER_READY)
		news.name = name;
	len = ofi_carrier_encode(&news, bytes);
	assert_true(ofi_carry_frame(&peer, bytes, len));
}

void arrive(uint64_t token, uint64_t sequence, uint64_t number, uint16_t window)
{
	const struct ofi_carried carried = {
		.token = token, .sequence = sequence, .window = window,
		.packet = { .number = number, .type = SIM_PACKET_RC },
	};

	assert_true(memory.num_arrived < MANY);
	ofi_carried_encode(&carried, memory.arrived[memory.num_arrived].bytes);
	memory.arrived[memory.num_arrived++].len = OFI_CARRIED_HEADER + 64;
}

uint64_t our_token;

void packet(uint64_t sequence)
{
	arrive(our_token, sequence, sequence, (uint16_t)WINDOW);
	(void)ofi_carry_poll();
}

void assert_delivered(unsigned int num)
{
	assert_uint_equal(num_delivered, num);
	for (unsigned int i = 0; i < num; i++)
		assert_uint_equal(delivered[i], i + 1);
}

/* Each that is sent has the next number; returns whether the carrier took it. */
uint64_t last_number;

bool send_type(enum sim_packet_type type)
{
	uint8_t body[OFI_PACKET_HEADER + 256] = { 0 };
	const struct iovec parts[] = { { body, OFI_PACKET_HEADER }, { body + OFI_PACKET_HEADER, 256 } };
	int r = 0;
	bool taken;

	ofi_packet_encode(&(struct ofi_packet){ .number = ++last_number, .type = (uint8_t)type }, body);
	taken = ofi_carry_send(&peer, type, parts, 2, sizeof(body), &r);
	assert_int_equal(r, 0);
	return taken;
}

bool send_one(void)
{
	return send_type(SIM_PACKET_RC);
}

static void meet(void)
{
	static struct ofi_hello hello;

	hello.num_carriers = 1;
	hello.carriers[0] = name;
	ofi_carry_meet(&peer, &hello);
	assert_non_null(peer.carry);
}

void open_memory(void)
{
	ofi_carry_opened(&memory_ops, NULL, &name);
}

const struct ofi_carrier_news *last_said(void)
{
	assert_true(num_said);
	return &said[num_said - 1];
}

void expect_ready(void)
{
	assert_uint_equal(last_said()->what, OFI_CARRIER_READY);
	assert_memory_equal(&last_said()->name, &name, sizeof(name));
	assert_uint_equal(last_said()->window, WINDOW);
	our_token = last_said()->number;
	assert_uint_not_equal(our_token, 0);
}

void change(uint16_t window)
{
	open_memory();
	expect_ready();
	say(OFI_CARRIER_READY, window, THEIR_TOKEN);
	assert_uint_equal(memory.num_sent, 1);
	assert_uint_equal(memory.sent[0].sequence, 0);
	assert_uint_equal(memory.sent[0].token, THEIR_TOKEN);
	assert_false(send_one());
	say(OFI_CARRIER_HEARD, window, 0);
	assert_uint_equal(last_said()->what, OFI_CARRIER_CHANGED);
	say(OFI_CARRIER_CHANGED, window, 0);
	memory.num_sent = 0;
	num_said = 0;
	last_number = 0;
}

static struct sim_node node = { .name = "other" };
static struct sim_remote_host host = { .node = &node };

void pass(uint64_t ns)
{
	sim_unlock();
	assert_int_equal(sim_advance(ns), 0);
	sim_lock();
}

int set_up(void **state)
{
	assert_int_equal(sim_fake_open(state), 0);
	memset(&memory, 0, sizeof(memory));
	num_said = num_delivered = num_streamed = 0;
	nonsense = stands_still = false;
	last_number = 0;
	peer = (struct ofi_peer){ .host = &host, .session = (struct ofi_session *)&host };
	meet();
	return 0;
}

int tear_down(void **state)
{
	memory.num_arrived = 0;
	ofi_carry_drop(&peer);
	assert_null(peer.carry);
	assert_uint_equal(memory.num_peers, 0);
	ofi_carry_closed();
	assert_uint_equal(ofi_own.num_waiting, 0);
	return sim_fake_close(state);
}
