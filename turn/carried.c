/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/carried.c - see carried.h. */
#include "config.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "carried.h"
#include "clock.h"
#include "connects.h"
#include "descriptors.h"
#include "hand.h"
#include "order.h"
#include "pointers.h"
#include "ports.h"
#include "raw.h"
#include "signals.h"
#include "spare.h"
#include "tcp.h"

#define LONGEST_NS (10 * TURN_SECOND)	/* until the carrier takes a request */

/* ------------------------------------------------------------------------
 * connect()
 */

static bool is_of_host(const struct turn_host *host, const uint8_t *address)
{
	for (uint32_t i = 0; i < host->num && i < TURN_MAX_ADDRESSES; i++)
		if (!memcmp(host->addresses[i], address, sizeof(host->addresses[i])))
			return true;
	return false;
}

static const struct turn_host *own_host(void)
{
	return &turn_segment->hosts[turn_segment->members[turn_member].files.program];
}

/* Of another node. */
static bool is_of_another(const uint8_t *address)
{
	if (is_of_host(own_host(), address))
		return false;
	for (uint32_t i = 0; i < turn_segment->num_addresses; i++)
		if (!memcmp(turn_segment->addresses[i], address, sizeof(turn_segment->addresses[i])))
			return true;
	return false;
}

static int domain_of(int fd)
{
	int domain = AF_UNSPEC;
	socklen_t len = sizeof(domain);

	TURN_RAW(SYS_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	return domain;
}

bool turn_carried_is(int fd, const struct sockaddr *to, socklen_t len)
{
	uint8_t address[16];

	/* The carrier, and who is on all nodes, have no addresses. */
	if (!turn_segment->carries_tcp || !own_host()->num || !turn_tcp_is(fd))
		return false;
	/* An address of another family the kernel refuses. */
	return turn_connects_of(fd) || (turn_ports_read(to, len, address) &&
				       is_of_another(address) && to->sa_family == domain_of(fd));
}

bool turn_carried_is_carrier(void)
{
	return turn_segment && turn_segment->carries_tcp &&
	       turn_segment->members[turn_member].files.program == turn_segment->carrier;
}

static bool is_closed(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	return !TURN_RAW(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	       info.tcpi_state == TCP_CLOSE;
}

static long send_once(const struct turn_connect_request *request, int fd, int through)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control = {
		.header = {
			.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
		},
	};
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	struct iovec part = { (void *)(uintptr_t)request, sizeof(*request) };
	struct msghdr message = {
		.msg_name = &name,
		.msg_namelen = offsetof(struct sockaddr_un, sun_path) + sizeof(TURN_CARRIER),
		.msg_iov = &part, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control.bytes),
	};

	memcpy(name.sun_path + 1, TURN_CARRIER, sizeof(TURN_CARRIER) - 1);
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return TURN_RAW(SYS_sendmsg, through, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The carrier is not there yet, or has not read those before. */
static bool is_to_wait(long result)
{
	return result == -ECONNREFUSED || result == -EAGAIN || result == -ENOBUFS ||
	       result == -ETOOMANYREFS;
}

static long ask(const struct turn_connect_request *request, int fd)
{
	const uint64_t deadline = turn_clock_after_ns(LONGEST_NS);
	long through = turn_spare_socket(turn_raw, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC), result;

	if (through < 0)
		return through;
	while (is_to_wait(result = send_once(request, fd, (int)through)) &&
	       !turn_order_passed(turn_segment, deadline))
		turn_wait(TURN_DESCRIPTORS, deadline);
	TURN_RAW(SYS_close, through);
	if (is_to_wait(result))
		return -ENETDOWN;	/* it has ended */
	return result < 0 ? result : 0;
}

static long begin(const struct turn_call *call, uint64_t cookie)
{
	const int fd = (int)call->arguments[0];
	struct turn_connect_request request = { .cookie = cookie };
	struct turn_connect *connect;
	long result;

	turn_disconnect(fd);	/* from where it failed the last time */
	turn_ports_before_carried(fd, (const struct sockaddr *)call->arguments[1],
				  (socklen_t)call->arguments[2], &request.from, &request.to);
	connect = turn_connects_begin(cookie);
	if (!connect)
		return -EAGAIN;
	request.number = connect->number;
	result = TURN_RAW(SYS_listen, fd, 0);
	if (!result)
		result = ask(&request, fd);
	if (result)
		turn_connects_forget(connect);
	turn_changed();
	return result;
}

/* Until its result is known, 0; or what ends the wait: a signal, or in_vain after that option's time. */
static long await(const struct turn_call *call, uint64_t cookie, int option, long in_vain)
{
	const uint64_t deadline = turn_limit_of((int)call->arguments[0], option);
	const struct turn_connect *connect;
	long interrupted;

	while ((connect = turn_connects_find(cookie)) && turn_connects_is_held(connect)) {
		interrupted = turn_signal_result(call, deadline == TURN_NEVER);
		if (interrupted)
			return interrupted;
		if (turn_order_passed(turn_segment, deadline))
			return in_vain;
		turn_wait(TURN_DESCRIPTORS, deadline);
	}
	return 0;
}

/* The kernel's error, too, which is the same. */
static long take_both(int fd, struct turn_connect *connect)
{
	socklen_t len = sizeof(int);
	int error;

	if (turn_connects_has_failed(connect))
		TURN_RAW(SYS_getsockopt, fd, SOL_SOCKET, SO_ERROR, &error, &len);
	return turn_connects_take(connect);
}

static long await_result(const struct turn_call *call, uint64_t cookie, long in_vain)
{
	const long result = await(call, cookie, SO_SNDTIMEO, in_vain);
	struct turn_connect *connect = result ? NULL : turn_connects_find(cookie);

	return connect ? take_both((int)call->arguments[0], connect) : result;
}

static bool is_to_disconnect(const struct turn_call *call)
{
	const struct sockaddr *to = (const struct sockaddr *)call->arguments[1];

	return (socklen_t)call->arguments[2] >= sizeof(to->sa_family) &&
	       turn_can_read(to, sizeof(to->sa_family)) && to->sa_family == AF_UNSPEC;
}

bool turn_carried_shut_down(const struct turn_call *call)
{
	const int fd = (int)call->arguments[0], how = (int)call->arguments[1];
	struct turn_connect *connect = turn_segment->num_held ? turn_connects_of(fd) : NULL;

	if (!connect || !turn_connects_is_held(connect) || how < SHUT_RD || how > SHUT_RDWR)
		return false;
	turn_connects_give_up(connect, fd);
	return true;
}

long turn_carried_connect(const struct turn_call *call)
{
	const int fd = (int)call->arguments[0];
	const uint64_t cookie = turn_connects_cookie(fd);
	struct turn_connect *connect = turn_connects_find(cookie);
	long result;

	if (connect && is_to_disconnect(call)) {
		if (turn_connects_is_held(connect))
			turn_connects_give_up(connect, fd);
		else
			turn_connects_forget(connect);
		return turn_done(turn_disconnect(fd));
	}
	if (connect && turn_connects_is_given_up(connect)) {
		turn_connects_forget(connect);
		connect = NULL;
	}
	if (connect && !turn_connects_is_held(connect))
		return turn_done(take_both(fd, connect));
	if (connect)
		return turn_may_wait(fd) ? turn_done(await_result(call, cookie, -EALREADY)) : -EALREADY;
	/* Connected, or a listener: the kernel says so. */
	if (!cookie || !is_closed(fd))
		return turn_done(turn_through(call));
	result = begin(call, cookie);
	if (result)
		return result;
	return turn_may_wait(fd) ? turn_done(await_result(call, cookie, -EINPROGRESS)) : -EINPROGRESS;
}

long turn_carried_before_data(const struct turn_call *call, bool may_not_wait)
{
	const int fd = (int)call->arguments[0];
	const struct turn_connect *connect;
	const bool sends = call->number == SYS_write || call->number == SYS_writev ||
		call->number == SYS_sendto || call->number == SYS_sendmsg ||
		call->number == SYS_sendmmsg;
	uint64_t cookie;

	if (__builtin_expect(!turn_segment->num_held, 1))
		return 0;
	cookie = turn_connects_cookie(fd);
	connect = turn_connects_find(cookie);
	if (!connect || !turn_connects_is_held(connect))
		return 0;
	if (may_not_wait || !turn_may_wait(fd))
		return turn_done(-EAGAIN);
	return await(call, cookie, sends ? SO_SNDTIMEO : SO_RCVTIMEO, -EAGAIN);
}

/* ------------------------------------------------------------------------
 * What programs ask.
 */

long turn_carried_get_option(const struct turn_call *call)
{
	long result = turn_through(call);
	struct turn_connect *connect;
	int error = 0;

	/* 0 or ECONNRESET, in place of which there is another one. */
	if (result || !turn_segment->carries_tcp || call->arguments[1] != SOL_SOCKET ||
	    call->arguments[2] != SO_ERROR)
		return result;
	connect = turn_connects_of((int)call->arguments[0]);
	if (!connect || !(turn_connects_has_failed(connect) || turn_connects_is_given_up(connect)))
		return result;
	error = (int)-turn_connects_take(connect);
	/* As long as the kernel has made it. */
	memcpy((void *)call->arguments[3], &error, (size_t)*(const int *)call->arguments[4]);
	return 0;
}

long turn_carried_error(int fd, long result)
{
	struct turn_connect *connect;

	if (__builtin_expect(result != -ECONNRESET && result != -ECONNREFUSED, 1) ||
	    !turn_segment->carries_tcp || !turn_tcp_is(fd))
		return result;
	connect = turn_connects_of(fd);
	return connect && turn_connects_has_failed(connect) ? turn_connects_take(connect) : result;
}

/* How much room the program has for an address. */
static socklen_t room_of(const struct turn_call *call)
{
	const socklen_t *len = (const socklen_t *)call->arguments[2];

	return call->arguments[1] && turn_can_read(len, sizeof(*len)) ? *len : 0;
}

/* The address that the kernel has written, as far as there was room. */
static void rename_peer(const struct turn_call *call, socklen_t room)
{
	union turn_address *address = (union turn_address *)call->arguments[1];
	uint16_t port;

	/* The carrier wants to know which port it is. */
	if (!turn_segment->carries_tcp || turn_carried_is_carrier() ||
	    room < offsetof(struct sockaddr_in, sin_addr) ||
	    (address->sa.sa_family != AF_INET && address->sa.sa_family != AF_INET6))
		return;
	port = turn_segment->ports_for[ntohs(address->in.sin_port)];
	if (port)
		address->in.sin_port = htons(port);
}

long turn_carried_get_peer(const struct turn_call *call)
{
	const socklen_t room = room_of(call);
	const long result = turn_through(call);

	if (!result && turn_segment->carries_tcp && turn_tcp_is((int)call->arguments[0]))
		rename_peer(call, room);
	return result;
}

long turn_carried_accept(const struct turn_call *call)
{
	const socklen_t room = room_of(call);
	const long fd = turn_input(call);

	if (fd >= 0)
		rename_peer(call, room);
	return fd;
}
