/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/left.h - packets on slow links whose sender has ended.  A packet that has left its port arrives
 * whether or not the process that sent it still lives.  But it is the sender that keeps it until then
 * (transit.h), because ports, links and TCP may change its way.  So the sender also writes a copy with
 * the time of arrival into the ring to the receiving process, which lets it arrive when the sender
 * has ended.
 *
 * Engine lock held.
 */
#ifndef SIM_LEFT_H
#define SIM_LEFT_H

#include "providers/soft/wire/left.h"
#include "link_internal.h"

/*
 * The sender's: such a packet, with its bytes in `header', is under way to that process.  Returns a
 * number for sim_left_withdraw(); 0: no other process needs to know.
 */
uint64_t sim_left_announce(const struct sim_frame *frame, unsigned int slot, enum sim_left_how how,
			   uint64_t at, uint64_t wire_length);
void sim_left_withdraw(const struct sim_frame *frame, unsigned int slot, uint64_t id);

/* The receiver's: what another process wrote. */
void sim_left_read(const struct sim_packet *packet);
/*
 * The process in that slot has ended: what it left on its way arrives.  True: that in order is still
 * to come, before the end is handled; there is mail from the slot when it has.  at_once: nobody
 * waits for it.
 */
bool sim_left_take_over(unsigned int slot, bool at_once);
/* Of all processes. */
void sim_left_forget(void);

#endif
