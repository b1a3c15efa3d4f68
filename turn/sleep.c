/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/sleep.c - see sleep.h. */
#include "config.h"

#include <errno.h>
#include <time.h>

#include "clock.h"
#include "hand.h"
#include "order.h"
#include "pointers.h"
#include "signals.h"
#include "sleep.h"

static long sleep_until(const struct turn_call *call, uint64_t deadline, struct timespec *ret_left)
{
	struct timespec left;
	uint64_t ns;

	while (!turn_order_passed(turn_segment, deadline)) {
		turn_clock_sleep_until(deadline);
		if (turn_order_passed(turn_segment, deadline) || !turn_signal_result(call, false))
			continue;
		ns = deadline - turn_segment->now;
		left = (struct timespec){ (time_t)(ns / TURN_SECOND), (long)(ns % TURN_SECOND) };
		return turn_give(ret_left, &left, sizeof(left)) ? -EFAULT : -EINTR;
	}
	return 0;
}

long turn_sleep(const struct turn_call *call)
{
	return sleep_until(call, turn_clock_after((const struct timespec *)call->arguments[0]),
			   (struct timespec *)call->arguments[1]);
}

long turn_sleep_on_clock(const struct turn_call *call)
{
	const struct timespec *given = (const struct timespec *)call->arguments[2];
	const long err = turn_clock_check_sleep((clockid_t)call->arguments[0]);

	if (err)
		return err;
	if (call->arguments[1] & TIMER_ABSTIME)
		return sleep_until(call, turn_clock_at((clockid_t)call->arguments[0], given), NULL);
	return sleep_until(call, turn_clock_after(given), (struct timespec *)call->arguments[3]);
}

long turn_yield(const struct turn_call *call)
{
	(void)call;
	turn_clock_yield();
	return 0;
}
