/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/direct_request.c - requests carried out by their initiator in the memory of another
 * process.  What the other process has published may be anything: it decides only which of
 * its own memory is touched.
 */
#include "config.h"

#include <string.h>

#include "providers/soft/link/count.h"
#include "providers/soft/link/shm/access.h"
#include "providers/soft/shm/visit.h"
#include "direct.h"
#include "mr.h"
#include "sq.h"

/* What the peer must allow; 0: such a request is always sent. */
static unsigned int access_for(const struct nic_swqe *wqe)
{
	switch (wqe->opcode) {
	case IBV_WR_RDMA_WRITE:
		return IBV_ACCESS_REMOTE_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_ACCESS_REMOTE_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_ACCESS_REMOTE_ATOMIC;
	default:
		return 0;
	}
}

static bool serves(const struct sim_access_qp *entry, const struct sim_qp *qp, unsigned int access)
{
	return atomic_load(&entry->qpn) == qp->attr.dest_qp_num && entry->peer_qpn == nic_qpn(qp) &&
	       entry->peer_slot == sim_self_slot() && entry->port == qp->peer->fabric_index &&
	       entry->peer_port == qp->port->fabric_index && (entry->access & access) == access &&
	       (entry->reads || access == IBV_ACCESS_REMOTE_WRITE);
}

/* The owner's address of the request's memory; false: its key does not allow that. */
static bool resolve(const struct sim_access_key *entry, const struct sim_access_qp *through,
		    const struct nic_swqe *wqe, unsigned int access, uint64_t *ret_remote)
{
	uint64_t offset = wqe->remote_addr - entry->iova;

	if (atomic_load(&entry->key) != wqe->rkey || entry->domain != through->domain ||
	    (entry->access & access) != access || wqe->remote_addr < entry->iova ||
	    wqe->length > entry->length || offset > entry->length - wqe->length)
		return false;
	*ret_remote = entry->memory + offset;
	return true;
}

/*
 * Who polls the last byte of a write counts on all before it.  So what memcpy() may have written
 * in any order is followed by the end.
 */
static void write_mapped(char *to, const char *from, size_t len)
{
	size_t end = len < sizeof(uint64_t) ? len : sizeof(uint64_t);

	memcpy(to, from, len - end);
	atomic_thread_fence(memory_order_release);
	memcpy(to + len - end, from + len - end, end);
}

static void copy(char *mapped, const struct iovec *local, unsigned int parts, size_t len, bool read)
{
	for (unsigned int i = 0; i < parts; i++) {
		size_t n = local[i].iov_len < len ? local[i].iov_len : len;

		if (read)
			memcpy(local[i].iov_base, mapped, n);
		else
			write_mapped(mapped, local[i].iov_base, n);
		mapped += n;
		len -= n;
	}
}

/* False: it is for the responder to refuse. */
static bool execute_atomic(const struct sim_qp *qp, const struct nic_swqe *wqe, uint64_t *memory,
			   const struct iovec *local, unsigned int parts)
{
	uint64_t old = wqe->compare_add;
	const struct iovec from = { .iov_base = &old, .iov_len = sizeof(old) };

	if (!(qp->port->device->services & POLYCM_SVC_ATOMIC) ||
	    (wqe->remote_addr | (uintptr_t)memory) % sizeof(old) || wqe->length != sizeof(old))
		return false;
	if (wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		old = __atomic_fetch_add(memory, wqe->compare_add, __ATOMIC_SEQ_CST);
	else
		__atomic_compare_exchange_n(memory, &old, wqe->swap, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	nic_copy(local, parts, &from, 1, sizeof(old));
	return true;
}

static bool carry_out(const struct sim_access_table *table, const struct sim_qp *qp,
		      struct nic_swqe *wqe, unsigned int access)
{
	const struct sim_access_qp *through = &table->qps[qp->peer_entry - 1];
	uint32_t key = nic_key_index(wqe->rkey);
	struct iovec local[NIC_MAX_SGE];
	unsigned int parts;
	uint64_t remote;
	void *mapped;
	int r;

	if (key >= SIM_ACCESS_KEYS || !serves(through, qp, access) ||
	    !resolve(&table->keys[key], through, wqe, access, &remote) ||
	    nic_swqe_resolve(qp, wqe, 0, wqe->length, local, &parts))
		return false;
	mapped = sim_access_mapped(qp->peer_slot, &table->keys[key], remote, wqe->length);
	if (access == IBV_ACCESS_REMOTE_ATOMIC)
		return mapped && execute_atomic(qp, wqe, mapped, local, parts);
	if (mapped) {
		copy(mapped, local, parts, wqe->length, access == IBV_ACCESS_REMOTE_READ);
		return true;
	}
	if (access == IBV_ACCESS_REMOTE_READ)
		r = sim_access_read(qp->peer_slot, remote, local, parts, wqe->length);
	else
		r = sim_access_write(qp->peer_slot, remote, local, parts, wqe->length);
	return !r;
}

bool nic_direct_execute(const struct sim_qp *qp, struct nic_swqe *wqe)
{
	unsigned int access = access_for(wqe);
	const struct sim_access_table *table;
	bool done;

	/* A request without data needs no key. */
	if (!access || !wqe->length || qp->state != IBV_QPS_RTS || qp->peer_entry > SIM_ACCESS_QPS ||
	    !sim_port_has_mac(qp->peer, qp->peer_mac))
		return false;
	table = sim_access_enter(qp->peer_slot);
	if (!table)
		return false;
	done = carry_out(table, qp, wqe, access);
	sim_visit_leave();
	if (done)
		sim_link_count_direct(qp->port, qp->peer, wqe->length,
				      access != IBV_ACCESS_REMOTE_WRITE);
	return done;
}
