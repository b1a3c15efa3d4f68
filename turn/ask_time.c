/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/ask_time.c - see ask_time.h. */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>

#include "ask_time.h"
#include "clock.h"
#include "descriptors.h"
#include "hand.h"
#include "pointers.h"

#define TICKS 100u		/* a second, of times() */

static long look(const struct turn_call *call)
{
	const clockid_t clock = (clockid_t)call->arguments[0];
	void *ret = (void *)call->arguments[1];
	const long err = turn_clock_check_look(clock);
	struct timespec now;

	/* A device's time is real. */
	if (err || turn_clock_is_of_device(clock))
		return err ? err : turn_through(call);
	turn_clock_look(clock, &now);
	return ret ? turn_give(ret, &now, sizeof(now)) : -EFAULT;
}

static long time_of_day(const struct turn_call *call)
{
	struct timespec now;
	struct timeval is;

	turn_clock_look(CLOCK_REALTIME, &now);
	is = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
	return turn_give((void *)call->arguments[0], &is, sizeof(is));
}

static long seconds(const struct turn_call *call)
{
	struct timespec now;
	long err;

	turn_clock_look(CLOCK_REALTIME, &now);
	err = turn_give((void *)call->arguments[0], &now.tv_sec, sizeof(now.tv_sec));
	return err ? err : now.tv_sec;
}

/* As the clocks of processor time: all that went by. */
static uint64_t elapsed(void)
{
	struct timespec time;

	turn_clock_look(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * TURN_SECOND + (uint64_t)time.tv_nsec;
}

static long ticks(const struct turn_call *call)
{
	const clock_t num = (clock_t)(elapsed() / (TURN_SECOND / TICKS));
	const struct tms tms = { .tms_utime = num };
	long err = turn_give((void *)call->arguments[0], &tms, sizeof(tms));

	return err ? err : num + (clock_t)(TURN_BEGIN / (TURN_SECOND / TICKS));
}

static long usage(const struct turn_call *call)
{
	struct rusage *ret = (struct rusage *)call->arguments[1];
	const uint64_t time = (int)call->arguments[0] == RUSAGE_CHILDREN ? 0 : elapsed();
	long result = turn_through(call);

	if (result)
		return result;
	/* What would differ from run to run. */
	ret->ru_minflt = ret->ru_majflt = ret->ru_nvcsw = ret->ru_nivcsw = 0;
	ret->ru_stime = (struct timeval){ 0 };
	ret->ru_utime = (struct timeval){ (time_t)(time / TURN_SECOND),
					  (suseconds_t)(time % TURN_SECOND / 1000) };
	return 0;
}

static long uptime(const struct turn_call *call)
{
	struct sysinfo *ret = (struct sysinfo *)call->arguments[0];
	const long result = turn_through(call);

	if (!result)
		ret->uptime = (long)(turn_segment->now / TURN_SECOND);
	return result;
}

long turn_ask_time(const struct turn_call *call)
{
	switch (call->number) {
	case SYS_gettimeofday:
		return time_of_day(call);
	case SYS_time:
		return seconds(call);
	case SYS_times:
		return ticks(call);
	case SYS_getrusage:
		return usage(call);
	case SYS_sysinfo:
		return uptime(call);
	}
	return look(call);
}
