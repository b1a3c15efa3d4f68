/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/tsc.c - see tsc.h. */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>

#include "calls.h"
#include "hand.h"
#include "include/thread_local.h"
#include "pointers.h"
#include "raw.h"
#include "tsc.h"

static POLYCM_THREAD_LOCAL bool is_forbidden;	/* by the program, which wants to fault */

void turn_tsc_begin(void)
{
	TURN_RAW(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV);
}

void turn_tsc_end(void)
{
	TURN_RAW(SYS_prctl, PR_SET_TSC, PR_TSC_ENABLE);
}

static size_t length_at(const uint8_t *code)
{
	if (!turn_can_read(code, 2) || code[0] != 0x0f)
		return 0;
	if (code[1] == 0x31)	/* rdtsc */
		return 2;
	return code[1] == 0x01 && turn_can_read(code, 3) && code[2] == 0xf9 ? 3 : 0;	/* rdtscp */
}

bool turn_tsc_read(ucontext_t *context)
{
	greg_t *registers = context->uc_mcontext.gregs;
	const size_t len = is_forbidden ? 0 : length_at((const uint8_t *)registers[REG_RIP]);
	uint64_t value;

	if (!len)
		return false;
	value = turn_calls_look(context);
	registers[REG_RAX] = (greg_t)(value & UINT32_MAX);
	registers[REG_RDX] = (greg_t)(value >> 32);
	if (len == 3)
		registers[REG_RCX] = 0;	/* the processor's number */
	registers[REG_RIP] += (greg_t)len;
	return true;
}

long turn_tsc_control(const struct turn_call *call)
{
	const int mode = is_forbidden ? PR_TSC_SIGSEGV : PR_TSC_ENABLE;

	if (call->arguments[0] == PR_GET_TSC)
		return call->arguments[1] ?
			turn_give((void *)call->arguments[1], &mode, sizeof(mode)) : -EFAULT;
	if (call->arguments[1] != PR_TSC_ENABLE && call->arguments[1] != PR_TSC_SIGSEGV)
		return -EINVAL;
	is_forbidden = call->arguments[1] == PR_TSC_SIGSEGV;
	return 0;
}
