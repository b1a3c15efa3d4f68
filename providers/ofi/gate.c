/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/gate.c - see gate.h.
 *
 * All members listen with SO_REUSEPORT, which Linux allows to sockets of one user.  A member has a
 * socket in the fabric's folder, to which others send connections (SCM_RIGHTS) with the HELLO that
 * they have read.  The folder's lock is held while a member opens its gate: the first one checks
 * that no other program has the port.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utlist.h>

#include "providers/soft/shm/folder.h"
#include "gate.h"
#include "self.h"
#include "session.h"
#include "stream.h"
#include "sys.h"

#define BACKLOG 1024
#define ACCEPTS 64u		/* per turn */
#define MAX_CALLERS 256u	/* that have not said their HELLO */
#define HELLO_WITHIN SIM_MS(5000)
#define ROOM_AFTER SIM_MS(500)	/* who has not said it then makes room for others that wait */
#define NO_ROOM_PAUSE SIM_MS(100)	/* no descriptor or memory for a connection: then again */
#define FOLDER_PATIENCE SIM_MS(5000)

/* A connection of which the HELLO is missing. */
struct caller {
	struct caller *next, *prev;
	struct ofi_stream *stream;
	uint64_t came;
	struct sim_timer timer;
};

static struct ofi_source gate = { .fd = -1 }, inbox = { .fd = -1 };
static struct caller *callers;
static unsigned int num_callers;
static struct sim_timer accept_again;
static char inbox_path[64];		/* below the folder's descriptor */

/* ------------------------------------------------------------------------
 * Whom a connection is for.
 */

static bool is_live(unsigned int slot)
{
	return slot < SIM_MAX_SLOTS &&
	       atomic_load(&sim_segment_peer(slot)->state) == SIM_SLOT_LIVE &&
	       !sim_segment_is_dead(slot);
}

unsigned int ofi_gate_owner(const struct ofi_want *want)
{
	struct sim_node *node = ofi_self.device->node;
	unsigned int slot = SIM_NOBODY;
	struct sim_id *listener;
	bool service;

	switch (want->kind) {
	case OFI_WANT_SLOT:
		slot = want->slot;
		break;
	case OFI_WANT_QPN:
		slot = sim_slot_of_qpn(want->qpn);
		break;
	case OFI_WANT_SERVICE:
		if (!sim_find_listener(node, (enum rdma_port_space)want->ps, &want->addr.sa, &slot,
				       &listener, &service))
			slot = SIM_NOBODY;
		break;
	case OFI_WANT_SOCKET:
		if (!sim_find_socket(node, &want->addr.sa, &slot, &listener))
			slot = SIM_NOBODY;
		break;
	default:
		break;
	}
	return slot != sim_self_slot() && is_live(slot) ? slot : sim_self_slot();
}

/* ------------------------------------------------------------------------
 * From member to member.
 */

/* The folder may have a longer path than an address has room for. */
static socklen_t inbox_address(unsigned int slot, struct sockaddr_un *ret_addr)
{
	*ret_addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(ret_addr->sun_path, sizeof(ret_addr->sun_path), "/proc/self/fd/%d/gate.%u",
		 sim_segment_folder()->fd, slot);
	return sizeof(*ret_addr);
}

/* Hand the connection to the process of a slot; a negative errno: it does not take it. */
static int hand_on(int fd, unsigned int slot, const uint8_t *body, size_t len)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .header = {
		.cmsg_len = CMSG_LEN(sizeof(int)),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
	} };
	struct iovec part = { (void *)(uintptr_t)body, len };
	struct sockaddr_un to;
	struct msghdr message = {
		.msg_name = &to,
		.msg_namelen = inbox_address(slot, &to),
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_LEN(sizeof(int)),
	};

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(inbox.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* The one that came; -1: none or several, which are closed. */
static int descriptor_of(struct msghdr *message)
{
	struct cmsghdr *control = CMSG_FIRSTHDR(message);
	size_t num = 0;
	int fd = -1;

	if (control && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS)
		num = (control->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
	for (size_t i = 0; i < num; i++) {
		memcpy(&fd, CMSG_DATA(control) + i * sizeof(fd), sizeof(fd));
		if (num > 1)
			close(fd);
	}
	return num == 1 ? fd : -1;
}

static void take_over_connection(struct ofi_source *source, uint32_t events)
{
	static uint8_t body[OFI_HELLO_MAX];
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = { body, sizeof(body) };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t len;
	int fd;

	(void)events;
	len = recvmsg(source->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (len < 0)
		return;
	fd = descriptor_of(&message);
	if (fd < 0)
		return;
	if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		close(fd);
	else
		ofi_session_accept(fd, body, (size_t)len);
}

/* ------------------------------------------------------------------------
 * Connections.
 */

static void drop_caller(struct caller *caller)
{
	sim_timer_disarm(&caller->timer);
	DL_DELETE(callers, caller);
	num_callers--;
	free(caller);
}

/* Connections may wait for the room, or for the descriptor. */
static void accept_more(void)
{
	if (gate.fd >= 0)
		ofi_io_change(&gate, EPOLLIN);
}

static void caller_late(struct sim_timer *timer)
{
	struct caller *caller = sim_container(timer, struct caller, timer);

	ofi_stream_close(caller->stream);
	drop_caller(caller);
	accept_more();
}

static void caller_ended(struct ofi_stream *stream, int error)
{
	struct caller *caller = stream->owner;

	(void)error;
	ofi_stream_close(stream);
	drop_caller(caller);
	accept_more();
}

/*
 * Is the connection another process's?  The process in a slot that is asked for by its number has
 * ended only if it has no inbox: one that does not empty its own stands still, and nobody may
 * answer in its place.
 */
static bool is_anothers(int fd, const struct ofi_want *want, unsigned int slot, const uint8_t *body,
			size_t len)
{
	int r = hand_on(fd, slot, body, len);

	return !r || (want->kind == OFI_WANT_SLOT && r != -ECONNREFUSED && r != -ENOENT);
}

/* The first frame; nothing comes behind it before it is answered. */
static bool caller_frame(struct ofi_stream *stream, uint8_t type, uint8_t *body, size_t len)
{
	static struct ofi_hello hello;
	struct caller *caller = stream->owner;
	unsigned int version, owner = sim_self_slot();
	int fd;

	if (type != OFI_HELLO)
		return false;
	/* Whoever says nonsense is told so by the session. */
	if (!ofi_hello_decode(body, len, &hello, &version))
		owner = ofi_gate_owner(&hello.want);
	fd = ofi_stream_take(stream);
	drop_caller(caller);
	accept_more();
	if (owner != sim_self_slot() && is_anothers(fd, &hello.want, owner, body, len))
		close(fd);
	else
		ofi_session_accept(fd, body, len);
	return true;
}

static const struct ofi_stream_ops caller_ops = {
	.frame = caller_frame,
	.ended = caller_ended,
};

static void accept_one(int fd)
{
	struct caller *caller = calloc(1, sizeof(*caller));

	if (num_callers >= MAX_CALLERS)
		caller_late(&callers->timer);
	if (!caller || ofi_stream_adopt(fd, &caller_ops, caller, &caller->stream) < 0) {
		close(fd);
		free(caller);
		return;
	}
	DL_APPEND(callers, caller);
	num_callers++;
	sim_timer_init(&caller->timer, caller_late);
	caller->came = sim_now();
	sim_timer_arm(&caller->timer, caller->came + HELLO_WITHIN);
}

static void on_accept_again(struct sim_timer *timer)
{
	(void)timer;
	accept_more();
}

/* Connections that are not accepted stay, and would be told of all the time. */
static void accept_later(uint64_t at)
{
	ofi_io_change(&gate, 0);
	sim_timer_arm(&accept_again, at);
}

/* The socket has all addresses of the host; POLYCM_OFI_ADDRESSES may say fewer. */
static bool may_come_there(int fd)
{
	union sim_sockaddr here = { 0 };
	socklen_t len = sizeof(here);

	return !ofi_self.num_networks ||
	       (!getsockname(fd, &here.sa, &len) && ofi_self_may_use(&here.sa));
}

static void accept_some(struct ofi_source *source, uint32_t events)
{
	(void)events;
	for (unsigned int i = 0; i < ACCEPTS; i++) {
		int fd;

		/* Many may come at one time, and say their HELLO after all are connected. */
		if (num_callers >= MAX_CALLERS && sim_now() < callers->came + ROOM_AFTER) {
			accept_later(callers->came + ROOM_AFTER);
			return;
		}
		fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0 && !may_come_there(fd)) {
			close(fd);
		} else if (fd >= 0) {
			accept_one(fd);
		} else if (errno == EAGAIN) {
			return;
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			accept_later(sim_now() + NO_ROOM_PAUSE);
			return;
		}
		/* Else that connection has ended already. */
	}
}

/* ------------------------------------------------------------------------
 * Opening it.
 */

/* A socket that listens on the port; shared: with the other members. */
static int listen_at(sa_family_t family, bool shared)
{
	const int on = 1, off = 0;
	union sim_sockaddr any = { .sa.sa_family = family };
	int fd, r;

	sim_addr_set_port(&any, ofi_self.gate);
	fd = ofi_socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	/* One that is not shared is a test: whoever connected to it would be turned away. */
	if ((shared && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on))) ||
	    bind(fd, &any.sa, family == AF_INET ? sizeof(any.in) : sizeof(any.in6)) ||
	    (shared && listen(fd, BACKLOG))) {
		r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

static int listen_anywhere(bool shared)
{
	int fd = listen_at(AF_INET6, shared);

	return fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL ? listen_at(AF_INET, shared) : fd;
}

/* Does another process of this host have its gate open? */
static bool has_members(void)
{
	DIR *list = sim_folder_list(sim_segment_folder()->fd);
	struct dirent *entry;
	unsigned int slot;
	bool found = false;
	char end;

	while (list && !found && (entry = readdir(list)))
		found = sscanf(entry->d_name, "gate.%u%c", &slot, &end) == 1 &&
			slot != sim_self_slot() && is_live(slot);
	if (list)
		closedir(list);
	return found;
}

/* Only the port's owner may share it: another program could share it by chance. */
static int open_port(void)
{
	int fd = has_members() ? -EEXIST : listen_anywhere(false);

	if (fd >= 0)
		close(fd);
	if (fd == -EEXIST || fd >= 0)
		fd = listen_anywhere(true);
	if (fd == -EADDRINUSE)
		sim_core->log(POLYCM_LOG_ERROR, NULL, "TCP port %u is another program's, another "
			      "user's or another transport's: set POLYCM_OFI_PORT to another one, on "
			      "the other hosts, too", ofi_self.gate);
	else if (fd < 0)
		sim_core->log(POLYCM_LOG_ERROR, NULL, "TCP port %u: %s", ofi_self.gate, strerror(-fd));
	return fd;
}

static int no_inbox(int error)
{
	sim_core->log(POLYCM_LOG_ERROR, NULL, "%s/gate.%u: %s", sim_segment_folder()->path,
		      sim_self_slot(), strerror(-error));
	return error;
}

static int open_inbox(void)
{
	struct sockaddr_un addr;
	socklen_t len = inbox_address(sim_self_slot(), &addr);
	int fd, r;

	fd = ofi_socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return no_inbox(-errno);
	snprintf(inbox_path, sizeof(inbox_path), "gate.%u", sim_self_slot());
	/* Of a process that had the slot before. */
	(void)unlinkat(sim_segment_folder()->fd, inbox_path, 0);
	if (bind(fd, (struct sockaddr *)&addr, len)) {
		r = no_inbox(-errno);
		close(fd);
		return r;
	}
	return fd;
}

static int watch(struct ofi_source *source, int fd, void (*ready)(struct ofi_source *, uint32_t))
{
	if (fd < 0)
		return fd;
	source->fd = fd;
	source->events = EPOLLIN;
	source->ready = ready;
	return ofi_io_add(source);
}

static void shut(struct ofi_source *source, bool ours)
{
	if (source->fd < 0)
		return;
	if (ours)
		ofi_io_remove(source);
	close(source->fd);
	source->fd = -1;
}

int ofi_gate_open(void)
{
	struct sim_folder *folder = sim_segment_folder();
	int r;

	if (gate.fd >= 0)
		return 0;
	sim_timer_init(&accept_again, on_accept_again);
	r = sim_folder_lock(folder, FOLDER_PATIENCE);
	if (r < 0)
		return r;
	r = watch(&gate, open_port(), accept_some);
	if (!r)
		r = watch(&inbox, open_inbox(), take_over_connection);
	sim_folder_unlock(folder);
	if (r < 0)
		ofi_gate_close();
	return r;
}

static void close_all(bool ours)
{
	struct caller *caller, *next;

	DL_FOREACH_SAFE(callers, caller, next) {
		if (ours)
			ofi_stream_close(caller->stream);
		else
			ofi_stream_forget(caller->stream);
		drop_caller(caller);
	}
	if (ours && inbox.fd >= 0)
		(void)unlinkat(sim_segment_folder()->fd, inbox_path, 0);
	sim_timer_disarm(&accept_again);
	shut(&gate, ours);
	shut(&inbox, ours);
}

void ofi_gate_close(void)
{
	close_all(true);
}

void ofi_gate_forget(void)
{
	close_all(false);
}
