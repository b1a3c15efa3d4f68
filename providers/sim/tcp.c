/* SPDX-License-Identifier: BSD-2-Clause */
/* tcp.c - POLYCM_TCP_EXTENSION: segments of connections between programs, over links and faults. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "providers/soft/link/link.h"
#include "providers/soft/link/shape.h"
#include "providers/soft/wire/tcp.h"
#include "provider.h"

static void (*tell)(const struct polycm_tcp_segment *segment);

static bool read_header(const struct sim_packet *packet, struct tcp_header *ret)
{
	/* Only what this process has sent names connections that it knows. */
	if (packet->len < sizeof(*ret) || packet->from_slot != sim_self_slot())
		return false;
	memcpy(ret, packet->data, sizeof(*ret));
	return ret->kind <= POLYCM_TCP_GIVES_UP;
}

static void receive(const struct sim_packet *packet)
{
	struct tcp_header h;

	if (!tell || !read_header(packet, &h))
		return;
	tell(&(struct polycm_tcp_segment){
		.connection = h.connection, .to_server = h.to_server, .kind = h.kind, .len = h.len,
	});
}

/* A rule resets the connection: who sent this is told, and then the other end. */
static void reject(const struct sim_packet *packet, uint16_t reason)
{
	struct tcp_header h, reset;

	(void)reason;
	if (!read_header(packet, &h))
		return;
	reset = h;
	reset.kind = h.kind == POLYCM_TCP_SYN ? POLYCM_TCP_REFUSED : POLYCM_TCP_RST;
	reset.len = 0;
	reset.to_server = !h.to_server;
	reset.src = h.dst;
	reset.dst = h.src;
	(void)sim_link_send_as(packet->to, packet->from, packet->from_slot, SIM_PACKET_TCP, &reset,
			       sizeof(reset));
	if (h.kind == POLYCM_TCP_SYN)
		return;
	reset = h;
	reset.kind = POLYCM_TCP_RST;
	reset.len = 0;
	receive(&(struct sim_packet){
		.type = SIM_PACKET_TCP, .from = packet->from, .to = packet->to,
		.from_slot = packet->from_slot, .data = (const uint8_t *)&reset, .len = sizeof(reset),
	});
}

static int begin(void (*arrived)(const struct polycm_tcp_segment *segment))
{
	int r;

	sim_lock();
	r = sim_is_up() ? sim_engine_need_thread() : -ENETDOWN;
	if (!r) {
		tell = arrived;
		sim_link_set_handler(SIM_PACKET_TCP, receive);
		sim_link_set_rejecter(SIM_PACKET_TCP, reject);
	}
	sim_unlock();
	return r;
}

/* Of an interface without a device: that of the node's first device. */
static struct sim_port *port_of(const struct sockaddr *address)
{
	struct sim_port *port = sim_port_of_address(address);
	struct sim_node *node = port ? NULL : sim_node_of_address(address);

	return node && node->devices ? &node->devices->ports[0] : port;
}

static int send_segment(const struct polycm_tcp_segment *segment, const struct sockaddr *from,
			const struct sockaddr *to)
{
	const struct tcp_header h = {
		.kind = segment->kind, .connection = segment->connection,
		.to_server = segment->to_server, .len = segment->len,
		.src = sim_addr_copy(from), .dst = sim_addr_copy(to),
	};
	struct sim_port *source, *target;
	int r = -EADDRNOTAVAIL;

	if (segment->kind >= POLYCM_TCP_GIVES_UP)
		return -EINVAL;
	sim_lock();
	source = port_of(from);
	target = port_of(to);
	if (source && target)
		r = sim_link_send(source, target, sim_self_slot(), SIM_PACKET_TCP, &h, sizeof(h), NULL,
				  0, 0);
	sim_unlock();
	return r;
}

const struct polycm_tcp_ops sim_tcp_ops = {
	.size = sizeof(sim_tcp_ops),
	.open = begin,
	.send = send_segment,
};
