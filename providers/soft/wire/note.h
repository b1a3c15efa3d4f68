/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire/note.h - what a process tells its peer's, off the wire, about a connection of the CM
 * (SIM_PACKET_NOTE): see cm/cma_death.c.
 *
 * Between processes of one host: host byte order.  Everything is checked.
 */
#ifndef SIM_CM_NOTE_H
#define SIM_CM_NOTE_H

#include <stddef.h>
#include <stdint.h>

struct cm_note {
	uint32_t local_id, remote_id;	/* as the sender names them; remote_id 0: not known yet */
	uint8_t state;			/* enum ibcm_state */
};

/* Without what the compiler adds at its end. */
#define CM_NOTE_SIZE (offsetof(struct cm_note, state) + sizeof(uint8_t))

#endif
