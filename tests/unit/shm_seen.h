/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shm_seen.h - this process on a shared fabric in a folder of the test's own, and the
 * packets that came to it.
 */
#ifndef TESTS_UNIT_SHM_SEEN_H
#define TESTS_UNIT_SHM_SEEN_H

#include "providers/soft/link/link.h"
#include "shm_child.h"
#include "sim_fake.h"
#include "tests/cmocka_all.h"

extern struct seen {
	unsigned int count;
	unsigned int from_slot;
	size_t len;
	uint8_t data[SIM_LINK_MAX_PACKET];
	bool in_order;			/* the first word counts from 0 */
} seen;

/* The handler of packets of RC. */
void see(const struct sim_packet *packet);

int start(void **state);
int start_joined(void **state);
/* The last process out leaves nothing behind. */
int stop(void **state);

#define JOINED(test) cmocka_unit_test_setup_teardown(test, start_joined, stop)

unsigned int count_files(const char *folder);

/* Lock held: to a process, and until so many have come. */
int send_bytes(unsigned int slot, const void *bytes, size_t len);
int wait_for(unsigned int count);
bool seen_enough(void *count);		/* for sim_wait() */

#endif
