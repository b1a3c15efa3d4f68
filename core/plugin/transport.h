/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin/transport.h - a transport's rules: checks, what they allow for an id, and as text
 * for people.
 */
#ifndef POLYCM_CORE_TRANSPORT_H
#define POLYCM_CORE_TRANSPORT_H

#include "polycm/provider.h"

/*
 * Copy a plugin's rules, built for version 1.minor, into the core's struct, and
 * fill empty slots.  Unknown services are dropped.  -EINVAL: the struct is of
 * another version or shape, or the rules cannot be true; `why' (PROVIDER_WHY_SIZE bytes) says what.
 */
int polycm_transport_copy(struct polycm_transport *transport, const struct polycm_transport *theirs,
			  uint32_t minor, char *why);

/* The kind of an id; addr may be NULL. */
enum polycm_kind polycm_transport_kind(enum rdma_port_space ps, enum ibv_qp_type qp_type,
				       const struct sockaddr *addr);

/* The rules as text, line by line; the strings are valid during fn.  Stops at non-zero. */
int polycm_transport_walk(const struct polycm_transport *transport,
			  int (*fn)(void *arg, const char *rule, const char *value), void *arg);

#endif
