/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/receive.c - frames of an open session: what comes from processes of other machines. */
#include "config.h"

#include <string.h>

#include "providers/soft/link/link_internal.h"
#include "providers/soft/wire/rc.h"
#include "carry.h"
#include "frame.h"
#include "gate.h"
#include "group.h"
#include "owners.h"
#include "route.h"
#include "self.h"
#include "service.h"
#include "session.h"

/* The owner of a service is another process of this host: send the request back. */
static void give_back(struct ofi_peer *peer, unsigned int slot, const uint8_t *body, size_t len)
{
	const struct ofi_returned returned = { .slot = (uint16_t)slot };
	uint8_t owner[OFI_RETURNED_HEADER];
	const struct iovec parts[] = {
		{ owner, sizeof(owner) },
		{ (void *)(uintptr_t)body, len },
	};

	ofi_returned_encode(&returned, owner);
	(void)ofi_session_send(peer->session, OFI_RETURNED, parts, 2, sizeof(owner) + len);
}

/* The body of a PACKET frame, whose numbers get this host's order.  False: it is nonsense. */
static bool read_packet(const struct ofi_peer *peer, uint8_t *body, size_t len,
			struct sim_packet *ret_packet)
{
	struct ofi_packet from;

	if (ofi_packet_decode(body, len, &from) < 0 || from.from || from.to ||
	    (from.type != SIM_PACKET_RC && len > OFI_PACKET_HEADER + SIM_LINK_MAX_PACKET) ||
	    ofi_payload_order(from.type, body + OFI_PACKET_HEADER, len - OFI_PACKET_HEADER) < 0)
		return false;
	*ret_packet = (struct sim_packet){
		.type = from.type,
		.from = peer->host->port,
		.to = &ofi_self.device->ports[0],
		.from_slot = peer->number,
		.number = from.number,
		.data = body + OFI_PACKET_HEADER,
		.len = len - OFI_PACKET_HEADER,
	};
	return true;
}

/* The beginning of a long packet of RC; bytes: its copy.  False: it is something else. */
static bool read_head(const struct ofi_peer *peer, const uint8_t *head, size_t len,
		      uint8_t bytes[static OFI_PLACE_HEAD], struct sim_packet *ret_packet)
{
	_Static_assert(OFI_PLACE_HEAD == OFI_PACKET_HEADER + sizeof(struct rc_header), "all headers");
	memcpy(bytes, head, OFI_PLACE_HEAD);
	if (!read_packet(peer, bytes, OFI_PLACE_HEAD, ret_packet) || ret_packet->type != SIM_PACKET_RC)
		return false;
	ret_packet->placed = len - OFI_PLACE_HEAD;
	return true;
}

unsigned int ofi_route_place(struct ofi_stream *stream, uint8_t type, const uint8_t *head, size_t len,
			     struct iovec to[static OFI_PLACE_MAX])
{
	const struct ofi_session *session = stream->owner;
	const struct ofi_peer *peer = session->peer;
	uint8_t bytes[OFI_PLACE_HEAD];
	struct sim_packet packet;

	/* What waits for a carrier's packets waits as a whole. */
	if (type != OFI_PACKET || ofi_carry_waits(peer) || !read_head(peer, head, len, bytes, &packet))
		return 0;
	return sim_link_place(&packet, to);
}

static void learn_owner(struct ofi_peer *peer, const struct sim_packet *packet)
{
	uint32_t qpns[2];

	memcpy(qpns, packet->data, sizeof(qpns));
	if (!ofi_owner(peer->host, qpns[1]))
		ofi_owner_set(peer->host, qpns[1], peer);
}

void ofi_route_placed(struct ofi_stream *stream, const uint8_t *head, size_t len)
{
	struct ofi_peer *peer = ((struct ofi_session *)stream->owner)->peer;
	uint8_t bytes[OFI_PLACE_HEAD];
	struct sim_packet packet;

	if (!read_head(peer, head, len, bytes, &packet))
		return;
	learn_owner(peer, &packet);
	sim_link_deliver(&packet);
}

static bool take_packet(struct ofi_peer *peer, uint8_t *body, size_t len)
{
	struct sim_packet packet;
	unsigned int owner;

	if (!read_packet(peer, body, len, &packet))
		return false;
	if (packet.type == SIM_PACKET_NOTE) {
		sim_link_tell(&packet);
		return true;
	}
	if (packet.type == SIM_PACKET_RC || packet.type == SIM_PACKET_UD) {
		learn_owner(peer, &packet);
	} else {
		owner = ofi_service_owner(&packet);
		if (owner != sim_self_slot()) {
			give_back(peer, owner, body, len);
			return true;
		}
	}
	sim_link_deliver(&packet);
	if (packet.type == SIM_PACKET_UD)
		ofi_group_hand_on(&packet);
	return true;
}

/* A request that another process of the peer's host is for. */
static bool take_returned(struct ofi_peer *peer, uint8_t *body, size_t len)
{
	struct ofi_packet of;
	struct ofi_returned returned;
	struct ofi_peer *owner;
	uint32_t service;

	if (ofi_returned_decode(body, len, &returned) < 0)
		return false;
	body += OFI_RETURNED_HEADER;
	len -= OFI_RETURNED_HEADER;
	if (ofi_packet_decode(body, len, &of) < 0 || returned.slot == peer->slot ||
	    !ofi_service_of(of.type, body + OFI_PACKET_HEADER, len - OFI_PACKET_HEADER, &service))
		return false;
	owner = ofi_peer_get(peer->host, returned.slot);
	if (!owner)
		return true;	/* it is sent again */
	ofi_service_set(peer->host, service, owner);
	(void)ofi_send_to(owner, of.type, &(struct iovec){ body, len }, 1, len);
	return true;
}

static bool take_find(struct ofi_peer *peer, const uint8_t *body, size_t len)
{
	struct ofi_find find;
	struct ofi_found found;
	uint8_t bytes[OFI_FOUND_SIZE];
	unsigned int slot;

	if (ofi_find_decode(body, len, &find) < 0)
		return false;
	slot = sim_slot_of_qpn(find.qpn);
	found = (struct ofi_found){
		.number = find.number,
		.qpn = find.qpn,
		.slot = slot == SIM_NOBODY ? OFI_NO_SLOT : (uint16_t)slot,
	};
	ofi_found_encode(&found, bytes);
	(void)ofi_session_send(peer->session, OFI_FOUND, &(struct iovec){ bytes, sizeof(bytes) }, 1,
			       sizeof(bytes));
	return true;
}

static bool take_found(struct ofi_peer *peer, const uint8_t *body, size_t len)
{
	struct ofi_found found;

	if (ofi_found_decode(body, len, &found) < 0)
		return false;
	ofi_route_found(peer, &found);
	return true;
}

static bool take_ping(struct ofi_peer *peer, const uint8_t *body, size_t len)
{
	uint8_t bytes[OFI_PONG_SIZE];
	struct ofi_ping ping;

	if (ofi_ping_decode(body, len, &ping) < 0)
		return false;
	ping.answered = sim_now();
	ofi_pong_encode(&ping, bytes);
	(void)ofi_session_send(peer->session, OFI_PONG, &(struct iovec){ bytes, sizeof(bytes) }, 1,
			       sizeof(bytes));
	return true;
}

static bool take_pong(struct ofi_peer *peer, const uint8_t *body, size_t len)
{
	struct ofi_ping pong;

	if (ofi_pong_decode(body, len, &pong) < 0)
		return false;
	if (!ofi_clock_ponged(peer, &pong))
		ofi_peer_ponged(peer);
	return true;
}

static bool take_ports(struct ofi_peer *peer, const uint8_t *body, size_t len)
{
	static struct ofi_ports ports;

	if (ofi_ports_decode(body, len, &ports) < 0)
		return false;
	ofi_host_take_ports(peer->host, &ports);
	return true;
}

bool ofi_route_frame(struct ofi_peer *peer, uint8_t type, uint8_t *body, size_t len)
{
	switch (type) {
	case OFI_PACKET:
		return (peer->carry && ofi_carry_holds(peer, body, len)) || take_packet(peer, body, len);
	case OFI_RETURNED:
		return take_returned(peer, body, len);
	case OFI_FIND:
		return take_find(peer, body, len);
	case OFI_FOUND:
		return take_found(peer, body, len);
	case OFI_PING:
		return take_ping(peer, body, len);
	case OFI_PONG:
		return take_pong(peer, body, len);
	case OFI_PORTS:
		return take_ports(peer, body, len);
	case OFI_CARRIER:
		return ofi_carry_frame(peer, body, len);
	case OFI_BYE:
		return true;
	default:
		return false;
	}
}
