/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api/rdma_ep.c - endpoints: a synchronous id made from what rdma_getaddrinfo()
 * found, bound (passive) or resolved and ready to connect (active).
 */
#include "config.h"
#include "core/cm/id_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/export.h"
#include "core/plugin/op.h"
#include "core/cm/ret.h"

#define RESOLVE_TIMEOUT_MS 2000

/* For later: QPs of requests, and data that goes before the program's in rdma_connect(). */
static int save(struct polycm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
		struct ibv_qp_init_attr *qp_attr, bool passive)
{
	size_t len = passive || !res->ai_connect ? 0 : res->ai_connect_len;
	struct polycm_ep *ep = calloc(1, sizeof(*ep) + len);

	if (!ep)
		return -ENOMEM;
	if (passive) {
		ep->pd = pd;
		ep->has_qp_attr = qp_attr;
		if (qp_attr)
			ep->qp_attr = *qp_attr;
	}
	ep->connect_len = len;
	if (len)
		memcpy(ep->connect, res->ai_connect, len);
	id->ep = ep;
	return 0;
}

static int resolve(struct polycm_id *id, const struct rdma_addrinfo *res)
{
	int err;

	err = polycm_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr, RESOLVE_TIMEOUT_MS);
	if (err)
		return err;
	if (!res->ai_route_len || !res->ai_route)
		return polycm_resolve_route(id, RESOLVE_TIMEOUT_MS);

	err = POLYCM_OP(id->module, set_option, id->priv, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH,
			res->ai_route, res->ai_route_len);
	return err ? err : polycm_complete(id);
}

/* Nobody else knows the id yet, so its lock is taken for order only. */
static int prepare(struct polycm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *qp_attr)
{
	bool passive = res->ai_flags & RAI_PASSIVE;
	int err;

	if (qp_attr)
		qp_attr->qp_type = id->pub.qp_type;
	err = save(id, res, pd, qp_attr, passive);
	if (!err && !passive)
		err = resolve(id, res);
	if (err)
		return err;

	polycm_id_lock(id);
	if (passive)
		err = polycm_bind(id, res->ai_src_addr);
	else if (qp_attr)
		err = polycm_qp_create(id, pd, qp_attr);
	polycm_id_unlock(id);
	return err;
}

/* Taken, and under its lock. */
static void destroy_ep(struct polycm_id *id)
{
	polycm_qp_destroy(id);
	polycm_srq_destroy(id);
	polycm_id_destroy(id);
}

static int create_ep(struct rdma_cm_id **ret_pub, const struct rdma_addrinfo *res,
		     struct ibv_pd *pd, struct ibv_qp_init_attr *qp_attr, const void *caller)
{
	struct polycm_id *id;
	int err;

	err = polycm_start();
	if (err)
		return err;
	if (!ret_pub || !res)
		return polycm_fail(-EINVAL, res ? "nowhere to put the id" : "no address");
	err = polycm_id_create(NULL, (enum rdma_port_space)res->ai_port_space,
			       (enum ibv_qp_type)res->ai_qp_type, NULL, &id);
	if (err)
		return err;
	err = prepare(id, res, pd, qp_attr);
	if (err) {
		if (!polycm_id_take(id))
			destroy_ep(id);
		return err;
	}
	polycm_id_made(id, "rdma_create_ep", caller);
	*ret_pub = &id->pub;
	return 0;
}

POLYCM_EXPORT int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res,
				 struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	polycm_why_clear();
	return polycm_ret("rdma_create_ep", NULL,
			  create_ep(id, res, pd, qp_init_attr, __builtin_return_address(0)));
}

POLYCM_EXPORT void rdma_destroy_ep(struct rdma_cm_id *id)
{
	struct polycm_id *self = (struct polycm_id *)(void *)id;
	int err;

	polycm_why_clear();
	err = polycm_id_take(self);
	if (err)
		(void)polycm_ret("rdma_destroy_ep", err == -EINVAL ? NULL : self, err);
	else
		destroy_ep(self);
}
