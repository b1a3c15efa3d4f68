/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sim_iwarp_hardware.c - iWARP as drivers of hardware do it: the stream's
 * end comes as an event, with statuses other than siw's (surprise 18), and the
 * initiator sends an RTR first.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "providers/iwarp/rules.h"
#include "providers/soft/cm/iwcm.h"
#include "providers/soft/link/link.h"
#include "sim_iwarp.h"

#define HEADER 16u
#define DATA 4u

static struct polycm_transport rules;

static void open_hardware(struct pair *p, uint32_t more_flags)
{
	rules = iwarp_transport;
	rules.flags = (rules.flags & ~POLYCM_T_CONNECT_BLOCKS) | more_flags;
	rules.consumer_reject_status = -ECONNREFUSED;
	rules.refused_status = -ECONNRESET;
	iwarp_open_as(p, &rules);
}

static void surprise_18_nobody_listens(void **state)
{
	struct pair p;

	(void)state;
	open_hardware(&p, 0);
	world_destroy(p.listener);
	p.listener = NULL;
	assert_int_equal(world_connect(p.active, NULL, 0, p.client_qp), 0);
	world_expect(p.active, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
	/* An event, so the attempt was the id's last. */
	assert_int_equal(world_connect(p.active, NULL, 0, p.client_qp), -EINVAL);
	iwarp_close(&p);
}

static void lose(const struct sim_packet *packet)
{
	(void)packet;
}

static void surprise_18_nobody_answers(void **state)
{
	uint64_t start;
	struct pair p;

	(void)state;
	open_hardware(&p, 0);
	sim_lock();
	sim_link_set_handler(SIM_PACKET_STREAM, lose);
	sim_unlock();
	start = world_now();
	assert_int_equal(world_connect(p.active, NULL, 0, p.client_qp), 0);
	assert_int_equal(world_now(), start);
	world_expect(p.active, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_int_equal(world_now() - start, SIM_MS(127000));
	iwarp_close(&p);
}

static void surprise_18_a_reject_is_refused(void **state)
{
	struct pair p;

	(void)state;
	open_hardware(&p, 0);
	iwarp_request(&p);
	assert_int_equal(iwarp_reject(&p, world_data, 4), 0);
	iwarp_check_data(world_expect(p.active, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED), 4);
	iwarp_close(&p);
}

static void connecting_later(void **state)
{
	struct pair p;

	(void)state;
	open_hardware(&p, 0);
	iwarp_establish(&p);
	assert_int_equal(iwarp_disconnect(p.active), 0);
	world_expect(p.active, RDMA_CM_EVENT_DISCONNECTED, 0);
	world_expect(p.child, RDMA_CM_EVENT_DISCONNECTED, 0);
	iwarp_close(&p);

	/* Too long is told at once, and can be done better. */
	open_hardware(&p, 0);
	assert_int_equal(world_connect(p.active, world_data, 252, p.client_qp), -EINVAL);
	iwarp_establish(&p);
	iwarp_close(&p);
}

static void destroying_before_it_is_open(void **state)
{
	struct pair p;

	(void)state;
	open_hardware(&p, 0);
	assert_int_equal(world_connect(p.active, NULL, 0, p.client_qp), 0);
	world_destroy(p.active);
	p.active = NULL;
	world_advance(SIM_MS(200000));
	iwarp_close(&p);
}

static void without_memory(void **state)
{
	struct pair p;

	(void)state;
	for (unsigned int n = 1; n <= 3; n++) {
		open_hardware(&p, 0);
		world.fail_allocation = n;
		assert_int_equal(world_connect(p.active, NULL, 0, p.client_qp), -ENOMEM);
		iwarp_establish(&p);
		iwarp_close(&p);
	}
}

/* --- RTR. --- */

static struct {
	uint8_t data[3][MPA_MAX_FRAME];
	size_t len[3];
	unsigned int num;
} sent;		/* on the stream, by either side */

static bool lose_rtr;

static void record(const struct sim_packet *packet)
{
	if (packet->data[0] == DATA && sent.num < 3) {
		sent.len[sent.num] = packet->len - HEADER;
		memcpy(sent.data[sent.num++], packet->data + HEADER, packet->len - HEADER);
		if (sent.num == 3 && lose_rtr)
			return;
	}
	iw_stream_receive(packet);
}

static void open_recorded(struct pair *p)
{
	memset(&sent, 0, sizeof(sent));
	open_hardware(p, POLYCM_T_PEER_TO_PEER);
	sim_lock();
	sim_link_set_handler(SIM_PACKET_STREAM, record);
	sim_unlock();
}

static struct mpa_frame frame_of(unsigned int n)
{
	struct mpa_frame frame;
	size_t used;

	assert_int_equal(mpa_decode(sent.data[n], sent.len[n], &frame, &used), 0);
	return frame;
}

static void the_initiator_is_first(void **state)
{
	struct pair p;

	(void)state;
	lose_rtr = false;
	open_recorded(&p);
	iwarp_request(&p);
	assert_int_equal(world_accept(p.child, NULL, 0, p.server_qp), 0);
	/* Not yet, as it would be without. */
	assert_null(p.child->first);
	world_expect(p.active, RDMA_CM_EVENT_ESTABLISHED, 0);
	world_expect(p.child, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(sent.num, 3);
	assert_true(frame_of(0).peer_to_peer);
	assert_true(frame_of(0).rtr_rdma_write);
	assert_true(frame_of(0).rtr_rdma_read);
	assert_true(frame_of(1).peer_to_peer);
	assert_true(frame_of(1).rtr_rdma_write);
	assert_false(frame_of(1).rtr_rdma_read);
	/* A tagged DDP segment of an RDMA write without a byte, and a CRC. */
	assert_int_equal(sent.len[2], 2 + 14 + 4);
	assert_int_equal(sent.data[2][1], 14);
	assert_int_equal(sent.data[2][2], 0xc1);
	assert_int_equal(sent.data[2][3], 0x40);
	iwarp_close(&p);
}

static void an_rtr_that_does_not_come(void **state)
{
	struct pair p;

	(void)state;
	lose_rtr = true;
	open_recorded(&p);
	iwarp_request(&p);
	assert_int_equal(world_accept(p.child, NULL, 0, p.server_qp), 0);
	world_expect(p.active, RDMA_CM_EVENT_ESTABLISHED, 0);
	world_none(p.child, SIM_MS(100000));
	assert_int_equal(iwarp_disconnect(p.active), 0);
	world_expect(p.child, RDMA_CM_EVENT_DISCONNECTED, 0);
	lose_rtr = false;
	iwarp_close(&p);
}

static void put_word(uint8_t *at, uint32_t value)
{
	value = htonl(value);
	memcpy(at, &value, sizeof(value));
}

/* Anything else in its place ends the stream. */
static void something_else_first(void **state)
{
	struct pair p;

	(void)state;
	for (unsigned int at = 0; at < 21; at++) {
		uint8_t segment[HEADER + 21] = { DATA, 1 };
		const struct iwcm *cm;

		lose_rtr = true;
		open_recorded(&p);
		iwarp_request(&p);
		assert_int_equal(world_accept(p.child, NULL, 0, p.server_qp), 0);
		world_expect(p.active, RDMA_CM_EVENT_ESTABLISHED, 0);
		world_none(p.child, SIM_MS(1));
		cm = p.child->sim.iw;
		put_word(segment + 4, cm->local_id);
		put_word(segment + 8, cm->peer_id);
		memcpy(segment + HEADER, sent.data[2], 20);
		segment[HEADER + at] ^= 0x10;
		sim_lock();
		assert_int_equal(sim_link_send(&world.client.device->ports[0],
					       &world.server.device->ports[0], 0,
					       SIM_PACKET_STREAM, segment,
					       at < 20 ? HEADER + 20 : HEADER + 21, NULL, 0, 0), 0);
		sim_unlock();
		world_expect(p.child, RDMA_CM_EVENT_DISCONNECTED, 0);
		world_expect(p.active, RDMA_CM_EVENT_DISCONNECTED, 0);
		lose_rtr = false;
		iwarp_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(surprise_18_nobody_listens),
		cmocka_unit_test(surprise_18_nobody_answers),
		cmocka_unit_test(surprise_18_a_reject_is_refused),
		cmocka_unit_test(connecting_later),
		cmocka_unit_test(destroying_before_it_is_open),
		cmocka_unit_test(without_memory),
		cmocka_unit_test(the_initiator_is_first),
		cmocka_unit_test(an_rtr_that_does_not_come),
		cmocka_unit_test(something_else_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
