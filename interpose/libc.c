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

/* The C library has it from 2.35 on. */
static int epoll_pwait2_syscall(int epfd, struct epoll_event *events, int max,
				const struct timespec *timeout, const sigset_t *mask)
{
	return (int)syscall(SYS_epoll_pwait2, epfd, events, max, timeout, mask, _NSIG / 8);
}

/*
 * The C library has two versions of some calls, and a look-up without a version finds the
 * older one, whose conditions and timers are others.
 */
static void *find_version(const char *name, const char *version, void *otherwise)
{
	void *address = dlvsym(RTLD_NEXT, name, version);

	return address ? address : otherwise;
}

#define SET(name, address) *(void **)(void *)&found.name = (address);
#define FIND(name) SET(name, dlsym(RTLD_NEXT, #name))
#define FIND_VERSION(name, version) SET(name, find_version(#name, version, (void *)found.name))
/* Timers have moved from librt to libc in 2.34. */
#define FIND_TIMER(name) FIND_VERSION(name, "GLIBC_2.3.3") FIND_VERSION(name, "GLIBC_2.34")

/* Several threads may run this at a time: they write the same. */
const struct polycm_libc *polycm_libc_find(void)
{
	struct polycm_libc found;

	POLYCM_LIBC_CALLS(FIND)
	FIND_VERSION(pthread_cond_timedwait, "GLIBC_2.3.2")
	FIND_VERSION(pthread_cond_signal, "GLIBC_2.3.2")
	FIND_VERSION(pthread_cond_broadcast, "GLIBC_2.3.2")
	FIND_TIMER(timer_create)
	FIND_TIMER(timer_delete)
	FIND_TIMER(timer_settime)
	FIND_TIMER(timer_gettime)
	if (!found.epoll_pwait2)
		found.epoll_pwait2 = epoll_pwait2_syscall;

	/* The last member says that the others are there. */
	__builtin_memcpy(&polycm_libc_found, &found, offsetof(struct polycm_libc, ioctl));
	__atomic_store_n(&polycm_libc_found.ioctl, found.ioctl, __ATOMIC_RELEASE);
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
