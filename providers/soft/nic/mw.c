/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/mw.c - memory windows: keys to a part of a region that are bound and
 * invalidated through send queues (IBTA vol. 1, 10.6.7).
 *
 * All QPs of its protection domain can use a window of type 1.  One of type 2
 * belongs to the QP that it was bound through.  It must be invalidated, by this
 * side or by the peer, before it is bound again.
 */
#include "config.h"

#include <stdlib.h>

#include "mr.h"
#include "refuse.h"
#include "sq.h"
#include "verbs.h"

#define OWN_BITS 0xffu		/* of a key: the program's choice */
/* Windows have no local write, but programs set it. */
#define KNOWN_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		      IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_OPTIONAL_RANGE)

static struct sim_mw *mw_of(struct ibv_mw *mw)
{
	return nic_container(mw, struct sim_mw, pub);
}

struct ibv_mw *sim_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	static const char call[] = "ibv_alloc_mw";
	const struct sim_device *device = nic_device(pd->context);
	struct sim_mw *mw;
	int err;

	static const unsigned int flags[] = {
		[IBV_MW_TYPE_1] = IBV_DEVICE_MEM_WINDOW,
		[IBV_MW_TYPE_2] = IBV_DEVICE_MEM_WINDOW_TYPE_2B,
	};

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return nic_fail(NULL, nic_refuse(device, call, EINVAL, "%d is no type of window",
						 (int)type));
	if (!(device->attr.device_cap_flags & flags[type]))
		return nic_fail(NULL, nic_refuse(device, call, EOPNOTSUPP,
						 "the device has no memory windows of type %d",
						 (int)type));
	mw = nic_alloc(device, call, sizeof(*mw));
	if (!mw)
		return NULL;
	mw->pub.context = pd->context;
	mw->pub.pd = pd;
	mw->pub.type = type;

	sim_lock();
	err = nic_key_reserve(device, call);
	if (!err)
		err = nic_add(pd->context, call, NIC_MW, &mw->node, pd);
	if (!err)
		mw->pub.rkey = mw->key = nic_key_take(NULL, mw, &mw->pub.handle);
	sim_unlock();
	return err ? nic_fail(mw, err) : &mw->pub;
}

static void unbind(struct sim_mw *mw)
{
	if (mw->mr)
		mw->mr->windows--;
	mw->mr = NULL;
	mw->qp = NULL;
}

void nic_mw_free(struct sim_mw *mw)
{
	unbind(mw);
	nic_key_drop(mw->pub.handle);
	nic_remove(mw->pub.context, NIC_MW, &mw->node, mw->pub.pd);
	free(mw);
}

int sim_dealloc_mw(struct ibv_mw *mw)
{
	sim_lock();
	nic_mw_free(mw_of(mw));
	sim_unlock();
	return 0;
}

void nic_mw_unbind_all(const struct sim_qp *qp)
{
	struct sim_mw *mw;

	nic_list_each(mw, &nic_context(qp->pub.qp.context)->objects[NIC_MW], node)
		if (mw->qp == qp)
			unbind(mw);
}

/* --- Binding and invalidating, when the request's turn has come. --- */

static const char *bind_error(const struct sim_qp *qp, const struct sim_mw *mw,
			      const struct sim_mr *mr, const struct nic_swqe *wqe)
{
	const unsigned int writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	uint64_t addr = wqe->remote_addr, length = wqe->bind_length;

	if (!mw)
		return "the window is gone";
	if (nic_protection(mw->pub.pd) != qp->pd)
		return "the window is of another protection domain";
	if ((wqe->rkey ^ mw->key) & ~OWN_BITS)
		return "the new key is not one of the window's";
	if (wqe->bind_access & ~(unsigned int)KNOWN_ACCESS)
		return "there is no such access";
	if (mw->pub.type == IBV_MW_TYPE_1 && wqe->bind_access & IBV_ACCESS_ZERO_BASED)
		return "only windows of type 2 are zero based";
	if (mw->pub.type == IBV_MW_TYPE_2 && mw->mr)
		return "the window is bound, and was not invalidated";
	if (!length)
		return mw->pub.type == IBV_MW_TYPE_2 ? "it has no length" : NULL;
	if (!mr)
		return "there is no such region";
	if (nic_protection(mr->pub.pd) != nic_protection(mw->pub.pd))
		return "the region is of another protection domain";
	if (mr->access & IBV_ACCESS_ZERO_BASED)
		return "the region is zero based";
	if (!(mr->access & IBV_ACCESS_MW_BIND))
		return "the region lacks the right to bind";
	if (wqe->bind_access & writes && !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return "the region lacks local write";
	if (addr < mr->iova || length > mr->pub.length || addr - mr->iova > mr->pub.length - length)
		return "the range is not within the region";
	return NULL;
}

static enum ibv_wc_status bind_window(const struct sim_qp *qp, const struct nic_swqe *wqe)
{
	struct sim_mw *mw = nic_mw_at(wqe->bind_window);
	struct sim_mr *mr = wqe->bind_lkey ? nic_mr_by_key(wqe->bind_lkey) : NULL;
	const char *why = bind_error(qp, mw, mr, wqe);

	if (why) {
		nic_set_reason("the window cannot be bound: %s", why);
		return IBV_WC_MW_BIND_ERR;
	}
	unbind(mw);
	mw->key = wqe->rkey;
	if (!wqe->bind_length)
		return IBV_WC_SUCCESS;
	mw->mr = mr;
	mw->mr->windows++;
	mw->qp = mw->pub.type == IBV_MW_TYPE_2 ? qp : NULL;
	mw->addr = wqe->remote_addr;
	mw->length = wqe->bind_length;
	mw->access = wqe->bind_access;
	return IBV_WC_SUCCESS;
}

bool nic_mw_invalidate(const struct sim_qp *qp, uint32_t key)
{
	struct sim_mw *mw = nic_mw_by_key(key);

	if (!mw || mw->pub.type != IBV_MW_TYPE_2 || mw->qp != qp)
		return false;
	unbind(mw);
	return true;
}

enum ibv_wc_status nic_mw_execute(const struct sim_qp *qp, const struct nic_swqe *wqe)
{
	if (wqe->opcode == IBV_WR_BIND_MW)
		return bind_window(qp, wqe);
	if (nic_mw_invalidate(qp, wqe->rkey))
		return IBV_WC_SUCCESS;
	nic_set_reason("key 0x%x is not that of a window bound through this QP", wqe->rkey);
	return IBV_WC_LOC_QP_OP_ERR;
}

int sim_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = { .mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = bind->bind_info },
	};
	struct ibv_send_wr *bad;
	int err = nic_post_send(nic_qp(qp), "ibv_bind_mw", &wr, &bad);

	if (err)
		errno = err;
	else
		mw->rkey = wr.bind_mw.rkey;
	return err;
}

/* --- Access through it. --- */

void *nic_mw_resolve(const struct sim_mw *mw, const struct sim_qp *qp, uint64_t addr,
		     uint64_t length, unsigned int access, const char **ret_why)
{
	uint64_t base = mw->access & IBV_ACCESS_ZERO_BASED ? 0 : mw->addr;

	if (nic_protection(mw->pub.pd) != qp->pd)
		*ret_why = "the window is of another protection domain";
	else if (!mw->mr)
		*ret_why = "the window is not bound";
	else if (mw->qp && mw->qp != qp)
		*ret_why = "the window is bound through another QP";
	else if ((mw->access & access) != access)
		*ret_why = "the window lacks that access";
	else if (addr < base || length > mw->length || addr - base > mw->length - length)
		*ret_why = "the range is not within the window";
	else {
		*ret_why = NIC_NO_MEMORY;
		return nic_mr_memory(mw->mr, mw->addr + (addr - base), length,
				     access & NIC_ACCESS_WRITES);
	}
	return NULL;
}
