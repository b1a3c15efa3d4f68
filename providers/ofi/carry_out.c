/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/carry_out.c - packets to a carrier. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "carry_internal.h"
#include "route.h"
#include "stream.h"

#define PROBE_EVERY SIM_MS(5)		/* until one has left */
#define STUCK_FOR SIM_MS(2000)		/* nothing left, and something waits */
#define STUCK_AGAIN SIM_MS(500)		/* and the peer stands still: look again */

void ofi_carry_take_window(struct ofi_carry *c, uint16_t window)
{
	uint16_t more = (uint16_t)(window - (uint16_t)c->limit);

	/* An older one says less. */
	if (more <= OFI_CARRIER_BUFFERS)
		c->limit += more;
}

/* A message of the body of a PACKET frame; parts 0 has at least the whole header.  NULL: a probe. */
static int transmit(struct ofi_carry *c, const struct iovec *parts, unsigned int num, size_t len)
{
	struct ofi_carried carried = {
		.token = c->their_token,
		.sequence = parts ? c->sent + 1 : 0,
		.packet.type = SIM_PACKET_RC,
		.window = (uint16_t)c->granted,
	};
	uint8_t header[OFI_CARRIED_HEADER];
	struct iovec all[OFI_PARTS + 1];
	int r;

	all[0] = (struct iovec){ header, sizeof(header) };
	if (parts) {
		if (c->sent >= c->limit)
			return -EAGAIN;
		(void)ofi_packet_decode(parts[0].iov_base, parts[0].iov_len, &carried.packet);
		memcpy(all + 1, parts, num * sizeof(*parts));
		all[1].iov_base = (uint8_t *)all[1].iov_base + OFI_PACKET_HEADER;
		all[1].iov_len -= OFI_PACKET_HEADER;
		len -= OFI_PACKET_HEADER;
	}
	ofi_carried_encode(&carried, header);
	r = ofi_own.ops->send(ofi_own.carrier, c->to, all, num + 1, sizeof(header) + len);
	if (r || !parts)
		return r;
	c->sent++;
	c->told = c->granted;
	return 0;
}

void ofi_carry_to_stream(struct ofi_carry *c)
{
	struct ofi_queue waiting = c->waiting;
	struct ofi_waiting *first;

	c->on = false;
	ofi_own.num_waiting -= c->num_waiting;
	c->num_waiting = 0;
	c->waiting = (struct ofi_queue){ 0 };
	while ((first = ofi_queue_take(&waiting))) {
		(void)ofi_send_to(c->peer, first->type, &(struct iovec){ first->bytes, first->len }, 1,
				  first->len);
		ofi_waiting_free(first);
	}
}

void ofi_carry_remove_to(struct ofi_carry *c)
{
	if (c->to && ofi_own.ops)
		ofi_own.ops->peer_remove(ofi_own.carrier, c->to);
	c->to = NULL;
	c->their_token = 0;
	c->probe_until = 0;
}

/* Send what waits, as far as it goes. */
void ofi_carry_push(struct ofi_carry *c)
{
	struct ofi_waiting *first;
	int r = 0;

	while (c->on && (first = c->waiting.first)) {
		r = transmit(c, &(struct iovec){ first->bytes, first->len }, 1, first->len);
		if (r)
			break;
		c->moved = sim_now();
		c->num_waiting--;
		ofi_own.num_waiting--;
		ofi_waiting_free(ofi_queue_take(&c->waiting));
	}
	if (r && r != -EAGAIN)
		ofi_carry_lose(c, strerror(-r), true);
}

void ofi_carry_probe(struct ofi_carry *c)
{
	int r = transmit(c, NULL, 0, 0);

	if (r && r != -EAGAIN)
		ofi_carry_lose(c, strerror(-r), true);
	/* It may have gone, and it may come again: HEARD is said twice then. */
	else if (r)
		sim_timer_arm(&c->timer, sim_now() + PROBE_EVERY);
	else
		sim_timer_arm(&c->timer, c->probe_until);
}

void ofi_carry_timed(struct sim_timer *timer)
{
	struct ofi_carry *c = sim_container(timer, struct ofi_carry, timer);
	uint64_t now = sim_now();

	if (c->probe_until) {
		if (now < c->probe_until)
			ofi_carry_probe(c);
		else
			ofi_carry_lose(c, "what is sent over it does not arrive", true);
	} else if (c->num_waiting) {
		ofi_carry_push(c);
		if (!c->num_waiting)
			return;
		if (now < c->moved + STUCK_FOR)
			sim_timer_arm(&c->timer, c->moved + STUCK_FOR);
		else if (ofi_peer_stands_still(c->peer->number))
			sim_timer_arm(&c->timer, now + STUCK_AGAIN);
		else if (c->num_waiting)	/* else the session was given up just now */
			ofi_carry_lose(c, "it takes no more", true);
	}
}

bool ofi_carry_send(struct ofi_peer *peer, enum sim_packet_type type, const struct iovec *parts,
		    unsigned int num, size_t len, int *ret)
{
	struct ofi_carry *c = peer->carry;
	int r = -EAGAIN;

	if (!c || !c->on)
		return false;
	if (type != SIM_PACKET_RC && type != SIM_PACKET_UD) {
		if (c->sent + c->num_waiting > c->before_said) {
			c->before_said = c->sent + c->num_waiting;
			(void)ofi_carry_say(c, OFI_CARRIER_BEFORE, c->before_said);
		}
		return false;
	}
	*ret = 0;
	if (!c->num_waiting)
		r = transmit(c, parts, num, len);
	if (!r)
		return true;
	if (r != -EAGAIN) {
		ofi_carry_lose(c, strerror(-r), true);
		return false;
	}
	r = ofi_queue_put(&c->waiting, type, parts, num, len);
	if (!r && !c->num_waiting++) {
		c->moved = sim_now();
		sim_timer_arm(&c->timer, c->moved + STUCK_FOR);
	}
	if (!r)
		ofi_own.num_waiting++;
	*ret = r == -ENOBUFS ? 0 : r;
	return true;
}

