/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/wr_check.c - which send requests there are, and whether a QP takes one that is posted. */
#include "config.h"

#include "providers/soft/wire/rc.h"
#include "device.h"
#include "qp.h"
#include "refuse.h"
#include "sq.h"

#define KNOWN_FLAGS (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)

#define RC (1 << IBV_QPT_RC)
#define RELIABLE (RC | 1 << IBV_QPT_XRC_SEND)
#define CONNECTED (RC | 1 << IBV_QPT_UC)
#define MOST (RELIABLE | 1 << IBV_QPT_UC)
#define ALL (MOST | 1 << IBV_QPT_UD)
#define IMM POLYCM_SVC_IMM
#define ATOMIC POLYCM_SVC_ATOMIC
#define INVALIDATE NIC_SVC_INVALIDATE
#define PLACEMENT NIC_SVC_PLACEMENT

const struct nic_opcode nic_opcodes[] = {
	[IBV_WR_SEND] = { ALL, 0, IBV_WC_SEND, RC_SEND, 0 },
	[IBV_WR_SEND_WITH_IMM] = { ALL, IMM, IBV_WC_SEND, RC_SEND, RC_F_IMM },
	[IBV_WR_SEND_WITH_INV] = { RELIABLE, INVALIDATE, IBV_WC_SEND, RC_SEND, RC_F_INVALIDATE },
	[IBV_WR_RDMA_WRITE] = { MOST, 0, IBV_WC_RDMA_WRITE, RC_WRITE, 0 },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { MOST, IMM, IBV_WC_RDMA_WRITE, RC_WRITE, RC_F_IMM },
	[IBV_WR_RDMA_READ] = { RELIABLE, 0, IBV_WC_RDMA_READ, RC_READ, 0 },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { RELIABLE, ATOMIC, IBV_WC_COMP_SWAP, RC_CMP_SWAP, 0 },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { RELIABLE, ATOMIC, IBV_WC_FETCH_ADD, RC_FETCH_ADD, 0 },
	[SIM_WR_FLUSH] = { RELIABLE, PLACEMENT, SIM_WC_FLUSH, RC_FLUSH, 0 },
	[IBV_WR_ATOMIC_WRITE] = { RELIABLE, PLACEMENT, IBV_WC_ATOMIC_WRITE, RC_ATOMIC_WRITE, 0 },
	/* These two send no packet. */
	[IBV_WR_BIND_MW] = { CONNECTED, NIC_SVC_WINDOWS, IBV_WC_BIND_MW, 0, 0 },
	[IBV_WR_LOCAL_INV] = { CONNECTED, INVALIDATE, IBV_WC_LOCAL_INV, 0, 0 },
};

bool nic_has_opcode(const struct sim_device *device, enum ibv_qp_type type, unsigned int opcode)
{
	const struct nic_opcode *row;

	if (opcode >= sizeof(nic_opcodes) / sizeof(nic_opcodes[0]) || type > IBV_QPT_XRC_RECV)
		return false;
	row = &nic_opcodes[opcode];
	return row->qp_types >> type & 1 && !(row->services & ~device->services);
}

/* One line of log; returns err. */
#define refuse(post, wr, err, format, ...)                                                         \
	nic_refuse((post)->qp->port->device, (post)->call, err, "QP 0x%06x, wr_id 0x%llx: " format,   \
		   nic_qpn((post)->qp), (unsigned long long)(wr)->wr_id, ##__VA_ARGS__)

static int check_read(const struct nic_post *post, const struct ibv_send_wr *wr)
{
	const struct sim_qp *qp = post->qp;
	int max_sge = qp->port->device->attr.max_sge_rd;

	if (nic_qp_is_iwarp(qp) && !qp->attr.max_rd_atomic)
		return refuse(post, wr, EINVAL, "a read, and the connection was made without "
			      "initiator_depth");
	if (wr->num_sge > max_sge)
		return refuse(post, wr, EINVAL, "num_sge is %d, the device reads into %d (max_sge_rd)",
			      wr->num_sge, max_sge);
	return 0;
}

static int check_inline(const struct nic_post *post, const struct ibv_send_wr *wr, uint64_t length)
{
	uint32_t max = post->qp->attr.cap.max_inline_data;

	if (wr->opcode >= IBV_WR_RDMA_READ && wr->opcode != IBV_WR_SEND_WITH_INV)
		return refuse(post, wr, EINVAL, "operation %d cannot be inline", (int)wr->opcode);
	if (length > max)
		return refuse(post, wr, EINVAL, "%llu bytes inline, the QP has max_inline_data %u",
			      (unsigned long long)length, max);
	return 0;
}

/* Has the device such a request? */
static int check_wr(const struct nic_post *post, const struct ibv_send_wr *wr, uint64_t length)
{
	const struct sim_qp *qp = post->qp;
	int err = 0;

	if (!nic_has_opcode(qp->port->device, (enum ibv_qp_type)qp->type, wr->opcode))
		return refuse(post, wr, EINVAL, "a QP of this type on this device has no operation %d",
			      (int)wr->opcode);
	if (wr->send_flags & ~(unsigned int)KNOWN_FLAGS)
		return refuse(post, wr, EINVAL, "send_flags 0x%x, known are 0x%x", wr->send_flags,
			      KNOWN_FLAGS);
	switch ((unsigned int)wr->opcode) {
	case IBV_WR_RDMA_READ:
		err = check_read(post, wr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		if (length != 8 || wr->wr.atomic.remote_addr & 7)
			return refuse(post, wr, EINVAL, "%llu bytes at 0x%llx: atomics are of 8 bytes "
				      "at an address that 8 divides", (unsigned long long)length,
				      (unsigned long long)wr->wr.atomic.remote_addr);
		break;
	case IBV_WR_BIND_MW:
		if (!wr->bind_mw.mw || length)
			return refuse(post, wr, EINVAL, "a bind needs bind_mw.mw, and has no data");
		break;
	case IBV_WR_ATOMIC_WRITE:
	case SIM_WR_FLUSH:
		/* struct ibv_send_wr has no members for these. */
		if (!post->built)
			return refuse(post, wr, EINVAL, "use ibv_wr_flush() or ibv_wr_atomic_write()");
		break;
	case IBV_WR_LOCAL_INV:
		if (length)
			return refuse(post, wr, EINVAL, "an invalidation has no data");
		break;
	default:
		if (qp->type == IBV_QPT_UD && !wr->wr.ud.ah)
			return refuse(post, wr, EINVAL, "a datagram needs an address handle (wr.ud.ah)");
		break;
	}
	if (!err && wr->send_flags & IBV_SEND_INLINE)
		err = check_inline(post, wr, length);
	return err;
}

/*
 * Programs that post until the queue is full expect ENOMEM, so only the first time of a QP is
 * a line at `warn'.
 */
__attribute__((cold))
static int refuse_full(const struct nic_post *post, const struct ibv_send_wr *wr)
{
	struct sim_qp *qp = post->qp;

	if (qp->full_logged)
		return ENOMEM;
	qp->full_logged = true;
	return refuse(post, wr, ENOMEM, "the send queue is full (max_send_wr %u): read completions, and "
		      "post again; it is not logged again for this QP", qp->attr.cap.max_send_wr);
}

int nic_check_send(const struct nic_post *post, const struct ibv_send_wr *wr, uint64_t *ret_length)
{
	const struct sim_qp *qp = post->qp;
	uint64_t length = 0;
	int err;

	/* On iWARP, SQD is a stream that is being closed. */
	if (qp->state < IBV_QPS_RTS || (qp->state == IBV_QPS_SQD && nic_qp_is_iwarp(qp)))
		return refuse(post, wr, nic_qp_is_iwarp(qp) ? ENOTCONN : EINVAL,
			      "a QP sends from RTS on, it is in %s", nic_qp_state_name(qp->state));
	if (qp->state == IBV_QPS_ERR && qp->port->device->removed)
		return refuse(post, wr, EIO, "the device was removed");
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->attr.cap.max_send_sge)
		return refuse(post, wr, EINVAL, "num_sge is %d, the QP has max_send_sge %u", wr->num_sge,
			      qp->attr.cap.max_send_sge);
	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	err = check_wr(post, wr, length);
	if (!err && qp->sq_head - qp->sq_tail >= qp->attr.cap.max_send_wr)
		err = refuse_full(post, wr);
	*ret_length = length;
	return err;
}
