/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/known.c - see known.h.  Nothing is allocated, so that an object is known as soon as it is made. */
#include "config.h"

#include <stddef.h>
#include <stdint.h>

#include "known.h"

#define BITS 10

static struct nic_known *chains[1u << BITS];

/* Where it is, or would be: at the end of its chain. */
static struct nic_known **find(const void *handle)
{
	const uint64_t hash = (uint64_t)(uintptr_t)handle * UINT64_C(0x9e3779b97f4a7c15);
	struct nic_known **at = &chains[hash >> (64 - BITS)];

	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	return at;
}

void nic_known_add(struct nic_known *known, const void *handle)
{
	struct nic_known **at = find(handle);

	known->handle = handle;
	known->next = NULL;
	*at = known;
}

void nic_known_remove(const struct nic_known *known)
{
	*find(known->handle) = known->next;
}

bool nic_is_known(const void *handle)
{
	return *find(handle) != NULL;
}
