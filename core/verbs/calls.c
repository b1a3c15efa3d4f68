/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs/calls.c - the exported ibv_* calls that take a device, a context or something
 * made from one: to the provider's table, or on to libibverbs.
 */
#include "config.h"

#include "rows.h"
#include "shim.h"
#include "table.h"

#include <errno.h>
#include <string.h>

#include "core/base/log.h"

/* verbs.h makes macros of these to add arguments or checks for the caller. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

POLYCM_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

SHIM_CALL(__be64, ibv_get_device_guid, 1.1, 0, device, (struct ibv_device *device), (device),
	  ((struct polycm_verbs_device *)device)->node_guid)

/* The kernel numbers devices, and does not know simulated ones. */
SHIM_CALL(int, ibv_get_device_index, 1.9, -1, device, (struct ibv_device *device), (device), -1)

/* All calls find the provider's table through context->device. */
static struct ibv_context *open_device(const struct polycm_verbs *table, struct ibv_device *device)
{
	struct ibv_context *context = table->open_device(device);

	if (!context || context->device == device)
		return context;
	polycm_log(POLYCM_LOG_ERROR, "%s: open_device() of its provider did not set device in the "
		   "context", device->name);
	(void)table->close_device(context);
	errno = EINVAL;
	return NULL;
}

SHIM_CALL(struct ibv_context *, ibv_open_device, 1.1, NULL, device, (struct ibv_device *device),
	  (device), open_device(table, device))

static void nobody_to_tell(struct ibv_context *context)
{
	(void)context;
}

void (*polycm_shim_closing)(struct ibv_context *context) = nobody_to_tell;

static int close_device(struct ibv_context *context)
SHIM_BODY(int, ibv_close_device, 1.1, EOPNOTSUPP, context->device, (struct ibv_context *context),
	  (context), table->close_device(context))

POLYCM_EXPORT int ibv_close_device(struct ibv_context *context)
{
	polycm_shim_closing(context);
	return close_device(context);
}

#define EXPORT_PLAIN(slot, version, result, failure, owner, parameters, arguments)                 \
	SHIM_CALL(result, ibv_##slot, version, failure, (owner)->device, parameters, arguments,    \
		  table->slot arguments)

SHIM_PLAIN_ROWS(EXPORT_PLAIN)

/* What programs compiled before link flags and port_cap_flags2 existed pass in. */
#define COMPAT_PORT_ATTR_SIZE offsetof(struct ibv_port_attr, port_cap_flags2)

static int query_port(const struct polycm_verbs *table, struct ibv_context *context, uint8_t port,
		      struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr full;
	int r;

	memset(&full, 0, sizeof(full));
	r = table->query_port(context, port, &full);
	if (!r)
		memcpy((void *)attr, &full, COMPAT_PORT_ATTR_SIZE);
	return r;
}

SHIM_CALL(int, ibv_query_port, 1.1, errno, context->device,
	  (struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr),
	  (context, port, attr), query_port(table, context, port, attr))

SHIM_CALL(struct ibv_mr *, ibv_reg_mr, 1.1, NULL, pd->context->device,
	  (struct ibv_pd *pd, void *addr, size_t length, int access), (pd, addr, length, access),
	  table->reg_mr(pd, addr, length, (uintptr_t)addr, (unsigned int)access))

SHIM_CALL(struct ibv_mr *, ibv_reg_mr_iova, 1.7, NULL, pd->context->device,
	  (struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access),
	  (pd, addr, length, iova, access),
	  table->reg_mr(pd, addr, length, iova, (unsigned int)access))

SHIM_CALL(struct ibv_mr *, ibv_reg_mr_iova2, 1.8, NULL, pd->context->device,
	  (struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access),
	  (pd, addr, length, iova, access), table->reg_mr(pd, addr, length, iova, access))

SHIM_CALL(struct ibv_mr *, ibv_reg_dmabuf_mr, 1.12, NULL, pd->context->device,
	  (struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access),
	  (pd, offset, length, iova, fd, access), (shim_refuse("ibv_reg_dmabuf_mr"), NULL))

SHIM_CALL(void, ibv_ack_cq_events, 1.1, (void)0, cq->context->device,
	  (struct ibv_cq *cq, unsigned int nevents), (cq, nevents), table->ack_cq_events(cq, nevents))

/* The context of what an asynchronous event is about; NULL for a port or a device. */
static struct ibv_context *async_event_context(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return event->element.cq->context;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return event->element.qp->context;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return event->element.srq->context;
	default:
		return NULL;
	}
}

POLYCM_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	const struct ibv_context *context = async_event_context(event);
	const struct polycm_verbs *table = context ? shim_table(context->device) : NULL;

	if (table) {
		table->ack_async_event(event);
		return;
	}

	/* Acks of port and device events count nothing, whoever's they are. */
	REAL_VERB(void, "ibv_ack_async_event", "IBVERBS_1.1", (struct ibv_async_event *));
	if (real)
		real(event);
}

static int query_gid_ex(const struct polycm_verbs *table, struct ibv_context *context, uint32_t port,
			uint32_t index, uint32_t flags, struct ibv_gid_entry *entry, size_t entry_size)
{
	struct ibv_gid_entry full;
	int r;

	memset(&full, 0, sizeof(full));
	r = table->query_gid_ex(context, port, index, &full, flags);
	if (!r)
		memcpy(entry, &full, entry_size < sizeof(full) ? entry_size : sizeof(full));
	return r;
}

SHIM_CALL(int, _ibv_query_gid_ex, 1.11, ENOSYS, context->device,
	  (struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
	   uint32_t flags, size_t entry_size),
	  (context, port, index, entry, flags, entry_size),
	  query_gid_ex(table, context, port, index, flags, entry, entry_size))

SHIM_CALL(ssize_t, _ibv_query_gid_table, 1.11, -ENOSYS, context->device,
	  (struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
	   uint32_t flags, size_t entry_size),
	  (context, entries, max_entries, flags, entry_size),
	  entry_size != sizeof(*entries) ? -EINVAL :
	  table->query_gid_table(context, entries, max_entries, flags))

/*
 * ibv_devinfo of rdma-core asks libibverbs' private interface for the type of
 * a GID.  Exported without a version, which the dynamic linker lets stand for
 * any: the private version's name changes from release to release.
 */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index,
		       unsigned int *type);

POLYCM_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index,
				     unsigned int *type)
{
	const struct polycm_verbs *table = shim_table(context->device);
	static void *real_cache;
	int (*real)(struct ibv_context *, uint8_t, unsigned int, unsigned int *);

	if (table) {
		struct ibv_gid_entry entry;
		int r = query_gid_ex(table, context, port, index, 0, &entry, sizeof(entry));

		if (r) {
			errno = r;
			return -1;
		}
		*type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 1 : 0;
		return 0;
	}

	*(void **)&real = polycm_real_verb(&real_cache, "ibv_query_gid_type", NULL);
	return real ? real(context, port, index, type) : -1;
}

/* Never promised. */
SHIM_CALL(int, ibv_query_qp_data_in_order, 1.14, 0, qp->context->device,
	  (struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags), (qp, op, flags), 0)
