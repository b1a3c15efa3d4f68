/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * acmesock-data.c - the data path of provider-acmesock.so: work requests,
 * completions, and the frames between queue pairs.  All with the lock held.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "acmesock.h"

/* ------------------------------------------------------------------------
 * Work requests and completions.
 */

static void cq_push(struct cq *cq, const struct ibv_wc *wc)
{
	struct channel *channel = (struct channel *)cq->base.channel;
	unsigned int size = (unsigned int)cq->base.cqe;

	if (cq->count == size) {
		core->log(POLYCM_LOG_ERROR, NULL, "acmesock: a CQ of %u is full", size);
		return;
	}
	cq->ring[(cq->first + cq->count++) % size] = *wc;
	if (!cq->armed || !channel)
		return;
	cq->armed = false;
	/* A pipe that is full of numbers wakes the program as well. */
	if (write(channel->write_fd, &cq->object.number, sizeof(cq->object.number)) < 0)
		core->log(POLYCM_LOG_WARN, NULL, "acmesock: a completion channel is full");
}

/* Put a work request in.  0 or a positive errno. */
static int enqueue(struct wr_queue *queue, struct wr *wr, const struct ibv_sge *sge, int num_sge)
{
	if (num_sge < 0 || num_sge > 1)
		return EINVAL;
	if (queue->count == queue->max)
		return ENOMEM;
	if (num_sge)
		wr->sge = *sge;
	queue->ring[(queue->first + queue->count++) % MAX_WR] = *wr;
	return 0;
}

/* The oldest work request of a queue is over. */
static void complete(struct qp *qp, struct wr_queue *queue, struct ibv_wc *wc)
{
	const struct wr *wr = &queue->ring[queue->first];
	bool is_send = queue == &qp->send;

	wc->wr_id = wr->id;
	wc->qp_num = qp->base.qp_num;
	wc->opcode = !is_send ? IBV_WC_RECV :
		     wr->opcode == IBV_WR_RDMA_WRITE ? IBV_WC_RDMA_WRITE :
		     wr->opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ : IBV_WC_SEND;
	queue->first = (queue->first + 1) % MAX_WR;
	queue->count--;
	if (!is_send || qp->all_signaled || wr->flags & IBV_SEND_SIGNALED ||
	    wc->status != IBV_WC_SUCCESS)
		cq_push((struct cq *)(is_send ? qp->base.send_cq : qp->base.recv_cq), wc);
}

void qp_fail(struct qp *qp)
{
	struct ibv_wc wc;

	qp->base.state = IBV_QPS_ERR;
	qp->waiting = false;
	while (qp->send.count || qp->recv.count) {
		wc = (struct ibv_wc){ .status = IBV_WC_WR_FLUSH_ERR };
		complete(qp, qp->send.count ? &qp->send : &qp->recv, &wc);
	}
}

/* ------------------------------------------------------------------------
 * Memory.
 */

/* May this memory be used so?  The peer's numbers are as hostile as the program's. */
static bool mr_allows(const struct ibv_pd *pd, uint32_t key, uint64_t addr, uint32_t length,
		      unsigned int access)
{
	const struct mr *mr = object_find(acme.mrs, key);
	uint64_t start = mr ? (uintptr_t)mr->base.addr : 0;

	return mr && mr->base.pd == pd && (mr->access & access) == access && addr >= start &&
	       addr - start <= mr->base.length && length <= mr->base.length - (addr - start);
}

static bool sge_allows(const struct qp *qp, const struct wr *wr, unsigned int access)
{
	const struct ibv_sge *sge = &wr->sge;

	return !sge->length || mr_allows(qp->base.pd, sge->lkey, sge->addr, sge->length, access);
}

/* Data of the peer's into the memory of a work request. */
static enum ibv_wc_status store(const struct qp *qp, const struct wr *wr, const uint8_t *data,
				uint32_t len)
{
	if (len > wr->sge.length)
		return IBV_WC_LOC_LEN_ERR;
	if (!sge_allows(qp, wr, IBV_ACCESS_LOCAL_WRITE))
		return IBV_WC_LOC_PROT_ERR;
	memcpy((void *)(uintptr_t)wr->sge.addr, data, len);
	return IBV_WC_SUCCESS;
}

/* ------------------------------------------------------------------------
 * Frames.
 */

/* Send the next request, if none is on its way. */
static void send_next(struct qp *qp)
{
	const struct wr *wr = &qp->send.ring[qp->send.first];
	struct ibv_wc wc = { .status = IBV_WC_LOC_PROT_ERR };
	bool is_read = wr->opcode == IBV_WR_RDMA_READ;

	if (qp->waiting || !qp->send.count || qp->base.state != IBV_QPS_RTS || !qp->conn)
		return;
	if (!sge_allows(qp, wr, is_read ? IBV_ACCESS_LOCAL_WRITE : 0)) {
		complete(qp, &qp->send, &wc);
		qp_fail(qp);
		return;
	}
	qp->waiting = true;
	conn_send(qp->conn, &(struct frame_head){
		.type = is_read ? FRAME_READ :
			wr->opcode == IBV_WR_RDMA_WRITE ? FRAME_WRITE : FRAME_SEND,
		.addr = wr->addr, .rkey = wr->rkey, .length = wr->sge.length,
	}, (void *)(uintptr_t)wr->sge.addr, is_read ? 0 : wr->sge.length);
}

static void reply(struct qp *qp, enum ibv_wc_status status, uint64_t addr, uint32_t len)
{
	conn_send(qp->conn, &(struct frame_head){ .type = FRAME_REPLY, .status = (uint8_t)status },
		  (void *)(uintptr_t)addr, len);
}

/* The peer's RDMA WRITE or READ. */
static void receive_rdma(struct qp *qp, const struct frame *frame, uint32_t len)
{
	const struct frame_head *head = &frame->head;
	bool is_read = head->type == FRAME_READ;

	if (is_read)
		len = head->length;
	if (len > MAX_DATA || !mr_allows(qp->base.pd, head->rkey, head->addr, len, is_read ?
					 IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE)) {
		reply(qp, IBV_WC_REM_ACCESS_ERR, 0, 0);
		return;
	}
	if (!is_read)
		memcpy((void *)(uintptr_t)head->addr, frame->data, len);
	reply(qp, IBV_WC_SUCCESS, head->addr, is_read ? len : 0);
}

static void receive_send(struct qp *qp, const struct frame *frame, uint32_t len)
{
	struct ibv_wc wc = {
		.status = store(qp, &qp->recv.ring[qp->recv.first], frame->data, len),
		.byte_len = len,
	};
	bool good = wc.status == IBV_WC_SUCCESS;

	complete(qp, &qp->recv, &wc);
	reply(qp, good ? IBV_WC_SUCCESS : IBV_WC_REM_INV_REQ_ERR, 0, 0);
	if (!good)
		qp_fail(qp);
}

/* The request on its way is over.  A REPLY to nothing is ignored. */
static void receive_reply(struct qp *qp, const struct frame *frame, uint32_t len)
{
	struct ibv_wc wc = { .status = (enum ibv_wc_status)frame->head.status };
	const struct wr *wr = &qp->send.ring[qp->send.first];

	if (!qp->waiting)
		return;
	qp->waiting = false;
	wc.byte_len = wr->sge.length;
	if (wc.status == IBV_WC_SUCCESS && wr->opcode == IBV_WR_RDMA_READ)
		wc.status = len == wr->sge.length ? store(qp, wr, frame->data, len)
						  : IBV_WC_BAD_RESP_ERR;
	complete(qp, &qp->send, &wc);
	if (wc.status != IBV_WC_SUCCESS)
		qp_fail(qp);
	send_next(qp);
}

/* A QP that has ended drops everything: the peer's requests end with the connection. */
static bool drops(const struct qp *qp)
{
	return !qp || qp->base.state == IBV_QPS_ERR || qp->base.state == IBV_QPS_RESET;
}

/* Without a receive the peer waits, as with an rnr_retry_count of 7. */
bool qp_takes(const struct qp *qp, uint8_t type)
{
	if (drops(qp) || type == FRAME_REPLY)
		return true;
	return qp->base.state != IBV_QPS_INIT && (type != FRAME_SEND || qp->recv.count);
}

void qp_receive(struct qp *qp, const struct frame *frame, uint32_t len)
{
	/* What it cannot take comes only when the peer has gone, and is lost. */
	if (drops(qp) || !qp_takes(qp, frame->head.type))
		return;
	if (frame->head.type == FRAME_SEND)
		receive_send(qp, frame, len);
	else if (frame->head.type == FRAME_REPLY)
		receive_reply(qp, frame, len);
	else
		receive_rdma(qp, frame, len);
}

void qp_attach(uint32_t qp_num, struct conn *conn)
{
	struct qp *qp = object_find(acme.qps, qp_num);

	if (!qp || qp->conn)
		return;
	qp->conn = conn;
	conn->qp = qp;
}

void qp_detach(struct qp *qp)
{
	if (!qp || !qp->conn)
		return;
	qp->conn->qp = NULL;
	qp->conn = NULL;
}

/* ------------------------------------------------------------------------
 * ibv_post_send() and ibv_post_recv().
 */

static int post_one_send(struct qp *qp, const struct ibv_send_wr *wr)
{
	struct wr copy = { .id = wr->wr_id, .opcode = wr->opcode, .flags = wr->send_flags };

	switch (wr->opcode) {
	case IBV_WR_SEND:
		break;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		copy.addr = wr->wr.rdma.remote_addr;
		copy.rkey = wr->wr.rdma.rkey;
		break;
	default:
		return EOPNOTSUPP;
	}
	if (qp->base.state < IBV_QPS_RTS || (wr->num_sge == 1 && wr->sg_list->length > MAX_DATA))
		return EINVAL;
	return enqueue(&qp->send, &copy, wr->sg_list, wr->num_sge);
}

int post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct qp *qp = (struct qp *)ibqp;
	int err = 0;

	pthread_mutex_lock(&acme.lock);
	for (; wr && !(err = post_one_send(qp, wr)); wr = wr->next)
		;
	if (ibqp->state == IBV_QPS_ERR)
		qp_fail(qp);
	send_next(qp);
	pthread_mutex_unlock(&acme.lock);
	*bad_wr = wr;
	return err;
}

int post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct qp *qp = (struct qp *)ibqp;
	int err = ibqp->state == IBV_QPS_RESET ? EINVAL : 0;

	pthread_mutex_lock(&acme.lock);
	while (wr && !err) {
		err = enqueue(&qp->recv, &(struct wr){ .id = wr->wr_id }, wr->sg_list, wr->num_sge);
		wr = err ? wr : wr->next;
	}
	if (ibqp->state == IBV_QPS_ERR)
		qp_fail(qp);
	if (qp->conn)
		conn_resume(qp->conn);
	pthread_mutex_unlock(&acme.lock);
	*bad_wr = wr;
	return err;
}
