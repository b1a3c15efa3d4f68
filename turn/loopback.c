/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/loopback.c - see loopback.h. */
#include "config.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "carried.h"
#include "descriptors.h"
#include "hand.h"
#include "loopback.h"
#include "pointers.h"
#include "raw.h"
#include "settle.h"
#include "tcp.h"

#define LEAST_READ 4096
/*
 * How much of a long message the kernel takes depends on which acknowledgements came meanwhile.  A
 * part of this size is one packet, and is acknowledged before the next one is sent.
 */
#define PART 32768u
#define MOST_PARTS 64u
/* What is about the message as a whole, or its end. */
#define WHOLE (MSG_OOB | MSG_MORE | MSG_ZEROCOPY | MSG_FASTOPEN)

void turn_loopback_settle(void)
{
	turn_settle_by(turn_raw);
}

static bool is_tcp(int fd)
{
	return turn_segment->uses_tcp && turn_tcp_is(fd);
}

/* What is not acknowledged may have been put off, or the acknowledgement. */
static void settle_sent(int fd)
{
	int num = 0;

	if (!TURN_RAW(SYS_ioctl, fd, SIOCOUTQ, &num) && num)
		turn_loopback_settle();
}

static void settle_connect(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	if (!TURN_RAW(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	    info.tcpi_state == TCP_SYN_SENT)
		turn_loopback_settle();
}

/* ------------------------------------------------------------------------
 * Long messages.
 */

/* What there is to send; false: one call sends it. */
static bool has_parts(const struct turn_call *call, struct iovec *one, struct msghdr *ret,
		      unsigned int *ret_flags)
{
	*one = (struct iovec){ (void *)call->arguments[1], (size_t)call->arguments[2] };
	*ret = (struct msghdr){ .msg_iov = one, .msg_iovlen = 1 };
	*ret_flags = 0;
	switch (call->number) {
	case SYS_write:
		break;
	case SYS_sendto:
		*ret_flags = (unsigned int)call->arguments[3];
		if (call->arguments[4])
			return false;
		break;
	case SYS_writev:
		ret->msg_iov = (struct iovec *)call->arguments[1];
		ret->msg_iovlen = (size_t)call->arguments[2];
		break;
	case SYS_sendmsg:
		*ret_flags = (unsigned int)call->arguments[2];
		if (!turn_can_read((const void *)call->arguments[1], sizeof(*ret)))
			return false;
		*ret = *(const struct msghdr *)call->arguments[1];
		if (ret->msg_name || ret->msg_controllen)
			return false;
		break;
	default:
		return false;
	}
	return !(*ret_flags & WHOLE) && ret->msg_iovlen <= UIO_MAXIOV &&
	       turn_can_read(ret->msg_iov, ret->msg_iovlen * sizeof(*ret->msg_iov));
}

/* From that place on, at most a part; their number, and *ret_len bytes. */
static size_t take_part(const struct msghdr *message, size_t from, struct iovec parts[MOST_PARTS],
			size_t *ret_len)
{
	size_t num = 0, len = 0;

	for (size_t i = 0; i < message->msg_iovlen && num < MOST_PARTS && len < PART; i++) {
		struct iovec part = message->msg_iov[i];

		if (from >= part.iov_len) {
			from -= part.iov_len;
			continue;
		}
		part.iov_base = (char *)part.iov_base + from;
		part.iov_len -= from;
		from = 0;
		if (part.iov_len > PART - len)
			part.iov_len = PART - len;
		len += part.iov_len;
		parts[num++] = part;
	}
	*ret_len = len;
	return num;
}

static long send_parts(const struct turn_call *call)
{
	const int fd = (int)call->arguments[0];
	struct iovec one, parts[MOST_PARTS];
	struct msghdr message, part = { .msg_iov = parts };
	unsigned int flags;
	size_t sum = 0, len;
	long result;

	if (!has_parts(call, &one, &message, &flags)) {
		result = turn_through(call);
		settle_sent(fd);
		return result;
	}
	for (;;) {
		part.msg_iovlen = take_part(&message, sum, parts, &len);
		/* Also one of no length, which may have an error. */
		if (!len && sum)
			return (long)sum;
		/* An error that comes meanwhile is the next call's, as is its signal. */
		if (sum && turn_has_failed(fd))
			return (long)sum;
		result = TURN_RAW(SYS_sendmsg, fd, &part, flags | (sum ? MSG_NOSIGNAL : 0));
		if (result < 0)
			return sum ? (long)sum : result;
		settle_sent(fd);
		sum += (size_t)result;
		if ((size_t)result < len || !len)
			return (long)sum;
	}
}

/* ------------------------------------------------------------------------
 * Calls.
 */

long turn_now(const struct turn_call *call)
{
	const int fd = (int)call->arguments[0];
	long result;

	switch (call->number) {
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
		return is_tcp(fd) ? send_parts(call) : turn_through(call);
	case SYS_connect:
		result = turn_through(call);
		if (is_tcp(fd))
			settle_connect(fd);
		return result;
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
		result = turn_through(call);
		if (result >= LEAST_READ && is_tcp(fd))
			turn_loopback_settle();
		return result;
	}
	return turn_through(call);
}

long turn_after_close(long result)
{
	if (turn_segment->uses_tcp)
		turn_loopback_settle();
	turn_changed();
	return result;
}

long turn_shutdown(const struct turn_call *call)
{
	const long result = turn_carried_shut_down(call) ? 0 : turn_through(call);

	if (is_tcp((int)call->arguments[0]))
		turn_loopback_settle();
	turn_changed();
	return result;
}

long turn_close(const struct turn_call *call)
{
	const bool was_tcp = is_tcp((int)call->arguments[0]);
	const long result = turn_through(call);

	if (was_tcp)
		return turn_after_close(result);
	turn_changed();
	return result;
}
