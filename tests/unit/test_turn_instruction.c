/* SPDX-License-Identifier: BSD-2-Clause */
/* What instructions write, as the assembler makes them. */
#include "config.h"

#include <string.h>

#include "tests/cmocka_all.h"
#include "turn/instruction.h"

#define THREAD UINT64_C(0x7000)
#define AT UINT64_C(0x400000)

/* Each register has the value 0x1000 * (its number + 1). */
static uint64_t registers[TURN_NUM_REGISTERS];

static int set_up(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < TURN_RIP; i++)
		registers[i] = UINT64_C(0x1000) * (i + 1);
	registers[TURN_RIP] = AT;
	return 0;
}

enum {
	RAX = 0x1000, RCX = 0x2000, RDX = 0x3000, RBX = 0x4000, RSP = 0x5000, RBP = 0x6000,
	RSI = 0x7000, RDI = 0x8000, R8 = 0x9000, R12 = 0xd000, R13 = 0xe000,
};

struct known {
	const char *what, *code;
	size_t len, size;
	uint64_t at;
	bool jumps;
};

static const struct known all[] = {
	{ "cmp %al, (%rdi)", "\x38\x07", 2, 0, 0, false },
	{ "cmp $5, 8(%rax)", "\x83\x78\x08\x05", 4, 0, 0, false },
	{ "cmpl $0x12345678, (%rax)", "\x81\x38\x78\x56\x34\x12", 6, 0, 0, false },
	{ "cmpw $0x1234, (%rax)", "\x66\x81\x38\x34\x12", 5, 0, 0, false },
	{ "cmp $1, %al", "\x3c\x01", 2, 0, 0, false },
	{ "movzbl (%rbx), %eax", "\x0f\xb6\x03", 3, 0, 0, false },
	{ "mov 0x10(%rbp,%rax,4), %edx", "\x8b\x54\x85\x10", 4, 0, 0, false },
	{ "mov %fs:0x28, %rax", "\x64\x48\x8b\x04\x25\x28\x00\x00\x00", 9, 0, 0, false },
	{ "test %eax, %eax", "\x85\xc0", 2, 0, 0, false },
	{ "testb $1, (%rax)", "\xf6\x00\x01", 3, 0, 0, false },
	{ "testl $1, (%rax)", "\xf7\x00\x01\x00\x00\x00", 6, 0, 0, false },
	{ "movabs $1, %rax", "\x48\xb8\x01\0\0\0\0\0\0\0", 10, 0, 0, false },
	{ "mov $1, %ax", "\x66\xb8\x01\x00", 4, 0, 0, false },
	{ "lea 8(%rsp), %rax", "\x48\x8d\x44\x24\x08", 5, 0, 0, false },
	{ "pause", "\xf3\x90", 2, 0, 0, false },
	{ "nopw 0(%rax,%rax)", "\x66\x0f\x1f\x44\x00\x00", 6, 0, 0, false },
	{ "endbr64", "\xf3\x0f\x1e\xfa", 4, 0, 0, false },
	{ "mfence", "\x0f\xae\xf0", 3, 0, 0, false },
	{ "cmove %ecx, %eax", "\x0f\x44\xc1", 3, 0, 0, false },
	{ "sete %al", "\x0f\x94\xc0", 3, 0, 0, false },
	{ "pop %rbx", "\x5b", 1, 0, 0, false },
	{ "jne", "\x75\xfc", 2, 0, 0, true },
	{ "jne, far", "\x0f\x85\x00\x01\x00\x00", 6, 0, 0, true },
	{ "jmp", "\xeb\xfe", 2, 0, 0, true },
	{ "jmp *(%rax)", "\xff\x20", 2, 0, 0, true },
	{ "bnd jmp *0x10(%rip)", "\xf2\xff\x25\x10\x00\x00\x00", 7, 0, 0, true },
	{ "ret", "\xc3", 1, 0, 0, true },
	{ "movdqu (%rdi), %xmm0", "\xf3\x0f\x6f\x07", 4, 0, 0, false },
	{ "pcmpeqb (%rsi), %xmm0", "\x66\x0f\x74\x06", 4, 0, 0, false },
	{ "pmovmskb %xmm0, %eax", "\x66\x0f\xd7\xc0", 4, 0, 0, false },
	{ "ptest %xmm0, %xmm0", "\x66\x0f\x38\x17\xc0", 5, 0, 0, false },
	{ "vmovdqu (%rdi), %ymm0", "\xc5\xfe\x6f\x07", 4, 0, 0, false },
	{ "vpcmpeqb (%r8), %ymm0, %ymm0", "\xc4\xc1\x7d\x74\x00", 5, 0, 0, false },
	{ "vzeroupper", "\xc5\xf8\x77", 3, 0, 0, false },

	{ "call", "\xe8\x00\x00\x00\x00", 5, 8, RSP - 8, true },
	{ "call *%rax", "\xff\xd0", 2, 8, RSP - 8, true },
	{ "push %rbp", "\x55", 1, 8, RSP - 8, false },
	{ "push $1", "\x6a\x01", 2, 8, RSP - 8, false },
	{ "push 8(%rax)", "\xff\x70\x08", 3, 8, RSP - 8, false },
	{ "mov %eax, (%rdi)", "\x89\x07", 2, 4, RDI, false },
	{ "mov %rax, -8(%rbp)", "\x48\x89\x45\xf8", 4, 8, RBP - 8, false },
	{ "mov %al, (%r8)", "\x41\x88\x00", 3, 1, R8, false },
	{ "mov %ax, (%rdi)", "\x66\x89\x07", 3, 2, RDI, false },
	{ "mov %eax, (%r12)", "\x41\x89\x04\x24", 4, 4, R12, false },
	{ "mov %eax, 0(%r13)", "\x41\x89\x45\x00", 4, 4, R13, false },
	{ "mov %eax, (%rcx,%rdx,8)", "\x89\x04\xd1", 3, 4, RCX + 8 * RDX, false },
	{ "mov %eax, (%rcx,%r12,2)", "\x42\x89\x04\x61", 4, 4, RCX + 2 * R12, false },
	{ "mov %eax, 0x100(,%rsi,4)", "\x89\x04\xb5\x00\x01\x00\x00", 7, 4, 4 * RSI + 0x100, false },
	{ "mov %eax, 0x1000", "\x89\x04\x25\x00\x10\x00\x00", 7, 4, 0x1000, false },
	{ "mov %eax, 0x10(%rip)", "\x89\x05\x10\x00\x00\x00", 6, 4, AT + 6 + 0x10, false },
	{ "movl $1, 0x10(%rip)", "\xc7\x05\x10\x00\x00\x00\x01\x00\x00\x00", 10, 4, AT + 10 + 0x10,
	  false },
	{ "mov %rax, %fs:0x10", "\x64\x48\x89\x04\x25\x10\x00\x00\x00", 9, 8, THREAD + 0x10, false },
	{ "lock cmpxchg %ecx, (%rdx)", "\xf0\x0f\xb1\x0a", 4, 4, RDX, false },
	{ "lock xadd %rax, (%rdx)", "\xf0\x48\x0f\xc1\x02", 5, 8, RDX, false },
	{ "cmpxchg16b (%rdx)", "\x48\x0f\xc7\x0a", 4, 16, RDX, false },
	{ "xchg %eax, (%rdi)", "\x87\x07", 2, 4, RDI, false },
	{ "incl (%rax)", "\xff\x00", 2, 4, RAX, false },
	{ "addq $1, 8(%rax)", "\x48\x83\x40\x08\x01", 5, 8, RAX + 8, false },
	{ "negl (%rbx)", "\xf7\x1b", 2, 4, RBX, false },
	{ "shll $3, (%rbx)", "\xc1\x23\x03", 3, 4, RBX, false },
	{ "sete (%rcx)", "\x0f\x94\x01", 3, 1, RCX, false },
	{ "movups %xmm0, (%rdi)", "\x0f\x11\x07", 3, 16, RDI, false },
	{ "vmovdqu %ymm0, (%rdi)", "\xc5\xfe\x7f\x07", 4, 32, RDI, false },
};

static void test_known(void **state)
{
	struct turn_instruction found;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		const struct known *it = &all[i];
		const uint8_t *code = (const uint8_t *)it->code;

		if (!turn_instruction_read(code, it->len, registers, THREAD, &found))
			fail_msg("%s is not known", it->what);
		if (found.len != it->len || found.jumps != it->jumps || found.size != it->size ||
		    (it->size && found.at != it->at))
			fail_msg("%s: length %zu, %zu bytes at 0x%llx", it->what, found.len, found.size,
				 (unsigned long long)found.at);
		/* Not all of it is there. */
		for (size_t len = 0; len < it->len; len++)
			assert_false(turn_instruction_read(code, len, registers, THREAD, &found));
	}
}

static void test_unknown(void **state)
{
	static const struct { const char *what, *code; size_t len; } none[] = {
		{ "syscall", "\x0f\x05", 2 }, { "rdtsc", "\x0f\x31", 2 },
		{ "rdtscp", "\x0f\x01\xf9", 3 },
		{ "cpuid", "\x0f\xa2", 2 }, { "rdrand", "\x0f\xc7\xf0", 3 }, { "int3", "\xcc", 1 },
		{ "rdpid", "\xf3\x0f\xc7\xf8", 4 }, { "xbegin", "\xc7\xf8\0\0\0\0", 6 },
		{ "rep movsb", "\xf3\xa4", 2 }, { "stosq", "\x48\xab", 2 }, { "scasb", "\xae", 1 },
		{ "pushf", "\x9c", 1 }, { "popf", "\x9d", 1 }, { "hlt", "\xf4", 1 },
		{ "ud2", "\x0f\x0b", 2 },
		{ "xgetbv", "\x0f\x01\xd0", 3 }, { "rdfsbase", "\xf3\x0f\xae\xc0", 4 },
		{ "fxsave", "\x0f\xae\x00", 3 }, { "btsl, bits far away", "\x0f\xab\x08", 3 },
		{ "pop (%rax)", "\x8f\x00", 2 }, { "mov %gs:0, %eax", "\x65\x8b\x04\x25\0\0\0\0", 8 },
		{ "EVEX", "\x62\xf1\x7e\x48\x6f\x07", 6 }, { "umwait", "\xf2\x0f\xae\xf0", 4 },
		{ "tpause", "\x66\x0f\xae\xf0", 4 }, { "enter", "\xc8\0\0\0", 4 },
		{ "vmaskmovps", "\xc4\xe2\x7d\x2e\x07", 5 }, { "retf", "\xcb", 1 },
	};
	struct turn_instruction found;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		if (turn_instruction_read((const uint8_t *)none[i].code, none[i].len, registers, THREAD,
					  &found))
			fail_msg("%s is known", none[i].what);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
