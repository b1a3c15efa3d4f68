/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api/rdma_addr.c - addresses of an id: rdma_bind_addr(), rdma_resolve_addr(),
 * rdma_resolve_route() and the ports.  While the choice of provider is open,
 * it is made here.
 */
#include "config.h"
#include "core/cm/id_internal.h"

#include <errno.h>
#include <string.h>

#include "core/base/addr.h"
#include "core/base/export.h"
#include "core/plugin/op.h"
#include "core/cm/ret.h"

/* A wildcard goes to the first provider with a device; rdma_listen() brings in the others. */
static int settle_for_bind(struct polycm_id *id, const struct sockaddr *addr)
{
	struct polycm_module *module;
	int err;

	err = polycm_choose_module(polycm_addr_wildcard(addr) ? NULL : addr, NULL, &module);
	if (!err)
		err = polycm_id_settle(id, module);
	return err;
}

int polycm_bind(struct polycm_id *id, const struct sockaddr *addr)
{
	char text[POLYCM_ADDR_TEXT];
	bool settled_here = false;
	int err;

	if (!polycm_addr_len(addr))
		return polycm_fail(-EINVAL, addr ? "unknown address family" : "no address");

	if (!id->module) {
		err = settle_for_bind(id, addr);
		if (err)
			return err;
		settled_here = true;
	}

	err = POLYCM_OP(id->module, bind, id->priv, addr);
	if (err) {
		if (settled_here)
			polycm_id_unsettle(id);
		return polycm_fail_in(err, "bind to %s", polycm_addr_text(addr, text));
	}
	id->port_asked = polycm_addr_port(addr) != 0;
	if (!polycm_addr_wildcard(addr))
		polycm_id_set_place(id, POLYCM_PLACED);
	return polycm_id_update(id, false);
}

/*
 * With several providers: to the one that carries this pair of addresses.  An
 * id that was bound to a wildcard in another one is bound again, to the port
 * that the program asked for.
 */
static int settle_for_resolve(struct polycm_id *id, const struct sockaddr *src,
			      const struct sockaddr *dst)
{
	struct sockaddr_storage bound = id->pub.route.addr.src_storage;
	bool was_bound = id->module && bound.ss_family;
	struct polycm_module *module;
	bool stays;
	int err;

	if (was_bound && bound.ss_family != dst->sa_family)
		return polycm_fail(-EINVAL, "bound to an address of another family");
	err = polycm_choose_module(src, dst, &module);
	if (err)
		return err;
	stays = id->module && id->module->carrier == module->carrier;

	err = polycm_id_settle(id, module);
	if (err || stays || !was_bound)
		return err;
	if (!id->port_asked)
		polycm_addr_set_port((struct sockaddr *)&bound, 0);
	return POLYCM_OP(module, bind, id->priv, (const struct sockaddr *)&bound);
}

static int resolve_addr(struct polycm_id *id, const struct sockaddr *src,
			const struct sockaddr *dst, int timeout_ms)
{
	char text[POLYCM_ADDR_TEXT];
	size_t dst_len = polycm_addr_len(dst);
	struct polycm_asked before;
	struct polycm_channel *chan;
	bool unplaced = polycm_id_is_unplaced(id);
	int err;

	if (!dst_len || (src && !polycm_addr_len(src)))
		return polycm_fail(-EINVAL, dst ? "unknown address family" : "no address");

	if (unplaced) {
		err = settle_for_resolve(id, src, dst);
		if (err)
			return err;
		polycm_id_set_place(id, POLYCM_RESOLVING);
	} else if (!id->module) {
		return polycm_need_module(id);
	}

	polycm_ask(id, POLYCM_ASKED_ADDR, &before);
	err = POLYCM_OP(id->module, resolve_addr, id->priv, src, dst, timeout_ms);
	polycm_asked(id, &before, timeout_ms, err);
	if (err) {
		if (unplaced)
			polycm_id_set_place(id, POLYCM_UNPLACED);
		return polycm_fail_in(err, "to %s", polycm_addr_text(dst, text));
	}
	chan = polycm_channel_lock_held(id);
	memcpy(&id->pub.route.addr.dst_storage, dst, dst_len);
	polycm_channel_unlock(chan);
	return 0;
}

static int resolve_route(struct polycm_id *id, int timeout_ms)
{
	struct polycm_asked before;
	int err = polycm_need_device(id);

	if (err)
		return err;
	polycm_ask(id, POLYCM_ASKED_ROUTE, &before);
	err = POLYCM_OP(id->module, resolve_route, id->priv, timeout_ms);
	polycm_asked(id, &before, timeout_ms, err);
	return err;
}

int polycm_resolve_addr(struct polycm_id *id, const struct sockaddr *src,
			const struct sockaddr *dst, int timeout_ms)
{
	int err;

	polycm_id_lock(id);
	err = resolve_addr(id, src, dst, timeout_ms);
	polycm_id_unlock(id);
	return err ? err : polycm_complete(id);
}

int polycm_resolve_route(struct polycm_id *id, int timeout_ms)
{
	int err;

	polycm_id_lock(id);
	err = resolve_route(id, timeout_ms);
	polycm_id_unlock(id);
	return err ? err : polycm_complete(id);
}

POLYCM_EXPORT int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return POLYCM_CALL(polycm_exit, self, id, polycm_bind(self, addr));
}

POLYCM_EXPORT int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr,
				    struct sockaddr *dst_addr, int timeout_ms)
{
	return POLYCM_CALL(polycm_exit_to_complete, self, id,
			   resolve_addr(self, src_addr, dst_addr, timeout_ms));
}

POLYCM_EXPORT int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	return POLYCM_CALL(polycm_exit_to_complete, self, id, resolve_route(self, timeout_ms));
}

/* Both read what the program could read itself. */
POLYCM_EXPORT __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return id ? polycm_addr_port(&id->route.addr.src_addr) : 0;
}

POLYCM_EXPORT __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return id ? polycm_addr_port(&id->route.addr.dst_addr) : 0;
}
