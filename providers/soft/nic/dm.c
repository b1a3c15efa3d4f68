/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/dm.c - memory of the device.  It is ordinary memory that the program has no address of:
 * only copies and zero-based regions reach it.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "context.h"
#include "device.h"
#include "mr.h"
#include "refuse.h"
#include "verbs.h"

#define ALIGNMENT 64u
#define WORD_MASK 3u		/* what a card moves at once, and no part of it */

static const char alloc_call[] = "ibv_alloc_dm";

static struct sim_dm *dm_of(struct ibv_dm *dm)
{
	return nic_container(dm, struct sim_dm, pub);
}

/* Lock held. */
static size_t used_of(const struct sim_device *device)
{
	const struct sim_context *context;
	const struct sim_dm *dm;
	size_t used = 0;

	nic_list_each(context, &nic_contexts, node) {
		if (context->device != device)
			continue;
		nic_list_each(dm, &context->objects[NIC_DM], node)
			used += dm->object == dm ? dm->length : 0;
	}
	return used;
}

/* 0 or an errno. */
static int check_new(const struct sim_device *device, const struct ibv_alloc_dm_attr *attr)
{
	size_t max = nic_max_dm_size(device);

	if (!max)
		return nic_refuse(device, alloc_call, EOPNOTSUPP, "the device has no memory for it");
	if (attr->comp_mask)
		return nic_refuse(device, alloc_call, EINVAL, "comp_mask is 0x%x, no attribute is known",
				  attr->comp_mask);
	if (!attr->length || attr->length > max)
		return nic_refuse(device, alloc_call, EINVAL, "length is %zu, the device has 1 to %zu",
				  attr->length, max);
	if (attr->log_align_req > 31 || (size_t)1 << attr->log_align_req > max)
		return nic_refuse(device, alloc_call, EINVAL, "log_align_req is %u, the device has %zu "
				  "bytes", attr->log_align_req, max);
	return 0;
}

/* The program's side: 0, EFAULT or EINVAL. */
static int check_copy(const struct sim_dm *dm, const char *call, uint64_t offset, size_t length)
{
	const struct sim_device *device = nic_device(dm->pub.context);

	if (dm->handles.destroyed)
		return nic_refuse(device, call, EFAULT, "it was destroyed through another handle");
	if (offset > dm->length || length > dm->length - offset)
		return nic_refuse(device, call, EFAULT, "%zu bytes at %llu, it has %zu", length,
				  (unsigned long long)offset, dm->length);
	if ((offset | length) & WORD_MASK)
		return nic_refuse(device, call, EINVAL, "%zu bytes at %llu are not words of 4 bytes",
				  length, (unsigned long long)offset);
	return 0;
}

static int copy_to(struct ibv_dm *pub, uint64_t offset, const void *from, size_t length)
{
	struct sim_dm *dm = dm_of(pub)->object;
	int err;

	sim_lock();
	err = check_copy(dm, "ibv_memcpy_to_dm", offset, length);
	if (!err && length)
		memcpy(dm->memory + offset, from, length);
	sim_unlock();
	return err;
}

static int copy_from(void *to, struct ibv_dm *pub, uint64_t offset, size_t length)
{
	const struct sim_dm *dm = dm_of(pub)->object;
	int err;

	sim_lock();
	err = check_copy(dm, "ibv_memcpy_from_dm", offset, length);
	if (!err && length)
		memcpy(to, dm->memory + offset, length);
	sim_unlock();
	return err;
}

/* Lock held.  0 or an errno. */
static int enter(struct ibv_context *context, struct sim_dm *dm)
{
	const struct sim_device *device = nic_device(context);
	size_t max = nic_max_dm_size(device), used = used_of(device);

	if (device->removed)
		return nic_refuse(device, alloc_call, EIO, "the device was removed");
	if (dm->length > max - used)
		return nic_refuse(device, alloc_call, ENOMEM, "length is %zu, and %zu of %zu bytes are "
				  "in use", dm->length, used, max);
	nic_enter(context, NIC_DM, &dm->node, NULL);
	return 0;
}

struct ibv_dm *sim_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	static uint32_t next_handle;
	const struct sim_device *device = nic_device(context);
	size_t alignment = ALIGNMENT;
	struct sim_dm *dm;
	int err = check_new(device, attr);

	if (err)
		return nic_fail(NULL, err);
	dm = nic_alloc(device, alloc_call, sizeof(*dm));
	if (!dm)
		return NULL;
	if (alignment < (size_t)1 << attr->log_align_req)
		alignment = (size_t)1 << attr->log_align_req;
	dm->length = attr->length;
	if (posix_memalign((void **)(void *)&dm->memory, alignment, dm->length))
		return nic_fail(dm, nic_no_memory(device, alloc_call));
	memset(dm->memory, 0, dm->length);
	dm->object = dm;
	dm->handles.count = 1;
	dm->pub = (struct ibv_dm) {
		.context = context, .memcpy_to_dm = copy_to, .memcpy_from_dm = copy_from,
	};

	sim_lock();
	err = enter(context, dm);
	if (!err)
		dm->pub.handle = next_handle++;
	sim_unlock();
	if (!err)
		return &dm->pub;
	free(dm->memory);
	return nic_fail(dm, err);
}

static void leave(struct sim_dm *dm)
{
	nic_remove(dm->pub.context, NIC_DM, &dm->node, NULL);
	free(dm->memory);
	dm->memory = NULL;
}

void nic_dm_free(struct sim_dm *dm)
{
	leave(dm);
	free(dm);
}

/* A handle is the program's no longer.  Lock held. */
static void drop(struct sim_dm *handle)
{
	struct sim_dm *dm = handle->object;

	if (handle != dm)
		nic_dm_free(handle);
	if (nic_handle_dropped(&dm->handles))
		free(dm);
}

int sim_free_dm(struct ibv_dm *pub)
{
	static const char call[] = "ibv_free_dm";
	const struct sim_device *device = nic_device(pub->context);
	struct sim_dm *dm = dm_of(pub)->object;
	int err = 0;

	sim_lock();
	if (dm->handles.destroyed) {
		err = nic_refuse(device, call, ENOENT, "it was destroyed through another handle");
	} else if (dm->users) {
		err = nic_refuse(device, call, EBUSY, "regions of it are left: %u", dm->users);
	} else {
		leave(dm);
		dm->handles.destroyed = true;
		drop(dm_of(pub));
	}
	sim_unlock();
	return err;
}

/* Lock held.  That of the number, in any context of the file; or NULL. */
static struct sim_dm *find(const struct sim_context *importing, uint32_t number)
{
	const struct sim_context *context;
	struct sim_dm *dm;

	nic_list_each(context, &nic_contexts, node) {
		if (context->file != importing->file)
			continue;
		nic_list_each(dm, &context->objects[NIC_DM], node)
			if (dm->object == dm && dm->pub.handle == number)
				return dm;
	}
	return NULL;
}

struct ibv_dm *sim_import_dm(struct ibv_context *context, uint32_t number)
{
	static const char call[] = "ibv_import_dm";
	const struct sim_device *device = nic_device(context);
	struct sim_dm *handle = nic_alloc(device, call, sizeof(*handle)), *dm;

	if (!handle)
		return NULL;
	sim_lock();
	dm = find(nic_context(context), number);
	if (dm) {
		handle->pub = dm->pub;
		handle->pub.context = context;
		handle->object = dm;
		dm->handles.count++;
		nic_enter(context, NIC_DM, &handle->node, NULL);
	}
	sim_unlock();
	return dm ? &handle->pub : nic_fail(handle, nic_refuse(device, call, ENOENT, NIC_NO_HANDLE,
							       "DM", number));
}

void sim_unimport_dm(struct ibv_dm *dm)
{
	sim_lock();
	drop(dm_of(dm));
	sim_unlock();
}

static const char reg_call[] = "ibv_reg_dm_mr";

/* Lock held.  0, and it is used by one more region; or EINVAL. */
static int use(struct sim_dm *dm, uint64_t offset, size_t length)
{
	const struct sim_device *device = nic_device(dm->pub.context);

	if (dm->handles.destroyed)
		return nic_refuse(device, reg_call, EINVAL, "it was destroyed");
	if (offset > dm->length || length > dm->length - offset)
		return nic_refuse(device, reg_call, EINVAL, "%zu bytes at %llu, it has %zu", length,
				  (unsigned long long)offset, dm->length);
	dm->users++;
	return 0;
}

struct ibv_mr *sim_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *pub, uint64_t offset, size_t length,
			     unsigned int access)
{
	const struct sim_device *device = nic_device(pd->context);
	struct sim_dm *dm = dm_of(pub)->object;
	struct sim_mr init = { .pub.length = length, .dm = dm, .access = access };
	struct ibv_mr *mr;
	int err;

	if (pub->context != pd->context)
		return nic_fail(NULL, nic_refuse(device, reg_call, EINVAL, "it is of another context"));
	if (!(access & IBV_ACCESS_ZERO_BASED))
		return nic_fail(NULL, nic_refuse(device, reg_call, EINVAL,
						 "access lacks IBV_ACCESS_ZERO_BASED"));
	err = nic_check_access(device, reg_call, access);
	if (err)
		return nic_fail(NULL, err);
	sim_lock();
	err = use(dm, offset, length);
	if (!err)
		init.memory = dm->memory + offset;
	sim_unlock();
	if (err)
		return nic_fail(NULL, err);
	mr = nic_mr_create(pd, &init, reg_call);
	if (mr)
		return mr;
	err = errno;
	sim_lock();
	dm->users--;
	sim_unlock();
	return nic_fail(NULL, err);
}
