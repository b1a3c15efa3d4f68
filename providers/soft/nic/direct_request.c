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

uint64_t nic_direct_carried;

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

/* A request without data needs no key. */
bool nic_direct_may(const struct nic_swqe *wqe)
{
	return access_for(wqe) && wqe->length;
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

	if (entry->domain != through->domain ||
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

/* Part of a transfer: local memory, and the owner's from an address on. */
struct transfer {
	unsigned int slot;
	struct sim_access_key entry;	/* a copy */
	bool read;
	uint64_t remote;
	struct iovec local[NIC_MAX_SGE];
	unsigned int parts;
};

static void copy(char *mapped, const struct iovec *local, unsigned int parts, bool read)
{
	for (unsigned int i = 0; i < parts; i++) {
		if (read)
			memcpy(local[i].iov_base, mapped, local[i].iov_len);
		else
			write_mapped(mapped, local[i].iov_base, local[i].iov_len);
		mapped += local[i].iov_len;
	}
}

/* Take the next len bytes off the local memory. */
static unsigned int take(struct transfer *transfer, size_t len, struct iovec ret[static NIC_MAX_SGE])
{
	unsigned int parts = 0, used = 0;

	for (; len; parts++) {
		struct iovec *part = &transfer->local[used];
		size_t n = part->iov_len < len ? part->iov_len : len;

		ret[parts] = (struct iovec){ .iov_base = part->iov_base, .iov_len = n };
		part->iov_base = (char *)part->iov_base + n;
		part->iov_len -= n;
		used += !part->iov_len;
		len -= n;
	}
	memmove(transfer->local, transfer->local + used,
		(transfer->parts - used) * sizeof(transfer->local[0]));
	transfer->parts -= used;
	return parts;
}

/* The next len bytes, all of them mapped or none.  0 or a negative errno. */
static int move(struct transfer *transfer, size_t len)
{
	struct iovec local[NIC_MAX_SGE];
	uint64_t remote = transfer->remote;
	unsigned int parts;
	char *mapped;

	if (!len)
		return 0;
	parts = take(transfer, len, local);
	transfer->remote += len;
	mapped = sim_access_mapped(transfer->slot, &transfer->entry, remote, len);
	if (mapped) {
		copy(mapped, local, parts, transfer->read);
		return 0;
	}
	if (transfer->read)
		return sim_access_read(transfer->slot, remote, local, parts, len);
	return sim_access_write(transfer->slot, remote, local, parts, len);
}

static size_t min_size(uint64_t a, uint64_t b)
{
	return (size_t)(a < b ? a : b);
}

/* What is before the pages that are mapped, in them, and behind them. */
static int move_all(struct transfer *transfer, size_t len)
{
	uint64_t from = transfer->entry.shared_from, to = from + transfer->entry.shared_length;
	size_t before = transfer->remote < from ? min_size(from - transfer->remote, len) : 0;
	size_t mapped = 0;
	int r = move(transfer, before);

	if (!r && transfer->remote < to && transfer->remote >= from) {
		mapped = min_size(to - transfer->remote, len - before);
		r = move(transfer, mapped);
	}
	return r ? r : move(transfer, len - before - mapped);
}

/* False: it is for the responder to refuse. */
static bool execute_atomic(const struct sim_qp *qp, const struct nic_swqe *wqe,
			   const struct transfer *transfer)
{
	uint64_t *memory = sim_access_mapped(transfer->slot, &transfer->entry, transfer->remote,
					     sizeof(*memory));
	uint64_t old = wqe->compare_add;
	const struct iovec from = { .iov_base = &old, .iov_len = sizeof(old) };

	if (!memory || !(qp->peer->device->services & POLYCM_SVC_ATOMIC) ||
	    (wqe->remote_addr | (uintptr_t)memory) % sizeof(old) || wqe->length != sizeof(old))
		return false;
	if (wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		old = __atomic_fetch_add(memory, wqe->compare_add, __ATOMIC_SEQ_CST);
	else
		__atomic_compare_exchange_n(memory, &old, wqe->swap, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	nic_copy(transfer->local, transfer->parts, &from, 1, sizeof(old));
	return true;
}

static bool carry_out(const struct sim_access_table *table, const struct sim_qp *qp,
		      struct nic_swqe *wqe, unsigned int access)
{
	const struct sim_access_qp *through = &table->qps[qp->peer_entry - 1];
	uint32_t key = nic_key_index(wqe->rkey);
	struct transfer transfer;
	char *mapped;

	if (key >= SIM_ACCESS_KEYS || !serves(through, qp, access) ||
	    !sim_access_read_key(table, key, wqe->rkey, &transfer.entry))
		return false;
	transfer.slot = qp->peer_slot;
	transfer.read = access == IBV_ACCESS_REMOTE_READ;
	if (!resolve(&transfer.entry, through, wqe, access, &transfer.remote) ||
	    nic_swqe_resolve(qp, wqe, 0, wqe->length, transfer.local, &transfer.parts))
		return false;
	if (access == IBV_ACCESS_REMOTE_ATOMIC)
		return execute_atomic(qp, wqe, &transfer);
	mapped = sim_access_mapped(transfer.slot, &transfer.entry, transfer.remote, wqe->length);
	if (!mapped)
		return !move_all(&transfer, wqe->length);
	copy(mapped, transfer.local, transfer.parts, transfer.read);
	return true;
}

enum nic_direct nic_direct_execute(const struct sim_qp *qp, struct nic_swqe *wqe)
{
	bool places = wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	unsigned int access = places ? IBV_ACCESS_REMOTE_WRITE : access_for(wqe);
	const struct sim_access_table *table;
	bool done;

	if (qp->state != IBV_QPS_RTS || qp->peer_entry > SIM_ACCESS_QPS || !qp->peer ||
	    !nic_has_pkey(qp) || !sim_port_has_mac(qp->peer, qp->peer_mac))
		return NIC_DIRECT_NOT_NOW;
	table = sim_access_enter(qp->peer_slot);
	if (!table)
		return NIC_DIRECT_NOT_NOW;
	done = carry_out(table, qp, wqe, access);
	sim_visit_leave();
	if (!done)
		return NIC_DIRECT_REFUSED;
	nic_direct_carried++;
	if (!places)	/* else its packet counts */
		sim_link_count_direct(qp->port, qp->peer, wqe->length,
				      access != IBV_ACCESS_REMOTE_WRITE);
	return NIC_DIRECT_DONE;
}
