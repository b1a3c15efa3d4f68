/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/instruction.c - see instruction.h.  Source: Intel's manual, volume 2, appendix A. */
#include "config.h"

#include <string.h>

#include "instruction.h"

/* What is behind an opcode, and what the instruction does; 0: it is not known. */
enum {
	KNOWN = 1,
	MODRM = 2,		/* an operand in memory or in a register */
	IMM8 = 4,
	IMM32 = 8,		/* 16 bits with the prefix 66 */
	WRITES = 16,		/* that operand, if it is in memory */
	PUSHES = 32,		/* 8 bytes on the stack */
	JUMPS = 64,
	BYTE = 128,		/* operands are one byte */
};

#define PREFIX_66 1u
#define PREFIX_F2 2u
#define PREFIX_F3 4u

struct reader {
	const uint8_t *at, *end;
	const uint64_t *registers;
	uint64_t thread;
	unsigned int prefixes;
	bool is_thread_local;	/* %fs */
	bool is_locked;
	uint8_t rex;
	bool is_vex, is_256;
	uint8_t map;		/* 0: one byte; 1: 0F; 2: 0F 38 */
	uint8_t opcode;
	uint8_t modrm;
	bool is_memory;
	bool is_relative;	/* to the next instruction */
	uint64_t address;
	bool failed;
};

static uint8_t next(struct reader *r)
{
	if (r->at == r->end) {
		r->failed = true;
		return 0;
	}
	return *r->at++;
}

static uint64_t next_number(struct reader *r, size_t len)
{
	uint64_t value = 0;

	if ((size_t)(r->end - r->at) < len) {
		r->failed = true;
		return 0;
	}
	memcpy(&value, r->at, len);
	r->at += len;
	return value;
}

static uint64_t next_displacement(struct reader *r, size_t len)
{
	const uint64_t value = next_number(r, len);

	return len == 1 ? (uint64_t)(int8_t)value : (uint64_t)(int32_t)value;
}

#define REX_W 8u
#define REX_X 2u
#define REX_B 1u

static void read_prefixes(struct reader *r)
{
	for (; r->at < r->end; r->at++) {
		switch (*r->at) {
		case 0x66:
			r->prefixes |= PREFIX_66;
			continue;
		case 0xf2:
			r->prefixes |= PREFIX_F2;
			continue;
		case 0xf3:
			r->prefixes |= PREFIX_F3;
			continue;
		case 0xf0:
			r->is_locked = true;
			continue;
		case 0x64:
			r->is_thread_local = true;
			continue;
		case 0x2e:
		case 0x3e:
			continue;	/* hints, and no segments any more */
		}
		break;
	}
	if (r->at < r->end && (*r->at & 0xf0) == 0x40)
		r->rex = *r->at++;
}

/* The prefix C4 or C5, in which the bits of REX are inverted. */
static void read_vex(struct reader *r, bool is_long)
{
	const uint8_t first = next(r), second = is_long ? next(r) : first;

	if (r->rex || r->prefixes || r->is_locked)
		r->failed = true;
	r->is_vex = true;
	r->is_256 = second & 4;
	r->map = is_long ? first & 0x1f : 1;
	if (is_long)
		r->rex = (uint8_t)((~first >> 5 & 7) | (second & 0x80 ? REX_W : 0));
	r->opcode = next(r);
}

static void read_opcode(struct reader *r)
{
	r->opcode = next(r);
	if (r->opcode == 0xc4 || r->opcode == 0xc5) {
		read_vex(r, r->opcode == 0xc4);
		return;
	}
	if (r->opcode != 0x0f)
		return;
	r->map = 1;
	r->opcode = next(r);
	if (r->opcode == 0x38) {
		r->map = 2;
		r->opcode = next(r);
	}
}

static uint64_t register_of(const struct reader *r, unsigned int low, uint8_t extension)
{
	return r->registers[low | (r->rex & extension ? 8u : 0u)];
}

static uint64_t read_scaled(struct reader *r, unsigned int mod)
{
	const uint8_t sib = next(r);
	uint64_t address = 0;

	/* Index 4 without REX.X is none. */
	if ((sib >> 3 & 7) != 4 || r->rex & REX_X)
		address = register_of(r, sib >> 3 & 7, REX_X) << (sib >> 6);
	if ((sib & 7) == 5 && !mod)
		return address + next_displacement(r, 4);
	return address + register_of(r, sib & 7, REX_B);
}

static void read_operand(struct reader *r)
{
	unsigned int mod, rm;

	r->modrm = next(r);
	mod = r->modrm >> 6;
	rm = r->modrm & 7;
	r->is_memory = mod != 3;
	if (!r->is_memory)
		return;
	if (rm == 4) {
		r->address = read_scaled(r, mod);
	} else if (rm == 5 && !mod) {
		r->is_relative = true;
		r->address = next_displacement(r, 4);
	} else {
		r->address = register_of(r, rm, REX_B);
	}
	if (mod == 1)
		r->address += next_displacement(r, 1);
	else if (mod == 2)
		r->address += next_displacement(r, 4);
	if (r->is_thread_local)
		r->address += r->thread;
}

/* ------------------------------------------------------------------------
 * Opcodes of one byte.
 */

/* add, or, adc, sbb, and, sub, xor, cmp. */
static unsigned int arithmetic(uint8_t opcode)
{
	const unsigned int writes = opcode >> 3 == 7 ? 0 : WRITES;

	switch (opcode & 7) {
	case 0:
		return KNOWN | MODRM | writes | BYTE;
	case 1:
		return KNOWN | MODRM | writes;
	case 2:
	case 3:
		return KNOWN | MODRM;
	case 4:
		return KNOWN | IMM8;
	case 5:
		return KNOWN | IMM32;
	}
	return 0;
}

/* Opcodes whose operation is in the byte behind them. */
static unsigned int group(uint8_t opcode, unsigned int operation)
{
	switch (opcode) {
	case 0x80:
		return KNOWN | MODRM | IMM8 | (operation == 7 ? 0 : WRITES) | BYTE;
	case 0x81:
		return KNOWN | MODRM | IMM32 | (operation == 7 ? 0 : WRITES);
	case 0x83:
		return KNOWN | MODRM | IMM8 | (operation == 7 ? 0 : WRITES);
	case 0xc6:
		return operation ? 0 : KNOWN | MODRM | IMM8 | WRITES | BYTE;
	case 0xc7:
		return operation ? 0 : KNOWN | MODRM | IMM32 | WRITES;
	case 0xf6:
		return KNOWN | MODRM | (operation < 2 ? IMM8 : operation < 4 ? WRITES : 0) | BYTE;
	case 0xf7:
		return KNOWN | MODRM | (operation < 2 ? IMM32 : operation < 4 ? WRITES : 0);
	case 0xfe:
		return operation < 2 ? KNOWN | MODRM | WRITES | BYTE : 0;
	case 0xff:
		if (operation < 2)
			return KNOWN | MODRM | WRITES;
		if (operation == 2)
			return KNOWN | MODRM | PUSHES | JUMPS;
		if (operation == 4)
			return KNOWN | MODRM | JUMPS;
		return operation == 6 ? KNOWN | MODRM | PUSHES : 0;
	}
	return 0;
}

static unsigned int one_byte(uint8_t opcode, unsigned int operation)
{
	if (opcode < 0x40)
		return arithmetic(opcode);
	if (opcode >= 0x50 && opcode < 0x58)
		return KNOWN | PUSHES;
	if (opcode >= 0x70 && opcode < 0x80)
		return KNOWN | IMM8 | JUMPS;
	switch (opcode) {
	case 0x58 ... 0x5f:	/* pop */
	case 0x90 ... 0x99:	/* nop, pause, xchg of registers, cltq, cqto */
	case 0xc9:		/* leave */
		return KNOWN;
	case 0x63:		/* movslq */
	case 0x84 ... 0x85:	/* test */
	case 0x8a ... 0x8b:	/* mov */
	case 0x8d:		/* lea */
		return KNOWN | MODRM;
	case 0x69:
		return KNOWN | MODRM | IMM32;
	case 0x6b:
		return KNOWN | MODRM | IMM8;
	case 0x68:
		return KNOWN | IMM32 | PUSHES;
	case 0x6a:
		return KNOWN | IMM8 | PUSHES;
	case 0x86:		/* xchg */
	case 0x88:
		return KNOWN | MODRM | WRITES | BYTE;
	case 0x87:
	case 0x89:
		return KNOWN | MODRM | WRITES;
	case 0xa8:
	case 0xb0 ... 0xb7:
		return KNOWN | IMM8;
	case 0xa9:
	case 0xb8 ... 0xbf:
		return KNOWN | IMM32;
	case 0xc0:		/* shifts */
		return KNOWN | MODRM | IMM8 | WRITES | BYTE;
	case 0xc1:
		return KNOWN | MODRM | IMM8 | WRITES;
	case 0xd0:
	case 0xd2:
		return KNOWN | MODRM | WRITES | BYTE;
	case 0xd1:
	case 0xd3:
		return KNOWN | MODRM | WRITES;
	case 0xc3:
		return KNOWN | JUMPS;
	case 0xe8:
		return KNOWN | IMM32 | PUSHES | JUMPS;
	case 0xe9:
		return KNOWN | IMM32 | JUMPS;
	case 0xeb:
		return KNOWN | IMM8 | JUMPS;
	}
	return group(opcode, operation);
}

/* ------------------------------------------------------------------------
 * Opcodes of two and three.
 */

static unsigned int fence_of(const struct reader *r)
{
	return r->is_memory || r->prefixes || (r->modrm >> 3 & 7) < 5 ? 0 : KNOWN | MODRM;
}

static unsigned int two_bytes(const struct reader *r)
{
	const unsigned int operation = r->modrm >> 3 & 7;

	if (r->opcode >= 0x40 && r->opcode < 0x50)	/* cmov */
		return KNOWN | MODRM;
	if (r->opcode >= 0x80 && r->opcode < 0x90)
		return KNOWN | IMM32 | JUMPS;
	if (r->opcode >= 0x90 && r->opcode < 0xa0)	/* set */
		return KNOWN | MODRM | WRITES | BYTE;
	switch (r->opcode) {
	case 0x0d:		/* prefetch */
	case 0x18 ... 0x1f:	/* and no operation */
	case 0xa3:		/* bt */
	case 0xaf:		/* imul */
	case 0xb6 ... 0xb7:	/* movzx */
	case 0xbc ... 0xbf:	/* bsf, bsr, movsx */
		return KNOWN | MODRM;
	case 0xae:
		return fence_of(r);
	case 0xb0:		/* cmpxchg */
	case 0xc0:		/* xadd */
		return KNOWN | MODRM | WRITES | BYTE;
	case 0xb1:
	case 0xc1:
		return KNOWN | MODRM | WRITES;
	case 0xb8:		/* popcnt */
		return r->prefixes & PREFIX_F3 ? KNOWN | MODRM : 0;
	case 0xba:
		return operation < 4 ? 0 : KNOWN | MODRM | IMM8 | (operation == 4 ? 0 : WRITES);
	case 0xc7:		/* cmpxchg16b */
		return operation == 1 && r->is_memory ? KNOWN | MODRM | WRITES : 0;
	case 0xc8 ... 0xcf:	/* bswap */
		return KNOWN;
	}
	return 0;
}

/* Registers of SSE and AVX: those that load, compare and combine. */
static unsigned int vector(const struct reader *r)
{
	switch (r->opcode) {
	case 0x77:		/* vzeroupper; emms */
		return KNOWN;
	case 0x70:
	case 0xc2:
	case 0xc6:
		return KNOWN | MODRM | IMM8;
	case 0x11:
	case 0x13:
	case 0x17:
	case 0x29:
	case 0x7e:
	case 0x7f:
	case 0xd6:
		return KNOWN | MODRM | WRITES;
	case 0x10:
	case 0x12:
	case 0x14 ... 0x16:
	case 0x28:
	case 0x2e ... 0x2f:
	case 0x50:
	case 0x54 ... 0x57:
	case 0x60 ... 0x6f:
	case 0x74 ... 0x76:
	case 0xd4:
	case 0xd7 ... 0xdf:
	case 0xe8 ... 0xef:
	case 0xf8 ... 0xfe:
		return KNOWN | MODRM;
	}
	return 0;
}

/* ptest, pcmpeqq, pminu*, broadcasts. */
static unsigned int three_bytes(const struct reader *r)
{
	switch (r->opcode) {
	case 0x00:
	case 0x17:
	case 0x29:
	case 0x38 ... 0x3f:
	case 0x58 ... 0x59:
	case 0x78 ... 0x79:
		return KNOWN | MODRM;
	}
	return 0;
}

static bool has_operand(const struct reader *r)
{
	switch (r->map) {
	case 0:
		return one_byte(r->opcode, 0) & MODRM || group(r->opcode, 0) || r->opcode == 0xff;
	case 1:
		return !(two_bytes(r) & KNOWN) ? vector(r) & MODRM || r->opcode == 0xba ||
			r->opcode == 0xae || r->opcode == 0xb8 || r->opcode == 0xc7 :
			two_bytes(r) & MODRM;
	}
	return true;
}

static unsigned int what_of(const struct reader *r)
{
	switch (r->map) {
	case 0:
		return one_byte(r->opcode, r->modrm >> 3 & 7);
	case 1:
		return !r->is_vex && two_bytes(r) ? two_bytes(r) : vector(r);
	case 2:
		return three_bytes(r);
	}
	return 0;
}

/* ------------------------------------------------------------------------
 * All of it.
 */

static size_t size_of(const struct reader *r, unsigned int what)
{
	if (r->map && (r->is_vex || vector(r)))
		return r->is_256 ? 32 : 16;
	if (r->map == 1 && r->opcode == 0xc7)
		return 16;
	return what & BYTE ? 1 : r->rex & REX_W ? 8 : r->prefixes & PREFIX_66 ? 2 : 4;
}

static size_t immediate_of(const struct reader *r, unsigned int what)
{
	if (what & IMM8)
		return 1;
	if (!(what & IMM32))
		return 0;
	if (!r->map && r->opcode >= 0xb8 && r->opcode <= 0xbf && r->rex & REX_W)
		return 8;
	return r->prefixes & PREFIX_66 && !(what & (JUMPS | PUSHES)) && !(r->rex & REX_W) ? 2 : 4;
}

/* What these prefixes mean elsewhere is not known: repeated ones, returns of another kind. */
static bool has_odd_prefix(const struct reader *r, unsigned int what)
{
	if (r->prefixes & PREFIX_66 && what & (PUSHES | JUMPS))
		return true;
	if (r->map || !(r->prefixes & (PREFIX_F2 | PREFIX_F3)))
		return false;
	/* pause; rep ret; xacquire and xrelease; bnd. */
	return !(r->opcode == 0x90 || what & JUMPS || what & WRITES);
}

bool turn_instruction_read(const uint8_t *code, size_t len, const uint64_t *registers, uint64_t thread,
			   struct turn_instruction *ret)
{
	struct reader r = { .at = code, .registers = registers, .thread = thread };
	unsigned int what;

	r.end = code + (len < TURN_LONGEST_INSTRUCTION ? len : TURN_LONGEST_INSTRUCTION);
	read_prefixes(&r);
	read_opcode(&r);
	if (!r.failed && has_operand(&r))
		read_operand(&r);
	what = what_of(&r);
	if (r.failed || !what || has_odd_prefix(&r, what))
		return false;
	next_number(&r, immediate_of(&r, what));
	if (r.failed)
		return false;
	*ret = (struct turn_instruction){ .len = (size_t)(r.at - code), .jumps = what & JUMPS };
	if (what & PUSHES) {
		ret->at = registers[TURN_RSP] - 8;
		ret->size = 8;
	} else if (what & WRITES && r.is_memory) {
		ret->at = r.address + (r.is_relative ? registers[TURN_RIP] + ret->len : 0);
		ret->size = size_of(&r, what);
	}
	return true;
}
