/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/direct_request.c - requests carried out by their initiator in the memory of another
 * process.  What the other process has published may be anything: it decides only which of
 * its own memory is touched.
 */
#include "config.h"

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

static bool carry_out(const struct sim_access_table *table, const struct sim_qp *qp,
		      struct nic_swqe *wqe, unsigned int access)
{
	const struct sim_access_qp *through = &table->qps[qp->peer_entry - 1];
	uint32_t key = nic_key_index(wqe->rkey);
	struct iovec local[NIC_MAX_SGE];
	unsigned int parts;
	uint64_t remote;
	int r;

	if (key >= SIM_ACCESS_KEYS || !serves(through, qp, access) ||
	    !resolve(&table->keys[key], through, wqe, access, &remote) ||
	    nic_swqe_resolve(qp, wqe, 0, wqe->length, local, &parts))
		return false;
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
				      access == IBV_ACCESS_REMOTE_READ);
	return done;
}
