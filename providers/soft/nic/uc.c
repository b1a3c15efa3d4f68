/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/uc.c - unreliable connected QPs: messages as with RC, but without
 * answers.  If a part of a message is missing, all of it is dropped, and the next
 * message gets its receive request.  The first packet of a message is accepted
 * with any number (IBTA vol. 1, 9.8).
 */
#include "config.h"

#include "qp.h"
#include "rc_internal.h"
#include "refuse.h"
#include "rq.h"
#include "sq.h"

/* --- Sending. --- */

enum ibv_wc_status uc_send(struct sim_qp *qp, struct nic_swqe *wqe)
{
	struct rc_header h = rc_request_header(qp, qp->sq_tail);
	struct iovec iov[NIC_MAX_SGE];
	unsigned int parts;

	if (wqe->length > qp->port->max_msg_sz) {
		nic_set_reason("%u bytes are more than a message may have (%u)", wqe->length,
			    qp->port->max_msg_sz);
		return IBV_WC_LOC_LEN_ERR;
	}
	if (nic_swqe_resolve(qp, wqe, 0, wqe->length, iov, &parts))
		return IBV_WC_LOC_PROT_ERR;
	h.flags |= RC_F_UNRELIABLE;
	do {
		uint32_t n = wqe->length - h.offset;

		if (n > RC_FRAGMENT)
			n = RC_FRAGMENT;
		(void)nic_swqe_resolve(qp, wqe, h.offset, n, iov, &parts);
		rc_send(qp, &h, iov, parts, n);
		h.offset += n;
	} while (h.offset < wqe->length);
	return IBV_WC_SUCCESS;
}

/* --- Receiving. --- */

static void drop(struct sim_qp *qp, const char *why)
{
	nic_debug("%s QP 0x%06x: a message of QP 0x%06x is dropped: %s",
		  qp->port->device->vdev.device.name, nic_qpn(qp), qp->attr.dest_qp_num, why);
	qp->uc_dropping = true;
}

/* Where it does not fit, a request of the QP's own stays for the next message. */
static void drop_too_long(struct sim_qp *qp)
{
	struct ibv_wc wc = { .status = IBV_WC_REM_INV_REQ_ERR, .opcode = IBV_WC_RECV };

	drop(qp, "it is longer than the receive");
	if (!qp->pub.qp.srq)
		return;
	nic_set_reason("the message of QP 0x%06x: it is longer than the receive", qp->attr.dest_qp_num);
	nic_rq_complete(qp, &wc, true);
}

/* rc_target() has failed. */
static void fail(struct sim_qp *qp, int err, const char *why)
{
	struct ibv_wc wc = { .status = IBV_WC_LOC_PROT_ERR, .opcode = IBV_WC_RECV };

	if (err == -ENOBUFS) {
		drop(qp, "no receive is posted");
	} else if (err == -EMSGSIZE) {
		drop_too_long(qp);
	} else if (err == -EPERM) {
		drop(qp, why);
	} else {
		nic_rq_complete(qp, &wc, true);
		nic_qp_error(qp, false);
	}
}

/* Is it what comes next of a message, or the first of another? */
static bool is_next(struct sim_qp *qp, const struct rc_header *h)
{
	if (!h->offset) {
		qp->rx_off = 0;
		qp->rq_psn = h->psn;
		qp->uc_dropping = false;
	} else if (h->psn != qp->rq_psn || h->offset != qp->rx_off) {
		qp->uc_dropping = true;
	}
	return !qp->uc_dropping;
}

void uc_handle_request(struct sim_qp *qp, const struct rc_packet *p)
{
	const struct rc_header *h = &p->h;
	struct rc_target to;
	struct iovec from;
	int r;

	if ((h->op != RC_SEND && h->op != RC_WRITE) || h->length > NIC_MAX_MESSAGE ||
	    h->offset > h->length || p->len > h->length - h->offset || (!p->len && h->length) ||
	    !is_next(qp, h))
		return;
	r = rc_target(qp, h, p->len, &to);
	if (r < 0) {
		fail(qp, r, to.why);
		return;
	}
	from = (struct iovec) { .iov_base = (void *)(uintptr_t)p->data, .iov_len = p->len };
	nic_copy(to.iov, to.parts, &from, 1, p->len);
	qp->rx_off += p->len;
	if (qp->rx_off == h->length)
		rc_message_done(qp, h, false);
}
