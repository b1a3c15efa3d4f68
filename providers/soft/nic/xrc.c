/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/xrc.c - XRC domains (IBTA vol. 1, annex A14).  Those that are opened through
 * the same file on a device are one, as in the kernel, but within a process only.
 * A domain knows its SRQs, which requests name by number, and the QPs that receive.
 */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "context.h"
#include "qp.h"
#include "refuse.h"
#include "verbs.h"

struct nic_xrc_domain {
	unsigned int opened;
	bool has_file;
	dev_t dev;
	ino_t inode;
	struct nic_list srqs, qps;
};

static const char open_call[] = "ibv_open_xrcd";

/* The domain of that file on the device, which any context of it may have opened. */
static struct nic_xrc_domain *find_domain(const struct sim_device *device, const struct stat *file)
{
	const struct sim_context *context;
	const struct sim_xrcd *xrcd;

	nic_list_each(context, &nic_contexts, node) {
		if (context->device != device)
			continue;
		nic_list_each(xrcd, &context->objects[NIC_XRCD], node) {
			if (xrcd->domain->has_file && xrcd->domain->dev == file->st_dev &&
			    xrcd->domain->inode == file->st_ino)
				return xrcd->domain;
		}
	}
	return NULL;
}

static int check_open(const struct sim_device *device, const struct ibv_xrcd_init_attr *attr,
		      struct stat *ret_file)
{
	if (!(device->services & POLYCM_SVC_XRC))
		return nic_refuse(device, open_call, EOPNOTSUPP, "the device has no XRC");
	if (!attr || attr->comp_mask != (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS))
		return nic_refuse(device, open_call, EINVAL, "it needs fd and oflags, and nothing else");
	if (attr->oflags & ~(O_CREAT | O_EXCL))
		return nic_refuse(device, open_call, EINVAL, "oflags are 0x%x, not O_CREAT and O_EXCL",
				  (unsigned int)attr->oflags);
	if (attr->fd != -1 && fstat(attr->fd, ret_file))
		return nic_refuse(device, open_call, EBADF, "fd is %d", attr->fd);
	return 0;
}

/* Lock held.  0 or an errno. */
static int enter_domain(const struct sim_device *device, struct sim_xrcd *xrcd,
			const struct ibv_xrcd_init_attr *attr, const struct stat *file)
{
	struct nic_xrc_domain *domain = attr->fd == -1 ? NULL : find_domain(device, file);

	if (device->removed)
		return nic_refuse(device, open_call, EIO, "the device was removed");
	if (domain && attr->oflags & O_EXCL)
		return nic_refuse(device, open_call, EINVAL,
				  "the file's domain exists, and O_EXCL is set");
	if (!domain && attr->fd != -1 && !(attr->oflags & O_CREAT))
		return nic_refuse(device, open_call, EAGAIN,
				  "the file has no domain, and O_CREAT is not set");
	if (!domain) {
		domain = calloc(1, sizeof(*domain));
		if (!domain)
			return nic_no_memory(device, open_call);
		nic_list_init(&domain->srqs);
		nic_list_init(&domain->qps);
		domain->has_file = attr->fd != -1;
		domain->dev = file->st_dev;
		domain->inode = file->st_ino;
	}
	domain->opened++;
	xrcd->domain = domain;
	return 0;
}

struct ibv_xrcd *sim_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	const struct sim_device *device = nic_device(context);
	struct stat file = { 0 };
	struct sim_xrcd *xrcd;
	int err = check_open(device, attr, &file);

	if (err)
		return nic_fail(NULL, err);
	xrcd = nic_alloc(device, open_call, sizeof(*xrcd));
	if (!xrcd)
		return NULL;
	xrcd->pub.context = context;
	sim_lock();
	err = enter_domain(device, xrcd, attr, &file);
	if (!err)
		nic_enter(context, NIC_XRCD, &xrcd->node, NULL);
	sim_unlock();
	return err ? nic_fail(xrcd, err) : &xrcd->pub;
}

void nic_xrcd_free(struct sim_xrcd *xrcd)
{
	nic_remove(xrcd->pub.context, NIC_XRCD, &xrcd->node, NULL);
	if (!--xrcd->domain->opened)
		free(xrcd->domain);
	free(xrcd);
}

int sim_close_xrcd(struct ibv_xrcd *ibxrcd)
{
	struct sim_xrcd *xrcd = nic_xrcd(ibxrcd);
	int err = 0;

	sim_lock();
	if (xrcd->users)
		err = nic_refuse(nic_device(ibxrcd->context), "ibv_close_xrcd", EBUSY,
				 "SRQs and QPs of the domain are left: %u", xrcd->users);
	else
		nic_xrcd_free(xrcd);
	sim_unlock();
	return err;
}

void nic_xrc_enter_qp(struct sim_qp *qp, struct sim_xrcd *xrcd)
{
	qp->xrcd = xrcd;
	xrcd->users++;
	qp->domain = xrcd->domain;
	nic_list_add(&qp->domain->qps, &qp->in_domain);
}

void nic_xrc_leave_qp(struct sim_qp *qp)
{
	if (qp->domain)
		nic_list_del(&qp->in_domain);
}

void nic_xrc_enter_srq(struct sim_srq *srq, struct sim_xrcd *xrcd)
{
	srq->xrcd = xrcd;
	xrcd->users++;
	nic_list_add(&xrcd->domain->srqs, &srq->in_domain);
}

/* A message that it was receiving ends there: the rest of it finds no SRQ. */
void nic_xrc_leave_srq(struct sim_srq *srq)
{
	struct sim_qp *qp;

	if (!srq->xrcd)
		return;
	nic_list_each(qp, &srq->xrcd->domain->qps, in_domain) {
		if (qp->srq != srq)
			continue;
		qp->srq = NULL;
		qp->recv_cq = NULL;
		qp->pd = NULL;
		qp->rx_held = false;
	}
	srq->xrcd->users--;
	nic_list_del(&srq->in_domain);
}

struct sim_srq *nic_xrc_find(const struct sim_qp *qp, uint32_t number)
{
	struct sim_srq *srq;

	nic_list_each(srq, &qp->domain->srqs, in_domain)
		if (srq->number == number)
			return srq;
	return NULL;
}

bool nic_xrc_select(struct sim_qp *qp, uint32_t number)
{
	struct sim_srq *srq;

	if (qp->srq && qp->srq->number == number)
		return true;
	srq = nic_xrc_find(qp, number);
	/* A message does not go on in another SRQ. */
	if (!srq || qp->rx_off || qp->rx_held)
		return false;
	qp->srq = srq;
	qp->recv_cq = srq->cq;
	qp->pd = nic_protection(srq->pub.pd);
	return true;
}

/* --- Handles of QPs that receive. --- */

static const char qp_call[] = "ibv_open_qp";

/* 0 or an errno. */
static int check_open_qp(struct ibv_context *context, const struct ibv_qp_open_attr *attr)
{
	const uint32_t needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	const struct sim_device *device = nic_device(context);

	if (!(device->services & POLYCM_SVC_XRC))
		return nic_refuse(device, qp_call, EOPNOTSUPP, "the device has no XRC");
	if (attr->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED)
		return nic_refuse(device, qp_call, EOPNOTSUPP, "comp_mask is 0x%x, not all is known",
				  attr->comp_mask);
	if ((attr->comp_mask & needed) != needed || !attr->xrcd || attr->xrcd->context != context)
		return nic_refuse(device, qp_call, EINVAL,
				  "it needs a number, a type, and an XRC domain of the same context");
	if (attr->qp_type != IBV_QPT_XRC_RECV)
		return nic_refuse(device, qp_call, EINVAL, "only QPs of type XRC_RECV can be opened");
	return 0;
}

/* Lock held.  0 or EINVAL. */
static int open_qp(struct sim_qp *handle, const struct ibv_qp_open_attr *attr)
{
	struct sim_xrcd *xrcd = nic_xrcd(attr->xrcd);
	struct sim_qp *qp;

	nic_list_each(qp, &xrcd->domain->qps, in_domain) {
		if (nic_qpn(qp) != attr->qp_num)
			continue;
		nic_qp_add_handle(qp, handle);
		handle->port = qp->port;
		handle->xrcd = xrcd;
		xrcd->users++;
		nic_enter(handle->pub.qp.context, NIC_QP, &handle->node, NULL);
		return 0;
	}
	return nic_refuse(nic_device(handle->pub.qp.context), qp_call, EINVAL,
			  "the domain has no QP 0x%06x in this process; those of other processes "
			  "cannot be opened", attr->qp_num);
}

struct ibv_qp *sim_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	int err = check_open_qp(context, attr);
	struct sim_qp *handle;

	if (err)
		return nic_fail(NULL, err);
	handle = nic_alloc(nic_device(context), qp_call, NIC_QP_SIZE);
	if (!handle)
		return NULL;
	handle->type = IBV_QPT_XRC_RECV;
	nic_list_init(&handle->groups);
	handle->pub.qp = (struct ibv_qp) {
		.context = context,
		.qp_context = attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL,
		.handle = attr->qp_num,
		.qp_num = attr->qp_num,
		.state = IBV_QPS_UNKNOWN,
		.qp_type = attr->qp_type,
	};
	pthread_mutex_init(&handle->pub.qp.mutex, NULL);
	pthread_cond_init(&handle->pub.qp.cond, NULL);

	sim_lock();
	err = open_qp(handle, attr);
	sim_unlock();
	return err ? nic_fail(handle, err) : &handle->pub.qp;
}
