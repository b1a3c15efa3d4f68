/* SPDX-License-Identifier: BSD-2-Clause */
/* link/message.h - what a packet is, for links and fault rules.  Pure. */
#ifndef SIM_MESSAGE_H
#define SIM_MESSAGE_H

#include "providers/soft/faults/fault.h"
#include "link_internal.h"

struct sim_message {
	enum sim_what what;
	uint32_t start, length;		/* of the message in the packet's bytes */
	uint64_t wire_length;		/* with what is not copied into the packet */
};

void sim_message_of(const struct sim_frame *frame, struct sim_message *ret_message);

#endif
