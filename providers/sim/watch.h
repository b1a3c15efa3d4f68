/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch.h - who looks at packets: the trace and the capture.
 *
 * Links tell of each packet as it leaves its sender, before anything can
 * happen to it on its way, and of each that has come to its receiver.  Engine
 * lock held.
 */
#ifndef SIM_WATCH_H
#define SIM_WATCH_H

#include <stdbool.h>

struct sim_frame;
struct sim_packet;

/* Somebody looks. */
extern bool sim_watched;
#define sim_watching() __builtin_expect(sim_watched, 0)

/* They were told of something since this was set back; who has which address is nothing yet. */
extern bool sim_watch_told;

/* Once for each packet; a link that makes copies of one calls it for each, when that one leaves. */
void sim_watch_sent(const struct sim_frame *frame, unsigned int to_slot) __attribute__((cold));
void sim_watch_received(const struct sim_packet *packet) __attribute__((cold));

/* A trace or a capture begins or ends. */
void sim_watch_update(void);

#endif
