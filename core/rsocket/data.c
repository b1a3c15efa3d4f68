/* SPDX-License-Identifier: BSD-2-Clause */
/* rsocket/data.c - the exported calls that send and receive: all are one with a struct msghdr. */
#include "config.h"
#include "rsocket.h"

#include <errno.h>

#include "core/base/export.h"
#include "core/base/why.h"

/* Has a call done what it was to do, with `num' bytes just now and `done' of `all' in total? */
static bool is_over(const struct rsocket *rs, bool sending, int flags, ssize_t num, size_t done,
		    size_t all)
{
	if (num < 0)
		return num != -EAGAIN;
	if (!num || done == all || rs->kind == RSOCKET_DGRAM)
		return true;
	return !sending && (!(flags & MSG_WAITALL) || flags & MSG_PEEK);
}

/* While it waits, and only then, the rsocket is not locked. */
static ssize_t transfer(struct rsocket *rs, bool sending, struct msghdr *msg, int flags)
{
	struct rsocket_patience patience =
		rsocket_patience(sending ? rs->send_timeout_ns : rs->receive_timeout_ns);
	ssize_t num, all = rsocket_msg_len(msg);
	size_t done = 0;

	if (all < 0)
		return all;
	for (;;) {
		rs->ops->advance(rs);
		num = sending ? rs->ops->send(rs, msg, done, flags)
			      : rs->ops->receive(rs, msg, done, flags);
		done += num > 0 ? (size_t)num : 0;
		if (is_over(rs, sending, flags, num, done, (size_t)all))
			break;
		if (num > 0) {
			patience.began_ns = 0;
			continue;
		}
		if (!rsocket_waits(rs, flags)) {
			if (rsocket_should_collect(rs))
				rs->ops->collect(rs);
			break;
		}
		num = rsocket_wait(rs, &patience);
		if (num)
			break;
	}
	/* A datagram may be empty. */
	return done || num >= 0 ? (ssize_t)done : num;
}

static ssize_t call(const char *name, int fd, bool sending, struct msghdr *msg, int flags)
{
	struct rsocket *rs;
	ssize_t num;
	int err;

	rs = rsocket_enter(fd, &err);
	if (!rs)
		return rsocket_ret(name, err);
	if (sending && msg->msg_control && msg->msg_controllen) {
		num = polycm_fail(-EOPNOTSUPP, "there is no control data");
	} else {
		msg->msg_controllen = 0;
		num = transfer(rs, sending, msg, flags);
		/* A stream's bytes are of its peer; a datagram has its sender's name by now. */
		if (!sending && num > 0 && msg->msg_name && rs->kind == RSOCKET_STREAM)
			(void)rs->ops->get_name(rs, true, msg->msg_name, &msg->msg_namelen);
	}
	rsocket_leave(rs);
	return rsocket_ret(name, num);
}

static ssize_t call_flat(const char *name, int fd, bool sending, const void *buf, size_t len, int flags)
{
	struct iovec vector = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	struct msghdr msg = { .msg_iov = &vector, .msg_iovlen = 1 };

	return call(name, fd, sending, &msg, flags);
}

static ssize_t call_vector(const char *name, int fd, bool sending, const struct iovec *vectors, int num)
{
	struct msghdr msg = {
		.msg_iov = (struct iovec *)(uintptr_t)vectors,
		.msg_iovlen = (size_t)num,
	};

	if (num < 0)
		return rsocket_ret(name, -EINVAL);
	return call(name, fd, sending, &msg, 0);
}

POLYCM_EXPORT ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	return call_flat(__func__, socket, true, buf, len, flags);
}

POLYCM_EXPORT ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return call_flat(__func__, socket, true, buf, count, 0);
}

POLYCM_EXPORT ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	return call_vector(__func__, socket, true, iov, iovcnt);
}

POLYCM_EXPORT ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
			      const struct sockaddr *dest_addr, socklen_t addrlen)
{
	struct iovec vector = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	struct msghdr msg = {
		.msg_name = (void *)(uintptr_t)dest_addr,
		.msg_namelen = addrlen,
		.msg_iov = &vector,
		.msg_iovlen = 1,
	};

	return call(__func__, socket, true, &msg, flags);
}

POLYCM_EXPORT ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	struct msghdr copy = *msg;

	return call(__func__, socket, true, &copy, flags);
}

POLYCM_EXPORT ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	return call_flat(__func__, socket, false, buf, len, flags);
}

POLYCM_EXPORT ssize_t rread(int socket, void *buf, size_t count)
{
	return call_flat(__func__, socket, false, buf, count, 0);
}

POLYCM_EXPORT ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	return call_vector(__func__, socket, false, iov, iovcnt);
}

POLYCM_EXPORT ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags,
				struct sockaddr *src_addr, socklen_t *addrlen)
{
	struct iovec vector = { .iov_base = buf, .iov_len = len };
	struct msghdr msg = {
		.msg_name = src_addr,
		.msg_namelen = src_addr && addrlen ? *addrlen : 0,
		.msg_iov = &vector,
		.msg_iovlen = 1,
	};
	ssize_t num = call(__func__, socket, false, &msg, flags);

	if (num >= 0 && src_addr && addrlen)
		*addrlen = msg.msg_namelen;
	return num;
}

POLYCM_EXPORT ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	msg->msg_flags = 0;
	return call(__func__, socket, false, msg, flags);
}
