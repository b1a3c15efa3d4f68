/* SPDX-License-Identifier: BSD-2-Clause */
/* tests/api/transfer.c - see transfer.h. */
#include "transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CLEAN 0xee

static void end_open(struct end *end, struct rdma_cm_id *id)
{
	unsigned int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = TRANSFER_WRS,
			.max_recv_wr = TRANSFER_WRS,
			.max_send_sge = TRANSFER_SGES,
			.max_recv_sge = TRANSFER_SGES,
			.max_inline_data = TRANSFER_INLINE,
		},
	};

	end->id = id;
	end->channel = id->channel;
	end->data = aligned_alloc(4096, TRANSFER_SIZE);
	assert_non_null(end->data);
	memset(end->data, CLEAN, TRANSFER_SIZE);
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	assert_true(attr.cap.max_inline_data >= TRANSFER_INLINE);
	end->mr = ibv_reg_mr(id->pd, end->data, TRANSFER_SIZE, access);
	assert_non_null(end->mr);
}

static void end_close(struct end *end)
{
	assert_int_equal(rdma_dereg_mr(end->mr), 0);
	free(end->data);
}

void transfer_open(struct transfer *transfer, enum transport transport,
		   const struct rdma_conn_param *given)
{
	struct rdma_conn_param param = given ? *given : pair_param(NULL, 0);
	struct pair *pair = &transfer->pair;

	pair_open(pair, transport, RDMA_PS_TCP);
	pair_resolve(pair);
	end_open(&transfer->client, pair->client);
	rdma_ack_cm_event(pair_request(pair, &param));
	end_open(&transfer->server, pair->server);
	assert_int_equal(rdma_accept(pair->server, &param), 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pair_take(pair->server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
}

void transfer_close(struct transfer *transfer)
{
	end_close(&transfer->client);
	end_close(&transfer->server);
	pair_close(&transfer->pair);
}

static uint8_t byte_of(size_t i, uint8_t seed)
{
	return (uint8_t)(i * 31 + i / 251 + seed);
}

void transfer_fill(struct end *end, size_t at, size_t len, uint8_t seed)
{
	for (size_t i = 0; i < len; i++)
		end->data[at + i] = byte_of(i, seed);
}

void transfer_check(const struct end *end, size_t at, size_t len, uint8_t seed)
{
	for (size_t i = 0; i < len; i++)
		if (end->data[at + i] != byte_of(i, seed))
			fail_msg("byte %zu of %zu is %#x instead of %#x", i, len, end->data[at + i],
				 byte_of(i, seed));
}

void transfer_check_clean(const struct end *end, size_t at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (end->data[at + i] != CLEAN)
			fail_msg("byte %zu of %zu was overwritten", i, len);
}

void transfer_recv(struct end *end, uint64_t wr_id, size_t at, size_t len)
{
	assert_int_equal(rdma_post_recv(end->id, (void *)(uintptr_t)wr_id, end->data + at, len,
					end->mr), 0);
}

void transfer_send(struct end *end, uint64_t wr_id, size_t at, size_t len)
{
	assert_int_equal(rdma_post_send(end->id, (void *)(uintptr_t)wr_id, end->data + at, len,
					end->mr, IBV_SEND_SIGNALED), 0);
}

int transfer_post(struct end *end, uint64_t wr_id, enum ibv_wr_opcode opcode, size_t at, size_t len,
		  const struct end *remote, size_t remote_at)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)(end->data + at),
		.length = (uint32_t)len,
		.lkey = end->mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(0x12345678),
	};

	if (remote) {
		wr.wr.rdma.remote_addr = (uintptr_t)(remote->data + remote_at);
		wr.wr.rdma.rkey = remote->mr->rkey;
	}
	return ibv_post_send(end->id->qp, &wr, &bad);
}

static void check_wc(const struct ibv_wc *wc, const struct end *end, uint64_t wr_id,
		     enum ibv_wc_status status)
{
	if (wc->status != status || wc->wr_id != wr_id)
		fail_msg("request %llu: %s instead of request %llu: %s",
			 (unsigned long long)wc->wr_id, ibv_wc_status_str(wc->status),
			 (unsigned long long)wr_id, ibv_wc_status_str(status));
	assert_int_equal(wc->qp_num, end->id->qp->qp_num);
}

struct ibv_wc transfer_sent(struct end *end, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	errno = 0;
	if (rdma_get_send_comp(end->id, &wc) != 1)
		fail_msg("waiting for request %llu: %s", (unsigned long long)wr_id, strerror(errno));
	check_wc(&wc, end, wr_id, status);
	return wc;
}

struct ibv_wc transfer_received(struct end *end, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	errno = 0;
	if (rdma_get_recv_comp(end->id, &wc) != 1)
		fail_msg("waiting for receive %llu: %s", (unsigned long long)wr_id, strerror(errno));
	check_wc(&wc, end, wr_id, status);
	return wc;
}

void transfer_none(struct end *end)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(end->id->send_cq, 1, &wc))
		fail_msg("request %llu completed: %s", (unsigned long long)wc.wr_id,
			 ibv_wc_status_str(wc.status));
	if (ibv_poll_cq(end->id->recv_cq, 1, &wc))
		fail_msg("receive %llu completed: %s", (unsigned long long)wc.wr_id,
			 ibv_wc_status_str(wc.status));
}
