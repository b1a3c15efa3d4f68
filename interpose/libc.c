/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/libc.c - finds the C library's calls behind ours, or those of whoever
 * stands between, as a sanitizer's runtime does.
 *
 * Looking up a name is nothing for a signal handler to do, and poll() may be
 * called in one: so all are found when the library is loaded.
 */
#include "config.h"

#include "libc.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "thread_local.h"
#include "wait.h"

struct polycm_libc polycm_libc_found;

/* glibc has it from 2.35 on. */
static int epoll_pwait2_syscall(int epfd, struct epoll_event *events, int max,
				const struct timespec *timeout, const sigset_t *mask)
{
	return (int)syscall(SYS_epoll_pwait2, epfd, events, max, timeout, mask, _NSIG / 8);
}

static int poll_unchecked(struct pollfd *fds, nfds_t nfds, int timeout, size_t size)
{
	(void)size;
	return polycm_libc_found.poll(fds, nfds, timeout);
}

static int ppoll_unchecked(struct pollfd *fds, nfds_t nfds, const struct timespec *timeout,
			   const sigset_t *mask, size_t size)
{
	(void)size;
	return polycm_libc_found.ppoll(fds, nfds, timeout, mask);
}

static ssize_t read_unchecked(int fd, void *buf, size_t size, size_t room)
{
	(void)room;
	return polycm_libc_found.read(fd, buf, size);
}

#define FIND(member, name) *(void **)(void *)&found.member = dlsym(RTLD_NEXT, name)

/* Where there are two, the older is found first; for conditions it is another thing. */
static void *find_version(const char *name, const char *version)
{
	void *address = dlvsym(RTLD_NEXT, name, version);

	return address ? address : dlsym(RTLD_NEXT, name);
}

#define FIND_COND(member, name) \
	*(void **)(void *)&found.member = find_version(name, "GLIBC_2.3.2")

/* Of timers, too: first whole numbers, then pointers, and since 2.34 in another library. */
static void *find_timer(const char *name)
{
	void *address = dlvsym(RTLD_NEXT, name, "GLIBC_2.34");

	return address ? address : find_version(name, "GLIBC_2.3.3");
}

#define FIND_TIMER(member, name) *(void **)(void *)&found.member = find_timer(name)

/* Several threads may be at it; they write the same. */
const struct polycm_libc *polycm_libc_find(void)
{
	struct polycm_libc found;

	FIND(poll, "poll");
	FIND(ppoll, "ppoll");
	FIND(poll_chk, "__poll_chk");
	FIND(ppoll_chk, "__ppoll_chk");
	FIND(select, "select");
	FIND(pselect, "pselect");
	FIND(epoll_wait, "epoll_wait");
	FIND(epoll_pwait, "epoll_pwait");
	FIND(epoll_pwait2, "epoll_pwait2");
	FIND(nanosleep, "nanosleep");
	FIND(clock_nanosleep, "clock_nanosleep");
	FIND(clock_gettime, "clock_gettime");
	FIND(gettimeofday, "gettimeofday");
	FIND(time, "time");
	FIND(timespec_get, "timespec_get");
	FIND_COND(cond_timedwait, "pthread_cond_timedwait");
	FIND(cond_clockwait, "pthread_cond_clockwait");
	FIND_COND(cond_signal, "pthread_cond_signal");
	FIND_COND(cond_broadcast, "pthread_cond_broadcast");
	FIND(cnd_timedwait, "cnd_timedwait");
	FIND(cnd_signal, "cnd_signal");
	FIND(cnd_broadcast, "cnd_broadcast");
	FIND(sem_timedwait, "sem_timedwait");
	FIND(sem_clockwait, "sem_clockwait");
	FIND(mutex_timedlock, "pthread_mutex_timedlock");
	FIND(mutex_clocklock, "pthread_mutex_clocklock");
	FIND(mtx_timedlock, "mtx_timedlock");
	FIND(rwlock_timedrdlock, "pthread_rwlock_timedrdlock");
	FIND(rwlock_timedwrlock, "pthread_rwlock_timedwrlock");
	FIND(rwlock_clockrdlock, "pthread_rwlock_clockrdlock");
	FIND(rwlock_clockwrlock, "pthread_rwlock_clockwrlock");
	FIND(mq_timedsend, "mq_timedsend");
	FIND(mq_timedreceive, "mq_timedreceive");
	FIND(thrd_sleep, "thrd_sleep");
	FIND(timerfd_settime, "timerfd_settime");
	FIND(timerfd_gettime, "timerfd_gettime");
	FIND(read, "read");
	FIND(read_chk, "__read_chk");
	FIND(alarm, "alarm");
	FIND(setitimer, "setitimer");
	FIND(getitimer, "getitimer");
	FIND_TIMER(timer_create, "timer_create");
	FIND_TIMER(timer_delete, "timer_delete");
	FIND_TIMER(timer_settime, "timer_settime");
	FIND_TIMER(timer_gettime, "timer_gettime");
	FIND(pause, "pause");
	FIND(sigsuspend, "sigsuspend");
	FIND(sigwait, "sigwait");
	FIND(sigwaitinfo, "sigwaitinfo");
	FIND(sigtimedwait, "sigtimedwait");
	FIND(fcntl, "fcntl");
	FIND(fcntl64, "fcntl64");
	FIND(ioctl, "ioctl");
	FIND(usleep, "usleep");
	FIND(sleep, "sleep");
	if (!found.fcntl64)
		found.fcntl64 = found.fcntl;
	if (!found.read_chk)
		found.read_chk = read_unchecked;
	if (!found.epoll_pwait2)
		found.epoll_pwait2 = epoll_pwait2_syscall;
	if (!found.poll_chk)
		found.poll_chk = poll_unchecked;
	if (!found.ppoll_chk)
		found.ppoll_chk = ppoll_unchecked;

	/* The last member says that the others are there. */
	__builtin_memcpy(&polycm_libc_found, &found, offsetof(struct polycm_libc, sleep));
	__atomic_store_n(&polycm_libc_found.sleep, found.sleep, __ATOMIC_RELEASE);
	return &polycm_libc_found;
}

__attribute__((constructor)) static void find_early(void)
{
	(void)polycm_libc();
}

/* ------------------------------------------------------------------------
 * Real time.
 */

static POLYCM_THREAD_LOCAL bool waits_really;

bool polycm_cond_waits_really(void)
{
	return waits_really;
}

static void end_cond_wait(void *unused)
{
	(void)unused;
	waits_really = false;
}

int polycm_libc_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until_ns)
{
	struct timespec until = polycm_wait_timespec(until_ns);
	int r;

	waits_really = true;
	pthread_cleanup_push(end_cond_wait, NULL);
	r = pthread_cond_timedwait(cond, mutex, &until);
	pthread_cleanup_pop(1);
	return r;
}
