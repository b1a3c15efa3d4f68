/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/tap.h - watchers of packets: a trace, a capture.  Links report each packet when it
 * leaves, before anything can happen to it, and when it arrives.  Engine lock held.
 */
#ifndef SIM_TAP_H
#define SIM_TAP_H

#include "link.h"

struct sim_frame;

struct sim_tap {
	struct sim_tap *next;
	/* It leaves for the process to_slot.  Called for each copy that a link makes. */
	void (*sent)(const struct sim_packet *packet, unsigned int to_slot);
	void (*received)(const struct sim_packet *packet);
};

/* Not empty: report packets. */
extern struct sim_tap *sim_taps;
#define sim_tapped() __builtin_expect(sim_taps != NULL, 0)

/* Twice is no error.  A tap may remove itself while it is called. */
void sim_tap_add(struct sim_tap *tap);
void sim_tap_remove(struct sim_tap *tap);

/* For the links. */
void sim_tap_sent(const struct sim_frame *frame, unsigned int to_slot) __attribute__((cold));
void sim_tap_received(const struct sim_packet *packet) __attribute__((cold));

#endif
