/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api/rdma_newer.c - calls of librdmacm 60: events from the program, and look-ups that end in
 * an event.  No provider is asked.  Where the kernel's descriptor is the channel's they would
 * need commands of the kernel which Linux 6.12 lacks, and fail as in librdmacm there.
 */
#include "config.h"
#include "core/cm/id_internal.h"

#include <errno.h>

#include "core/base/export.h"
#include "core/cm/ret.h"

#define RAI_SA_FLAG	0x10
#define RAI_DNS_FLAG	0x20

/* Headers of older releases do not declare them. */
POLYCM_EXPORT int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event,
				      int status, uint64_t arg);
POLYCM_EXPORT int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node,
					const char *service, const struct rdma_addrinfo *hints);
POLYCM_EXPORT int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);

static int write_event(struct polycm_id *id, enum rdma_cm_event_type event, int status,
		       uint64_t arg)
{
	if ((int)event != POLYCM_EVENT_USER)
		return polycm_fail(-EINVAL, "programs write events of type USER (%d) only",
				   POLYCM_EVENT_USER);
	return polycm_post_own(id, event, status, arg);
}

POLYCM_EXPORT int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event,
				      int status, uint64_t arg)
{
	return POLYCM_CALL(polycm_exit, self, id, write_event(self, event, status, arg));
}

/* DNS may take seconds, and is asked without the id. */
static int look_up(const char *node, const char *service, const struct rdma_addrinfo *hints,
		   struct rdma_addrinfo **ret_found)
{
	int flags = hints ? hints->ai_flags : 0, err;

	if (flags & RAI_SA_FLAG)
		return polycm_fail(-EOPNOTSUPP, flags & RAI_DNS_FLAG || node ?
				   "RAI_SA goes with neither RAI_DNS nor a node" :
				   "no subnet administrator is asked for service records");
	errno = EINVAL;	/* what is wrong with names has no errno of its own */
	err = rdma_getaddrinfo(node, service, hints, ret_found);
	return err ? -errno : 0;
}

static int keep(struct polycm_id *id, struct rdma_addrinfo *found)
{
	int err;

	if (id->found)
		return polycm_fail(-EBUSY, "rdma_query_addrinfo() has not taken the result before");
	err = polycm_post_own(id, (enum rdma_cm_event_type)POLYCM_EVENT_ADDRINFO_RESOLVED, 0, 0);
	if (err)
		return err;
	id->found = found;
	id->free_found = rdma_freeaddrinfo;
	return 0;
}

static int resolve(struct rdma_cm_id *id, struct rdma_addrinfo *found, int *ret_kept)
{
	return POLYCM_CALL(polycm_exit_to_complete, self, id, *ret_kept = keep(self, found));
}

POLYCM_EXPORT int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node,
					const char *service, const struct rdma_addrinfo *hints)
{
	struct polycm_id *checked = polycm_enter(id);
	struct rdma_addrinfo *found;
	int kept = -EINVAL, ret, err;

	if (!checked)
		return polycm_refused(__func__);
	polycm_leave(checked);
	err = look_up(node, service, hints, &found);
	if (err)
		return POLYCM_CALL(polycm_exit, self, id, err);
	ret = resolve(id, found, &kept);
	if (kept) {
		err = errno;
		rdma_freeaddrinfo(found);
		errno = err;
	}
	return ret;
}

static int take(struct polycm_id *id, struct rdma_addrinfo **ret_info)
{
	if (!ret_info)
		return polycm_fail(-EINVAL, "nowhere to put the result");
	if (!id->found)
		return polycm_fail(-ENOENT, "nothing was looked up");
	*ret_info = id->found;
	id->found = NULL;
	return 0;
}

POLYCM_EXPORT int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info)
{
	return POLYCM_CALL(polycm_exit, self, id, take(self, info));
}
