/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/rc_requester.c - the requesting side of a connected QP: answers,
 * retries and their timers.  What is sent when is in rc_transmit.c.
 *
 * The send queue is a window: requests from sq_tail to sq_next are open (sent,
 * not answered).  Going back moves sq_next to sq_tail; sq_high remembers how
 * far it has been, so that late answers still count.
 */
#include "config.h"

#include "providers/soft/fabric/counters.h"
#include "providers/soft/fabric/remote.h"
#include "providers/soft/fabric/world.h"
#include "providers/soft/link/shm/shm.h"
#include "providers/soft/shm/doorbell.h"
#include "direct.h"
#include "qp.h"
#include "rc_internal.h"
#include "refuse.h"
#include "sq.h"

/* TCP's own retransmission, which carries iWARP: 200 ms, doubling up to 120 s, 15 times. */
#define TCP_RTO SIM_MS(200)
#define TCP_RTO_MAX SIM_MS(120000)

/*
 * With the real clock, the peer is a process that may wait for a processor:
 * like the software devices of Linux, wait a little longer than asked for.
 */
#define REAL_TIMEOUT_MIN SIM_MS(64)

/* RNR NAK timer codes in units of 10 us; IBTA vol. 1, 9.7.5.2.8. */
static const uint16_t rnr_units[32] = {
	0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
	49152,
};

static uint64_t rnr_delay(uint8_t code)
{
	code &= 31;
	return SIM_US(10) * (code ? rnr_units[code] : 65536u);
}

static uint64_t ack_timeout(const struct sim_qp *qp)
{
	uint64_t ns;

	if (nic_qp_is_iwarp(qp)) {
		ns = TCP_RTO << (NIC_TCP_RETRIES - qp->retries_left);
		return ns < TCP_RTO_MAX ? ns : TCP_RTO_MAX;
	}
	if (!qp->attr.timeout)
		return 0;
	ns = 4096ull << qp->attr.timeout;
	return sim_is_virtual() || ns > REAL_TIMEOUT_MIN ? ns : REAL_TIMEOUT_MIN;
}

static bool is_open(const struct sim_qp *qp)
{
	return qp->sq_tail != qp->sq_next || qp->tx_off;
}

void rc_arm(struct sim_qp *qp)
{
	uint64_t ns;

	if (sim_timer_armed(&qp->timer) || !is_open(qp))
		return;
	ns = ack_timeout(qp);
	if (ns)
		sim_timer_arm(&qp->timer, sim_now() + ns);
}

/* The peer answers: the counters of retries start afresh. */
static void progress(struct sim_qp *qp)
{
	qp->retries_left = nic_qp_is_iwarp(qp) ? NIC_TCP_RETRIES : qp->attr.retry_cnt;
	qp->rnr_left = qp->attr.rnr_retry;
	sim_timer_disarm(&qp->timer);
	qp->rnr_wait = qp->went_back = false;
}

static void go_back(struct sim_qp *qp)
{
	sim_count(qp->port, SIM_RETRIES, 1);
	for (uint32_t i = qp->sq_tail; i != qp->sq_high; i++)
		nic_sq_at(qp, i)->inflight = 0;
	qp->sq_next = qp->sq_tail;
	/* What the peer has of a fragmented message it keeps. */
	qp->tx_off = qp->sq_tail != qp->sq_high ? nic_sq_at(qp, qp->sq_tail)->acked : 0;
	qp->inflight = 0;
	qp->rd_outstanding = 0;
	qp->read_dropped = false;
	sim_timer_disarm(&qp->timer);
}

void rc_fail(struct sim_qp *qp, enum ibv_wc_status status, const char *why)
{
	if (why)
		nic_set_reason("%s", why);
	if (status == IBV_WC_RETRY_EXC_ERR)
		sim_count(qp->port, SIM_RETRY_EXCEEDED, 1);
	else if (status == IBV_WC_RNR_RETRY_EXC_ERR)
		sim_count(qp->port, SIM_RNR_RETRY_EXCEEDED, 1);
	/* On iWARP nothing says which request it was: those that wait are flushed with the stream. */
	if (!nic_qp_is_iwarp(qp) || status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_LOC_LEN_ERR ||
	    status == IBV_WC_LOC_QP_OP_ERR || status == IBV_WC_MW_BIND_ERR)
		nic_sq_complete(qp, status);
	else
		nic_log_failure(qp, "the connection to QP 0x%06x ends", qp->attr.dest_qp_num);
	nic_qp_error(qp, false);
}

/*
 * Real clock: there is no answer, but nothing was lost.  The peer's process waits
 * for a processor or is stopped, and has not read what was sent; or its answer is
 * not read yet.  A card would have answered.
 */
static bool peer_stands_still(struct sim_qp *qp)
{
	unsigned int slot = rc_peer_slot(qp);
	uint32_t open = qp->sq_tail;

	if (sim_is_virtual() || !sim_slot_is_known(slot) || slot == sim_self_slot() || !qp->peer)
		return false;
	if (sim_slot_is_remote(slot))
		return sim_remote->stands_still(slot);
	if (sim_doorbell_has_mail(slot))
		return true;
	/* It was stopped before its program answered. */
	sim_link_hear_last_word(slot);
	if (qp->sq_tail != open || qp->state == IBV_QPS_ERR)
		return true;
	return sim_shm_unread(slot) && !sim_node_is_frozen(qp->peer->device->node);
}

void rc_timer(struct sim_timer *timer)
{
	struct sim_qp *qp = nic_container(timer, struct sim_qp, timer);

	if (!qp->rnr_wait && peer_stands_still(qp)) {
		rc_arm(qp);
		return;
	}
	if (qp->rnr_wait) {
		qp->rnr_wait = false;
	} else {
		if (!qp->retries_left) {
			rc_fail(qp, IBV_WC_RETRY_EXC_ERR, "no answer, retries are used up");
			return;
		}
		qp->retries_left--;
		qp->went_back = false;
		go_back(qp);
	}
	rc_transmit(qp);
	nic_check_cqe_lost(qp);
}

/* --- Answers. --- */

struct nic_swqe *rc_open_request(struct sim_qp *qp, uint32_t psn, uint32_t *ret_index)
{
	uint32_t ahead = (psn - (qp->sq_psn + qp->sq_tail)) & NIC_PSN_MASK;

	if (ahead >= qp->sq_high - qp->sq_tail)
		return NULL;
	*ret_index = qp->sq_tail + ahead;
	return nic_sq_at(qp, *ret_index);
}

/*
 * Requests before `index' are answered.  false: a read among them is not, its
 * answer was lost; go back to it.
 */
static bool complete_before(struct sim_qp *qp, uint32_t index)
{
	while (qp->sq_tail != index) {
		if (nic_is_read(nic_sq_at(qp, qp->sq_tail)))
			return false;
		nic_sq_complete(qp, IBV_WC_SUCCESS);
		progress(qp);
	}
	return true;
}

/*
 * A message or its answer was lost.  Once until something is answered: what
 * was in flight when we went back may say it again.
 */
static void retry(struct sim_qp *qp)
{
	if (qp->rnr_wait || qp->went_back)
		return;
	qp->went_back = true;
	if (!qp->retries_left) {
		rc_fail(qp, IBV_WC_RETRY_EXC_ERR, "out of sequence, retries are used up");
		return;
	}
	qp->retries_left--;
	go_back(qp);
}

static void handle_progress(struct sim_qp *qp, struct nic_swqe *wqe, uint32_t index, uint32_t offset)
{
	uint32_t freed;

	if (nic_is_read(wqe) || offset <= wqe->acked || offset >= wqe->length)
		return;
	freed = offset - wqe->acked;
	if (freed > wqe->inflight)
		freed = wqe->inflight;
	wqe->inflight -= freed;
	qp->inflight -= freed;
	wqe->acked = offset;
	if (index == qp->sq_next && qp->tx_off < offset)
		qp->tx_off = offset;
	progress(qp);
}

static void handle_rnr(struct sim_qp *qp, uint8_t code)
{
	if (qp->rnr_wait)
		return;		/* said twice */
	if (qp->attr.rnr_retry != 7 && !qp->rnr_left) {
		rc_fail(qp, IBV_WC_RNR_RETRY_EXC_ERR,
		     "the peer has no receive posted, RNR retries are used up");
		return;
	}
	if (qp->attr.rnr_retry != 7)
		qp->rnr_left--;
	go_back(qp);
	qp->rnr_wait = true;
	sim_timer_arm(&qp->timer, sim_now() + rnr_delay(code));
}

static void handle_nak(struct sim_qp *qp, const struct rc_packet *p)
{
	switch (p->h.syndrome) {
	case RC_NAK_SEQUENCE:
		sim_count(qp->port, SIM_SEQUENCE_NAKS, 1);
		retry(qp);
		break;
	case RC_NAK_RNR:
		sim_count(qp->port, SIM_RNR_RECEIVED, 1);
		handle_rnr(qp, p->h.rnr_timer);
		break;
	case RC_NAK_NO_REF:
		if (qp->no_ref) {
			retry(qp);	/* makes no sense */
			break;
		}
		qp->no_ref = true;
		go_back(qp);
		break;
	case RC_NAK_INVALID_REQUEST:
		rc_fail(qp, IBV_WC_REM_INV_REQ_ERR, "the peer calls it invalid");
		break;
	case RC_NAK_REMOTE_ACCESS:
		rc_fail(qp, IBV_WC_REM_ACCESS_ERR, "the peer does not allow this access to its memory");
		break;
	default:
		rc_fail(qp, IBV_WC_REM_OP_ERR, "the peer could not carry it out");
		break;
	}
}

/* Data of the oldest request, a read. */
static void read_data(struct sim_qp *qp, struct nic_swqe *wqe, const struct rc_packet *p)
{
	bool ref = p->h.flags & (RC_F_LOCAL | RC_F_REF);
	uint32_t n = ref ? wqe->length - qp->rd_off : p->len;
	struct iovec to[NIC_MAX_SGE];
	unsigned int parts;
	int r;

	if (p->h.length != wqe->length || n > wqe->length - qp->rd_off || (!n && wqe->length)) {
		rc_fail(qp, IBV_WC_BAD_RESP_ERR, "the answer does not fit the request");
		return;
	}
	if (nic_swqe_resolve(qp, wqe, qp->rd_off, n, to, &parts)) {
		rc_fail(qp, IBV_WC_LOC_PROT_ERR, NULL);
		return;
	}
	r = rc_fetch(qp, p, to, parts, n);
	if (r == -EAGAIN)
		return;
	if (r < 0 && qp->no_read_ref) {
		retry(qp);		/* makes no sense */
		return;
	}
	if (r < 0) {
		qp->no_read_ref = true;
		go_back(qp);
		return;
	}
	progress(qp);
	qp->rd_off += n;
	if (qp->rd_off == wqe->length)
		nic_sq_complete(qp, IBV_WC_SUCCESS);
	else if (p->h.flags & RC_F_ASK_ON && p->h.compare_add >= qp->rd_off &&
		 p->h.compare_add < wqe->length)
		rc_send_read(qp, qp->sq_tail, (uint32_t)p->h.compare_add);
}

unsigned int rc_place_response(struct sim_qp *qp, const struct rc_packet *p,
			       struct iovec to[static NIC_MAX_SGE])
{
	struct nic_swqe *wqe;
	unsigned int parts;
	uint32_t index;

	if (p->h.op != RC_READ_DATA || qp->state == IBV_QPS_RTR)
		return 0;
	wqe = rc_open_request(qp, p->h.psn, &index);
	if (!wqe || index != qp->sq_tail || wqe->opcode != IBV_WR_RDMA_READ ||
	    p->h.offset != qp->rd_off || p->h.length != wqe->length || !p->len ||
	    p->len > wqe->length - qp->rd_off ||
	    nic_swqe_resolve(qp, wqe, qp->rd_off, p->len, to, &parts))
		return 0;
	return parts;
}

static void handle_read_data(struct sim_qp *qp, struct nic_swqe *wqe, const struct rc_packet *p)
{
	if (wqe->opcode != IBV_WR_RDMA_READ) {
		rc_fail(qp, IBV_WC_BAD_RESP_ERR, "the answer is not one to this request");
		return;
	}
	if (wqe->length > RC_INLINE_MAX)
		qp->read_by_value = !(p->h.flags & (RC_F_LOCAL | RC_F_REF));
	if (p->h.offset < qp->rd_off)
		return;		/* we have that */
	if (p->h.offset > qp->rd_off) {
		retry(qp);
		return;
	}
	read_data(qp, wqe, p);
	if (qp->state != IBV_QPS_ERR && qp->read_dropped && !qp->rd_off)
		go_back(qp);
}

static void handle_atomic(struct sim_qp *qp, struct nic_swqe *wqe, uint64_t value)
{
	struct iovec to[NIC_MAX_SGE], from = { .iov_base = &value, .iov_len = sizeof(value) };
	unsigned int parts;

	if (wqe->opcode != IBV_WR_ATOMIC_CMP_AND_SWP && wqe->opcode != IBV_WR_ATOMIC_FETCH_AND_ADD) {
		rc_fail(qp, IBV_WC_BAD_RESP_ERR, "the answer is not one to this request");
		return;
	}
	if (nic_swqe_resolve(qp, wqe, 0, sizeof(value), to, &parts)) {
		rc_fail(qp, IBV_WC_LOC_PROT_ERR, "the data of the answer cannot be fetched");
		return;
	}
	nic_copy(to, parts, &from, 1, sizeof(value));
	progress(qp);
	nic_sq_complete(qp, IBV_WC_SUCCESS);
}

void rc_handle_response(struct sim_qp *qp, const struct rc_packet *p)
{
	uint32_t index, done;
	struct nic_swqe *wqe = rc_open_request(qp, p->h.psn, &index);

	if (!wqe)
		return;		/* an old one */
	if (p->h.rkey)
		nic_direct_take_offer(qp, p->h.rkey);
	done = p->h.op == RC_ACK ? index + 1 : index;
	if (!complete_before(qp, done)) {
		/* A read before it has only part of its data: ask again when it has all. */
		if (qp->rd_off)
			qp->read_dropped = true;
		else
			retry(qp);
		rc_transmit(qp);
		return;
	}
	switch (p->h.op) {
	case RC_PROGRESS:
		handle_progress(qp, wqe, index, p->h.offset);
		break;
	case RC_READ_DATA:
		handle_read_data(qp, wqe, p);
		break;
	case RC_ATOMIC_DATA:
		handle_atomic(qp, wqe, p->h.compare_add);
		break;
	case RC_NAK:
		handle_nak(qp, p);
		break;
	default:
		break;
	}
	rc_transmit(qp);
}
