/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two nodes, a and b, on a private fabric under the virtual clock, with no
 * protocol on them: packets are numbered by the test, and seen as they come.
 */
#ifndef LINK_WORLD_H
#define LINK_WORLD_H

#include "providers/soft/faults/fault.h"
#include "providers/soft/link/link.h"
#include "providers/soft/link/shape.h"
#include "sim_fake.h"

#define SEEN_MAX 4096u

struct seen {
	uint64_t time;
	uint32_t number;
	size_t len;
	uint8_t data[256];
};

extern struct sim_node *node_a, *node_b;
extern struct sim_port *port_a, *port_b;
extern struct seen seen[SEEN_MAX];	/* at b, and at a if there is nothing else */
extern unsigned int num_seen;

/* cmocka set-up and tear-down of a test; the engine's lock is held between them. */
int link_world_open(void **state);
int link_world_close(void **state);

/* A packet of so many bytes (4 and more), the number first. */
void send_number(struct sim_port *from, struct sim_port *to, uint32_t number, size_t len);
/* A CM MAD of that attribute, the number in its transaction id. */
void send_mad(struct sim_port *from, struct sim_port *to, uint16_t attr_id, uint32_t number);
/* All that is under way arrives; in text: the numbers, "1 2 4". */
const char *arrivals(void);

#endif
