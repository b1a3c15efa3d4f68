/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/id.c - ids: created, described in log lines, and destroyed in the order that
 * providers rely on: close, stop, wait for acks, free.
 */
#include "config.h"
#include "id_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "core/base/addr.h"
#include "core/base/export.h"
#include "core/plugin/layers.h"
#include "core/base/log.h"
#include "core/plugin/op.h"
#include "ret.h"

#define AREA_ALIGNMENT 16

static size_t num_ids;			/* atomic; children and shadows too */

void *polycm_block_alloc(size_t size)
{
	void *block;

	if (_Alignof(max_align_t) >= AREA_ALIGNMENT)
		return calloc(1, size);

	size = (size + AREA_ALIGNMENT - 1) & ~(size_t)(AREA_ALIGNMENT - 1);
	block = aligned_alloc(AREA_ALIGNMENT, size);
	if (block)
		memset(block, 0, size);
	return block;
}

/*
 * Blocks of ids, which a program with one thread gives back and takes again.
 * What is reserved for the events of an id stays with its block.
 */
static struct polycm_id *spare;		/* linked by next */
static unsigned int num_spare;

static struct polycm_id *make_block(size_t size)
{
	struct polycm_id *id = polycm_block_alloc(size);

	if (id && polycm_ev_reserve(POLYCM_ID_EVENTS)) {
		free(id);
		return NULL;
	}
	return id;
}

static struct polycm_id *get_block(void)
{
	size_t size = sizeof(struct polycm_id) + polycm_registry_id_size();
	struct polycm_id *id = spare;

	if (!id || !polycm_alone())
		return make_block(size);
	spare = id->next;
	num_spare--;
	memset(id, 0, size);
	return id;
}

static void put_block(struct polycm_id *id)
{
	if (!polycm_may_keep(num_spare)) {
		polycm_ev_unreserve(POLYCM_ID_EVENTS);
		free(id);
		return;
	}
	id->next = spare;
	spare = id;
	num_spare++;
}

int polycm_id_alloc(enum rdma_port_space ps, enum ibv_qp_type qp_type, struct polycm_id **ret_id)
{
	struct polycm_id *id = get_block();

	if (!id)
		return -ENOMEM;
	id->pub.ps = ps;
	id->pub.qp_type = qp_type;
	(void)polycm_count_up(&num_ids);
	*ret_id = id;
	return 0;
}

void polycm_id_free(struct polycm_id *id)
{
	if (id->device)
		polycm_device_put(id->device);
	if (id->options)
		polycm_options_free(id);
	if (id->ep)
		free(id->ep);
	if (id->found)
		id->free_found(id->found);
	polycm_id_free_paths(id);
	if (id->live_reserved)
		polycm_live_unreserve(&polycm_live_objects, id);
	put_block(id);
	(void)polycm_count_down(&num_ids);
}

int polycm_id_create(struct polycm_channel *chan, enum rdma_port_space ps, enum ibv_qp_type qp_type,
		     void *context, struct polycm_id **ret_id)
{
	struct polycm_module *only = polycm_only_module();
	bool sync = !chan;
	struct polycm_id *id;
	int err;

	if (ps != RDMA_PS_TCP && ps != RDMA_PS_UDP && ps != RDMA_PS_IB && ps != RDMA_PS_IPOIB)
		return polycm_fail(-EINVAL, "port space 0x%x is none", (unsigned int)ps);
	err = polycm_id_alloc(ps, qp_type, &id);
	if (err)
		return err;
	if (sync) {
		err = polycm_channel_create(true, &chan);
		if (err)
			goto err_free;
	}

	id->rsocket.sync = sync;
	id->announced = true;
	id->accepted = true;
	id->place = only ? POLYCM_PLACED : POLYCM_UNPLACED;
	id->pub.context = context;
	id->pub.channel = &chan->pub;
	err = polycm_live_add(&polycm_live_objects, id);
	if (err)
		goto err_destroy_channel;
	polycm_channel_add_id(chan, id);

	err = only ? polycm_id_settle(id, only) : 0;
	if (err)
		goto err_remove;
	*ret_id = id;
	return 0;

err_remove:
	polycm_channel_remove_id(id);
	polycm_live_remove(&polycm_live_objects, id);
err_destroy_channel:
	if (sync)
		polycm_channel_destroy(chan);
err_free:
	polycm_id_free(id);
	return err;
}

static void stop_at_provider(struct polycm_id *id)
{
	if (!id->module)
		return;
	id->module->ops.close(id->priv);
	id->module->ops.stop(id->priv);
}

void polycm_shadows_close(struct polycm_id *id)
{
	struct polycm_channel *chan;
	struct polycm_id *shadow;

	if (!id->shadows)
		return;
	chan = polycm_channel_lock(id);
	LL_FOREACH2(id->shadows, shadow, next_shadow)
		shadow->closing = true;
	polycm_channel_unlock(chan);

	LL_FOREACH2(id->shadows, shadow, next_shadow)
		stop_at_provider(shadow);
}

void polycm_shadows_free(struct polycm_id *id)
{
	struct polycm_id *shadow;

	while ((shadow = id->shadows)) {
		id->shadows = shadow->next_shadow;
		if (shadow->module)
			shadow->module->ops.free(shadow->priv);
		polycm_id_free(shadow);
	}
}

/*
 * With its channel locked, which this unlocks: nothing is posted for the id any
 * more, and its provider's threads are out of it.  false: nor does anything
 * wait for it that was posted before.
 */
static bool close_and_stop(struct polycm_id *id, struct polycm_channel *chan)
{
	bool may_wait = chan && (chan->events || id->held);

	id->closing = true;
	polycm_channel_unlock(chan);

	polycm_shadows_close(id);
	stop_at_provider(id);
	polycm_answer_stop(id);
	return may_wait;
}

static void free_at_provider(struct polycm_id *id)
{
	polycm_shadows_free(id);
	if (id->module)
		id->module->ops.free(id->priv);
	id->module = NULL;
}

void polycm_id_destroy(struct polycm_id *id)
{
	struct polycm_channel *chan;
	bool may_wait;

	polycm_groups_leave(id);
	may_wait = close_and_stop(id, polycm_channel_lock_held(id));
	polycm_id_unlock(id);

	if (may_wait)
		polycm_ev_drop(id, NULL);
	polycm_release_event(id);
	polycm_ev_wait_acked(id, NULL, "rdma_destroy_id");

	polycm_id_lock(id);
	chan = polycm_channel_lock_held(id);
	if (chan)
		polycm_channel_remove_id_locked(chan, id);
	polycm_channel_unlock(chan);
	polycm_orphan_remove(id);
	polycm_id_unlock(id);
	polycm_groups_free(id);
	free_at_provider(id);
	if (id->rsocket.sync && chan)
		polycm_channel_destroy(chan);
	polycm_wait_until_left(id);
	polycm_id_free(id);
}

static void take_off_channel(struct polycm_id *id)
{
	/* A thread may be destroying it, and is waiting for acks. */
	if (!id->closing)
		(void)close_and_stop(id, polycm_channel_lock(id));
	polycm_ev_drop(id, NULL);
	polycm_channel_remove_id(id);
	free_at_provider(id);
}

void polycm_id_end_child(struct polycm_id *child)
{
	polycm_id_lock(child);
	take_off_channel(child);
	/* Its channel may have been destroyed while it was taken. */
	polycm_orphan_remove(child);
	polycm_id_unlock(child);
	polycm_id_free(child);
}

void polycm_id_abandon(struct polycm_id *id)
{
	take_off_channel(id);
	if (!id->stranded)
		polycm_orphan_add(id);
	polycm_id_unlock(id);
}

int polycm_child_create(struct polycm_id *listener, struct polycm_id **ret_child, void **ret_priv)
{
	struct polycm_id *target = listener->master ? listener->master : listener;
	struct polycm_channel *chan, *home = polycm_wait_channel();
	struct polycm_id *child;
	int err;

	err = polycm_id_alloc(target->pub.ps, target->pub.qp_type, &child);
	if (err)
		return err;
	/* Its request must not fail for memory when the program takes it. */
	err = polycm_live_reserve(&polycm_live_objects, child);
	if (err)
		goto err_free;
	child->live_reserved = true;
	err = polycm_live_add(&polycm_live_children, child);
	if (err)
		goto err_free;

	chan = polycm_channel_lock(target);
	if (!chan || target->closing || listener->closing) {
		polycm_channel_unlock(chan);
		(void)polycm_live_remove(&polycm_live_children, child);
		err = -ECANCELED;
		goto err_free;
	}
	/* What comes while the listener moves is where it was fetched. */
	if (!home)
		home = chan;
	child->listener = target;
	child->knows_peer = true;
	child->module = listener->module;
	child->place = POLYCM_PLACED;
	child->pub.channel = &home->pub;
	if (home == chan)
		polycm_channel_add_id_locked(chan, child);
	polycm_channel_unlock(chan);
	if (home != chan)
		polycm_channel_add_id(home, child);

	if (polycm_has_layers())
		polycm_layers_begin(child);
	*ret_child = child;
	*ret_priv = child->priv + polycm_layers_size();
	return 0;

err_free:
	polycm_id_free(child);
	return err;
}

void polycm_child_destroy(struct polycm_id *child)
{
	if (!polycm_live_remove(&polycm_live_children, child)) {
		polycm_misuse_at(__builtin_return_address(0), "child_destroy",
				 "no child of the provider's: it was destroyed before, or its "
				 "CONNECT_REQUEST was posted");
		return;
	}
	if (polycm_has_layers())
		polycm_layers_end(child);
	polycm_channel_remove_id(child);
	polycm_id_free(child);
}

/* Which of those over the kernel has it, is known with its device. */
static const char *carrier_name(const struct polycm_id *id)
{
	if (!id->module)
		return "-";
	return polycm_module_is_kernel(id->module) && !id->device ? "kernel" : id->module->name;
}

void polycm_id_describe_locked(const struct polycm_id *id, char *buf, size_t size)
{
	char src[POLYCM_ADDR_TEXT], dst[POLYCM_ADDR_TEXT];

	(void)snprintf(buf, size, "%s %s %s > %s", carrier_name(id),
		       id->device ? id->device->name : "-",
		       polycm_addr_text(&id->pub.route.addr.src_addr, src),
		       polycm_addr_text(&id->pub.route.addr.dst_addr, dst));
}

void polycm_id_describe(const struct polycm_id *id, char *buf, size_t size)
{
	/* The lock is found through the id but changes nothing of it. */
	struct polycm_id *visible = id->master ? id->master : (struct polycm_id *)(uintptr_t)id;
	struct polycm_channel *chan = polycm_channel_lock(visible);

	polycm_id_describe_locked(id, buf, size);
	polycm_channel_unlock(chan);
}

void polycm_live_counts(struct polycm_live_counts *ret_counts)
{
	ret_counts->ids = __atomic_load_n(&num_ids, __ATOMIC_RELAXED);
	ret_counts->channels = polycm_channels_live();
	ret_counts->events = polycm_events_live();
}

static int create_id(struct rdma_event_channel *channel, struct rdma_cm_id **ret_pub, void *context,
		     enum rdma_port_space ps, const void *caller)
{
	struct polycm_channel *chan = polycm_channel_of(channel);
	bool datagrams = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB;
	struct polycm_id *id;
	int err;

	err = polycm_start();
	if (err)
		return err;
	if (!ret_pub)
		return polycm_fail(-EINVAL, "nowhere to put the id");
	if (channel && !chan)
		return polycm_fail(-EINVAL, "no channel of rdma_create_event_channel");
	if (chan && polycm_channel_inherited(chan))
		return polycm_fail(-EACCES, "the channel is of the process that this one was forked "
				   "from");

	err = polycm_id_create(chan, ps, datagrams ? IBV_QPT_UD : IBV_QPT_RC, context, &id);
	if (err)
		return err;
	polycm_id_made(id, "rdma_create_id", caller);
	*ret_pub = &id->pub;
	return 0;
}

POLYCM_EXPORT int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id,
				 void *context, enum rdma_port_space ps)
{
	polycm_why_clear();
	return polycm_ret("rdma_create_id", NULL,
			  create_id(channel, id, context, ps, __builtin_return_address(0)));
}

POLYCM_EXPORT int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct polycm_id *self = (struct polycm_id *)(void *)id;
	int err;

	polycm_why_clear();
	err = polycm_id_take(self);
	if (err)
		return polycm_ret("rdma_destroy_id", err == -EINVAL ? NULL : self, err);
	polycm_id_destroy(self);
	return 0;
}

__attribute__((constructor)) static void describe_in_log(void)
{
	polycm_log_describe = polycm_id_describe;
}
