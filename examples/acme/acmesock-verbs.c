/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * acmesock-verbs.c - the device of provider-acmesock.so: what programs see of
 * it through ibv_* calls.
 *
 * Calls that are functions of libibverbs come here through struct polycm_verbs.
 * Those that <infiniband/verbs.h> has as inline functions (ibv_post_send(),
 * ibv_poll_cq(), ...) come through ibv_context.ops.  Both have the prototype,
 * the result and the errno of the verb: mostly 0 or a positive errno, or NULL
 * and errno.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "acmesock.h"

#define MAX_CQE		16384

/* ------------------------------------------------------------------------
 * Queue pairs.
 */

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	const struct ibv_qp_cap *cap = &attr->cap;
	struct qp *qp;

	errno = EOPNOTSUPP;
	if (attr->qp_type != IBV_QPT_RC || attr->srq)
		return NULL;
	errno = EINVAL;
	if (!attr->send_cq || !attr->recv_cq || cap->max_send_wr > MAX_WR ||
	    cap->max_recv_wr > MAX_WR || cap->max_send_sge > 1 || cap->max_recv_sge > 1 ||
	    cap->max_inline_data)
		return NULL;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->base = (struct ibv_qp){
		.context = pd->context, .qp_context = attr->qp_context, .pd = pd,
		.send_cq = attr->send_cq, .recv_cq = attr->recv_cq,
		.state = IBV_QPS_RESET, .qp_type = attr->qp_type,
	};
	qp->send.max = cap->max_send_wr;
	qp->recv.max = cap->max_recv_wr;
	qp->all_signaled = attr->sq_sig_all;
	pthread_mutex_lock(&acme.lock);
	object_add(&acme.qps, &qp->object, qp);
	qp->base.qp_num = qp->object.number;
	pthread_mutex_unlock(&acme.lock);
	return &qp->base;
}

static int destroy_qp(struct ibv_qp *ibqp)
{
	struct qp *qp = (struct qp *)ibqp;

	pthread_mutex_lock(&acme.lock);
	object_remove(&acme.qps, &qp->object);
	qp_detach(qp);
	pthread_mutex_unlock(&acme.lock);
	free(qp);
	return 0;
}

static int modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct qp *qp = (struct qp *)ibqp;
	enum ibv_qp_state to = attr->qp_state;
	int err = 0;

	if (!(mask & IBV_QP_STATE))
		return 0;
	pthread_mutex_lock(&acme.lock);
	if (to == IBV_QPS_ERR) {
		qp_fail(qp);
	} else if (to == IBV_QPS_RESET) {
		qp->send.count = qp->recv.count = 0;
		qp->waiting = false;
		ibqp->state = to;
	} else if (to == ibqp->state || (to <= IBV_QPS_RTS && to == ibqp->state + 1)) {
		ibqp->state = to;
		if (qp->conn)
			conn_resume(qp->conn);
	} else {
		err = EINVAL;
	}
	pthread_mutex_unlock(&acme.lock);
	return err;
}

/*
 * The core moves the id's QP with these: to INIT when it is made, to RTR and RTS
 * when the connection is known.  A real device also needs the peer's QP number,
 * PSNs and the path here, and asks for them in the mask.
 */
int qp_attr(struct ibv_qp_attr *attr, int *ret_mask)
{
	*ret_mask = IBV_QP_STATE;
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		attr->port_num = 1;
		*ret_mask |= IBV_QP_PORT;
		return 0;
	case IBV_QPS_RTR:
		attr->max_dest_rd_atomic = MAX_RD_ATOMIC;
		*ret_mask |= IBV_QP_MAX_DEST_RD_ATOMIC;
		return 0;
	case IBV_QPS_RTS:
		attr->max_rd_atomic = MAX_RD_ATOMIC;
		attr->rnr_retry = 7;	/* for ever */
		*ret_mask |= IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RNR_RETRY;
		return 0;
	default:
		return -EINVAL;
	}
}

/* ------------------------------------------------------------------------
 * Completion queues and their channels.
 */

static struct ibv_comp_channel *create_comp_channel(struct ibv_context *context)
{
	struct channel *channel = calloc(1, sizeof(*channel));
	int fds[2];

	if (!channel)
		return NULL;
	if (pipe2(fds, O_CLOEXEC)) {
		free(channel);
		return NULL;
	}
	/* The reading end is the program's, and waits or not as that wants. */
	(void)fcntl(fds[1], F_SETFL, O_NONBLOCK);
	channel->base.context = context;
	channel->base.fd = fds[0];
	channel->write_fd = fds[1];
	return &channel->base;
}

static int destroy_comp_channel(struct ibv_comp_channel *ibchannel)
{
	struct channel *channel = (struct channel *)ibchannel;

	close(channel->base.fd);
	close(channel->write_fd);
	free(channel);
	return 0;
}

static struct ibv_cq *create_cq(struct ibv_context *context, int cqe, void *cq_context,
				struct ibv_comp_channel *channel, int comp_vector)
{
	struct cq *cq;

	errno = EINVAL;
	if (cqe < 1 || cqe > MAX_CQE || comp_vector)
		return NULL;
	cq = calloc(1, sizeof(*cq) + (size_t)cqe * sizeof(cq->ring[0]));
	if (!cq)
		return NULL;
	cq->base = (struct ibv_cq){
		.context = context, .channel = channel, .cq_context = cq_context, .cqe = cqe,
	};
	pthread_mutex_lock(&acme.lock);
	object_add(&acme.cqs, &cq->object, cq);
	pthread_mutex_unlock(&acme.lock);
	return &cq->base;
}

/* Waits until the program has acknowledged its events, as libibverbs does. */
static int destroy_cq(struct ibv_cq *ibcq)
{
	struct cq *cq = (struct cq *)ibcq;

	pthread_mutex_lock(&acme.lock);
	object_remove(&acme.cqs, &cq->object);
	while (cq->acked != cq->events)
		pthread_cond_wait(&acme.acked, &acme.lock);
	pthread_mutex_unlock(&acme.lock);
	free(cq);
	return 0;
}

static int get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **ret_cq,
			void **ret_context)
{
	struct cq *cq = NULL;
	uint32_t number;

	/* No lock while it waits.  A CQ that was destroyed since leaves its number behind. */
	while (!cq) {
		if (read(channel->fd, &number, sizeof(number)) != sizeof(number))
			return -1;
		pthread_mutex_lock(&acme.lock);
		cq = object_find(acme.cqs, number);
		if (cq) {
			cq->events++;
			*ret_cq = &cq->base;
			*ret_context = cq->base.cq_context;
		}
		pthread_mutex_unlock(&acme.lock);
	}
	return 0;
}

static void ack_cq_events(struct ibv_cq *ibcq, unsigned int nevents)
{
	pthread_mutex_lock(&acme.lock);
	((struct cq *)ibcq)->acked += nevents;
	pthread_cond_broadcast(&acme.acked);
	pthread_mutex_unlock(&acme.lock);
}

static int req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	(void)solicited_only;	/* more events than that are allowed */
	pthread_mutex_lock(&acme.lock);
	((struct cq *)ibcq)->armed = true;
	pthread_mutex_unlock(&acme.lock);
	return 0;
}

static int poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct cq *cq = (struct cq *)ibcq;
	int num;

	pthread_mutex_lock(&acme.lock);
	for (num = 0; num < num_entries && cq->count; num++, cq->count--) {
		wc[num] = cq->ring[cq->first];
		cq->first = (cq->first + 1) % (unsigned int)ibcq->cqe;
	}
	pthread_mutex_unlock(&acme.lock);
	return num;
}

/* ------------------------------------------------------------------------
 * Protection domains and memory regions.
 */

static struct ibv_pd *alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	if (pd)
		pd->context = context;
	return pd;
}

static int dealloc_pd(struct ibv_pd *pd)
{
	free(pd);
	return 0;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			     unsigned int access)
{
	struct mr *mr;

	errno = EINVAL;
	if (iova != (uintptr_t)addr)
		return NULL;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	mr->access = access;
	mr->base = (struct ibv_mr){
		.context = pd->context, .pd = pd, .addr = addr, .length = length,
	};
	pthread_mutex_lock(&acme.lock);
	object_add(&acme.mrs, &mr->object, mr);
	mr->base.lkey = mr->base.rkey = mr->object.number;
	pthread_mutex_unlock(&acme.lock);
	return &mr->base;
}

static int dereg_mr(struct ibv_mr *ibmr)
{
	struct mr *mr = (struct mr *)ibmr;

	pthread_mutex_lock(&acme.lock);
	object_remove(&acme.mrs, &mr->object);
	pthread_mutex_unlock(&acme.lock);
	free(mr);
	return 0;
}

/* ------------------------------------------------------------------------
 * The device.
 */

/*
 * A context of one's own: struct verbs_context with struct ibv_context as its
 * last member, marked by abi_compat.  What stays NULL fails with EOPNOTSUPP.
 */
static struct ibv_context *open_device(struct ibv_device *device)
{
	struct verbs_context *verbs = calloc(1, sizeof(*verbs));
	struct ibv_context *context;

	if (!verbs)
		return NULL;
	verbs->sz = sizeof(*verbs);
	context = &verbs->context;
	context->device = device;
	context->abi_compat = __VERBS_ABI_IS_EXTENDED;
	context->num_comp_vectors = 1;
	context->cmd_fd = -1;
	/* Programs poll it.  This device has no asynchronous events, so it is never readable. */
	context->async_fd = eventfd(0, EFD_CLOEXEC);
	if (context->async_fd < 0) {
		free(verbs);
		return NULL;
	}
	context->ops.poll_cq = poll_cq;
	context->ops.req_notify_cq = req_notify_cq;
	context->ops.post_send = post_send;
	context->ops.post_recv = post_recv;
	pthread_mutex_init(&context->mutex, NULL);
	return context;
}

static int close_device(struct ibv_context *context)
{
	pthread_mutex_destroy(&context->mutex);
	close(context->async_fd);
	free(verbs_get_ctx(context));
	return 0;
}

static int query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr){
		.node_guid = acme_device.node_guid,
		.max_mr_size = UINT64_MAX,
		.max_qp = 1 << 16, .max_qp_wr = MAX_WR, .max_sge = 1, .max_sge_rd = 1,
		.max_cq = 1 << 16, .max_cqe = MAX_CQE, .max_mr = 1 << 20, .max_pd = 1 << 16,
		/* The core holds rdma_connect()'s depths against these two. */
		.max_qp_rd_atom = MAX_RD_ATOMIC, .max_qp_init_rd_atom = MAX_RD_ATOMIC,
		.phys_port_cnt = 1,
	};
	(void)context;
	return 0;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	(void)context;
	if (port != 1)
		return EINVAL;
	*attr = (struct ibv_port_attr){
		.state = IBV_PORT_ACTIVE, .max_mtu = IBV_MTU_4096, .active_mtu = IBV_MTU_4096,
		.max_msg_sz = MAX_DATA, .phys_state = 5, .link_layer = IBV_LINK_LAYER_ETHERNET,
	};
	return 0;
}

static const struct polycm_verbs verbs = {
	.size = sizeof(verbs),
	.open_device = open_device, .close_device = close_device,
	.query_device = query_device, .query_port = query_port,
	.alloc_pd = alloc_pd, .dealloc_pd = dealloc_pd,
	.reg_mr = reg_mr, .dereg_mr = dereg_mr,
	.create_comp_channel = create_comp_channel, .destroy_comp_channel = destroy_comp_channel,
	.create_cq = create_cq, .destroy_cq = destroy_cq,
	.get_cq_event = get_cq_event, .ack_cq_events = ack_cq_events,
	.create_qp = create_qp, .modify_qp = modify_qp, .destroy_qp = destroy_qp,
};

struct polycm_verbs_device acme_device = {
	.device = {
		.node_type = IBV_NODE_CA, .transport_type = IBV_TRANSPORT_IB,
		.name = "acme0", .dev_name = "acme0",
		.dev_path = "/sys/class/infiniband_verbs/acme0",
		.ibdev_path = "/sys/class/infiniband/acme0",
	},
	.verbs = &verbs,
};
