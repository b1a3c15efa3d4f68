/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/libc.h - the C library's calls behind those that we export under the
 * same names.  Found when the library is loaded, or by the first call if that
 * comes before; tests put theirs in.
 */
#ifndef POLYCM_INTERPOSE_LIBC_H
#define POLYCM_INTERPOSE_LIBC_H

#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* Not in every version of its headers. */
int __poll_chk(struct pollfd *fds, nfds_t nfds, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t nfds, const struct timespec *timeout,
		const sigset_t *mask, size_t size);
ssize_t __read_chk(int fd, void *buf, size_t size, size_t room);
int epoll_pwait2(int epfd, struct epoll_event *events, int max, const struct timespec *timeout,
		 const sigset_t *mask);

/* The calls that we need of it. */
#define POLYCM_LIBC_CALLS(CALL) \
	CALL(poll) CALL(ppoll) CALL(__poll_chk) CALL(__ppoll_chk) CALL(select) CALL(pselect) \
	CALL(epoll_wait) CALL(epoll_pwait) CALL(epoll_pwait2) \
	CALL(nanosleep) CALL(clock_nanosleep) CALL(thrd_sleep) CALL(usleep) CALL(sleep) \
	CALL(clock_gettime) CALL(gettimeofday) CALL(time) CALL(timespec_get) \
	CALL(pthread_cond_timedwait) CALL(pthread_cond_clockwait) CALL(pthread_cond_signal) \
	CALL(pthread_cond_broadcast) CALL(cnd_timedwait) CALL(cnd_signal) CALL(cnd_broadcast) \
	CALL(sem_timedwait) CALL(sem_clockwait) CALL(pthread_mutex_timedlock) \
	CALL(pthread_mutex_clocklock) CALL(mtx_timedlock) CALL(pthread_rwlock_timedrdlock) \
	CALL(pthread_rwlock_timedwrlock) CALL(pthread_rwlock_clockrdlock) \
	CALL(pthread_rwlock_clockwrlock) CALL(mq_timedsend) CALL(mq_timedreceive) \
	CALL(timerfd_settime) CALL(timerfd_gettime) CALL(read) CALL(__read_chk) CALL(alarm) \
	CALL(setitimer) CALL(getitimer) CALL(timer_create) CALL(timer_delete) CALL(timer_settime) \
	CALL(timer_gettime) CALL(pause) CALL(sigsuspend) CALL(sigwait) CALL(sigwaitinfo) \
	CALL(sigtimedwait) CALL(fcntl) CALL(fcntl64) CALL(ioctl)

#define POLYCM_LIBC_MEMBER(name) __typeof__(name) *name;
struct polycm_libc {
	POLYCM_LIBC_CALLS(POLYCM_LIBC_MEMBER)
};

extern struct polycm_libc polycm_libc_found;

const struct polycm_libc *polycm_libc_find(void);

static inline bool polycm_libc_is_found(void)
{
	return __atomic_load_n(&polycm_libc_found.ioctl, __ATOMIC_ACQUIRE) != NULL;
}

/* polycm_libc()->poll(...) */
static inline const struct polycm_libc *polycm_libc(void)
{
	if (__builtin_expect(!polycm_libc_is_found(), 0))
		return polycm_libc_find();
	return &polycm_libc_found;
}

/*
 * Real time, for polycm itself, whatever the program's clocks show.  A clock may be read before
 * the library is ready, for instance by an allocator.
 */
int polycm_libc_gettime(clockid_t clock, struct timespec *time);
uint64_t polycm_libc_ns(clockid_t clock);
/*
 * A wait of polycm itself until a real time of the condition's clock.  It calls
 * pthread_cond_timedwait(), which sanitizers intercept.
 */
int polycm_libc_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until_ns);
bool polycm_cond_waits_really(void);

#endif
