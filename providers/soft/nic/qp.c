/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/qp.c - queue pairs: create, query, destroy.
 *
 * A QP costs its struct only until it is used: rings of requests are
 * allocated when the first request is posted.
 */
#include "config.h"

#include <stdlib.h>

#include "context.h"
#include "cq.h"
#include "direct.h"
#include "mr.h"
#include "pd.h"
#include "qp.h"
#include "rc_internal.h"
#include "refuse.h"
#include "rq.h"
#include "sq.h"
#include "ud_internal.h"
#include "verbs.h"

__attribute__((cold))
static int too_much(const struct sim_device *device, const char *call, const char *name,
		    uint32_t wanted, uint32_t max)
{
	return nic_refuse(device, call, EINVAL, "%s is %u, the device has %u", name, wanted, max);
}

static int check_caps(const struct sim_device *device, const char *call,
		      const struct ibv_qp_init_attr *attr)
{
	const uint32_t max_wr = (uint32_t)device->attr.max_qp_wr;
	const uint32_t max_sge = (uint32_t)device->attr.max_sge;
	const struct ibv_qp_cap *cap = &attr->cap;

	if (cap->max_send_wr > max_wr)
		return too_much(device, call, "max_send_wr", cap->max_send_wr, max_wr);
	if (cap->max_send_sge > max_sge)
		return too_much(device, call, "max_send_sge", cap->max_send_sge, max_sge);
	if (cap->max_inline_data > NIC_MAX_INLINE)
		return too_much(device, call, "max_inline_data", cap->max_inline_data, NIC_MAX_INLINE);
	if (!attr->srq && cap->max_recv_wr > max_wr)
		return too_much(device, call, "max_recv_wr", cap->max_recv_wr, max_wr);
	if (!attr->srq && cap->max_recv_sge > max_sge)
		return too_much(device, call, "max_recv_sge", cap->max_recv_sge, max_sge);
	return 0;
}

static int check_type(const struct sim_device *device, const char *call, enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return 0;
	case IBV_QPT_UC:
	case IBV_QPT_UD:
		if (device->rules->services & POLYCM_SVC_UD)
			return 0;
		return nic_refuse(device, call, EOPNOTSUPP, "iWARP has reliable connections only");
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		if (device->services & POLYCM_SVC_XRC)
			return 0;
		return nic_refuse(device, call, EOPNOTSUPP, "the device has no XRC");
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_DRIVER:
		return nic_refuse(device, call, EOPNOTSUPP, "the simulator has no QPs of type %s",
				  type == IBV_QPT_DRIVER ? "DRIVER" : "RAW_PACKET");
	default:
		return nic_refuse(device, call, EINVAL, "%d is no type of QP", (int)type);
	}
}

static int check_new(struct ibv_context *context, const char *call, const struct ibv_xrcd *xrcd,
		     const struct ibv_qp_init_attr *attr)
{
	const struct sim_device *device = nic_device(context);
	int err = check_type(device, call, attr->qp_type);

	if (err)
		return err;
	if (attr->qp_type == IBV_QPT_XRC_RECV && !xrcd)
		return nic_refuse(device, call, EINVAL, "it needs an XRC domain");
	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return 0;
	if (!attr->send_cq)
		return nic_refuse(device, call, EINVAL, "send_cq is NULL");
	if (attr->qp_type != IBV_QPT_XRC_SEND && !attr->recv_cq)
		return nic_refuse(device, call, EINVAL, "recv_cq is NULL");
	return check_caps(device, call, attr);
}

static int check_srq(const struct ibv_qp *pub, const char *call)
{
	const struct sim_device *device = nic_device(pub->context);

	if (!nic_is_known(pub->srq))
		return nic_refuse(device, call, EINVAL, "srq was destroyed, or is no SRQ of the "
				  "simulator");
	if (pub->srq->context != pub->context)
		return nic_refuse(device, call, EINVAL, "the SRQ is of another context than the PD");
	if (nic_srq(pub->srq)->xrcd)
		return nic_refuse(device, call, EINVAL, "the SRQ is one of XRC, which only QPs of type "
				  "XRC_RECV receive from");
	return 0;
}

/* What the attributes named. */
static int check_queues(const struct ibv_qp *pub, const char *call)
{
	int err = 0;

	if (pub->send_cq)
		err = nic_cq_check(call, "send_cq", pub->context, pub->send_cq);
	if (!err && pub->recv_cq)
		err = nic_cq_check(call, "recv_cq", pub->context, pub->recv_cq);
	if (!err && pub->srq)
		err = check_srq(pub, call);
	return err;
}

/* XRC: a QP has no queue for what its peer does. */
static void xrc_fill(struct ibv_qp_init_attr *attr)
{
	attr->recv_cq = NULL;
	attr->srq = NULL;
	attr->cap.max_recv_wr = attr->cap.max_recv_sge = 0;
	if (attr->qp_type == IBV_QPT_XRC_SEND)
		return;
	attr->send_cq = NULL;
	memset(&attr->cap, 0, sizeof(attr->cap));
}

static void qp_fill(struct sim_qp *qp, struct ibv_context *context, struct ibv_pd *pd,
		    struct ibv_qp_init_attr *attr)
{
	struct sim_device *device = nic_device(context);
	struct ibv_qp *pub = &qp->pub.qp;

	/* Inline data takes the room of the gather list, and programs use all of it unasked. */
	size_t gather = attr->cap.max_send_sge * sizeof(struct ibv_sge);

	if (attr->cap.max_inline_data < gather)
		attr->cap.max_inline_data = (uint32_t)gather;
	if (attr->srq)
		attr->cap.max_recv_wr = attr->cap.max_recv_sge = 0;
	qp->port = &device->ports[0];
	qp->state = IBV_QPS_RESET;
	qp->attr.path_mtu = IBV_MTU_256;	/* until somebody says how much the path carries */
	qp->type = (uint8_t)attr->qp_type;
	qp->sq_sig_all = !!attr->sq_sig_all;
	nic_ece_init(qp);
	qp->attr.cap = attr->cap;
	qp->sq_mask = nic_round_up(attr->cap.max_send_wr) - 1;
	qp->rq.size = attr->cap.max_recv_wr;
	qp->rq.mask = nic_round_up(attr->cap.max_recv_wr) - 1;
	qp->rq.max_sge = attr->cap.max_recv_sge;
	sim_timer_init(&qp->timer, rc_timer);
	nic_list_init(&qp->groups);
	if (nic_qp_is_iwarp(qp))
		qp->state = IBV_QPS_INIT;	/* siw knows nothing before that */
	qp->pd = nic_protection(pd);
	qp->srq = attr->srq ? nic_srq(attr->srq) : NULL;
	qp->recv_cq = attr->recv_cq ? nic_cq(attr->recv_cq) : NULL;
	pub->context = context;
	pub->qp_context = attr->qp_context;
	pub->pd = pd;
	pub->send_cq = attr->send_cq;
	pub->recv_cq = attr->recv_cq;
	pub->srq = attr->srq;
	pub->state = IBV_QPS_RESET;
	pub->qp_type = attr->qp_type;
	pthread_mutex_init(&pub->mutex, NULL);
	pthread_cond_init(&pub->cond, NULL);
}

/* by is 1 or -1. */
static void use_queues(struct ibv_qp *pub, unsigned int by)
{
	if (pub->send_cq)
		nic_cq(pub->send_cq)->users += by;
	if (pub->recv_cq)
		nic_cq(pub->recv_cq)->users += by;
	if (pub->srq)
		nic_srq(pub->srq)->users += by;
}

void nic_qp_add_handle(struct sim_qp *qp, struct sim_qp *handle)
{
	if (handle == qp)
		nic_list_init(&qp->handles);
	handle->real = qp;
	nic_list_add(&qp->handles, &handle->in_handles);
	qp->refs++;
}

/* Room for a request that it takes from an SRQ. */
static int alloc_held(struct sim_qp *qp)
{
	const bool is_xrc = qp->type == IBV_QPT_XRC_RECV;

	if (!qp->srq && !is_xrc)
		return 0;
	/* XRC: the peer says which SRQ it is. */
	qp->srq_held = malloc(nic_rwqe_size(is_xrc ? (uint32_t)qp->port->device->attr.max_srq_sge :
						     qp->srq->rq.max_sge));
	return qp->srq_held ? 0 : ENOMEM;
}

static int qp_attach(struct sim_qp *qp, const char *call, struct ibv_xrcd *xrcd)
{
	struct ibv_qp *pub = &qp->pub.qp;
	int err = check_queues(pub, call);

	if (err)
		return err;
	if (alloc_held(qp))
		return nic_no_memory(nic_device(pub->context), call);
	/* It may time out, and be sent to. */
	err = -sim_engine_need_thread();
	if (err)
		return nic_refuse(nic_device(pub->context), call, err, "%s", err == EAGAIN ?
				  "the simulator cannot start its thread: raise the limit on threads or "
				  "memory" : "no packets can come in");
	err = nic_add(pub->context, call, NIC_QP, &qp->node, pub->pd);
	if (err)
		return err;
	err = nic_qpn_take(qp, &pub->qp_num);
	if (err) {
		(void)nic_refuse(nic_device(pub->context), call, err, "no QP number is left");
		nic_remove(pub->context, NIC_QP, &qp->node, pub->pd);
		return err;
	}
	pub->handle = pub->qp_num;
	use_queues(pub, 1);
	if (xrcd)
		nic_xrc_enter_qp(qp, nic_xrcd(xrcd));
	nic_qp_add_handle(qp, qp);
	return 0;
}

static void qp_end(struct sim_qp *qp)
{
	sim_timer_disarm(&qp->timer);
	rc_ack_end(qp);
	nic_stream_closed(qp, true);
	nic_groups_detach_all(qp);
	if (!qp->domain)	/* else it binds none, and its first handle's context may be gone */
		nic_mw_unbind_all(qp);
	nic_direct_withdraw(qp);
	nic_qpn_drop(nic_qpn(qp));
	use_queues(&qp->pub.qp, -1u);
	nic_xrc_leave_qp(qp);
}

/* A handle is the program's no longer, and gets no events. */
static void qp_detach(struct sim_qp *handle)
{
	struct ibv_qp *pub = &handle->pub.qp;

	nic_list_del(&handle->in_handles);
	if (nic_list_empty(&handle->real->handles))
		qp_end(handle->real);
	nic_async_forget(nic_context(pub->context), handle);
	if (handle->xrcd)
		handle->xrcd->users--;
	nic_remove(pub->context, NIC_QP, &handle->node, nic_pd_of_detached(pub->pd));
}

static bool attempt_over(void *arg)
{
	return !nic_stream_connecting(arg);
}

static void qp_release(struct sim_qp *qp)
{
	nic_builder_free(qp->builder);
	pthread_mutex_destroy(&qp->pub.qp.mutex);
	pthread_cond_destroy(&qp->pub.qp.cond);
	nic_queue_free(&qp->sq, NIC_SEND_QUEUE);
	nic_queue_free(&qp->rq.ring, NIC_RECEIVE_QUEUE);
	free(qp->srq_held);
	free(qp->atomics);
	free(qp);
}

/* What a message or an atomic needs when it comes: neither is to wait for memory. */
static int qp_room(struct sim_qp *qp)
{
	const struct sim_device *device = qp->port->device;
	struct ibv_pd *pd = qp->pub.qp.pd;
	struct nic_rq *rq = &qp->rq;
	bool is_xrc = qp->type == IBV_QPT_XRC_RECV;

	/* The program's allocator is not called under the lock, so not later. */
	if (nic_pd_allocates(pd) &&
	    (nic_queue_alloc(&qp->sq, NIC_SEND_QUEUE, pd, nic_sq_bytes(qp)) ||
	     (rq->size && nic_queue_alloc(&rq->ring, NIC_RECEIVE_QUEUE, pd, nic_rq_bytes(rq)))))
		return ENOMEM;

	if ((qp->type == IBV_QPT_RC || is_xrc) && device->services & POLYCM_SVC_ATOMIC &&
	    device->attr.max_qp_rd_atom > 0) {
		qp->num_atomics = (uint8_t)device->attr.max_qp_rd_atom;
		qp->atomics = calloc(qp->num_atomics, sizeof(*qp->atomics));
		if (!qp->atomics)
			return ENOMEM;
	}
	return 0;
}

int nic_qp_create(struct ibv_context *context, const char *call, struct ibv_pd *pd,
		  struct ibv_xrcd *xrcd, size_t size, struct ibv_qp_init_attr *attr,
		  struct sim_qp **ret_qp)
{
	struct sim_qp *qp;
	int err = check_new(context, call, xrcd, attr);

	if (err)
		return err;
	if (attr->qp_type == IBV_QPT_XRC_SEND || attr->qp_type == IBV_QPT_XRC_RECV)
		xrc_fill(attr);
	qp = calloc(1, size);
	if (!qp)
		return nic_no_memory(nic_device(context), call);
	qp_fill(qp, context, pd, attr);
	err = qp_room(qp);
	if (err) {
		(void)nic_no_memory(nic_device(context), call);
	} else {
		sim_lock();
		err = qp_attach(qp, call, xrcd);
		sim_unlock();
	}
	if (err) {
		qp_release(qp);
		return err;
	}
	*ret_qp = qp;
	return 0;
}

struct ibv_qp *sim_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct sim_qp *qp;
	int err = nic_qp_create(pd->context, "ibv_create_qp", pd, NULL, NIC_QP_SIZE, attr, &qp);

	return err ? nic_fail(NULL, err) : &qp->pub.qp;
}

/* Lock held.  What is to be released: the QP with its last handle, and a handle that is not the QP. */
static struct sim_qp *drop(struct sim_qp *handle, struct sim_qp **ret_qp)
{
	struct sim_qp *qp = handle->real;

	*ret_qp = --qp->refs ? NULL : qp;
	return handle == qp ? NULL : handle;
}

static void release_all(struct sim_qp *handle, struct sim_qp *qp)
{
	if (handle)
		qp_release(handle);
	if (qp) {
		struct ibv_pd *pd = qp->pub.qp.pd;

		qp_release(qp);
		nic_pd_released(pd);
	}
}

void nic_qp_free(struct sim_qp *handle)
{
	struct sim_qp *qp;

	qp_detach(handle);
	handle = drop(handle, &qp);
	release_all(handle, qp);
}

/* siw: a stream that is being set up holds its queue pair until that is over. */
static void await_attempt(struct sim_qp *qp)
{
	if (!nic_stream_connecting(qp))
		return;
	nic_log(POLYCM_LOG_WARN, "ibv_destroy_qp of QP %u waits until its attempt to connect is over, "
		"as it does with siw: for seconds, if nobody answers", qp->pub.qp.qp_num);
	nic_qp_error(qp, true);
	(void)sim_wait(attempt_over, qp, SIM_NEVER);
}

int sim_destroy_qp(struct ibv_qp *ibqp)
{
	static const char call[] = "ibv_destroy_qp";
	struct sim_qp *qp = nic_qp(ibqp), *handle;
	const struct nic_acks acks = {
		&ibqp->mutex, &ibqp->cond, &ibqp->events_completed, &qp->async_reported, "QP",
		ibqp->qp_num,
	};
	int err = 0;

	sim_prefetch(qp, sizeof(*qp));
	sim_lock();
	if (!nic_list_empty(&qp->groups))
		err = nic_refuse(qp->port->device, call, EBUSY,
				 "QP 0x%06x: it is attached to a multicast group", nic_qpn(qp));
	else if (nic_acks_never_come(&acks))
		err = EDEADLK;
	if (!err)
		err = nic_hand_over(qp, call);
	if (!err) {
		await_attempt(qp);
		qp_detach(qp);
	}
	sim_unlock();
	if (err)
		return err;
	nic_await_acks(&acks);
	sim_lock();
	handle = drop(qp, &qp);
	sim_unlock();
	release_all(handle, qp);
	return 0;
}

static void query_attr(const struct sim_qp *qp, struct ibv_qp_attr *attr)
{
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = (enum ibv_qp_state)qp->state;
	attr->rq_psn = qp->rq_psn;
	attr->sq_psn = (qp->sq_psn + qp->sq_next) & NIC_PSN_MASK;
	attr->sq_draining = qp->state == IBV_QPS_SQD && !qp->sqd_drained;
	attr->port_num = qp->state == IBV_QPS_RESET ? 0 : qp->port->num;
	if (nic_qp_is_iwarp(qp)) {
		/* As siw: depths are swapped, the MTU is the port's, access is always the same. */
		attr->max_rd_atomic = qp->attr.max_dest_rd_atomic;
		attr->max_dest_rd_atomic = qp->attr.max_rd_atomic;
		attr->path_mtu = qp->port->active_mtu;
		attr->qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					IBV_ACCESS_REMOTE_READ;
	} else if (qp->port->device->rules->link_layer == IBV_LINK_LAYER_ETHERNET) {
		attr->ah_attr.is_global = attr->alt_ah_attr.is_global = 1;
	}
}

int sim_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init_attr)
{
	struct sim_qp *qp = nic_real_qp(ibqp);

	/* The mask is a hint that allows to return less. */
	sim_lock();
	query_attr(qp, attr);
	nic_show_state(ibqp, attr, mask);
	sim_unlock();
	*init_attr = (struct ibv_qp_init_attr) {
		.qp_context = ibqp->qp_context,
		.send_cq = ibqp->send_cq,
		.recv_cq = ibqp->recv_cq,
		.srq = ibqp->srq,
		.cap = attr->cap,
		.qp_type = ibqp->qp_type,
		.sq_sig_all = qp->sq_sig_all,
	};
	return 0;
}
