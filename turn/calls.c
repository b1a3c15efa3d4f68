/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/calls.c - what happens before and after a system call, whatever it is: it is counted, others
 * may go on before it, and its result is noted.  table.h says what serves it.
 */
#include "config.h"

#include <string.h>
#include <sys/syscall.h>

#include "beside.h"
#include "calls.h"
#include "clock.h"
#include "descriptors.h"
#include "details.h"
#include "hand.h"
#include "order.h"
#include "pointers.h"
#include "points.h"
#include "random.h"
#include "record.h"
#include "signals.h"
#include "table.h"
#include "timers.h"
#include "trap.h"

/* After so many calls in a row that brought nothing, a thread waits for others, whatever it calls. */
#define IDLE_CALLS 64u
/* After so many others go on, and timers expire. */
#define FAIR_CALLS 256u
/* The same of calls that are not counted, in a row. */
#define QUIET_CALLS 1024u

static bool is_look(long number)
{
	switch (number) {
	case SYS_clock_gettime:
	case SYS_gettimeofday:
	case SYS_time:
	case SYS_times:
	case SYS_getrusage:
	case TURN_CALL_COUNTER:
		return true;
	}
	return false;
}

static void count(struct turn_thread *self, long number)
{
	self->calls++;
	self->call = (uint32_t)number;
	turn_order_note_call(turn_segment, turn_slot());
	self->idle++;
	self->looks = is_look(number) ? self->looks + 1 : 0;
	self->quiet = 0;
}

/* Who writes down what time it is does not wait for a time. */
void turn_calls_wrote(void)
{
	struct turn_thread *self = turn_self();

	if (self->writes_own)
		return;
	self->idle -= self->looks;
	self->looks = 0;
}

bool turn_calls_quickly(long number, long first)
{
	struct turn_thread *self;

	if (turn_slot() == TURN_NOBODY)
		return false;
	self = turn_self();
	if ((self->idle + 1) / IDLE_CALLS > self->idle_told || (self->calls + 1) % FAIR_CALLS == 0)
		return false;
	memset(self->arguments, 0, sizeof(self->arguments));
	self->arguments[0] = (uint64_t)first;
	count(self, number);
	self->event = 0;
	return true;
}

bool turn_calls_quietly(long number)
{
	struct turn_thread *self;

	if (turn_slot() == TURN_NOBODY)
		return false;
	self = turn_self();
	if ((self->quiet + 1) % QUIET_CALLS == 0)
		return false;
	self->call = (uint32_t)number;
	self->quiet++;
	self->event = 0;
	return true;
}

static void let_others(uint32_t num)
{
	turn_clock_take(num);
	turn_pass();
	turn_timers_expire();
}

static bool is_transfer(const struct turn_call *call)
{
	switch (call->number) {
	case SYS_read:
		return !turn_random_is((int)call->arguments[0]);
	case SYS_readv:
	case SYS_write:
	case SYS_writev:
		return true;
	}
	return false;
}

/* Others may go on before the call. */
static void before(struct turn_thread *self, const struct turn_call *call,
		   enum turn_points_kind kind)
{
	self->call = (uint32_t)call->number;
	self->since_ns = turn_segment->now;
	if (kind == QUIET) {
		turn_record(turn_segment, TURN_QUIET_CALL, turn_slot());
		if (++self->quiet % QUIET_CALLS == 0)
			let_others(QUIET_CALLS);
		return;
	}
	count(self, call->number);
	if (self->calls % FAIR_CALLS == 0)
		let_others(FAIR_CALLS);
	if (self->idle / IDLE_CALLS > self->idle_told) {
		self->idle_told = self->idle / IDLE_CALLS;
		turn_clock_yield();
	}
	if (kind == POINT)
		turn_points_pass();
}

uint64_t turn_calls_look(const ucontext_t *context)
{
	const struct turn_call call = { .number = TURN_CALL_COUNTER };
	struct turn_thread *self;

	if (turn_slot() == TURN_NOBODY)
		return turn_segment->now;
	self = turn_self();
	self->context = (uint64_t)context;
	memset(self->arguments, 0, sizeof(self->arguments));
	before(self, &call, COUNTED);
	self->event = 0;
	turn_clock_look(CLOCK_MONOTONIC, NULL);
	return turn_segment->now;
}

static long serve(struct turn_call *call)
{
	enum turn_points_kind kind;
	struct turn_thread *self;
	long err, result;

	/* A thread that is about to end, or was never one of the system. */
	if (turn_slot() == TURN_NOBODY)
		return turn_through(call);
	self = turn_self();
	self->context = (uint64_t)call->context;
	err = turn_pointers_check(call);
	if (call->number == SYS_rt_sigprocmask)
		return err ? err : turn_trap_mask(call);
	if (call->number == TURN_CALL_POINT)
		return turn_points_lock();
	if (!err && turn_beside_call(call, &result)) {
		self->event = 0;	/* how often it asks depends on real time */
		return result;
	}
	memcpy(self->arguments, call->arguments, sizeof(self->arguments));
	kind = turn_points_kind_of(call);
	before(self, call, kind);
	turn_details_path(call);
	if (err)
		return err;
	if (kind == QUIET && is_transfer(call))
		return turn_file(call);
	return turn_table_call(call);
}

long turn_call(struct turn_call *call)
{
	const long result = serve(call);

	if (turn_slot() == TURN_NOBODY)
		return result;
	turn_self()->then_next = TURN_MOVES;
	if (turn_segment->sends_signals)
		turn_signal_look(call);
	turn_details_data(call, result);
	turn_record_result(turn_segment, turn_self(), result);
	return result;
}
