/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api/rdma_listen.c - rdma_listen() and rdma_get_request().
 *
 * A listener on a wildcard address listens in every provider.  For each further carrier
 * it has a shadow: an internal id, bound to the same port.  Events of a shadow go to the
 * visible listener.
 */
#include "config.h"
#include "core/cm/id_internal.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <string.h>
#include <utlist.h>

#include "core/base/addr.h"
#include "core/base/export.h"
#include "core/base/log.h"
#include "core/plugin/op.h"
#include "core/cm/ret.h"

static int limited(int backlog)
{
	return backlog <= 0 || backlog > POLYCM_MAX_BACKLOG ? POLYCM_MAX_BACKLOG : backlog;
}

/* The kernel's limit is the administrator's (net.rdma_ucm.max_backlog). */
static int backlog_for(const struct polycm_module *module, int backlog)
{
	return polycm_module_is_kernel(module) ? backlog : limited(backlog);
}

static int shadow_listen(struct polycm_id *id, struct polycm_module *module, int backlog)
{
	const struct sockaddr *addr = &id->pub.route.addr.src_addr;
	char text[POLYCM_ADDR_TEXT];
	struct polycm_id *shadow;
	int err;

	err = polycm_id_alloc(id->pub.ps, id->pub.qp_type, &shadow);
	if (err)
		return err;
	shadow->master = id;
	shadow->place = POLYCM_PLACED;
	LL_PREPEND2(id->shadows, shadow, next_shadow);

	err = polycm_id_settle(shadow, module);
	if (!err)
		err = POLYCM_OP(module, bind, shadow->priv, addr);
	if (!err)
		err = POLYCM_OP(module, listen, shadow->priv, backlog_for(module, backlog));
	if (err)
		return polycm_fail(err, "provider %s cannot listen on %s", module->name,
				   polycm_addr_text(addr, text));
	return 0;
}

/* In a provider that the module shares its ids with, it is there already. */
static bool listens(const struct polycm_id *id, const struct polycm_module *module)
{
	const struct polycm_id *shadow;

	for (shadow = id->shadows; shadow; shadow = shadow->next_shadow)
		if (shadow->module->carrier == module->carrier)
			return true;
	return id->module->carrier == module->carrier;
}

/* The other providers that have devices.  On an error the caller ends the shadows. */
static int shadows_listen(struct polycm_id *id, int backlog)
{
	struct polycm_module *const *modules;
	size_t num = polycm_registry_selected(&modules);
	int err = 0;

	for (size_t i = 0; i < num && !err; i++)
		if (!listens(id, modules[i]) &&
		    !POLYCM_OP(modules[i], match, modules[i]->ctx, NULL, NULL))
			err = shadow_listen(id, modules[i], backlog);
	return err;
}

/* An id with the choice open: bound to a wildcard, or not yet, which means to any port. */
static int prepare_unplaced(struct polycm_id *id, int backlog)
{
	const struct sockaddr_in any = { .sin_family = AF_INET };
	int err = 0;

	if (!id->module)
		err = polycm_bind(id, (const struct sockaddr *)&any);
	else
		err = polycm_id_update(id, false);
	if (err)
		return err;
	if (id->device || !polycm_addr_wildcard(&id->pub.route.addr.src_addr))
		return 0;
	return shadows_listen(id, backlog);
}

static int listen_on(struct polycm_id *id, int backlog)
{
	bool unplaced = polycm_id_is_unplaced(id);
	struct polycm_channel *chan;
	unsigned int old_backlog;
	int err = 0;

	/* Requests may come before listen() returns. */
	chan = polycm_channel_lock(id);
	old_backlog = id->backlog;
	id->backlog = chan && chan->native ? UINT_MAX : (unsigned int)limited(backlog);
	polycm_channel_unlock(chan);

	if (unplaced)
		err = prepare_unplaced(id, backlog);
	if (!err)
		err = polycm_need_module(id);
	if (!err)
		err = POLYCM_OP(id->module, listen, id->priv, backlog_for(id->module, backlog));
	if (err)
		goto err_undo;
	polycm_id_set_place(id, POLYCM_PLACED);
	err = polycm_id_update(id, false);
	if (!err)
		polycm_log_id(POLYCM_LOG_INFO, id, "listening (backlog %d)", backlog);
	return err;

err_undo:
	/* An id that is listening already goes on as before. */
	if (unplaced) {
		polycm_shadows_close(id);
		polycm_shadows_free(id);
	}
	chan = polycm_channel_lock(id);
	id->backlog = old_backlog;
	polycm_channel_unlock(chan);
	return err;
}

POLYCM_EXPORT int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	return POLYCM_CALL(polycm_exit, self, id, listen_on(self, backlog));
}

/* The QP that rdma_create_ep() was given attributes for. */
static int create_request_qp(struct polycm_id *listener, struct polycm_id *child)
{
	struct ibv_qp_init_attr attr;
	int err;

	if (!listener->ep || !listener->ep->has_qp_attr)
		return 0;
	attr = listener->ep->qp_attr;
	polycm_id_lock(child);
	err = polycm_qp_create(child, listener->ep->pd, &attr);
	polycm_id_unlock(child);
	return err;
}

/* On an error the event stays with the listener, as librdmacm has it. */
static int get_request(struct polycm_id *listener, struct rdma_cm_id **ret_pub, const void *caller)
{
	struct rdma_cm_event *event;
	int err;

	polycm_release_event(listener);
	err = polycm_get_event(listener->chan, &event);
	if (err)
		return err;

	err = polycm_event_errno(event);
	if (!err && event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		err = polycm_fail(-EINVAL, "%s is no request", polycm_event_name(event->event));
	if (!err) {
		polycm_id_made((struct polycm_id *)(void *)event->id, "rdma_get_request", caller);
		err = create_request_qp(listener, (struct polycm_id *)(void *)event->id);
	}
	if (err) {
		listener->pub.event = event;
		return err;
	}
	event->id->event = event;
	*ret_pub = event->id;
	return 0;
}

POLYCM_EXPORT int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	struct polycm_id *self = polycm_enter(listen);
	bool is_sync;
	int err;

	if (!self)
		return polycm_refused(__func__);

	/* Not under the lock, which would keep others out for as long as nothing comes. */
	is_sync = self->rsocket.sync;
	polycm_leave(self);
	if (!id)
		err = polycm_fail(-EINVAL, "nowhere to put the id");
	else if (!is_sync)
		err = polycm_fail(-EINVAL, "the id is not synchronous");
	else
		err = get_request(self, id, __builtin_return_address(0));
	return polycm_ret(__func__, self, err);
}
