/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/local.c - packets inside one process.  A packet is a timer with a copy
 * of the bytes; one latency for all keeps the order.  Engine lock held.
 */
#include "config.h"

#include <errno.h>
#include <stddef.h>

#include <utlist.h>

#include "block.h"
#include "shape_internal.h"

#define LATENCY SIM_US(1)	/* virtual clock; none under the real one */

struct flight {
	struct sim_timer timer;		/* first */
	struct flight *prev, *next;
	struct sim_packet packet;
	uint8_t data[];
};

static struct flight *flights;

static uint64_t latency(void)
{
	return sim_is_virtual() ? LATENCY : 0;
}

/* As sim_tcp_catch(). */
static int catch(const struct flight *flight)
{
	const struct sim_packet *packet = &flight->packet;
	const struct sim_frame frame = {
		.from = packet->from,
		.to = packet->to,
		.type = packet->type,
		.header = packet->data,
		.header_len = packet->len,
		.number = packet->number,
	};

	if (!sim_tcp_may_catch(&frame))
		return 0;
	return sim_tcp_catch(&frame, packet->from_slot, flight->timer.deadline - latency(), 0);
}

static void arrive(struct sim_timer *timer)
{
	struct flight *flight = (struct flight *)timer;
	int caught;

	DL_DELETE(flights, flight);
	caught = catch(flight);
	if (caught == -ENOMEM && flight->packet.type == SIM_PACKET_STREAM) {
		/* Nobody would send it again, so it is late instead. */
		DL_PREPEND(flights, flight);
		sim_timer_arm(timer, sim_now() + SIM_LINK_AGAIN);
		return;
	}
	if (!caught)
		sim_link_deliver(&flight->packet);
	sim_block_put(flight);
}

int sim_local_send(const struct sim_frame *frame)
{
	struct flight *flight = sim_block_get(sizeof(*flight) + sim_frame_len(frame), frame->type);

	if (!flight)
		return -ENOMEM;
	sim_frame_copy(frame, flight->data);
	flight->packet = (struct sim_packet){
		.type = frame->type,
		.from = frame->from,
		.to = frame->to,
		.from_slot = sim_self_slot(),
		.number = frame->number,
		.data = flight->data,
		.len = sim_frame_len(frame),
	};
	DL_PREPEND(flights, flight);
	sim_timer_init(&flight->timer, arrive);
	sim_timer_arm(&flight->timer, sim_now() + latency());
	return 0;
}

unsigned int sim_local_under_way(void)
{
	const struct flight *flight;
	unsigned int num;

	DL_COUNT(flights, flight, num);
	return num;
}

void sim_local_drop_all(void)
{
	struct flight *flight;

	while ((flight = flights)) {
		DL_DELETE(flights, flight);
		sim_timer_disarm(&flight->timer);
		sim_block_put(flight);
	}
}
