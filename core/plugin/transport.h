/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin/transport.h - reading a transport's rules: are they sane, what do they allow
 * for an id, and what do they look like as a table for people.
 */
#ifndef POLYCM_CORE_TRANSPORT_H
#define POLYCM_CORE_TRANSPORT_H

#include "polycm/provider.h"

/* -EINVAL: the struct is too short to tell, or its tables are of another shape than ours. */
int polycm_transport_check_shape(const struct polycm_transport *theirs, char *why, size_t why_size);
/*
 * Copy a plugin's rules into the core's struct, empty slots filled; services that are not known
 * are left out.  -EINVAL
 * where they cannot be true or would not fit the protocol's messages; `why'
 * (why_size bytes) then says what is wrong.
 */
int polycm_transport_copy(struct polycm_transport *transport, const struct polycm_transport *theirs,
			  char *why, size_t why_size);

/* The kind of an id; addr may be NULL. */
enum polycm_kind polycm_transport_kind(enum rdma_port_space ps, enum ibv_qp_type qp_type,
				       const struct sockaddr *addr);
/* Bytes of private data that a program may pass. */
static inline uint16_t polycm_transport_limit(const struct polycm_transport *transport,
					      enum polycm_kind kind, enum polycm_msg msg)
{
	return transport->limit[kind][msg];
}

/* The rules as text, line by line; the strings are valid during fn.  Stops at non-zero. */
int polycm_transport_walk(const struct polycm_transport *transport,
			  int (*fn)(void *arg, const char *rule, const char *value), void *arg);

#endif
