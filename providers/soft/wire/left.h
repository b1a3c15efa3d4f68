/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire/left.h - in a ring, in front of a packet that its sender still has: the receiving process lets
 * it arrive if the sender ends before.
 */
#ifndef SIM_WIRE_LEFT_H
#define SIM_WIRE_LEFT_H

#include <stdint.h>

enum sim_left_how {
	SIM_LEFT_NOT,		/* no more: it has arrived, or is lost */
	SIM_LEFT_IN_ORDER,	/* arrives then, before the end of its process is noticed */
	SIM_LEFT_LATE,		/* arrives then: a link or rule delays it */
	SIM_LEFT_COPY,		/* leaves then */
};

struct sim_left {
	uint64_t id;		/* the sender's */
	uint64_t at;
	uint64_t wire_length;
	uint32_t how;		/* enum sim_left_how */
	uint32_t type;		/* enum sim_packet_type */
};

#endif
