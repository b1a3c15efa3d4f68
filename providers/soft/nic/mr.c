/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/mr.c - memory regions, their keys, and every check of local and remote
 * access to memory.
 *
 * A key is an index into the table and a random tag, so that a stale or
 * guessed key does not find what took its place.  A region's local and remote
 * key are equal, as on most adapters.
 */
#include "config.h"

#include <stdlib.h>

#include "device.h"
#include "context.h"
#include "direct.h"
#include "mr.h"
#include "refuse.h"
#include "verbs.h"

#define TAG_MASK ((1u << NIC_KEY_TAG_BITS) - 1)

#define KNOWN_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		      IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | \
		      IBV_ACCESS_HUGETLB | IBV_ACCESS_ON_DEMAND | SIM_ACCESS_FLUSH | \
		      IBV_ACCESS_OPTIONAL_RANGE)

/* For these the kernel makes memory writable, which fails where it is not the process's to write. */
#define KERNEL_WRITES (NIC_ACCESS_WRITES | IBV_ACCESS_MW_BIND)

/* Slots of the table; free ones are linked in the order in which they became free. */
struct key_slot {
	struct sim_mr *mr;
	struct sim_mw *mw;
	uint32_t next_free;
	uint32_t tag;
};

static struct key_slot *slots;		/* slot 0 is never used: no key is 0 */
static uint32_t num_slots, first_free, last_free;

int nic_key_reserve(const struct sim_device *device, const char *call)
{
	uint32_t more = num_slots ? num_slots * 2 : 64;
	struct key_slot *bigger;

	if (first_free)
		return 0;
	bigger = more > 1u << (32 - NIC_KEY_TAG_BITS) ? NULL : realloc(slots, more * sizeof(*slots));
	if (!bigger)
		return nic_refuse(device, call, ENOMEM, "no key for it");
	slots = bigger;
	for (uint32_t i = num_slots; i < more; i++)
		slots[i] = (struct key_slot) { .next_free = i + 1 < more ? i + 1 : 0 };
	first_free = num_slots ? num_slots : 1;
	last_free = more - 1;
	num_slots = more;
	return 0;
}

static uint32_t make_key(uint32_t index)
{
	uint32_t tag;

	do
		tag = (uint32_t)sim_random() & TAG_MASK;
	while (tag == slots[index].tag);
	slots[index].tag = tag;
	return index << NIC_KEY_TAG_BITS | tag;
}

uint32_t nic_key_take(struct sim_mr *mr, struct sim_mw *mw, uint32_t *ret_index)
{
	uint32_t index = first_free;

	first_free = slots[index].next_free;
	slots[index].mr = mr;
	slots[index].mw = mw;
	*ret_index = index;
	return make_key(index);
}

void nic_key_drop(uint32_t index)
{
	slots[index].mr = NULL;
	slots[index].mw = NULL;
	slots[index].next_free = 0;
	if (first_free)
		slots[last_free].next_free = index;
	else
		first_free = index;
	last_free = index;
}

struct sim_mw *nic_mw_at(uint32_t index)
{
	return index < num_slots ? slots[index].mw : NULL;
}

struct sim_mr *nic_mr_at(uint32_t index)
{
	return index < num_slots ? slots[index].mr : NULL;
}

struct sim_mr *nic_mr_by_key(uint32_t key)
{
	struct sim_mr *mr = nic_mr_at(nic_key_index(key));

	return mr && mr->pub.rkey == key ? mr : NULL;
}

struct sim_mw *nic_mw_by_key(uint32_t key)
{
	struct sim_mw *mw = nic_mw_at(nic_key_index(key));

	return mw && mw->key == key ? mw : NULL;
}

void nic_mr_stop(void)
{
	free(slots);
	slots = NULL;
	num_slots = first_free = last_free = 0;
}

/* 0, or an errno and the reason. */
static int check_access(const struct sim_device *device, unsigned int access, const char **ret_why)
{
	*ret_why = "the device has no on-demand paging";
	if (access & IBV_ACCESS_ON_DEMAND && !(device->services & NIC_SVC_ODP))
		return EOPNOTSUPP;
	*ret_why = "an unknown flag";
	if (access & ~(unsigned int)KNOWN_ACCESS)
		return EINVAL;
	*ret_why = "the device has no flush";
	if (access & SIM_ACCESS_FLUSH && !(device->services & NIC_SVC_PLACEMENT))
		return EINVAL;
	/* EINVAL, as rxe has it. */
	*ret_why = "the memory is not persistent";
	if (access & SIM_ACCESS_FLUSH_PERSISTENT)
		return EINVAL;
	/* IBTA vol. 1, 10.6.3.1. */
	*ret_why = "who may write from afar must have IBV_ACCESS_LOCAL_WRITE";
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return 0;
}

#define NO_RANGE	"%zu bytes at %p, iova 0x%llx, are no range of memory to be used like that"

/* A range of one mapping, as most are, may be used like its ends; only these are paged in. */
static bool is_usable(const void *addr, size_t length, bool writes)
{
	if (length <= nic_page_size())	/* it has only ends */
		return nic_is_accessible(addr, length, writes);
	return nic_is_mapped(addr, length) && nic_is_accessible(addr, 1, writes) &&
	       nic_is_accessible((const char *)addr + length - 1, 1, writes);
}

static int check_range(const struct sim_device *device, const void *addr, size_t length,
		       uint64_t iova, unsigned int access)
{
	uintptr_t page = nic_page_size() - 1, end;

	/* All of the process's memory: an implicit region. */
	if (access & IBV_ACCESS_ON_DEMAND && !addr && !iova && length == SIZE_MAX)
		return 0;
	if (!length || length > device->attr.max_mr_size ||
	    __builtin_add_overflow((uintptr_t)addr, length, &end) || iova + (length - 1) < iova)
		return EINVAL;
	if (((uintptr_t)addr & page) != (iova & page))
		return EINVAL;
	if (end > UINTPTR_MAX - page)
		return EINVAL;
	if (access & IBV_ACCESS_ON_DEMAND || is_usable(addr, length, access & KERNEL_WRITES))
		return 0;
	return EFAULT;
}

struct ibv_mr *nic_mr_create(struct ibv_pd *pd, const struct sim_mr *init, const char *call)
{
	const struct sim_device *device = nic_device(pd->context);
	struct sim_mr *mr = nic_alloc(device, call, sizeof(*mr));
	int err;

	if (!mr)
		return NULL;
	*mr = *init;
	mr->object = mr;
	mr->handles.count = 1;
	mr->pub.context = pd->context;
	mr->pub.pd = pd;

	sim_lock();
	err = nic_key_reserve(device, call);
	if (!err)
		err = nic_add(pd->context, call, NIC_MR, &mr->node, pd);
	if (!err)
		mr->pub.lkey = mr->pub.rkey = nic_key_take(mr, NULL, &mr->pub.handle);
	if (!err)
		nic_direct_add_mr(mr);
	sim_unlock();
	return err ? nic_fail(mr, err) : &mr->pub;
}

int nic_check_access(const struct sim_device *device, const char *call, unsigned int access)
{
	const char *why;
	int err = check_access(device, access, &why);

	return err ? nic_refuse(device, call, err, "access 0x%x: %s", access, why) : 0;
}

struct ibv_mr *sim_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			  unsigned int access)
{
	static const char call[] = "ibv_reg_mr";
	const struct sim_device *device = nic_device(pd->context);
	const struct sim_mr init = {
		.pub = { .addr = addr, .length = length },
		.memory = addr,
		.iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova,
		.access = access,
	};
	int err = nic_check_access(device, call, access);

	if (err)
		return nic_fail(NULL, err);
	err = check_range(device, addr, length, iova, access);
	if (err)
		return nic_fail(NULL, nic_refuse(device, call, err, NO_RANGE, length, addr,
						 (unsigned long long)iova));
	return nic_mr_create(pd, &init, call);
}

static const char rereg_call[] = "ibv_rereg_mr";

static int check_rereg(const struct sim_mr *mr, int flags, const struct ibv_pd *pd,
		       const void *addr, size_t length, unsigned int access)
{
	const struct sim_device *device = nic_device(mr->pub.context);

	if (!flags || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED)
		return nic_refuse(device, rereg_call, EINVAL, "flags 0x%x", (unsigned int)flags);
	if (mr->dm || mr->object != mr || mr->handles.destroyed)
		return nic_refuse(device, rereg_call, EINVAL,
				  "the region is of device memory, imported, or destroyed");
	if (flags & IBV_REREG_MR_CHANGE_PD && (!pd || pd->context != mr->pub.context))
		return nic_refuse(device, rereg_call, EINVAL, "no PD of the region's context");
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION &&
	    check_range(device, addr, length, (uintptr_t)addr,
			flags & IBV_REREG_MR_CHANGE_ACCESS ? access : mr->access))
		return nic_refuse(device, rereg_call, EINVAL, NO_RANGE, length, addr,
				  (unsigned long long)(uintptr_t)addr);
	if (!(flags & IBV_REREG_MR_CHANGE_ACCESS))
		return 0;
	/* Whose memory was looked for when it was accessed must have all of it now. */
	if (!(flags & IBV_REREG_MR_CHANGE_TRANSLATION) && mr->access & ~access & IBV_ACCESS_ON_DEMAND &&
	    check_range(device, mr->pub.addr, mr->pub.length, (uintptr_t)mr->pub.addr, access))
		return nic_refuse(device, rereg_call, EINVAL, NO_RANGE, mr->pub.length, mr->pub.addr,
				  (unsigned long long)mr->iova);
	return nic_check_access(device, rereg_call, access);
}

int sim_rereg_mr(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	struct sim_mr *mr = nic_container(ibmr, struct sim_mr, pub);
	int err = check_rereg(mr, flags, pd, addr, length, (unsigned int)access);

	if (err)
		goto err_errno;
	sim_lock();
	/* What windows open must not change under them. */
	if (mr->windows)
		err = nic_refuse(nic_device(ibmr->context), rereg_call, EINVAL,
				 "windows that are bound to it are left: %u", mr->windows);
	else if (flags & IBV_REREG_MR_CHANGE_PD)
		err = nic_check_pd(rereg_call, pd);
	if (err) {
		sim_unlock();
		goto err_errno;
	}
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION)
		nic_direct_drop_mr(mr);
	else
		nic_direct_hide_mr(mr);
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		nic_use_pd(mr->pub.pd, -1u);
		nic_use_pd(pd, 1);
		mr->pub.pd = pd;
	}
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		mr->access = (unsigned int)access;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->pub.addr = mr->memory = addr;
		mr->pub.length = length;
		mr->iova = mr->access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;
		/* For other memory, other keys; else drivers keep them, and programs count on it. */
		mr->pub.lkey = mr->pub.rkey = make_key(mr->pub.handle);
	}
	nic_direct_add_mr(mr);
	sim_unlock();
	return 0;

err_errno:
	errno = err;
	return IBV_REREG_MR_ERR_INPUT;
}

static struct sim_mr *mr_of(struct ibv_mr *mr)
{
	return nic_container(mr, struct sim_mr, pub);
}

static void leave(struct sim_mr *mr)
{
	nic_remove(mr->pub.context, NIC_MR, &mr->node, mr->pub.pd);
	if (mr->object != mr)
		return;
	nic_direct_drop_mr(mr);
	nic_key_drop(mr->pub.handle);
	if (mr->dm)
		mr->dm->users--;
}

void nic_mr_free(struct sim_mr *mr)
{
	leave(mr);
	free(mr);
}

/* A handle is the program's no longer.  Lock held. */
static void drop(struct sim_mr *handle)
{
	struct sim_mr *mr = handle->object;

	if (handle != mr)
		nic_mr_free(handle);
	if (nic_handle_dropped(&mr->handles))
		free(mr);
}

int sim_dereg_mr(struct ibv_mr *ibmr)
{
	static const char call[] = "ibv_dereg_mr";
	const struct sim_device *device = nic_device(ibmr->context);
	struct sim_mr *mr = mr_of(ibmr)->object;
	int err = 0;

	sim_lock();
	if (mr->handles.destroyed) {
		err = nic_refuse(device, call, ENOENT, "it was destroyed through another handle");
	} else if (mr->windows) {	/* EINVAL, as rxe has it */
		err = nic_refuse(device, call, EINVAL, "windows that are bound to it are left: %u",
				 mr->windows);
	} else {
		leave(mr);
		mr->handles.destroyed = true;
		drop(mr_of(ibmr));
	}
	sim_unlock();
	return err;
}

/* Lock held.  The region of that number, in any context of the file; or NULL. */
static struct sim_mr *find(const struct sim_context *importing, uint32_t number)
{
	struct sim_mr *mr = nic_mr_at(number);

	return mr && nic_context(mr->pub.context)->file == importing->file ? mr : NULL;
}

struct ibv_mr *sim_import_mr(struct ibv_pd *pd, uint32_t number)
{
	static const char call[] = "ibv_import_mr";
	const struct sim_device *device = nic_device(pd->context);
	struct sim_mr *handle = nic_alloc(device, call, sizeof(*handle)), *mr;
	int err;

	if (!handle)
		return NULL;
	sim_lock();
	mr = find(nic_context(pd->context), number);
	err = mr ? nic_check_pd(call, pd) :
		   nic_refuse(device, call, ENOENT, NIC_NO_HANDLE, "MR", number);
	if (!err) {
		handle->pub = mr->pub;
		handle->pub.addr = NULL;
		handle->pub.context = pd->context;
		handle->pub.pd = pd;
		handle->object = mr;
		mr->handles.count++;
		nic_enter(pd->context, NIC_MR, &handle->node, pd);
	}
	sim_unlock();
	return err ? nic_fail(handle, err) : &handle->pub;
}

void sim_unimport_mr(struct ibv_mr *mr)
{
	sim_lock();
	drop(mr_of(mr));
	sim_unlock();
}

uint64_t nic_mr_offset(uint32_t key, uint64_t addr)
{
	const struct sim_mw *mw = nic_mw_by_key(key);
	const struct sim_mr *mr = mw ? mw->mr : nic_mr_by_key(key);

	if (mw && mw->access & IBV_ACCESS_ZERO_BASED)
		addr += mw->addr;
	return mr ? addr - mr->iova : 0;
}

void *nic_mr_memory(const struct sim_mr *mr, uint64_t addr, uint64_t length, bool writes)
{
	/* An implicit region begins at NULL. */
	void *memory = (void *)((uintptr_t)mr->memory + (addr - mr->iova));

	if (mr->access & IBV_ACCESS_ON_DEMAND && length && !nic_is_accessible(memory, length, writes))
		return NULL;
	return memory;
}

/* As nic_remote_resolve(), for a region's key. */
static void *resolve(const struct ibv_pd *pd, uint32_t key, uint64_t addr, uint64_t length,
		     unsigned int access, const char **ret_why)
{
	const struct sim_mr *mr = nic_mr_by_key(key);
	void *memory;

	if (!mr)
		*ret_why = "there is no such key";
	else if (nic_protection(mr->pub.pd) != pd)
		*ret_why = "the region is of another protection domain";
	else if ((mr->access & access) != access)
		*ret_why = access & IBV_ACCESS_LOCAL_WRITE ? "the region lacks local write" :
			   access & IBV_ACCESS_REMOTE_WRITE ? "the region lacks remote write" :
			   access & IBV_ACCESS_REMOTE_READ ? "the region lacks remote read" :
			   access & SIM_ACCESS_FLUSH ? "the region lacks remote flush" :
			   "the region lacks remote atomic";
	else if (addr < mr->iova || length > mr->pub.length ||
		 addr - mr->iova > mr->pub.length - length)
		*ret_why = "the range is not within the region";
	else {
		memory = nic_mr_memory(mr, addr, length, access & NIC_ACCESS_WRITES);
		*ret_why = NIC_NO_MEMORY;
		return memory;
	}
	return NULL;
}

void *nic_remote_resolve(const struct sim_qp *qp, uint32_t key, uint64_t addr, uint64_t length,
			 unsigned int access, const char **ret_why)
{
	const struct sim_mw *mw = nic_mw_by_key(key);

	return mw ? nic_mw_resolve(mw, qp, addr, length, access, ret_why) :
		    resolve(qp->pd, key, addr, length, access, ret_why);
}

int nic_sge_resolve(const struct sim_qp *qp, const struct ibv_sge *sge, uint32_t num_sge,
		    uint32_t offset, uint32_t length, unsigned int access,
		    struct iovec iov[static NIC_MAX_SGE], unsigned int *ret_parts)
{
	unsigned int parts = 0;
	const char *why;

	for (uint32_t i = 0; i < num_sge && length; i++) {
		uint32_t len = sge[i].length;
		void *memory;

		if (offset >= len) {
			offset -= len;
			continue;
		}
		memory = resolve(qp->pd, sge[i].lkey, sge[i].addr, len, access, &why);
		if (!memory) {
			nic_set_reason("lkey 0x%x does not allow 0x%llx + %u: %s", sge[i].lkey,
				    (unsigned long long)sge[i].addr, len, why);
			return -EACCES;
		}
		len -= offset;
		if (len > length)
			len = length;
		iov[parts].iov_base = (char *)memory + offset;
		iov[parts++].iov_len = len;
		length -= len;
		offset = 0;
	}
	*ret_parts = parts;
	return length ? -EMSGSIZE : 0;
}
