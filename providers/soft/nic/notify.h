/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/notify.h - descriptors that are readable while something is queued (notify.c, waiting.c). */
#ifndef SIM_NIC_NOTIFY_H
#define SIM_NIC_NOTIFY_H

#include "objects.h"

/* --- notify.c --- */

/* *ret_fd is the program's, read anew when it is wanted.  0 or an errno. */
int nic_notify_open(struct nic_notify *notify, int *ret_fd);
void nic_notify_close(struct nic_notify *notify);
void nic_notify_set(struct nic_notify *notify, bool readable);
/*
 * Without the lock: somebody looked for what was not there when the sequence
 * was that.  rounds counts the calls since it began to look.  0: look again;
 * else an errno: EAGAIN (the descriptor is non-blocking), EDEADLK, EINTR.
 */
int nic_notify_wait(struct nic_notify *notify, unsigned int sequence, unsigned int *rounds);

/* --- waiting.c --- */

/* The context whose asynchronous events, or the channel whose events, the descriptor announces. */
void nic_tell_deadlock(const char *call, int fd);

#endif
