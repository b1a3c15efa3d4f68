/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api/rdma_newer.c - calls of librdmacm 60 that need kernel commands which Linux 6.12
 * lacks: events from the program, and look-ups that end in an event.  They fail as in
 * librdmacm on that kernel, which must not get an id of libpolycm.
 */
#include "config.h"
#include "core/cm/id_internal.h"

#include <errno.h>

#include "core/base/export.h"
#include "core/cm/ret.h"

/* Headers of older releases do not declare them. */
POLYCM_EXPORT int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event,
				      int status, uint64_t arg);
POLYCM_EXPORT int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node,
					const char *service, const struct rdma_addrinfo *hints);
POLYCM_EXPORT int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);

static int refuse(const char *call, struct rdma_cm_id *id, int refusal, const char *why)
{
	struct polycm_id *self = polycm_enter(id);

	return self ? polycm_exit(call, self, polycm_fail(refusal, "%s", why)) : polycm_refused(call);
}

POLYCM_EXPORT int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event,
				      int status, uint64_t arg)
{
	(void)event;
	(void)status;
	(void)arg;
	return refuse(__func__, id, -EINVAL,
		      "Linux 6.12 and polycm take no events from programs");
}

POLYCM_EXPORT int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node,
					const char *service, const struct rdma_addrinfo *hints)
{
	(void)node;
	(void)service;
	(void)hints;
	return refuse(__func__, id, -EINVAL,
		      "Linux 6.12 and polycm lack it: use rdma_getaddrinfo");
}

POLYCM_EXPORT int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info)
{
	(void)info;
	return refuse(__func__, id, -ENOENT, "nothing was looked up");
}
