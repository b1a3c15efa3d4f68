/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/libc.h - the C library's calls behind those that we export under the
 * same names.  Found when the library is loaded, or by the first call if that
 * comes before; tests put theirs in.
 */
#ifndef POLYCM_INTERPOSE_LIBC_H
#define POLYCM_INTERPOSE_LIBC_H

#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <threads.h>
#include <time.h>

struct polycm_libc {
	int (*poll)(struct pollfd *fds, nfds_t nfds, int timeout);
	int (*ppoll)(struct pollfd *fds, nfds_t nfds, const struct timespec *timeout,
		     const sigset_t *mask);
	int (*poll_chk)(struct pollfd *fds, nfds_t nfds, int timeout, size_t size);
	int (*ppoll_chk)(struct pollfd *fds, nfds_t nfds, const struct timespec *timeout,
			 const sigset_t *mask, size_t size);
	int (*select)(int nfds, fd_set *readable, fd_set *writable, fd_set *other,
		      struct timeval *timeout);
	int (*pselect)(int nfds, fd_set *readable, fd_set *writable, fd_set *other,
		       const struct timespec *timeout, const sigset_t *mask);
	int (*epoll_wait)(int epfd, struct epoll_event *events, int max, int timeout);
	int (*epoll_pwait)(int epfd, struct epoll_event *events, int max, int timeout,
			   const sigset_t *mask);
	int (*epoll_pwait2)(int epfd, struct epoll_event *events, int max,
			    const struct timespec *timeout, const sigset_t *mask);
	int (*nanosleep)(const struct timespec *time, struct timespec *left);
	int (*clock_nanosleep)(clockid_t clock, int flags, const struct timespec *time,
			       struct timespec *left);
	int (*clock_gettime)(clockid_t clock, struct timespec *time);
	int (*gettimeofday)(struct timeval *time, void *zone);
	time_t (*time)(time_t *time);
	int (*timespec_get)(struct timespec *time, int base);
	int (*cond_timedwait)(pthread_cond_t *cond, pthread_mutex_t *mutex,
			      const struct timespec *until);
	int (*cond_clockwait)(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
			      const struct timespec *until);
	int (*cond_signal)(pthread_cond_t *cond);
	int (*cond_broadcast)(pthread_cond_t *cond);
	int (*cnd_timedwait)(cnd_t *cond, mtx_t *mutex, const struct timespec *until);
	int (*cnd_signal)(cnd_t *cond);
	int (*cnd_broadcast)(cnd_t *cond);
	int (*sem_timedwait)(sem_t *sem, const struct timespec *until);
	int (*sem_clockwait)(sem_t *sem, clockid_t clock, const struct timespec *until);
	int (*mutex_timedlock)(pthread_mutex_t *mutex, const struct timespec *until);
	int (*mutex_clocklock)(pthread_mutex_t *mutex, clockid_t clock,
			       const struct timespec *until);
	int (*mtx_timedlock)(mtx_t *mutex, const struct timespec *until);
	int (*rwlock_timedrdlock)(pthread_rwlock_t *lock, const struct timespec *until);
	int (*rwlock_timedwrlock)(pthread_rwlock_t *lock, const struct timespec *until);
	int (*rwlock_clockrdlock)(pthread_rwlock_t *lock, clockid_t clock,
				  const struct timespec *until);
	int (*rwlock_clockwrlock)(pthread_rwlock_t *lock, clockid_t clock,
				  const struct timespec *until);
	int (*mq_timedsend)(mqd_t queue, const char *message, size_t len, unsigned int priority,
			    const struct timespec *until);
	ssize_t (*mq_timedreceive)(mqd_t queue, char *message, size_t len, unsigned int *priority,
				   const struct timespec *until);
	int (*thrd_sleep)(const struct timespec *time, struct timespec *left);
	int (*timerfd_settime)(int fd, int flags, const struct itimerspec *time,
			       struct itimerspec *old);
	int (*timerfd_gettime)(int fd, struct itimerspec *time);
	ssize_t (*read)(int fd, void *buf, size_t size);
	ssize_t (*read_chk)(int fd, void *buf, size_t size, size_t room);
	unsigned int (*alarm)(unsigned int seconds);
	int (*setitimer)(int which, const struct itimerval *time, struct itimerval *old);
	int (*getitimer)(int which, struct itimerval *time);
	int (*timer_create)(clockid_t clock, struct sigevent *event, timer_t *id);
	int (*timer_delete)(timer_t id);
	int (*timer_settime)(timer_t id, int flags, const struct itimerspec *time,
			     struct itimerspec *old);
	int (*timer_gettime)(timer_t id, struct itimerspec *time);
	int (*pause)(void);
	int (*sigsuspend)(const sigset_t *mask);
	int (*sigwait)(const sigset_t *set, int *signal);
	int (*sigwaitinfo)(const sigset_t *set, siginfo_t *info);
	int (*sigtimedwait)(const sigset_t *set, siginfo_t *info, const struct timespec *timeout);
	int (*fcntl)(int fd, int cmd, ...);
	int (*fcntl64)(int fd, int cmd, ...);
	int (*ioctl)(int fd, unsigned long request, ...);
	int (*usleep)(useconds_t us);
	unsigned int (*sleep)(unsigned int seconds);
};

extern struct polycm_libc polycm_libc_found;

const struct polycm_libc *polycm_libc_find(void);

static inline bool polycm_libc_is_found(void)
{
	return __atomic_load_n(&polycm_libc_found.sleep, __ATOMIC_ACQUIRE) != NULL;
}

/* polycm_libc()->poll(...) */
static inline const struct polycm_libc *polycm_libc(void)
{
	if (__builtin_expect(!polycm_libc_is_found(), 0))
		return polycm_libc_find();
	return &polycm_libc_found;
}

/*
 * Real time, for polycm itself, whatever the program's clocks show.  A clock may
 * be read before the library is ready, by who allocates memory for instance.
 */
int polycm_libc_gettime(clockid_t clock, struct timespec *time);
uint64_t polycm_libc_ns(clockid_t clock);
/*
 * A wait of polycm's own until a real time of the clock that the condition was
 * made with; by its name in the C library, since sanitizers watch that.
 */
int polycm_libc_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until_ns);
bool polycm_cond_waits_really(void);

#endif
