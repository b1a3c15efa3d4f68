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
#include "descriptors.h"
#include "hand.h"
#include "loopback.h"
#include "order.h"
#include "pointers.h"
#include "ports.h"
#include "raw.h"
#include "refuse.h"
#include "signals.h"
#include "tcp.h"

/* turn_connect.result */
#define IS_HELD 1	/* it is not known yet */
#define IS_GIVEN_UP 2	/* by the program: whoever waits for it gets ECONNRESET */

#define LONGEST_NS (10 * TURN_SECOND)	/* until the carrier takes a request */

static uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return TURN_RAW(SYS_getsockopt, fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) ? 0 : cookie;
}

/* ------------------------------------------------------------------------
 * Connections that are being made.
 */

static struct turn_connect *find(uint64_t cookie)
{
	for (uint32_t i = 0; cookie && i < TURN_MAX_CONNECTS && i < turn_segment->num_connects; i++)
		if (turn_segment->connects[i].cookie == cookie)
			return &turn_segment->connects[i];
	return NULL;
}

/* A place without one: of the oldest result that nobody has taken; NULL: so many are being made. */
static struct turn_connect *find_place(void)
{
	for (uint32_t i = 0; i < TURN_MAX_CONNECTS; i++) {
		struct turn_connect *connect =
			&turn_segment->connects[turn_segment->num_connects++ % TURN_MAX_CONNECTS];

		if (!connect->cookie || connect->result != IS_HELD)
			return connect;
	}
	return NULL;
}

/* Of a socket that has none which is held. */
static struct turn_connect *add(uint64_t cookie, int result)
{
	struct turn_connect *connect = find(cookie);

	connect = connect ? connect : find_place();
	if (!connect)
		return NULL;
	*connect = (struct turn_connect){
		.cookie = cookie, .number = ++turn_segment->last_connect, .result = result,
	};
	turn_segment->num_held += result == IS_HELD;
	return connect;
}

static long take_result(struct turn_connect *connect)
{
	const long result = connect->result == IS_GIVEN_UP ? -ECONNRESET : connect->result;

	connect->cookie = 0;
	return result;
}

/* The kernel's error, too, which is the same. */
static long take_both(int fd, struct turn_connect *connect)
{
	socklen_t len = sizeof(int);
	int error;

	if (connect->result < 0)
		TURN_RAW(SYS_getsockopt, fd, SOL_SOCKET, SO_ERROR, &error, &len);
	return take_result(connect);
}

static void end_held(struct turn_connect *connect, int result)
{
	turn_segment->num_held--;
	connect->result = result;
	turn_changed();
}

static struct turn_connect *find_held(uint32_t number)
{
	for (uint32_t i = 0; i < TURN_MAX_CONNECTS && i < turn_segment->num_connects; i++) {
		struct turn_connect *connect = &turn_segment->connects[i];

		if (connect->cookie && connect->number == number && connect->result == IS_HELD)
			return connect;
	}
	return NULL;
}

int turn_carried_connect_now(uint32_t number, int fd, const struct sockaddr *to, socklen_t len)
{
	struct turn_connect *connect = find_held(number);
	long result;

	if (!connect)
		return -ECANCELED;
	turn_disconnect(fd);
	result = TURN_RAW(SYS_connect, fd, to, len);
	if (result == -EINPROGRESS) {
		turn_loopback_settle();
		/* What the first call has begun, if the program's socket does not wait. */
		result = TURN_RAW(SYS_connect, fd, to, len);
	}
	if (!result)
		end_held(connect, 0);
	return (int)result;
}

void turn_carried_fails(uint32_t number, int fd, int result)
{
	struct turn_connect *connect = find_held(number);

	if (!connect)
		return;
	if (fd >= 0 && !turn_disconnect(fd))
		turn_refuse(fd);
	end_held(connect, result);
}

void turn_carried_reset_means(uint64_t cookie, int error)
{
	if (cookie)
		add(cookie, -error);
}

void turn_carried_port_is_for(uint16_t port, uint16_t other)
{
	turn_segment->ports_for[port] = other;
}

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
	return find(cookie_of(fd)) || (turn_ports_read(to, len, address) &&
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
	long through = TURN_RAW(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), result;

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
	connect = add(cookie, IS_HELD);
	if (!connect)
		return -EAGAIN;
	request.number = connect->number;
	result = TURN_RAW(SYS_listen, fd, 0);
	if (!result)
		result = ask(&request, fd);
	if (result) {
		turn_segment->num_held--;
		connect->cookie = 0;
	}
	turn_changed();
	return result;
}

/* Until its result is known, 0; or what ends the wait: a signal, or in_vain after that option's time. */
static long await(const struct turn_call *call, uint64_t cookie, int option, long in_vain)
{
	const uint64_t deadline = turn_limit_of((int)call->arguments[0], option);
	const struct turn_connect *connect;
	long interrupted;

	while ((connect = find(cookie)) && connect->result == IS_HELD) {
		interrupted = turn_signal_result(call, deadline == TURN_NEVER);
		if (interrupted)
			return interrupted;
		if (turn_order_passed(turn_segment, deadline))
			return in_vain;
		turn_wait(TURN_DESCRIPTORS, deadline);
	}
	return 0;
}

static long await_result(const struct turn_call *call, uint64_t cookie, long in_vain)
{
	const long result = await(call, cookie, SO_SNDTIMEO, in_vain);
	struct turn_connect *connect = result ? NULL : find(cookie);

	return connect ? take_both((int)call->arguments[0], connect) : result;
}

static bool is_to_disconnect(const struct turn_call *call)
{
	const struct sockaddr *to = (const struct sockaddr *)call->arguments[1];

	return (socklen_t)call->arguments[2] >= sizeof(to->sa_family) &&
	       turn_can_read(to, sizeof(to->sa_family)) && to->sa_family == AF_UNSPEC;
}

/* The carrier learns of it when it is to connect the socket. */
static void give_up(struct turn_connect *connect, int fd)
{
	turn_disconnect(fd);
	end_held(connect, IS_GIVEN_UP);
}

bool turn_carried_shut_down(const struct turn_call *call)
{
	const int fd = (int)call->arguments[0], how = (int)call->arguments[1];
	struct turn_connect *connect = turn_segment->num_held ? find(cookie_of(fd)) : NULL;

	if (!connect || connect->result != IS_HELD || how < SHUT_RD || how > SHUT_RDWR)
		return false;
	give_up(connect, fd);
	return true;
}

long turn_carried_connect(const struct turn_call *call)
{
	const int fd = (int)call->arguments[0];
	const uint64_t cookie = cookie_of(fd);
	struct turn_connect *connect = find(cookie);
	long result;

	if (connect && is_to_disconnect(call)) {
		if (connect->result == IS_HELD)
			give_up(connect, fd);
		else
			connect->cookie = 0;
		return turn_done(turn_disconnect(fd));
	}
	if (connect && connect->result == IS_GIVEN_UP) {
		connect->cookie = 0;
		connect = NULL;
	}
	if (connect && connect->result != IS_HELD)
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
	cookie = cookie_of(fd);
	connect = find(cookie);
	if (!connect || connect->result != IS_HELD)
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
	connect = find(cookie_of((int)call->arguments[0]));
	if (!connect || (connect->result >= 0 && connect->result != IS_GIVEN_UP))
		return result;
	error = (int)-take_result(connect);
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
	connect = find(cookie_of(fd));
	return connect && connect->result < 0 ? take_result(connect) : result;
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
