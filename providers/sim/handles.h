/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handles.h - what programs hold of nodes, devices and faults: numbers that
 * look like pointers, and are looked up instead of followed.
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
/* The number of a handle of this fabric; -ENOENT: its fabric is gone; -EINVAL: no such handle. */
int sim_handle_number(enum sim_handle_kind kind, const void *handle, uint32_t *ret_number);

/* There is another fabric from now on. */
void sim_handles_renew(void);

#endif
