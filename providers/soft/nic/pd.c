/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/pd.c - protection domains, thread domains, and parent domains, which are protection
 * domains with a thread domain and allocators of the program's.  A thread domain changes
 * nothing: all calls lock.
 */
#include "config.h"

#include <stdlib.h>

#include "context.h"
#include "pd.h"
#include "refuse.h"
#include "verbs.h"

#define QUEUE_ALIGNMENT 64u

struct ibv_pd *sim_alloc_pd(struct ibv_context *context)
{
	static const char call[] = "ibv_alloc_pd";
	static uint32_t next_handle;
	struct sim_pd *pd = nic_alloc(nic_device(context), call, sizeof(*pd));
	int err;

	if (!pd)
		return NULL;
	pd->pub.context = context;
	pd->object = pd->protection = pd;
	pd->handles.count = 1;
	sim_lock();
	err = nic_add(context, call, NIC_PD, &pd->node, NULL);
	if (!err)
		pd->pub.handle = next_handle++;
	sim_unlock();
	return err ? nic_fail(pd, err) : &pd->pub;
}

void nic_pd_free(struct sim_pd *pd)
{
	nic_remove(pd->pub.context, NIC_PD, &pd->node, NULL);
	free(pd);
}

/* A handle is the program's no longer.  Lock held. */
static void drop(struct sim_pd *handle)
{
	struct sim_pd *pd = handle->object;

	if (handle != pd)
		nic_pd_free(handle);
	if (nic_handle_dropped(&pd->handles))
		free(pd);
}

static void end(struct sim_pd *handle)
{
	struct sim_pd *pd = handle->object;

	if (nic_is_parent(&pd->pub))
		pd->protection->users--;
	if (pd->td)
		pd->td->users--;
	nic_remove(pd->pub.context, NIC_PD, &pd->node, NULL);
	pd->handles.destroyed = true;
	drop(handle);
}

int sim_dealloc_pd(struct ibv_pd *ibpd)
{
	static const char call[] = "ibv_dealloc_pd";
	const struct sim_device *device = nic_device(ibpd->context);
	const struct sim_pd *pd = nic_pd(ibpd)->object;
	int err = 0;

	sim_lock();
	if (pd->handles.destroyed)
		err = nic_refuse(device, call, ENOENT, "it was destroyed through another handle");
	else if (pd->users)
		err = nic_refuse(device, call, EBUSY, "MRs, QPs, CQs, SRQs, AHs, windows or parent "
				 "domains of it are left: %u", pd->users);
	else
		end(nic_pd(ibpd));
	sim_unlock();
	return err;
}

/* Lock held.  The PD of that number, in any context of the file; or NULL. */
static struct sim_pd *find(const struct sim_context *importing, uint32_t number)
{
	const struct sim_context *context;
	struct sim_pd *pd;

	nic_list_each(context, &nic_contexts, node) {
		if (context->file != importing->file)
			continue;
		nic_list_each(pd, &context->objects[NIC_PD], node)
			if (pd->object == pd && pd->protection == pd && pd->pub.handle == number)
				return pd;
	}
	return NULL;
}

struct ibv_pd *sim_import_pd(struct ibv_context *context, uint32_t number)
{
	static const char call[] = "ibv_import_pd";
	const struct sim_device *device = nic_device(context);
	struct sim_pd *handle = nic_alloc(device, call, sizeof(*handle)), *pd;

	if (!handle)
		return NULL;
	sim_lock();
	pd = find(nic_context(context), number);
	if (pd) {
		handle->pub.context = context;
		handle->pub.handle = number;
		handle->object = handle->protection = pd;
		pd->handles.count++;
		nic_enter(context, NIC_PD, &handle->node, NULL);
	}
	sim_unlock();
	return pd ? &handle->pub : nic_fail(handle, nic_refuse(device, call, ENOENT, NIC_NO_HANDLE,
							       "PD", number));
}

void sim_unimport_pd(struct ibv_pd *ibpd)
{
	struct sim_pd *handle = nic_pd(ibpd);

	sim_lock();
	if (nic_is_parent(ibpd) || (handle->object != handle && handle->users))
		(void)nic_refuse(nic_device(ibpd->context), "ibv_unimport_pd", EBUSY,
				 "it is a parent domain, or objects were made with this handle: %u",
				 handle->users);
	else
		drop(handle);
	sim_unlock();
}

/* --- Thread domains. --- */

struct ibv_td *sim_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	static const char call[] = "ibv_alloc_td";
	const struct sim_device *device = nic_device(context);
	struct sim_td *td;

	if (attr->comp_mask)
		return nic_fail(NULL, nic_refuse(device, call, EINVAL, "comp_mask is 0x%x, no attribute "
						 "is known", attr->comp_mask));
	td = nic_alloc(device, call, sizeof(*td));
	if (!td)
		return NULL;
	td->pub.context = context;
	sim_lock();
	nic_enter(context, NIC_TD, &td->node, NULL);
	sim_unlock();
	return &td->pub;
}

void nic_td_free(struct sim_td *td)
{
	nic_remove(td->pub.context, NIC_TD, &td->node, NULL);
	free(td);
}

int sim_dealloc_td(struct ibv_td *pub)
{
	struct sim_td *td = nic_container(pub, struct sim_td, pub);
	int err = 0;

	sim_lock();
	if (td->users)
		err = nic_refuse(nic_device(pub->context), "ibv_dealloc_td", EBUSY,
				 "parent domains of it are left: %u", td->users);
	else
		nic_td_free(td);
	sim_unlock();
	return err;
}

/* --- Parent domains. --- */

static const char parent_call[] = "ibv_alloc_parent_domain";

/* 0 or EINVAL. */
static int check_parent(struct ibv_context *context, const struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			       IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT | NIC_PARENT_UNPROTECTED;
	const struct sim_device *device = nic_device(context);

	if (attr->comp_mask & ~known)
		return nic_refuse(device, parent_call, EINVAL, "comp_mask is 0x%x, not all is known",
				  attr->comp_mask);
	if (!attr->pd || attr->pd->context != context)
		return nic_refuse(device, parent_call, EINVAL, "it needs a PD of the same context");
	if (nic_pd(attr->pd)->object->handles.destroyed)
		return nic_refuse(device, parent_call, EINVAL, "its PD was destroyed");
	if (nic_is_parent(attr->pd))
		return nic_refuse(device, parent_call, EINVAL, "its PD is a parent domain");
	if (attr->td && attr->td->context != context)
		return nic_refuse(device, parent_call, EINVAL, "the TD is of another context");
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS && (!attr->alloc || !attr->free))
		return nic_refuse(device, parent_call, EINVAL, "allocators are alloc and free");
	return 0;
}

struct ibv_pd *sim_alloc_parent_domain(struct ibv_context *context,
				       struct ibv_parent_domain_init_attr *attr)
{
	int err = check_parent(context, attr);
	struct sim_pd *pd;

	if (err)
		return nic_fail(NULL, err);
	pd = nic_alloc(nic_device(context), parent_call, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->pub.context = context;
	pd->pub.handle = attr->pd->handle;
	pd->object = pd;
	pd->handles.count = 1;
	pd->protection = nic_pd(attr->pd)->object;
	pd->td = attr->td ? nic_container(attr->td, struct sim_td, pub) : NULL;
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		pd->alloc = attr->alloc;
		pd->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		pd->pd_context = attr->pd_context;

	sim_lock();
	pd->protection->users++;
	if (pd->td)
		pd->td->users++;
	nic_enter(context, NIC_PD, &pd->node, NULL);
	sim_unlock();
	return &pd->pub;
}

/* --- Memory of queues. --- */

void nic_pd_released(struct ibv_pd *pd)
{
	bool locks = !sim_has_lock();	/* else a context is being closed */

	if (!nic_pd_allocates(pd))
		return;
	if (locks)
		sim_lock();
	nic_use_pd(pd, -1u);
	if (locks)
		sim_unlock();
}

int nic_queue_alloc(struct nic_queue *queue, enum nic_queue_type type, struct ibv_pd *ibpd,
		    size_t size)
{
	struct sim_pd *pd = nic_pd_allocates(ibpd) ? nic_pd(ibpd) : NULL;
	void *at = pd ? pd->alloc(ibpd, pd->pd_context, size, QUEUE_ALIGNMENT, type) :
		   IBV_ALLOCATOR_USE_DEFAULT;
	bool is_default = at == IBV_ALLOCATOR_USE_DEFAULT;

	queue->at = is_default ? malloc(size) : at;
	queue->from = is_default ? NULL : pd;
	return queue->at ? 0 : ENOMEM;
}

void nic_queue_free(struct nic_queue *queue, enum nic_queue_type type)
{
	struct sim_pd *pd = queue->from;

	if (!pd)
		free(queue->at);
	else if (queue->at && !sim_has_lock())
		pd->free(&pd->pub, pd->pd_context, queue->at, type);
	queue->at = NULL;
}
