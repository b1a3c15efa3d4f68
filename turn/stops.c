/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/stops.c - see stops.h. */
#include "config.h"

#include <asm/sockios.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "descriptors.h"
#include "hand.h"
#include "raw.h"
#include "stops.h"

#ifndef F_SETOWN_EX
#define F_SETOWN_EX 15
#endif
#ifndef F_SETSIG
#define F_SETSIG 10
#endif

bool turn_stops_by(int signal)
{
	return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

/* The launcher waits until they have stopped. */
static void begin(uint64_t members)
{
	for (uint32_t i = 0; i < turn_segment->num_members; i++)
		if (members >> i & 1)
			turn_segment->members[i].stopped = true;
	turn_segment->stopping = members;
	atomic_store(&turn_segment->goes_on, 0);
	turn_give_to_launcher();
}

bool turn_stops_now(int signal)
{
	uint64_t mask = turn_signal_bit(signal);
	bool has_stopped;

	begin(UINT64_C(1) << turn_member);
	/* Here. */
	TURN_RAW(SYS_rt_sigprocmask, SIG_UNBLOCK, &mask, NULL, TURN_SIGSET_SIZE);
	TURN_RAW(SYS_rt_sigprocmask, SIG_BLOCK, &mask, NULL, TURN_SIGSET_SIZE);
	/* The launcher has taken it for stopped, if it was. */
	has_stopped = !turn_segment->stopping;
	atomic_store(&turn_segment->goes_on, 1);
	turn_take();
	return has_stopped;
}

/* Of these, the ones that have turns. */
static uint64_t inside(uint64_t members)
{
	for (uint32_t i = 0; i < turn_segment->num_members; i++)
		if (turn_segment->members[i].life == TURN_OUTSIDE)
			members &= ~(UINT64_C(1) << i);
	return members;
}

long turn_stops_send(const struct turn_call *call, uint64_t targets)
{
	long result;

	targets = inside(targets);
	if (!targets)
		return turn_through(call);
	/* Before it is sent: this process may be one of them. */
	begin(targets);
	result = turn_through(call);
	turn_take();
	return result;
}

long turn_stops_continue(const struct turn_call *call, uint64_t targets)
{
	uint64_t continuing = 0;
	long result;

	for (uint32_t i = 0; i < turn_segment->num_members; i++)
		if (targets >> i & 1 && turn_segment->members[i].stopped)
			continuing |= UINT64_C(1) << i;
	result = turn_through(call);
	if (result || !continuing)
		return result;
	turn_segment->continuing = continuing;
	turn_pass_to_launcher();
	return result;
}

/* The owner of a descriptor, who looks after its parent or orphans, and terminals. */
static bool sends_signals(const struct turn_call *call)
{
	const long what = call->arguments[1];

	switch (call->number) {
	case SYS_prctl:
		return (call->arguments[0] == PR_SET_PDEATHSIG ||
			call->arguments[0] == PR_SET_CHILD_SUBREAPER) && what;
	case SYS_fcntl:
		return what == F_SETOWN || what == F_SETOWN_EX || what == F_SETSIG ||
		       what == F_SETLEASE || what == F_NOTIFY;
	case SYS_ioctl:
		return what == FIOSETOWN || what == SIOCSPGRP || what == TIOCSCTTY ||
		       what == TIOCSPTLCK;
	}
	return call->number == SYS_mq_notify;
}

void turn_stops_note(const struct turn_call *call)
{
	if (sends_signals(call))
		turn_segment->sends_signals = true;
}
