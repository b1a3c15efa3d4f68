/* SPDX-License-Identifier: BSD-2-Clause */
/* interpose/host.h - libpolycm, as the calls of this library see it. */
#ifndef POLYCM_INTERPOSE_HOST_H
#define POLYCM_INTERPOSE_HOST_H

#include <stdbool.h>

#include "core/base/interposer.h"

/* What attach.c got before main(); NULL: nothing, and no clock is installed. */
extern const struct polycm_interposer_host *polycm_attached_host;

/* Not NULL once a clock is installed or a simulated device exists. */
#define polycm_host() __atomic_load_n(&polycm_attached_host, __ATOMIC_ACQUIRE)

static inline bool polycm_has_clock(void)
{
	const struct polycm_interposer_host *host = polycm_host();

	return host && __atomic_load_n(host->clock_installed, __ATOMIC_ACQUIRE);
}

/* What each call checks first; cheap if no clock is installed. */
static inline bool time_is_real(void)
{
	return __builtin_expect(!polycm_has_clock(), 1) || !polycm_host()->clock_virtual();
}

#endif
