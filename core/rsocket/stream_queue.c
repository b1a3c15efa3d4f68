/* SPDX-License-Identifier: BSD-2-Clause */
/* rsocket/stream_queue.c - work requests and completions of a stream, and its credits. */
#include "config.h"
#include "stream.h"

#include <byteswap.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "core/base/log.h"

#define BATCH		16
#define MESSAGE_SIZE	sizeof(uint32_t)

static uint64_t wr_id_of(enum stream_wr wr, uint32_t value)
{
	return (uint64_t)wr << 32 | value;
}

/* --- posting --- */

static uint32_t *message_at(const struct stream *s, unsigned int index)
{
	uint8_t *first = s->receive_buffer + 2 * (size_t)s->half;

	/* What is behind an odd half is aligned all the same. */
	first += -(uintptr_t)first & (MESSAGE_SIZE - 1);
	return (uint32_t *)(void *)first + index;
}

int stream_post_receive(struct stream *s, unsigned int index)
{
	struct ibv_sge sge = { .length = MESSAGE_SIZE, .lkey = s->receive_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id_of(WR_RECEIVE, index) }, *bad;

	if (s->messages) {
		sge.addr = stream_address(s, s->receive_mr, message_at(s, index));
		wr.sg_list = &sge;
		wr.num_sge = 1;
	}
	return -ibv_post_recv(s->id->qp, &wr, &bad);
}

/* Immediate data that iWARP lacks, behind the write that it belongs to. */
static int post_as_send(struct stream *s, enum stream_wr kind, uint32_t message)
{
	struct ibv_sge sge = { .addr = (uintptr_t)&message, .length = MESSAGE_SIZE };
	struct ibv_send_wr wr = {
		.wr_id = wr_id_of(kind, 0),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE,
	}, *bad;

	return -ibv_post_send(s->id->qp, &wr, &bad);
}

static int post_write(struct stream *s, struct ibv_send_wr *wr, const struct rsocket_range *to,
		      const uint32_t *message)
{
	struct ibv_send_wr *bad;

	wr->opcode = IBV_WR_RDMA_WRITE;
	if (to) {
		wr->wr.rdma.remote_addr = to->addr;
		wr->wr.rdma.rkey = to->key;
	}
	if (message && !s->messages) {
		wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr->imm_data = htobe32(*message);
	}
	return -ibv_post_send(s->id->qp, wr, &bad);
}

int stream_post(struct stream *s, enum stream_wr kind, struct ibv_send_wr *wr,
		const struct rsocket_range *to, const uint32_t *message)
{
	bool separate = message && s->messages;
	int err = 0;

	wr->wr_id |= wr_id_of(kind, 0);
	if (to || !separate) {
		*(kind == WR_DATA ? &s->sends_free : &s->controls_free) -= 1;
		err = post_write(s, wr, to, message);
	}
	if (!err && separate) {
		*(kind == WR_DATA ? &s->sends_free : &s->controls_free) -= 1;
		err = post_as_send(s, kind, *message);
	}
	if (err)
		stream_fail(s, err);
	return err;
}

bool stream_has_controls(const struct stream *s, unsigned int num)
{
	return !s->silent && s->controls_free >= num;
}

int stream_post_control(struct stream *s, enum rsocket_control what)
{
	uint32_t message = rsocket_message(RSOCKET_CONTROL, what);
	struct ibv_send_wr wr = { .num_sge = 0 };

	if (what == RSOCKET_KEEPALIVE)
		return stream_post(s, WR_CONTROL, &wr, NULL, NULL);
	return stream_post(s, what == RSOCKET_DISCONNECT ? WR_DISCONNECT : WR_CONTROL, &wr, NULL,
			   &message);
}

/*
 * They lie in the send buffer in any case: what is sent inline may be written over as
 * soon as it is posted.
 */
int stream_post_bytes(struct stream *s, const struct msghdr *msg, size_t at, uint32_t len,
		      const struct rsocket_range *to, const uint32_t *message)
{
	uint32_t size = s->rs.sizes.send_buffer, first = size - s->send_at;
	struct ibv_send_wr wr = { .num_sge = 0 };
	struct ibv_sge sges[2];

	for (uint32_t done = 0, part; done < len; done += part) {
		uint8_t *start = s->send_buffer + (done ? 0 : s->send_at);

		part = done || len < first ? len - done : first;
		rsocket_gather(msg, at + done, start, part);
		sges[wr.num_sge++] = (struct ibv_sge){
			.addr = (uintptr_t)start,
			.length = part,
			.lkey = s->send_mr->lkey,
		};
	}
	wr.sg_list = sges;
	if (len <= s->rs.sizes.inline_data) {
		wr.send_flags = IBV_SEND_INLINE;
	} else {
		wr.wr_id = len;
		s->send_free -= len;
		s->send_at = (uint32_t)(((uint64_t)s->send_at + len) % size);
	}
	return stream_post(s, WR_DATA, &wr, to, message);
}

/* --- what the peer may send --- */

static void swap_range(struct rsocket_range *range)
{
	range->addr = bswap_64(range->addr);
	range->key = bswap_32(range->key);
	range->length = bswap_32(range->length);
}

/* The half that was read is the peer's again: into its table, with the credits. */
static void grant_buffer(struct stream *s, uint32_t message)
{
	struct rsocket_range to = {
		.addr = s->peer_table.addr + s->peer_entry * sizeof(to),
		.key = s->peer_table.key,
	};
	struct rsocket_range *slot = (struct rsocket_range *)(void *)
		(s->send_buffer + s->rs.sizes.send_buffer) + s->controls++ % STREAM_CONTROLS;
	struct ibv_sge sge = {
		.addr = (uintptr_t)slot,
		.length = sizeof(*slot),
		.lkey = s->send_mr->lkey,
	};
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1 };

	*slot = (struct rsocket_range){
		.addr = stream_address(s, s->receive_mr, s->receive_buffer + s->grant_at),
		.key = s->receive_mr->rkey,
		.length = s->half,
	};
	if (s->swap)
		swap_range(slot);
	if (sizeof(*slot) <= s->rs.sizes.inline_data)
		wr.send_flags = IBV_SEND_INLINE;
	s->freed -= s->half;
	s->granted += s->half;
	s->grant_at = s->half - s->grant_at;
	s->peer_entry = (s->peer_entry + 1) % s->peer_table.length;
	(void)stream_post(s, WR_CONTROL, &wr, &to, &message);
}

void stream_grant(struct stream *s)
{
	uint16_t taken = (uint16_t)(s->received - s->received_at_grant);
	bool buffer = s->freed >= s->half;
	struct ibv_send_wr wr = { .num_sge = 0 };
	uint32_t message;

	if (s->state != STREAM_CONNECTED || (!buffer && taken < s->rs.sizes.receives / 2) ||
	    !stream_has_controls(s, buffer && s->messages ? 2 : 1))
		return;
	message = rsocket_message(RSOCKET_GRANT, (uint32_t)s->received + s->rs.sizes.receives);
	s->received_at_grant = s->received;
	if (buffer)
		grant_buffer(s, message);
	else
		(void)stream_post(s, WR_CONTROL, &wr, NULL, &message);
}

/* --- what came --- */

static void take_data(struct stream *s, uint32_t len)
{
	if (len > s->granted) {
		polycm_log(POLYCM_LOG_WARN, "rsocket %d: the peer says that it wrote %u bytes where "
			   "it may write %u: the connection is given up", s->rs.fd, len, s->granted);
		stream_fail(s, -EPROTO);
		return;
	}
	s->granted -= len;
	s->unread += len;
	s->received++;
}

static void take_control(struct stream *s, uint32_t what)
{
	if (s->state != STREAM_CONNECTED)
		return;
	if (what == RSOCKET_SHUTDOWN && s->can_write)
		s->can_read = false;
	else if (what == RSOCKET_SHUTDOWN || what == RSOCKET_DISCONNECT)
		s->state = STREAM_ENDED;
}

static void take_message(struct stream *s, uint32_t message)
{
	uint32_t value = message & RSOCKET_VALUE_MASK;

	switch (message >> 29) {
	case RSOCKET_DATA:
		take_data(s, value);
		break;
	case RSOCKET_GRANT:
		s->credits = (uint16_t)value;
		break;
	case RSOCKET_IOMAP:
		s->received++;
		break;
	case RSOCKET_CONTROL:
		take_control(s, value);
		break;
	default:
		break;
	}
}

static int errno_of(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return -ETIMEDOUT;
	case IBV_WC_WR_FLUSH_ERR:
		return -ECONNRESET;
	default:
		return -EIO;
	}
}

static void sent(struct stream *s, const struct ibv_wc *wc)
{
	enum stream_wr kind = (enum stream_wr)(wc->wr_id >> 32);

	if (kind == WR_DATA) {
		s->sends_free++;
		s->send_free += (uint32_t)wc->wr_id;
	} else {
		s->controls_free++;
	}
	if (kind == WR_DISCONNECT && s->state == STREAM_CONNECTED)
		s->state = STREAM_ENDED;
	if (wc->status != IBV_WC_SUCCESS && s->state == STREAM_CONNECTED) {
		polycm_log(POLYCM_LOG_INFO, "rsocket %d: a send ended with %s", s->rs.fd,
			   ibv_wc_status_str(wc->status));
		stream_fail(s, errno_of(wc->status));
	}
}

/* A receive that was flushed says nothing: the event or the message of the end does. */
static void received(struct stream *s, const struct ibv_wc *wc)
{
	uint32_t message;

	if (wc->status != IBV_WC_SUCCESS) {
		if (wc->status != IBV_WC_WR_FLUSH_ERR)
			stream_fail(s, errno_of(wc->status));
		return;
	}
	if (wc->wc_flags & IBV_WC_WITH_IMM) {
		message = be32toh(wc->imm_data);
	} else if (s->messages && wc->byte_len == MESSAGE_SIZE) {
		message = *message_at(s, (uint32_t)wc->wr_id);
		if (s->swap)
			message = bswap_32(message);
	} else {
		stream_fail(s, -EPROTO);
		return;
	}
	s->silent = false;
	take_message(s, message);
	if (s->state == STREAM_CONNECTED && stream_post_receive(s, (uint32_t)wc->wr_id))
		stream_fail(s, -EIO);
}

void stream_poll(struct stream *s)
{
	struct ibv_wc wcs[BATCH];
	int num;

	do {
		num = ibv_poll_cq(s->cq, BATCH, wcs);
		for (int i = 0; i < num; i++) {
			if (wcs[i].wr_id >> 32 == WR_RECEIVE)
				received(s, &wcs[i]);
			else
				sent(s, &wcs[i]);
		}
	} while (num == BATCH);
	if (num < 0)
		stream_fail(s, -EIO);
	stream_grant(s);
}

bool stream_all_sent(const struct stream *s)
{
	return s->controls_free == STREAM_CONTROLS &&
	       s->sends_free == s->rs.sizes.sends - STREAM_CONTROLS;
}

/* --- what we may send --- */

/* The peer's buffer that is written next, if it has named one. */
static bool has_target(struct stream *s)
{
	struct rsocket_range *next = &s->table->buffers[s->entry];

	if (s->target.length)
		return true;
	/* The peer writes the length last. */
	if (!__atomic_load_n(&next->length, __ATOMIC_ACQUIRE))
		return false;
	s->target = *next;
	/* It writes this entry again only after it got all that goes there. */
	__atomic_store_n(&next->length, 0, __ATOMIC_RELEASE);
	s->entry = (s->entry + 1) % RSOCKET_TABLE_BUFFERS;
	return true;
}

bool stream_can_send(struct stream *s)
{
	return !s->silent && s->sends_free >= (s->messages ? 2 : 1) &&
	       s->send_free >= RSOCKET_LOW_WATER && s->sent != s->credits && has_target(s);
}
