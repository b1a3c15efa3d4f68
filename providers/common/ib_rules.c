/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ib_rules.c - ACK time-out, path MTUs and the names of statuses, for the
 * transports of the InfiniBand connection manager.
 */
#include <errno.h>

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
	[1] = "REJ 1, no QP available at the peer",
	[2] = "REJ 2, no EE context available at the peer",
	[3] = "REJ 3, the peer is out of resources",
	[4] = "REJ 4, timeout: the peer gave up waiting",
	[5] = "REJ 5, unsupported request",
	[6] = "REJ 6, invalid communication id",
	[7] = "REJ 7, invalid communication instance",
	[8] = "REJ 8, invalid service id: nobody listens on that port",
	[9] = "REJ 9, invalid transport service type",
	[10] = "REJ 10, stale connection: the peer still has a connection with this QP number",
	[11] = "REJ 11, no such RD channel",
	[12] = "REJ 12, invalid GID: the peer has no path back",
	[13] = "REJ 13, invalid LID",
	[14] = "REJ 14, invalid service level",
	[15] = "REJ 15, invalid traffic class",
	[16] = "REJ 16, invalid hop limit",
	[17] = "REJ 17, invalid packet rate",
	[18] = "REJ 18, invalid alternate GID",
	[19] = "REJ 19, invalid alternate LID",
	[20] = "REJ 20, invalid alternate service level",
	[21] = "REJ 21, invalid alternate traffic class",
	[22] = "REJ 22, invalid alternate hop limit",
	[23] = "REJ 23, invalid alternate packet rate",
	[24] = "REJ 24, the connection manager is at another port",
	[25] = "REJ 25, the service is at another port",
	[26] = "REJ 26, invalid path MTU",
	[27] = "REJ 27, not enough responder resources",
	[28] = "REJ 28, consumer defined: rejected by the peer's program, or its listener is "
	       "for another address or type",
	[29] = "REJ 29, invalid RNR retry count",
	[30] = "REJ 30, communication id is in use",
	[31] = "REJ 31, invalid class version",
	[32] = "REJ 32, invalid flow label",
	[33] = "REJ 33, invalid alternate flow label",
	[34] = "REJ 34, unassigned reason",
	[35] = "REJ 35, vendor option not supported: the peer's program refused our ECE options",
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
