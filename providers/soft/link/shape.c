/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/shape.c - what links and fault rules do to packets, and when these arrive.  A packet arrives
 * no earlier than those that were sent before it in its flow, except those that a link or rule
 * delays.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "providers/soft/shm/segment.h"
#include "providers/soft/trace/trace.h"
#include "pace.h"
#include "shape_internal.h"
#include "transit.h"

#define HOLD SIM_MS(100)		/* how long a packet waits for the one that is to overtake it */
#define LATE_MIN SIM_US(10)		/* delay of a packet that a link reorders, ... */
#define LATE_TIMES 4u			/* ... or so many latencies if that is more */

/* ------------------------------------------------------------------------
 * Through links.
 */

/* In ns, rounded up. */
static uint64_t bits_take(uint64_t bits, uint64_t bandwidth)
{
	const uint64_t second = 1000000000;
	uint64_t rest = bits % bandwidth;

	if (rest > (SIM_NEVER - bandwidth) / second)	/* so much bandwidth: to the microsecond */
		return bits / bandwidth * second + rest / (bandwidth / 1000000) * 1000;
	return bits / bandwidth * second + (rest * second + bandwidth - 1) / bandwidth;
}

/* Add two times; the sum is limited to the last possible time. */
static uint64_t later(uint64_t at, uint64_t by)
{
	return by < SIM_NEVER - 1 - at ? at + by : SIM_NEVER - 1;
}

/* Occupy the link after the packets that were sent before; returns when it is free again. */
static uint64_t occupy(struct sim_flow *flow, uint64_t takes)
{
	_Atomic uint64_t *shared = NULL;
	uint64_t now = sim_now(), free_at, done;

	/* All processes of a fabric number its nodes alike. */
	if (sim_segment_joined())
		shared = sim_pace_find(sim_segment_area(SIM_AREA_PACES), flow->key.from->number,
				       flow->key.to->number);
	free_at = shared ? atomic_load(shared) : flow->free_at;
	do
		done = later(free_at > now ? free_at : now, takes);
	while (shared && !atomic_compare_exchange_weak(shared, &free_at, done));
	flow->free_at = done;
	return done;
}

/* When does a packet arrive that leaves now? */
static uint64_t arrival(struct sim_flow *flow, uint64_t wire_length)
{
	const struct polycm_sim_link *link = &flow->link;
	uint64_t at = sim_now();

	if (link->bandwidth)
		at = occupy(flow, bits_take(wire_length * 8, link->bandwidth));
	at = later(at, link->latency_ns);
	if (link->jitter_ns)
		at = later(at, sim_random() % (link->jitter_ns + 1));
	if (at < flow->last)
		at = flow->last;
	flow->last = at;
	return at;
}

/* Send the packet that waited to be overtaken. */
static void release_held(struct sim_flow *flow, uint64_t at)
{
	struct transit *held = flow->held;

	if (!held)
		return;
	flow->held = NULL;
	sim_transit_arm(held, at, SIM_LEFT_LATE);
}

/* Trace an effect of the link.  Rules trace their own. */
static void trace_link(const struct sim_frame *frame, const char *action, enum sim_what what)
{
	const char *name = sim_what_name(what);

	sim_trace("fault", "\"rule\":0,\"action\":\"%s\",\"what\":\"%s\",\"from\":\"%s\",\"to\":\"%s\"",
		  action, name ? name : "", frame->from->device->node->name,
		  frame->to->device->node->name);
}

/* Apply the link's loss, copies and reordering to a packet. */
static void ask_link(const struct sim_flow *flow, const struct sim_frame *frame, enum sim_what what,
		     struct sim_fate *fate)
{
	const struct polycm_sim_link *link = &flow->link;
	uint64_t late;

	if (sim_chance(link->loss)) {
		if (!fate->lost)
			trace_link(frame, "lose", what);
		fate->lost = true;
		fate->rejected = false;
	}
	if (sim_chance(link->duplication) && !fate->lost) {
		trace_link(frame, "duplicate", what);
		fate->copies++;
	}
	if (sim_chance(link->reordering) && !fate->lost) {
		trace_link(frame, "reorder", what);
		late = link->latency_ns + link->jitter_ns;
		late = late < SIM_LONGEST / LATE_TIMES ? LATE_TIMES * late : SIM_LONGEST;
		fate->delay = later(fate->delay, late > LATE_MIN ? late : LATE_MIN);
	}
}

/* Does the packet arrive at once and unchanged, so that it needs no timer? */
static bool is_plain(const struct sim_flow *flow, const struct sim_fate *fate, uint64_t at)
{
	return !flow->held && !sim_is_virtual() && at <= sim_now() && !fate->corrupted &&
	       !fate->rejected && !fate->reordered;
}

static void launch_transit(struct transit *transit, const struct sim_fate *fate, uint64_t at)
{
	/* Who would be told of the rejection is gone if we are. */
	if (fate->rejected)
		sim_timer_arm(&transit->timer, at);
	else
		sim_transit_arm(transit, at, fate->delay || fate->reordered ? SIM_LEFT_LATE :
				SIM_LEFT_IN_ORDER);
}

int sim_shape_launch(struct sim_flow *flow, const struct sim_frame *frame, unsigned int slot,
		     uint64_t wire_length, const struct sim_fate *fate, struct sim_in_order *in_order)
{
	uint64_t at = later(arrival(flow, wire_length), fate->delay);
	struct transit *transit;
	bool alone = !flow->held;

	if (fate->lost && !fate->rejected)
		return 0;
	if (in_order) {
		at = at > in_order->at ? at : in_order->at;
		in_order->at = at;
	}
	if (is_plain(flow, fate, at))
		return slot == sim_self_slot() ? sim_local_send(frame)
					       : sim_link_leave(frame, slot);
	transit = sim_transit_begin(flow, frame, slot, wire_length,
			fate->rejected ? sim_transit_arrive_to_be_rejected : sim_transit_arrive);
	if (!transit)
		return -ENOMEM;
	transit->reason = fate->reason;
	transit->repeats = in_order ? in_order->repeats : 0;
	if (fate->corrupted) {
		transit->value = fate->value;
		transit->offset = fate->offset;
		transit->data[fate->offset] ^= fate->value;
	}
	if (fate->reordered && alone) {
		flow->held = transit;
		at = later(at, HOLD);
	}
	launch_transit(transit, fate, at);
	if (!alone)
		release_held(flow, at);
	return 0;
}

/* A copy leaves now. */
static void leave(struct sim_timer *timer)
{
	static const struct sim_fate none;
	struct transit *transit = (struct transit *)timer;
	struct sim_frame frame = sim_transit_frame(transit);

	sim_transit_take_out(transit);
	if (sim_tapped())
		sim_tap_sent(&frame, transit->slot);
	(void)sim_shape_launch(sim_flow_of(&frame), &frame, transit->slot, transit->wire_length,
			       &none, NULL);
	sim_transit_free(transit);
}

/* If there is no memory, fewer copies are sent; the packet itself has left. */
static void send_copies(struct sim_flow *flow, const struct sim_frame *frame, unsigned int slot,
			uint64_t wire_length, const struct sim_fate *fate)
{
	struct transit *transit;
	uint64_t at = sim_now();

	for (uint32_t i = 0; i < fate->copies; i++) {
		transit = sim_transit_begin(flow, frame, slot, wire_length, leave);
		if (!transit)
			return;
		if (__builtin_add_overflow(at, fate->copy_gap, &at))
			at = SIM_NEVER - 1;
		sim_transit_arm(transit, at, SIM_LEFT_COPY);
	}
}

/* Corrupt data counts as lost, because a real receiver drops it for its checksum. */
static void apply_corruption(const struct sim_frame *frame, const struct sim_message *message,
			      struct sim_fate *fate)
{
	if (!fate->corrupted)
		return;
	if (frame->type != SIM_PACKET_MAD && frame->type != SIM_PACKET_STREAM)
		fate->lost = true;
	else
		fate->offset += message->start;
}

void sim_shape_decide(const struct sim_flow *flow, const struct sim_frame *frame,
		      const struct sim_message *message, struct sim_fate *ret_fate)
{
	memset(ret_fate, 0, sizeof(*ret_fate));
	if (sim_faults_on)
		sim_fault_ask_packet(frame->from, frame->to, message->what, message->length,
				     ret_fate);
	if (sim_shape_on)
		ask_link(flow, frame, message->what, ret_fate);
	apply_corruption(frame, message, ret_fate);
}

static int launch_with_copies(struct sim_flow *flow, const struct sim_frame *frame,
			      unsigned int slot, const struct sim_message *message,
			      const struct sim_fate *fate)
{
	int r = sim_shape_launch(flow, frame, slot, message->wire_length, fate, NULL);

	if (!r && !fate->lost)
		send_copies(flow, frame, slot, message->wire_length, fate);
	return r;
}

int sim_shape_send(const struct sim_frame *frame, unsigned int slot)
{
	struct sim_message message;
	struct sim_flow *flow;
	struct sim_fate fate;
	uint64_t connection = sim_tcp_connection(frame);

	sim_message_of(frame, &message);
	if (connection)
		return sim_tcp_send(frame, slot, &message, connection);
	if (!sim_port_carries(frame->from))
		return 0;
	flow = sim_flow_of(frame);
	sim_shape_decide(flow, frame, &message, &fate);
	return launch_with_copies(flow, frame, slot, &message, &fate);
}

int sim_shape_send_as(const struct sim_frame *frame, unsigned int from_slot)
{
	struct sim_flow *flow = sim_flow_of(frame);
	struct transit *transit;

	if (sim_tapped())
		sim_tap_sent(frame, sim_self_slot());
	transit = sim_transit_begin(flow, frame, sim_self_slot(), sim_frame_len(frame),
				    sim_transit_arrive);
	if (!transit)
		return -ENOMEM;
	transit->packet.from_slot = from_slot;
	sim_timer_arm(&transit->timer, arrival(flow, sim_frame_len(frame)));
	return 0;
}

static void note_arrives(struct sim_timer *timer)
{
	struct transit *transit = (struct transit *)timer;

	sim_transit_take_out(transit);
	(void)sim_transit_to_process(transit);
	sim_transit_free(transit);
}

int sim_shape_note(const struct sim_frame *frame, unsigned int slot)
{
	struct sim_flow *flow = sim_flow_of(frame);
	struct transit *transit;

	if (flow->last <= sim_now())
		return sim_link_leave(frame, slot);
	transit = sim_transit_begin(flow, frame, slot, 0, note_arrives);
	if (!transit)
		return -ENOMEM;
	sim_transit_arm(transit, flow->last, SIM_LEFT_IN_ORDER);
	return 0;
}

static void left_note_arrives(struct sim_timer *timer)
{
	struct transit *transit = (struct transit *)timer;

	sim_transit_take_out(transit);
	sim_link_tell(&transit->packet);
	sim_transit_free(transit);
}

void sim_shape_take_over(const struct sim_packet *packet, const struct sim_left *about)
{
	const struct sim_frame frame = {
		.from = packet->from,
		.to = packet->to,
		.type = packet->type,
		.header = packet->data,
		.header_len = packet->len,
		.number = packet->number,
	};
	void (*fn)(struct sim_timer *timer) = sim_transit_arrive;
	struct transit *transit;

	if (about->how == SIM_LEFT_COPY)
		fn = leave;
	else if (packet->type == SIM_PACKET_NOTE)
		fn = left_note_arrives;
	transit = sim_transit_begin(NULL, &frame, sim_self_slot(), about->wire_length, fn);
	if (transit)
		sim_transit_arm_left(transit, packet->from_slot, about);
}

/* Do only latency and bandwidth apply to the packet? */
static bool is_untouched(const struct sim_fate *fate)
{
	return !fate->lost && !fate->rejected && !fate->corrupted && !fate->reordered &&
	       !fate->delay && !fate->copies;
}

int sim_shape_inject(const struct sim_packet *packet, const struct sim_frame *frame)
{
	struct sim_flow *flow = sim_flow_of(frame);
	struct sim_message message;
	struct sim_fate fate;

	sim_message_of(frame, &message);
	sim_shape_decide(flow, frame, &message, &fate);
	if (!is_untouched(&fate))
		return launch_with_copies(flow, frame, sim_self_slot(), &message, &fate);
	sim_link_deliver(packet);
	return 0;
}

void sim_shape_drop_all(void)
{
	sim_tcp_drop_all();
	sim_transits_drop_all();
}
