/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a stream reads: frames of any length, cut anywhere, and long ones whose rest goes straight
 * to a place of the owner's, which may change or vanish meanwhile.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "providers/ofi/incoming.h"
#include "tests/cmocka_all.h"

#define LEN 20000u			/* of the body of a long frame */
#define REST (LEN - OFI_PLACE_HEAD)
#define GAP 100u

static uint8_t place_memory[2][REST + 3 * GAP];

static struct owner {
	unsigned int frames, placed, asked;
	uint8_t type;
	size_t len;
	uint8_t body[LEN];
	/* place(): which memory, in how many parts; how many bytes too few or too many. */
	unsigned int memory, parts;
	long wrong;
	void *elsewhere;
	bool refuses, closed, closes, disagrees;
} owner;

static bool is_closed(void *arg)
{
	return ((struct owner *)arg)->closed;
}

static bool handle(void *arg, uint8_t type, uint8_t *body, size_t len)
{
	struct owner *o = arg;

	o->frames++;
	o->type = type;
	o->len = len;
	assert_in_range(len, 0, LEN);
	memcpy(o->body, body, len);
	o->closed = o->closes;
	return !o->disagrees;
}

static uint8_t byte(size_t i)
{
	return (uint8_t)(i * 7 + i / 256);
}

static unsigned int place(void *arg, uint8_t type, const uint8_t *head, size_t len,
			  struct iovec to[static OFI_PLACE_MAX])
{
	struct owner *o = arg;
	size_t each = REST / (o->parts ? o->parts : 1), left = REST;

	o->asked++;
	assert_int_equal(type, OFI_PACKET);
	assert_int_equal(len, LEN);
	for (size_t i = 0; i < OFI_PLACE_HEAD; i++)
		assert_int_equal(head[i], byte(i));
	if (o->refuses)
		return 0;
	for (unsigned int i = 0; i < o->parts; i++) {
		to[i].iov_base = o->elsewhere ? o->elsewhere
					      : place_memory[o->memory] + i * (each + GAP);
		to[i].iov_len = i + 1 < o->parts ? each : left;
		left -= to[i].iov_len;
	}
	to[0].iov_len += (size_t)o->wrong;
	return o->parts;
}

static void placed(void *arg, const uint8_t *head, size_t len)
{
	struct owner *o = arg;

	assert_int_equal(head[1], byte(1));
	assert_int_equal(len, LEN);
	o->placed++;
	o->closed = o->closes;
}

static const struct ofi_incoming_ops ops = { is_closed, handle, place, placed };
static struct ofi_incoming in;
static int near, far;
static uint8_t stream[3 * (LEN + 8)];	/* what the peer sends */

static int open_pair(void **state)
{
	static const int size = 1 << 20;
	int pair[2];

	(void)state;
	memset(&owner, 0, sizeof(owner));
	memset(place_memory, 0, sizeof(place_memory));
	owner.parts = 3;
	in = (struct ofi_incoming){ .max = UINT32_MAX };
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return -1;
	near = pair[0];
	far = pair[1];
	return setsockopt(far, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

static int close_pair(void **state)
{
	(void)state;
	ofi_incoming_drop(&in);
	close(near);
	close(far);
	return 0;
}

static size_t put_frame(size_t at, uint8_t type, size_t len)
{
	const struct ofi_frame frame = { .len = (uint32_t)len, .type = type };

	ofi_frame_encode(&frame, stream + at);
	for (size_t i = 0; i < len; i++)
		stream[at + OFI_FRAME_HEADER + i] = byte(i);
	return at + OFI_FRAME_HEADER + len;
}

static void give(size_t from, size_t to)
{
	while (from < to) {
		ssize_t n = write(far, stream + from, to - from);

		assert_true(n > 0);
		from += (size_t)n;
	}
}

/* Read all that has come; the error that it ended with. */
static int read_all(void)
{
	enum ofi_incoming_result r = OFI_READ_MORE;
	int error = 0;
	size_t got;

	while (r == OFI_READ_MORE)
		r = ofi_incoming_read(&in, near, &ops, &owner, &got, &error);
	return r == OFI_READ_ENDED ? error : 1;
}

static void assert_in_place(unsigned int memory)
{
	size_t each = REST / owner.parts, i = 0;

	for (unsigned int part = 0; part < owner.parts; part++) {
		const uint8_t *at = place_memory[memory] + part * (each + GAP);
		size_t len = part + 1 < owner.parts ? each : REST - part * each;

		for (size_t n = 0; n < len; n++, i++)
			assert_int_equal(at[n], byte(OFI_PLACE_HEAD + i));
		for (unsigned int n = 0; n < GAP; n++)
			assert_int_equal(at[len + n], 0);
	}
}

static void assert_whole(void)
{
	assert_int_equal(owner.len, LEN);
	for (size_t i = 0; i < LEN; i++)
		assert_int_equal(owner.body[i], byte(i));
}

/* Where a long frame may be cut: around each border, and in the middle. */
static const size_t cuts[] = {
	1, 7, 8, 9, 8 + OFI_PLACE_HEAD - 1, 8 + OFI_PLACE_HEAD, 8 + OFI_PLACE_HEAD + 1, 5000,
	8 + LEN - 1,
};

static void a_long_frame_goes_to_its_place(void **state)
{
	size_t end = put_frame(0, OFI_PACKET, LEN), last = put_frame(end, OFI_BYE, 0);

	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		bool too_early = cuts[i] > 7 && cuts[i] < 8 + OFI_PLACE_HEAD;

		give(0, cuts[i]);
		assert_int_equal(read_all(), 1);
		assert_int_equal(owner.placed + owner.frames, 0);
		give(cuts[i], last);
		assert_int_equal(read_all(), 1);
		/* Without the whole head nobody knows where it goes; all at once there is no need to. */
		assert_int_equal(owner.placed, !too_early && cuts[i] > 8);
		assert_int_equal(owner.frames, 2 - owner.placed);
		assert_int_equal(owner.type, OFI_BYE);
		if (owner.placed)
			assert_in_place(0);
		close_pair(state);
		open_pair(state);
	}
}

/* After a long frame, the next ones are placed from their first byte on. */
static void long_frames_one_after_the_other(void **state)
{
	size_t first = put_frame(0, OFI_PACKET, LEN), second = put_frame(first, OFI_PACKET, LEN);
	size_t third = put_frame(second, OFI_PACKET, LEN);

	(void)state;
	give(0, 5000);
	assert_int_equal(read_all(), 1);
	give(5000, third);
	assert_int_equal(read_all(), 1);
	assert_int_equal(owner.placed, 3);
	assert_int_equal(owner.frames, 0);
	assert_in_place(0);
}

static void a_frame_without_a_place_is_handed_on_whole(void **state)
{
	static const struct { bool refuses; long wrong; } why[] = {
		{ true, 0 }, { false, 1 }, { false, -1 },
	};
	size_t end = put_frame(0, OFI_PACKET, LEN);

	for (size_t i = 0; i < sizeof(why) / sizeof(why[0]); i++) {
		owner.refuses = why[i].refuses;
		owner.wrong = why[i].wrong;
		give(0, 5000);
		assert_int_equal(read_all(), 1);
		give(5000, end);
		assert_int_equal(read_all(), 1);
		assert_int_equal(owner.frames, 1);
		assert_int_equal(owner.placed, 0);
		assert_whole();
		close_pair(state);
		open_pair(state);
	}
}

/* The program takes its memory back: that frame is lost, and nothing is written there. */
static void the_place_may_vanish_or_change(void **state)
{
	size_t end = put_frame(0, OFI_PACKET, LEN), last = put_frame(end, OFI_BYE, 0);

	for (unsigned int change = 0; change < 3; change++) {
		give(0, 5000);
		assert_int_equal(read_all(), 1);
		owner.refuses = change == 0;
		owner.memory = change == 1;
		owner.parts = change == 2 ? 2 : 3;
		memset(place_memory, 0, sizeof(place_memory));
		give(5000, 10000);
		assert_int_equal(read_all(), 1);
		/* It does not come back for this frame. */
		owner.refuses = false;
		owner.memory = 0;
		owner.parts = 3;
		give(10000, last);
		assert_int_equal(read_all(), 1);
		assert_int_equal(owner.placed, 0);
		assert_int_equal(owner.frames, 1);
		assert_int_equal(owner.type, OFI_BYE);
		for (size_t i = 0; i < sizeof(place_memory); i++)
			assert_int_equal((&place_memory[0][0])[i], 0);
		close_pair(state);
		open_pair(state);
	}
}

/* It is still registered, but not mapped. */
static void the_place_may_be_no_memory(void **state)
{
	size_t end = put_frame(0, OFI_PACKET, LEN), last = put_frame(end, OFI_BYE, 0);
	void *memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	owner.elsewhere = memory;
	owner.parts = 1;
	give(0, 5000);
	assert_int_equal(read_all(), 1);
	munmap(memory, LEN);
	give(5000, last);
	assert_int_equal(read_all(), 1);
	assert_int_equal(owner.placed, 0);
	assert_int_equal(owner.frames, 1);
	assert_int_equal(owner.type, OFI_BYE);
}

static void the_owner_may_close_it_or_object(void **state)
{
	size_t end = put_frame(0, OFI_PACKET, LEN), last = put_frame(end, OFI_BYE, 0);

	for (unsigned int i = 0; i < 3; i++) {
		owner.closes = i < 2;
		owner.disagrees = !owner.closes;
		owner.refuses = i > 0;
		give(0, 5000);
		assert_int_equal(read_all(), 1);
		give(5000, last);
		assert_int_equal(read_all(), owner.closes ? 1 : -EBADMSG);
		assert_int_equal(owner.placed, !owner.refuses);
		assert_int_equal(owner.frames, owner.refuses);
		close_pair(state);
		open_pair(state);
	}
}

static void a_frame_may_be_too_long(void **state)
{
	size_t end = put_frame(0, OFI_PACKET, LEN);

	(void)state;
	in.max = LEN - 1;
	give(0, end);
	assert_int_equal(read_all(), -EBADMSG);
	assert_int_equal(owner.frames, 0);
}

static void the_peer_may_close_within_one(void **state)
{
	put_frame(0, OFI_PACKET, LEN);
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		give(0, cuts[i]);
		assert_int_equal(read_all(), 1);
		close(far);
		far = -1;
		assert_int_equal(read_all(), 0);
		assert_int_equal(owner.placed + owner.frames, 0);
		close_pair(state);
		open_pair(state);
	}
}

/* --- Any frames, cut anywhere, with places that come and go. --- */

#define ROUNDS 400
#define FRAMES 12u

static unsigned int seed, next_frame, num_lost;
static size_t lengths[FRAMES];
static uint8_t place_of_frame[LEN];

static uint8_t body_byte(unsigned int frame, size_t i)
{
	return (uint8_t)(frame * 31 + i * 7 + i / 256);
}

static void assert_body(unsigned int frame, const uint8_t *bytes, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		assert_int_equal(bytes[i - from], body_byte(frame, i));
}

/* Frames whose place vanished are lost, and no others. */
static void take_next(size_t len, const uint8_t *head)
{
	while (next_frame < FRAMES && (lengths[next_frame] != len ||
				       (len && head[0] != body_byte(next_frame, 0)))) {
		assert_true(lengths[next_frame] >= 16384);
		num_lost++;
		next_frame++;
	}
	assert_true(next_frame < FRAMES);
}

static bool handle_any(void *arg, uint8_t type, uint8_t *body, size_t len)
{
	(void)arg;
	(void)type;
	take_next(len, body);
	assert_body(next_frame++, body, 0, len);
	return true;
}

static unsigned int place_any(void *arg, uint8_t type, const uint8_t *head, size_t len,
			      struct iovec place_to[static OFI_PLACE_MAX])
{
	size_t rest = len - OFI_PLACE_HEAD, first = rest / 3;

	(void)arg;
	(void)type;
	(void)head;
	if (rand_r(&seed) % 8 == 0)
		return 0;
	place_to[0] = (struct iovec){ place_of_frame, first };
	place_to[1] = (struct iovec){ place_of_frame + first, rest - first };
	return 2;
}

static void placed_any(void *arg, const uint8_t *head, size_t len)
{
	(void)arg;
	take_next(len, head);
	assert_body(next_frame, head, 0, OFI_PLACE_HEAD);
	assert_body(next_frame++, place_of_frame, OFI_PLACE_HEAD, len);
	owner.placed++;
}

static void any_frames(void **state)
{
	static const struct ofi_incoming_ops any = { is_closed, handle_any, place_any, placed_any };
	static uint8_t bytes[FRAMES * (LEN + OFI_FRAME_HEADER)];

	(void)state;
	seed = 7;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		size_t end = 0, at = 0;

		next_frame = num_lost = 0;
		for (unsigned int i = 0; i < FRAMES; i++) {
			size_t len = 16 + (size_t)rand_r(&seed) % 400 + (rand_r(&seed) % 3 ? 16300 : 0);
			const struct ofi_frame frame = { .len = (uint32_t)len, .type = OFI_PACKET };

			lengths[i] = len;
			ofi_frame_encode(&frame, bytes + end);
			for (size_t b = 0; b < len; b++)
				bytes[end + OFI_FRAME_HEADER + b] = body_byte(i, b);
			end += OFI_FRAME_HEADER + len;
		}
		while (at < end) {
			size_t n = (size_t)rand_r(&seed) % (rand_r(&seed) % 2 ? 40000 : 200) + 1, got;
			enum ofi_incoming_result r = OFI_READ_MORE;
			int error;

			n = n < end - at ? n : end - at;
			assert_int_equal(write(far, bytes + at, n), n);
			at += n;
			while (r == OFI_READ_MORE)
				r = ofi_incoming_read(&in, near, &any, &owner, &got, &error);
			assert_int_equal(r, OFI_READ_ALL);
		}
		assert_false(in.inside);
		/* The last ones may have been lost. */
		while (next_frame < FRAMES && lengths[next_frame] >= 16384)
			next_frame++;
		assert_int_equal(next_frame, FRAMES);
	}
	assert_true(owner.placed > ROUNDS);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_pair, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_long_frame_goes_to_its_place),
		TEST(long_frames_one_after_the_other),
		TEST(a_frame_without_a_place_is_handed_on_whole),
		TEST(the_place_may_vanish_or_change),
		TEST(the_place_may_be_no_memory),
		TEST(the_owner_may_close_it_or_object),
		TEST(a_frame_may_be_too_long),
		TEST(the_peer_may_close_within_one),
		TEST(any_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
