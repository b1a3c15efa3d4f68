/* SPDX-License-Identifier: BSD-2-Clause */
/* host_services.h - what tests of the simulator's parts need of a core and do not look at. */
#ifndef TESTS_UNIT_HOST_SERVICES_H
#define TESTS_UNIT_HOST_SERVICES_H

#include "core/base/interposer.h"
#include "polycm/clock.h"

static const struct polycm_clock_services clock_services = {
	.size = sizeof(clock_services),
	.show = polycm_clock_show,
	.real_ns = polycm_real_ns,
	.cond_wait = polycm_cond_wait,
	.time_moved = polycm_time_moved,
};

/* polycm_core.why */
__attribute__((format(printf, 1, 2)))
static inline void no_words(const char *format, ...)
{
	(void)format;
}

#endif
