/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handles.h - the program's handles of nodes, devices and faults: numbers that
 * look like pointers.  They are looked up, never dereferenced.
 *
 * A handle names its kind, the fabric and the object's number in it.  Numbers
 * are never used twice in one fabric.  Engine lock held.
 */
#ifndef SIM_HANDLES_H
#define SIM_HANDLES_H

#include <stdint.h>

enum sim_handle_kind {
	SIM_HANDLE_NODE,
	SIM_HANDLE_DEVICE,
	SIM_HANDLE_FAULT,
};

void *sim_handle(enum sim_handle_kind kind, uint32_t number);
/* The number of a handle of this fabric.  -ENOENT: its fabric was destroyed; -EINVAL: no such handle. */
int sim_handle_number(enum sim_handle_kind kind, const void *handle, uint32_t *ret_number);

/* Another fabric begins: handles of the old one become invalid. */
void sim_handles_renew(void);

#endif
