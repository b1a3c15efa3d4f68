/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/qp_ex.c - extended QPs: the wr_*() builder calls.  Between wr_start()
 * and wr_complete() requests collect in a list that is the QP's own; its
 * mutex is held meanwhile, as adapters hold the lock of their send queue.
 */
#include "config.h"

#include <stdlib.h>

#include "providers/soft/wire/rc.h"
#include "device.h"
#include "qp.h"
#include "refuse.h"
#include "sq.h"
#include "verbs.h"

struct built_wr {
	struct built_wr *after;		/* memory for the next one, kept from batch to batch */
	struct ibv_send_wr wr;
	struct ibv_sge sge[NIC_MAX_SGE];
};

struct nic_builder {
	pthread_mutex_t posting_lock;
	struct built_wr *first;
	struct built_wr *last;		/* of this batch; NULL: it has none yet */
	int err;			/* the first that went wrong since wr_start(), */
	const char *why;
	struct ibv_send_wr nowhere;	/* takes the rest of a batch that has failed */
};

static struct nic_builder *builder(struct ibv_qp_ex *ex)
{
	return nic_qp(&ex->qp_base)->builder;
}

static void fail(struct nic_builder *b, int err, const char *why)
{
	if (b->err)
		return;
	b->err = err;
	b->why = why;
}

/* The request being built, which is to have so many scatter entries; NULL: the batch has failed. */
static struct built_wr *current(struct ibv_qp_ex *ex, size_t num_sge)
{
	struct nic_builder *b = builder(ex);

	if (!b->last)
		fail(b, EINVAL, "ibv_wr_set_*() comes after the call of an operation");
	else if (num_sge > NIC_MAX_SGE)
		fail(b, EINVAL, "a scatter list is longer than that of any QP");
	return b->err ? NULL : b->last;
}

static struct ibv_send_wr *add(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	struct nic_builder *b = builder(ex);
	struct built_wr **at = b->last ? &b->last->after : &b->first;

	if (!*at && !b->err)
		*at = calloc(1, sizeof(**at));
	if (!*at)
		fail(b, ENOMEM, "no memory");
	if (b->err)
		return &b->nowhere;
	if (b->last)
		b->last->wr.next = &(*at)->wr;
	b->last = *at;
	b->last->wr = (struct ibv_send_wr) {
		.wr_id = ex->wr_id,
		.sg_list = b->last->sge,
		.opcode = opcode,
		.send_flags = ex->wr_flags,
	};
	return &b->last->wr;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num, const struct ibv_sge *list)
{
	struct built_wr *built = current(ex, num);

	if (!built)
		return;
	for (size_t i = 0; i < num; i++)
		built->sge[i] = list[i];
	built->wr.num_sge = (int)num;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	wr_set_sge_list(ex, 1, &sge);
}

/*
 * Inline data is copied when the batch is posted: the builder calls promise
 * the buffers only until wr_complete() returns.
 */
static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *bufs)
{
	struct built_wr *built = current(ex, num_buf);

	if (!built)
		return;
	for (size_t i = 0; i < num_buf; i++) {
		if (bufs[i].length > NIC_MAX_INLINE)
			fail(builder(ex), EINVAL, "more inline data than any QP has");
		built->sge[i] = (struct ibv_sge) {
			.addr = (uintptr_t)bufs[i].addr,
			.length = (uint32_t)bufs[i].length,
		};
	}
	built->wr.num_sge = (int)num_buf;
	built->wr.send_flags |= IBV_SEND_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(ex, 1, &buf);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn,
			   uint32_t remote_qkey)
{
	struct built_wr *built = current(ex, 0);

	if (!built)
		return;
	built->wr.wr.ud.ah = ah;
	built->wr.wr.ud.remote_qpn = remote_qpn;
	built->wr.wr.ud.remote_qkey = remote_qkey;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	struct built_wr *built = current(ex, 0);

	if (built)
		built->wr.qp_type.xrc.remote_srqn = remote_srqn;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	add(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	add(ex, IBV_WR_SEND_WITH_IMM)->imm_data = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	add(ex, IBV_WR_SEND_WITH_INV)->invalidate_rkey = invalidate_rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	add(ex, IBV_WR_LOCAL_INV)->invalidate_rkey = invalidate_rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *bind_info)
{
	struct ibv_send_wr *wr = add(ex, IBV_WR_BIND_MW);

	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *bind_info;
}

static void set_remote(struct ibv_send_wr *wr, uint32_t rkey, uint64_t remote_addr)
{
	wr->wr.rdma.rkey = rkey;
	wr->wr.rdma.remote_addr = remote_addr;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	set_remote(add(ex, IBV_WR_RDMA_WRITE), rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm_data)
{
	struct ibv_send_wr *wr = add(ex, IBV_WR_RDMA_WRITE_WITH_IMM);

	set_remote(wr, rkey, remote_addr);
	wr->imm_data = imm_data;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	set_remote(add(ex, IBV_WR_RDMA_READ), rkey, remote_addr);
}

static void set_atomic(struct ibv_send_wr *wr, uint32_t rkey, uint64_t remote_addr,
		       uint64_t compare_add, uint64_t swap)
{
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	set_atomic(add(ex, IBV_WR_ATOMIC_CMP_AND_SWP), rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
				uint64_t value)
{
	set_atomic(add(ex, IBV_WR_ATOMIC_FETCH_AND_ADD), rkey, remote_addr, value, 0);
}

/* The value is the caller's until the call returns. */
static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			    const void *value)
{
	uint64_t bytes;

	memcpy(&bytes, value, sizeof(bytes));
	set_atomic(add(ex, IBV_WR_ATOMIC_WRITE), rkey, remote_addr, bytes, 0);
}

static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t length,
		     uint8_t type, uint8_t level)
{
	set_atomic(add(ex, (enum ibv_wr_opcode)SIM_WR_FLUSH), rkey, remote_addr, length,
		   type | (uint64_t)level << RC_FLUSH_LEVEL);
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct nic_builder *b = builder(ex);

	pthread_mutex_lock(&b->posting_lock);
	b->last = NULL;
	b->err = 0;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	static const char call[] = "ibv_wr_complete";
	struct nic_builder *b = builder(ex);
	struct sim_qp *qp = nic_qp(&ex->qp_base);
	uint32_t qpn = nic_qpn(qp);
	int err = b->err;

	if (err)
		(void)nic_refuse(nic_device(ex->qp_base.context), call, err, "QP 0x%06x: %s", qpn,
				 b->why);
	sim_lock();
	if (!err && b->last)
		err = nic_post_all(qp, call, &b->first->wr);
	/* With the lock, and unless the mutex went with its QP meanwhile. */
	if (nic_qp_by_number(qpn) == qp)
		pthread_mutex_unlock(&b->posting_lock);
	sim_unlock();
	return err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	pthread_mutex_unlock(&builder(ex)->posting_lock);
}

static void fill_calls(struct ibv_qp_ex *ex, uint64_t ops)
{
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_send = ops & IBV_QP_EX_WITH_SEND ? wr_send : NULL;
	ex->wr_send_imm = ops & IBV_QP_EX_WITH_SEND_WITH_IMM ? wr_send_imm : NULL;
	ex->wr_send_inv = ops & IBV_QP_EX_WITH_SEND_WITH_INV ? wr_send_inv : NULL;
	ex->wr_local_inv = ops & IBV_QP_EX_WITH_LOCAL_INV ? wr_local_inv : NULL;
	ex->wr_bind_mw = ops & IBV_QP_EX_WITH_BIND_MW ? wr_bind_mw : NULL;
	ex->wr_rdma_write = ops & IBV_QP_EX_WITH_RDMA_WRITE ? wr_rdma_write : NULL;
	ex->wr_rdma_write_imm = ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM ? wr_rdma_write_imm : NULL;
	ex->wr_rdma_read = ops & IBV_QP_EX_WITH_RDMA_READ ? wr_rdma_read : NULL;
	ex->wr_atomic_cmp_swp = ops & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP ? wr_atomic_cmp_swp : NULL;
	ex->wr_atomic_write = ops & IBV_QP_EX_WITH_ATOMIC_WRITE ? wr_atomic_write : NULL;
	nic_qp(&ex->qp_base)->pub.newest.wr_flush = ops & SIM_QP_EX_WITH_FLUSH ? wr_flush : NULL;
	ex->wr_atomic_fetch_add =
		ops & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD ? wr_atomic_fetch_add : NULL;
}

/* Flags of operations are bits of the opcodes, but for the newest two. */
static bool ops_supported(const struct sim_device *device, enum ibv_qp_type type, uint64_t ops)
{
	if ((ops & SIM_QP_EX_WITH_FLUSH && !nic_has_opcode(device, type, SIM_WR_FLUSH)) ||
	    (ops & IBV_QP_EX_WITH_ATOMIC_WRITE && !nic_has_opcode(device, type, IBV_WR_ATOMIC_WRITE)))
		return false;
	ops &= ~(uint64_t)(SIM_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE);
	for (unsigned int opcode = 0; opcode < 64; opcode++)
		if (ops >> opcode & 1 && !nic_has_opcode(device, type, opcode))
			return false;
	return true;
}
_Static_assert(IBV_QP_EX_WITH_SEND == 1 << IBV_WR_SEND &&
	       IBV_QP_EX_WITH_SEND_WITH_INV == 1 << IBV_WR_SEND_WITH_INV, "one numbering");

static const char create_call[] = "ibv_create_qp_ex";

static int check_ex(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	const struct sim_device *device = nic_device(context);
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
			       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_XRCD;
	bool receives = attr->qp_type == IBV_QPT_XRC_RECV;

	if (attr->comp_mask & ~known ||
	    (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags))
		return nic_refuse(device, create_call, EOPNOTSUPP,
				  "the simulator does not know all of comp_mask 0x%x, create_flags 0x%x",
				  attr->comp_mask,
				  attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ?
				  attr->create_flags : 0);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD && !receives)
		return nic_refuse(device, create_call, EOPNOTSUPP,
				  "only a QP of type XRC_RECV has an XRC domain");
	if (receives && (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd ||
			 attr->xrcd->context != context))
		return nic_refuse(device, create_call, EINVAL,
				  "it needs an XRC domain of the same context");
	if (!receives && (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || attr->pd->context != context))
		return nic_refuse(device, create_call, EINVAL, "it needs a PD of the same context");
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS &&
	    !ops_supported(device, attr->qp_type, attr->send_ops_flags))
		return nic_refuse(device, create_call, EOPNOTSUPP,
				  "the QP has not all of send_ops_flags 0x%llx",
				  (unsigned long long)attr->send_ops_flags);
	return 0;
}

void nic_builder_free(struct nic_builder *b)
{
	if (!b)
		return;
	for (struct built_wr *wr = b->first, *after; wr; wr = after) {
		after = wr->after;
		free(wr);
	}
	pthread_mutex_destroy(&b->posting_lock);
	free(b);
}

struct ibv_qp *sim_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	/* The extended struct begins with the members of the plain one. */
	struct ibv_qp_init_attr *plain = (struct ibv_qp_init_attr *)attr;
	bool builds = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	struct nic_builder *b = NULL;
	size_t size = NIC_QP_SIZE;
	struct sim_qp *qp;
	int err = check_ex(context, attr);

	if (err)
		return nic_fail(NULL, err);
	if (attr->qp_type == IBV_QPT_XRC_RECV) {
		/* What it receives belongs to the PD of an SRQ. */
		err = nic_qp_create(context, create_call, NULL, attr->xrcd, NIC_QP_SIZE, plain,
				    &qp);
		return err ? nic_fail(NULL, err) : &qp->pub.qp;
	}
	if (builds) {
		size = sizeof(*qp);
		b = nic_alloc(nic_device(context), create_call, sizeof(*b));
		if (!b)
			return NULL;
	}
	err = nic_qp_create(context, create_call, attr->pd, NULL, size, plain, &qp);
	if (err)
		return nic_fail(b, err);
	if (!builds)
		return &qp->pub.qp;
	pthread_mutex_init(&b->posting_lock, NULL);
	qp->builder = b;
	fill_calls(&qp->pub.ex, attr->send_ops_flags);
	return &qp->pub.qp;
}

struct ibv_qp_ex *sim_qp_to_qp_ex(struct ibv_qp *ibqp)
{
	struct sim_qp *qp = nic_qp(ibqp);

	return qp->builder ? &qp->pub.ex : NULL;
}
