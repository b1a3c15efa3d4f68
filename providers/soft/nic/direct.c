/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/direct.c - what other processes may reach directly: entries for QPs and regions.
 *
 * Nothing is published before a QP has a request to answer that could have been carried out
 * directly, so programs that only send messages have no table.
 */
#include "config.h"

#include <string.h>

#include "providers/soft/fabric/remote.h"
#include "providers/soft/link/shm/access.h"
#include "providers/soft/shm/visit.h"
#include "direct.h"
#include "mr.h"

#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static const struct sim_qp *entries[SIM_ACCESS_QPS];
static uint32_t num_entries, cursor;

/* Who has no right to it has a key that is published for nothing.  On demand, each access is checked. */
static struct sim_access_key *entry_of(struct sim_access_table *table, const struct sim_mr *mr)
{
	uint32_t index = mr->pub.handle;

	if (!table || mr->object != mr || index >= SIM_ACCESS_KEYS || !(mr->access & REMOTE) ||
	    mr->access & IBV_ACCESS_ON_DEMAND)
		return NULL;
	return &table->keys[index];
}

static void publish(struct sim_access_table *table, const struct sim_mr *mr)
{
	struct sim_access_key *entry = entry_of(table, mr);

	if (!entry)
		return;
	entry->access = mr->access;
	entry->domain = (uintptr_t)nic_protection(mr->pub.pd);
	entry->iova = mr->iova;
	entry->length = mr->pub.length;
	entry->memory = (uintptr_t)mr->memory;
	atomic_store(&entry->key, mr->pub.rkey);
}

void nic_direct_add_mr(const struct sim_mr *mr)
{
	publish(sim_access_made(), mr);
}

void nic_direct_drop_mr(const struct sim_mr *mr)
{
	struct sim_access_key *entry = entry_of(sim_access_made(), mr);

	if (!entry || !atomic_load_explicit(&entry->key, memory_order_relaxed))
		return;
	atomic_store(&entry->key, 0);
	sim_visit_wait();
}

static struct sim_access_table *own_table(void)
{
	struct sim_access_table *table = sim_access_made();
	const struct sim_mr *mr;

	if (table)
		return table;
	table = sim_access_own();
	for (uint32_t i = 0; table && i < SIM_ACCESS_KEYS; i++) {
		mr = nic_mr_at(i);
		if (mr)
			publish(table, mr);
	}
	return table;
}

/* Is the peer another process of this host, and the QP in a state to serve it? */
static bool may_offer(const struct sim_qp *qp)
{
	return qp->type == IBV_QPT_RC && qp->state == IBV_QPS_RTS && !sim_is_virtual() &&
	       qp->peer && sim_slot_is_known(qp->peer_slot) && !sim_slot_is_remote(qp->peer_slot) &&
	       qp->peer_slot != sim_self_slot() && nic_has_pkey(qp);
}

static uint32_t take_entry(const struct sim_qp *qp)
{
	while (entries[cursor])
		cursor = (cursor + 1) % SIM_ACCESS_QPS;
	entries[cursor] = qp;
	num_entries++;
	return cursor;
}

uint32_t nic_direct_offer(struct sim_qp *qp)
{
	struct sim_access_table *table;
	struct sim_access_qp *entry;
	uint32_t index;

	if (qp->entry || !may_offer(qp) || num_entries == SIM_ACCESS_QPS)
		return qp->entry;
	table = own_table();
	if (!table)
		return 0;
	index = take_entry(qp);
	entry = &table->qps[index];
	entry->access = qp->attr.qp_access_flags;
	entry->domain = (uintptr_t)qp->pd;
	entry->peer_qpn = qp->attr.dest_qp_num;
	entry->peer_slot = qp->peer_slot;
	entry->port = qp->port->fabric_index;
	entry->peer_port = qp->peer->fabric_index;
	entry->reads = qp->attr.max_dest_rd_atomic > 0;
	sim_visit_expect(qp->peer_slot);
	atomic_store(&entry->qpn, nic_qpn(qp));
	qp->entry = index + 1;
	return qp->entry;
}

void nic_direct_withdraw(struct sim_qp *qp)
{
	struct sim_access_table *table = sim_access_made();

	if (!qp->entry)
		return;
	if (table) {
		atomic_store(&table->qps[qp->entry - 1].qpn, 0);
		sim_visit_wait();
	}
	entries[qp->entry - 1] = NULL;
	num_entries--;
	qp->entry = 0;
}

void nic_direct_stop(void)
{
	memset(entries, 0, sizeof(entries));
	num_entries = cursor = 0;
}
