/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ib_rules.h - what the transports of the InfiniBand connection manager have
 * in common; compiled into the plugins of both InfiniBand and RoCE.
 *
 * Pure functions, any thread.
 */
#ifndef PROVIDERS_COMMON_IB_RULES_H
#define PROVIDERS_COMMON_IB_RULES_H

#include "polycm/provider.h"

/* Exponents as the Linux CM sends them; a wait of 2^(n-8) ms. */
#define IB_CM_RESPONSE_TIMEOUT	20u
#define IB_CM_MAX_RETRIES	15u
#define IB_CM_MRA_TIMEOUT	24u

/* Retry count and RNR retry count are fields of 3 bits. */
#define IB_MAX_RETRY_COUNT	7u

/* Exponent of the local ACK time-out of a QP whose responder has this delay. */
uint8_t ib_rules_ack_timeout(uint8_t ack_delay, uint8_t packet_lifetime);

/* The largest of the five path MTUs that is not above bytes, or 0. */
uint32_t ib_rules_mtu_floor(uint32_t bytes);

const char *ib_rules_status_str(enum rdma_cm_event_type event, int status);

#endif
