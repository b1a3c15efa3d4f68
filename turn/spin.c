/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/spin.c - see spin.h. */
#include "config.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "hand.h"
#include "instruction.h"
#include "pointers.h"
#include "raw.h"
#include "recur.h"
#include "spin.h"
#include "threads.h"
#include "trap.h"

#define TRAP_FLAG UINT64_C(0x100)
#define RESUME_FLAG UINT64_C(0x10000)

#define LEAST_STEPS 1024u	/* instructions; twice as many each time that it was asked in vain */
#define MOST_STEPS 16384u
/* Real time: how long it goes on before it asks itself, and twice as long each time in vain. */
#define SOON_NS 30000
#define LATE_NS 2000000
#define MOST_CALLS 4096u	/* without a loop that spins, then it is not expected any more */

static struct spin {
	bool is_stepped;
	bool has_timer;		/* it spins often */
	int32_t timer;
	long delay;
	uint32_t calls, failures, left;
	uint64_t begin, end;	/* first and last instruction of the loop */
	uint64_t expected;	/* the next instruction; 0: anywhere */
	struct turn_recur recur;
} spins[TURN_MAX_THREADS];	/* by slot */

static struct spin *own(void)
{
	return &spins[turn_slot()];
}

/* ------------------------------------------------------------------------
 * The thread's state.
 */

/* Where the kernel says in a signal's frame how much of the processor's state it holds. */
#define FRAME_MAGIC_AT 464
#define FRAME_SIZE_AT 480
#define FRAME_MAGIC 0x46505853u
#define FRAME_LEAST 512u
#define FRAME_MOST 16384u

/* Of the registers for numbers. */
static uint64_t digest(const char *frame)
{
	uint64_t sums[4] = { 1, 2, 3, 4 };
	uint32_t magic, size = FRAME_LEAST;

	if (!frame)
		return 0;
	memcpy(&magic, frame + FRAME_MAGIC_AT, sizeof(magic));
	if (magic == FRAME_MAGIC)
		memcpy(&size, frame + FRAME_SIZE_AT, sizeof(size));
	if (size < FRAME_LEAST || size > FRAME_MOST)
		size = FRAME_LEAST;
	for (uint32_t i = 0; i + sizeof(sums) <= size; i += sizeof(sums)) {
		uint64_t values[4];

		memcpy(values, frame + i, sizeof(values));
		for (unsigned int k = 0; k < 4; k++)
			sums[k] = (sums[k] ^ values[k]) * UINT64_C(0x9e3779b97f4a7c15);
	}
	return sums[0] ^ sums[1] >> 7 ^ sums[2] >> 13 ^ sums[3] >> 19;
}

static void read_state(const ucontext_t *context, struct turn_recur_state *ret)
{
	static const int places[] = {
		REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
		REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
		REG_RIP, REG_EFL,
	};

	for (unsigned int i = 0; i < TURN_NUM_REGISTERS; i++)
		ret->registers[i] = (uint64_t)context->uc_mcontext.gregs[places[i]];
	ret->registers[TURN_FLAGS] &= ~(TRAP_FLAG | RESUME_FLAG);
	ret->others = digest((const char *)context->uc_mcontext.fpregs);
}

/* ------------------------------------------------------------------------
 * One instruction after the other.
 */

void turn_spin_stop(ucontext_t *context)
{
	if (turn_slot() != TURN_NOBODY)
		own()->is_stepped = false;
	context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static bool read_instruction(const uint64_t *registers, struct turn_instruction *ret)
{
	const uint8_t *code = (const uint8_t *)registers[TURN_RIP];
	size_t len = TURN_LONGEST_INSTRUCTION;

	/* It may be the last one of what is mapped. */
	while (len && !turn_can_read(code, len))
		len--;
	return turn_instruction_read(code, len, registers, (uint64_t)__builtin_thread_pointer(), ret);
}

/* Execute the next instruction alone, if it is known what it does. */
static bool prepare(struct spin *spin, const struct turn_recur_state *state, ucontext_t *context)
{
	struct turn_instruction instruction;
	uint64_t first;

	if (!read_instruction(state->registers, &instruction))
		return false;
	first = instruction.at & ~UINT64_C(7);
	if (instruction.size && !turn_can_read((void *)first, instruction.at - first + instruction.size))
		return false;
	turn_recur_writes(&spin->recur, instruction.at, instruction.size);
	spin->expected = instruction.jumps ? 0 : state->registers[TURN_RIP] + instruction.len;
	spin->is_stepped = true;
	context->uc_mcontext.gregs[REG_EFL] |= (greg_t)TRAP_FLAG;
	return true;
}

static void note_place(struct spin *spin, uint64_t at, bool is_first)
{
	if (is_first || at < spin->begin)
		spin->begin = at;
	if (is_first || at > spin->end)
		spin->end = at;
}

static enum turn_recur_answer step(struct spin *spin, const struct turn_recur_state *state)
{
	const bool searched = spin->recur.phase == SEARCHES;
	enum turn_recur_answer answer = turn_recur_step(&spin->recur, state);

	if (spin->recur.phase == MEASURES)
		note_place(spin, state->registers[TURN_RIP], searched);
	return answer;
}

/* ------------------------------------------------------------------------
 * Asking itself.
 */

static void arm_after(struct spin *spin, long ns)
{
	const struct itimerspec after = { .it_value = { .tv_nsec = ns } };

	TURN_RAW(SYS_timer_settime, spin->timer, 0, &after, NULL);
}

static void expect_more(struct spin *spin)
{
	struct sigevent event = { .sigev_signo = TURN_ASK_SIGNAL, .sigev_notify = SIGEV_THREAD_ID };

	spin->calls = spin->failures = 0;
	spin->delay = SOON_NS;
	if (spin->has_timer)
		return;
	event.sigev_value.sival_int = TURN_ASK_VALUE;
	event._sigev_un._tid = (int)TURN_RAW(SYS_gettid);
	spin->has_timer = !TURN_RAW(SYS_timer_create, CLOCK_MONOTONIC, &event, &spin->timer);
}

static void expect_no_more(struct spin *spin)
{
	if (spin->has_timer)
		TURN_RAW(SYS_timer_delete, spin->timer);
	spin->has_timer = false;
}

/* It computes now; the launcher asks when that takes long. */
static void ask_later(struct spin *spin)
{
	spin->delay *= 2;
	if (spin->has_timer && spin->delay <= LATE_NS)
		arm_after(spin, spin->delay);
}

void turn_spin_arm(void)
{
	struct spin *spin;

	if (turn_slot() == TURN_NOBODY)
		return;
	spin = own();
	if (!spin->has_timer || spin->is_stepped)
		return;
	if (++spin->calls > MOST_CALLS) {
		expect_no_more(spin);
		return;
	}
	spin->delay = SOON_NS;
	arm_after(spin, spin->delay);
}

/* ------------------------------------------------------------------------
 * Signals.
 */

static void let_others(uint64_t at, const ucontext_t *context)
{
	struct turn_thread *self = turn_self();

	self->call = TURN_CALL_SPIN;
	memset(self->arguments, 0, sizeof(self->arguments));
	self->arguments[0] = at;
	self->context = (uint64_t)context;
	turn_clock_yield();
}

bool turn_spin_step(const siginfo_t *info, ucontext_t *context)
{
	struct turn_recur_state state;
	struct spin *spin;

	/* On some virtual machines si_code is now and then that of another trap. */
	if (info->si_code <= 0 || turn_slot() == TURN_NOBODY || !own()->is_stepped ||
	    !(context->uc_mcontext.gregs[REG_EFL] & (greg_t)TRAP_FLAG))
		return false;
	spin = own();
	read_state(context, &state);
	if (spin->expected && spin->expected != state.registers[TURN_RIP])
		goto stop;
	switch (step(spin, &state)) {
	case TURN_RECUR_PERHAPS:
		break;
	case TURN_RECUR_WAITS:
		expect_more(spin);
		spin->left = MOST_STEPS;
		let_others(state.registers[TURN_RIP], context);
		break;
	case TURN_RECUR_CHANGED:
		turn_progress();
		spin->delay = SOON_NS / 2;
		spin->left = 0;
		break;
	case TURN_RECUR_UNKNOWN:
		spin->left = 0;
		break;
	}
	if (spin->left && --spin->left && prepare(spin, &state, context))
		return true;
stop:
	turn_spin_stop(context);
	ask_later(spin);
	return true;
}

/* In a handler of ours, where the trap flag would end the process. */
static bool is_inside(const ucontext_t *context)
{
	uint64_t mask;

	memcpy(&mask, &context->uc_sigmask, sizeof(mask));
	return mask & turn_signal_bit(SIGTRAP);
}

static void begin(ucontext_t *context, bool is_timer)
{
	const uint64_t at = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
	struct spin *spin = own();
	struct turn_recur_state state;

	/* Where it is left over, a handler of the program did not return. */
	if (spin->is_stepped && context->uc_mcontext.gregs[REG_EFL] & (greg_t)TRAP_FLAG)
		return;
	spin->is_stepped = false;
	if (is_timer && (at < spin->begin || at > spin->end)) {
		ask_later(spin);
		return;
	}
	spin->left = LEAST_STEPS << spin->failures;
	if (spin->left < MOST_STEPS)
		spin->failures++;
	read_state(context, &state);
	turn_recur_begin(&spin->recur, &state);
	if (!prepare(spin, &state, context))
		ask_later(spin);
}

bool turn_spin_ask(const siginfo_t *info, ucontext_t *context)
{
	if ((info->si_code != SI_TIMER && info->si_code != SI_QUEUE) ||
	    info->si_value.sival_int != TURN_ASK_VALUE)
		return false;
	if (!is_inside(context) && turn_slot() != TURN_NOBODY &&
	    turn_segment->owner == turn_slot() && atomic_load(&turn_self()->can_be_asked))
		begin(context, info->si_code == SI_TIMER);
	return true;
}

/* ------------------------------------------------------------------------
 * Who can be asked.
 */

void turn_spin_allow(void)
{
	if (turn_slot() == TURN_NOBODY || turn_spawned() != TURN_NOBODY)
		return;
	own()->is_stepped = own()->has_timer = false;
	own()->failures = 0;
	atomic_store(&turn_self()->can_be_asked, true);
}

/*
 * Exec would keep a signal that is sent, and the new program would end by it: it is there now, and is
 * handled as soon as it is not blocked.
 */
void turn_spin_forbid(void)
{
	if (turn_slot() == TURN_NOBODY || turn_spawned() != TURN_NOBODY)
		return;
	expect_no_more(own());
	atomic_store(&turn_self()->can_be_asked, false);
	while (atomic_load(&turn_segment->asks_thread)) {
		TURN_RAW(SYS_sched_yield);
		turn_end_with_launcher();
	}
}

void turn_spin_end(void)
{
	expect_no_more(own());
	atomic_store(&turn_self()->can_be_asked, false);
}
