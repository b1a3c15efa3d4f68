/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * acmesock-data.c - the data path of provider-acmesock.so: work requests,
 * completions, and the frames between queue pairs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "acmesock.h"

/* ------------------------------------------------------------------------
 * Work requests and completions.  All with the lock held.
 */

static void cq_push(struct cq *cq, const struct ibv_wc *wc, bool solicited)
{
	struct channel *channel = (struct channel *)cq->base.channel;

	if (cq->count == cq->size) {
		core->log(POLYCM_LOG_ERROR, NULL, "acmesock: a CQ of %u is full", cq->size);
		return;
	}
	cq->ring[(cq->first + cq->count++) % cq->size] = *wc;
	if (cq->armed == NOT_ARMED || !channel ||
	    (cq->armed == ARMED_SOLICITED && !solicited && wc->status == IBV_WC_SUCCESS))
		return;
	cq->armed = NOT_ARMED;
	/* A pipe that is full of numbers wakes the program as well. */
	if (write(channel->write_fd, &cq->number, sizeof(cq->number)) < 0)
		core->log(POLYCM_LOG_WARN, NULL, "acmesock: a completion channel is full");
}

/* Put a work request in.  0 or a positive errno. */
static int enqueue(struct wr_queue *queue, struct wr *wr, const struct ibv_sge *sge, int num_sge,
		   uint64_t max_length)
{
	uint64_t length = 0;

	if (num_sge < 0 || num_sge > (int)MAX_SGE)
		return EINVAL;
	if (queue->count + 1 >= queue->size)
		return ENOMEM;
	for (int i = 0; i < num_sge; i++) {
		wr->sge[i] = sge[i];
		length += sge[i].length;
	}
	if (length > max_length)
		return EINVAL;
	wr->num_sge = (uint32_t)num_sge;
	wr->length = (uint32_t)length;
	queue->ring[(queue->first + queue->count++) % queue->size] = *wr;
	return 0;
}

/* The oldest work request of a queue is over. */
static void complete_wr(struct qp *qp, struct wr_queue *queue, struct ibv_wc *wc, bool solicited)
{
	static const enum ibv_wc_opcode opcodes[] = {
		[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
		[IBV_WR_SEND] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
		[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
	};
	const struct wr *wr = &queue->ring[queue->first];
	bool is_send = queue == &qp->send;

	wc->wr_id = wr->id;
	wc->qp_num = qp->base.qp_num;
	wc->opcode = is_send ? opcodes[wr->opcode] : IBV_WC_RECV;
	queue->first = (queue->first + 1) % queue->size;
	queue->count--;
	if (!is_send || qp->all_signaled || wr->flags & IBV_SEND_SIGNALED ||
	    wc->status != IBV_WC_SUCCESS)
		cq_push((struct cq *)(is_send ? qp->base.send_cq : qp->base.recv_cq), wc, solicited);
}

void qp_fail(struct qp *qp)
{
	struct ibv_wc wc;

	qp->base.state = IBV_QPS_ERR;
	qp->waiting = false;
	while (qp->send.count || qp->recv.count) {
		wc = (struct ibv_wc){ .status = IBV_WC_WR_FLUSH_ERR };
		complete_wr(qp, qp->send.count ? &qp->send : &qp->recv, &wc, false);
	}
}

/* ------------------------------------------------------------------------
 * Memory.  All with the lock held.
 */

/* May this memory be used so?  The peer's numbers are as hostile as the program's. */
static bool mr_allows(const struct ibv_pd *pd, uint32_t key, uint64_t addr, uint32_t length,
		      unsigned int access)
{
	const struct mr *mr;
	uint64_t start;

	for (mr = acme.mrs; mr; mr = mr->next) {
		if (mr->base.lkey != key)
			continue;
		start = (uintptr_t)mr->base.addr;
		return mr->base.pd == pd && (mr->access & access) == access && addr >= start &&
		       addr - start <= mr->base.length && length <= mr->base.length - (addr - start);
	}
	return false;
}

static enum ibv_wc_status check_sges(const struct qp *qp, const struct wr *wr, unsigned int access)
{
	for (uint32_t i = 0; i < wr->num_sge; i++)
		if (!mr_allows(qp->base.pd, wr->sge[i].lkey, wr->sge[i].addr, wr->sge[i].length, access))
			return IBV_WC_LOC_PROT_ERR;
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status scatter(const struct qp *qp, const struct wr *wr, const uint8_t *data,
				  uint32_t len)
{
	uint32_t part;

	if (len > wr->length)
		return IBV_WC_LOC_LEN_ERR;
	if (check_sges(qp, wr, IBV_ACCESS_LOCAL_WRITE) != IBV_WC_SUCCESS)
		return IBV_WC_LOC_PROT_ERR;
	for (uint32_t i = 0; i < wr->num_sge && len; i++, data += part, len -= part) {
		part = wr->sge[i].length < len ? wr->sge[i].length : len;
		memcpy((void *)(uintptr_t)wr->sge[i].addr, data, part);
	}
	return IBV_WC_SUCCESS;
}

/* ------------------------------------------------------------------------
 * Data.  All with the lock held.
 */

struct qp *qp_find(uint32_t qp_num)
{
	struct qp *qp;

	for (qp = acme.qps; qp && qp->base.qp_num != qp_num; qp = qp->next)
		;
	return qp;
}

/* Send the next request, if none is on its way. */
static void send_next(struct qp *qp)
{
	const struct wr *wr = &qp->send.ring[qp->send.first];
	struct iovec parts[1 + MAX_SGE];
	struct ibv_wc wc = { .status = IBV_WC_LOC_PROT_ERR };
	struct frame_head head;
	bool is_read;

	if (qp->waiting || !qp->send.count || qp->base.state != IBV_QPS_RTS || !qp->conn)
		return;
	is_read = wr->opcode == IBV_WR_RDMA_READ;
	if (check_sges(qp, wr, is_read ? IBV_ACCESS_LOCAL_WRITE : 0) != IBV_WC_SUCCESS) {
		complete_wr(qp, &qp->send, &wc, false);
		qp_fail(qp);
		return;
	}
	head = (struct frame_head){
		.type = is_read ? FRAME_READ :
			wr->opcode == IBV_WR_RDMA_WRITE ? FRAME_WRITE : FRAME_SEND,
		.solicited = (wr->flags & IBV_SEND_SOLICITED) != 0,
		.has_imm = wr->opcode == IBV_WR_SEND_WITH_IMM,
		.imm = wr->imm,
		.addr = wr->addr,
		.rkey = wr->rkey,
		.length = wr->length,
	};
	for (uint32_t i = 0; i < wr->num_sge; i++)
		parts[1 + i] = (struct iovec){ (void *)(uintptr_t)wr->sge[i].addr, wr->sge[i].length };
	qp->waiting = true;
	conn_send(qp->conn, &head, parts, is_read ? 1 : 1 + wr->num_sge);
}

static void reply(struct qp *qp, enum ibv_wc_status status, uint64_t addr, uint32_t len)
{
	struct frame_head head = { .type = FRAME_REPLY, .status = (uint8_t)status };
	struct iovec parts[2] = { [1] = { (void *)(uintptr_t)addr, len } };

	conn_send(qp->conn, &head, parts, 2);
}

/* The peer's RDMA WRITE or READ: its answer, and its own QP's end if it asked too much. */
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
		.status = scatter(qp, &qp->recv.ring[qp->recv.first], frame->data, len),
		.byte_len = len,
		.imm_data = frame->head.imm,
		.wc_flags = frame->head.has_imm ? IBV_WC_WITH_IMM : 0,
	};
	bool good = wc.status == IBV_WC_SUCCESS;

	complete_wr(qp, &qp->recv, &wc, frame->head.solicited);
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
	wc.byte_len = wr->length;
	if (wc.status == IBV_WC_SUCCESS && wr->opcode == IBV_WR_RDMA_READ)
		wc.status = len == wr->length ? scatter(qp, wr, frame->data, len) :
						IBV_WC_BAD_RESP_ERR;
	complete_wr(qp, &qp->send, &wc, false);
	if (wc.status != IBV_WC_SUCCESS)
		qp_fail(qp);
	send_next(qp);
}

bool qp_receive(struct qp *qp, const struct frame *frame, uint32_t len)
{
	bool can_receive;

	/* A QP that has ended drops everything: the peer's requests end with the connection. */
	if (!qp || qp->base.state == IBV_QPS_ERR || qp->base.state == IBV_QPS_RESET)
		return true;
	can_receive = qp->base.state == IBV_QPS_RTR || qp->base.state == IBV_QPS_RTS;
	switch (frame->head.type) {
	case FRAME_SEND:
		/* Without a receive the peer waits, as with an rnr_retry_count of 7. */
		if (!can_receive || !qp->recv.count)
			return false;
		receive_send(qp, frame, len);
		return true;
	case FRAME_REPLY:
		receive_reply(qp, frame, len);
		return true;
	default:
		if (!can_receive)
			return false;
		receive_rdma(qp, frame, len);
		return true;
	}
}

void qp_attach(uint32_t qp_num, struct conn *conn)
{
	struct qp *qp = qp_find(qp_num);

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

int post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct qp *qp = (struct qp *)ibqp;
	int err = 0;

	pthread_mutex_lock(&acme.lock);
	for (; wr; wr = wr->next) {
		struct wr copy = { .id = wr->wr_id, .opcode = wr->opcode, .flags = wr->send_flags };

		/* Programs set of a union and of imm_data only what the opcode needs. */
		if (wr->opcode == IBV_WR_SEND_WITH_IMM)
			copy.imm = wr->imm_data;
		if (wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_RDMA_READ) {
			copy.addr = wr->wr.rdma.remote_addr;
			copy.rkey = wr->wr.rdma.rkey;
		}
		if (ibqp->state != IBV_QPS_RTS && ibqp->state != IBV_QPS_ERR)
			err = EINVAL;
		else if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM &&
			 wr->opcode != IBV_WR_RDMA_WRITE && wr->opcode != IBV_WR_RDMA_READ)
			err = EOPNOTSUPP;
		else
			err = enqueue(&qp->send, &copy, wr->sg_list, wr->num_sge, MAX_DATA);
		if (err)
			break;
		if (ibqp->state == IBV_QPS_ERR)
			qp_fail(qp);
		else
			send_next(qp);
	}
	pthread_mutex_unlock(&acme.lock);
	*bad_wr = wr;
	return err;
}

int post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct qp *qp = (struct qp *)ibqp;
	int err = 0;

	pthread_mutex_lock(&acme.lock);
	for (; wr; wr = wr->next) {
		struct wr copy = { .id = wr->wr_id };

		err = EINVAL;
		if (ibqp->state != IBV_QPS_RESET)
			err = enqueue(&qp->recv, &copy, wr->sg_list, wr->num_sge, UINT32_MAX);
		if (err)
			break;
		if (ibqp->state == IBV_QPS_ERR)
			qp_fail(qp);
	}
	if (qp->conn)
		conn_resume(qp->conn);
	pthread_mutex_unlock(&acme.lock);
	*bad_wr = wr;
	return err;
}
