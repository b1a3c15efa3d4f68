/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/qp.c - queue pairs on ids, and their way through the states.
 *
 * The attributes come from the provider; the moves to RTR and RTS are made
 * here, unless the transport says that its devices make them.  All under the
 * id's lock.
 */
#include "config.h"
#include "id_internal.h"

#include <errno.h>
#include <string.h>

#include "core/base/block.h"
#include "core/base/export.h"
#include "core/base/log.h"
#include "core/plugin/op.h"
#include "ret.h"
#include "cq.h"

/*
 * Bits 21 to 23 of a mask are the kernel's own and belong to Ethernet; kernels
 * set them on InfiniBand ports too, where the device then refuses.
 */
#define KERNEL_ONLY_BITS	(7 << 21)

/* What INIT says and RTR may say again. */
#define ALONG_TO_RTR		(IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)

/* libibverbs returns errno or -1. */
static int verbs_err(int ret)
{
	if (ret < 0)
		return errno ? -errno : -EIO;
	return -ret;
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	return verbs_err(POLYCM_VERB(ibv_modify_qp(qp, attr, mask)));
}

static inline int get_attr(struct polycm_id *id, enum ibv_qp_state state, struct ibv_qp_attr *attr,
		    int *ret_mask)
{
	polycm_clear(attr, sizeof(*attr));
	attr->qp_state = state;
	*ret_mask = 0;
	return POLYCM_OP(id->module, init_qp_attr, id->priv, attr, ret_mask);
}

#define KNOWN_MASK	(IBV_QP_STATE | IBV_QP_PORT | ALONG_TO_RTR)
#define KNOWN		(UINT64_C(1) << 63)

static void fill_init(struct ibv_qp_attr *attr, uint8_t port_num, unsigned int access_flags,
		      uint16_t pkey_index)
{
	polycm_clear(attr, sizeof(*attr));
	attr->qp_state = IBV_QPS_INIT;
	attr->port_num = port_num;
	attr->qp_access_flags = access_flags;
	attr->pkey_index = pkey_index;
}

/*
 * INIT between route and connection depends on the port's P_Keys alone, and
 * Ethernet has one that never changes: it is asked for once.  What link layer
 * a device's further ports have, is not known here.
 */
static bool is_fixed(const struct polycm_id *id)
{
	return id->pub.route.num_paths && !polycm_id_is_ud(id) && id->pub.port_num == 1 &&
	       id->device->link_layer == IBV_LINK_LAYER_ETHERNET;
}

/* An INIT of such an id that the device remembers; false: it does not. */
static bool recall_init(const struct polycm_id *id, const uint64_t *slot, struct ibv_qp_attr *attr)
{
	uint64_t known = __atomic_load_n(slot, __ATOMIC_RELAXED);

	if (!known)
		return false;
	fill_init(attr, id->pub.port_num, (unsigned int)(known & UINT32_MAX), (uint16_t)(known >> 32));
	return true;
}

static void remember_init(const struct polycm_id *id, uint64_t *slot, const struct ibv_qp_attr *attr,
			  int mask)
{
	if (mask == KNOWN_MASK && attr->port_num == id->pub.port_num)
		__atomic_store_n(slot, KNOWN | (uint64_t)attr->pkey_index << 32 |
				 attr->qp_access_flags, __ATOMIC_RELAXED);
}

static int get_init(struct polycm_id *id, struct ibv_qp_attr *attr, int *ret_mask)
{
	uint64_t *slot = &id->device->qp_init[POLYCM_QP_INIT_ROUTED];
	bool fixed = !id->knows_peer && is_fixed(id);
	int err;

	if (fixed && recall_init(id, slot, attr)) {
		*ret_mask = KNOWN_MASK;
		return 0;
	}
	err = get_attr(id, IBV_QPS_INIT, attr, ret_mask);
	if (!err && fixed)
		remember_init(id, slot, attr, *ret_mask);
	return err;
}

static int move_to_init(struct polycm_id *id, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	int mask, err;

	err = get_init(id, &attr, &mask);
	if (!err)
		err = modify_qp(qp, &attr, mask);
	if (err)
		return polycm_fail_in(err, "QP %u cannot become INIT", qp->qp_num);
	id->qp_init = (struct polycm_qp_init){
		.qp = qp,
		.final = !id->accepted && (mask & ALONG_TO_RTR) == ALONG_TO_RTR,
		.port_num = attr.port_num,
		.pkey_index = attr.pkey_index,
		.access_flags = attr.qp_access_flags,
	};
	return 0;
}

/*
 * After a REP the kernel's INIT depends, besides, on whether the peer may read
 * at all.  NULL: it is to be asked.
 */
static uint64_t *slot_of_reply(const struct polycm_id *id, const struct rdma_conn_param *reply)
{
	if (!polycm_module_is_kernel(id->module) || !is_fixed(id))
		return NULL;
	return &id->device->qp_init[reply->responder_resources ? POLYCM_QP_INIT_READ
								: POLYCM_QP_INIT_UNREAD];
}

/*
 * What INIT has to say now that the connection is known.  A QP that we made
 * INIT on that port takes it along to RTR: a system call less, or two.
 */
static int renew_init(struct polycm_id *id, const struct rdma_conn_param *reply,
		      struct ibv_qp_attr *attr, int *ret_mask)
{
	const struct polycm_qp_init *said = &id->qp_init;
	struct ibv_qp *qp = id->pub.qp;
	bool is_init = said->qp == qp &&
		       __atomic_load_n(&qp->state, __ATOMIC_RELAXED) == IBV_QPS_INIT;
	uint64_t *slot = reply ? slot_of_reply(id, reply) : NULL;
	int err;

	if (is_init && said->final) {
		fill_init(attr, said->port_num, said->access_flags, said->pkey_index);
		*ret_mask = ALONG_TO_RTR;
		return 0;
	}
	if (slot && is_init && said->port_num == id->pub.port_num && recall_init(id, slot, attr)) {
		*ret_mask = ALONG_TO_RTR;
		return 0;
	}
	err = get_attr(id, IBV_QPS_INIT, attr, ret_mask);
	if (!err && slot)
		remember_init(id, slot, attr, *ret_mask);
	if (!err && (!is_init || said->port_num != attr->port_num || *ret_mask & ~KNOWN_MASK)) {
		err = modify_qp(qp, attr, *ret_mask);
		*ret_mask = 0;
	}
	if (err)
		return polycm_fail_in(err, "QP %u cannot become INIT", qp->qp_num);
	*ret_mask &= ALONG_TO_RTR;
	return 0;
}

/* The move of its own for what RTR did not take along: an INIT that shows, as with librdmacm. */
static int modify_to_init(struct ibv_qp *qp, struct ibv_qp_attr *init, int along)
{
	return along ? modify_qp(qp, init, IBV_QP_STATE | IBV_QP_PORT | along) : 0;
}

/* A device that takes nothing along has the move of its own. */
static int modify_to_rtr(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			 struct ibv_qp_attr *init, int along)
{
	int err, init_err;

	if (along & IBV_QP_ACCESS_FLAGS)
		attr->qp_access_flags = init->qp_access_flags;
	if (along & IBV_QP_PKEY_INDEX)
		attr->pkey_index = init->pkey_index;
	err = modify_qp(qp, attr, mask | along);
	if (!along || !err)
		return err;
	init_err = modify_to_init(qp, init, along);
	if (init_err || (err != -EINVAL && err != -EOPNOTSUPP))
		return err;
	return modify_qp(qp, attr, mask);
}

static int move_to_rtr(struct polycm_id *id, uint8_t responder_resources,
		       const struct rdma_conn_param *reply)
{
	struct ibv_qp_attr init, attr;
	int along, mask, err;

	err = renew_init(id, reply, &init, &along);
	if (err)
		return err;
	err = get_attr(id, IBV_QPS_RTR, &attr, &mask);
	if (err) {
		/* Not in this state of the id, which the INIT before does not depend on. */
		(void)modify_to_init(id->pub.qp, &init, along);
		return err;
	}
	if (id->device->link_layer == IBV_LINK_LAYER_INFINIBAND)
		mask &= ~KERNEL_ONLY_BITS;
	if (responder_resources != RDMA_MAX_RESP_RES)
		attr.max_dest_rd_atomic = responder_resources;
	err = modify_to_rtr(id->pub.qp, &attr, mask, &init, along);
	if (err)
		return polycm_fail_in(err, "QP %u cannot become RTR", id->pub.qp->qp_num);
	polycm_log_id(POLYCM_LOG_INFO, id, "QP %u can receive (responder resources %u, minimum RNR "
		      "NAK timer code %u)", id->pub.qp->qp_num, attr.max_dest_rd_atomic,
		      attr.min_rnr_timer);
	return 0;
}

static int move_to_rts(struct polycm_id *id, uint8_t initiator_depth)
{
	struct ibv_qp_attr attr;
	int mask, err;

	err = get_attr(id, IBV_QPS_RTS, &attr, &mask);
	if (err)
		return err;
	if (initiator_depth != RDMA_MAX_INIT_DEPTH)
		attr.max_rd_atomic = initiator_depth;
	err = modify_qp(id->pub.qp, &attr, mask);
	if (err)
		return polycm_fail_in(err, "QP %u cannot become RTS", id->pub.qp->qp_num);
	polycm_log_id(POLYCM_LOG_INFO, id, "QP %u can send (initiator depth %u, local ACK time-out "
		      "%u, retry count %u, RNR retry count %u)", id->pub.qp->qp_num,
		      attr.max_rd_atomic, attr.timeout, attr.retry_cnt, attr.rnr_retry);
	return 0;
}

/* A datagram QP has no peer to wait for. */
static int move_ud_to_rts(struct polycm_id *id, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int err;

	err = move_to_init(id, qp);
	if (err)
		return err;
	err = modify_qp(qp, &attr, IBV_QP_STATE);
	if (err)
		return polycm_fail_in(err, "QP %u cannot become RTR", qp->qp_num);
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = 0;
	err = modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	if (err)
		return polycm_fail_in(err, "QP %u cannot become RTS", qp->qp_num);
	return 0;
}

static bool device_moves_qp(const struct polycm_id *id)
{
	return id->device->transport->flags & POLYCM_T_DEVICE_MOVES_QP;
}

int polycm_qp_connect(struct polycm_id *id, uint8_t responder_resources, uint8_t initiator_depth,
		      const struct rdma_conn_param *reply)
{
	int err;

	if (!id->pub.qp || device_moves_qp(id))
		return 0;
	err = move_to_rtr(id, responder_resources, reply);
	if (!err)
		err = move_to_rts(id, initiator_depth);
	return err;
}

static int move_to(struct polycm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr;

	polycm_clear(&attr, sizeof(attr));
	attr.qp_state = state;
	return modify_qp(id->pub.qp, &attr, IBV_QP_STATE);
}

int polycm_qp_error(struct polycm_id *id)
{
	return id->pub.qp ? move_to(id, IBV_QPS_ERR) : 0;
}

int polycm_qp_shutdown(struct polycm_id *id)
{
	if (!id->pub.qp)
		return 0;
	if (!device_moves_qp(id))
		return polycm_qp_error(id);
	/* The device refuses where it has left RTS by itself, which is as good. */
	(void)move_to(id, IBV_QPS_SQD);
	polycm_why_clear();
	return 0;
}

/* The PD of the call, else the id's; it must be of the id's device. */
static int check_pd(const struct polycm_id *id, struct ibv_pd **pd)
{
	if (!*pd)
		*pd = id->pub.pd;
	if (!*pd)
		return polycm_fail(-EINVAL, "no protection domain");
	if ((*pd)->context != id->pub.verbs)
		return polycm_fail(-EINVAL, "the protection domain is another device's");
	return 0;
}

static int check_qp_attr(struct polycm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	int err = polycm_need_device(id);

	if (err)
		return err;
	if (id->pub.qp)
		return polycm_fail(-EINVAL, "the id has a QP already");
	if ((id->pub.send_cq && attr->send_cq && id->pub.send_cq != attr->send_cq) ||
	    (id->pub.recv_cq && attr->recv_cq && id->pub.recv_cq != attr->recv_cq))
		return polycm_fail(-EINVAL, "the id has another CQ");

	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD))
		attr->pd = NULL;
	attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
	err = check_pd(id, &attr->pd);
	if (!err && attr->qp_type == IBV_QPT_XRC_RECV &&
	    !(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD && attr->xrcd)) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
		err = polycm_xrcd_get(id->device, &attr->xrcd);
	}
	return err;
}

/* The sides of an XRC QP do without what the SRQ or the peer has. */
static uint32_t cq_size(const struct ibv_qp_init_attr_ex *attr, bool send)
{
	uint32_t size = send ? attr->cap.max_send_wr : attr->cap.max_recv_wr;

	if (attr->qp_type == IBV_QPT_XRC_RECV || (!send && attr->qp_type == IBV_QPT_XRC_SEND))
		return 0;
	return size ? size : 1;
}

static int create_qp(struct polycm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_cq *send_cq = attr->send_cq, *recv_cq = attr->recv_cq;
	struct ibv_srq *srq = attr->srq;
	struct polycm_cqs_made made;
	struct ibv_qp *qp;
	int err;

	err = check_qp_attr(id, attr);
	if (!err)
		err = polycm_cqs_create(id, send_cq ? 0 : cq_size(attr, true),
					recv_cq ? 0 : cq_size(attr, false), &made);
	if (err)
		return err;
	if (!send_cq)
		attr->send_cq = id->pub.send_cq;
	if (!recv_cq)
		attr->recv_cq = id->pub.recv_cq;
	if (!srq)
		attr->srq = id->pub.srq;

	errno = 0;
	qp = POLYCM_VERB(ibv_create_qp_ex(id->pub.verbs, attr));
	if (!qp) {
		err = polycm_cq_whose(id, "send_cq", send_cq, errno ? -errno : -ENOMEM);
		err = polycm_cq_whose(id, "recv_cq", recv_cq, err);
		goto err_destroy_cqs;
	}
	err = polycm_ece_begin(id, qp);
	if (!err)
		err = polycm_id_is_ud(id) ? move_ud_to_rts(id, qp) : move_to_init(id, qp);
	if (!err)
		err = polycm_ece_agree(id, qp);
	if (err)
		goto err_destroy_qp;
	id->pub.pd = attr->pd;
	id->pub.qp = qp;
	return 0;

err_destroy_qp:
	(void)ibv_destroy_qp(qp);
err_destroy_cqs:
	polycm_cqs_undo(id, &made);
	attr->send_cq = send_cq;
	attr->recv_cq = recv_cq;
	attr->srq = srq;
	return err;
}

int polycm_qp_create(struct polycm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex;
	int err;

	/* The first members are the same ones. */
	polycm_clear(&ex, sizeof(ex));
	memcpy(&ex, attr, sizeof(*attr));
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	ex.pd = pd;
	err = create_qp(id, &ex);
	if (!err)
		memcpy(attr, &ex, sizeof(*attr));
	return err;
}

void polycm_qp_destroy(struct polycm_id *id)
{
	if (!id->pub.qp)
		return;
	polycm_groups_detach(id);
	(void)ibv_destroy_qp(id->pub.qp);
	id->pub.qp = NULL;
	id->qp_init.qp = NULL;
	/* The CQ of an XRC SRQ is not the QP's. */
	if (!id->pub.srq || id->pub.qp_type != IBV_QPT_XRC_RECV)
		polycm_cqs_destroy(id);
}

POLYCM_EXPORT int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
				 struct ibv_qp_init_attr *attr)
{
	return POLYCM_CALL(polycm_exit, self, id,
			   attr ? polycm_qp_create(self, pd, attr)
				: polycm_fail(-EINVAL, "no attributes"));
}

POLYCM_EXPORT int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	return POLYCM_CALL(polycm_exit, self, id, attr ? create_qp(self, attr)
						       : polycm_fail(-EINVAL, "no attributes"));
}

POLYCM_EXPORT void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct polycm_id *self = polycm_enter_to_end(id);

	if (!self) {
		(void)polycm_refused(__func__);
		return;
	}
	polycm_qp_destroy(self);
	polycm_leave(self);
}

POLYCM_EXPORT int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr,
				    int *qp_attr_mask)
{
	struct polycm_id *self = polycm_enter(id);
	int err;

	if (!self)
		return polycm_refused(__func__);
	err = polycm_need_device(self);
	if (!err && (!qp_attr || !qp_attr_mask))
		err = polycm_fail(-EINVAL, "no attributes");
	if (!err && qp_attr->qp_state > IBV_QPS_ERR)
		err = polycm_fail(-EINVAL, "%d is no state of a QP", (int)qp_attr->qp_state);
	if (!err)
		err = POLYCM_OP(self->module, init_qp_attr, self->priv, qp_attr, qp_attr_mask);
	return polycm_exit(__func__, self, err);
}
