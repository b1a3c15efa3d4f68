/* SPDX-License-Identifier: BSD-2-Clause */
/* nic_pair.c - see nic_pair.h. */
#include "config.h"

#include "providers/soft/host/host.h"
#include "providers/soft/nic/objects.h"
#include "nic_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/ib/rules.h"
#include "providers/iwarp/rules.h"
#include "providers/roce/rules.h"
#include "providers/soft/nic/rc_internal.h"
#include "host_services.h"

struct pair_side a, b;
bool (*pair_filter)(const struct sim_packet *packet);
unsigned int pair_closed_by_program, pair_closed_by_nic;

static char last_log[512], last_warning[512];
unsigned int pair_warnings;

/* --- The host. --- */

static void stream_closed(struct sim_id *id, bool by_program)
{
	(void)id;
	if (by_program)
		pair_closed_by_program++;
	else
		pair_closed_by_nic++;
}

static bool log_enabled(enum polycm_log_level level)
{
	return level <= POLYCM_LOG_DEBUG;
}

__attribute__((format(printf, 3, 4)))
static void log_line(enum polycm_log_level level, const struct polycm_id *id, const char *format,
		     ...)
{
	va_list args;

	(void)id;
	va_start(args, format);
	vsnprintf(last_log, sizeof(last_log), format, args);
	va_end(args);
	if (level != POLYCM_LOG_WARN)
		return;
	memcpy(last_warning, last_log, sizeof(last_warning));
	pair_warnings++;
}

const char *pair_log(void)
{
	return last_log;
}

bool pair_warned(const char *text)
{
	bool warned = strstr(last_warning, text) != NULL;

	last_warning[0] = '\0';
	return warned;
}

void pair_refused(const struct pair_refusal *refusal)
{
	unsigned int before = pair_warnings;
	int err;

	errno = 0;
	err = refusal->call();
	if (err != refusal->err || pair_warnings != before + 1 ||
	    !strstr(last_log, refusal->name) || !strstr(last_log, " refused") ||
	    !strstr(last_log, refusal->text) || !strstr(last_log, strerror(err)))
		fail_msg("%s, \"%s\": %s, %u lines, the last: %s", refusal->name, refusal->text,
			 strerror(err), pair_warnings - before, last_log);
}

static const char *setting(const char *name)
{
	(void)name;
	return NULL;
}

static const struct polycm_core core = {
	.why = no_words,
	.size = sizeof(core),
	.log_enabled = log_enabled,
	.log = log_line,
	.setting = setting,
};

/* --- Packets. --- */

void pair_deliver(const struct sim_packet *packet)
{
	if (packet->type == SIM_PACKET_RC)
		rc_receive(packet);
	else
		ud_receive(packet);
}

static void filtered(const struct sim_packet *packet)
{
	if (!pair_filter || pair_filter(packet))
		pair_deliver(packet);
}

/* --- Opening and closing. --- */

static void open_side(struct pair_side *side, const struct polycm_transport *rules,
		      const char *node, const char *device, const char *address)
{
	memset(side, 0, sizeof(*side));
	sim_lock();
	assert_int_equal(sim_node_add(node, &side->node), 0);
	assert_int_equal(sim_device_add(side->node, device, rules, &side->device), 0);
	assert_int_equal(sim_device_add_address(side->device, NULL, address), 0);
	sim_unlock();
	side->context = sim_verbs.open_device(&side->device->vdev.device);
	assert_non_null(side->context);
	side->pd = sim_verbs.alloc_pd(side->context);
	assert_non_null(side->pd);
	side->channel = sim_verbs.create_comp_channel(side->context);
	assert_non_null(side->channel);
	side->cq = sim_verbs.create_cq(side->context, 256, side, side->channel, 0);
	assert_non_null(side->cq);
	side->buf = aligned_alloc(4096, PAIR_BUF);
	assert_non_null(side->buf);
	memset(side->buf, 0, PAIR_BUF);
	side->mr = sim_verbs.reg_mr(side->pd, side->buf, PAIR_BUF, (uintptr_t)side->buf, PAIR_ALL);
	assert_non_null(side->mr);
}

void pair_open(enum pair_transport transport)
{
	static const struct polycm_transport *const rules[] = {
		&roce_transport, &ib_transport, &iwarp_transport,
	};

	sim_core = &core;
	sim_time = &clock_services;
	last_log[0] = last_warning[0] = 0;
	pair_filter = NULL;
	pair_closed_by_program = pair_closed_by_nic = 0;
	assert_int_equal(sim_engine_start(SIM_CLOCK_VIRTUAL, 7), 0);
	sim_lock();
	sim_nic_start();
	sim_qp_stream_set_callbacks(stream_closed, NULL);
	sim_link_set_handler(SIM_PACKET_RC, filtered);
	sim_link_set_handler(SIM_PACKET_UD, filtered);
	assert_int_equal(sim_fabric_begin(), 0);
	sim_unlock();
	open_side(&a, rules[transport], "a", "sim0", "10.0.0.1/24");
	open_side(&b, rules[transport], "b", "sim1", "10.0.0.2/24");
}

static void close_side(struct pair_side *side)
{
	if (side->qp)
		assert_int_equal(sim_verbs.destroy_qp(side->qp), 0);
	if (side->srq)
		assert_int_equal(sim_verbs.destroy_srq(side->srq), 0);
	assert_int_equal(sim_verbs.dereg_mr(side->mr), 0);
	free(side->buf);
	assert_int_equal(sim_verbs.destroy_cq(side->cq), 0);
	assert_int_equal(sim_verbs.destroy_comp_channel(side->channel), 0);
	assert_int_equal(sim_verbs.dealloc_pd(side->pd), 0);
	assert_int_equal(sim_verbs.close_device(side->context), 0);
}

static void close_fabric(void)
{
	static const struct polycm_sim_counts none;
	struct polycm_sim_counts counts;

	sim_lock();
	sim_nic_counts(&counts);
	assert_memory_equal(&counts, &none, sizeof(counts));
	sim_nic_stop();
	sim_fabric_close();
	sim_unlock();
	sim_engine_stop();
}

void pair_close(void)
{
	close_side(&a);
	close_side(&b);
	close_fabric();
}

void pair_abandon(void)
{
	assert_int_equal(sim_verbs.close_device(a.context), 0);
	assert_int_equal(sim_verbs.close_device(b.context), 0);
	free(a.buf);
	free(b.buf);
	close_fabric();
}

int open_roce(void **state)
{
	(void)state;
	pair_open(PAIR_ROCE);
	return 0;
}

int close_pair(void **state)
{
	(void)state;
	pair_close();
	return 0;
}

/* --- Queue pairs. --- */

struct pair_conn pair_defaults(void)
{
	return (struct pair_conn) {
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			  IBV_ACCESS_REMOTE_ATOMIC,
		.sq_sig_all = true,
		.cap = {
			.max_send_wr = 64,
			.max_recv_wr = 64,
			.max_send_sge = 4,
			.max_recv_sge = 4,
			.max_inline_data = 64,
		},
	};
}

struct ibv_qp *pair_qp(struct pair_side *side, const struct pair_conn *conn)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = side->cq,
		.recv_cq = side->cq,
		.srq = side->srq,
		.cap = conn->cap,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = conn->sq_sig_all,
		.qp_context = side,
	};
	struct ibv_qp *qp = sim_verbs.create_qp(side->pd, &attr);

	assert_non_null(qp);
	return qp;
}

int pair_modify(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return sim_verbs.modify_qp(qp, &attr, IBV_QP_STATE);
}

int pair_to_init(struct pair_side *side, struct ibv_qp *qp, const struct pair_conn *conn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = conn->access,
	};

	(void)side;
	return sim_verbs.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				   IBV_QP_ACCESS_FLAGS);
}

int pair_to_rtr(struct pair_side *side, struct ibv_qp *qp, struct pair_side *peer,
		uint32_t peer_qpn, const struct pair_conn *conn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.ah_attr = { .port_num = 1 },
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer_qpn,
		.rq_psn = peer == &a ? 0xfffffe : 0x123456,	/* of a: wraps around soon */
		.max_dest_rd_atomic = conn->max_dest_rd_atomic,
		.min_rnr_timer = conn->min_rnr_timer,
	};

	(void)side;
	if (peer->device->rules->link_layer == IBV_LINK_LAYER_INFINIBAND) {
		attr.ah_attr.dlid = peer->device->ports[0].lid;
	} else {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.dgid = peer->device->ports[0].gids[3].gid;
		attr.ah_attr.grh.sgid_index = 3;
	}
	return sim_verbs.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER);
}

int pair_to_rts(struct ibv_qp *qp, const struct pair_conn *conn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = conn->timeout,
		.retry_cnt = conn->retry_cnt,
		.rnr_retry = conn->rnr_retry,
		.sq_psn = qp->context == a.context ? 0xfffffe : 0x123456,
		.max_rd_atomic = conn->max_rd_atomic,
	};

	return sim_verbs.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void connect_stream(struct pair_side *side, struct pair_side *peer,
			   const struct pair_conn *conn)
{
	struct sim_qp *qp;

	sim_lock();
	qp = sim_qp_find(side->device, side->qp->qp_num);
	assert_non_null(qp);
	assert_int_equal(sim_qp_stream_connect(qp, &peer->device->ports[0], peer->qp->qp_num,
					       conn->max_dest_rd_atomic, conn->max_rd_atomic), 0);
	sim_qp_stream_set_owner(qp, (struct sim_id *)side);
	sim_unlock();
}

void pair_connect(const struct pair_conn *conn)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 64, .max_sge = 4 } };

	if (conn->srq) {
		b.srq = sim_verbs.create_srq(b.pd, &srq);
		assert_non_null(b.srq);
	}
	a.qp = pair_qp(&a, conn);
	b.qp = pair_qp(&b, conn);
	assert_int_equal(pair_to_init(&a, a.qp, conn), 0);
	assert_int_equal(pair_to_init(&b, b.qp, conn), 0);
	if (a.device->rules->protocol == POLYCM_PROTO_MPA) {
		connect_stream(&a, &b, conn);
		connect_stream(&b, &a, conn);
		return;
	}
	assert_int_equal(pair_to_rtr(&a, a.qp, &b, b.qp->qp_num, conn), 0);
	assert_int_equal(pair_to_rtr(&b, b.qp, &a, a.qp->qp_num, conn), 0);
	assert_int_equal(pair_to_rts(a.qp, conn), 0);
	assert_int_equal(pair_to_rts(b.qp, conn), 0);
}

void pair_ud_to_rts(struct ibv_qp *qp, uint32_t qkey)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey };

	assert_int_equal(sim_verbs.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					     IBV_QP_PORT | IBV_QP_QKEY), 0);
	assert_int_equal(pair_modify(qp, IBV_QPS_RTR), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(sim_verbs.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

struct ibv_qp *pair_ud_qp(struct pair_side *side, uint32_t qkey)
{
	struct ibv_qp_init_attr init = {
		.send_cq = side->cq, .recv_cq = side->cq, .srq = side->srq,
		.qp_type = IBV_QPT_UD, .sq_sig_all = 1,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 2, .max_recv_sge = 2,
			 .max_inline_data = 32 },
	};
	struct ibv_qp *qp = sim_verbs.create_qp(side->pd, &init);

	assert_non_null(qp);
	pair_ud_to_rts(qp, qkey);
	return qp;
}

void pair_disconnect(void)
{
	assert_int_equal(sim_verbs.destroy_qp(a.qp), 0);
	assert_int_equal(sim_verbs.destroy_qp(b.qp), 0);
	a.qp = b.qp = NULL;
	if (b.srq)
		assert_int_equal(sim_verbs.destroy_srq(b.srq), 0);
	b.srq = NULL;
}

enum ibv_qp_state pair_state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(sim_verbs.query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

/* --- Requests and completions. --- */

struct ibv_sge pair_sge(const struct pair_side *side, size_t offset, size_t len)
{
	return (struct ibv_sge) {
		.addr = (uintptr_t)side->buf + offset,
		.length = (uint32_t)len,
		.lkey = side->mr->lkey,
	};
}

int pair_recv(struct pair_side *side, uint64_t wr_id, size_t offset, size_t len)
{
	struct ibv_sge sge = pair_sge(side, offset, len);
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return side->srq ? ibv_post_srq_recv(side->srq, &wr, &bad)
			 : ibv_post_recv(side->qp, &wr, &bad);
}

int pair_post(struct pair_side *side, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(side->qp, wr, &bad);
}

int pair_send(struct pair_side *side, uint64_t wr_id, size_t offset, size_t len)
{
	return pair_rdma(side, IBV_WR_SEND, wr_id, offset, len, 0);
}

int pair_rdma(struct pair_side *side, enum ibv_wr_opcode opcode, uint64_t wr_id, size_t offset,
	      size_t len, size_t remote)
{
	struct pair_side *peer = side == &a ? &b : &a;
	struct ibv_sge sge = pair_sge(side, offset, len);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.wr.rdma = { .remote_addr = (uintptr_t)peer->buf + remote, .rkey = peer->mr->rkey },
	};

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.rkey = peer->mr->rkey;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.swap = 2;
	}
	return pair_post(side, &wr);
}

struct ibv_wc pair_expect(struct pair_side *side, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(side->cq, 1, &wc))
		if (sim_idle(NULL) < 0)
			fail_msg("no completion instead of request %u, status %d",
				 (unsigned int)wr_id, (int)status);
	if (wc.wr_id != wr_id || wc.status != status)
		fail_msg("request %u, status %d instead of %u, %d; log: %s", (unsigned int)wc.wr_id,
			 (int)wc.status, (unsigned int)wr_id, (int)status, last_log);
	return wc;
}

void pair_none(struct pair_side *side, uint64_t ns)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(side->cq, 1, &wc), 0);
	assert_int_equal(sim_advance(ns), 0);
	assert_int_equal(ibv_poll_cq(side->cq, 1, &wc), 0);
}

static bool async_pending(struct pair_side *side)
{
	struct pollfd fd = { .fd = side->context->async_fd, .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

void pair_async(struct pair_side *side, enum ibv_event_type type)
{
	struct ibv_async_event event;

	assert_true(async_pending(side));
	assert_int_equal(sim_verbs.get_async_event(side->context, &event), 0);
	assert_int_equal(event.event_type, type);
	sim_verbs.ack_async_event(&event);
}

void pair_no_async(struct pair_side *side)
{
	assert_false(async_pending(side));
}

static uint8_t byte_at(size_t offset, uint8_t seed)
{
	return (uint8_t)(offset * 7 + (offset >> 8) * 13 + seed);
}

void pair_fill(struct pair_side *side, size_t offset, size_t len, uint8_t seed)
{
	for (size_t i = 0; i < len; i++)
		side->buf[offset + i] = byte_at(i, seed);
}

void pair_check(const struct pair_side *side, size_t offset, size_t len, uint8_t seed)
{
	for (size_t i = 0; i < len; i++)
		if (side->buf[offset + i] != byte_at(i, seed))
			fail_msg("byte %zu of %zu is wrong", i, len);
}
