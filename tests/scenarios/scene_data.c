/* SPDX-License-Identifier: BSD-2-Clause */
/* scene_data.c - owns messages: an id's memory, work requests, completions. */
#include "scene_data.h"
#include "scene_internal.h"

struct pool {
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint8_t bytes[MEMORY];
};

static struct pool *pools[16];
static unsigned int num_pools;
static struct ibv_ah *ahs[16];
static unsigned int num_ahs;

static struct pool *pool_of(struct rdma_cm_id *id)
{
	struct ibv_pd *pd = id->qp ? id->qp->pd : id->pd;
	struct pool *pool;
	unsigned int i;

	for (i = 0; i < num_pools; i++) {
		if (pools[i]->pd == pd)
			return pools[i];
	}
	if (num_pools == ARRAY_LEN(pools))
		abort();
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		abort();
	for (i = 0; i < MEMORY; i++)
		pool->bytes[i] = counting[i % sizeof(counting)];
	pool->pd = pd;
	pool->mr = ibv_reg_mr(pd, pool->bytes, MEMORY,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				      IBV_ACCESS_REMOTE_READ |
				      (id->verbs->device->transport_type == IBV_TRANSPORT_IB
					       ? IBV_ACCESS_REMOTE_ATOMIC
					       : 0));
	if (!pool->mr)
		end_failed("ibv_reg_mr");
	pools[num_pools++] = pool;
	return pool;
}

uint8_t *memory(struct rdma_cm_id *id)
{
	return pool_of(id)->bytes;
}

struct ibv_mr *memory_mr(struct rdma_cm_id *id)
{
	return pool_of(id)->mr;
}

void data_end(void)
{
	while (num_ahs)
		ibv_destroy_ah(ahs[--num_ahs]);
	while (num_pools) {
		ibv_dereg_mr(pools[--num_pools]->mr);
		free(pools[num_pools]);
	}
}

/* --- Posting. --- */

static struct ibv_sge part(struct rdma_cm_id *id, uint32_t offset, uint32_t len)
{
	struct pool *pool = pool_of(id);

	return (struct ibv_sge){(uintptr_t)pool->bytes + offset, len, pool->mr->lkey};
}

/* Some devices' libraries give a negative errno, or -1 with errno. */
static int posted(int error)
{
	if (!error)
		return 0;
	if (error != -1)
		errno = abs(error);
	return -1;
}

/* What comes goes to the second half. */
int post_recv(struct rdma_cm_id *id, uint64_t wr_id, uint32_t len)
{
	struct ibv_sge sge = part(id, MEMORY / 2, len);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = len ? 1 : 0}, *bad;

	return posted(ibv_post_recv(id->qp, &wr, &bad));
}

int post_wr(struct rdma_cm_id *id, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return posted(ibv_post_send(id->qp, wr, &bad));
}

int post_send(struct rdma_cm_id *id, uint64_t wr_id, uint32_t len)
{
	return post_op(id, wr_id, IBV_WR_SEND, len, NULL);
}

int post_op(struct rdma_cm_id *id, uint64_t wr_id, enum ibv_wr_opcode opcode, uint32_t len,
	    struct rdma_cm_id *remote)
{
	struct ibv_sge sge = part(id, 0, len);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = len ? 1 : 0,
		.opcode = opcode,
		.imm_data = htobe32(0x01020304),
	};

	if (remote &&
	    (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)) {
		wr.wr.atomic.remote_addr = (uintptr_t)memory(remote) + MEMORY / 2;
		wr.wr.atomic.rkey = memory_mr(remote)->rkey;
		wr.wr.atomic.compare_add = 1;
	} else if (remote) {
		wr.wr.rdma.remote_addr = (uintptr_t)memory(remote) + MEMORY / 2;
		wr.wr.rdma.rkey = memory_mr(remote)->rkey;
	}
	return post_wr(id, &wr);
}

int post_datagram(struct rdma_cm_id *id, uint64_t wr_id, uint32_t len,
		  const struct rdma_ud_param *to, uint32_t qkey)
{
	struct ibv_ah_attr attr = to->ah_attr;
	struct ibv_sge sge = part(id, 0, len);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
	};

	if (num_ahs == ARRAY_LEN(ahs))
		abort();
	ahs[num_ahs] = ibv_create_ah(id->qp->pd, &attr);
	if (!ahs[num_ahs])
		return -1;
	wr.wr.ud.ah = ahs[num_ahs++];
	wr.wr.ud.remote_qpn = to->qp_num;
	wr.wr.ud.remote_qkey = qkey;
	return post_wr(id, &wr);
}

/* --- Completions. --- */

static const char *opcode_text(enum ibv_wc_opcode opcode)
{
	static char text[24];

	switch (opcode) {
	case IBV_WC_SEND:
		return "SEND";
	case IBV_WC_RDMA_WRITE:
		return "RDMA_WRITE";
	case IBV_WC_RDMA_READ:
		return "RDMA_READ";
	case IBV_WC_COMP_SWAP:
		return "COMP_SWAP";
	case IBV_WC_FETCH_ADD:
		return "FETCH_ADD";
	case IBV_WC_RECV:
		return "RECV";
	case IBV_WC_RECV_RDMA_WITH_IMM:
		return "RECV_RDMA_WITH_IMM";
	default:
		snprintf(text, sizeof(text), "opcode %d", (int)opcode);
		return text;
	}
}

/* Of a failed one only this much means something. */
static void show_completion(const char *who, const char *what, const struct ibv_wc *wc)
{
	char line[256];

	if (wc->status) {
		say("%s %s %llu: %s", who, what, (unsigned long long)wc->wr_id,
		    ibv_wc_status_str(wc->status));
		return;
	}
	snprintf(line, sizeof(line), "%s %s %llu: %s", who, what, (unsigned long long)wc->wr_id,
		 opcode_text(wc->opcode));
	if (wc->opcode & IBV_WC_RECV)
		snprintf(line + strlen(line), sizeof(line) - strlen(line),
			 ", %u bytes, flags 0x%x%s", wc->byte_len, wc->wc_flags,
			 wc->wc_flags & IBV_WC_WITH_IMM ? be32toh(wc->imm_data) == 0x01020304
								  ? ", the immediate"
								  : ", another immediate"
							: "");
	say("%s%s", line, knows_qp(wc->qp_num) ? "" : ", of another QP");
}

static bool poll_within(struct ibv_cq *cq, struct ibv_wc *wc, unsigned int ms)
{
	uint64_t start = now_ms();
	unsigned int turns;
	int num;

	memset(wc, 0, sizeof(*wc));
	for (turns = 0;; turns++) {
		num = ibv_poll_cq(cq, 1, wc);
		if (num < 0)
			end_failed("ibv_poll_cq");
		if (num)
			return true;
		/* As many turns as milliseconds, however long each really takes. */
		if (now_ms() - start > ms && (virtual_time() || turns >= ms))
			return false;
		pass_ms(1);
	}
}

static void take(const char *who, const char *what, struct ibv_cq *cq, unsigned int num,
		 unsigned int ms)
{
	struct ibv_wc wc;

	while (num--) {
		if (!poll_within(cq, &wc, ms)) {
			say("%s %s: nothing", who, what);
			return;
		}
		show_completion(who, what, &wc);
	}
	/* A device tells of an error before its QP is in ERR. */
	settle();
}

void sent(struct rdma_cm_id *id, unsigned int num)
{
	take(id_name(id), "sent", id->qp ? id->qp->send_cq : id->send_cq, num, patience_ms());
}

void received(struct rdma_cm_id *id, unsigned int num)
{
	take(id_name(id), "received", id->qp ? id->qp->recv_cq : id->recv_cq, num, patience_ms());
}

void completed(const char *name, struct ibv_cq *cq, unsigned int num)
{
	take(name, "has", cq, num, patience_ms());
}

void completions_rest(struct rdma_cm_id *id)
{
	take(id_name(id), "sent", id->send_cq, 100, rest_ms() / 4);
	take(id_name(id), "received", id->recv_cq, 100, rest_ms() / 16);
}

/* --- QPs. --- */

static bool query(struct rdma_cm_id *id, struct ibv_qp_attr *ret_attr,
		  struct ibv_qp_init_attr *ret_init)
{
	int error;

	memset(ret_attr, 0, sizeof(*ret_attr));
	memset(ret_init, 0, sizeof(*ret_init));
	error = ibv_query_qp(id->qp, ret_attr, 0x1ffffff, ret_init);
	if (error)
		say("%s ibv_query_qp = %s", id_name(id), errno_text(error));
	return !error;
}

void show_qp_all(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	show_qp_attr(id);
	if (!query(id, &attr, &init))
		return;
	/* Not all devices tell these. */
	if (id->verbs->device->transport_type == IBV_TRANSPORT_IB)
		say("  now %d mig %d pkey index %u port %s draining %u notify %u alternate %u %u",
		    (int)attr.cur_qp_state, (int)attr.path_mig_state, attr.pkey_index,
		    attr.port_num == id->port_num ? "the id's" : "other", attr.sq_draining,
		    attr.en_sqd_async_notify, attr.alt_port_num, attr.alt_timeout);
	say("  init: type %d sig all %d CQs %s srq %s context %s, room %s", (int)init.qp_type,
	    init.sq_sig_all,
	    init.send_cq == id->qp->send_cq && init.recv_cq == id->qp->recv_cq ? "its own"
									       : "others",
	    init.srq ? "yes" : "no", init.qp_context == id->qp->qp_context ? "its own" : "other",
	    init.cap.max_send_wr >= 4 && init.cap.max_recv_wr >= 4 ? "enough" : "little");
}

void show_qp_pair(struct rdma_cm_id *a, struct rdma_cm_id *b)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr one, two;

	if (!query(a, &one, &init) || !query(b, &two, &init) ||
	    a->verbs->device->transport_type != IBV_TRANSPORT_IB)
		return;
	say("%s and %s: numbers %s, PSNs %s", id_name(a), id_name(b),
	    one.dest_qp_num == b->qp->qp_num && two.dest_qp_num == a->qp->qp_num ? "fit"
	    : !one.dest_qp_num && !two.dest_qp_num				 ? "are 0"
										 : "do not fit",
	    one.sq_psn == two.rq_psn && two.sq_psn == one.rq_psn ? "fit" : "do not fit");
}
