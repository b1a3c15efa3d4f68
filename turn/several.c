/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/several.c - see several.h. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "clock.h"
#include "descriptors.h"
#include "hand.h"
#include "order.h"
#include "pointers.h"
#include "raw.h"
#include "several.h"

#define MOST_SENT 1024u		/* as the kernel has it */

static long one(const struct turn_call *call, struct mmsghdr *message, unsigned int flags, bool is_rest,
		turn_one_fn *move)
{
	const bool receives = call->number == SYS_recvmmsg;
	const int fd = (int)call->arguments[0];
	const struct turn_call part = {
		.number = receives ? SYS_recvmsg : SYS_sendmsg,
		.arguments = { fd, (long)&message->msg_hdr, flags },
		.context = call->context,
	};
	unsigned int len;
	long result;

	if (!turn_can_read(message, sizeof(*message)))
		return -EFAULT;
	result = move(&part, fd, is_rest);
	if (result < 0)
		return result;
	if (!result && is_rest && turn_rest_is_over(fd, receives ? POLLIN : POLLOUT))
		return -EAGAIN;
	/* Others may wait for it, or for the room, while this one waits for the next. */
	turn_changed();
	len = (unsigned int)result;
	return turn_give(&message->msg_len, &len, sizeof(len));
}

/* What is left of a time-out, which the kernel says only if something came. */
static long give_left(struct timespec *ret_left, uint64_t deadline)
{
	const uint64_t now = turn_segment->now, ns = deadline > now ? deadline - now : 0;
	const struct timespec left = { (time_t)(ns / TURN_SECOND), (long)(ns % TURN_SECOND) };

	return turn_give(ret_left, &left, sizeof(left));
}

/* Why the socket failed is told before what came.  0, or a negative error. */
static long take_error(const struct turn_call *call)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (call->arguments[3] & MSG_ERRQUEUE ||
	    TURN_RAW(SYS_getsockopt, call->arguments[0], SOL_SOCKET, SO_ERROR, &error, &len))
		return 0;
	return -error;
}

/* The time-out ends nothing: it is looked at when a message has come. */
long turn_several_receive(const struct turn_call *call, turn_one_fn *receive)
{
	struct mmsghdr *messages = (struct mmsghdr *)call->arguments[1];
	struct timespec *limit = (struct timespec *)call->arguments[4];
	unsigned int flags = (unsigned int)call->arguments[3];
	const bool waits_for_one = flags & MSG_WAITFORONE;
	const uint64_t deadline = turn_clock_after(limit);
	const unsigned int num = (unsigned int)call->arguments[2];
	unsigned int done = 0;
	long err = take_error(call);

	if (err)
		return err;
	flags &= ~(unsigned int)MSG_WAITFORONE;
	while (done < num) {
		err = one(call, &messages[done], flags, done > 0, receive);
		if (err)
			break;
		if (waits_for_one)
			flags |= MSG_DONTWAIT;
		if (messages[done++].msg_hdr.msg_flags & MSG_OOB ||
		    turn_order_passed(turn_segment, deadline))
			break;
	}
	if (!done)
		return err;
	return give_left(limit, deadline) ? -EFAULT : (long)done;
}

/* Its time-out or a signal ended a send of a stream: the next message must not follow. */
static bool is_part(const struct mmsghdr *message)
{
	const struct iovec *parts = message->msg_hdr.msg_iov;
	const size_t num = message->msg_hdr.msg_iovlen;
	size_t len = 0;

	if (!turn_can_read(parts, num * sizeof(*parts)))
		return true;
	for (size_t i = 0; i < num; i++)
		len += parts[i].iov_len;
	return message->msg_len < len;
}

long turn_several_send(const struct turn_call *call, turn_one_fn *send)
{
	struct mmsghdr *messages = (struct mmsghdr *)call->arguments[1];
	unsigned int num = (unsigned int)call->arguments[2], done = 0;
	long err = 0;

	if (num > MOST_SENT)
		num = MOST_SENT;
	while (done < num) {
		err = one(call, &messages[done], (unsigned int)call->arguments[3], done > 0, send);
		if (err || is_part(&messages[done++]))
			break;
	}
	return done ? (long)done : err;
}
