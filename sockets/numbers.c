/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sockets/numbers.c - which number of the program is which rsocket.
 *
 * Two fixed tables without a lock, so that read() may be called anywhere.
 */
#undef _FORTIFY_SOURCE
#include "config.h"
#include "sockets.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#define NUMBERS		65536
#define IS_SET		(1u << 30)
#define SPARES		8

static unsigned int behind[NUMBERS];	/* 0: none; else number + 1, perhaps with IS_SET */
static unsigned int users[NUMBERS];	/* numbers in behind[] for one of rsocket() */

static unsigned int get(int fd)
{
	if (fd < 0 || fd >= NUMBERS)
		return 0;
	return __atomic_load_n(&behind[fd], __ATOMIC_ACQUIRE);
}

int sockets_find(int fd, enum sockets_kind kind)
{
	unsigned int value = get(fd);

	if (!value || !(value & IS_SET) != (kind == SOCKETS_RSOCKET))
		return -1;
	return (int)(value & ~IS_SET) - 1;
}

/* The last of its numbers closes it. */
static int put(unsigned int value)
{
	int number = (int)(value & ~IS_SET) - 1;

	if (!value || __atomic_sub_fetch(&users[number], 1, __ATOMIC_ACQ_REL))
		return 0;
	return rclose(number);
}

static int replace(int fd, unsigned int value)
{
	if (value)
		__atomic_add_fetch(&users[(value & ~IS_SET) - 1], 1, __ATOMIC_ACQ_REL);
	return put(__atomic_exchange_n(&behind[fd], value, __ATOMIC_ACQ_REL));
}

/* As the kernel does at the end of a process: what was sent arrives, and the peer sees the end. */
static void close_all(void)
{
	for (int fd = 0; fd < NUMBERS; fd++)
		if (behind[fd])
			(void)replace(fd, 0);
}

static int add(int fd, int number, unsigned int flag)
{
	static bool registered;

	if (fd >= NUMBERS || number >= NUMBERS) {
		rclose(number);
		errno = EMFILE;
		return -1;
	}
	if (!__atomic_exchange_n(&registered, true, __ATOMIC_ACQ_REL))
		(void)atexit(close_all);
	(void)replace(fd, ((unsigned int)number + 1) | flag);
	return fd;
}

/*
 * The lowest numbers that were free before the first rsocket, which takes about ten: some
 * programs have small tables of sockets.  Each plus one; 0: it is used, or the program's.
 */
static int spare[SPARES];

static void reserve_spares(void)
{
	for (unsigned int i = 0; i < SPARES; i++)
		__atomic_store_n(&spare[i], open("/dev/null", O_RDONLY | O_CLOEXEC) + 1,
				 __ATOMIC_RELAXED);
}

void sockets_reserve(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, reserve_spares);
}

void sockets_unreserve(int fd)
{
	for (unsigned int i = 0; i < SPARES; i++) {
		int number = fd + 1;

		if (fd >= 0 && __atomic_compare_exchange_n(&spare[i], &number, 0, false,
							   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return;
	}
}

static int new_number(int rs, bool cloexec)
{
	for (unsigned int i = 0; i < SPARES; i++) {
		int number = __atomic_exchange_n(&spare[i], 0, __ATOMIC_ACQ_REL);

		if (number)
			return sockets_next()->dup3(rs, number - 1, cloexec ? O_CLOEXEC : 0);
	}
	return sockets_next()->fcntl(rs, cloexec ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
}

int sockets_add(int rs, bool cloexec)
{
	int fd, err;

	fd = new_number(rs, cloexec);
	if (fd < 0) {
		err = errno;
		rclose(rs);
		errno = err;
		return -1;
	}
	if (add(fd, rs, 0) >= 0)
		return fd;
	err = errno;
	sockets_next()->close(fd);
	errno = err;
	return -1;
}

int sockets_add_set(int fd, int set)
{
	return add(fd, set, IS_SET);
}

void sockets_copy(int from, int to)
{
	if (to >= 0 && to < NUMBERS && from != to && (get(from) || get(to)))
		(void)replace(to, get(from));
}

int sockets_close(int fd)
{
	unsigned int value = get(fd) ? __atomic_exchange_n(&behind[fd], 0, __ATOMIC_ACQ_REL) : 0;
	int ret;

	sockets_unreserve(fd);
	ret = sockets_next()->close(fd);
	return value ? put(value) : ret;
}

int sockets_milliseconds(const struct timespec *timeout)
{
	if (!timeout)
		return -1;
	if (timeout->tv_sec >= INT_MAX / 1000)
		return INT_MAX;
	return (int)timeout->tv_sec * 1000 + (int)((timeout->tv_nsec + 999999) / 1000000);
}
