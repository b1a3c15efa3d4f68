/* SPDX-License-Identifier: BSD-2-Clause */
/* interpose/attach.c - tells libpolycm that this library is here. */
#include "config.h"

#include "core/base/export.h"
#include "host.h"
#include "libc.h"
#include "shown.h"
#include "timers.h"
#include "wait.h"

const struct polycm_interposer_host *polycm_attached_host;

static int real_epoll_wait(int set, struct epoll_event *events, int max, int timeout)
{
	return polycm_libc()->epoll_wait(set, events, max, timeout);
}

/* By a string of the library people can see which file it is. */
POLYCM_EXPORT const char *polycm_interposer_version(void);

const char *polycm_interposer_version(void)
{
	return PACKAGE_VERSION;
}

static const struct polycm_interposer interposer = {
	.size = sizeof(interposer),
	.epoll_wait = real_epoll_wait,
	.clock_gettime = polycm_libc_gettime,
	.flags_changed = polycm_flags_changed,
	.cond_wait = polycm_libc_cond_wait,
	.sleep = polycm_wait_sleep,
	.clock_show = polycm_shown_switch,
	.time_moved = polycm_alarms_ring,
	.time_moves = polycm_timerfds_go_on,
};

/* libpolycm's, if the program has loaded it. */
#pragma weak polycm_interposer_attach

__attribute__((constructor)) static void attach(void)
{
	if (polycm_interposer_attach)
		__atomic_store_n(&polycm_attached_host, polycm_interposer_attach(&interposer),
				 __ATOMIC_RELEASE);
}
