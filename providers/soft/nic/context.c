/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/context.c - opening and closing a device; the tables of ibv_* calls that
 * the core, and the inline functions of <infiniband/verbs.h>, call through; the
 * start and the end of the NIC.
 *
 * Closing a context takes all objects that the program left behind with it,
 * as the kernel does when the descriptor of a real device is closed.
 */
#include "config.h"

#include <stdlib.h>
#include <unistd.h>

#include "providers/soft/fabric/trace_lines.h"
#include "providers/soft/fabric/world.h"
#include "providers/soft/link/link.h"
#include "context.h"
#include "device.h"
#include "direct.h"
#include "mr.h"
#include "qp.h"
#include "rc_internal.h"
#include "refuse.h"
#include "sq.h"
#include "verbs.h"

struct nic_list nic_contexts = { &nic_contexts, &nic_contexts };

const struct polycm_verbs sim_verbs = {
	.size = sizeof(sim_verbs),
	.open_device = sim_open_device,
	.close_device = sim_close_device,
	.get_async_event = sim_get_async_event,
	.ack_async_event = sim_ack_async_event,
	.query_device = sim_query_device,
	.query_port = sim_query_port,
	.query_gid = sim_query_gid,
	.query_gid_ex = sim_query_gid_ex,
	.query_gid_table = sim_query_gid_table,
	.query_pkey = sim_query_pkey,
	.get_pkey_index = sim_get_pkey_index,
	.read_sysfs_file = sim_read_sysfs_file,
	.alloc_pd = sim_alloc_pd,
	.dealloc_pd = sim_dealloc_pd,
	.reg_mr = sim_reg_mr,
	.rereg_mr = sim_rereg_mr,
	.dereg_mr = sim_dereg_mr,
	.create_comp_channel = sim_create_comp_channel,
	.destroy_comp_channel = sim_destroy_comp_channel,
	.create_cq = sim_create_cq,
	.resize_cq = sim_resize_cq,
	.destroy_cq = sim_destroy_cq,
	.get_cq_event = sim_get_cq_event,
	.ack_cq_events = sim_ack_cq_events,
	.create_srq = sim_create_srq,
	.modify_srq = sim_modify_srq,
	.query_srq = sim_query_srq,
	.destroy_srq = sim_destroy_srq,
	.create_qp = sim_create_qp,
	.qp_to_qp_ex = sim_qp_to_qp_ex,
	.query_qp = sim_query_qp,
	.modify_qp = sim_modify_qp,
	.destroy_qp = sim_destroy_qp,
	.create_ah = sim_create_ah,
	.destroy_ah = sim_destroy_ah,
	.attach_mcast = sim_attach_mcast,
	.detach_mcast = sim_detach_mcast,
	.set_ece = sim_set_ece,
	.query_ece = sim_query_ece,
	.import_device = sim_import_device,
	.import_pd = sim_import_pd,
	.unimport_pd = sim_unimport_pd,
	.import_mr = sim_import_mr,
	.unimport_mr = sim_unimport_mr,
	.import_dm = sim_import_dm,
	.unimport_dm = sim_unimport_dm,
};

static const struct ibv_context_ops context_ops = {
	.alloc_mw = sim_alloc_mw,
	.bind_mw = sim_bind_mw,
	.dealloc_mw = sim_dealloc_mw,
	.poll_cq = sim_poll_cq,
	.req_notify_cq = sim_req_notify_cq,
	.post_srq_recv = sim_post_srq_recv,
	.post_send = sim_post_send,
	.post_recv = sim_post_recv,
};

static void fill_tables(struct verbs_context *verbs, const struct sim_device *device)
{
	nic_fill_absent(verbs);
	verbs->query_port = sim_query_port_ex;
	verbs->query_device_ex = sim_query_device_ex;
	verbs->query_rt_values = sim_query_rt_values;
	verbs->create_qp_ex = sim_create_qp_ex;
	verbs->advise_mr = sim_advise_mr;
	verbs->create_srq_ex = sim_create_srq_ex;
	verbs->get_srq_num = sim_get_srq_num;
	verbs->create_cq_ex = sim_create_cq_ex;
	verbs->open_xrcd = sim_open_xrcd;
	verbs->close_xrcd = sim_close_xrcd;
	verbs->open_qp = sim_open_qp;
	verbs->alloc_td = sim_alloc_td;
	verbs->dealloc_td = sim_dealloc_td;
	verbs->alloc_parent_domain = sim_alloc_parent_domain;
	verbs->alloc_dm = sim_alloc_dm;
	verbs->free_dm = sim_free_dm;
	verbs->reg_dm_mr = sim_reg_dm_mr;
	verbs->sz = sizeof(*verbs);
	verbs->context.ops = context_ops;
	verbs->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	verbs->context.num_comp_vectors = nic_comp_vectors(device);
}

static struct sim_device *device_of(struct ibv_device *device)
{
	return nic_container(device, struct sim_device, vdev.device);
}

/* Not in the list yet.  NULL: errno is set. */
static struct sim_context *context_new(struct ibv_device *ibdev, const char *call)
{
	struct sim_device *device = device_of(ibdev);
	struct sim_context *context = nic_alloc(device, call, sizeof(*context));
	int err;

	if (!context)
		return NULL;
	err = nic_notify_open(&context->notify, &context->verbs.context.async_fd);
	if (err)
		return nic_fail(context, nic_refuse(device, call, err, "no descriptor for its events"));
	context->device = device;
	for (enum nic_kind kind = 0; kind < NIC_KINDS; kind++)
		nic_list_init(&context->objects[kind]);
	nic_list_init(&context->events);
	fill_tables(&context->verbs, device);
	context->verbs.context.device = ibdev;
	pthread_mutex_init(&context->verbs.context.mutex, NULL);
	return context;
}

/* Lock held.  The file is that of another context, or NULL.  0 or ENODEV. */
static int context_enter(struct sim_context *context, const char *call, struct sim_context *file)
{
	/* Those that are entered are told when it goes. */
	if (context->device->removed)
		return nic_refuse(context->device, call, ENODEV, "the device was removed");
	context->file = file ?: context;
	context->file->openings++;
	nic_list_add(&nic_contexts, &context->node);
	context->device->contexts++;
	return 0;
}

static struct ibv_context *context_opened(struct sim_context *context, int err)
{
	if (!err)
		return &context->verbs.context;
	nic_notify_close(&context->notify);
	return nic_fail(context, err);
}

struct ibv_context *sim_open_device(struct ibv_device *device)
{
	static const char call[] = "ibv_open_device";
	struct sim_context *context = context_new(device, call);
	int err;

	if (!context)
		return NULL;
	/* It stands for the kernel's file: what a program duplicates, and imports again. */
	context->verbs.context.cmd_fd = context->notify.fd;
	sim_lock();
	err = context_enter(context, call, NULL);
	sim_unlock();
	return context_opened(context, err);
}

/* Lock held.  The context whose descriptor it is, or a duplicate of that; or NULL. */
static struct sim_context *find_file(const struct sim_device *device, int fd)
{
	struct sim_context *context;

	nic_list_each(context, &nic_contexts, node)
		if (context->device == device && !context->closed &&
		    nic_notify_same(fd, context->verbs.context.cmd_fd))
			return context->file;
	return NULL;
}

struct ibv_context *sim_import_device(struct ibv_device *ibdev, int cmd_fd)
{
	static const char call[] = "ibv_import_device";
	struct sim_context *context, *file;
	bool found;
	int err;

	sim_lock();
	found = find_file(device_of(ibdev), cmd_fd) != NULL;
	sim_unlock();
	context = found ? context_new(ibdev, call) : nic_fail(NULL, ENODEV);
	if (!context)
		return NULL;
	context->verbs.context.cmd_fd = cmd_fd;
	sim_lock();
	file = find_file(context->device, cmd_fd);
	err = file ? context_enter(context, call, file) : ENODEV;
	sim_unlock();
	return context_opened(context, err);
}

/* It gets no more events, and its descriptors are closed; its objects stay. */
static void context_end(struct sim_context *context)
{
	if (context->closed)
		return;
	nic_async_forget(context, NULL);
	nic_notify_close(&context->notify);
	if (context->file != context)
		close(context->verbs.context.cmd_fd);
	context->device->contexts--;
	context->closed = true;
}

static void context_free(struct sim_context *context)
{
	context_end(context);
	nic_list_del(&context->node);
	pthread_mutex_destroy(&context->verbs.context.mutex);
	free(context);
}

/* Is it of that file (NULL: all)? */
static bool is_of(const struct sim_context *context, const struct sim_context *file)
{
	return !file || context->file == file;
}

/* Take each object of a kind off its list. */
#define FREE_ALL(file, kind, type, free_one)                                                       \
	nic_list_each(context, &nic_contexts, node)                                                \
		while (is_of(context, file) && !nic_list_empty(&context->objects[kind]))           \
			free_one(nic_container(context->objects[kind].next, type, node))

/*
 * The objects of a file, or all (NULL).  What refers to others goes first, in all contexts: an
 * imported handle leads to the object of another one, which may be older or newer.
 */
static void free_objects(const struct sim_context *file)
{
	struct sim_context *context;

	FREE_ALL(file, NIC_QP, struct sim_qp, nic_qp_free);
	FREE_ALL(file, NIC_SRQ, struct sim_srq, nic_srq_free);
	FREE_ALL(file, NIC_XRCD, struct sim_xrcd, nic_xrcd_free);
	FREE_ALL(file, NIC_CQ, struct sim_cq, nic_cq_free);
	FREE_ALL(file, NIC_CHANNEL, struct sim_channel, nic_channel_free);
	FREE_ALL(file, NIC_AH, struct sim_ah, nic_ah_free);
	FREE_ALL(file, NIC_MW, struct sim_mw, nic_mw_free);
	FREE_ALL(file, NIC_MR, struct sim_mr, nic_mr_free);
	FREE_ALL(file, NIC_DM, struct sim_dm, nic_dm_free);
	FREE_ALL(file, NIC_PD, struct sim_pd, nic_pd_free);
	FREE_ALL(file, NIC_TD, struct sim_td, nic_td_free);
}

static void free_contexts(const struct sim_context *file)
{
	free_objects(file);
	/* The first one of a file, which the others name, last. */
	for (struct nic_list *node = nic_contexts.prev, *before; node != &nic_contexts; node = before) {
		struct sim_context *context = nic_container(node, struct sim_context, node);

		before = node->prev;
		if (is_of(context, file))
			context_free(context);
	}
}

int sim_close_device(struct ibv_context *ibcontext)
{
	struct sim_context *context = nic_context(ibcontext);

	sim_lock();
	if (--context->file->openings)
		context_end(context);
	else
		free_contexts(context->file);
	sim_unlock();
	return 0;
}

void sim_nic_start(void)
{
	static struct sim_world_listener listener = {
		.port_event = sim_nic_port_event,
		.device_left = sim_nic_device_removed,
	};

	nic_direct_start();
	sim_world_listen(&listener);
	sim_link_set_handler(SIM_PACKET_RC, rc_receive);
	sim_link_set_rejecter(SIM_PACKET_RC, rc_reject_by_rule);
	sim_link_set_placer(SIM_PACKET_RC, rc_place);
	sim_link_set_handler(SIM_PACKET_UD, ud_receive);
	sim_link_has_read = rc_ack_read;
	sim_engine_hooks.settle = rc_ack_all;
	sim_trace_timers(rc_timer, nic_describe_timer);
}

void sim_nic_stop(void)
{
	free_contexts(NULL);
	nic_direct_stop();
	nic_mr_stop();
	nic_qpn_stop();
}
