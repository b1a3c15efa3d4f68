/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/shown.h - what the clocks that the program reads show: the system's
 * clocks where time was never virtual, else times that go on without a gap
 * between real and virtual time.
 */
#ifndef POLYCM_INTERPOSE_SHOWN_H
#define POLYCM_INTERPOSE_SHOWN_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum polycm_shown {
	POLYCM_SHOWN_UNREAD,	/* the system's, and nobody has read one yet */
	POLYCM_SHOWN_REAL,	/* the system's; the C library's calls were found */
	POLYCM_SHOWN_MOVED,	/* time is or was virtual; never another again */
};

extern int polycm_shown_state;	/* atomic */

/* ThreadSanitizer reads clocks in the middle of its own work, and must not be called from there. */
#define POLYCM_READS_CLOCK __attribute__((no_sanitize("thread")))

POLYCM_READS_CLOCK static inline bool polycm_shown_is(enum polycm_shown state)
{
	return __atomic_load_n(&polycm_shown_state, __ATOMIC_ACQUIRE) == (int)state;
}

/* polycm_clock_services.show(): they follow the installed clock from now on, or real time again. */
void polycm_shown_switch(bool is_virtual);

/*
 * What the clock shows, if that is not simply what the system says.  For
 * signal handlers, too.  `frame': of the program's call that reads it, or NULL.
 */
bool polycm_shown_read(clockid_t clock, const void *frame, uint64_t *ret_ns);
/* A clock is read.  true: that is the C library's matter, whose calls were found. */
bool polycm_shown_passes(void);
/* Would it, where time is virtual?  Not what counts the processor's work. */
bool polycm_shown_moves(clockid_t clock);
/* Is this a wait that can be virtual?  Not one until a time that cannot be, or that never comes. */
bool polycm_shown_can_wait(clockid_t clock, const struct timespec *until);
/* How long until the clock shows this; 0: it is past. */
uint64_t polycm_shown_until(clockid_t clock, const struct timespec *time);
/* The same moment as the system's clock shows it, for the C library's waits; never 0. */
struct timespec polycm_shown_to_real(clockid_t clock, const struct timespec *time);

#endif
