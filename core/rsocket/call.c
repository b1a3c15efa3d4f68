/* SPDX-License-Identifier: BSD-2-Clause */
/* rsocket/call.c - the exported calls on one rsocket, but for its options and maps. */
#include "config.h"
#include "rsocket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <unistd.h>

#include <infiniband/ib.h>

#include "core/base/addr.h"
#include "core/base/export.h"
#include "core/base/why.h"
#include "core/cm/ret.h"
#include "dgram.h"
#include "stream.h"

ssize_t rsocket_ret(const char *call, ssize_t value)
{
	if (value >= 0)
		return value;
	/* Under way: what a program that does not wait is told all the time. */
	if (value == -EINPROGRESS || value == -EAGAIN) {
		errno = (int)-value;
		return -1;
	}
	return polycm_ret(call, NULL, (int)value);
}

struct rsocket *rsocket_enter_kinds(int fd, unsigned int kinds, int *ret_err)
{
	struct rsocket *rs;

	polycm_why_clear();
	rs = rsocket_get(fd, ret_err);
	if (rs && kinds >> rs->kind & 1) {
		rsocket_forbid_cancel();
		rsocket_lock(rs);
		return rs;
	}
	if (rs) {
		rsocket_put(rs);
		*ret_err = polycm_fail(-ENOTSOCK, "%d is %sof repoll_create()", fd,
				       kinds & 1u << RSOCKET_SET ? "not " : "");
	} else if (*ret_err == -EACCES) {
		polycm_fail(-EACCES, "it is of the process that this one was forked from");
	} else {
		polycm_fail(-EBADF, "%d is no number of rsocket()", fd);
	}
	return NULL;
}

struct rsocket *rsocket_enter(int fd, int *ret_err)
{
	return rsocket_enter_kinds(fd, 1u << RSOCKET_STREAM | 1u << RSOCKET_DGRAM, ret_err);
}

void rsocket_leave(struct rsocket *rs)
{
	rsocket_unlock(rs);
	rsocket_put(rs);
	rsocket_allow_cancel();
}

bool rsocket_waits(const struct rsocket *rs, int flags)
{
	return !(rs->status_flags & O_NONBLOCK) && !(flags & MSG_DONTWAIT);
}

/* --- made and ended --- */

static int open_one(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct rsocket *rs;
	int err;

	if (domain != AF_INET && domain != AF_INET6 && domain != AF_IB)
		return polycm_fail(-EOPNOTSUPP, "domain %d", domain);
	if (kind == SOCK_STREAM && (!protocol || protocol == IPPROTO_TCP))
		err = rsocket_open_stream(domain, &rs);
	else if (kind == SOCK_DGRAM && (!protocol || protocol == IPPROTO_UDP))
		err = rsocket_open_dgram(domain, &rs);
	else
		err = polycm_fail(-EOPNOTSUPP, "type %d, protocol %d", kind, protocol);
	if (err)
		return err;
	rs->fd_flags = type & SOCK_CLOEXEC ? FD_CLOEXEC : 0;
	rs->status_flags = O_RDWR | (type & SOCK_NONBLOCK ? O_NONBLOCK : 0);
	err = rsocket_publish(rs);
	if (err) {
		rsocket_discard(rs);
		return err;
	}
	return rs->fd;
}

POLYCM_EXPORT int rsocket(int domain, int type, int protocol)
{
	polycm_why_clear();
	return (int)rsocket_ret(__func__, open_one(domain, type, protocol));
}

/* Until all was sent that the peer is to get, or the connection is no more. */
static int end(struct rsocket *rs)
{
	struct rsocket_patience patience = RSOCKET_FOR_EVER;
	int err = 0;

	for (;;) {
		rs->ops->advance(rs);
		rs->ops->end(rs);
		if (err || rs->ops->ended(rs))
			return err;
		err = rsocket_wait(rs, &patience);
		if (err == -EINTR)
			err = 0;
	}
}

/*
 * The number goes with the last user.  Another thread that is inside leaves with
 * EBADF.
 */
POLYCM_EXPORT int rclose(int socket)
{
	struct rsocket *rs;
	int err;

	rs = rsocket_enter_kinds(socket, ~0u, &err);
	if (!rs)
		return (int)rsocket_ret(__func__, err == -EACCES ? rsocket_forget(socket) : err);
	if (rs->kind != RSOCKET_SET)
		(void)end(rs);
	if (rsocket_unpublish(rs)) {
		rs->closed = true;
		rsocket_rouse(rs);
		rsocket_put(rs);
	}
	rsocket_leave(rs);
	return 0;
}

static int shut_down(struct rsocket *rs, int how)
{
	struct rsocket_patience patience = RSOCKET_FOR_EVER;
	struct stream *s = stream_of(rs);
	bool posted = false;
	int err;

	if (rs->kind != RSOCKET_STREAM)
		return polycm_fail(-EOPNOTSUPP, "only for SOCK_STREAM");
	for (;;) {
		rs->ops->advance(rs);
		if (!posted) {
			err = stream_shutdown(s, how);
			if (err && err != -EAGAIN)
				return err;
			posted = !err;
		}
		if (posted && (s->state != STREAM_CONNECTED || stream_all_sent(s)))
			return 0;
		err = rsocket_wait(rs, &patience);
		if (err)
			return err;
	}
}

POLYCM_EXPORT int rshutdown(int socket, int how)
{
	struct rsocket *rs;
	int err;

	rs = rsocket_enter(socket, &err);
	if (rs) {
		err = shut_down(rs, how);
		rsocket_leave(rs);
	}
	return (int)rsocket_ret(__func__, err);
}

/* --- connected --- */

static int bind_to(struct rsocket *rs, const struct sockaddr *addr, socklen_t len)
{
	struct stream *s = stream_of(rs);

	if (rs->kind == RSOCKET_DGRAM)
		return dgram_bind(dgram_of(rs), addr, len);
	if (s->state != STREAM_NEW)
		return polycm_fail(-EINVAL, "it has an address");
	if (!polycm_addr_len(addr) || len < polycm_addr_len(addr))
		return polycm_fail(-EINVAL, "no address of %u bytes", len);
	if (rdma_bind_addr(s->id, (struct sockaddr *)(uintptr_t)addr))
		return -errno;
	s->state = STREAM_BOUND;
	return 0;
}

POLYCM_EXPORT int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rsocket *rs;
	int err;

	rs = rsocket_enter(socket, &err);
	if (rs) {
		err = bind_to(rs, addr, addrlen);
		rsocket_leave(rs);
	}
	return (int)rsocket_ret(__func__, err);
}

POLYCM_EXPORT int rlisten(int socket, int backlog)
{
	struct rsocket *rs;
	int err;

	rs = rsocket_enter(socket, &err);
	if (rs) {
		err = rs->kind == RSOCKET_STREAM ? stream_listen(stream_of(rs), backlog) :
			polycm_fail(-EOPNOTSUPP, "only for SOCK_STREAM");
		rsocket_leave(rs);
	}
	return (int)rsocket_ret(__func__, err);
}

static int connect_to(struct rsocket *rs, const struct sockaddr *addr, socklen_t len)
{
	struct rsocket_patience patience = rsocket_patience(rs->send_timeout_ns);
	struct stream *s = stream_of(rs);
	int err;

	if (rs->kind == RSOCKET_DGRAM)
		return dgram_connect(dgram_of(rs), addr, len);
	rs->ops->advance(rs);
	err = stream_connect(s, addr, len);
	while (err == -EINPROGRESS && rsocket_waits(rs, 0)) {
		err = rsocket_wait(rs, &patience);
		if (err)
			return err == -EAGAIN ? -EINPROGRESS : err;
		rs->ops->advance(rs);
		err = stream_opening(s) ? -EINPROGRESS : s->failure;
	}
	/* Told now, it is not told again. */
	if (err && err != -EINPROGRESS)
		rs->error = 0;
	return err;
}

POLYCM_EXPORT int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rsocket *rs;
	int err;

	rs = rsocket_enter(socket, &err);
	if (rs) {
		err = connect_to(rs, addr, addrlen);
		rsocket_leave(rs);
	}
	return (int)rsocket_ret(__func__, err);
}

static int accept_one(struct rsocket *rs, struct sockaddr *addr, socklen_t *len)
{
	struct rsocket_patience patience = rsocket_patience(rs->receive_timeout_ns);
	struct stream *s = stream_of(rs), *child;
	int err;

	if (rs->kind != RSOCKET_STREAM || s->state != STREAM_LISTENING)
		return polycm_fail(-EINVAL, "it does not listen");
	for (;;) {
		rs->ops->advance(rs);
		child = stream_take_accepted(s);
		if (child)
			break;
		if (s->state != STREAM_LISTENING)
			return s->failure;
		if (!rsocket_waits(rs, 0))
			return -EAGAIN;
		err = rsocket_wait(rs, &patience);
		if (err)
			return err;
	}
	if (addr && len)
		rsocket_put_addr(rdma_get_peer_addr(child->id), addr, len);
	return child->rs.fd;
}

POLYCM_EXPORT int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rsocket *rs;
	int ret;

	rs = rsocket_enter(socket, &ret);
	if (rs) {
		ret = accept_one(rs, addr, addrlen);
		rsocket_leave(rs);
	}
	return (int)rsocket_ret(__func__, ret);
}

static int name_of(const char *call, int fd, bool peer, struct sockaddr *addr, socklen_t *len)
{
	struct rsocket *rs;
	int err;

	rs = rsocket_enter(fd, &err);
	if (rs) {
		err = rs->ops->get_name(rs, peer, addr, len);
		rsocket_leave(rs);
	}
	return (int)rsocket_ret(call, err);
}

POLYCM_EXPORT int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return name_of(__func__, socket, true, addr, addrlen);
}

POLYCM_EXPORT int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return name_of(__func__, socket, false, addr, addrlen);
}
