/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs/calls.c - the exported ibv_* calls that take a context or something
 * made from one: to the provider's table, or on to libibverbs.
 */
#include "config.h"

#include "core/base/libibverbs.h"
#include "rows.h"
#include "table.h"

#include <errno.h>
#include <string.h>

#include "core/base/export.h"

/* verbs.h makes macros of these to add arguments or checks for the caller. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define EXPORT_PLAIN(slot, version, result, failure, owner, parameters, arguments)                 \
	POLYCM_EXPORT result ibv_##slot parameters                                                 \
	{                                                                                          \
		const struct polycm_verbs *table = shim_table((owner)->device);                    \
                                                                                                   \
		if (table)                                                                         \
			return table->slot arguments;                                              \
                                                                                                   \
		REAL_VERB(result, "ibv_" #slot, "IBVERBS_" #version, parameters);                  \
		return real ? real arguments : failure;                                            \
	}

SHIM_PLAIN_ROWS(EXPORT_PLAIN)

/* What programs compiled before link flags and port_cap_flags2 existed pass in. */
#define COMPAT_PORT_ATTR_SIZE offsetof(struct ibv_port_attr, port_cap_flags2)

POLYCM_EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port,
				 struct _compat_ibv_port_attr *attr)
{
	const struct polycm_verbs *table = shim_table(context->device);

	if (table) {
		struct ibv_port_attr full;
		int r;

		memset(&full, 0, sizeof(full));
		r = table->query_port(context, port, &full);
		if (!r)
			memcpy((void *)attr, &full, COMPAT_PORT_ATTR_SIZE);
		return r;
	}

	REAL_VERB(int, "ibv_query_port", "IBVERBS_1.1",
		  (struct ibv_context *, uint8_t, struct _compat_ibv_port_attr *));
	return real ? real(context, port, attr) : errno;
}

POLYCM_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	const struct polycm_verbs *table = shim_table(pd->context->device);

	if (table)
		return table->reg_mr(pd, addr, length, (uintptr_t)addr, (unsigned int)access);

	REAL_VERB(struct ibv_mr *, "ibv_reg_mr", "IBVERBS_1.1",
		  (struct ibv_pd *, void *, size_t, int));
	return real ? real(pd, addr, length, access) : NULL;
}

POLYCM_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
					     uint64_t iova, int access)
{
	const struct polycm_verbs *table = shim_table(pd->context->device);

	if (table)
		return table->reg_mr(pd, addr, length, iova, (unsigned int)access);

	REAL_VERB(struct ibv_mr *, "ibv_reg_mr_iova", "IBVERBS_1.7",
		  (struct ibv_pd *, void *, size_t, uint64_t, int));
	return real ? real(pd, addr, length, iova, access) : NULL;
}

POLYCM_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
					      uint64_t iova, unsigned int access)
{
	const struct polycm_verbs *table = shim_table(pd->context->device);

	if (table)
		return table->reg_mr(pd, addr, length, iova, access);

	REAL_VERB(struct ibv_mr *, "ibv_reg_mr_iova2", "IBVERBS_1.8",
		  (struct ibv_pd *, void *, size_t, uint64_t, unsigned int));
	return real ? real(pd, addr, length, iova, access) : NULL;
}

POLYCM_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
					       uint64_t iova, int fd, int access)
{
	if (shim_table(pd->context->device)) {
		shim_refuse("ibv_reg_dmabuf_mr");
		return NULL;
	}

	REAL_VERB(struct ibv_mr *, "ibv_reg_dmabuf_mr", "IBVERBS_1.12",
		  (struct ibv_pd *, uint64_t, size_t, uint64_t, int, int));
	return real ? real(pd, offset, length, iova, fd, access) : NULL;
}

POLYCM_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	const struct polycm_verbs *table = shim_table(cq->context->device);

	if (table) {
		table->ack_cq_events(cq, nevents);
		return;
	}

	REAL_VERB(void, "ibv_ack_cq_events", "IBVERBS_1.1", (struct ibv_cq *, unsigned int));
	if (real)
		real(cq, nevents);
}

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

POLYCM_EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
				    struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	const struct polycm_verbs *table = shim_table(context->device);

	if (table) {
		struct ibv_gid_entry full;
		int r;

		memset(&full, 0, sizeof(full));
		r = table->query_gid_ex(context, port, index, &full, flags);
		if (!r)
			memcpy(entry, &full, entry_size < sizeof(full) ? entry_size : sizeof(full));
		return r;
	}

	REAL_VERB(int, "_ibv_query_gid_ex", "IBVERBS_1.11",
		  (struct ibv_context *, uint32_t, uint32_t, struct ibv_gid_entry *, uint32_t,
		   size_t));
	return real ? real(context, port, index, entry, flags, entry_size) : ENOSYS;
}

POLYCM_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context,
					   struct ibv_gid_entry *entries, size_t max_entries,
					   uint32_t flags, size_t entry_size)
{
	const struct polycm_verbs *table = shim_table(context->device);

	if (table) {
		if (entry_size != sizeof(*entries))
			return -EINVAL;
		return table->query_gid_table(context, entries, max_entries, flags);
	}

	REAL_VERB(ssize_t, "_ibv_query_gid_table", "IBVERBS_1.11",
		  (struct ibv_context *, struct ibv_gid_entry *, size_t, uint32_t, size_t));
	return real ? real(context, entries, max_entries, flags, entry_size) : -ENOSYS;
}

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
		int r;

		memset(&entry, 0, sizeof(entry));
		r = table->query_gid_ex(context, port, index, &entry, 0);
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

POLYCM_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
					     uint32_t flags)
{
	if (shim_table(qp->context->device))
		return 0;	/* never promised */

	REAL_VERB(int, "ibv_query_qp_data_in_order", "IBVERBS_1.14",
		  (struct ibv_qp *, enum ibv_wr_opcode, uint32_t));
	return real ? real(qp, op, flags) : 0;
}
