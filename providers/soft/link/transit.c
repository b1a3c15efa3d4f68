/* SPDX-License-Identifier: BSD-2-Clause */
/* link/transit.c - see transit.h. */
#include "config.h"

#include <errno.h>

#include <utlist.h>

#include "providers/soft/shm/segment.h"
#include "block.h"
#include "left.h"
#include "transit.h"

static struct transit *transits;
static unsigned int in_order_of[SIM_MAX_SLOTS];	/* so many are left in order by ended processes */

struct transit *sim_transit_begin(struct sim_flow *flow, const struct sim_frame *frame,
				  unsigned int slot, uint64_t wire_length,
				  void (*fn)(struct sim_timer *timer))
{
	struct transit *transit = sim_block_get(sizeof(*transit) + sim_frame_len(frame), frame->type);

	if (!transit)
		return NULL;
	sim_frame_copy(frame, transit->data);
	transit->packet = (struct sim_packet){
		.type = frame->type,
		.from = frame->from,
		.to = frame->to,
		.from_slot = sim_self_slot(),
		.number = frame->number,
		.data = transit->data,
		.len = sim_frame_len(frame),
	};
	transit->flow = flow;
	transit->wire_length = wire_length;
	transit->slot = slot;
	transit->value = 0;
	transit->sent = sim_now();
	transit->repeats = 0;
	transit->announced = 0;
	transit->in_order = false;
	DL_PREPEND(transits, transit);
	sim_timer_init(&transit->timer, fn);
	return transit;
}

struct sim_frame sim_transit_frame(const struct transit *transit)
{
	return (struct sim_frame){
		.from = transit->packet.from,
		.to = transit->packet.to,
		.type = transit->packet.type,
		.header = transit->data,
		.header_len = transit->packet.len,
		.number = transit->packet.number,
	};
}

static void drop(struct transit *transit)
{
	DL_DELETE(transits, transit);
	if (transit->flow && transit->flow->held == transit)
		transit->flow->held = NULL;
	if (transit->in_order)
		in_order_of[transit->packet.from_slot]--;
}

static void withdraw(struct transit *transit)
{
	const struct sim_frame frame = sim_transit_frame(transit);

	if (transit->announced)
		sim_left_withdraw(&frame, transit->slot, transit->announced);
	transit->announced = 0;
}

void sim_transit_arm(struct transit *transit, uint64_t at, enum sim_left_how how)
{
	const struct sim_frame frame = sim_transit_frame(transit);

	sim_timer_arm(&transit->timer, at);
	withdraw(transit);
	transit->announced = sim_left_announce(&frame, transit->slot, how, at, transit->wire_length);
}

void sim_transit_arm_left(struct transit *transit, unsigned int slot, const struct sim_left *about)
{
	transit->packet.from_slot = slot;
	transit->in_order = about->how == SIM_LEFT_IN_ORDER;
	if (transit->in_order)
		in_order_of[slot]++;
	sim_timer_arm(&transit->timer, about->at);
}

bool sim_transits_in_order_of(unsigned int slot)
{
	return in_order_of[slot];
}

void sim_transit_take_out(struct transit *transit)
{
	drop(transit);
	withdraw(transit);
	/* The end of its process can be handled now. */
	if (transit->in_order && !in_order_of[transit->packet.from_slot] && sim_segment_joined())
		sim_segment_notify(sim_segment_slot(), transit->packet.from_slot);
}

void sim_transit_free(struct transit *transit)
{
	sim_block_put(transit);
}

/* As sim_tcp_catch().  TCP does not repeat what we send in the name of another process. */
static int catch(struct transit *transit)
{
	struct sim_frame frame;

	if (!sim_tcp_may_catch(transit->packet.to) || transit->packet.from_slot != sim_self_slot())
		return 0;
	/* TCP repeats it as it was sent. */
	if (transit->value && !sim_port_carries(transit->packet.to)) {
		transit->data[transit->offset] ^= transit->value;
		transit->value = 0;
	}
	frame = sim_transit_frame(transit);
	return sim_tcp_catch(&frame, transit->slot, transit->sent, transit->repeats);
}

int sim_transit_to_process(const struct transit *transit)
{
	struct sim_frame frame = sim_transit_frame(transit);

	return sim_link_leave(&frame, transit->slot);
}

void sim_transit_arrive(struct sim_timer *timer)
{
	struct transit *transit = (struct transit *)timer;
	int r;

	sim_transit_take_out(transit);
	r = catch(transit);
	if (!r && transit->slot == sim_self_slot())
		sim_link_deliver(&transit->packet);
	else if (!r && sim_port_carries(transit->packet.to))
		r = sim_transit_to_process(transit);
	if (r == -ENOMEM && (transit->packet.type == SIM_PACKET_STREAM ||
			     transit->packet.type == SIM_PACKET_TCP)) {
		/* Nobody would send it again, so it is late instead. */
		DL_PREPEND(transits, transit);
		transit->in_order = false;
		sim_transit_arm(transit, sim_now() + SIM_LINK_AGAIN, SIM_LEFT_IN_ORDER);
		return;
	}
	sim_block_put(transit);
}

void sim_transit_arrive_to_be_rejected(struct sim_timer *timer)
{
	struct transit *transit = (struct transit *)timer;

	sim_transit_take_out(transit);
	transit->packet.from_slot = transit->slot;
	sim_link_reject(&transit->packet, transit->reason);
	sim_block_put(transit);
}

int sim_local_send(const struct sim_frame *frame)
{
	struct transit *transit = sim_transit_begin(NULL, frame, sim_self_slot(), 0,
						    sim_transit_arrive);

	if (!transit)
		return -ENOMEM;
	sim_timer_arm(&transit->timer, transit->sent + (sim_is_virtual() ? SIM_LINK_LATENCY : 0));
	return 0;
}

unsigned int sim_link_under_way(void)
{
	const struct transit *transit;
	unsigned int num;

	DL_COUNT(transits, transit, num);
	return num + sim_tcp_waiting();
}

void sim_transits_drop_all(void)
{
	struct transit *transit;

	while ((transit = transits)) {
		sim_timer_disarm(&transit->timer);
		drop(transit);
		sim_transit_free(transit);
	}
}
