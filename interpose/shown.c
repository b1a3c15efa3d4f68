/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/shown.c - what the clocks that the program reads show.
 *
 * While time is real, a clock shows the system's time.  When virtual time begins, it continues
 * from there with virtual time, and with real time when virtual time ends.  So it never goes
 * back.
 *
 * Two virtual times may lie in one second or in two.  So that programs which compute in seconds
 * repeat, virtual time begins at a full second of each clock.  If the program has read a clock
 * before, a deadline that it computed must not come nearer by most of a second: then virtual
 * time begins at a full millisecond.
 *
 * Clocks are read without a lock, also in signal handlers.  Of two snapshots, readers use the
 * one that is not being written.
 */
#include "config.h"

#include "host.h"
#include "shown.h"

#include "libc.h"
#include "timers.h"
#include "wait.h"

static const clockid_t clocks[] = {
	CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_TAI,
};
#define NUM_CLOCKS (sizeof(clocks) / sizeof(clocks[0]))

struct snapshot {
	bool is_virtual;
	uint64_t offset[NUM_CLOCKS];	/* to virtual or to real time, modulo 2^64 */
};

int polycm_shown_state;
static bool was_read;
static unsigned int version;
static struct snapshot snapshots[2];	/* [version % 2] holds */

POLYCM_READS_CLOCK static int index_of(clockid_t clock)
{
	switch (clock) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
	case CLOCK_REALTIME_ALARM:
		return 0;
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_COARSE:
		return 1;
	case CLOCK_MONOTONIC_RAW:
		return 2;
	case CLOCK_BOOTTIME:
	case CLOCK_BOOTTIME_ALARM:
		return 3;
	case CLOCK_TAI:
		return 4;
	default:
		return -1;
	}
}

bool polycm_shown_moves(clockid_t clock)
{
	return index_of(clock) >= 0;
}

POLYCM_READS_CLOCK static void note_read(void)
{
	int unread = POLYCM_SHOWN_UNREAD;

	__atomic_store_n(&was_read, true, __ATOMIC_RELAXED);
	/* From now on the C library is called without further checks. */
	if (polycm_libc_is_found())
		__atomic_compare_exchange_n(&polycm_shown_state, &unread, POLYCM_SHOWN_REAL, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

bool polycm_shown_passes(void)
{
	if (polycm_shown_is(POLYCM_SHOWN_MOVED))
		return false;
	note_read();
	return polycm_libc_is_found();
}

POLYCM_READS_CLOCK static uint64_t shown(unsigned int i, const void *frame)
{
	const struct snapshot *from;
	unsigned int seen;
	uint64_t ns;

	do {
		seen = __atomic_load_n(&version, __ATOMIC_ACQUIRE);
		from = &snapshots[seen % 2];
		ns = __atomic_load_n(&from->offset[i], __ATOMIC_ACQUIRE);
		if (__atomic_load_n(&from->is_virtual, __ATOMIC_ACQUIRE))
			ns += polycm_host()->clock_read(frame);
		else
			ns += polycm_libc_ns(clocks[i]);
	} while (__atomic_load_n(&version, __ATOMIC_ACQUIRE) != seen);
	return ns;
}

POLYCM_READS_CLOCK bool polycm_shown_read(clockid_t clock, const void *frame, uint64_t *ret_ns)
{
	int i = index_of(clock);

	if (i < 0)
		return false;
	if (!polycm_shown_is(POLYCM_SHOWN_MOVED)) {
		note_read();
		return false;
	}
	*ret_ns = shown((unsigned int)i, frame);
	return true;
}

static uint64_t rounded_up(uint64_t ns)
{
	uint64_t unit = __atomic_load_n(&was_read, __ATOMIC_RELAXED) ? 1000000u : POLYCM_NS_PER_S;

	return (ns + unit - 1) / unit * unit;
}

static uint64_t current(unsigned int i)
{
	return polycm_shown_is(POLYCM_SHOWN_MOVED) ? shown(i, NULL) : polycm_libc_ns(clocks[i]);
}

static void show(bool is_virtual)
{
	struct snapshot *next = &snapshots[(version + 1) % 2];

	if (!polycm_has_clock() || (!is_virtual && !polycm_shown_is(POLYCM_SHOWN_MOVED)))
		return;
	for (unsigned int i = 0; i < NUM_CLOCKS; i++) {
		uint64_t now = current(i);
		uint64_t offset = is_virtual ? rounded_up(now) - polycm_host()->now_ns() :
					       now - polycm_libc_ns(clocks[i]);

		/* Release: a reader that loads this also sees the newer version, and reads again. */
		__atomic_store_n(&next->offset[i], offset, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&next->is_virtual, is_virtual, __ATOMIC_RELEASE);
	__atomic_store_n(&version, version + 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&polycm_shown_state, POLYCM_SHOWN_MOVED, __ATOMIC_SEQ_CST);
}

/* Timers store their remaining time, which passes in either time. */
void polycm_shown_switch(bool is_virtual)
{
	if (!is_virtual) {
		polycm_alarms_release();
		polycm_timerfds_release();
	}
	show(is_virtual);
	if (is_virtual && polycm_shown_is(POLYCM_SHOWN_MOVED))
		polycm_timerfds_adopt();
}

/* ------------------------------------------------------------------------
 * Deadlines.
 */

static uint64_t now_of(clockid_t clock)
{
	int i = index_of(clock);

	return i < 0 ? polycm_libc_ns(clock) : current((unsigned int)i);
}

/* The C library waits by these two clocks. */
bool polycm_shown_can_wait(clockid_t clock, const struct timespec *until)
{
	return (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC) && polycm_wait_valid(until) &&
	       polycm_wait_ns(until) != POLYCM_FOREVER;
}

uint64_t polycm_shown_until(clockid_t clock, const struct timespec *time)
{
	uint64_t now = now_of(clock), until = polycm_wait_ns(time);

	return until > now ? until - now : 0;
}

struct timespec polycm_shown_to_real(clockid_t clock, const struct timespec *time)
{
	uint64_t now = now_of(clock), until = polycm_wait_ns(time), real = polycm_libc_ns(clock);

	if (until > now)
		until = until - now < INT64_MAX - real ? real + (until - now) : INT64_MAX;
	else
		until = now - until < real ? real - (now - until) : 1;
	return polycm_wait_timespec(until);
}
