/* SPDX-License-Identifier: BSD-2-Clause */
/* iwarp_peer.c - see iwarp_peer.h. */
#include "config.h"

#include <arpa/inet.h>
#include <string.h>

#include "iwarp_peer.h"

#define SYN_LEN 52u
#define OUR_ID 77u		/* our side of the stream; process 0 */
#define OUR_QPN 0x4711u

struct peer peer;

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

static void transmit(const uint8_t *data, size_t len)
{
	assert_int_equal(sim_link_send(peer.ours, peer.engines, 0, SIM_PACKET_STREAM, data, len,
				       NULL, 0, 0), 0);
}

static void send_segment(uint8_t type, const uint8_t *data, size_t len)
{
	uint8_t segment[PEER_HEADER + PEER_MAX_SEGMENT] = { type, 1 };

	put_word(segment + 4, peer.engine_id);
	put_word(segment + 8, OUR_ID);
	put_word(segment + 12, OUR_QPN);
	if (len)
		memcpy(segment + PEER_HEADER, data, len);
	transmit(segment, PEER_HEADER + len);
}

/* Between the link and the engine: one of the ports is ours, the other is the engine's. */
static void intercept(const struct sim_packet *packet)
{
	if (packet->to != peer.ours) {
		iw_stream_receive(packet);
		return;
	}
	if (packet->data[0] == SYN) {
		peer.engine_id = word(packet->data + 8);
		send_segment(SYN_ACK, NULL, 0);
	} else if (packet->data[0] == SYN_ACK) {
		peer.engine_id = word(packet->data + 8);
	} else if (packet->data[0] == FIN || packet->data[0] == RST) {
		peer.ended++;
	} else if (packet->data[0] == DATA && !peer.first_len) {
		peer.first_len = packet->len - PEER_HEADER;
		memcpy(peer.first, packet->data + PEER_HEADER, peer.first_len);
	}
}

void peer_send(uint8_t type, const uint8_t *data, size_t len)
{
	sim_lock();
	send_segment(type, data, len);
	sim_unlock();
	world_advance(SIM_MS(1));
}

void peer_send_raw(const uint8_t *data, size_t len)
{
	sim_lock();
	transmit(data, len);
	sim_unlock();
	world_advance(SIM_MS(1));
}

static void send_syn(void)
{
	union sim_sockaddr src = world_address(CLIENT, 40000), dst = world_address(SERVER, PORT);
	uint8_t syn[SYN_LEN] = { SYN, 1, 4 };

	put_word(syn + 8, OUR_ID);
	put_word(syn + 12, OUR_QPN);
	memcpy(syn + 16, &src.in.sin_port, 2);
	memcpy(syn + 18, &dst.in.sin_port, 2);
	memcpy(syn + 20, &src.in.sin_addr, 4);
	memcpy(syn + 36, &dst.in.sin_addr, 4);
	peer_send_raw(syn, sizeof(syn));
}

size_t peer_make_frame(enum mpa_type type, uint8_t revision, uint8_t buf[MPA_MAX_FRAME])
{
	struct mpa_frame frame = {
		.type = type,
		.revision = revision,
		.enhanced = revision == 2,
		.ird = 4,
		.ord = 3,
		.private_data = world_data,
		.private_data_len = 7,
	};
	size_t len;

	assert_int_equal(mpa_encode(&frame, buf, MPA_MAX_FRAME, &len), 0);
	return len;
}

static void send_frame(enum mpa_type type)
{
	uint8_t buf[MPA_MAX_FRAME];

	peer_send(DATA, buf, peer_make_frame(type, 2, buf));
}

void peer_serve(enum peer_answer answer)
{
	while (peer.listener && peer.listener->first) {
		struct polycm_id *child = world_request(peer.listener);

		if (answer == ACCEPT)
			(void)world_accept(child, world_data, 3, peer.qp);
		else if (answer == REJECT)
			(void)sim_cma_ops.reject(&child->sim, world_data, 3, 0);
		if (peer.child)
			world_destroy(child);
		else
			peer.child = child;
	}
}

void peer_set(enum place place)
{
	bool active = place == WAITS_FOR_REPLY || place == CONNECTED;

	memset(&peer, 0, sizeof(peer));
	world_open(IWARP);
	peer.listener = world_listener(RDMA_PS_TCP);
	peer.qp = world_qp(active ? &world.client : &world.server);
	peer.ours = active ? &world.server.device->ports[0] : &world.client.device->ports[0];
	peer.engines = active ? &world.client.device->ports[0] : &world.server.device->ports[0];
	sim_lock();
	sim_link_set_handler(SIM_PACKET_STREAM, intercept);
	sim_unlock();
	if (active) {
		peer.active = world_resolved(RDMA_PS_TCP);
		assert_int_equal(world_connect(peer.active, world_data, 5, peer.qp), 0);
		world_advance(SIM_MS(1));
		if (place == CONNECTED)
			send_frame(MPA_REPLY);
		return;
	}
	if (place >= WAITS_FOR_REQUEST)
		send_syn();
	if (place >= HAS_REQUEST) {
		send_frame(MPA_REQUEST);
		peer_serve(place == ACCEPTED ? ACCEPT : LEAVE);
		assert_non_null(peer.child);
	}
}

void peer_leave(void)
{
	if (peer.child)
		world_destroy(peer.child);
	if (peer.active)
		world_destroy(peer.active);
	world_destroy(peer.listener);
	world_destroy_qp(peer.qp);
	world_advance(SIM_MS(20000));	/* streams without a request end */
	world_close();
}
