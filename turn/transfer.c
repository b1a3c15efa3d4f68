/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/transfer.c - reads and writes.  On a blocking stream or pipe the kernel does not return before
 * all is written; here each part is written without waiting, and others go on between them.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "calls.h"
#include "carried.h"
#include "clock.h"
#include "descriptors.h"
#include "hand.h"
#include "loopback.h"
#include "order.h"
#include "pointers.h"
#include "ports.h"
#include "raw.h"
#include "several.h"
#include "shown.h"
#include "signals.h"
#include "tcp.h"
#include "terminals.h"
#include "timer_fds.h"
#include "traces.h"

static unsigned int flags_of_message(const struct turn_call *call)
{
	switch (call->number) {
	case SYS_recvfrom:
	case SYS_sendto:
	case SYS_sendmmsg:
	case SYS_recvmmsg:
		return (unsigned int)call->arguments[3];
	case SYS_recvmsg:
	case SYS_sendmsg:
		return (unsigned int)call->arguments[2];
	}
	return 0;
}

static bool may_not_wait(const struct turn_call *call)
{
	if (call->number == SYS_preadv2 || call->number == SYS_pwritev2)
		return call->arguments[5] & RWF_NOWAIT;
	return flags_of_message(call) & MSG_DONTWAIT;
}

#define MOST_PARTS 64u
#define MOST_GIVEN 1024u	/* as the kernel has it */
#define ENDS_ALIKE 64u		/* after so many in a row others go on */

/* The rest of a list of parts. */
struct rest {
	const struct iovec *parts;
	size_t num;
	size_t skip;		/* of the first */
};

static size_t length_of(const struct rest *rest)
{
	size_t len = 0;

	for (size_t i = 0; i < rest->num; i++)
		len += rest->parts[i].iov_len;
	return len - (rest->num ? rest->skip : 0);
}

/* Some of it, for one call; their number. */
static size_t window(const struct rest *rest, struct iovec parts[MOST_PARTS])
{
	size_t num = rest->num < MOST_PARTS ? rest->num : MOST_PARTS;

	memcpy(parts, rest->parts, num * sizeof(*parts));
	if (num) {
		parts[0].iov_base = (char *)parts[0].iov_base + rest->skip;
		parts[0].iov_len -= rest->skip;
	}
	return num;
}

static void advance(struct rest *rest, size_t done)
{
	rest->skip += done;
	while (rest->num && rest->skip >= rest->parts->iov_len) {
		rest->skip -= rest->parts->iov_len;
		rest->parts++;
		rest->num--;
	}
}

/* All of it, and its length; or as far as it came, or why nothing did. */
static long write_all(const struct turn_call *call, int fd, struct rest rest)
{
	struct turn_call part = { .number = SYS_writev, .arguments = { fd }, .context = call->context };
	struct iovec parts[MOST_PARTS];
	long sum = 0, result;

	do {
		part.arguments[2] = (long)window(&rest, parts);
		part.arguments[1] = (long)parts;
		result = (sum ? turn_rest_without_waiting : turn_without_waiting)(&part, fd, POLLOUT,
										  SO_SNDTIMEO);
		if (result <= 0)
			return sum ? sum : result;
		sum += result;
		advance(&rest, (size_t)result);
		turn_changed();
	} while (rest.num);
	return sum;
}

/* What recvmsg() says of the message besides what is in it: of its first part. */
static long give_back(const struct turn_call *call, const struct msghdr *message)
{
	struct msghdr *given = (struct msghdr *)call->arguments[1], is;

	if (call->number != SYS_recvmsg)
		return 0;
	is = *given;
	is.msg_namelen = message->msg_namelen;
	is.msg_controllen = message->msg_controllen;
	is.msg_flags = message->msg_flags;
	return turn_give(given, &is, sizeof(is));
}

/* sendto() and sendmsg(), recvfrom() and recvmsg() with MSG_WAITALL: the same with a message. */
static long move_all(const struct turn_call *call, int fd, struct msghdr *message, bool sends)
{
	struct rest rest = { .parts = message->msg_iov, .num = message->msg_iovlen };
	struct turn_call part = {
		.number = sends ? SYS_sendmsg : SYS_recvmsg,
		.arguments = { fd, (long)message,
			       flags_of_message(call) & ~(unsigned int)MSG_WAITALL },
		.context = call->context,
	};
	struct iovec parts[MOST_PARTS];
	long sum = 0, result;

	do {
		message->msg_iovlen = window(&rest, parts);
		message->msg_iov = parts;
		if (sum && sends)
			result = turn_rest_without_waiting(&part, fd, POLLOUT, SO_SNDTIMEO);
		else
			result = turn_without_waiting(&part, fd, sends ? POLLOUT : POLLIN,
						      sends ? SO_SNDTIMEO : SO_RCVTIMEO);
		if (result < 0)
			return sum ? sum : result;
		if (!sum && give_back(call, message))
			return -EFAULT;
		sum += result;
		if (!result)
			break;
		advance(&rest, (size_t)result);
		/* Descriptors and addresses went with the first part. */
		message->msg_control = NULL;
		message->msg_controllen = 0;
		message->msg_name = NULL;
		message->msg_namelen = 0;
		turn_changed();
	} while (rest.num);
	return sum;
}

static int type_of(int fd)
{
	int type = 0;
	socklen_t len = sizeof(type);

	return TURN_RAW(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &len) ? 0 : type;
}

static bool is_stream(int fd)
{
	return type_of(fd) == SOCK_STREAM;
}

static bool is_pipe_or_stream(int fd)
{
	struct stat st;

	if (TURN_RAW(SYS_fstat, fd, &st))
		return false;
	return S_ISFIFO(st.st_mode) || (S_ISSOCK(st.st_mode) && is_stream(fd));
}

/* All of a message, or of what is no message as the only part of one. */
static long move_message(const struct turn_call *call, int fd, bool sends)
{
	const long *arguments = call->arguments;
	struct iovec part = { (void *)arguments[1], (size_t)arguments[2] };
	struct msghdr own = { .msg_iov = &part, .msg_iovlen = 1 };

	if (call->number == SYS_recvmsg || call->number == SYS_sendmsg) {
		own = *(const struct msghdr *)arguments[1];
		if (own.msg_iovlen > MOST_GIVEN)
			return -EMSGSIZE;
		if (!turn_can_read(own.msg_iov, own.msg_iovlen * sizeof(*own.msg_iov)))
			return -EFAULT;
	} else if (sends) {
		own.msg_name = (void *)arguments[4];
		own.msg_namelen = (socklen_t)arguments[5];
	}
	return move_all(call, fd, &own, sends);
}

static long wait_and_write(const struct turn_call *call, int fd)
{
	const struct iovec part = { (void *)call->arguments[1], (size_t)call->arguments[2] };
	struct rest rest = { .parts = &part, .num = 1 };

	/* Too many, or not there: the kernel says so. */
	if (call->number != SYS_write &&
	    ((unsigned long)call->arguments[2] > MOST_GIVEN ||
	     !turn_can_read((const void *)call->arguments[1],
			    (size_t)call->arguments[2] * sizeof(part))))
		return turn_now(call);
	if (call->number != SYS_write)
		rest = (struct rest){ .parts = (const struct iovec *)call->arguments[1],
				      .num = (size_t)call->arguments[2] };
	if (length_of(&rest) > PIPE_BUF && is_pipe_or_stream(fd))
		return write_all(call, fd, rest);
	return turn_is_ready(fd, POLLOUT) ? turn_now(call) :
				       turn_without_waiting(call, fd, POLLOUT, SO_SNDTIMEO);
}

/* TCP would wait until all is there, of which it takes nothing; other streams do not wait for more. */
static long peek_all(const struct turn_call *call, int fd)
{
	const bool is_recvmsg = call->number == SYS_recvmsg;
	const struct msghdr *message = (const struct msghdr *)call->arguments[1];
	const uint64_t deadline = turn_limit_of(fd, SO_RCVTIMEO);
	struct turn_call now = *call;
	size_t len = (size_t)call->arguments[2];
	long interrupted;
	int num = 0;

	if (is_recvmsg) {
		const struct rest rest = { .parts = message->msg_iov, .num = message->msg_iovlen };

		if (rest.num > MOST_GIVEN)
			return -EMSGSIZE;
		if (!turn_can_read(rest.parts, rest.num * sizeof(*rest.parts)))
			return -EFAULT;
		len = length_of(&rest);
	}
	while (!TURN_RAW(SYS_ioctl, fd, FIONREAD, &num) && (size_t)num < len &&
	       !turn_is_ready(fd, POLLRDHUP)) {
		interrupted = turn_signal_result(call, deadline == TURN_NEVER);
		if (interrupted && !num)
			return interrupted;
		if (interrupted || turn_order_passed(turn_segment, deadline))
			break;
		turn_wait(TURN_DESCRIPTORS, deadline);
	}
	now.arguments[is_recvmsg ? 2 : 3] |= MSG_DONTWAIT;
	return turn_through(&now);
}

static bool is_end(const struct turn_call *call)
{
	const int type = type_of((int)call->arguments[0]);

	if ((call->number == SYS_read || call->number == SYS_recvfrom) && !call->arguments[2])
		return false;
	return call->number != SYS_accept && call->number != SYS_accept4 &&
	       (!type || type == SOCK_STREAM);
}

/* The end of a stream brings nothing, however often it is read, and however ready it is. */
static long taken(const struct turn_call *call, long result)
{
	struct turn_thread *self = turn_self();

	if (result || !is_end(call)) {
		self->ends = 0;
		return turn_done(result);
	}
	turn_changed();
	if (++self->ends % ENDS_ALIKE == 0) {
		self->yields = self->ends / ENDS_ALIKE;
		turn_clock_yield();
	}
	return 0;
}

/* On a descriptor that may wait.  is_rest: of several messages. */
static long receive(const struct turn_call *call, int fd, bool is_rest)
{
	const bool is_message = call->number == SYS_recvmsg || call->number == SYS_recvfrom;

	if (is_rest && turn_rest_is_over(fd, POLLIN))
		return 0;
	if (may_not_wait(call))
		return turn_now(call);
	if (is_message && flags_of_message(call) & MSG_WAITALL && is_stream(fd)) {
		if (!(flags_of_message(call) & MSG_PEEK))
			return move_message(call, fd, false);
		if (turn_tcp_is(fd))
			return peek_all(call, fd);
	}
	/* What is there is taken at once. */
	if (turn_is_ready(fd, POLLIN))
		return turn_now(call);
	return (is_rest ? turn_rest_without_waiting : turn_without_waiting)(call, fd, POLLIN,
									    SO_RCVTIMEO);
}

static long take_in(const struct turn_call *call)
{
	const int fd = (int)call->arguments[0];
	long result = turn_carried_before_data(call, may_not_wait(call));

	if (result)
		return result;
	if (may_not_wait(call) || !turn_may_wait(fd))
		return taken(call, turn_now(call));
	if (call->number == SYS_recvmmsg)
		return taken(call, turn_several_receive(call, receive));
	result = receive(call, fd, false);
	/* Only a terminal has such a limit and is no socket. */
	return taken(call, result == -EAGAIN && !type_of(fd) ? 0 : result);
}

/* NULL: the call names none. */
static const struct sockaddr *receiver_of(const struct turn_call *call, socklen_t *ret_len)
{
	const struct msghdr *message = NULL;

	if (call->number == SYS_sendto) {
		*ret_len = (socklen_t)call->arguments[5];
		return (const struct sockaddr *)call->arguments[4];
	}
	if (call->number == SYS_sendmsg)
		message = (const struct msghdr *)call->arguments[1];
	/* Of the first one. */
	else if (call->number == SYS_sendmmsg && call->arguments[2] &&
		 turn_can_read((const void *)call->arguments[1], sizeof(struct mmsghdr)))
		message = &((const struct mmsghdr *)call->arguments[1])->msg_hdr;
	*ret_len = message ? message->msg_namelen : 0;
	return message ? message->msg_name : NULL;
}

/* Nobody waits for it but who watches files; only that is a change. */
long turn_file(const struct turn_call *call)
{
	const bool appends = call->number == SYS_write || call->number == SYS_writev;
	const bool writes = appends || call->number == SYS_pwrite64 || call->number == SYS_pwritev;
	long result = turn_through(call);

	if (appends && result > 0)
		turn_shown((int)call->arguments[0], (uint64_t)result);
	if (writes && result > 0)
		turn_calls_wrote();
	if (writes && turn_segment->watches_files)
		turn_changed();
	return result;
}

/* On a descriptor that may wait.  is_rest: of several messages. */
static long send_one(const struct turn_call *call, int fd, bool is_rest)
{
	if (is_stream(fd))
		return is_rest && turn_rest_is_over(fd, POLLOUT) ? 0 : move_message(call, fd, true);
	return (is_rest ? turn_rest_without_waiting : turn_without_waiting)(call, fd, POLLOUT,
									    SO_SNDTIMEO);
}

static long send_datagram(const struct turn_call *call, int fd, const struct sockaddr *to, socklen_t len)
{
	const bool waits = !may_not_wait(call) && turn_may_wait(fd);
	/* Others are not to see it connected, while it waits for room; but Linux has room. */
	const bool goes = !waits || turn_is_ready(fd, POLLOUT);
	const bool is_connected = turn_ports_before_send(fd, goes ? to : NULL, len);
	long result;

	if (waits && !is_connected)
		return call->number == SYS_sendmmsg ? turn_several_send(call, send_one) :
		       turn_without_waiting(call, fd, POLLOUT, SO_SNDTIMEO);
	result = turn_now(call);
	if (is_connected)
		turn_ports_after_send(fd);
	return result;
}

static long put_out(const struct turn_call *call)
{
	const int fd = (int)call->arguments[0];
	const bool is_message = call->number == SYS_sendmsg || call->number == SYS_sendto;
	socklen_t len;
	const struct sockaddr *to = receiver_of(call, &len);
	long result;

	result = turn_carried_before_data(call, may_not_wait(call));
	if (result)
		return result;
	turn_traces_before_send(call);
	/* It gives the socket a port. */
	if (to && type_of(fd) != SOCK_DGRAM)
		turn_ports_before_send(fd, NULL, 0);
	if (to && type_of(fd) == SOCK_DGRAM)
		result = send_datagram(call, fd, to, len);
	else if (may_not_wait(call) || !turn_may_wait(fd))
		result = turn_now(call);
	else if (call->number == SYS_sendmmsg)
		result = turn_several_send(call, send_one);
	else if (is_message)
		result = send_one(call, fd, false);
	else
		result = wait_and_write(call, fd);
	if (result > 0 && (call->number == SYS_write || call->number == SYS_writev ||
			   call->number == SYS_pwritev2))
		turn_shown(fd, (uint64_t)result);
	if (result > 0)
		turn_terminals_settle(fd);
	return turn_done(result);
}

/* Some may have come with a message. */
static void note_descriptors(const struct turn_call *call)
{
	if (call->number == SYS_recvmmsg ||
	    (call->number == SYS_recvmsg &&
	     ((const struct msghdr *)call->arguments[1])->msg_controllen))
		turn_timer_fds_find();
}

long turn_input(const struct turn_call *call)
{
	long result = take_in(call);

	result = turn_terminals_read_rest(call, result);
	if (result >= 0)
		note_descriptors(call);

	if (result == -EIO)
		result = turn_signal_read_behind(call, (int)call->arguments[0]);
	return turn_carried_error((int)call->arguments[0], result);
}

long turn_output(const struct turn_call *call)
{
	return turn_carried_error((int)call->arguments[0], put_out(call));
}
