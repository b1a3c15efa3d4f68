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
 * The call that gets an event: waits until take(), with the lock held, returns
 * true.  0, or -1 and errno: EAGAIN (the descriptor is non-blocking), EINTR,
 * EDEADLK (with a log line).  Without the lock.
 */
int nic_notify_get(struct nic_notify *notify, const char *call,
		   bool (*take)(struct nic_notify *notify, void *ret_event), void *ret_event);

/* --- waiting.c --- */

/* The context whose asynchronous events, or the channel whose events, the descriptor announces. */
void nic_tell_deadlock(const char *call, int fd);

#endif
