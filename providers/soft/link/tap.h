/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/tap.h - those who look at packets: a trace, a capture.  Links tell of
 * each packet as it leaves its sender, before anything can happen to it on its
 * way, and of each that has come to its receiver.  Engine lock held.
 */
#ifndef SIM_TAP_H
#define SIM_TAP_H

#include "link.h"

struct sim_frame;

struct sim_tap {
	struct sim_tap *next;
	/* It leaves for the process to_slot.  Once for each copy that a link makes of it. */
	void (*sent)(const struct sim_packet *packet, unsigned int to_slot);
	void (*received)(const struct sim_packet *packet);
};

/* Somebody looks. */
extern struct sim_tap *sim_taps;
#define sim_tapped() __builtin_expect(sim_taps != NULL, 0)

/* Neither is an error twice; a tap may remove itself while it is told. */
void sim_tap_add(struct sim_tap *tap);
void sim_tap_remove(struct sim_tap *tap);

/* For the links. */
void sim_tap_sent(const struct sim_frame *frame, unsigned int to_slot) __attribute__((cold));
void sim_tap_received(const struct sim_packet *packet) __attribute__((cold));

#endif
