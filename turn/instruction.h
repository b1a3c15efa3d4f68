/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/instruction.h - what an instruction of x86-64 writes to memory, before it is executed.  Only
 * instructions are known that depend on nothing but registers and memory, as loops have them that
 * wait for memory to change: no system calls, no counters of the processor, no repeated ones.  Pure.
 */
#ifndef TURN_INSTRUCTION_H
#define TURN_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* 0 to 15: general registers, by their numbers in instructions. */
	TURN_RSP = 4,
	TURN_RIP = 16,
	TURN_FLAGS,
	TURN_NUM_REGISTERS,
};

#define TURN_LONGEST_INSTRUCTION 15u

struct turn_instruction {
	size_t len;
	bool jumps;		/* the next one is perhaps not the one behind it */
	uint64_t at;		/* memory that it may write */
	size_t size;		/* so many bytes at most; 0: none */
};

/*
 * The instruction at registers[TURN_RIP], of which len bytes are there.  thread: where %fs points.
 * False: not known, or it does more than that.
 */
bool turn_instruction_read(const uint8_t *code, size_t len, const uint64_t *registers, uint64_t thread,
			   struct turn_instruction *ret);

#endif
