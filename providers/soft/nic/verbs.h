/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/verbs.h - the ibv_* calls of a simulated device, which programs reach
 * through the tables in context.c.  Their meaning is that of libibverbs' manual pages.
 */
#ifndef SIM_NIC_VERBS_H
#define SIM_NIC_VERBS_H

#include "objects.h"

/* --- Devices and contexts. --- */

int sim_get_async_event(struct ibv_context *context, struct ibv_async_event *event);
void sim_ack_async_event(struct ibv_async_event *event);
struct ibv_context *sim_open_device(struct ibv_device *device);
int sim_close_device(struct ibv_context *context);
struct ibv_context *sim_import_device(struct ibv_device *device, int cmd_fd);
int sim_query_device(struct ibv_context *context, struct ibv_device_attr *attr);
int sim_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			struct ibv_device_attr_ex *attr, size_t size);
int sim_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
int sim_query_port_ex(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
		      size_t size);
int sim_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid);
int sim_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		     struct ibv_gid_entry *entry, uint32_t flags);
ssize_t sim_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			    size_t max_entries, uint32_t flags);
int sim_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey);
int sim_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey);
int sim_read_sysfs_file(struct ibv_device *device, const char *file, char *buf, size_t size);
int sim_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);

/* --- Protection domains, address handles, memory. --- */

struct ibv_pd *sim_alloc_pd(struct ibv_context *context);
int sim_dealloc_pd(struct ibv_pd *pd);
struct ibv_pd *sim_import_pd(struct ibv_context *context, uint32_t handle);
void sim_unimport_pd(struct ibv_pd *pd);
struct ibv_mr *sim_import_mr(struct ibv_pd *pd, uint32_t handle);
void sim_unimport_mr(struct ibv_mr *mr);
struct ibv_dm *sim_import_dm(struct ibv_context *context, uint32_t handle);
void sim_unimport_dm(struct ibv_dm *dm);
struct ibv_td *sim_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int sim_dealloc_td(struct ibv_td *td);
struct ibv_pd *sim_alloc_parent_domain(struct ibv_context *context,
				       struct ibv_parent_domain_init_attr *attr);
struct ibv_ah *sim_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int sim_destroy_ah(struct ibv_ah *ah);
struct ibv_mr *sim_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			  unsigned int access);
int sim_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access);
int sim_dereg_mr(struct ibv_mr *mr);
struct ibv_dm *sim_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int sim_free_dm(struct ibv_dm *dm);
struct ibv_mr *sim_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
			     unsigned int access);
struct ibv_mw *sim_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int sim_dealloc_mw(struct ibv_mw *mw);
int sim_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* --- Completions. --- */

struct ibv_comp_channel *sim_create_comp_channel(struct ibv_context *context);
int sim_destroy_comp_channel(struct ibv_comp_channel *channel);
int sim_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
void sim_ack_cq_events(struct ibv_cq *cq, unsigned int nevents);
struct ibv_cq *sim_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector);
int sim_resize_cq(struct ibv_cq *cq, int cqe);
int sim_destroy_cq(struct ibv_cq *cq);
int sim_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int sim_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *sim_create_cq_ex(struct ibv_context *context,
				   struct ibv_cq_init_attr_ex *attr);

/* --- Receive queues. --- */

struct ibv_srq *sim_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
struct ibv_srq *sim_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int sim_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int sim_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int sim_get_srq_num(struct ibv_srq *srq, uint32_t *number);
int sim_destroy_srq(struct ibv_srq *srq);
int sim_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int sim_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* --- XRC domains. --- */

struct ibv_xrcd *sim_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int sim_close_xrcd(struct ibv_xrcd *xrcd);

/* --- Queue pairs. --- */

struct ibv_qp *sim_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int sim_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		  struct ibv_sge *sges, uint32_t num_sges);
struct ibv_qp *sim_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *sim_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
int sim_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init_attr);
int sim_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int sim_destroy_qp(struct ibv_qp *qp);
int sim_set_ece(struct ibv_qp *qp, struct ibv_ece *ece);
int sim_query_ece(struct ibv_qp *qp, struct ibv_ece *ece);
struct ibv_qp_ex *sim_qp_to_qp_ex(struct ibv_qp *qp);
int sim_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int sim_attach_mcast(struct ibv_qp *qp, const union ibv_gid *mgid, uint16_t lid);
int sim_detach_mcast(struct ibv_qp *qp, const union ibv_gid *mgid, uint16_t lid);

#endif
