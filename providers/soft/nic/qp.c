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
#include "mr.h"
#include "qp.h"
#include "rc_internal.h"
#include "refuse.h"
#include "rq.h"
#include "sq.h"
#include "ud_internal.h"
#include "verbs.h"

static const char call[] = "ibv_create_qp";

__attribute__((cold))
static int too_much(const struct sim_device *device, const char *name, uint32_t wanted, uint32_t max)
{
	return nic_refuse(device, call, EINVAL, "%s is %u, the device has %u", name, wanted, max);
}

static int check_caps(const struct sim_device *device, const struct ibv_qp_init_attr *attr)
{
	const uint32_t max_wr = (uint32_t)device->attr.max_qp_wr;
	const uint32_t max_sge = (uint32_t)device->attr.max_sge;
	const struct ibv_qp_cap *cap = &attr->cap;

	if (cap->max_send_wr > max_wr)
		return too_much(device, "max_send_wr", cap->max_send_wr, max_wr);
	if (cap->max_send_sge > max_sge)
		return too_much(device, "max_send_sge", cap->max_send_sge, max_sge);
	if (cap->max_inline_data > NIC_MAX_INLINE)
		return too_much(device, "max_inline_data", cap->max_inline_data, NIC_MAX_INLINE);
	if (!attr->srq && cap->max_recv_wr > max_wr)
		return too_much(device, "max_recv_wr", cap->max_recv_wr, max_wr);
	if (!attr->srq && cap->max_recv_sge > max_sge)
		return too_much(device, "max_recv_sge", cap->max_recv_sge, max_sge);
	return 0;
}

static int check_type(const struct sim_device *device, enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return 0;
	case IBV_QPT_UC:
	case IBV_QPT_UD:
		if (device->rules->services & POLYCM_SVC_UD)
			return 0;
		return nic_refuse(device, call, EOPNOTSUPP, "iWARP has reliable connections only");
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
	case IBV_QPT_DRIVER:
		return nic_refuse(device, call, EOPNOTSUPP, "the simulator has no QPs of type %d",
				  (int)type);
	default:
		return nic_refuse(device, call, EINVAL, "%d is no type of QP", (int)type);
	}
}

static int check_new(const struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	const struct sim_device *device = nic_device(pd->context);
	int err = check_type(device, attr->qp_type);

	if (err)
		return err;
	if (!attr->send_cq || !attr->recv_cq)
		return nic_refuse(device, call, EINVAL, "it needs two CQs");
	if (attr->send_cq->context != pd->context || attr->recv_cq->context != pd->context)
		return nic_refuse(device, call, EINVAL, "a CQ is of another context than the PD");
	if (attr->srq && attr->srq->context != pd->context)
		return nic_refuse(device, call, EINVAL, "the SRQ is of another context than the PD");
	return check_caps(device, attr);
}

static void qp_fill(struct sim_qp *qp, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct sim_device *device = nic_device(pd->context);
	struct ibv_qp *pub = &qp->pub.qp;

	/* Inline data takes the room of the gather list, and programs use all of it unasked. */
	size_t gather = attr->cap.max_send_sge * sizeof(struct ibv_sge);

	if (attr->cap.max_inline_data < gather)
		attr->cap.max_inline_data = (uint32_t)gather;
	if (attr->srq)
		attr->cap.max_recv_wr = attr->cap.max_recv_sge = 0;
	qp->port = &device->ports[0];
	qp->state = IBV_QPS_RESET;
	qp->path_mtu = IBV_MTU_256;	/* until somebody says how much the path carries */
	qp->type = (uint8_t)attr->qp_type;
	qp->sq_sig_all = !!attr->sq_sig_all;
	qp->cap = attr->cap;
	qp->sq_mask = nic_round_up(attr->cap.max_send_wr) - 1;
	qp->rq.size = attr->cap.max_recv_wr;
	qp->rq.mask = nic_round_up(attr->cap.max_recv_wr) - 1;
	qp->rq.max_sge = attr->cap.max_recv_sge;
	sim_timer_init(&qp->timer, rc_timer);
	nic_list_init(&qp->groups);
	if (nic_qp_is_iwarp(qp))
		qp->state = IBV_QPS_INIT;	/* siw knows nothing before that */
	pub->context = pd->context;
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

static int qp_attach(struct sim_qp *qp)
{
	struct ibv_qp *pub = &qp->pub.qp;
	int err;

	/* It may time out, and be sent to. */
	err = -sim_engine_need_thread();
	if (err) {
		nic_log(POLYCM_LOG_WARN, "ibv_create_qp: %s: the simulator cannot start its thread: "
			"raise the limit on threads or memory", strerror(err));
		return err;
	}
	err = nic_add(pub->context, NIC_QP, &qp->node, pub->pd);
	if (err)
		return err;
	err = nic_qpn_take(qp, &pub->qp_num);
	if (err) {
		(void)nic_refuse(nic_device(pub->context), call, err, "no QP number is left");
		nic_remove(pub->context, NIC_QP, &qp->node, pub->pd);
		return err;
	}
	pub->handle = pub->qp_num;
	nic_cq(pub->send_cq)->users++;
	nic_cq(pub->recv_cq)->users++;
	if (pub->srq)
		nic_srq(pub->srq)->users++;
	return 0;
}

static void qp_detach(struct sim_qp *qp)
{
	struct ibv_qp *pub = &qp->pub.qp;

	sim_timer_disarm(&qp->timer);
	nic_stream_closed(qp, true);
	nic_groups_detach_all(qp);
	nic_mw_unbind_all(qp);
	nic_qpn_drop(pub->qp_num);
	nic_async_forget(nic_context(pub->context), qp);
	nic_cq(pub->send_cq)->users--;
	nic_cq(pub->recv_cq)->users--;
	if (pub->srq)
		nic_srq(pub->srq)->users--;
	nic_remove(pub->context, NIC_QP, &qp->node, pub->pd);
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
	free(qp->sq);
	free(qp->rq.ring);
	free(qp->srq_held);
	free(qp->atomics);
	free(qp);
}

/* What a message or an atomic needs when it comes: neither is to wait for memory. */
static int qp_room(struct sim_qp *qp)
{
	const struct sim_device *device = qp->port->device;
	const struct ibv_srq *srq = qp->pub.qp.srq;

	if (srq) {
		qp->srq_held =
			malloc(nic_rwqe_size(nic_container(srq, struct sim_srq, pub)->rq.max_sge));
		if (!qp->srq_held)
			return ENOMEM;
	}
	if (qp->type == IBV_QPT_RC && device->rules->services & POLYCM_SVC_ATOMIC &&
	    device->attr.max_qp_rd_atom > 0) {
		qp->num_atomics = (uint8_t)device->attr.max_qp_rd_atom;
		qp->atomics = calloc(qp->num_atomics, sizeof(*qp->atomics));
		if (!qp->atomics)
			return ENOMEM;
	}
	return 0;
}

int nic_qp_create(struct ibv_pd *pd, size_t size, struct ibv_qp_init_attr *attr,
		  struct sim_qp **ret_qp)
{
	struct sim_qp *qp;
	int err = check_new(pd, attr);

	if (err)
		return err;
	qp = calloc(1, size);
	if (!qp)
		return nic_no_memory(nic_device(pd->context), call);
	qp_fill(qp, pd, attr);
	err = qp_room(qp);
	if (err) {
		(void)nic_no_memory(nic_device(pd->context), call);
	} else {
		sim_lock();
		err = qp_attach(qp);
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
	int err = nic_qp_create(pd, offsetof(struct sim_qp, pub) + sizeof(struct ibv_qp), attr, &qp);

	return err ? nic_fail(NULL, err) : &qp->pub.qp;
}

void nic_qp_free(struct sim_qp *qp)
{
	qp_detach(qp);
	qp_release(qp);
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
	struct sim_qp *qp = nic_qp(ibqp);
	const struct nic_acks acks = {
		&ibqp->mutex, &ibqp->cond, &ibqp->events_completed, &qp->async_reported, "QP",
		ibqp->qp_num,
	};
	int err = 0;

	sim_prefetch(qp, sizeof(*qp));
	sim_lock();
	if (!nic_list_empty(&qp->groups))
		err = nic_refuse(qp->port->device, "ibv_destroy_qp", EBUSY,
				 "QP 0x%06x: it is attached to a multicast group", nic_qpn(qp));
	else if (nic_acks_never_come(&acks))
		err = EDEADLK;
	if (!err)
		err = nic_hand_over(qp);
	if (!err) {
		await_attempt(qp);
		qp_detach(qp);
	}
	sim_unlock();
	if (err)
		return err;
	nic_await_acks(&acks);
	qp_release(qp);
	return 0;
}

static void query_attr(const struct sim_qp *qp, struct ibv_qp_attr *attr)
{
	*attr = (struct ibv_qp_attr) {
		.qp_state = (enum ibv_qp_state)qp->state,
		.cur_qp_state = (enum ibv_qp_state)qp->state,
		.path_mtu = (enum ibv_mtu)qp->path_mtu,
		.path_mig_state = (enum ibv_mig_state)qp->path_mig_state,
		.qkey = qp->qkey,
		.rq_psn = qp->rq_psn,
		.sq_psn = (qp->sq_psn + qp->sq_next) & NIC_PSN_MASK,
		.dest_qp_num = qp->dest_qpn,
		.qp_access_flags = qp->access,
		.cap = qp->cap,
		.ah_attr = qp->ah,
		.alt_ah_attr = qp->alt_ah,
		.sq_draining = qp->state == IBV_QPS_SQD && !qp->sqd_drained,
		.max_rd_atomic = qp->max_rd_atomic,
		.max_dest_rd_atomic = qp->max_dest_rd_atomic,
		.min_rnr_timer = qp->min_rnr_timer,
		.port_num = qp->state == IBV_QPS_RESET ? 0 : qp->port->num,
		.timeout = qp->timeout,
		.retry_cnt = qp->retry_cnt,
		.rnr_retry = qp->rnr_retry,
		.alt_port_num = qp->alt_port_num,
		.alt_timeout = qp->alt_timeout,
	};
	if (nic_qp_is_iwarp(qp)) {
		/* As siw: depths are swapped, the MTU is the port's, access is always the same. */
		attr->max_rd_atomic = qp->max_dest_rd_atomic;
		attr->max_dest_rd_atomic = qp->max_rd_atomic;
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
	struct sim_qp *qp = nic_qp(ibqp);

	(void)mask;	/* a hint that allows to return less */
	sim_lock();
	query_attr(qp, attr);
	ibqp->state = attr->qp_state;
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
