/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sim_stream.c - the stream under an iWARP connection against a peer of
 * our own making: broken segments, broken frames, old revisions, silence.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "providers/soft/cm/iwcm.h"
#include "providers/soft/link/link.h"
#include "sim_iwarp.h"

enum { SYN = 1, SYN_ACK, RST, DATA, FIN };

#define HEADER 16u
#define SYN_LEN 52u
#define OUR_ID 77u		/* our side of the stream; process 0 */

/* The last segment that came back, and how many did; and the last data. */
static struct {
	unsigned int num;
	uint8_t type;
	uint32_t dst_id, src_id;
	uint8_t data[MPA_MAX_FRAME];
	size_t len;
} back;

static uint32_t word(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return ntohl(value);
}

static void put_word(uint8_t *at, uint32_t value)
{
	value = htonl(value);
	memcpy(at, &value, sizeof(value));
}

/* Between the link and the engine: what goes to the client is ours. */
static void intercept(const struct sim_packet *packet)
{
	if (packet->to != &world.client.device->ports[0]) {
		iw_stream_receive(packet);
		return;
	}
	assert_true(packet->len >= HEADER);
	back.num++;
	back.type = packet->data[0];
	back.dst_id = word(packet->data + 4);
	back.src_id = word(packet->data + 8);
	if (back.type == DATA) {
		back.len = packet->len - HEADER;
		assert_true(back.len <= sizeof(back.data));
		memcpy(back.data, packet->data + HEADER, back.len);
	} else {
		assert_int_equal(packet->len, HEADER);
	}
}

static struct polycm_id *listener;

/* What has held a stream once keeps room for the next. */
#define TABLE_BLOCKS 1u

static void open_raw(void)
{
	memset(&back, 0, sizeof(back));
	world_open(IWARP);
	listener = world_listener(RDMA_PS_TCP);
	sim_lock();
	sim_link_set_handler(SIM_PACKET_STREAM, intercept);
	sim_unlock();
}

static void close_raw(void)
{
	world_destroy(listener);
	world_close();
}

/* Send to the server and let all of it happen, without a timer of seconds. */
static void send_raw(const void *data, size_t len)
{
	sim_lock();
	assert_int_equal(sim_link_send(&world.client.device->ports[0],
				       &world.server.device->ports[0], 0, SIM_PACKET_STREAM, data,
				       len, NULL, 0, 0), 0);
	sim_unlock();
	world_advance(SIM_MS(1));
}

static void make_syn(uint8_t syn[SYN_LEN])
{
	union sim_sockaddr src = world_address(CLIENT, 40000), dst = world_address(SERVER, PORT);

	memset(syn, 0, SYN_LEN);
	syn[0] = SYN;
	syn[1] = 1;
	syn[2] = 4;
	put_word(syn + 8, OUR_ID);
	put_word(syn + 12, 0x4711);
	memcpy(syn + 16, &src.in.sin_port, 2);
	memcpy(syn + 18, &dst.in.sin_port, 2);
	memcpy(syn + 20, &src.in.sin_addr, 4);
	memcpy(syn + 36, &dst.in.sin_addr, 4);
}

/* Returns the engine's side of the stream. */
static uint32_t open_stream(void)
{
	uint8_t syn[SYN_LEN];

	make_syn(syn);
	send_raw(syn, sizeof(syn));
	assert_int_equal(back.num, 1);
	assert_int_equal(back.type, SYN_ACK);
	assert_int_equal(back.dst_id, OUR_ID);
	return back.src_id;
}

static void send_segment(uint8_t type, uint32_t dst_id, uint32_t src_id, const void *data,
			 size_t len)
{
	uint8_t segment[HEADER + 1024] = { type, 1 };

	assert_true(len <= 1024);
	put_word(segment + 4, dst_id);
	put_word(segment + 8, src_id);
	put_word(segment + 12, 0x4711);
	if (len)
		memcpy(segment + HEADER, data, len);
	send_raw(segment, HEADER + len);
}

static size_t make_request(uint8_t buf[MPA_MAX_FRAME], uint8_t revision)
{
	struct mpa_frame frame = {
		.type = MPA_REQUEST,
		.revision = revision,
		.enhanced = revision == 2,
		.ird = 5,
		.ord = 300,
		.private_data = world_data,
		.private_data_len = 9,
	};
	size_t len;

	assert_int_equal(mpa_encode(&frame, buf, MPA_MAX_FRAME, &len), 0);
	return len;
}

static struct mpa_frame reply(void)
{
	struct mpa_frame frame;
	size_t used;

	assert_int_equal(mpa_decode(back.data, back.len, &frame, &used), 0);
	assert_int_equal(frame.type, MPA_REPLY);
	assert_int_equal(used, back.len);
	return frame;
}

/* --- A peer that behaves. --- */

static void a_request_in_pieces(void **state)
{
	uint8_t request[MPA_MAX_FRAME];
	struct polycm_id *child;
	struct ibv_qp *qp;
	uint32_t id;
	size_t len;

	(void)state;
	open_raw();
	qp = world_qp(&world.server);
	id = open_stream();
	len = make_request(request, 2);
	for (size_t i = 0; i < len; i++) {
		assert_null(listener->first);
		send_segment(DATA, id, OUR_ID, request + i, 1);
	}
	child = world_request(listener);
	iwarp_check_data(&listener->taken->event, 9);
	assert_int_equal(listener->taken->event.param.conn.initiator_depth, 5);
	/* Not more than the device takes. */
	assert_int_equal(listener->taken->event.param.conn.responder_resources, 128);

	assert_int_equal(world_accept(child, world_data, 3, qp), 0);
	world_advance(SIM_MS(1));
	assert_int_equal(reply().revision, 2);
	assert_true(reply().enhanced);
	assert_false(reply().reject);
	assert_int_equal(reply().ird, 128);
	assert_int_equal(reply().ord, 3);
	assert_int_equal(reply().private_data_len, 3);
	send_segment(FIN, id, OUR_ID, NULL, 0);
	world_expect(child, RDMA_CM_EVENT_ESTABLISHED, 0);
	world_expect(child, RDMA_CM_EVENT_DISCONNECTED, 0);
	world_destroy(child);
	world_destroy_qp(qp);
	close_raw();
}

/* Revision 1 negotiates no depths: they read 0, and ours stay as they are. */
static void an_old_peer(void **state)
{
	uint8_t request[MPA_MAX_FRAME];
	const struct rdma_conn_param *seen;
	struct polycm_id *child;
	struct ibv_qp *qp;
	uint32_t id;

	(void)state;
	open_raw();
	qp = world_qp(&world.server);
	id = open_stream();
	send_segment(DATA, id, OUR_ID, request, make_request(request, 1));
	child = world_request(listener);
	iwarp_check_data(&listener->taken->event, 9);
	assert_int_equal(listener->taken->event.param.conn.initiator_depth, 0);
	assert_int_equal(listener->taken->event.param.conn.responder_resources, 0);
	assert_int_equal(world_accept(child, NULL, 0, qp), 0);
	seen = &world_expect(child, RDMA_CM_EVENT_ESTABLISHED, 0)->param.conn;
	assert_int_equal(seen->initiator_depth, 4);
	assert_int_equal(seen->responder_resources, 3);
	world_advance(SIM_MS(1));
	assert_int_equal(reply().revision, 1);
	assert_false(reply().enhanced);
	assert_int_equal(reply().private_data_len, 0);
	world_destroy(child);
	world_destroy_qp(qp);
	close_raw();
}

/* --- A peer that does not. --- */

static void a_missing_request(void **state)
{
	size_t before;

	(void)state;
	open_raw();
	before = world.allocated;
	open_stream();
	assert_true(world.allocated > before + TABLE_BLOCKS);
	world_advance(SIM_MS(4990));
	assert_int_equal(back.type, SYN_ACK);
	world_advance(SIM_MS(11));
	assert_int_equal(back.type, FIN);
	assert_int_equal(back.num, 2);
	assert_int_equal(world.allocated, before + TABLE_BLOCKS);
	assert_null(listener->first);
	close_raw();
}

static void broken_requests(void **state)
{
	static const struct {
		const char *what;
		size_t at;
		uint8_t value;
		bool answered;		/* with a reject; otherwise the stream just ends */
	} cases[] = {
		{ "key", 3, 'x', false },
		{ "a reply's key", 9, 'p', false },
		{ "markers", 16, 0x80 | 0x10, true },
		{ "CRC", 16, 0x40 | 0x10, true },
		{ "revision 3", 17, 3, false },
		{ "length over the limit", 18, 0x7f, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t request[MPA_MAX_FRAME];
		size_t before, len;
		uint32_t id;

		open_raw();
		before = world.allocated;
		id = open_stream();
		len = make_request(request, 2);
		request[cases[i].at] = cases[i].value;
		send_segment(DATA, id, OUR_ID, request, len);
		if (back.num != (cases[i].answered ? 3 : 2))
			fail_msg("%s: %u answers", cases[i].what, back.num);
		assert_int_equal(back.type, FIN);
		if (cases[i].answered)
			assert_true(reply().reject);
		assert_null(listener->first);
		assert_int_equal(world.allocated, before + TABLE_BLOCKS);
		close_raw();
	}
}

/* What comes after the request is not for us. */
static void data_after_the_request(void **state)
{
	uint8_t request[MPA_MAX_FRAME];
	struct polycm_id *child;
	struct ibv_qp *qp;
	uint32_t id;

	(void)state;
	open_raw();
	qp = world_qp(&world.server);
	id = open_stream();
	send_segment(DATA, id, OUR_ID, request, make_request(request, 2));
	child = world_request(listener);
	send_segment(DATA, id, OUR_ID, "more", 4);
	assert_int_equal(back.type, FIN);
	assert_int_equal(world_accept(child, NULL, 0, qp), -ECONNRESET);
	world_destroy(child);
	world_destroy_qp(qp);
	close_raw();
}

static void syns_that_do_not_fit(void **state)
{
	static const struct {
		const char *what;
		size_t at;
		uint8_t value;
		unsigned int answers;
	} cases[] = {
		{ "version", 1, 2, 0 },
		{ "reserved", 3, 1, 0 },
		{ "no IP version", 2, 5, 0 },
		{ "somebody else's id", 8, 0x80, 0 },
		{ "a foreign source", 23, 9, 0 },
		{ "a foreign destination", 39, 9, 0 },
		{ "loopback from elsewhere", 36, 127, 0 },
		{ "a port without listener", 19, 1, 1 },
	};
	uint8_t syn[SYN_LEN];
	size_t before;
	uint32_t id;

	(void)state;
	open_raw();
	before = world.allocated;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		make_syn(syn);
		syn[cases[i].at] = cases[i].value;
		back.num = 0;
		send_raw(syn, sizeof(syn));
		if (back.num != cases[i].answers)
			fail_msg("%s: %u answers", cases[i].what, back.num);
	}
	assert_int_equal(back.type, RST);
	assert_int_equal(back.dst_id, OUR_ID);
	assert_int_equal(world.allocated, before);

	/* Twice the same: one stream, and the answer again, which may have been lost. */
	back.num = 0;
	id = open_stream();
	make_syn(syn);
	send_raw(syn, sizeof(syn));
	assert_int_equal(back.num, 2);
	assert_int_equal(back.type, SYN_ACK);
	assert_int_equal(back.src_id, id);
	close_raw();
}

static void segments_of_no_stream(void **state)
{
	uint8_t request[MPA_MAX_FRAME];
	struct polycm_id *child;
	uint32_t id;

	(void)state;
	open_raw();
	id = open_stream();
	send_segment(DATA, id, OUR_ID, request, make_request(request, 2));
	child = world_request(listener);
	back.num = 0;
	/* Another end, another id: the stream does not mind, and data is reset. */
	send_segment(FIN, id, OUR_ID + 1, NULL, 0);
	send_segment(RST, id + 1, OUR_ID, NULL, 0);
	assert_int_equal(back.num, 0);
	send_segment(DATA, id, OUR_ID + 1, "x", 1);
	send_segment(DATA, id + 1, OUR_ID, "x", 1);
	assert_int_equal(back.num, 2);
	assert_int_equal(back.type, RST);
	send_segment(SYN_ACK, id, OUR_ID + 1, NULL, 0);
	assert_int_equal(back.num, 3);
	assert_int_equal(back.type, RST);
	assert_int_equal(iwarp_reject(&(struct pair){ .child = child }, NULL, 0), 0);
	world_advance(SIM_MS(1));
	assert_int_equal(back.num, 5);		/* the reply, the end */
	world_destroy(child);
	close_raw();
}

/* Random changes of a whole exchange: nothing breaks, and nothing stays. */
static void random_segments(void **state)
{
	uint8_t segment[HEADER + MPA_MAX_FRAME + 64];
	uint64_t seed = 1;

	(void)state;
	open_raw();
	for (unsigned int round = 0; round < 20000; round++) {
		size_t len;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		memset(segment, 0, sizeof(segment));
		if (round % 3 == 0) {
			make_syn(segment);
			len = SYN_LEN;
		} else {
			segment[0] = (uint8_t)(1 + (seed >> 60) % 5);
			segment[1] = 1;
			put_word(segment + 4, back.src_id);
			put_word(segment + 8, OUR_ID);
			len = HEADER + make_request(segment + HEADER, (uint8_t)(1 + round % 2));
		}
		if (seed >> 40 & 1)
			segment[(seed >> 8) % len] = (uint8_t)(seed >> 20);
		if (seed >> 41 & 1)
			len = (seed >> 30) % (sizeof(segment) + 1);
		send_raw(segment, len);
		while (listener->first)
			world_destroy(world_request(listener));
	}
	world_advance(SIM_MS(10000));
	assert_int_equal(sim_cma_live_ids(), 1);
	close_raw();
}

/* --- Replies that the active side does not like. --- */

static struct mpa_frame answer;
static bool answer_key_broken;

/* The server is ours: it lets the stream open and answers the request. */
static void play_server(const struct sim_packet *packet)
{
	uint8_t segment[HEADER + MPA_MAX_FRAME] = { 0, 1 };
	size_t len = 0;

	if (packet->to != &world.server.device->ports[0]) {
		iw_stream_receive(packet);
		return;
	}
	if (packet->data[0] != SYN && packet->data[0] != DATA)
		return;
	segment[0] = packet->data[0] == SYN ? SYN_ACK : DATA;
	put_word(segment + 4, word(packet->data + 8));
	put_word(segment + 8, OUR_ID);
	if (segment[0] == DATA) {
		assert_int_equal(mpa_encode(&answer, segment + HEADER, MPA_MAX_FRAME, &len), 0);
		if (answer_key_broken)
			segment[HEADER] ^= 1;
	}
	assert_int_equal(sim_link_send(packet->to, packet->from, 0, SIM_PACKET_STREAM, segment,
				       HEADER + len, NULL, 0, 0), 0);
}

static void replies_are_checked(void **state)
{
	static const struct {
		struct mpa_frame frame;
		bool key_broken;
		enum rdma_cm_event_type type;
		int status;
		uint8_t len;
	} cases[] = {
		{ { MPA_REPLY, 2, .enhanced = true, .ird = 1, .ord = 2 }, false,
		  RDMA_CM_EVENT_ESTABLISHED, 0, 0 },
		{ { MPA_REPLY, 2, .enhanced = true, .ird = 1, .ord = 2 }, true,
		  RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, 0 },
		{ { MPA_REQUEST, 2, .enhanced = true }, false,
		  RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, 0 },
		{ { MPA_REPLY, 2, .enhanced = true, .markers = true }, false,
		  RDMA_CM_EVENT_REJECTED, -ECONNREFUSED, 0 },
		{ { MPA_REPLY, 2, .enhanced = true, .crc = true }, false,
		  RDMA_CM_EVENT_REJECTED, -ECONNREFUSED, 0 },
		{ { MPA_REPLY, 1, .enhanced = false }, false, RDMA_CM_EVENT_REJECTED, -ECONNRESET, 0 },
		{ { MPA_REPLY, 2, .enhanced = true, .ord = 129 }, false,
		  RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, 0 },
		{ { MPA_REPLY, 2, .enhanced = true, .ord = 128, .ird = 128 }, false,
		  RDMA_CM_EVENT_ESTABLISHED, 0, 0 },
		{ { MPA_REPLY, 2, .enhanced = true, .reject = true, .private_data_len = 4 }, false,
		  RDMA_CM_EVENT_REJECTED, -ECONNRESET, 4 },
		{ { MPA_REPLY, 2, .enhanced = true, .private_data_len = 251 }, false,
		  RDMA_CM_EVENT_ESTABLISHED, 0, 251 },
		{ { MPA_REPLY, 2, .enhanced = true, .private_data_len = 256 }, false,
		  RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct polycm_event *event;
		struct pair p;

		iwarp_open(&p);
		answer = cases[i].frame;
		answer.private_data = world_data;
		answer_key_broken = cases[i].key_broken;
		sim_lock();
		sim_link_set_handler(SIM_PACKET_STREAM, play_server);
		sim_unlock();
		assert_int_equal(world_connect(p.active, NULL, 0, p.client_qp), 0);
		event = world_expect(p.active, cases[i].type, cases[i].status);
		iwarp_check_data(event, cases[i].len);
		if (cases[i].type == RDMA_CM_EVENT_ESTABLISHED) {
			assert_int_equal(event->param.conn.initiator_depth, answer.ord);
			assert_int_equal(event->param.conn.responder_resources, answer.ird);
			assert_int_equal(world_qp_state(p.client_qp), IBV_QPS_RTS);
		} else {
			assert_int_equal(world_qp_state(p.client_qp), IBV_QPS_ERR);
		}
		iwarp_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_in_pieces),
		cmocka_unit_test(an_old_peer),
		cmocka_unit_test(a_missing_request),
		cmocka_unit_test(broken_requests),
		cmocka_unit_test(data_after_the_request),
		cmocka_unit_test(syns_that_do_not_fit),
		cmocka_unit_test(segments_of_no_stream),
		cmocka_unit_test(random_segments),
		cmocka_unit_test(replies_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
