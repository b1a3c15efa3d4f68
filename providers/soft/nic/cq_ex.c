/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/cq_ex.c - CQs of ibv_create_cq_ex(): the same queue, read through a
 * cursor.  The cursor's mutex is held from a successful start to the end of
 * polling, as programs expect that may poll in several threads.
 */
#include "config.h"

#include <stdlib.h>
#include <time.h>

#include "cq.h"
#include "device.h"
#include "pd.h"
#include "refuse.h"
#include "verbs.h"

#define TIMES (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

struct nic_cq_cursor {
	pthread_mutex_t polling_lock;
	struct ibv_wc wc;
	uint64_t time;			/* of wc, on the engine's clock; if the CQ has times */
	uint64_t epoch;			/* what CLOCK_REALTIME is ahead of the engine's clock */
};

static struct nic_cq_cursor *cursor(struct ibv_cq_ex *ex)
{
	return nic_cq(ibv_cq_ex_to_cq(ex))->cursor;
}

static int ex_next(struct ibv_cq_ex *ex)
{
	struct sim_cq *cq = nic_cq(ibv_cq_ex_to_cq(ex));
	struct nic_cq_cursor *at = cq->cursor;

	if (nic_cq_poll(cq, 1, &at->wc, cq->times ? &at->time : NULL) != 1)
		return ENOENT;
	ex->wr_id = at->wc.wr_id;
	ex->status = at->wc.status;
	return 0;
}

static int ex_start(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	int err;

	if (attr->comp_mask)
		return nic_refuse(nic_device(ex->context), "ibv_start_poll", EINVAL,
				  "comp_mask is 0x%x, no attribute is known", attr->comp_mask);
	pthread_mutex_lock(&cursor(ex)->polling_lock);
	err = ex_next(ex);
	if (err)
		pthread_mutex_unlock(&cursor(ex)->polling_lock);
	return err;
}

static void ex_end(struct ibv_cq_ex *ex)
{
	pthread_mutex_unlock(&cursor(ex)->polling_lock);
}

static enum ibv_wc_opcode ex_opcode(struct ibv_cq_ex *ex) { return cursor(ex)->wc.opcode; }
static uint32_t ex_vendor_err(struct ibv_cq_ex *ex) { return cursor(ex)->wc.vendor_err; }
static uint32_t ex_byte_len(struct ibv_cq_ex *ex) { return cursor(ex)->wc.byte_len; }
static __be32 ex_imm_data(struct ibv_cq_ex *ex) { return cursor(ex)->wc.imm_data; }
static uint32_t ex_qp_num(struct ibv_cq_ex *ex) { return cursor(ex)->wc.qp_num; }
static uint32_t ex_src_qp(struct ibv_cq_ex *ex) { return cursor(ex)->wc.src_qp; }
static unsigned int ex_wc_flags(struct ibv_cq_ex *ex) { return cursor(ex)->wc.wc_flags; }
static uint32_t ex_slid(struct ibv_cq_ex *ex) { return cursor(ex)->wc.slid; }
static uint8_t ex_sl(struct ibv_cq_ex *ex) { return cursor(ex)->wc.sl; }
static uint8_t ex_path_bits(struct ibv_cq_ex *ex) { return cursor(ex)->wc.dlid_path_bits; }

static uint64_t ex_timestamp(struct ibv_cq_ex *ex)
{
	return nic_clock_at(nic_device(ex->context), cursor(ex)->time);
}

static uint64_t ex_wallclock(struct ibv_cq_ex *ex) { return cursor(ex)->epoch + cursor(ex)->time; }

/* The clock that the program sees, so that it can compare. */
static uint64_t epoch(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - sim_now();
}

static const struct ibv_cq_ex ex_table = {
	.start_poll = ex_start,
	.next_poll = ex_next,
	.end_poll = ex_end,
	.read_opcode = ex_opcode,
	.read_vendor_err = ex_vendor_err,
	.read_byte_len = ex_byte_len,
	.read_imm_data = ex_imm_data,
	.read_qp_num = ex_qp_num,
	.read_src_qp = ex_src_qp,
	.read_wc_flags = ex_wc_flags,
	.read_slid = ex_slid,
	.read_sl = ex_sl,
	.read_dlid_path_bits = ex_path_bits,
	.read_completion_ts = ex_timestamp,
	.read_completion_wallclock_ns = ex_wallclock,
};

static const char create_call[] = "ibv_create_cq_ex";

static int check_ex(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr)
{
	const struct sim_device *device = nic_device(context);
	const uint64_t known_wc = (uint64_t)IBV_WC_STANDARD_FLAGS | (nic_has_clock(device) ? TIMES : 0);
	const uint32_t known = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;

	if (attr->wc_flags & ~known_wc)
		return nic_refuse(device, create_call, EOPNOTSUPP, "the device has not all of "
				  "wc_flags 0x%llx", (unsigned long long)attr->wc_flags);
	if (attr->comp_mask & ~known)
		return nic_refuse(device, create_call, EOPNOTSUPP, "the simulator does not know all of "
				  "comp_mask 0x%x", attr->comp_mask);
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	    attr->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED)
		return nic_refuse(device, create_call, EOPNOTSUPP, "the simulator has not all of "
				  "flags 0x%x", attr->flags);
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
	    (!attr->parent_domain || attr->parent_domain->context != context ||
	     !nic_is_parent(attr->parent_domain)))
		return nic_refuse(device, create_call, EINVAL,
				  "its parent domain is none of the same context");
	if (attr->cqe > INT32_MAX || attr->comp_vector > INT32_MAX)
		return nic_refuse(device, create_call, EINVAL, "cqe is %u, comp_vector %u", attr->cqe,
				  attr->comp_vector);
	return 0;
}

struct ibv_cq_ex *sim_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	const struct sim_device *device = nic_device(context);
	const struct nic_cq_more more = {
		.call = create_call,
		.parent = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? attr->parent_domain : NULL,
		.times = attr->wc_flags & TIMES,
	};
	struct nic_cq_cursor *at;
	struct sim_cq *cq;
	int err = check_ex(context, attr);

	if (err)
		return nic_fail(NULL, err);
	at = nic_alloc(device, create_call, sizeof(*at));
	if (!at)
		return NULL;
	err = nic_cq_create(context, sizeof(*cq), (int)attr->cqe, attr->cq_context, attr->channel,
			    (int)attr->comp_vector, more, &cq);
	if (err)
		return nic_fail(at, err);
	pthread_mutex_init(&at->polling_lock, NULL);
	at->epoch = epoch();
	cq->cursor = at;
	memcpy((char *)&cq->pub.ex + offsetof(struct ibv_cq_ex, start_poll),
	       (const char *)&ex_table + offsetof(struct ibv_cq_ex, start_poll),
	       sizeof(ex_table) - offsetof(struct ibv_cq_ex, start_poll));
	return &cq->pub.ex;
}

void nic_cursor_free(struct nic_cq_cursor *at)
{
	if (!at)
		return;
	pthread_mutex_destroy(&at->polling_lock);
	free(at);
}
