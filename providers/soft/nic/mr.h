/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/mr.h - memory regions and windows (mr.c, mapped.c, mw.c). */
#ifndef SIM_NIC_MR_H
#define SIM_NIC_MR_H

#include <unistd.h>

#include "objects.h"

/* --- mr.c --- */

#define NIC_KEY_TAG_BITS 12u
/* The slot of a key in the table, which is the handle of what it is the key of. */
static inline uint32_t nic_key_index(uint32_t key)
{
	return key >> NIC_KEY_TAG_BITS;
}

/* Rights with which memory changes. */
#define NIC_ACCESS_WRITES (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/* See that a slot of the table of keys is free: 0, or ENOMEM with a log line. */
int nic_key_reserve(const struct sim_device *device, const char *call);
/* The next free slot, for a region or a window.  Returns the key. */
uint32_t nic_key_take(struct sim_mr *mr, struct sim_mw *mw, uint32_t *ret_index);
void nic_key_drop(uint32_t index);
/* The window in that slot, the region with that key, the region in that slot; or NULL. */
struct sim_mw *nic_mw_at(uint32_t index);
struct sim_mr *nic_mr_by_key(uint32_t key);
struct sim_mr *nic_mr_at(uint32_t index);
/* The window that the key was made for, bound or not; or NULL. */
struct sim_mw *nic_mw_by_key(uint32_t key);
void nic_mr_stop(void);
/* Are these flags a region's?  0, or an errno with a log line. */
int nic_check_access(const struct sim_device *device, const char *call, unsigned int access);
/*
 * A region as `init', but for its lists, keys and what it belongs to.  Device memory counts it
 * already.  NULL: errno is set.
 */
struct ibv_mr *nic_mr_create(struct ibv_pd *pd, const struct sim_mr *init, const char *call);
#define NIC_NO_MEMORY "no memory is mapped there that the process may use like that"
/* The memory at an address that is within the region; NULL: on demand, and NIC_NO_MEMORY. */
void *nic_mr_memory(const struct sim_mr *mr, uint64_t addr, uint64_t length, bool writes);
/* How far behind the beginning of its region an address is; 0: there is no such key. */
uint64_t nic_mr_offset(uint32_t key, uint64_t addr);
/*
 * The memory behind a peer's key, which may be a window's, if the QP may use it
 * like that; NULL: it may not, and *ret_why says why.
 */
void *nic_remote_resolve(const struct sim_qp *qp, uint32_t key, uint64_t addr, uint64_t length,
			 unsigned int access, const char **ret_why);
/* length bytes at offset of a scatter list: 0 and the parts, or -EACCES (with a log line). */
int nic_sge_resolve(const struct sim_qp *qp, const struct ibv_sge *sge, uint32_t num_sge,
		    uint32_t offset, uint32_t length, unsigned int access,
		    struct iovec iov[static NIC_MAX_SGE], unsigned int *ret_parts);

/* --- mapped.c --- */

static inline uintptr_t nic_page_size(void)
{
	return (uintptr_t)sysconf(_SC_PAGESIZE);
}
/* Is something mapped everywhere in the range?  It does not wrap around. */
bool nic_is_mapped(const void *addr, size_t length);
/*
 * May the process read, or write, all of the range?  It pages it in.  What is mapped may be
 * forbidden, or be beyond the end of its file: to touch that would end the process.  Before
 * Linux 5.14 only holes are seen.
 */
bool nic_is_accessible(const void *addr, size_t length, bool writes);

/* --- mw.c --- */

/* The QP ends, and with it what is bound to it. */
void nic_mw_unbind_all(const struct sim_qp *qp);
/* The memory behind a window, as nic_remote_resolve(). */
void *nic_mw_resolve(const struct sim_mw *mw, const struct sim_qp *qp, uint64_t addr,
		     uint64_t length, unsigned int access, const char **ret_why);
/* Requests that no packet is sent for: bind and invalidate. */
static inline bool nic_is_local(const struct nic_swqe *wqe)
{
	return wqe->opcode == IBV_WR_BIND_MW || wqe->opcode == IBV_WR_LOCAL_INV;
}
enum ibv_wc_status nic_mw_execute(const struct sim_qp *qp, const struct nic_swqe *wqe);
/* Whoever has the key loses it.  false: it is none that may be invalidated through this QP. */
bool nic_mw_invalidate(const struct sim_qp *qp, uint32_t key);

#endif
