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
/* Does that process live, and has not looked at what we sent it last? */
bool sim_shm_unread(unsigned int slot);

/* Set at start-up: a process of the fabric is gone, and nothing more comes from it. */
void sim_link_set_death_handler(void (*fn)(unsigned int slot));
/* Not from handlers: notice at once if that process is gone. */
void sim_link_look_at(unsigned int slot);
/* Before something begins with the process in the slot: one that had it before is told dead. */
void sim_link_meet(unsigned int slot);
/* Which process answers for the host of the one in that slot: that one, or where it is gone, we. */
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
