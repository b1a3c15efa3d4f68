/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/shm/shm.h - the other processes of a shared fabric: joining it, receiving
 * from them, what one that is gone means, reading their memory.
 *
 * Engine lock held for all.
 */
#ifndef SIM_LINK_SHM_H
#define SIM_LINK_SHM_H

#include "providers/soft/link/link.h"

/*
 * Join the shared fabric of that name as a process, which gives us a slot;
 * -EINVAL: no good name, -EPERM: its folder is not ours alone, -EPROTO: the
 * files in it are none of ours or of another version.  Leave it again.
 */
int sim_shm_join(const char *fabric);
void sim_shm_leave(void);

/* Deliver what came in. */
void sim_shm_receive(void);
/* Does that process live, with mail from us that it has not read? */
bool sim_shm_unread(unsigned int slot);

/*
 * A packet of connected QPs that another process reads if we die, after all that we sent: one for
 * each process, up to SIM_LAST_WORD bytes; NULL: none any more.  false: there is no ring to it.
 */
#define SIM_LAST_WORD 32u
bool sim_link_last_word(struct sim_port *from, struct sim_port *to, unsigned int slot,
			const void *packet, size_t len);
/* Read that of another process, which stands still or has died. */
void sim_link_hear_last_word(unsigned int slot);

/* Set at start-up or NULL: a process is gone, and all that it had sent was delivered. */
extern void (*sim_link_process_died)(unsigned int slot);
/* Not from handlers: check whether that process is gone, and handle its death. */
void sim_link_look_at(unsigned int slot);
/* Before communication with the process in the slot begins: handle the death of the one before. */
void sim_link_meet(unsigned int slot);
/* The process that answers for the host of the process in the slot: that one, or we if it is gone. */
unsigned int sim_link_answers_for(unsigned int slot);

/*
 * Single copy out of another process's memory (process_vm_readv).
 * sim_link_pullable(): may that process read OUR memory directly?  Known only
 * once it has tried; false until then, and where the system forbids it.
 */
bool sim_link_pullable(unsigned int slot);
int sim_link_pull(unsigned int slot, const struct iovec *remote, unsigned int remote_parts,
		  const struct iovec *local, unsigned int local_parts, size_t len);

#endif
