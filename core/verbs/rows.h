/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs/rows.h - one row per slot of struct polycm_verbs, for the macros that
 * make the exported calls, the way to libibverbs and the stubs out of them.
 *
 * PLAIN(slot, version, result, failure, context, parameters, arguments): the
 * exported ibv_SLOT@@version has just the prototype of the slot.  failure is
 * what the slot's stub returns, after setting errno to EOPNOTSUPP.
 * SLOT(slot, result, failure, parameters): the exported calls that lead to
 * this slot are written by hand.
 */
#ifndef POLYCM_CORE_VERBS_ROWS_H
#define POLYCM_CORE_VERBS_ROWS_H

#define SHIM_PLAIN_ROWS(PLAIN)                                                                     \
	PLAIN(get_async_event, 1.1, int, -1, context,                                             \
	      (struct ibv_context *context, struct ibv_async_event *event), (context, event))      \
	PLAIN(query_device, 1.1, int, EOPNOTSUPP, context,                                        \
	      (struct ibv_context *context, struct ibv_device_attr *attr), (context, attr))        \
	PLAIN(query_gid, 1.1, int, -1, context,                                                   \
	      (struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid),          \
	      (context, port, index, gid))                                                         \
	PLAIN(query_pkey, 1.1, int, -1, context,                                                  \
	      (struct ibv_context *context, uint8_t port, int index, __be16 *pkey),                \
	      (context, port, index, pkey))                                                        \
	PLAIN(get_pkey_index, 1.5, int, -1, context,                                              \
	      (struct ibv_context *context, uint8_t port, __be16 pkey), (context, port, pkey))     \
	PLAIN(alloc_pd, 1.1, struct ibv_pd *, NULL, context, (struct ibv_context *context),       \
	      (context))                                                                           \
	PLAIN(dealloc_pd, 1.1, int, EOPNOTSUPP, pd->context, (struct ibv_pd *pd), (pd))           \
	PLAIN(rereg_mr, 1.1, int, IBV_REREG_MR_ERR_INPUT, mr->context,                            \
	      (struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,         \
	       int access),                                                                        \
	      (mr, flags, pd, addr, length, access))                                               \
	PLAIN(dereg_mr, 1.1, int, EOPNOTSUPP, mr->context, (struct ibv_mr *mr), (mr))             \
	PLAIN(create_comp_channel, 1.0, struct ibv_comp_channel *, NULL, context,                 \
	      (struct ibv_context *context), (context))                                            \
	PLAIN(destroy_comp_channel, 1.0, int, EOPNOTSUPP, channel->context,                       \
	      (struct ibv_comp_channel *channel), (channel))                                       \
	PLAIN(create_cq, 1.1, struct ibv_cq *, NULL, context,                                     \
	      (struct ibv_context *context, int cqe, void *cq_context,                             \
	       struct ibv_comp_channel *channel, int comp_vector),                                 \
	      (context, cqe, cq_context, channel, comp_vector))                                    \
	PLAIN(resize_cq, 1.1, int, EOPNOTSUPP, cq->context, (struct ibv_cq *cq, int cqe),         \
	      (cq, cqe))                                                                           \
	PLAIN(destroy_cq, 1.1, int, EOPNOTSUPP, cq->context, (struct ibv_cq *cq), (cq))           \
	PLAIN(get_cq_event, 1.1, int, -1, channel->context,                                       \
	      (struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context),           \
	      (channel, cq, cq_context))                                                           \
	PLAIN(create_srq, 1.1, struct ibv_srq *, NULL, pd->context,                               \
	      (struct ibv_pd *pd, struct ibv_srq_init_attr *attr), (pd, attr))                     \
	PLAIN(modify_srq, 1.1, int, EOPNOTSUPP, srq->context,                                     \
	      (struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask), (srq, attr, mask))       \
	PLAIN(query_srq, 1.1, int, EOPNOTSUPP, srq->context,                                      \
	      (struct ibv_srq *srq, struct ibv_srq_attr *attr), (srq, attr))                       \
	PLAIN(destroy_srq, 1.1, int, EOPNOTSUPP, srq->context, (struct ibv_srq *srq), (srq))      \
	PLAIN(create_qp, 1.1, struct ibv_qp *, NULL, pd->context,                                 \
	      (struct ibv_pd *pd, struct ibv_qp_init_attr *attr), (pd, attr))                      \
	PLAIN(query_qp, 1.1, int, EOPNOTSUPP, qp->context,                                        \
	      (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,                              \
	       struct ibv_qp_init_attr *init_attr),                                                \
	      (qp, attr, mask, init_attr))                                                         \
	PLAIN(modify_qp, 1.1, int, EOPNOTSUPP, qp->context,                                       \
	      (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask), (qp, attr, mask))           \
	PLAIN(destroy_qp, 1.1, int, EOPNOTSUPP, qp->context, (struct ibv_qp *qp), (qp))           \
	PLAIN(qp_to_qp_ex, 1.6, struct ibv_qp_ex *, NULL, qp->context, (struct ibv_qp *qp), (qp)) \
	PLAIN(create_ah, 1.1, struct ibv_ah *, NULL, pd->context,                                 \
	      (struct ibv_pd *pd, struct ibv_ah_attr *attr), (pd, attr))                           \
	PLAIN(destroy_ah, 1.1, int, EOPNOTSUPP, ah->context, (struct ibv_ah *ah), (ah))           \
	PLAIN(attach_mcast, 1.1, int, EOPNOTSUPP, qp->context,                                    \
	      (struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid), (qp, gid, lid))         \
	PLAIN(detach_mcast, 1.1, int, EOPNOTSUPP, qp->context,                                    \
	      (struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid), (qp, gid, lid))         \
	PLAIN(set_ece, 1.10, int, EOPNOTSUPP, qp->context,                                        \
	      (struct ibv_qp *qp, struct ibv_ece *ece), (qp, ece))                                 \
	PLAIN(query_ece, 1.10, int, EOPNOTSUPP, qp->context,                                      \
	      (struct ibv_qp *qp, struct ibv_ece *ece), (qp, ece))

#define SHIM_SLOT_ROWS(SLOT)                                                                       \
	SLOT(close_device, int, EOPNOTSUPP, (struct ibv_context *context))                        \
	SLOT(query_port, int, EOPNOTSUPP,                                                         \
	     (struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr))              \
	SLOT(query_gid_ex, int, EOPNOTSUPP,                                                       \
	     (struct ibv_context *context, uint32_t port, uint32_t index,                          \
	      struct ibv_gid_entry *entry, uint32_t flags))                                        \
	SLOT(query_gid_table, ssize_t, -EOPNOTSUPP,                                               \
	     (struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,      \
	      uint32_t flags))                                                                     \
	SLOT(read_sysfs_file, int, -1,                                                            \
	     (struct ibv_device *device, const char *file, char *buf, size_t size))                \
	SLOT(reg_mr, struct ibv_mr *, NULL,                                                       \
	     (struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access))  \
	SLOT(import_device, struct ibv_context *, NULL, (struct ibv_device *device, int cmd_fd))  \
	SLOT(import_pd, struct ibv_pd *, NULL, (struct ibv_context *context, uint32_t handle))    \
	SLOT(unimport_pd, void, (void)0, (struct ibv_pd *pd))                                     \
	SLOT(import_mr, struct ibv_mr *, NULL, (struct ibv_pd *pd, uint32_t handle))              \
	SLOT(unimport_mr, void, (void)0, (struct ibv_mr *mr))                                     \
	SLOT(import_dm, struct ibv_dm *, NULL, (struct ibv_context *context, uint32_t handle))    \
	SLOT(unimport_dm, void, (void)0, (struct ibv_dm *dm))

#endif
