/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/requests.c - requests that the kernel serves while the program goes on (io_submit(2)).  Those of
 * files it has served soon: a wait for them is one in the kernel, as any read of a file.  But those that
 * wait for a descriptor (IOCB_CMD_POLL) others must serve.
 */
#include "config.h"

#include <errno.h>
#include <linux/aio_abi.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>

#include "clock.h"
#include "descriptors.h"
#include "hand.h"
#include "order.h"
#include "pointers.h"
#include "raw.h"
#include "signals.h"

#define POLLS 5		/* IOCB_CMD_POLL; Linux 4.18 */

static bool has_polls;		/* this process has, or had, such a request */

long turn_requests_submit(const struct turn_call *call)
{
	struct iocb *const *requests = (struct iocb *const *)call->arguments[2];

	for (long i = 0; i < call->arguments[1] && !has_polls; i++) {
		if (!turn_can_read(&requests[i], sizeof(*requests)) ||
		    !turn_can_read(requests[i], sizeof(**requests)))
			break;
		has_polls = requests[i]->aio_lio_opcode == POLLS;
	}
	return turn_done(turn_through(call));
}

/* io_pgetevents() has a mask behind a pointer; NULL: none. */
static const void *mask_of(const struct turn_call *call)
{
	const struct { const void *mask; size_t size; } *given = (const void *)call->arguments[5];

	return call->number == SYS_io_pgetevents && turn_can_read(given, sizeof(*given)) && given ?
	       given->mask : NULL;
}

long turn_requests_wait(const struct turn_call *call)
{
	const long *arguments = call->arguments, least = arguments[1], most = arguments[2];
	struct io_event *events = (struct io_event *)arguments[3];
	uint64_t deadline;
	long num = 0, result, interrupted;

	if (!has_polls || turn_pointers_check_time((const void *)arguments[4]))
		return turn_done(turn_through(call));
	deadline = turn_clock_after((const struct timespec *)arguments[4]);
	for (;;) {
		struct timespec none = { 0 };

		result = TURN_RAW(SYS_io_getevents, arguments[0], 0, most - num, events + num, &none);
		if (result < 0)
			return num ? num : result;
		num += result;
		if (num >= least || turn_order_passed(turn_segment, deadline))
			return turn_done(num);
		interrupted = turn_signal_result_with(call, mask_of(call));
		if (interrupted)
			return num ? num : interrupted;
		turn_wait(TURN_DESCRIPTORS, deadline);
	}
}
