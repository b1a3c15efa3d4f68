/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * live.h - the addresses of what programs hold: ids, channels, events.  A
 * pointer from a program is looked up here before it is followed, so that one
 * that is stale, or was never ours, is told without being read.
 *
 * Any thread; the locks are leaves.
 */
#ifndef POLYCM_CORE_LIVE_H
#define POLYCM_CORE_LIVE_H

#include <stdbool.h>

/* 0 or -ENOMEM.  Not twice for one address. */
int polycm_live_add(const void *object);
/* An address that is not there is left alone. */
void polycm_live_remove(const void *object);
bool polycm_live(const void *object);

#endif
