/* SPDX-License-Identifier: BSD-2-Clause */
/* base/interposer.c - what takes the C library's place, if anything does. */
#include "config.h"

#include "interposer.h"

#include <errno.h>

#include "log.h"

#define NS_PER_S UINT64_C(1000000000)

POLYCM_THREAD_LOCAL unsigned int polycm_own_looks;

/* --- Where nothing does. --- */

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / NS_PER_S),
		.tv_nsec = (long)(ns % NS_PER_S),
	};
}

static int libc_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until_ns)
{
	struct timespec until = timespec_of(until_ns);

	return pthread_cond_timedwait(cond, mutex, &until);
}

/* An operation of a thread that is cancelled must not end half done. */
static void libc_sleep(uint64_t ns)
{
	struct timespec left = timespec_of(ns);
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
	pthread_setcancelstate(state, NULL);
}

static const struct polycm_interposer libc = {
	.size = sizeof(libc),
	.epoll_wait = epoll_wait,
	.clock_gettime = clock_gettime,
	.cond_wait = libc_cond_wait,
	.sleep = libc_sleep,
};

/* Written before main(). */
static const struct polycm_interposer *attached = &libc;

static const struct polycm_interposer *current(void)
{
	return __atomic_load_n(&attached, __ATOMIC_ACQUIRE);
}

void polycm_interposer_use(const struct polycm_interposer *interposer)
{
	__atomic_store_n(&attached, interposer, __ATOMIC_RELEASE);
}

/* --- What the core calls. --- */

int polycm_real_epoll_wait(int set, struct epoll_event *events, int max, int timeout)
{
	return current()->epoll_wait(set, events, max, timeout);
}

uint64_t polycm_real_ns(clockid_t clock)
{
	struct timespec time = { .tv_sec = 0 };

	current()->clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

int polycm_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until_ns)
{
	return current()->cond_wait(cond, mutex, until_ns);
}

unsigned int polycm_flag_changes(void)
{
	const struct polycm_interposer *interposer = current();

	return interposer->flags_changed ? interposer->flags_changed() : 0;
}

void polycm_sleep(uint64_t ns)
{
	current()->sleep(ns);
}

int polycm_clock_show(bool is_virtual)
{
	const struct polycm_interposer *interposer = current();

	if (interposer->clock_show)
		interposer->clock_show(is_virtual);
	if (interposer->clock_show || !is_virtual)
		return 0;
	polycm_log(POLYCM_LOG_ERROR, "virtual time needs libpolycm-interpose, which is not loaded: "
		   "start the program with 'polycm run --clock virtual', or link it with "
		   "'pkg-config --libs polycm-sim' in place of polycm");
	return -EOPNOTSUPP;
}

bool polycm_time_moved(void)
{
	const struct polycm_interposer *interposer = current();

	return interposer->time_moved && interposer->time_moved();
}

void polycm_time_moves(void)
{
	const struct polycm_interposer *interposer = current();

	if (interposer->time_moves)
		interposer->time_moves();
}
