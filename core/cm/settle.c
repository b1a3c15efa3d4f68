/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/settle.c - assigns a provider to an id, and copies what the provider knows
 * about the id (device, addresses, paths) into it.
 *
 * If there is only one provider, an id gets it when it is created.  If there are
 * several, the id's first address selects one.  A later address may select another
 * one, until the id is on a device.  The caller holds the id's lock.
 */
#include "config.h"
#include "id_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/addr.h"
#include "core/base/block.h"
#include "core/base/log.h"
#include "core/plugin/op.h"
#include "ret.h"

struct polycm_module *polycm_only_module(void)
{
	struct polycm_module *const *modules, *const *carriers;
	size_t num_carriers = polycm_registry_carriers(&carriers);
	size_t num = polycm_registry_selected(&modules);
	struct polycm_module *only = NULL;

	if (num == 1 && num_carriers == 1)
		return modules[0];
	for (size_t i = 0; i < num; i++) {
		if (POLYCM_OP(modules[i], match, modules[i]->ctx, NULL, NULL))
			continue;
		if (num_carriers == 1)
			return modules[i];
		if (only && only->carrier != modules[i]->carrier)
			return NULL;
		if (!only)
			only = modules[i];
	}
	return num_carriers == 1 ? carriers[0] : only;
}

int polycm_choose_module(const struct sockaddr *src, const struct sockaddr *dst,
			 struct polycm_module **ret_module)
{
	char src_text[POLYCM_ADDR_TEXT], dst_text[POLYCM_ADDR_TEXT];
	struct polycm_module *const *modules;
	size_t num = polycm_registry_selected(&modules);

	for (size_t i = 0; i < num; i++) {
		if (POLYCM_OP(modules[i], match, modules[i]->ctx, src, dst))
			continue;
		*ret_module = modules[i];
		return 0;
	}
	return polycm_fail(-ENODEV, "no provider has a device for %s > %s",
			   polycm_addr_text(src, src_text), polycm_addr_text(dst, dst_text));
}

void polycm_id_set_place(struct polycm_id *id, enum polycm_place place)
{
	struct polycm_channel *chan = polycm_channel_lock_held(id);

	id->place = place;
	polycm_channel_unlock(chan);
}

bool polycm_id_is_unplaced(struct polycm_id *id)
{
	struct polycm_module *const *carriers;
	struct polycm_channel *chan;
	bool unplaced;

	if (polycm_registry_carriers(&carriers) < 2)
		return false;
	chan = polycm_channel_lock_held(id);
	unplaced = id->place == POLYCM_UNPLACED;
	polycm_channel_unlock(chan);
	return unplaced;
}

static void set_module(struct polycm_id *id, struct polycm_module *module, bool closing)
{
	struct polycm_id *target = id->master ? id->master : id;
	struct polycm_channel *chan = polycm_channel_lock_held(target);

	id->module = module;
	id->closing = closing;
	polycm_channel_unlock(chan);
}

void polycm_id_unsettle(struct polycm_id *id)
{
	struct polycm_module *module = id->module;

	if (!module)
		return;
	set_module(id, module, true);
	module->ops.close(id->priv);
	module->ops.stop(id->priv);
	module->ops.free(id->priv);
	memset(id->priv, 0, polycm_registry_id_size());
	set_module(id, NULL, false);
}

static int replay_options(struct polycm_id *id, const struct polycm_saved_option *options)
{
	const struct polycm_saved_option *option;
	int err;

	for (option = options; option; option = option->next) {
		err = POLYCM_OP(id->module, set_option, id->priv, option->level, option->name,
				option->value, option->len);
		if (err)
			return polycm_fail(err, "provider %s refuses option %d of level %d",
					   id->module->name, option->name, option->level);
	}
	return 0;
}

int polycm_id_settle(struct polycm_id *id, struct polycm_module *module)
{
	const struct polycm_id *visible = id->master ? id->master : id;
	struct polycm_open how = {
		.size = sizeof(how),
		.ps = id->pub.ps,
		.qp_type = id->pub.qp_type,
	};
	int err;

	if (id->module && id->module->carrier == module->carrier) {
		set_module(id, module, false);
		return 0;
	}
	polycm_id_unsettle(id);

	err = polycm_channel_area(visible->chan, module, &how.channel_priv);
	if (err)
		return err;

	set_module(id, module, false);
	err = POLYCM_OP(module, open, module->ctx, id, id->priv, &how);
	if (!err)
		err = replay_options(id, visible->options);
	if (err)
		polycm_id_unsettle(id);
	return err;
}

/* Open the device's context and default PD, which an id of librdmacm contains. */
static int open_device(struct polycm_device *device, struct ibv_pd **ret_pd)
{
	int err = polycm_device_open(device);

	if (!err)
		err = polycm_device_pd(device, ret_pd);
	if (err && err != -ENOMEM)
		return polycm_fail(-ENODEV, "device %s cannot be opened: %s", device->name,
				   strerror(-err));
	return err;
}

void polycm_id_free_paths(struct polycm_id *id)
{
	if (id->pub.route.path_rec && id->pub.route.path_rec != &id->path)
		free(id->pub.route.path_rec);
}

static int take_paths(struct polycm_id *id, const struct polycm_route_info *info)
{
	uint32_t num = info->num_paths < POLYCM_MAX_PATHS ? info->num_paths : POLYCM_MAX_PATHS;
	struct ibv_sa_path_rec *paths = NULL;

	if (num == 1) {
		id->path = info->path[0];
		paths = &id->path;
	} else if (num) {
		paths = malloc(num * sizeof(*paths));
		if (!paths)
			return -ENOMEM;
		memcpy(paths, info->path, num * sizeof(*paths));
	}
	polycm_id_free_paths(id);
	id->pub.route.path_rec = paths;
	id->pub.route.num_paths = (int)num;
	return 0;
}

/* The channel's lock is held, because log lines of other threads read the addresses. */
static void take_addresses(struct polycm_id *id, const struct polycm_route_info *info)
{
	struct rdma_addr *addr = &id->pub.route.addr;

	if (info->src.ss_family)
		polycm_copy(&addr->src_storage, &info->src, sizeof(info->src));
	if (info->dst.ss_family)
		polycm_copy(&addr->dst_storage, &info->dst, sizeof(info->dst));
	if (!info->device)
		return;
	addr->addr.ibaddr.sgid = info->sgid;
	addr->addr.ibaddr.dgid = info->dgid;
	addr->addr.ibaddr.pkey = info->pkey;
}

static void take_device(struct polycm_id *id, const struct polycm_route_info *info,
			struct ibv_pd *pd)
{
	if (!info->device)
		return;
	if (id->pub.verbs != info->device->verbs && !id->pub.qp)
		id->pub.pd = pd;
	id->pub.verbs = info->device->verbs;
	id->pub.port_num = info->port_num;
	id->place = POLYCM_PLACED;
	id->device = info->device;
	__atomic_store_n(&id->pathless, info->device->transport->protocol == POLYCM_PROTO_MPA,
			 __ATOMIC_RELAXED);
	/* Providers over the kernel share an id: from now on the device's provider has it. */
	if (id->module->carrier == info->device->module->carrier)
		id->module = info->device->module;
}

int polycm_id_update(struct polycm_id *id, bool with_paths)
{
	struct polycm_device *old = id->device;
	struct polycm_route_info info;
	struct polycm_channel *chan;
	struct ibv_pd *pd = NULL;
	bool is_new;
	int err;

	/* The array of paths is not cleared: only the first num_paths are read. */
	polycm_clear(&info, offsetof(struct polycm_route_info, path));
	info.size = sizeof(info);
	err = POLYCM_OP(id->module, query, id->priv, &info);
	if (err)
		return err;
	is_new = info.device && info.device != old;
	if (is_new && !polycm_device_get(info.device))
		return polycm_fail(-ENODEV, "the device was removed meanwhile");
	if (info.device)
		err = open_device(info.device, &pd);
	if (!err && with_paths)
		err = take_paths(id, &info);
	if (err)
		goto err_put;

	chan = polycm_channel_lock_held(id);
	take_addresses(id, &info);
	take_device(id, &info, pd);
	polycm_channel_unlock(chan);
	if (is_new && old)
		polycm_device_put(old);
	return 0;

err_put:
	if (is_new)
		polycm_device_put(info.device);
	return err;
}

int polycm_need_module(const struct polycm_id *id)
{
	if (id->module)
		return 0;
	return polycm_fail(-EINVAL, "the id has neither been bound nor resolved an address");
}

int polycm_need_device(const struct polycm_id *id)
{
	if (id->device)
		return 0;
	return polycm_fail(-EINVAL, "the id is not on a device yet");
}

const struct polycm_transport *polycm_id_transport(const struct polycm_id *id)
{
	if (id->device)
		return id->device->transport;
	return id->module ? id->module->desc.transport : NULL;
}

void polycm_options_free(struct polycm_id *id)
{
	struct polycm_saved_option *option;

	while ((option = id->options)) {
		id->options = option->next;
		free(option);
	}
}
