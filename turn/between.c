/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/between.c - calls that move data from one descriptor to another, or pages to a pipe. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "clock.h"
#include "descriptors.h"
#include "hand.h"
#include "loopback.h"
#include "raw.h"
#include "signals.h"

/* Nothing can be moved now, and the call would wait: until something has changed. */
static long await(const struct turn_call *call, int in, int out)
{
	const bool has_data = turn_is_ready(in, POLLIN), has_room = turn_is_ready(out, POLLOUT);
	long interrupted;

	if ((!has_data && !turn_may_wait(in)) || (!has_room && !turn_may_wait(out)))
		return -EAGAIN;
	interrupted = turn_signal_result(call, true);
	if (interrupted)
		return interrupted;
	if (has_data && has_room)
		turn_clock_yield();
	else
		turn_wait(TURN_DESCRIPTORS, TURN_NEVER);
	return 0;
}

/* The call with that descriptor non-blocking for its time: nobody else has the turn meanwhile. */
static long without_waiting(const struct turn_call *call, int out)
{
	const long flags = TURN_RAW(SYS_fcntl, out, F_GETFL);
	long result;

	if (flags < 0 || flags & O_NONBLOCK)
		return turn_through(call);
	TURN_RAW(SYS_fcntl, out, F_SETFL, flags | O_NONBLOCK);
	result = turn_through(call);
	TURN_RAW(SYS_fcntl, out, F_SETFL, flags);
	return result;
}

static bool is_pipe(int fd)
{
	struct stat st;

	return !TURN_RAW(SYS_fstat, fd, &st) && S_ISFIFO(st.st_mode);
}

/*
 * All of it, as the kernel does on a blocking descriptor, or to the end of the file; to a pipe what
 * there is room for.
 */
static long send_file(const struct turn_call *call)
{
	const int out = (int)call->arguments[0], in = (int)call->arguments[1];
	const long wanted = call->arguments[3];
	struct turn_call part = *call;
	long sum = 0, result;

	do {
		part.arguments[3] = wanted - sum;
		result = without_waiting(&part, out);
		if (result > 0)
			sum += result;
		if (result == -EAGAIN && (!sum || turn_may_wait(out)))
			result = await(call, in, out);
		else if (result <= 0 || !turn_may_wait(out) || is_pipe(out))
			break;
		turn_changed();
	} while (result >= 0 && sum < wanted);
	return sum ? sum : result;
}

long turn_between(const struct turn_call *call)
{
	const int in = (int)call->arguments[0];
	const int out = (int)call->arguments[call->number == SYS_splice ? 2 : 1];
	const unsigned int at = call->number == SYS_splice ? 5 : 3;
	struct turn_call now = *call;
	long result;

	if (call->number == SYS_sendfile)
		return turn_done(turn_after_close(send_file(call)));
	now.arguments[at] |= SPLICE_F_NONBLOCK;
	do
		result = without_waiting(&now, out);
	while (result == -EAGAIN && !(call->arguments[at] & SPLICE_F_NONBLOCK) &&
	       !(result = await(call, in, out)));
	return turn_done(turn_after_close(result));
}

/* vmsplice(): to a pipe, or from one. */
long turn_between_memory(const struct turn_call *call)
{
	const int fd = (int)call->arguments[0];
	const bool reads = (TURN_RAW(SYS_fcntl, fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
	struct turn_call now = *call;
	long result, interrupted;

	now.arguments[3] |= SPLICE_F_NONBLOCK;
	for (;;) {
		result = turn_through(&now);
		if (result != -EAGAIN || call->arguments[3] & SPLICE_F_NONBLOCK)
			return turn_done(result);
		interrupted = turn_signal_result(call, true);
		if (interrupted)
			return interrupted;
		if (turn_is_ready(fd, reads ? POLLIN : POLLOUT))
			turn_clock_yield();
		else
			turn_wait(TURN_DESCRIPTORS, TURN_NEVER);
	}
}
