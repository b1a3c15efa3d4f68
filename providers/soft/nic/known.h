/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/known.h - objects that a program names in the attributes of a new one: they are looked up
 * before they are read, since one may have been destroyed.
 */
#ifndef SIM_NIC_KNOWN_H
#define SIM_NIC_KNOWN_H

#include <stdbool.h>

struct nic_known {
	const void *handle;		/* the program's */
	struct nic_known *next;
};

/* All with the engine's lock held. */
void nic_known_add(struct nic_known *known, const void *handle);
void nic_known_remove(const struct nic_known *known);
bool nic_is_known(const void *handle);

#endif
