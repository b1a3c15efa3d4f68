/* SPDX-License-Identifier: BSD-2-Clause */
/* kernel/attr.c - attributes of queue pairs and address handles, as the kernel gives them. */
#include "config.h"
#include "internal.h"

void kernel_copy_ah_attr(struct ibv_ah_attr *to, const struct ib_uverbs_ah_attr *from)
{
	memcpy(&to->grh.dgid, from->grh.dgid, sizeof(to->grh.dgid));
	to->grh.flow_label = from->grh.flow_label;
	to->grh.sgid_index = from->grh.sgid_index;
	to->grh.hop_limit = from->grh.hop_limit;
	to->grh.traffic_class = from->grh.traffic_class;
	to->dlid = from->dlid;
	to->sl = from->sl;
	to->src_path_bits = from->src_path_bits;
	to->static_rate = from->static_rate;
	to->is_global = from->is_global;
	to->port_num = from->port_num;
}

static void copy_qp_attr(struct ibv_qp_attr *to, const struct ib_uverbs_qp_attr *from)
{
	to->cur_qp_state = (enum ibv_qp_state)from->cur_qp_state;
	to->path_mtu = (enum ibv_mtu)from->path_mtu;
	to->path_mig_state = (enum ibv_mig_state)from->path_mig_state;
	to->qkey = from->qkey;
	to->rq_psn = from->rq_psn;
	to->sq_psn = from->sq_psn;
	to->dest_qp_num = from->dest_qp_num;
	to->qp_access_flags = from->qp_access_flags;
	to->cap.max_send_wr = from->max_send_wr;
	to->cap.max_recv_wr = from->max_recv_wr;
	to->cap.max_send_sge = from->max_send_sge;
	to->cap.max_recv_sge = from->max_recv_sge;
	to->cap.max_inline_data = from->max_inline_data;
	kernel_copy_ah_attr(&to->ah_attr, &from->ah_attr);
	kernel_copy_ah_attr(&to->alt_ah_attr, &from->alt_ah_attr);
	to->pkey_index = from->pkey_index;
	to->alt_pkey_index = from->alt_pkey_index;
	to->en_sqd_async_notify = from->en_sqd_async_notify;
	to->sq_draining = from->sq_draining;
	to->max_rd_atomic = from->max_rd_atomic;
	to->max_dest_rd_atomic = from->max_dest_rd_atomic;
	to->min_rnr_timer = from->min_rnr_timer;
	to->port_num = from->port_num;
	to->timeout = from->timeout;
	to->retry_cnt = from->retry_cnt;
	to->rnr_retry = from->rnr_retry;
	to->alt_port_num = from->alt_port_num;
	to->alt_timeout = from->alt_timeout;
}

int kernel_op_init_qp_attr(void *priv, struct ibv_qp_attr *attr, int *ret_mask)
{
	KERNEL_MESSAGE(rdma_ucm_init_qp_attr) message;
	struct ib_uverbs_qp_attr resp;
	int r;

	memset(&message, 0, sizeof(message));
	polycm_clear(&resp, sizeof(resp));
	message.body.response = kernel_pointer(&resp);
	message.body.qp_state = (uint32_t)attr->qp_state;
	r = KERNEL_ID_COMMAND(priv, INIT_QP_ATTR, message, sizeof(resp));
	if (r)
		return r;
	copy_qp_attr(attr, &resp);
	*ret_mask = (int)resp.qp_attr_mask;
	return 0;
}
