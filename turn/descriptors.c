/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/descriptors.c - see descriptors.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <termios.h>

#include "carried.h"
#include "clock.h"
#include "descriptors.h"
#include "hand.h"
#include "loopback.h"
#include "order.h"
#include "pointers.h"
#include "ports.h"
#include "raw.h"
#include "signals.h"


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
long turn_done(long result)
{
	turn_changed();
	if (result >= 0)
		turn_progress();
	else if (result == -EAGAIN)
		turn_clock_yield();
	return result;
}

/* ------------------------------------------------------------------------
 * One descriptor.
 */

static long flags_of(int fd)
{
	return TURN_RAW(SYS_fcntl, fd, F_GETFL);
}

bool turn_is_ready(int fd, short events)
{
	struct pollfd ask = { .fd = fd, .events = events };
	struct timespec now = { 0 };

	return TURN_RAW(SYS_ppoll, &ask, 1, &now, NULL, TURN_SIGSET_SIZE) != 0;
}

/* The end of a stream is something to receive. */
bool turn_rest_is_over(int fd, short events)
{
	struct pollfd ask = { .fd = fd };
	struct timespec now = { 0 };

	return TURN_RAW(SYS_ppoll, &ask, 1, &now, NULL, TURN_SIGSET_SIZE) == 1 &&
	       ask.revents & (events & POLLOUT ? POLLERR | POLLHUP : POLLERR);
}

bool turn_has_failed(int fd)
{
	return turn_rest_is_over(fd, POLLOUT);
}

/* A read of a terminal that has no lines is content with nothing after some tenths of a second. */
static uint64_t limit_of_terminal(int fd)
{
	struct turn_terminal { uint32_t flags[4]; uint8_t line, characters[19]; } is;

	if (TURN_RAW(SYS_ioctl, fd, TCGETS, &is) || is.flags[3] & ICANON || is.characters[VMIN] ||
	    !is.characters[VTIME])
		return TURN_NEVER;
	return turn_clock_after_ns(is.characters[VTIME] * (TURN_SECOND / 10));
}

uint64_t turn_limit_of(int fd, int option)
{
	struct timeval limit = { 0 };
	socklen_t len = sizeof(limit);
	long err = TURN_RAW(SYS_getsockopt, fd, SOL_SOCKET, option, &limit, &len);

	if (err == -ENOTSOCK && option == SO_RCVTIMEO)
		return limit_of_terminal(fd);
	if (err < 0 || (!limit.tv_sec && !limit.tv_usec))
		return TURN_NEVER;
	return turn_clock_after_ns((uint64_t)limit.tv_sec * TURN_SECOND +
				   (uint64_t)limit.tv_usec * 1000);
}

/*
 * The call with the descriptor non-blocking for its time: nobody else has the turn meanwhile.
 * As often as it takes, for calls that the kernel would not end before they have waited.
 */
static long until(const struct turn_call *call, int fd, short events, uint64_t deadline,
		  bool can_restart, bool is_rest)
{
	const long flags = flags_of(fd);
	long result, interrupted;

	for (;;) {
		if (is_rest && turn_rest_is_over(fd, events))
			return 0;
		TURN_RAW(SYS_fcntl, fd, F_SETFL, flags | O_NONBLOCK);
		result = turn_now(call);
		TURN_RAW(SYS_fcntl, fd, F_SETFL, flags);
		if (result != -EAGAIN)
			return result;
		interrupted = turn_signal_result(call, can_restart);
		if (interrupted)
			return interrupted;
		/* Room that is not enough for this call is no reason to ask at once. */
		if (turn_order_passed(turn_segment, deadline))
			return -EAGAIN;
		if (turn_is_ready(fd, events))
			turn_clock_yield();
		else
			turn_wait(TURN_DESCRIPTORS, deadline);
	}
}

bool turn_descriptor_info(int fd, char *lines, size_t size)
{
	char path[64] = "/proc/self/fdinfo/", digits[16];
	size_t len = strlen(path), num = 0;
	long info, got;

	if (fd < 0)
		return false;
	for (unsigned int rest = (unsigned int)fd; !num || rest; rest /= 10)
		digits[num++] = (char)('0' + rest % 10);
	while (num)
		path[len++] = digits[--num];
	info = TURN_RAW(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return false;
	got = TURN_RAW(SYS_read, info, lines, size - 1);
	TURN_RAW(SYS_close, info);
	lines[got > 0 ? got : 0] = '\0';
	return true;
}

/* Behind "name:" at the begin of a line; the first line is another one's. */
static const char *behind_name(const char *lines, const char *name)
{
	const size_t len = strlen(name);

	while ((lines = strchr(lines, '\n')))
		if (!strncmp(++lines, name, len) && lines[len] == ':')
			return lines + len + 1;
	return NULL;
}

const char *turn_descriptor_number(const char *lines, const char *name, uint64_t *ret)
{
	const char *at = behind_name(lines, name);

	if (!at)
		return NULL;
	at += strspn(at, " \t");
	if (*at < '0' || *at > '9')
		return NULL;
	for (*ret = 0; *at >= '0' && *at <= '9'; at++)
		*ret = *ret * 10 + (uint64_t)(*at - '0');
	return at;
}

bool turn_may_wait(int fd)
{
	const long flags = flags_of(fd);

	return flags >= 0 && !(flags & O_NONBLOCK);
}

long turn_without_waiting(const struct turn_call *call, int fd, short events, int option)
{
	uint64_t deadline;

	if (!turn_may_wait(fd))
		return turn_now(call);
	deadline = turn_limit_of(fd, option);
	return until(call, fd, events, deadline, deadline == TURN_NEVER, false);
}

long turn_rest_without_waiting(const struct turn_call *call, int fd, short events, int option)
{
	uint64_t deadline;

	if (!turn_may_wait(fd))
		return turn_rest_is_over(fd, events) ? 0 : turn_now(call);
	deadline = turn_limit_of(fd, option);
	return until(call, fd, events, deadline, deadline == TURN_NEVER, true);
}

/* A queue of POSIX messages is a descriptor. */
long turn_queue(const struct turn_call *call)
{
	const int fd = (int)call->arguments[0];
	const short events = call->number == SYS_mq_timedsend ? POLLOUT : POLLIN;
	long result;

	if (!turn_may_wait(fd))
		return turn_done(turn_through(call));
	result = until(call, fd, events, turn_clock_at(CLOCK_REALTIME, (const struct timespec *)
						       call->arguments[4]), true, false);
	return result == -EAGAIN ? -ETIMEDOUT : turn_done(result);
}

/*
 * A FIFO: the kernel would wait for the other end.  A writer asks again until there is a reader; a
 * reader is there at once, and then waits until somebody has written or could.
 */
long turn_open_fifo(const struct turn_call *call, unsigned int flags_at)
{
	const long flags = call->arguments[flags_at];
	long fd, interrupted, num;
	char byte;

	for (;;) {
		fd = with(call, flags_at, flags | O_NONBLOCK);
		turn_changed();
		if (fd != -ENXIO)
			break;
		interrupted = turn_signal_result(call, true);
		if (interrupted)
			return interrupted;
		turn_wait(TURN_DESCRIPTORS, TURN_NEVER);
	}
	if (fd < 0)
		return fd;
	while ((flags & O_ACCMODE) == O_RDONLY && !turn_is_ready((int)fd, POLLIN)) {
		num = TURN_RAW(SYS_read, fd, &byte, 1);	/* 0: nobody writes; there is nothing to lose */
		if (num == -EAGAIN)
			break;
		interrupted = turn_signal_result(call, true);
		if (interrupted) {
			TURN_RAW(SYS_close, fd);
			return interrupted;
		}
		turn_wait(TURN_DESCRIPTORS, TURN_NEVER);
	}
	TURN_RAW(SYS_fcntl, fd, F_SETFL, flags & ~(long)O_NONBLOCK);
	return fd;
}

static bool has_failed(long result)
{
	switch (result) {
	case -EINPROGRESS:
	case -EALREADY:
	case -EISCONN:
	case -EINTR:
	case TURN_RESTART:
		return false;
	}
	return result < 0;
}

/*
 * The kernel goes on with a connection; made again, the call has its result, which a blocking one
 * would have had, and leaves the socket as that does.
 */
long turn_connect(const struct turn_call *call)
{
	const int fd = (int)call->arguments[0];
	const uint64_t deadline = turn_may_wait(fd) ? turn_limit_of(fd, SO_SNDTIMEO) : 0;
	struct turn_source source;
	long result, interrupted;

	if (turn_carried_is(fd, (const struct sockaddr *)call->arguments[1],
			    (socklen_t)call->arguments[2]))
		return turn_carried_connect(call);
	turn_ports_before_connect(fd, (const struct sockaddr *)call->arguments[1],
				  (socklen_t)call->arguments[2], &source);
	for (;;) {
		do {
			result = turn_without_waiting(call, fd, POLLOUT, SO_SNDTIMEO);
		} while (turn_ports_try_next(&source, result));
		turn_changed();
		if (has_failed(result))
			turn_ports_connect_failed(&source);
		if ((result != -EINPROGRESS && result != -EALREADY) || !turn_may_wait(fd))
			return result;
		while (!turn_is_ready(fd, POLLOUT)) {
			interrupted = turn_signal_result(call, deadline == TURN_NEVER);
			if (interrupted)
				return interrupted;
			if (turn_order_passed(turn_segment, deadline))
				return -EINPROGRESS;
			turn_wait(TURN_DESCRIPTORS, deadline);
		}
	}
}

/* ------------------------------------------------------------------------
 * Locks of files, and children.
 */

/* Until the call, as one that does not wait, has another result than this one. */
static long repeat(const struct turn_call *call, unsigned int argument, long value, long in_vain,
		   bool can_restart)
{
	long result, interrupted;

	for (;;) {
		result = with(call, argument, value);
		if (result != in_vain)
			return result;
		interrupted = turn_signal_result(call, can_restart);
		if (interrupted)
			return interrupted;
		turn_wait(TURN_DESCRIPTORS, TURN_NEVER);
	}
}

/* Does that process, or one for which it waits, wait for this one? */
static bool waits_for_own(int32_t pid)
{
	for (uint32_t steps = 0; pid && steps < TURN_MAX_MEMBERS; steps++) {
		int32_t next = 0;

		if (pid == turn_segment->members[turn_member].pid)
			return true;
		for (uint32_t i = 0; i < turn_segment->num_members; i++)
			if (turn_is_alive(&turn_segment->members[i]) &&
			    turn_segment->members[i].pid == pid)
				next = turn_segment->members[i].locked_by;
		pid = next;
	}
	return false;
}

/* F_SETLKW: the kernel finds processes that wait for each other's locks. */
static long lock_of_process(const struct turn_call *call)
{
	int32_t *locked_by = &turn_segment->members[turn_member].locked_by;
	struct flock other;
	long result, interrupted;

	for (;;) {
		result = with(call, 1, F_SETLK);
		if (result != -EAGAIN)
			return result;
		other = *(const struct flock *)call->arguments[2];
		if (!TURN_RAW(SYS_fcntl, call->arguments[0], F_GETLK, &other) &&
		    other.l_type != F_UNLCK && waits_for_own(other.l_pid))
			return -EDEADLK;
		interrupted = turn_signal_result(call, true);
		if (interrupted)
			return interrupted;
		*locked_by = other.l_type == F_UNLCK ? 0 : other.l_pid;
		turn_wait(TURN_DESCRIPTORS, TURN_NEVER);
		*locked_by = 0;
	}
}

long turn_lock(const struct turn_call *call)
{
	const long how = call->arguments[1];

	turn_changed();
	if (call->number == SYS_flock && !(how & (LOCK_NB | LOCK_UN)))
		return repeat(call, 1, how | LOCK_NB, -EAGAIN, true);
	if (call->number == SYS_fcntl && how == F_SETLKW)
		return lock_of_process(call);
	if (call->number == SYS_fcntl && how == F_OFD_SETLKW)
		return repeat(call, 1, F_OFD_SETLK, -EAGAIN, true);
	return turn_through(call);
}

#define MOST_SEMAPHORES 64u

static long change_semaphores(const struct turn_call *call)
{
	const struct sembuf *given = (const struct sembuf *)call->arguments[1];
	const size_t num = (size_t)call->arguments[2];
	const uint64_t deadline = call->number == SYS_semop ? TURN_NEVER :
		turn_clock_after((const struct timespec *)call->arguments[3]);
	struct sembuf all[MOST_SEMAPHORES];
	long result;
	bool waits_for_it = true;

	if (num > MOST_SEMAPHORES)
		return -E2BIG;
	if (!turn_can_read(given, num * sizeof(*given)))
		return -EFAULT;
	for (size_t i = 0; i < num; i++) {
		all[i] = given[i];
		waits_for_it = waits_for_it && !(all[i].sem_flg & IPC_NOWAIT);
		all[i].sem_flg |= IPC_NOWAIT;
	}
	for (;;) {
		result = TURN_RAW(SYS_semop, call->arguments[0], all, num);
		if (result != -EAGAIN || !waits_for_it || turn_order_passed(turn_segment, deadline))
			return result;
		if (turn_signal_result(call, false))
			return -EINTR;
		turn_wait(TURN_DESCRIPTORS, deadline);
	}
}

long turn_ipc(const struct turn_call *call)
{
	const unsigned int at = call->number == SYS_msgsnd ? 3 : 4;
	const long flags = call->arguments[at], in_vain = call->number == SYS_msgsnd ? -EAGAIN : -ENOMSG;
	long result;

	if (call->number == SYS_semop || call->number == SYS_semtimedop)
		return turn_done(change_semaphores(call));
	if (flags & IPC_NOWAIT)
		return turn_done(turn_through(call));
	result = with(call, at, flags | IPC_NOWAIT);
	if (result != in_vain)
		return turn_done(result);
	result = repeat(call, at, flags | IPC_NOWAIT, in_vain, false);
	/* It was there before. */
	return turn_done(result == -EINVAL ? -EIDRM : result);
}

long turn_wait_child(const struct turn_call *call)
{
	const unsigned int argument = call->number == SYS_wait4 ? 2 : 3;
	const long options = call->arguments[argument];
	siginfo_t *info = (siginfo_t *)call->arguments[2];
	long result, interrupted;

	turn_changed();
	if (options & WNOHANG)
		return turn_through(call);
	if (call->number == SYS_wait4)
		return repeat(call, 2, options | WNOHANG, 0, true);
	/* 0 says that there was a child, or none: only what is filled in tells. */
	for (;;) {
		siginfo_t own = { .si_pid = 0 };

		result = TURN_RAW(SYS_waitid, call->arguments[0], call->arguments[1], &own,
				  options | WNOHANG, call->arguments[4]);
		if (result || own.si_pid)
			return turn_give(info, &own, sizeof(own)) ? -EFAULT : result;
		if (call->arguments[0] == P_PIDFD && !turn_may_wait((int)call->arguments[1]))
			return -EAGAIN;
		interrupted = turn_signal_result(call, true);
		if (interrupted)
			return interrupted;
		turn_wait(TURN_DESCRIPTORS, TURN_NEVER);
	}
}
