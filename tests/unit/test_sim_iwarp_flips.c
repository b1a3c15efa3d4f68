/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sim_iwarp_flips.c - every frame of MPA, corrupted in each of its bytes
 * in turn, wherever the iWARP engine is: a stream that is of no use is closed,
 * and each attempt ends in exactly one event.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "iwarp_peer.h"

static const uint8_t values[] = { 0xff, 0x01, 0x80, 0x40, 0x20, 0x10, 0x02 };

static unsigned int count_events(struct polycm_id *id)
{
	unsigned int num = 0;

	for (const struct world_event *event = id->first; event; event = event->next)
		num++;
	return num;
}

static void fail_at(enum mpa_type type, unsigned int byte, uint8_t value, const char *what)
{
	fail_msg("%s, byte %u xor 0x%02x: %s", type == MPA_REQUEST ? "request" : "reply", byte,
		 value, what);
}

/* A request is one for the program, or the stream ends, at the latest after 5 s. */
static void check_request(unsigned int byte, uint8_t value)
{
	unsigned int requests = count_events(peer.listener);

	if (requests > 1)
		fail_at(MPA_REQUEST, byte, value, "more than one request");
	world_advance(SIM_MS(5000));
	if (!requests != !!peer.ended)
		fail_at(MPA_REQUEST, byte, value, requests ? "taken, and the stream closed" :
			"neither taken nor closed");
	peer_serve(byte & 1 ? ACCEPT : REJECT);
	world_advance(SIM_MS(1));
}

/* What cannot be a frame, or asks for what siw does not do, is no request. */
static bool is_refused(unsigned int byte, uint8_t value)
{
	if (byte < 16)
		return true;			/* the key */
	if (byte == 16)
		return value & 0xc0;		/* markers, CRC */
	if (byte == 17)
		return (2 ^ value) > 2;		/* the revision */
	return byte < 20;			/* the length: nothing that is left, or too much */
}

static void requests(void **state)
{
	uint8_t frame[MPA_MAX_FRAME];

	(void)state;
	for (unsigned int byte = 0; byte < MPA_HEADER_SIZE + MPA_CONTROL_SIZE + 7; byte++)
		for (size_t v = 0; v < sizeof(values); v++) {
			size_t len;

			peer_set(WAITS_FOR_REQUEST);
			len = peer_make_frame(MPA_REQUEST, 2, frame);
			frame[byte] ^= values[v];
			peer_send(DATA, frame, len);
			if (is_refused(byte, values[v]) == (peer.listener->first != NULL))
				fail_at(MPA_REQUEST, byte, values[v], "taken or not");
			check_request(byte, values[v]);
			peer_leave();
		}
}

static void replies(void **state)
{
	uint8_t frame[MPA_MAX_FRAME];

	(void)state;
	for (unsigned int byte = 0; byte < MPA_HEADER_SIZE + MPA_CONTROL_SIZE + 7; byte++)
		for (size_t v = 0; v < sizeof(values); v++) {
			const struct polycm_event *event;
			size_t len;

			peer_set(WAITS_FOR_REPLY);
			len = peer_make_frame(MPA_REPLY, 2, frame);
			frame[byte] ^= values[v];
			peer_send(DATA, frame, len);
			world_advance(SIM_MS(10000));
			if (count_events(peer.active) != 1)
				fail_at(MPA_REPLY, byte, values[v], "not one event");
			event = &peer.active->first->event;
			if ((event->type == RDMA_CM_EVENT_ESTABLISHED) != !peer.ended)
				fail_at(MPA_REPLY, byte, values[v], "established, or closed");
			if (byte < 20 && is_refused(byte, values[v]) &&
			    event->type == RDMA_CM_EVENT_ESTABLISHED)
				fail_at(MPA_REPLY, byte, values[v], "taken");
			if (byte == 16 && values[v] == 0x20 &&
			    (event->type != RDMA_CM_EVENT_REJECTED || event->status != -ECONNRESET))
				fail_at(MPA_REPLY, byte, values[v], "not rejected");
			peer_leave();
		}
}

/* Where no frame is due, any one ends the stream. */
static void frames_that_are_not_due(void **state)
{
	static const enum place places[] = { HAS_REQUEST, ACCEPTED, CONNECTED };
	uint8_t frame[MPA_MAX_FRAME];

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		for (unsigned int byte = 0; byte < MPA_HEADER_SIZE; byte++)
			for (enum mpa_type type = MPA_REQUEST; type <= MPA_REPLY; type++) {
				size_t len;

				peer_set(places[i]);
				len = peer_make_frame(type, 2, frame);
				frame[byte] ^= 0xff;
				peer_send(DATA, frame, len);
				assert_int_equal(peer.ended, 1);
				assert_null(peer.listener->first);
				peer_leave();
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests),
		cmocka_unit_test(replies),
		cmocka_unit_test(frames_that_are_not_due),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
