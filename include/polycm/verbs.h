/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * polycm/verbs.h - verbs of a provider's own, for devices that libibverbs does
 * not know.  Providers of devices that libibverbs lists do not need this.
 */
#ifndef POLYCM_VERBS_H
#define POLYCM_VERBS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Each slot has the prototype, the return convention, the errno values and
 * the ownership rules of the libibverbs function ibv_SLOT() of the same name.
 * reg_mr, which also serves ibv_reg_mr_iova2(), has iova and its access flags
 * in addition.  import_device has the device, since the core asks one after the
 * other.  open_device and close_device are required; calls of missing ones fail
 * with EOPNOTSUPP.  Without query_device and alloc_pd nothing connects.
 * The inline functions of <infiniband/verbs.h> (ibv_post_send, ibv_poll_cq,
 * ibv_create_qp_ex, ...) go through ibv_context.ops and struct verbs_context,
 * which open_device() fills in.
 *
 *  Legal     On objects that the same provider made and that still exist.  The
 *            core does not check that.
 *  Waits     get_async_event and get_cq_event wait for an event, unless the
 *            descriptor has O_NONBLOCK.  destroy_cq, destroy_qp and destroy_srq
 *            wait until the program has acknowledged the object's events.
 *  Keeps     Objects are the provider's.  Arguments are valid during the call.
 *            The core reads context of all objects, and ibv_qp.qp_num, qp_type,
 *            state, send_cq, recv_cq and srq; the provider keeps them true.
 *  Threads   Any, at the same time.  The core makes some calls for rdma_* calls,
 *            and then it may hold the lock of an id.  It opens each device once
 *            for itself (open_device, query_device, query_port, alloc_pd).
 *  Posts     Nothing to ids.
 *  fork()    As with libibverbs, a child must not use its parent's objects.
 */
struct polycm_verbs {
	uint32_t size;
	struct ibv_context *(*open_device)(struct ibv_device *device);
	int (*close_device)(struct ibv_context *context);
	int (*get_async_event)(struct ibv_context *context, struct ibv_async_event *event);
	void (*ack_async_event)(struct ibv_async_event *event);
	int (*query_device)(struct ibv_context *context, struct ibv_device_attr *attr);
	int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
	int (*query_gid)(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid);
	int (*query_gid_ex)(struct ibv_context *context, uint32_t port, uint32_t index,
			    struct ibv_gid_entry *entry, uint32_t flags);
	ssize_t (*query_gid_table)(struct ibv_context *context, struct ibv_gid_entry *entries,
				   size_t max_entries, uint32_t flags);
	int (*query_pkey)(struct ibv_context *context, uint8_t port, int index, __be16 *pkey);
	int (*get_pkey_index)(struct ibv_context *context, uint8_t port, __be16 pkey);
	/*
	 * Files below device->ibdev_path, as in sysfs but without the newline at the end.
	 * Returns the length or -1.  For a path that ends in '/', and for "", the folder
	 * itself: the names in it, one a line, those of folders with '/' behind; "device/"
	 * is the card.  A provider that does not list folders has the usual files in sysfs only.
	 */
	int (*read_sysfs_file)(struct ibv_device *device, const char *file, char *buf, size_t size);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	int (*dealloc_pd)(struct ibv_pd *pd);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				 unsigned int access);
	int (*rereg_mr)(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
			size_t length, int access);
	int (*dereg_mr)(struct ibv_mr *mr);
	struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *context);
	int (*destroy_comp_channel)(struct ibv_comp_channel *channel);
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int cqe, void *cq_context,
				    struct ibv_comp_channel *channel, int comp_vector);
	int (*resize_cq)(struct ibv_cq *cq, int cqe);
	int (*destroy_cq)(struct ibv_cq *cq);
	int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			    void **cq_context);
	void (*ack_cq_events)(struct ibv_cq *cq, unsigned int nevents);
	struct ibv_srq *(*create_srq)(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
	int (*modify_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
	int (*query_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr);
	int (*destroy_srq)(struct ibv_srq *srq);
	struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
	struct ibv_qp_ex *(*qp_to_qp_ex)(struct ibv_qp *qp);
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init_attr);
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
	int (*destroy_qp)(struct ibv_qp *qp);
	struct ibv_ah *(*create_ah)(struct ibv_pd *pd, struct ibv_ah_attr *attr);
	int (*destroy_ah)(struct ibv_ah *ah);
	int (*attach_mcast)(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
	int (*detach_mcast)(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
	int (*set_ece)(struct ibv_qp *qp, struct ibv_ece *ece);
	int (*query_ece)(struct ibv_qp *qp, struct ibv_ece *ece);
	/* NULL and ENODEV: the descriptor is not that of a context of this device. */
	struct ibv_context *(*import_device)(struct ibv_device *device, int cmd_fd);
	struct ibv_pd *(*import_pd)(struct ibv_context *context, uint32_t handle);
	void (*unimport_pd)(struct ibv_pd *pd);
	struct ibv_mr *(*import_mr)(struct ibv_pd *pd, uint32_t handle);
	void (*unimport_mr)(struct ibv_mr *mr);
	struct ibv_dm *(*import_dm)(struct ibv_context *context, uint32_t handle);
	void (*unimport_dm)(struct ibv_dm *dm);
};

/*
 * A device as programs see it.  The provider owns it, fills in device (name,
 * node_type, transport_type, paths) and verbs, and leaves the rest zero: the
 * core writes core and device._ops in device_add().  It begins with struct
 * ibv_device, so it has no size, and never changes.
 */
struct polycm_verbs_device {
	struct ibv_device device;	/* first */
	const struct polycm_verbs *verbs;
	__be64 node_guid;		/* what ibv_get_device_guid() returns */
	void *core;			/* the core's */
	uint64_t zero[64];		/* so that a reader of libibverbs' private tail finds nothing */
};

/* Services for verbs: extension(POLYCM_VERBS, POLYCM_VERBS_VERSION) of struct polycm_core. */
#define POLYCM_VERBS		"verbs"
#define POLYCM_VERBS_VERSION	1

struct polycm_verbs_services {
	uint32_t size;
	/*
	 * From inside a verb: does the core call it for an rdma_* call?  Then the
	 * log line of that call shows the text of why().  Otherwise the program
	 * called the verb itself, and a provider that refuses it logs a line.
	 */
	bool (*why_shown)(void);
	/*
	 * Was the provider started only because the program reads sysfs?  Until this
	 * is false, which enumerate() is called for, it should neither make files that
	 * programs ask for (traces) nor change the program's time.
	 */
	bool (*only_looked_at)(void);
};

#ifdef __cplusplus
}
#endif

#endif /* POLYCM_VERBS_H */
