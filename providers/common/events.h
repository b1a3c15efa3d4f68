/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * events.h - the types of events by name.  The core has the names too, but a
 * plugin links to nothing of it.
 */
#ifndef COMMON_EVENTS_H
#define COMMON_EVENTS_H

#include <rdma/rdma_cma.h>

/* X(type) for each, type without RDMA_CM_EVENT_. */
#define EVENT_TYPES(X)                                                                             \
	X(ADDR_RESOLVED) X(ADDR_ERROR) X(ROUTE_RESOLVED) X(ROUTE_ERROR) X(CONNECT_REQUEST)         \
	X(CONNECT_RESPONSE) X(CONNECT_ERROR) X(UNREACHABLE) X(REJECTED) X(ESTABLISHED)             \
	X(DISCONNECTED) X(DEVICE_REMOVAL) X(MULTICAST_JOIN) X(MULTICAST_ERROR) X(ADDR_CHANGE)      \
	X(TIMEWAIT_EXIT)

/* An entry of a table whose index is the type. */
#define EVENT_NAME(type) [RDMA_CM_EVENT_##type] = #type,

#endif
