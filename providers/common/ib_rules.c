/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ib_rules.c - ACK time-out, path MTUs and the names of statuses, for the
 * transports of the InfiniBand connection manager.
 */
#include <errno.h>

#include "cm_rej.h"
#include "ib_rules.h"

#define MAX_TIMEOUT 31u	/* 5 bits */

/*
 * The wait covers the way there and back, 2 * 2^life, and the responder's
 * delay.  The sum of two powers of two is taken as the larger one, doubled
 * when both are about the same (kernel cm_ack_timeout()).
 */
uint8_t ib_rules_ack_timeout(uint8_t ack_delay, uint8_t packet_lifetime)
{
	unsigned int trip = packet_lifetime + 1u;
	unsigned int delay = ack_delay;
	unsigned int timeout;

	if (trip >= delay)
		timeout = trip + (delay >= trip - 1 ? 1u : 0u);
	else
		timeout = delay + (trip >= delay - 1 ? 1u : 0u);
	return (uint8_t)(timeout < MAX_TIMEOUT ? timeout : MAX_TIMEOUT);
}

uint32_t ib_rules_mtu_floor(uint32_t bytes)
{
	uint32_t mtu;

	for (mtu = 4096; mtu >= 256; mtu /= 2)
		if (mtu <= bytes)
			return mtu;
	return 0;
}

static const char *const rej_names[] = {
#define X(number, name, word, text) [number] = "REJ " #number ", " text,
	CM_REJ_REASONS(X)
#undef X
	[34] = "REJ 34, unassigned reason",
};

static const char *const sidr_names[] = {
	[1] = "SIDR status 1, unsupported: nobody listens on that port",
	[2] = "SIDR status 2, rejected by the peer, or its backlog is full",
	[3] = "SIDR status 3, the peer has no QP for the service",
	[4] = "SIDR status 4, the service is at another port",
	[5] = "SIDR status 5, class version not supported",
};

static const char *name_of(const char *const *names, size_t num_names, int status)
{
	return status > 0 && (size_t)status < num_names ? names[status] : NULL;
}

const char *ib_rules_status_str(enum rdma_cm_event_type event, int status)
{
	switch (event) {
	case RDMA_CM_EVENT_REJECTED:
		return name_of(rej_names, sizeof(rej_names) / sizeof(rej_names[0]), status);
	case RDMA_CM_EVENT_UNREACHABLE:
		if (status == -ETIMEDOUT)
			return "timed out: the peer is out of reach, or its program is stuck "
			       "(its connection manager sent MRAs at most)";
		return name_of(sidr_names, sizeof(sidr_names) / sizeof(sidr_names[0]), status);
	case RDMA_CM_EVENT_DISCONNECTED:
		if (status == -ETIMEDOUT)
			return "timed out: the peer's program did not answer the disconnect";
		return NULL;
	default:
		return NULL;
	}
}
