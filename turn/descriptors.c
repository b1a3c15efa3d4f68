/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/descriptors.c - see descriptors.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "descriptors.h"
#include "hand.h"
#include "order.h"
#include "raw.h"
#include "shown.h"
#include "signals.h"

#define MILLISECOND UINT64_C(1000000)

long turn_through(const struct turn_call *call)
{
	return turn_raw(call->number, call->arguments[0], call->arguments[1], call->arguments[2],
			call->arguments[3], call->arguments[4], call->arguments[5]);
}

static long with(const struct turn_call *call, unsigned int argument, long value)
{
	struct turn_call other = *call;

	other.arguments[argument] = value;
	return turn_through(&other);
}

/* What a call that may make others ready had for a result. */
static long done(long result)
{
	turn_changed();
	if (result >= 0)
		turn_progress();
	else if (result == -EAGAIN)
		turn_clock_yield();
	return result;
}

/* Nothing was ready: true: ask again; false: the time is over. */
static bool wait_on(uint64_t deadline)
{
	if (turn_order_passed(turn_segment, deadline))
		return false;
	turn_wait(TURN_DESCRIPTORS, deadline);
	return true;
}

/* Nothing was ready, or was.  Who asks in vain without waiting will do so again. */
static bool wait_or_yield(long num, uint64_t deadline)
{
	if (num > 0)
		turn_progress();
	if (num)
		return false;
	if (wait_on(deadline))
		return true;
	turn_clock_yield();
	return false;
}

/* ------------------------------------------------------------------------
 * Sets of descriptors.
 */

static uint64_t after_ms(int ms)
{
	return ms < 0 ? TURN_NEVER : turn_clock_after_ns((uint64_t)ms * MILLISECOND);
}

long turn_poll(const struct turn_call *call)
{
	const long *arguments = call->arguments;
	const bool is_poll = call->number == SYS_poll;
	const uint64_t deadline = is_poll ? after_ms((int)arguments[2]) :
					    turn_clock_after((const struct timespec *)arguments[2]);
	struct timespec now;
	long num;

	do {
		now = (struct timespec){ 0 };
		num = TURN_RAW(SYS_ppoll, arguments[0], arguments[1], &now, is_poll ? 0 : arguments[3],
			       TURN_SIGSET_SIZE);
		if (!num && turn_signal_interrupts(call))
			num = -EINTR;
	} while (wait_or_yield(num, deadline));
	return num;
}

struct sets {
	fd_set *given[3];
	fd_set asked[3];
	size_t size;
};

long turn_select(const struct turn_call *call)
{
	const long *arguments = call->arguments;
	const struct timeval *given = (const struct timeval *)arguments[4];
	struct sets sets = { .size = 0 };
	uint64_t deadline = TURN_NEVER;
	struct timespec now;
	long num;

	if (arguments[0] < 0 || arguments[0] > FD_SETSIZE)
		return -EINVAL;
	if (call->number != SYS_select)
		deadline = turn_clock_after((const struct timespec *)arguments[4]);
	else if (given)
		deadline = turn_clock_after_ns((uint64_t)given->tv_sec * TURN_SECOND +
					       (uint64_t)given->tv_usec * 1000);
	sets.size = ((size_t)arguments[0] + 63) / 64 * 8;
	do {
		for (unsigned int i = 0; i < 3; i++) {
			sets.given[i] = (fd_set *)arguments[i + 1];
			if (sets.given[i])
				memcpy(&sets.asked[i], sets.given[i], sets.size);
		}
		now = (struct timespec){ 0 };
		num = TURN_RAW(SYS_pselect6, arguments[0], sets.given[0] ? &sets.asked[0] : NULL,
			       sets.given[1] ? &sets.asked[1] : NULL,
			       sets.given[2] ? &sets.asked[2] : NULL, &now,
			       call->number == SYS_select ? 0 : arguments[5]);
		if (!num && turn_signal_interrupts(call))
			num = -EINTR;
	} while (wait_or_yield(num, deadline));
	for (unsigned int i = 0; i < 3; i++)
		if (num >= 0 && sets.given[i])
			memcpy(sets.given[i], &sets.asked[i], sets.size);
	return num;
}

long turn_epoll(const struct turn_call *call)
{
	const long *arguments = call->arguments;
	const bool has_mask = call->number != SYS_epoll_wait;
	const uint64_t deadline = call->number == SYS_epoll_pwait2 ?
		turn_clock_after((const struct timespec *)arguments[3]) : after_ms((int)arguments[3]);
	long num;

	do {
		num = TURN_RAW(SYS_epoll_pwait, arguments[0], arguments[1], arguments[2], 0,
			       has_mask ? arguments[4] : 0, TURN_SIGSET_SIZE);
		if (!num && turn_signal_interrupts(call))
			num = -EINTR;
	} while (wait_or_yield(num, deadline));
	return num;
}

/* ------------------------------------------------------------------------
 * One descriptor.
 */

static long flags_of(int fd)
{
	return TURN_RAW(SYS_fcntl, fd, F_GETFL);
}

static bool is_ready(int fd, short events)
{
	struct pollfd ask = { .fd = fd, .events = events };
	struct timespec now = { 0 };

	return TURN_RAW(SYS_ppoll, &ask, 1, &now, NULL, TURN_SIGSET_SIZE) != 0;
}

/* SO_RCVTIMEO or SO_SNDTIMEO, of sockets. */
static uint64_t limit_of(int fd, int option)
{
	struct timeval limit = { 0 };
	socklen_t len = sizeof(limit);

	if (TURN_RAW(SYS_getsockopt, fd, SOL_SOCKET, option, &limit, &len) < 0 ||
	    (!limit.tv_sec && !limit.tv_usec))
		return TURN_NEVER;
	return turn_clock_after_ns((uint64_t)limit.tv_sec * TURN_SECOND +
				   (uint64_t)limit.tv_usec * 1000);
}

/*
 * The call with the descriptor non-blocking for its time: nobody else has the turn meanwhile.
 * As often as it takes, for calls that the kernel would not end before they have waited.
 */
static long without_waiting(const struct turn_call *call, int fd, short events, int option)
{
	const long flags = flags_of(fd);
	uint64_t deadline;
	long result;

	if (flags < 0 || flags & O_NONBLOCK)
		return turn_through(call);
	deadline = limit_of(fd, option);
	for (;;) {
		TURN_RAW(SYS_fcntl, fd, F_SETFL, flags | O_NONBLOCK);
		result = turn_through(call);
		TURN_RAW(SYS_fcntl, fd, F_SETFL, flags);
		if (result != -EAGAIN)
			return result;
		if (turn_signal_interrupts(call))
			return -EINTR;
		/* Room that is not enough for this call is no reason to ask at once. */
		if (turn_order_passed(turn_segment, deadline))
			return -EAGAIN;
		if (is_ready(fd, events))
			turn_clock_yield();
		else
			turn_wait(TURN_DESCRIPTORS, deadline);
	}
}

static bool may_not_wait(const struct turn_call *call)
{
	const unsigned int flags = call->number == SYS_recvfrom ? (unsigned int)call->arguments[3] :
				   call->number == SYS_recvmsg ? (unsigned int)call->arguments[2] :
				   call->number == SYS_sendto ? (unsigned int)call->arguments[3] :
				   call->number == SYS_sendmsg ? (unsigned int)call->arguments[2] : 0;

	return flags & MSG_DONTWAIT;
}

long turn_input(const struct turn_call *call)
{
	const int fd = (int)call->arguments[0];
	long result;

	if (may_not_wait(call)) {
		result = turn_through(call);
	} else if (is_ready(fd, POLLIN)) {
		/* There is something, which a call without MSG_WAITALL takes at once. */
		result = turn_through(call);
	} else {
		result = without_waiting(call, fd, POLLIN, SO_RCVTIMEO);
	}
	return done(result);
}

/* --- Streams: the kernel does not return before all is written. --- */


static size_t length_of(const struct iovec *parts, size_t num)
{
	size_t len = 0;

	for (size_t i = 0; i < num; i++)
		len += parts[i].iov_len;
	return len;
}

static bool is_stream_socket(int fd, bool *ret_socket)
{
	int type = 0;
	socklen_t len = sizeof(type);

	*ret_socket = !TURN_RAW(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &len);
	return *ret_socket && type == SOCK_STREAM;
}

static void skip(struct iovec **parts, size_t *num, size_t done)
{
	while (*num && done >= (*parts)->iov_len) {
		done -= (*parts)->iov_len;
		++*parts;
		--*num;
	}
	if (*num) {
		(*parts)->iov_base = (char *)(*parts)->iov_base + done;
		(*parts)->iov_len -= done;
	}
}

/* All of it, and its length; or as far as it came, or why nothing did. */
static long write_all(const struct turn_call *call, int fd, struct iovec *parts, size_t num)
{
	struct turn_call part = { .number = SYS_writev, .arguments = { fd }, .context = call->context };
	long done = 0, result;

	while (num) {
		part.arguments[1] = (long)parts;
		part.arguments[2] = (long)num;
		result = without_waiting(&part, fd, POLLOUT, SO_SNDTIMEO);
		if (result < 0)
			return done ? done : result;
		done += result;
		skip(&parts, &num, (size_t)result);
		turn_changed();
		if (!result)
			break;
	}
	return done;
}

/* What write() and writev() are given; 0: the call is another one, or as large as nobody's is. */
static size_t parts_of(const struct turn_call *call, struct iovec *parts, size_t room)
{
	const struct iovec *given = (const struct iovec *)call->arguments[1];
	size_t num = (size_t)call->arguments[2];

	if (call->number == SYS_write) {
		parts[0] = (struct iovec){ (void *)call->arguments[1], num };
		return 1;
	}
	if (call->number != SYS_writev || num > room)
		return 0;
	memcpy(parts, given, num * sizeof(*parts));
	return num;
}

#define MOST_PARTS 64u

long turn_output(const struct turn_call *call)
{
	const int fd = (int)call->arguments[0];
	struct iovec parts[MOST_PARTS];
	size_t num = 0;
	bool is_socket;
	long result;

	if (may_not_wait(call)) {
		result = turn_through(call);
	} else {
		const long flags = flags_of(fd);

		if (flags >= 0 && !(flags & O_NONBLOCK))
			num = parts_of(call, parts, MOST_PARTS);
		/* Pipes and streams take less than all when they are full. */
		if (num && length_of(parts, num) > PIPE_BUF &&
		    (is_stream_socket(fd, &is_socket) || !is_socket))
			result = write_all(call, fd, parts, num);
		else if (is_ready(fd, POLLOUT))
			result = turn_through(call);
		else
			result = without_waiting(call, fd, POLLOUT, SO_SNDTIMEO);
	}
	if (result > 0 && (fd == STDOUT_FILENO || fd == STDERR_FILENO))
		turn_shown(fd, (uint64_t)result);
	return done(result);
}

long turn_connect(const struct turn_call *call)
{
	const int fd = (int)call->arguments[0];
	const long flags = flags_of(fd);
	int err = 0;
	socklen_t len = sizeof(err);
	long result = without_waiting(call, fd, POLLOUT, SO_SNDTIMEO);

	turn_changed();
	if (result != -EINPROGRESS || flags < 0 || flags & O_NONBLOCK)
		return result;
	while (!is_ready(fd, POLLOUT)) {
		if (turn_signal_interrupts(call))
			return -EINTR;
		turn_wait(TURN_DESCRIPTORS, TURN_NEVER);
	}
	result = TURN_RAW(SYS_getsockopt, fd, SOL_SOCKET, SO_ERROR, &err, &len);
	turn_changed();
	return result ? result : -err;
}

/* ------------------------------------------------------------------------
 * Locks of files, and children.
 */

/* Until the call, as one that does not wait, has another result than this one. */
static long repeat(const struct turn_call *call, unsigned int argument, long value, long in_vain)
{
	long result;

	for (;;) {
		result = with(call, argument, value);
		if (result != in_vain)
			return result;
		if (turn_signal_interrupts(call))
			return -EINTR;
		turn_wait(TURN_DESCRIPTORS, TURN_NEVER);
	}
}

long turn_lock(const struct turn_call *call)
{
	const long how = call->arguments[1];

	turn_changed();
	if (call->number == SYS_flock && !(how & (LOCK_NB | LOCK_UN)))
		return repeat(call, 1, how | LOCK_NB, -EAGAIN);
	if (call->number == SYS_fcntl && how == F_SETLKW)
		return repeat(call, 1, F_SETLK, -EAGAIN);
	if (call->number == SYS_fcntl && how == F_OFD_SETLKW)
		return repeat(call, 1, F_OFD_SETLK, -EAGAIN);
	return turn_through(call);
}

long turn_wait_child(const struct turn_call *call)
{
	const unsigned int argument = call->number == SYS_wait4 ? 2 : 3;
	const long options = call->arguments[argument];
	siginfo_t *info = (siginfo_t *)call->arguments[2];
	long result;

	turn_changed();
	if (call->number == SYS_wait4)
		return options & WNOHANG ? turn_through(call) : repeat(call, 2, options | WNOHANG, 0);
	if (options & WNOHANG)
		return turn_through(call);
	/* 0 says that there was a child, or none: only what is filled in tells. */
	for (;;) {
		siginfo_t own = { .si_pid = 0 };

		result = TURN_RAW(SYS_waitid, call->arguments[0], call->arguments[1], &own,
				  options | WNOHANG, call->arguments[4]);
		if (result || own.si_pid) {
			if (info)
				memcpy(info, &own, sizeof(own));
			return result;
		}
		if (turn_signal_interrupts(call))
			return -EINTR;
		turn_wait(TURN_DESCRIPTORS, TURN_NEVER);
	}
}
