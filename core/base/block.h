/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/block.h - clearing and copying some hundred bytes.  Where it sees how many,
 * gcc takes a string instruction, which costs more than the C library's call.
 */
#ifndef POLYCM_CORE_BLOCK_H
#define POLYCM_CORE_BLOCK_H

#include <stddef.h>
#include <string.h>

/* The number, hidden from the compiler. */
static inline size_t polycm_bytes(size_t num)
{
	__asm__("" : "+r"(num));
	return num;
}

static inline void polycm_clear(void *block, size_t size)
{
	memset(block, 0, polycm_bytes(size));
}

static inline void polycm_copy(void *to, const void *from, size_t size)
{
	memcpy(to, from, polycm_bytes(size));
}

#endif
