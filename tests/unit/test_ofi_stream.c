/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams of frames: cut anywhere, closed by either end at any time, by any of the owner's
 * functions, and to a peer that does not read.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ofi_world.h"
#include "providers/ofi/stream.h"

/* What an owner was told, and what it does then. */
static struct owner {
	struct ofi_stream *stream;
	unsigned int frames, connected, ended;
	int error;
	uint8_t type[8], body[8][32];
	size_t len[8];
	struct ofi_stream **closes;	/* in frame() and connected(): this one */
	bool takes, disagrees, acks;
	int taken;
} owner, other;

static uint8_t far_body[OFI_FAR_BODY];

static void close_one(struct ofi_stream **stream)
{
	ofi_stream_close(*stream);
	*stream = NULL;
}

static int put_off(struct owner *o, const char *text);

static bool frame(struct ofi_stream *stream, uint8_t type, uint8_t *body, size_t len)
{
	struct owner *o = stream->owner;

	if (o->acks)
		(void)put_off(o, "ack");

	assert_in_range(o->frames, 0, 7);
	o->type[o->frames] = type;
	o->len[o->frames] = len;
	memcpy(o->body[o->frames++], body, len < 32 ? len : 32);
	if (o->takes) {
		o->taken = ofi_stream_take(stream);
		o->stream = NULL;
	} else if (o->closes) {
		close_one(o->closes);
	}
	return !o->disagrees;
}

static void ended(struct ofi_stream *stream, int error)
{
	struct owner *o = stream->owner;

	o->ended++;
	o->error = error;
	close_one(&o->stream);
}

static void connected(struct ofi_stream *stream)
{
	struct owner *o = stream->owner;

	o->connected++;
	if (o->closes)
		close_one(o->closes);
}

static const struct ofi_stream_ops ops = {
	.connected = connected,
	.frame = frame,
	.ended = ended,
};

static int begin(struct owner *o)
{
	int pair[2];

	memset(o, 0, sizeof(*o));
	ofi_world_pair(pair);
	assert_int_equal(ofi_stream_adopt(pair[0], &ops, o, &o->stream), 0);
	ofi_stream_allow_long(o->stream);
	return pair[1];
}

static int send_bytes(struct owner *o, uint8_t type, const void *bytes, size_t len)
{
	const struct iovec part = { (void *)(uintptr_t)bytes, len };

	return ofi_stream_send(o->stream, type, &part, 1, len);
}

/* ------------------------------------------------------------------------
 * Receiving.
 */

static const uint8_t three[] = {
	8, 0, 0, 0, OFI_PING, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8,
	0, 0, 0, 0, OFI_BYE, 0, 0, 0,
	3, 0, 0, 0, OFI_PROOF, 0, 0, 0, 'a', 'b', 'c',
};

static unsigned int whole_frames(size_t len)
{
	return len < 16 ? 0 : len < 24 ? 1 : len < 35 ? 2 : 3;
}

static void frames_may_be_cut_at_each_byte(void **state)
{
	(void)state;
	for (size_t cut = 0; cut <= sizeof(three); cut++) {
		int far = begin(&owner);

		if (cut)
			ofi_far_write(far, three, cut);
		ofi_world_settle();
		assert_int_equal(owner.frames, whole_frames(cut));
		if (cut < sizeof(three))
			ofi_far_write(far, three + cut, sizeof(three) - cut);
		ofi_world_settle();
		assert_int_equal(owner.frames, 3);
		assert_int_equal(owner.type[0], OFI_PING);
		assert_int_equal(owner.len[0], 8);
		assert_memory_equal(owner.body[0], three + 8, 8);
		assert_int_equal(owner.type[1], OFI_BYE);
		assert_int_equal(owner.len[1], 0);
		assert_int_equal(owner.type[2], OFI_PROOF);
		assert_memory_equal(owner.body[2], "abc", 3);
		assert_int_equal(owner.ended, 0);
		close_one(&owner.stream);
		close(far);
	}
}

static void frames_may_come_byte_by_byte(void **state)
{
	int far = begin(&owner);

	(void)state;
	for (size_t i = 0; i < sizeof(three); i++) {
		ofi_far_write(far, three + i, 1);
		ofi_world_settle();
		assert_int_equal(owner.frames, whole_frames(i + 1));
	}
	close_one(&owner.stream);
	close(far);
}

static void the_peer_may_close_at_each_byte(void **state)
{
	(void)state;
	for (size_t cut = 0; cut <= sizeof(three); cut++) {
		int far = begin(&owner);

		if (cut)
			ofi_far_write(far, three, cut);
		close(far);
		ofi_world_settle();
		assert_int_equal(owner.frames, whole_frames(cut));
		assert_int_equal(owner.ended, 1);
		assert_int_equal(owner.error, 0);
		assert_null(owner.stream);
	}
}

static void what_is_no_frame_ends_the_stream(void **state)
{
	static const uint8_t bad[][8] = {
		{ 0, 0, 0, 0, 0 },
		{ 0, 0, 0, 0, OFI_FRAME_TYPES },
		{ 0, 0, 0, 0, 255 },
		{ 0, 0, 0, 0, OFI_BYE, 1 },
		{ 0, 0, 0, 0, OFI_BYE, 0, 1 },
		{ 0, 0, 0, 0, OFI_BYE, 0, 0, 1 },
		{ 1, 0, 0, 0, OFI_BYE },
		{ 9, 0, 0, 0, OFI_PING },
		{ 1, 0x20, 0, 0, OFI_HELLO },
		{ 0xff, 0xff, 0xff, 0xff, OFI_PACKET },
		"GET / HT",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int far = begin(&owner);

		ofi_far_write(far, three, 16);
		ofi_far_write(far, bad[i], 8);
		ofi_far_write(far, three, 16);
		ofi_world_settle();
		assert_int_equal(owner.frames, 1);
		assert_int_equal(owner.ended, 1);
		assert_int_equal(owner.error, -EBADMSG);
		close(far);
	}
}

static void what_the_owner_does_not_take_ends_the_stream(void **state)
{
	int far = begin(&owner);

	(void)state;
	owner.disagrees = true;
	ofi_far_write(far, three, sizeof(three));
	ofi_world_settle();
	assert_int_equal(owner.frames, 1);
	assert_int_equal(owner.ended, 1);
	assert_int_equal(owner.error, -EBADMSG);
	close(far);
}

/* The longest frame, and more bytes than one turn reads. */
static void long_frames_and_many(void **state)
{
	static uint8_t body[OFI_RETURNED_MAX];
	static const int size = 1 << 20;
	int far = begin(&owner);

	(void)state;
	assert_int_equal(setsockopt(far, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	for (size_t i = 0; i < sizeof(body); i++)
		body[i] = (uint8_t)(i * 7);
	for (unsigned int i = 0; i < 6; i++)
		ofi_far_send(far, OFI_RETURNED, body, sizeof(body));
	ofi_world_settle();
	assert_int_equal(owner.frames, 6);
	for (unsigned int i = 0; i < 6; i++) {
		assert_int_equal(owner.len[i], sizeof(body));
		assert_memory_equal(owner.body[i], body, 32);
	}
	close_one(&owner.stream);
	close(far);
}

/* ------------------------------------------------------------------------
 * The owner closes it.
 */

static void closed_while_a_frame_is_handled(void **state)
{
	int far = begin(&owner);

	(void)state;
	owner.closes = &owner.stream;
	ofi_far_write(far, three, sizeof(three));
	ofi_world_settle();
	assert_int_equal(owner.frames, 1);
	assert_int_equal(owner.ended, 0);
	close(far);
}

/* What it says then is of no interest. */
static void closed_and_not_taken(void **state)
{
	int far = begin(&owner);

	(void)state;
	owner.closes = &owner.stream;
	owner.disagrees = true;
	ofi_far_write(far, three, sizeof(three));
	ofi_world_settle();
	assert_int_equal(owner.frames, 1);
	assert_int_equal(owner.ended, 0);
	close(far);
}

/* Both are ready in one turn: the one that comes first closes the other. */
static void closed_by_another_ones_frame(void **state)
{
	int far = begin(&owner), far_other = begin(&other);

	(void)state;
	owner.closes = &other.stream;
	other.closes = &owner.stream;
	ofi_far_write(far, three, 16);
	ofi_far_write(far_other, three, 16);
	ofi_world_settle();
	assert_int_equal(owner.frames + other.frames, 1);
	assert_int_equal(owner.ended + other.ended, 0);
	assert_true(!owner.stream != !other.stream);
	close_one(owner.stream ? &owner.stream : &other.stream);
	close(far);
	close(far_other);
}

static void its_descriptor_may_be_taken(void **state)
{
	int far = begin(&owner);
	char byte;

	(void)state;
	owner.takes = true;
	ofi_far_write(far, three, 16);
	ofi_world_settle();
	assert_int_equal(owner.frames, 1);
	ofi_far_write(far, "x", 1);
	ofi_world_settle();
	assert_int_equal(owner.frames, 1);
	assert_int_equal(recv(owner.taken, &byte, 1, MSG_DONTWAIT), 1);
	assert_int_equal(byte, 'x');
	close(owner.taken);
	close(far);
}

static void closed_with_bytes_that_wait(void **state)
{
	int far = begin(&owner);

	(void)state;
	ofi_far_write(far, three, 20);
	ofi_world_settle();
	while (!ofi_stream_waiting(owner.stream))
		assert_int_equal(send_bytes(&owner, OFI_PORTS, far_body, 8192), 0);
	close_one(&owner.stream);
	close(far);
}

/* ------------------------------------------------------------------------
 * Connecting.
 */

static bool is_set(const void *arg)
{
	return *(const unsigned int *)arg;
}

static struct ofi_stream *connect_to(const union sim_sockaddr *addr)
{
	memset(&owner, 0, sizeof(owner));
	assert_int_equal(ofi_stream_connect(&addr->sa, sizeof(addr->in), &ops, &owner, &owner.stream),
			 0);
	return owner.stream;
}

static void what_is_sent_before_it_is_connected_waits(void **state)
{
	union sim_sockaddr addr;
	int listener = ofi_world_listen(&addr), far;
	size_t len;

	(void)state;
	connect_to(&addr);
	assert_int_equal(send_bytes(&owner, OFI_PROOF, "first", 5), 0);
	assert_true(ofi_stream_flush(owner.stream));
	assert_int_equal(send_bytes(&owner, OFI_PROOF, "second", 6), 0);
	assert_int_equal(ofi_stream_waiting(owner.stream), 27);
	far = ofi_world_accept(listener);
	ofi_world_until(is_set, &owner.connected);
	assert_int_equal(ofi_stream_waiting(owner.stream), 0);
	assert_int_equal(ofi_far_receive(far, far_body, &len), OFI_PROOF);
	assert_memory_equal(far_body, "first", 5);
	assert_int_equal(ofi_far_receive(far, far_body, &len), OFI_PROOF);
	assert_memory_equal(far_body, "second", 6);
	close_one(&owner.stream);
	assert_int_equal(ofi_far_receive(far, far_body, &len), 0);
	close(far);
	close(listener);
}

static void closed_when_it_is_connected(void **state)
{
	union sim_sockaddr addr;
	int listener = ofi_world_listen(&addr);

	(void)state;
	connect_to(&addr);
	owner.closes = &owner.stream;
	ofi_world_until(is_set, &owner.connected);
	assert_null(owner.stream);
	close(listener);
}

static void nobody_listens(void **state)
{
	union sim_sockaddr addr;
	int r;

	(void)state;
	close(ofi_world_listen(&addr));
	memset(&owner, 0, sizeof(owner));
	r = ofi_stream_connect(&addr.sa, sizeof(addr.in), &ops, &owner, &owner.stream);
	if (!r) {
		ofi_world_until(is_set, &owner.ended);
		r = owner.error;
	}
	assert_int_equal(r, -ECONNREFUSED);
	assert_int_equal(owner.connected, 0);
}

static void no_such_family(void **state)
{
	const struct sockaddr addr = { .sa_family = 250 };

	(void)state;
	assert_int_equal(ofi_stream_connect(&addr, sizeof(addr), &ops, &owner, &owner.stream),
			 -EAFNOSUPPORT);
}

/* ------------------------------------------------------------------------
 * Sending.
 */

static void fill(struct owner *o)
{
	while (!ofi_stream_waiting(o->stream))
		assert_int_equal(send_bytes(o, OFI_PORTS, far_body, 8192), 0);
}

/* Each frame has its number in it. */
static void number(uint8_t *body, uint32_t i)
{
	memcpy(body, &i, sizeof(i));
}

static void what_waits_is_sent_in_order(void **state)
{
	static const int small = 4096;
	static uint8_t body[8192];
	uint32_t sent = 0, received = 0, i;
	int pair[2];
	size_t len;

	(void)state;
	memset(&owner, 0, sizeof(owner));
	ofi_world_pair(pair);
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	assert_int_equal(ofi_stream_adopt(pair[0], &ops, &owner, &owner.stream), 0);
	/* Of all lengths: some share memory, some do not fit into the kernel's at once. */
	for (; sent < 2000; sent++) {
		number(body, sent);
		assert_int_equal(send_bytes(&owner, OFI_PORTS, body, 4 + sent * 37 % 8000), 0);
	}
	assert_true(ofi_stream_waiting(owner.stream) > (1u << 20));
	assert_false(ofi_stream_flush(owner.stream));
	for (; received < sent; received++) {
		assert_int_equal(ofi_far_receive(pair[1], far_body, &len), OFI_PORTS);
		memcpy(&i, far_body, sizeof(i));
		assert_int_equal(i, received);
		assert_int_equal(len, 4 + i * 37 % 8000);
	}
	assert_int_equal(ofi_stream_waiting(owner.stream), 0);
	assert_true(ofi_stream_flush(owner.stream));
	close_one(&owner.stream);
	close(pair[1]);
}

static void in_parts(void **state)
{
	struct iovec parts[OFI_PARTS + 1];
	int far = begin(&owner);
	size_t len;

	(void)state;
	for (unsigned int i = 0; i <= OFI_PARTS; i++)
		parts[i] = (struct iovec){ (void *)(uintptr_t)"xy", i % 3 };
	assert_int_equal(ofi_stream_send(owner.stream, OFI_PORTS, parts, OFI_PARTS, 39), 0);
	assert_int_equal(ofi_far_receive(far, far_body, &len), OFI_PORTS);
	assert_int_equal(len, 39);
	assert_memory_equal(far_body, "xxyxxyxxy", 9);
	assert_int_equal(ofi_stream_send(owner.stream, OFI_BYE, NULL, 0, 0), 0);
	assert_int_equal(ofi_far_receive(far, far_body, &len), OFI_BYE);
	assert_int_equal(ofi_stream_send(owner.stream, OFI_PORTS, parts, OFI_PARTS + 1, 40), -EMSGSIZE);
	assert_int_equal(send_bytes(&owner, OFI_PING, far_body, 9), -EMSGSIZE);
	assert_int_equal(send_bytes(&owner, 0, far_body, 1), -EMSGSIZE);
	close_one(&owner.stream);
	close(far);
}

static int put_off(struct owner *o, const char *text)
{
	const struct iovec part = { (void *)(uintptr_t)text, strlen(text) };

	return ofi_stream_put_off(o->stream, OFI_PROOF, &part, 1, part.iov_len);
}

/* Nobody fetches, and nothing comes: who else would send it? */
static void what_could_be_put_off_for_ever_is_not(void **state)
{
	int far = begin(&owner);

	(void)state;
	ofi_world_pass(SIM_MS(1));
	assert_int_equal(put_off(&owner, "ack"), 0);
	assert_int_equal(recv(far, far_body, 32, MSG_DONTWAIT), 11);
	close_one(&owner.stream);
	close(far);
}

/* A program that polls once, gets a message, and then waits for something else. */
static void one_poll_does_not_put_off_for_ever(void **state)
{
	int far = begin(&owner);

	(void)state;
	ofi_world_pass(SIM_MS(1));
	owner.acks = true;
	ofi_far_write(far, three, 16);
	ofi_io_fetch();
	assert_int_equal(owner.frames, 1);
	ofi_io_idle();
	assert_int_equal(recv(far, far_body, 32, MSG_DONTWAIT), 11);
	close_one(&owner.stream);
	close(far);
}

/* So many polls that the thread relies on the program. */
static void poll_steadily(void)
{
	for (unsigned int i = 0; i < 64; i++)
		ofi_io_fetch();
	ofi_world_pass(SIM_US(150));
	ofi_io_fetch();
}

static void what_is_put_off_goes_with_the_next(void **state)
{
	int far = begin(&owner);

	(void)state;
	ofi_world_pass(SIM_MS(1));
	poll_steadily();
	assert_int_equal(put_off(&owner, "ack"), 0);
	assert_int_equal(put_off(&owner, "ack"), 0);
	assert_int_equal(recv(far, far_body, 32, MSG_DONTWAIT), -1);
	assert_int_equal(send_bytes(&owner, OFI_PROOF, "data", 4), 0);
	assert_int_equal(recv(far, far_body, 64, MSG_DONTWAIT), 34);
	assert_memory_equal(far_body + 30, "data", 4);
	/* Or when the program stops to poll, or closes it. */
	assert_int_equal(put_off(&owner, "ack"), 0);
	ofi_io_idle();
	assert_int_equal(recv(far, far_body, 32, MSG_DONTWAIT), 11);
	poll_steadily();
	assert_int_equal(put_off(&owner, "ack"), 0);
	close_one(&owner.stream);
	assert_int_equal(recv(far, far_body, 32, MSG_DONTWAIT), 11);
	close(far);
}

/* Whenever that was: it waits for as many polls. */
static void what_is_put_off_goes_after_some_polls(void **state)
{
	int far = begin(&owner);
	unsigned int polls, first = 0;

	(void)state;
	ofi_world_pass(SIM_MS(1));
	poll_steadily();
	for (unsigned int phase = 0; phase < 10; phase++) {
		ofi_io_fetch();
		assert_int_equal(put_off(&owner, "ack"), 0);
		for (polls = 0; recv(far, far_body, 32, MSG_DONTWAIT) != 11; polls++)
			ofi_io_fetch();
		if (!phase)
			first = polls;
		assert_in_range(polls, 2, 8);
		assert_int_equal(polls, first);
	}
	close_one(&owner.stream);
	close(far);
}

static void the_peer_is_gone(void **state)
{
	int far = begin(&owner);

	(void)state;
	fill(&owner);
	close(far);
	/* Nothing is told here, and no signal comes. */
	assert_int_equal(send_bytes(&owner, OFI_PING, far_body, 8), 0);
	assert_int_equal(owner.ended, 0);
	ofi_world_settle();
	assert_int_equal(owner.ended, 1);
	assert_null(owner.stream);
}

/* The kernel says it once, and whoever reads after that is told that the peer closed it. */
static void why_it_broke_when_sending_was_told(void **state)
{
	const struct linger reset = { .l_onoff = 1 };
	union sim_sockaddr addr;
	int listener = ofi_world_listen(&addr), far;

	(void)state;
	connect_to(&addr);
	far = ofi_world_accept(listener);
	ofi_world_until(is_set, &owner.connected);
	assert_int_equal(setsockopt(far, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
	close(far);
	assert_int_equal(send_bytes(&owner, OFI_PING, far_body, 8), 0);
	ofi_world_settle();
	assert_int_equal(owner.ended, 1);
	assert_int_equal(owner.error, -ECONNRESET);
	close(listener);
}

/* Who asks much and takes no answer must not use up our memory. */
static void a_peer_that_never_reads(void **state)
{
	unsigned int sent = 0;
	int far = begin(&owner), r;

	(void)state;
	do
		r = send_bytes(&owner, OFI_PONG, far_body, 16);
	while (!r && ++sent < (8u << 20));
	assert_int_equal(r, -ENOBUFS);
	assert_true(sent > (64u << 20) / 24);
	assert_int_equal(ofi_stream_waiting(owner.stream), 0);
	assert_int_equal(owner.ended, 0);
	assert_int_equal(send_bytes(&owner, OFI_PONG, far_body, 16), -ENOBUFS);
	ofi_world_settle();
	assert_int_equal(owner.ended, 1);
	assert_int_equal(owner.error, -ENOBUFS);
	close(far);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OFI_WORLD(frames_may_be_cut_at_each_byte),
		OFI_WORLD(frames_may_come_byte_by_byte),
		OFI_WORLD(the_peer_may_close_at_each_byte),
		OFI_WORLD(what_is_no_frame_ends_the_stream),
		OFI_WORLD(what_the_owner_does_not_take_ends_the_stream),
		OFI_WORLD(long_frames_and_many),
		OFI_WORLD(closed_while_a_frame_is_handled),
		OFI_WORLD(closed_and_not_taken),
		OFI_WORLD(closed_by_another_ones_frame),
		OFI_WORLD(its_descriptor_may_be_taken),
		OFI_WORLD(closed_with_bytes_that_wait),
		OFI_WORLD(what_is_sent_before_it_is_connected_waits),
		OFI_WORLD(closed_when_it_is_connected),
		OFI_WORLD(nobody_listens),
		OFI_WORLD(no_such_family),
		OFI_WORLD(what_waits_is_sent_in_order),
		OFI_WORLD(in_parts),
		OFI_WORLD(what_could_be_put_off_for_ever_is_not),
		OFI_WORLD(one_poll_does_not_put_off_for_ever),
		OFI_WORLD(what_is_put_off_goes_with_the_next),
		OFI_WORLD(what_is_put_off_goes_after_some_polls),
		OFI_WORLD(the_peer_is_gone),
		OFI_WORLD(why_it_broke_when_sending_was_told),
		OFI_WORLD(a_peer_that_never_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
