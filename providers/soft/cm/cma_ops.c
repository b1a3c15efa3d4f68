/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/cma_ops.c - the operations of struct polycm_ops on ids: each takes the
 * engine's lock, checks the state as the kernel's RDMA CM does, and leaves the
 * protocol to the engine of the id's device.
 */
#include "config.h"

#include <errno.h>

#include "cma_internal.h"
#include "ibcm.h"
#include "iwcm.h"

/* Every operation begins and ends so.  addr: what the call binds the id to, or NULL. */
static int enter(const struct sim_id *id, enum sim_what call, const struct sockaddr *addr)
{
	sim_lock();
	return cma_fault(id, call, addr);
}

static int leave(int r)
{
	sim_unlock();
	return r;
}

static int op_open(void *ctx, struct polycm_id *core_id, void *priv, const struct polycm_open *how)
{
	int r;

	(void)ctx;
	switch (how->ps) {
	case RDMA_PS_TCP:
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
	case RDMA_PS_IB:
		break;
	default:
		return sim_refuse(-EINVAL, "port space 0x%x is none of the RDMA CM's",
				  (unsigned int)how->ps);
	}
	r = enter(NULL, SIM_CALL_CREATE_ID, NULL);
	if (!r)
		cma_init(priv, core_id, how->ps, how->qp_type);
	return leave(r);
}

static int op_bind(void *priv, const struct sockaddr *addr)
{
	struct sim_id *id = priv;
	int r = enter(id, SIM_CALL_BIND, addr);

	if (!r)
		r = cma_bind(id, addr, NULL);
	if (!r)
		id->bind_asked = true;
	return leave(r);
}

static int op_resolve_addr(void *priv, const struct sockaddr *src, const struct sockaddr *dst,
			   int timeout_ms)
{
	int r = enter(priv, SIM_CALL_RESOLVE_ADDR, src);

	if (!r)
		r = sim_engine_need_thread();
	return leave(r ? r : cma_resolve_addr(priv, src, dst, timeout_ms));
}

static int op_resolve_route(void *priv, int timeout_ms)
{
	int r = enter(priv, SIM_CALL_RESOLVE_ROUTE, NULL);

	return leave(r ? r : cma_resolve_route(priv, timeout_ms));
}

/* Listeners are found through the port table, and only the core counts their backlog. */
static int op_listen(void *priv, int backlog)
{
	int r = enter(priv, SIM_CALL_LISTEN, NULL);

	(void)backlog;
	return leave(r ? r : cma_listen(priv));
}

static int op_connect(void *priv, const struct polycm_conn_param *param)
{
	struct sim_id *id = priv;
	int r;

	sim_lock();
	if (id->state != CMA_ROUTE_RESOLVED)
		return leave(cma_wrong_state(id));
	id->qp_num = param->qp_num & CMA_QPN_MASK;
	cma_set_state(id, CMA_CONNECT);
	r = cma_fault(id, SIM_CALL_CONNECT, NULL);
	if (!r)
		r = id->engine->connect(id, param);
	if (r < 0 && id->state == CMA_CONNECT)
		cma_set_state(id, CMA_ROUTE_RESOLVED);
	return leave(r);
}

/* As the kernel does after an accept that failed: the peer must not wait. */
static void refuse(struct sim_id *id)
{
	if (cma_has_connection(id))
		(void)id->engine->reject(id, NULL, 0, CM_REJ_CONSUMER_DEFINED);
}

static int op_accept(void *priv, const struct polycm_conn_param *param)
{
	struct sim_id *id = priv;
	bool accepted;
	int r;

	sim_lock();
	cma_check_peer(id);
	if (id->state != CMA_CONNECT)
		return leave(cma_wrong_state(id));
	accepted = id->accepted;
	/* accept() itself may post the first event. */
	id->accepted = true;
	r = cma_fault(id, SIM_CALL_ACCEPT, NULL);
	if (!r)
		r = id->engine->accept(id, param);
	if (r < 0) {
		id->accepted = accepted;
		refuse(id);
	}
	return leave(r);
}

static int op_establish(void *priv)
{
	struct sim_id *id = priv;
	int r;

	sim_lock();
	cma_check_peer(id);
	if (id->state != CMA_CONNECT)
		return leave(cma_wrong_state(id));
	r = id->engine->establish(id);
	if (r < 0)
		refuse(id);
	return leave(r);
}

static int op_reject(void *priv, const void *data, uint8_t len, uint8_t reason)
{
	struct sim_id *id = priv;
	int r;

	if (!reason)
		reason = CM_REJ_CONSUMER_DEFINED;
	if (reason != CM_REJ_CONSUMER_DEFINED && reason != CM_REJ_VENDOR_OPTION_NOT_SUPPORTED)
		return sim_refuse(-EINVAL, "reason %u is not for programs", reason);
	r = enter(id, SIM_CALL_REJECT, NULL);
	if (!r)
		r = cma_has_connection(id) ? id->engine->reject(id, data, len, reason)
					   : cma_wrong_state(id);
	return leave(r);
}

/* A listener on a device has a cm_id in the kernel, too, though it never connects. */
static bool listens_by(const struct sim_id *id, enum polycm_protocol protocol)
{
	return id->state == CMA_LISTEN && id->port && cma_rules(id)->protocol == protocol;
}

static int op_disconnect(void *priv)
{
	struct sim_id *id = priv;
	int r;

	sim_lock();
	cma_check_peer(id);
	r = cma_fault(id, SIM_CALL_DISCONNECT, NULL);
	if (!r && cma_has_connection(id))
		r = id->engine->disconnect(id);
	else if (!r && !listens_by(id, POLYCM_PROTO_IB_CM))
		r = cma_wrong_state(id);
	return leave(r);
}

static int op_notify(void *priv, enum ibv_event_type event)
{
	struct sim_id *id = priv;

	sim_lock();
	if (cma_has_connection(id))
		return leave(id->engine->notify(id, event));
	return leave(listens_by(id, POLYCM_PROTO_MPA) ? 0 : cma_wrong_state(id));
}

static int op_set_option(void *priv, int level, int optname, const void *optval, size_t optlen)
{
	const struct sim_id *id = priv;

	sim_lock();
	if (id->state == CMA_DEVICE_REMOVAL)
		return leave(cma_wrong_state(id));
	return leave(cma_set_option(priv, level, optname, optval, optlen));
}

/* The Q_Key of datagrams is known also while the id listens. */
static bool has_qkey(const struct sim_id *id)
{
	return id->qp_type == IBV_QPT_UD && cma_rules(id)->protocol == POLYCM_PROTO_IB_CM;
}

/* An id of RDMA_PS_IPOIB gets onto a device without IP over InfiniBand by loopback. */
static bool lacks_qkey(const struct sim_id *id)
{
	return has_qkey(id) && id->ps == RDMA_PS_IPOIB &&
	       !(cma_rules(id)->services & POLYCM_SVC_IPOIB);
}

static int op_init_qp_attr(void *priv, struct ibv_qp_attr *attr, int *ret_mask)
{
	struct sim_id *id = priv;
	int r;

	sim_lock();
	if (!id->engine || id->state == CMA_DEVICE_REMOVAL ||
	    (id->state == CMA_LISTEN && !has_qkey(id)))
		return leave(cma_wrong_state(id));
	if (lacks_qkey(id))
		return leave(sim_refuse(-ENODEV, "RDMA_PS_IPOIB has the Q_Key of a group of the "
					"subnet"));
	r = id->engine->init_qp_attr(id, attr, ret_mask);
	if (!r && (*ret_mask & IBV_QP_TIMEOUT) && id->ack_timeout_set)
		attr->timeout = id->ack_timeout;
	return leave(r);
}

static int op_query(void *priv, struct polycm_route_info *ret_info)
{
	const struct sim_id *id = priv;

	sim_lock();
	if (id->state == CMA_DEVICE_REMOVAL)
		return leave(cma_wrong_state(id));
	cma_query(id, ret_info);
	return leave(0);
}

static int op_join_multicast(void *priv, const struct polycm_multicast *mc)
{
	const struct sim_id *id = priv;
	int r;

	sim_lock();
	if (id->state == CMA_DEVICE_REMOVAL)
		return leave(cma_wrong_state(id));
	r = cma_fault(id, SIM_CALL_JOIN_MULTICAST, NULL);
	if (!r)
		r = sim_engine_need_thread();
	return leave(r ? r : cma_join_multicast(priv, mc));
}

static int op_leave_multicast(void *priv, void *group)
{
	sim_lock();
	return leave(cma_leave_multicast(priv, group));
}

/* id->id is NULL: the open failed. */
static void op_close(void *priv)
{
	struct sim_id *id = priv;

	sim_lock();
	if (id->id)
		cma_close(id);
	sim_unlock();
}

static void op_stop(void *priv)
{
	struct sim_id *id = priv;

	sim_lock();
	if (id->id && !cma_is_copy(id) && cma_has_connection(id))
		id->engine->stop(id);
	sim_unlock();
}

static void op_free(void *priv)
{
	struct sim_id *id = priv;

	sim_lock();
	if (id->id) {
		/* A copy's stream is left alone, memory and all. */
		if (id->engine && (!cma_is_copy(id) || id->engine == &sim_ibcm_engine))
			id->engine->free(id);
		cma_drop(id);
		id->id = NULL;
	}
	sim_unlock();
}

static void op_inspect(void *priv, const struct polycm_report *to)
{
	sim_lock();
	cma_inspect(priv, to);
	sim_unlock();
}

const struct polycm_ops sim_cma_ops = {
	.size = sizeof(sim_cma_ops),
	.open = op_open,
	.bind = op_bind,
	.resolve_addr = op_resolve_addr,
	.resolve_route = op_resolve_route,
	.listen = op_listen,
	.connect = op_connect,
	.accept = op_accept,
	.reject = op_reject,
	.establish = op_establish,
	.disconnect = op_disconnect,
	.notify = op_notify,
	.set_option = op_set_option,
	.init_qp_attr = op_init_qp_attr,
	.query = op_query,
	.join_multicast = op_join_multicast,
	.leave_multicast = op_leave_multicast,
	.inspect = op_inspect,
	.close = op_close,
	.stop = op_stop,
	.free = op_free,
};
