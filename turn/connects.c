/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/connects.c - see connects.h. */
#include "config.h"

#include <errno.h>
#include <stddef.h>

#include "connects.h"
#include "hand.h"
#include "loopback.h"
#include "ports.h"
#include "raw.h"
#include "refuse.h"

/* turn_connect.result */
#define IS_HELD 1	/* it is not known yet */
#define IS_GIVEN_UP 2	/* by the program: whoever waits for it gets ECONNRESET */

uint64_t turn_connects_cookie(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return TURN_RAW(SYS_getsockopt, fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) ? 0 : cookie;
}

struct turn_connect *turn_connects_find(uint64_t cookie)
{
	for (uint32_t i = 0; cookie && i < TURN_MAX_CONNECTS && i < turn_segment->num_connects; i++)
		if (turn_segment->connects[i].cookie == cookie)
			return &turn_segment->connects[i];
	return NULL;
}

struct turn_connect *turn_connects_of(int fd)
{
	return turn_connects_find(turn_connects_cookie(fd));
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

static struct turn_connect *add(uint64_t cookie, int result)
{
	struct turn_connect *connect = turn_connects_find(cookie);

	connect = connect ? connect : find_place();
	if (!connect)
		return NULL;
	*connect = (struct turn_connect){
		.cookie = cookie, .number = ++turn_segment->last_connect, .result = result,
	};
	turn_segment->num_held += result == IS_HELD;
	return connect;
}

struct turn_connect *turn_connects_begin(uint64_t cookie)
{
	return add(cookie, IS_HELD);
}

void turn_connects_forget(struct turn_connect *connect)
{
	turn_segment->num_held -= connect->result == IS_HELD;
	connect->cookie = 0;
}

bool turn_connects_is_held(const struct turn_connect *connect)
{
	return connect->result == IS_HELD;
}

bool turn_connects_is_given_up(const struct turn_connect *connect)
{
	return connect->result == IS_GIVEN_UP;
}

bool turn_connects_has_failed(const struct turn_connect *connect)
{
	return connect->result < 0;
}

long turn_connects_take(struct turn_connect *connect)
{
	const long result = connect->result == IS_GIVEN_UP ? -ECONNRESET : connect->result;

	connect->cookie = 0;
	return result;
}

static void end_held(struct turn_connect *connect, int result)
{
	turn_segment->num_held--;
	connect->result = result;
	turn_changed();
}

void turn_connects_give_up(struct turn_connect *connect, int fd)
{
	turn_disconnect(fd);
	end_held(connect, IS_GIVEN_UP);
}

/* ------------------------------------------------------------------------
 * What the carrier tells.
 */

static struct turn_connect *find_held(uint32_t number)
{
	for (uint32_t i = 0; i < TURN_MAX_CONNECTS && i < turn_segment->num_connects; i++) {
		struct turn_connect *connect = &turn_segment->connects[i];

		if (connect->cookie && connect->number == number && connect->result == IS_HELD)
			return connect;
	}
	return NULL;
}

int turn_connects_now(uint32_t number, int fd, const struct sockaddr *to, socklen_t len)
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

void turn_connects_fails(uint32_t number, int fd, int result)
{
	struct turn_connect *connect = find_held(number);

	if (!connect)
		return;
	if (fd >= 0 && !turn_disconnect(fd))
		turn_refuse(fd);
	end_held(connect, result);
}

void turn_connects_reset_means(uint64_t cookie, int error)
{
	if (cookie)
		add(cookie, -error);
}

void turn_connects_port_is_for(uint16_t port, uint16_t other)
{
	turn_segment->ports_for[port] = other;
}
