/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api/rdma_connect.c - the calls that make and end connections: connect, accept,
 * reject, establish, disconnect, notify.
 *
 * These calls check what librdmacm checks itself: the depths against the device,
 * and that there is a QP number.  The provider checks lengths and states, because
 * the effect of a refusal on the peer depends on the transport.
 */
#include "config.h"
#include "core/cm/id_internal.h"

#include <errno.h>
#include <string.h>

#include "core/base/block.h"
#include "core/base/export.h"
#include "core/base/log.h"
#include "core/plugin/op.h"
#include "core/cm/ret.h"

#define REJECT_CONSUMER		0	/* the provider's default */
#define REJECT_ECE		35	/* vendor option not supported */
#define DEFAULT_RETRY_COUNT	7

/* Private data: the part of rdma_create_ep(), then the program's. */
struct joined_data {
	uint8_t bytes[UINT8_MAX];
};

static uint8_t lower(uint8_t value, uint8_t limit)
{
	return value < limit ? value : limit;
}

static int check_depths(const struct polycm_id *id, const struct rdma_conn_param *param)
{
	const struct polycm_device *device = id->device;

	if (id->pub.ps != RDMA_PS_TCP)
		return 0;
	if (param->responder_resources != RDMA_MAX_RESP_RES &&
	    param->responder_resources > device->max_responder_resources)
		return polycm_fail(-EINVAL, "responder_resources %u, the device has %u",
				   param->responder_resources, device->max_responder_resources);
	if (param->initiator_depth != RDMA_MAX_INIT_DEPTH &&
	    param->initiator_depth > device->max_initiator_depth)
		return polycm_fail(-EINVAL, "initiator_depth %u, the device has %u",
				   param->initiator_depth, device->max_initiator_depth);
	return 0;
}

/* Defaults for values that the program did not set: the device's, or the request's on accept. */
static void fill_depths(const struct polycm_id *id, const struct rdma_conn_param *param,
			bool accepting, struct polycm_conn_param *out)
{
	const struct polycm_device *device = id->device;

	out->responder_resources = param ? param->responder_resources : RDMA_MAX_RESP_RES;
	out->initiator_depth = param ? param->initiator_depth : RDMA_MAX_INIT_DEPTH;
	if (out->responder_resources == RDMA_MAX_RESP_RES)
		out->responder_resources =
			lower(accepting ? id->responder_resources : RDMA_MAX_RESP_RES,
			      device->max_responder_resources);
	if (out->initiator_depth == RDMA_MAX_INIT_DEPTH)
		out->initiator_depth = lower(accepting ? id->initiator_depth : RDMA_MAX_INIT_DEPTH,
					     device->max_initiator_depth);
}

/* A service lookup needs no QP; its parameters may be missing altogether. */
static int fill_qp(const struct polycm_id *id, const struct rdma_conn_param *param,
		   bool accepting, struct polycm_conn_param *out)
{
	const struct ibv_qp *qp = id->pub.qp;

	if (qp) {
		out->qp_num = qp->qp_num;
		out->srq = qp->srq || id->pub.srq;
	} else if (param) {
		out->qp_num = param->qp_num & 0xffffff;
		out->srq = param->srq != 0;
	} else if (accepting || id->pub.ps == RDMA_PS_TCP) {
		return polycm_fail(-EINVAL, "no parameters, and no QP to take them from");
	}
	return 0;
}

static int fill_data(const struct polycm_id *id, const struct rdma_conn_param *param,
		     bool accepting, struct joined_data *joined, struct polycm_conn_param *out)
{
	size_t ours = !accepting && id->ep ? id->ep->connect_len : 0;
	size_t theirs = param && param->private_data ? param->private_data_len : 0;

	if (ours + theirs > sizeof(joined->bytes))
		return polycm_fail(-EINVAL, "%zu bytes of private data with those of the address",
				   ours + theirs);
	out->private_data_len = (uint8_t)(ours + theirs);
	if (ours) {
		memcpy(joined->bytes, id->ep->connect, ours);
		if (theirs)
			memcpy(joined->bytes + ours, param->private_data, theirs);
		out->private_data = joined->bytes;
	} else {
		out->private_data = theirs ? param->private_data : NULL;
	}
	return 0;
}

static int fill_param(const struct polycm_id *id, const struct rdma_conn_param *param,
		      bool accepting, struct joined_data *joined, struct polycm_conn_param *out)
{
	const struct polycm_transport *rules = id->device->transport;
	int err;

	polycm_clear(out, sizeof(*out));
	out->size = sizeof(*out);
	err = param ? check_depths(id, param) : 0;
	if (!err)
		err = fill_qp(id, param, accepting, out);
	if (!err)
		err = fill_data(id, param, accepting, joined, out);
	if (err)
		return err;

	fill_depths(id, param, accepting, out);
	out->flow_control = param ? param->flow_control & 1 : 0;
	out->retry_count = lower(param ? param->retry_count : DEFAULT_RETRY_COUNT,
				 rules->max_retry_count);
	out->rnr_retry_count = lower(param ? param->rnr_retry_count : DEFAULT_RETRY_COUNT,
				     rules->max_rnr_retry_count);
	return 0;
}

/* What goes to the peer, in the order of the events' lines. */
static void log_param(const struct polycm_id *id, const char *call,
		      const struct polycm_conn_param *param)
{
	if (polycm_id_is_ud(id))
		polycm_log_id(POLYCM_LOG_INFO, id, "%s (QP %u, private data %u bytes)", call,
			      param->qp_num, param->private_data_len);
	else
		polycm_log_id(POLYCM_LOG_INFO, id, "%s (responder resources %u, initiator depth %u, "
			      "retry count %u, RNR retry count %u, private data %u bytes)", call,
			      param->responder_resources, param->initiator_depth,
			      param->retry_count, param->rnr_retry_count, param->private_data_len);
}

static int connect_to(struct polycm_id *id, const struct rdma_conn_param *param)
{
	struct polycm_conn_param full;
	struct joined_data joined;
	int err;

	err = polycm_need_device(id);
	if (!err)
		err = fill_param(id, param, false, &joined, &full);
	if (err)
		return err;
	polycm_ece_offer(id, &full.ece);
	log_param(id, "rdma_connect", &full);
	id->knows_peer = true;
	return POLYCM_OP(id->module, connect, id->priv, &full);
}

/* From here on the provider may post for the id. */
static void set_accepted(struct polycm_id *id, bool accepted)
{
	struct polycm_channel *chan = polycm_channel_lock_held(id);

	id->accepted = accepted;
	polycm_channel_unlock(chan);
}

static int accept_request(struct polycm_id *id, const struct rdma_conn_param *param)
{
	bool was_accepted = id->accepted;
	struct polycm_conn_param full;
	struct joined_data joined;
	int err;

	err = polycm_need_device(id);
	if (!err)
		err = fill_param(id, param, true, &joined, &full);
	if (!err && !polycm_id_is_ud(id))
		err = polycm_qp_connect(id, full.responder_resources, full.initiator_depth, NULL);
	if (err)
		return err;
	polycm_ece_answer(id, &full.ece);

	set_accepted(id, true);
	log_param(id, "rdma_accept", &full);
	err = POLYCM_OP(id->module, accept, id->priv, &full);
	if (err) {
		set_accepted(id, was_accepted);
		(void)polycm_qp_error(id);
	}
	return err;
}

static int reject(struct polycm_id *id, const void *data, uint8_t len, uint8_t reason)
{
	int err = polycm_need_module(id);

	if (err)
		return err;
	if (!data || !len)
		return POLYCM_OP(id->module, reject, id->priv, NULL, 0, reason);
	return POLYCM_OP(id->module, reject, id->priv, data, len, reason);
}

static int establish(struct polycm_id *id)
{
	int err = polycm_need_module(id);

	if (err)
		return err;
	if (id->pub.qp)
		return polycm_fail(-EINVAL, "the id has a QP: the library has done it");
	return POLYCM_OP(id->module, establish, id->priv);
}

static int disconnect(struct polycm_id *id)
{
	int err = polycm_need_device(id);

	if (!err)
		err = polycm_qp_shutdown(id);
	if (!err)
		err = POLYCM_OP(id->module, disconnect, id->priv);
	return err;
}

static int notify(struct polycm_id *id, enum ibv_event_type event)
{
	int err = polycm_need_module(id);

	return err ? err : POLYCM_OP(id->module, notify, id->priv, event);
}

POLYCM_EXPORT int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	return POLYCM_CALL(polycm_exit_to_complete, self, id, connect_to(self, conn_param));
}

/*
 * Nothing comes after the answer to a service lookup, whose request stays the
 * id's event, and datagrams have no connection whose end would be reported.
 */
static inline int exit_connected(const char *call, struct polycm_id *id, int err)
{
	return polycm_id_is_ud(id) ? polycm_exit(call, id, err)
				   : polycm_exit_to_complete(call, id, err);
}

POLYCM_EXPORT int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	return POLYCM_CALL(exit_connected, self, id, accept_request(self, conn_param));
}

POLYCM_EXPORT int rdma_reject(struct rdma_cm_id *id, const void *private_data,
			      uint8_t private_data_len)
{
	return POLYCM_CALL(polycm_exit, self, id,
			   reject(self, private_data, private_data_len, REJECT_CONSUMER));
}

POLYCM_EXPORT int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data,
				  uint8_t private_data_len)
{
	return POLYCM_CALL(polycm_exit, self, id,
			   reject(self, private_data, private_data_len, REJECT_ECE));
}

POLYCM_EXPORT int rdma_establish(struct rdma_cm_id *id)
{
	return POLYCM_CALL(polycm_exit, self, id, establish(self));
}

POLYCM_EXPORT int rdma_disconnect(struct rdma_cm_id *id)
{
	return POLYCM_CALL(exit_connected, self, id, disconnect(self));
}

POLYCM_EXPORT int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	return POLYCM_CALL(polycm_exit, self, id, notify(self, event));
}
