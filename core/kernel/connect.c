/* SPDX-License-Identifier: BSD-2-Clause */
/* kernel/connect.c - connect, accept, reject, establish, disconnect, notify; attributes for QPs. */
#include "config.h"
#include "internal.h"

static void copy_param(struct rdma_ucm_conn_param *to, struct rdma_ucm_ece *to_ece,
		       const struct polycm_conn_param *from)
{
	to->qp_num = from->qp_num;
	to->qkey = from->qkey;
	if (from->private_data && from->private_data_len) {
		memcpy(to->private_data, from->private_data, from->private_data_len);
		to->private_data_len = from->private_data_len;
	}
	to->srq = from->srq;
	to->responder_resources = from->responder_resources;
	to->initiator_depth = from->initiator_depth;
	to->flow_control = from->flow_control;
	to->retry_count = from->retry_count;
	to->rnr_retry_count = from->rnr_retry_count;
	to->valid = 1;
	to_ece->vendor_id = from->ece.vendor_id;
	to_ece->attr_mod = from->ece.options;
}

int kernel_op_connect(void *priv, const struct polycm_conn_param *param)
{
	KERNEL_MESSAGE(rdma_ucm_connect) message;

	polycm_clear(&message, sizeof(message));
	copy_param(&message.body.conn_param, &message.body.ece, param);
	return kernel_explain_kind(priv, KERNEL_ID_COMMAND(priv, CONNECT, message, 0));
}

/* The kernel returns only EINVAL; the rules may know the reason. */
static int accept_failed(const struct kernel_id *id, const struct polycm_conn_param *param, int err)
{
	const struct polycm_transport *rules = polycm_id_transport(id->core);
	uint16_t limit = rules->limit[kernel_kind(id)][POLYCM_MSG_ACCEPT];

	if (err != -EINVAL || param->private_data_len <= limit)
		return err;
	return polycm_fail(err, "%u bytes of private data, %s has room for %u; "
			   "the kernel has rejected the peer for it",
			   param->private_data_len, rules->name, limit);
}

/*
 * Over MPA only a request can be answered, and accepted only once.  The kernel refuses other
 * calls, too, but Linux 6.12 can hit a BUG(): when an id that is still connecting was rejected
 * or established and is then destroyed, and when an id is accepted again before ESTABLISHED.
 */
static int check_answers(const struct kernel_id *id)
{
	const struct polycm_transport *rules = polycm_id_transport(id->core);

	if (id->asks || !rules || rules->protocol != POLYCM_PROTO_MPA)
		return 0;
	return polycm_fail(-EINVAL, "the id is not that of a request that waits for an answer");
}

/* The kernel reports no events of a request's id until this command has given it our uid. */
static int accept_request(struct kernel_id *id, const struct polycm_conn_param *param)
{
	KERNEL_MESSAGE(rdma_ucm_accept) message;
	int r = check_answers(id);

	if (r)
		return r;
	polycm_clear(&message, sizeof(message));
	message.body.uid = id->handle.uid;
	copy_param(&message.body.conn_param, &message.body.ece, param);
	r = KERNEL_ID_COMMAND(id, ACCEPT, message, 0);
	if (r)
		return accept_failed(id, param, r);
	id->asks = false;
	return 0;
}

int kernel_op_accept(void *priv, const struct polycm_conn_param *param)
{
	return kernel_explain_kind(priv, accept_request(priv, param));
}

/* The active side answers a REP with an accept without parameters. */
static int establish(struct kernel_id *id)
{
	KERNEL_MESSAGE(rdma_ucm_accept) message;
	int r = check_answers(id);

	if (r)
		return r;
	polycm_clear(&message, sizeof(message));
	return KERNEL_ID_COMMAND(id, ACCEPT, message, 0);
}

int kernel_op_establish(void *priv)
{
	return kernel_explain(priv, establish(priv), POLYCM_SVC_ESTABLISH,
			      "RTU: the device ends the handshake by itself");
}

int kernel_op_reject(void *priv, const void *data, uint8_t len, uint8_t reason)
{
	KERNEL_MESSAGE(rdma_ucm_reject) message;
	int r = check_answers(priv);

	if (r)
		return r;
	polycm_clear(&message, sizeof(message));
	message.body.reason = reason;
	if (data && len) {
		memcpy(message.body.private_data, data, len);
		message.body.private_data_len = len;
	}
	return KERNEL_ID_COMMAND(priv, REJECT, message, 0);
}

int kernel_op_disconnect(void *priv)
{
	KERNEL_MESSAGE(rdma_ucm_disconnect) message = { .body.id = 0 };

	return KERNEL_ID_COMMAND(priv, DISCONNECT, message, 0);
}

int kernel_op_notify(void *priv, enum ibv_event_type event)
{
	KERNEL_MESSAGE(rdma_ucm_notify) message = { .body.event = (uint32_t)event };

	return KERNEL_ID_COMMAND(priv, NOTIFY, message, 0);
}

int kernel_op_init_qp_attr(void *priv, struct ibv_qp_attr *attr, int *ret_mask)
{
	struct ib_uverbs_qp_attr resp;
	KERNEL_MESSAGE(rdma_ucm_init_qp_attr) message = {
		.body = { .response = kernel_pointer(&resp), .qp_state = (uint32_t)attr->qp_state },
	};
	int r;

	polycm_clear(&resp, sizeof(resp));
	r = KERNEL_ID_COMMAND(priv, INIT_QP_ATTR, message, sizeof(resp));
	if (r)
		return r;
	ibv_copy_qp_attr_from_kern(attr, &resp);
	*ret_mask = (int)resp.qp_attr_mask;
	return 0;
}
