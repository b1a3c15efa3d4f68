/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/clock.h - by how much the clocks of other hosts differ from this one's.  Whoever brings the
 * traces of several hosts together needs it: so it is measured only while a trace is written, and
 * written there.
 *
 * A PING says when it was sent, its PONG also when it was answered: that was half a round trip
 * later, give or take half a round trip.
 *
 * Engine lock held for all.
 */
#ifndef OFI_CLOCK_H
#define OFI_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "frame.h"

struct ofi_peer;

/* What is known of a host's clock. */
struct ofi_clock {
	uint64_t measured;	/* when; 0: never */
	uint64_t round_trip;	/* of that measurement */
	int64_t offset;		/* its clock is ahead by so much */
	uint64_t asked;		/* when the PING was sent that is not answered; 0: none is out */
	unsigned int more;	/* PINGs that follow the answer at once */
};

/*
 * A PONG has come now: a better measurement than the one that is known replaces it.  That one gets
 * worse with time, as no two clocks run at the same rate.  What the PONG says may be anything.
 */
void ofi_clock_measure(struct ofi_clock *clock, const struct ofi_ping *pong, uint64_t now);

/* A trace begins: it says which host it is of. */
void ofi_clock_trace_begins(void);
/* A session with the peer has opened. */
void ofi_clock_opened(struct ofi_peer *peer);
/* False: somebody else had asked. */
bool ofi_clock_ponged(struct ofi_peer *peer, const struct ofi_ping *pong);
void ofi_clock_stop(void);

#endif
