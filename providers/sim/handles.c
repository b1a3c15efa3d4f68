/* SPDX-License-Identifier: BSD-2-Clause */
/* handles.c - see handles.h. */
#include "config.h"

#include <errno.h>

#include "handles.h"

/* Bits 63..56: the mark and the kind; 55..32: the fabric; 31..0: the number. */
#define MARK 0xa0u	/* no address of a program's begins like that */
#define KIND_SHIFT 56u
#define FABRIC_SHIFT 32u
#define FABRIC_MASK 0xffffffu

_Static_assert(sizeof(void *) == sizeof(uint64_t), "a handle is a pointer of 64 bits");

static uint32_t fabric = 1;

void *sim_handle(enum sim_handle_kind kind, uint32_t number)
{
	return (void *)((uint64_t)(MARK | kind) << KIND_SHIFT | (uint64_t)fabric << FABRIC_SHIFT |
			number);
}

int sim_handle_number(enum sim_handle_kind kind, const void *handle, uint32_t *ret_number)
{
	uint64_t bits = (uint64_t)handle;
	uint32_t of = bits >> FABRIC_SHIFT & FABRIC_MASK;

	if (bits >> KIND_SHIFT != (MARK | kind) || !of || of > fabric)
		return -EINVAL;
	if (of != fabric)
		return -ENOENT;
	*ret_number = (uint32_t)bits;
	return 0;
}

void sim_handles_renew(void)
{
	fabric = fabric == FABRIC_MASK ? 1 : fabric + 1;
}
