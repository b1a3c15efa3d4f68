/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/counter_area.h - what ports count, and its table in the shared segment; see counters.h. */
#ifndef SIM_COUNTER_AREA_H
#define SIM_COUNTER_AREA_H

#include <stdatomic.h>
#include <stdint.h>

/* Data is counted in words of 4 bytes, as in sysfs. */
enum sim_counter {
	SIM_SENT_PACKETS, SIM_SENT_WORDS, SIM_RECEIVED_PACKETS, SIM_RECEIVED_WORDS,
	SIM_SENT_TO_GROUPS, SIM_RECEIVED_FROM_GROUPS,	/* packets */
	SIM_NOT_SENT,			/* discarded: the port does not work */
	SIM_LINK_DOWNED,
	SIM_DUPLICATE_REQUESTS, SIM_OUT_OF_SEQUENCE, SIM_SEQUENCE_NAKS,
	SIM_RNR_SENT, SIM_RNR_RECEIVED, SIM_RETRIES, SIM_RETRY_EXCEEDED, SIM_RNR_RETRY_EXCEEDED,
	SIM_SEND_ERRORS,
	SIM_SENDS, SIM_RECEIVES,	/* messages */
	SIM_COUNTERS
};

struct sim_counters {
	_Atomic uint64_t values[SIM_COUNTERS];
};

#define SIM_COUNTED_PORTS 64u	/* of a shared fabric; what others count stays in the process */
#define SIM_COUNTER_ROWS 8u	/* each of one process at a time; one more is for all others */

/* A port's counter is the sum of all rows: what a process has counted stays there when it ends. */
struct sim_counters_area {
	_Atomic uint64_t owner[SIM_COUNTER_ROWS];	/* generation and slot + 1; 0: none yet */
	struct {
		_Alignas(64) struct sim_counters counters;
	} of[SIM_COUNTER_ROWS + 1][SIM_COUNTED_PORTS];
};

#endif
