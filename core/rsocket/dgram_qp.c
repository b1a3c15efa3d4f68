/* SPDX-License-Identifier: BSD-2-Clause */
/* rsocket/dgram_qp.c - the queue pairs of a datagram rsocket. */
#include "config.h"
#include "dgram.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/addr.h"
#include "core/base/why.h"

#define BATCH		16
#define RECEIVE_SLOT	(DGRAM_GRH + RSOCKET_DGRAM_MAX)
#define IS_RECEIVE	(UINT64_C(1) << 32)

static void make_header(struct rsocket_dgram_header *header, const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

	memset(header, 0, sizeof(*header));
	header->version = addr->ss_family == AF_INET ? 4 : 6;
	header->length = (uint8_t)RSOCKET_DGRAM_LENGTH(header->version);
	if (addr->ss_family == AF_INET) {
		header->port = in->sin_port;
		header->ipv4 = in->sin_addr.s_addr;
	} else {
		header->port = in6->sin6_port;
		header->ipv6.flowinfo = in6->sin6_flowinfo;
		memcpy(header->ipv6.addr, &in6->sin6_addr, sizeof(header->ipv6.addr));
	}
}

static void read_header(const struct rsocket_dgram_header *header, struct sockaddr_storage *addr)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;
	struct sockaddr_in *in = (struct sockaddr_in *)addr;

	memset(addr, 0, sizeof(*addr));
	if (header->version == 4) {
		in->sin_family = AF_INET;
		in->sin_port = header->port;
		in->sin_addr.s_addr = header->ipv4;
	} else {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = header->port;
		in6->sin6_flowinfo = header->ipv6.flowinfo;
		memcpy(&in6->sin6_addr, header->ipv6.addr, sizeof(in6->sin6_addr));
	}
}

int dgram_post_receive(struct dgram_qp *qp, unsigned int slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)(qp->receive_buffer + (size_t)slot * RECEIVE_SLOT),
		.length = RECEIVE_SLOT,
		.lkey = qp->receive_mr->lkey,
	};
	struct ibv_recv_wr wr = {
		.wr_id = IS_RECEIVE | slot, .sg_list = &sge, .num_sge = 1,
	}, *bad;

	return -ibv_post_recv(qp->id->qp, &wr, &bad);
}

/* --- made and freed --- */

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static int limit(struct dgram *d, struct dgram_qp *qp)
{
	const struct rsocket_sizes *sizes = &d->rs.sizes;
	unsigned int udp = RSOCKET_DGRAM_MAX - RSOCKET_UDP_LENGTH(qp->header.version);
	struct ibv_device_attr attr;
	struct ibv_port_attr port;

	if (ibv_query_device(qp->id->verbs, &attr) ||
	    ibv_query_port(qp->id->verbs, qp->id->port_num, &port))
		return -errno;
	qp->num_sends = least(least(sizes->sends, sizes->send_buffer / RSOCKET_DGRAM_MAX),
			      (unsigned int)attr.max_qp_wr);
	qp->num_receives = least(least(sizes->receives, sizes->receive_buffer / RSOCKET_DGRAM_MAX),
				 (unsigned int)attr.max_qp_wr);
	if (!qp->num_sends || !qp->num_receives)
		return polycm_fail(-EINVAL, "RDMA_SQSIZE or RDMA_RQSIZE is 0");
	/* As much as goes by either way. */
	qp->max_len = least((128u << port.active_mtu) - qp->header.length, udp);
	return 0;
}

static int create_queues(struct dgram *d, struct dgram_qp *qp)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
		.cap = {
			.max_send_wr = qp->num_sends,
			.max_recv_wr = qp->num_receives,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = d->rs.sizes.inline_data,
		},
	};

	qp->completions = ibv_create_comp_channel(qp->id->verbs);
	if (!qp->completions || fcntl(qp->completions->fd, F_SETFL, O_NONBLOCK))
		return -errno;
	qp->cq = ibv_create_cq(qp->id->verbs, (int)(qp->num_sends + qp->num_receives), qp,
			       qp->completions, 0);
	if (!qp->cq)
		return -errno;
	attr.send_cq = attr.recv_cq = qp->cq;
	if (rdma_create_qp(qp->id, NULL, &attr))
		return -errno;
	d->rs.sizes.inline_data = (uint16_t)least(attr.cap.max_inline_data, UINT16_MAX);
	return rsocket_watch(&d->rs, qp->completions->fd);
}

static int create_buffers(struct dgram_qp *qp)
{
	size_t sends = (size_t)qp->num_sends * RSOCKET_DGRAM_MAX;
	size_t receives = (size_t)qp->num_receives * RECEIVE_SLOT;

	qp->free_sends = calloc(qp->num_sends, sizeof(*qp->free_sends));
	qp->messages = calloc(qp->num_receives, sizeof(*qp->messages));
	qp->send_buffer = rsocket_pages(sends);
	qp->receive_buffer = rsocket_pages(receives);
	if (!qp->free_sends || !qp->messages || !qp->send_buffer || !qp->receive_buffer)
		return -ENOMEM;
	qp->send_mr = ibv_reg_mr(qp->id->pd, qp->send_buffer, sends, IBV_ACCESS_LOCAL_WRITE);
	if (!qp->send_mr)
		return -errno;
	qp->receive_mr = ibv_reg_mr(qp->id->pd, qp->receive_buffer, receives, IBV_ACCESS_LOCAL_WRITE);
	if (!qp->receive_mr)
		return -errno;
	while (qp->num_free < qp->num_sends) {
		qp->free_sends[qp->num_free] = (uint16_t)qp->num_free;
		qp->num_free++;
	}
	return 0;
}

static int create(struct dgram *d, struct dgram_qp *qp)
{
	struct sockaddr_storage addr = qp->addr;
	int err;

	polycm_addr_set_port((struct sockaddr *)&addr, 0);
	if (rdma_create_id(d->channel, &qp->id, NULL, RDMA_PS_UDP) ||
	    rdma_bind_addr(qp->id, (struct sockaddr *)&addr))
		return -errno;
	if (!qp->id->verbs)
		return polycm_fail(-ENODEV, "it would be sent from loopback or an address that no "
				   "device has");
	err = limit(d, qp);
	if (!err)
		err = create_queues(d, qp);
	if (!err)
		err = create_buffers(qp);
	for (unsigned int i = 0; !err && i < qp->num_receives; i++)
		err = dgram_post_receive(qp, i);
	return err;
}

void dgram_free_qp(struct dgram_qp *qp)
{
	if (qp->id && qp->id->qp)
		rdma_destroy_qp(qp->id);
	if (qp->cq) {
		ibv_ack_cq_events(qp->cq, qp->unacked);
		ibv_destroy_cq(qp->cq);
	}
	if (qp->completions)
		ibv_destroy_comp_channel(qp->completions);
	if (qp->send_mr)
		ibv_dereg_mr(qp->send_mr);
	if (qp->receive_mr)
		ibv_dereg_mr(qp->receive_mr);
	if (qp->id)
		rdma_destroy_id(qp->id);
	free(qp->send_buffer);
	free(qp->receive_buffer);
	free(qp->free_sends);
	free(qp->messages);
	free(qp);
}

int dgram_get_qp(struct dgram *d, const struct sockaddr_storage *addr, struct dgram_qp **ret_qp)
{
	char why[sizeof(polycm_why_text)];
	struct rsocket_dgram_header header;
	struct dgram_qp *qp;
	int err;

	make_header(&header, addr);
	for (qp = d->qps; qp; qp = qp->next) {
		if (!memcmp(&qp->header, &header, sizeof(header))) {
			*ret_qp = qp;
			return 0;
		}
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->addr = *addr;
	qp->header = header;
	err = create(d, qp);
	if (err) {
		/* Calls that free it succeed, and clear the reason. */
		memcpy(why, polycm_why_text, sizeof(why));
		dgram_free_qp(qp);
		memcpy(polycm_why_text, why, sizeof(why));
		return err;
	}
	qp->next = d->qps;
	d->qps = qp;
	*ret_qp = qp;
	return 0;
}

/* --- used --- */

int dgram_post_send(struct dgram_peer *peer, const struct msghdr *msg, uint32_t len)
{
	struct dgram_qp *qp = peer->qp;
	unsigned int slot = qp->free_sends[qp->num_free - 1];
	uint8_t *data = qp->send_buffer + (size_t)slot * RSOCKET_DGRAM_MAX;
	struct ibv_sge sge = {
		.addr = (uintptr_t)data,
		.length = qp->header.length + len,
		.lkey = qp->send_mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = slot,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr.ud = { .ah = peer->ah, .remote_qpn = peer->qpn, .remote_qkey = RDMA_UDP_QKEY },
	}, *bad;
	int err;

	memcpy(data, &qp->header, qp->header.length);
	rsocket_gather(msg, 0, data + qp->header.length, len);
	err = ibv_post_send(qp->id->qp, &wr, &bad);
	if (!err)
		qp->num_free--;
	return -err;
}

/* A datagram of anybody's. */
static bool take(struct dgram *d, struct dgram_qp *qp, const struct ibv_wc *wc)
{
	unsigned int slot = (uint32_t)wc->wr_id;
	uint8_t *data = qp->receive_buffer + (size_t)slot * RECEIVE_SLOT + DGRAM_GRH;
	struct dgram_message *message = &qp->messages[slot];
	struct rsocket_dgram_header header;

	if (wc->status != IBV_WC_SUCCESS || wc->byte_len < DGRAM_GRH + RSOCKET_DGRAM_LENGTH(4))
		return false;
	memset(&header, 0, sizeof(header));
	memcpy(&header, data, RSOCKET_DGRAM_LENGTH(4));
	if ((header.version != 4 && header.version != 6) ||
	    header.length != RSOCKET_DGRAM_LENGTH(header.version) ||
	    wc->byte_len < DGRAM_GRH + header.length)
		return false;
	memcpy(&header, data, header.length);
	message->qp = qp;
	message->slot = slot;
	message->len = wc->byte_len - DGRAM_GRH - header.length;
	message->data = data + header.length;
	read_header(&header, &message->from);
	dgram_queue(d, message);
	return true;
}

static void poll_one(struct dgram *d, struct dgram_qp *qp)
{
	struct ibv_wc wcs[BATCH];
	int num;

	do {
		num = ibv_poll_cq(qp->cq, BATCH, wcs);
		for (int i = 0; i < num; i++) {
			if (!(wcs[i].wr_id & IS_RECEIVE))
				qp->free_sends[qp->num_free++] = (uint16_t)wcs[i].wr_id;
			else if (!take(d, qp, &wcs[i]) && wcs[i].status == IBV_WC_SUCCESS)
				(void)dgram_post_receive(qp, (uint32_t)wcs[i].wr_id);
		}
	} while (num == BATCH);
}

void dgram_poll(struct dgram *d)
{
	for (struct dgram_qp *qp = d->qps; qp; qp = qp->next)
		poll_one(d, qp);
}
