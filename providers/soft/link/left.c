/* SPDX-License-Identifier: BSD-2-Clause */
/* link/left.c - see left.h. */
#include "config.h"

#include <string.h>

#include <utlist.h>

#include "providers/soft/faults/fault.h"
#include "providers/soft/shm/segment.h"
#include "block.h"
#include "left.h"
#include "transit.h"

/* A packet that another process has under way to this one. */
struct left {
	struct left *prev, *next;
	struct sim_left about;
	struct sim_packet packet;
	uint8_t data[];
};

static struct left *all_left;		/* in the order in which they were announced */
static uint64_t num_announced;

/* ------------------------------------------------------------------------
 * The sender.
 */

static void tell(const struct sim_frame *frame, unsigned int slot, const struct sim_left *about)
{
	const struct iovec bytes = {
		.iov_base = (void *)(uintptr_t)frame->header, .iov_len = frame->header_len,
	};
	const struct sim_frame told = {
		.from = frame->from,
		.to = frame->to,
		.type = SIM_PACKET_LEFT,
		.header = about,
		.header_len = sizeof(*about),
		.payload = &bytes,
		.payload_parts = 1,
		.payload_len = about->how == SIM_LEFT_NOT ? 0 : bytes.iov_len,
		.number = frame->number,
	};

	/* Without memory it is lost if we end. */
	(void)sim_link_to_process(&told, slot);
}

uint64_t sim_left_announce(const struct sim_frame *frame, unsigned int slot, enum sim_left_how how,
			   uint64_t at, uint64_t wire_length)
{
	const struct sim_left about = {
		.id = num_announced + 1,
		.at = at,
		.wire_length = wire_length,
		.how = how,
		.type = frame->type,
	};

	if (slot == sim_self_slot() || sim_slot_is_remote(slot) || !sim_segment_joined())
		return 0;
	tell(frame, slot, &about);
	return ++num_announced;
}

void sim_left_withdraw(const struct sim_frame *frame, unsigned int slot, uint64_t id)
{
	const struct sim_left about = { .id = id, .how = SIM_LEFT_NOT, .type = frame->type };

	if (id && sim_segment_joined())
		tell(frame, slot, &about);
}

/* ------------------------------------------------------------------------
 * The receiver.
 */

static void forget(struct left *left)
{
	DL_DELETE(all_left, left);
	sim_block_put(left);
}

static void withdraw(unsigned int slot, uint64_t id)
{
	struct left *left;

	DL_FOREACH(all_left, left) {
		if (left->packet.from_slot != slot || left->about.id != id)
			continue;
		forget(left);
		return;
	}
}

/* No link or rule delays a packet longer; the end of its process may wait for it. */
static uint64_t possible(uint64_t at)
{
	const uint64_t now = sim_now();

	return at > now && at - now > SIM_LONGEST ? now + SIM_LONGEST : at;
}

void sim_left_read(const struct sim_packet *packet)
{
	struct sim_left about;
	struct left *left;

	if (packet->len < sizeof(about))
		return;
	memcpy(&about, packet->data, sizeof(about));
	if (about.how == SIM_LEFT_NOT)
		withdraw(packet->from_slot, about.id);
	if (about.how == SIM_LEFT_NOT || about.how > SIM_LEFT_COPY ||
	    about.type > SIM_PACKET_NOTE)
		return;
	left = sim_block_get(sizeof(*left) + packet->len - sizeof(about), about.type);
	if (!left)
		return;
	left->about = about;
	left->about.at = possible(about.at);
	left->packet = *packet;
	left->packet.type = about.type;
	left->packet.data = left->data;
	left->packet.len = packet->len - sizeof(about);
	memcpy(left->data, packet->data + sizeof(about), left->packet.len);
	DL_APPEND(all_left, left);
}

static int earlier(const struct left *one, const struct left *two)
{
	if (one->about.at != two->about.at)
		return one->about.at < two->about.at ? -1 : 1;
	return (one->packet.number > two->packet.number) - (one->packet.number < two->packet.number);
}

bool sim_left_take_over(unsigned int slot, bool at_once)
{
	struct left *left, *next;

	DL_SORT(all_left, earlier);
	DL_FOREACH_SAFE(all_left, left, next) {
		if (left->packet.from_slot != slot)
			continue;
		/* Of the states of its connections, which say how these end. */
		if (at_once && left->packet.type == SIM_PACKET_NOTE)
			sim_link_tell(&left->packet);
		else
			sim_shape_take_over(&left->packet, &left->about);
		forget(left);
	}
	return !at_once && sim_transits_in_order_of(slot);
}

void sim_left_forget(void)
{
	while (all_left)
		forget(all_left);
}
