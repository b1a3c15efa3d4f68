/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/futex.c - see futex.h. */
#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>

#include "clock.h"
#include "futex.h"
#include "hand.h"
#include "order.h"
#include "pointers.h"
#include "raw.h"
#include "signals.h"
#include "words.h"

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13	/* Linux 5.14 */
#endif

struct operation {
	const struct turn_call *call;
	_Atomic uint32_t *address, *second;
	uint32_t command, value, third;
	bool is_private;
	const struct timespec *timeout;
	uint32_t num;		/* in place of a timeout */
};

static uint64_t deadline_of(const struct operation *op, bool is_absolute, bool is_date)
{
	if (!is_absolute)
		return turn_clock_after(op->timeout);
	return turn_clock_at(is_date ? CLOCK_REALTIME : CLOCK_MONOTONIC, op->timeout);
}

static struct turn_word word_of(const struct operation *op)
{
	return turn_word_at((const void *)op->address, op->is_private);
}

/*
 * Is it the word that the kernel clears when a thread ends, and has that thread ended, or is about
 * to?  Its value, which is the thread's id, may be any other word's, too.
 */
static bool is_of_ended(const struct operation *op)
{
	for (uint32_t i = 0; i < turn_segment->num_threads; i++) {
		const struct turn_thread *thread = &turn_segment->threads[i];

		if (thread->member == turn_member && thread->cleared == (uint64_t)op->address &&
		    (uint32_t)thread->tid == op->value)
			return thread->state == TURN_GONE;
	}
	return false;
}

/*
 * pthread_join() waits until the kernel clears the word of the thread's id, behind its last
 * instruction.  Whoever had the next turn has waited for that, if it could (hand.c).
 */
static void await_end(const struct operation *op)
{
	const int32_t pid = turn_segment->members[turn_member].pid;

	while (atomic_load(op->address) == op->value &&
	       TURN_RAW(SYS_tgkill, pid, op->value, 0) != -ESRCH)
		TURN_RAW(SYS_sched_yield);
}

static long wait_for(const struct operation *op, uint64_t deadline, uint32_t bitset)
{
	struct turn_thread *self = turn_self();
	long result;

	if (!bitset)
		return -EINVAL;
	for (;;) {
		/* Somebody may have unmapped it meanwhile. */
		if (!turn_can_read((const void *)op->address, sizeof(*op->address)))
			return -EFAULT;
		if (atomic_load(op->address) != op->value)
			return -EAGAIN;
		if (!op->is_private && is_of_ended(op)) {
			await_end(op);
			return 0;
		}
		if (turn_order_passed(turn_segment, deadline))
			return -ETIMEDOUT;
		self->word = word_of(op);
		self->address = (uint64_t)op->address;
		self->bitset = bitset;
		if (turn_wait(TURN_FUTEX, deadline))
			break;
		result = turn_signal_result(op->call, deadline == TURN_NEVER);
		if (result)
			return result;
	}
	turn_progress();
	return 0;
}

/* FUTEX_WAKE_OP: changes the second word, and says whether who waits on it is woken. */
static long change(const struct operation *op)
{
	const uint32_t code = op->third;
	uint32_t argument = code >> 12 & 0xfff, compared = code & 0xfff, old, new;

	if (code >> 28 & FUTEX_OP_OPARG_SHIFT)
		argument = 1u << (argument & 31);
	old = atomic_load(op->second);
	switch (code >> 28 & 7) {
	case FUTEX_OP_SET:
		new = argument;
		break;
	case FUTEX_OP_ADD:
		new = old + argument;
		break;
	case FUTEX_OP_OR:
		new = old | argument;
		break;
	case FUTEX_OP_ANDN:
		new = old & ~argument;
		break;
	case FUTEX_OP_XOR:
		new = old ^ argument;
		break;
	default:
		return -ENOSYS;
	}
	atomic_store(op->second, new);
	switch (code >> 24 & 15) {
	case FUTEX_OP_CMP_EQ:
		return old == compared;
	case FUTEX_OP_CMP_NE:
		return old != compared;
	case FUTEX_OP_CMP_LT:
		return (int32_t)old < (int32_t)compared;
	case FUTEX_OP_CMP_LE:
		return (int32_t)old <= (int32_t)compared;
	case FUTEX_OP_CMP_GT:
		return (int32_t)old > (int32_t)compared;
	case FUTEX_OP_CMP_GE:
		return (int32_t)old >= (int32_t)compared;
	}
	return -ENOSYS;
}

static uint32_t wake(const struct operation *op, _Atomic uint32_t *address, uint32_t num,
		     uint32_t bitset)
{
	const struct turn_word word = turn_word_at((const void *)address, op->is_private);
	const bool wakes_own = turn_order_wakes_own(turn_segment, turn_self(), word);
	uint32_t woken = turn_order_wake(turn_segment, word, num, bitset);

	if (woken && !wakes_own)
		turn_progress();
	return woken;
}

static long wake_op(const struct operation *op)
{
	long second = change(op), woken;

	if (second < 0)
		return second;
	woken = wake(op, op->address, op->value, UINT32_MAX);
	if (second)
		woken += wake(op, op->second, op->num, UINT32_MAX);
	return woken;
}

static long requeue(const struct operation *op)
{
	long woken;

	if (op->command == FUTEX_CMP_REQUEUE && atomic_load(op->address) != op->third)
		return -EAGAIN;
	woken = wake(op, op->address, op->value, UINT32_MAX);
	return woken + turn_order_requeue(turn_segment, word_of(op), op->num,
					  turn_word_at((const void *)op->second, op->is_private));
}

/* Priorities are inherited by nobody: one thread runs at a time. */
static long lock(const struct operation *op, uint64_t deadline, bool is_waiting)
{
	const uint32_t tid = (uint32_t)turn_self()->tid;
	struct operation waiting = *op;
	long result;

	for (;;) {
		uint32_t is = atomic_load(op->address);

		if (!(is & FUTEX_TID_MASK) || is & FUTEX_OWNER_DIED) {
			atomic_store(op->address, tid | (is & (FUTEX_WAITERS | FUTEX_OWNER_DIED)));
			return 0;
		}
		if ((is & FUTEX_TID_MASK) == tid)
			return -EDEADLK;
		if (!is_waiting)
			return -EAGAIN;
		waiting.value = is | FUTEX_WAITERS;
		atomic_store(op->address, waiting.value);
		result = wait_for(&waiting, deadline, FUTEX_BITSET_MATCH_ANY);
		if (result && result != -EAGAIN)
			return result == -ETIMEDOUT ? result : TURN_RESTART;
	}
}

static long unlock(const struct operation *op)
{
	if ((atomic_load(op->address) & FUTEX_TID_MASK) != (uint32_t)turn_self()->tid)
		return -EPERM;
	/* Who is woken says that others wait, whether they do or not. */
	atomic_store(op->address, 0);
	if (wake(op, op->address, 1, UINT32_MAX))
		atomic_store(op->address, FUTEX_WAITERS);
	return 0;
}

static bool is_timed(uint32_t command)
{
	return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET || command == FUTEX_LOCK_PI ||
	       command == FUTEX_LOCK_PI2;
}

/* What the kernel would read or write, of this call; a private WAKE does neither. */
static long check(const struct operation *op)
{
	void *words[] = { (void *)op->address, (void *)op->second };
	long err = is_timed(op->command) ? turn_pointers_check_time(op->timeout) : 0;

	if (err)
		return err;
	switch (op->command) {
	case FUTEX_CMP_REQUEUE:
		return turn_can_read(words[0], 4) ? 0 : -EFAULT;
	case FUTEX_WAKE_OP:
		return turn_can_read(words[0], 4) && turn_can_write(words[1], 4) ? 0 : -EFAULT;
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
	case FUTEX_TRYLOCK_PI:
	case FUTEX_UNLOCK_PI:
		return turn_can_write(words[0], 4) ? 0 : -EFAULT;
	}
	return op->is_private || turn_can_read(words[0], 4) ? 0 : -EFAULT;
}

long turn_futex(const struct turn_call *call)
{
	const uint32_t code = (uint32_t)call->arguments[1];
	const struct operation op = {
		.call = call,
		.address = (_Atomic uint32_t *)call->arguments[0],
		.command = code & (uint32_t)FUTEX_CMD_MASK,
		.value = (uint32_t)call->arguments[2],
		.timeout = (const struct timespec *)call->arguments[3],
		.num = (uint32_t)call->arguments[3],
		.second = (_Atomic uint32_t *)call->arguments[4],
		.third = (uint32_t)call->arguments[5],
		.is_private = code & FUTEX_PRIVATE_FLAG,
	};
	const bool is_date = code & FUTEX_CLOCK_REALTIME;
	const long err = check(&op);

	if (err)
		return err;
	switch (op.command) {
	case FUTEX_WAIT:
		return wait_for(&op, deadline_of(&op, false, false), FUTEX_BITSET_MATCH_ANY);
	case FUTEX_WAIT_BITSET:
		return wait_for(&op, deadline_of(&op, true, is_date), op.third);
	case FUTEX_WAKE:
		return wake(&op, op.address, op.value, UINT32_MAX);
	case FUTEX_WAKE_BITSET:
		return op.third ? (long)wake(&op, op.address, op.value, op.third) : -EINVAL;
	case FUTEX_WAKE_OP:
		return wake_op(&op);
	case FUTEX_REQUEUE:
	case FUTEX_CMP_REQUEUE:
		return requeue(&op);
	case FUTEX_LOCK_PI:
		return lock(&op, deadline_of(&op, true, true), true);
	case FUTEX_LOCK_PI2:
		return lock(&op, deadline_of(&op, true, is_date), true);
	case FUTEX_TRYLOCK_PI:
		return lock(&op, TURN_NEVER, false);
	case FUTEX_UNLOCK_PI:
		return unlock(&op);
	}
	return -ENOSYS;
}

/* Robust locks go with the thread, also in memory that others share. */
void turn_futex_let_go(void)
{
	struct robust_list_head *head = NULL;
	size_t len = 0;

	if (TURN_RAW(SYS_get_robust_list, 0, &head, &len) || !turn_can_read(head, sizeof(*head)) ||
	    (head->list.next == &head->list && !head->list_op_pending))
		return;
	turn_order_interrupt_words(turn_segment);
}

void turn_futex_end_thread(void)
{
	const struct turn_thread *self = turn_self();

	turn_futex_let_go();
	for (uint32_t i = 0; i < turn_segment->num_threads; i++) {
		struct turn_thread *thread = &turn_segment->threads[i];
		uint32_t value;

		if (thread->state != TURN_FUTEX || thread->member != turn_member)
			continue;
		if (!turn_can_read((const void *)thread->address, sizeof(value)))
			continue;
		value = atomic_load((_Atomic uint32_t *)thread->address);
		if (thread->address != self->cleared &&
		    (value & FUTEX_TID_MASK) != (uint32_t)self->tid)
			continue;
		thread->woken = true;
		thread->state = TURN_READY;
	}
}
