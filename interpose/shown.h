/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/shown.h - what the clocks that the program reads show: the system's clocks if time
 * was never virtual, else times that continue without a gap between real and virtual time.
 */
#ifndef POLYCM_INTERPOSE_SHOWN_H
#define POLYCM_INTERPOSE_SHOWN_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum polycm_shown {
	POLYCM_SHOWN_UNREAD,	/* the system's; none was read yet */
	POLYCM_SHOWN_REAL,	/* the system's; the C library's calls were found */
	POLYCM_SHOWN_MOVED,	/* time is or was virtual; this is the last state */
};

extern int polycm_shown_state;	/* atomic */

/* ThreadSanitizer reads clocks while it works, and must not be called then. */
#define POLYCM_READS_CLOCK __attribute__((no_sanitize("thread")))

POLYCM_READS_CLOCK static inline bool polycm_shown_is(enum polycm_shown state)
{
	return __atomic_load_n(&polycm_shown_state, __ATOMIC_ACQUIRE) == (int)state;
}

/* polycm_clock_services.show(): from now on clocks follow the installed clock, or real time. */
void polycm_shown_switch(bool is_virtual);

/*
 * What the clock shows; false: the system's time.  For signal handlers, too.  `frame': of the
 * program's call that reads the clock, or NULL.
 */
bool polycm_shown_read(clockid_t clock, const void *frame, uint64_t *ret_ns);
/* A clock is read.  true: call the C library, whose calls were found. */
bool polycm_shown_passes(void);
/* Does this clock follow virtual time?  Clocks of processor time do not. */
bool polycm_shown_moves(clockid_t clock);
/* Can a wait until then be virtual?  Not if the time is invalid or never comes. */
bool polycm_shown_can_wait(clockid_t clock, const struct timespec *until);
/* How long until the clock shows this time; 0: it is past. */
uint64_t polycm_shown_until(clockid_t clock, const struct timespec *time);
/* The same moment by the system's clock, for waits of the C library; never 0. */
struct timespec polycm_shown_to_real(clockid_t clock, const struct timespec *time);

#endif
