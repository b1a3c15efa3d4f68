/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * count_waits.c - a library to preload behind libpolycm: counts the waits that
 * get through to the C library and would take real time, and says at the end
 * how many there were.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

static unsigned int waits;

static void count(int waiting)
{
	__atomic_add_fetch(&waits, waiting != 0, __ATOMIC_SEQ_CST);
}

static int waiting(const struct timespec *time)
{
	return !time || time->tv_sec || time->tv_nsec;
}

__attribute__((destructor)) static void tell(void)
{
	fprintf(stderr, "real waits: %u\n", waits);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int poll(struct pollfd *fds, nfds_t num, int ms)
{
	count(ms);
	return NEXT(poll)(fds, num, ms);
}

int ppoll(struct pollfd *fds, nfds_t num, const struct timespec *time, const sigset_t *mask)
{
	count(waiting(time));
	return NEXT(ppoll)(fds, num, time, mask);
}

int select(int num, fd_set *in, fd_set *out, fd_set *other, struct timeval *time)
{
	count(!time || time->tv_sec || time->tv_usec);
	return NEXT(select)(num, in, out, other, time);
}

int pselect(int num, fd_set *in, fd_set *out, fd_set *other, const struct timespec *time,
	    const sigset_t *mask)
{
	count(waiting(time));
	return NEXT(pselect)(num, in, out, other, time, mask);
}

int epoll_wait(int set, struct epoll_event *events, int max, int ms)
{
	count(ms);
	return NEXT(epoll_wait)(set, events, max, ms);
}

int epoll_pwait(int set, struct epoll_event *events, int max, int ms, const sigset_t *mask)
{
	count(ms);
	return NEXT(epoll_pwait)(set, events, max, ms, mask);
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
	count(1);
	return NEXT(nanosleep)(time, left);
}

int usleep(useconds_t us)
{
	count(1);
	return NEXT(usleep)(us);
}

unsigned int sleep(unsigned int seconds)
{
	count(1);
	return NEXT(sleep)(seconds);
}
