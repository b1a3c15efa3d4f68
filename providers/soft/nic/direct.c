/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/direct.c - what other processes may reach directly: entries for QPs and regions.
 *
 * Nothing is published before a QP has a request to answer that could have been carried out
 * directly, so programs that only send messages have no table.  Memory with remote rights is moved
 * to where others can map it when it is registered, or later where that was not possible then.
 */
#include "config.h"

#include <string.h>

#include "providers/soft/fabric/remote.h"
#include "providers/soft/link/shm/access.h"
#include "providers/soft/link/shm/page_file.h"
#include "providers/soft/link/shm/pages.h"
#include "providers/soft/shm/visit.h"
#include "direct.h"
#include "mr.h"
#include "rc_internal.h"
#include "refuse.h"

#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static const struct sim_qp *entries[SIM_ACCESS_QPS];
static uint32_t num_entries, cursor;

bool nic_direct_pending;
static uint64_t share_at;		/* not before */
static unsigned int share_tries;	/* since a region was registered */
#define SHARE_AGAIN SIM_MS(5)
#define SHARE_TRIES 50u

/* Can others use it?  On demand, each access is checked. */
static bool is_exposed(const struct sim_mr *mr)
{
	return mr->object == mr && mr->access & REMOTE && !(mr->access & IBV_ACCESS_ON_DEMAND);
}

static struct sim_access_key *entry_of(struct sim_access_table *table, const struct sim_mr *mr)
{
	uint32_t index = mr->pub.handle;

	return table && is_exposed(mr) && index < SIM_ACCESS_KEYS ? &table->keys[index] : NULL;
}

static void tell_of_pages(struct sim_access_table *table)
{
	const struct sim_file_id *id = sim_page_file_id(&table->pages_fd);

	if (id)
		table->pages = *id;
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
	entry->shared_from = mr->pages ? mr->pages->from : 0;
	entry->shared_length = mr->pages ? mr->pages->length : 0;
	entry->shared_at = mr->pages ? mr->pages->at : 0;
	if (mr->pages)
		tell_of_pages(table);
	atomic_store(&entry->key, mr->pub.rkey);
}

static void take_back(struct sim_access_table *table, const struct sim_mr *mr)
{
	struct sim_access_key *entry = entry_of(table, mr);

	if (!entry || !atomic_load_explicit(&entry->key, memory_order_relaxed))
		return;
	atomic_store(&entry->key, 0);
	sim_visit_wait();
}

/* Device memory is no memory of the program's. */
static void try_to_share(struct sim_mr *mr)
{
	if (mr->pages || mr->moving_tried || mr->dm || !is_exposed(mr) ||
	    mr->pub.handle >= SIM_ACCESS_KEYS || sim_is_virtual() || !sim_access_maps())
		return;
	if (!sim_pages_may_move()) {
		nic_direct_pending = share_tries < SHARE_TRIES;
		if (!share_tries)
			nic_debug("registered memory %p + %zu: other processes need a system call to "
				  "reach it: the program has several threads, or moving memory has "
				  "taken long", mr->memory, mr->pub.length);
		return;
	}
	mr->pages = sim_pages_share(mr->memory, mr->pub.length);
	mr->moving_tried = !mr->pages;
}

void nic_direct_add_mr(struct sim_mr *mr)
{
	share_tries = 0;
	try_to_share(mr);
	publish(sim_access_made(), mr);
}

void nic_direct_hide_mr(const struct sim_mr *mr)
{
	take_back(sim_access_made(), mr);
}

void nic_direct_drop_mr(struct sim_mr *mr)
{
	take_back(sim_access_made(), mr);
	if (mr->pages)
		sim_pages_release(mr->pages);
	mr->pages = NULL;
	mr->moving_tried = false;
}

void nic_direct_share(void)
{
	struct sim_access_table *table = sim_access_made();
	uint64_t now = sim_now();
	struct sim_mr *mr;

	if (!table || now < share_at)
		return;
	share_at = now + SHARE_AGAIN;
	share_tries++;
	nic_direct_pending = false;
	for (uint32_t i = 0; i < SIM_ACCESS_KEYS && !nic_direct_pending; i++) {
		mr = nic_mr_at(i);
		if (!mr || mr->pages)
			continue;
		try_to_share(mr);
		if (!mr->pages)
			continue;
		take_back(table, mr);
		publish(table, mr);
	}
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
	return !sim_visit_closed() && !sim_is_virtual() && qp->type == IBV_QPT_RC &&
	       rc_receives_now(qp) && qp->comm_est &&
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

/* In a child of fork(). */
static void pages_forgotten(void)
{
	struct sim_mr *mr;

	for (uint32_t i = 0; i < SIM_ACCESS_KEYS; i++) {
		mr = nic_mr_at(i);
		if (mr)
			mr->pages = NULL;
	}
}

void nic_direct_start(void)
{
	sim_pages_forgotten = pages_forgotten;
}

void nic_direct_stop(void)
{
	memset(entries, 0, sizeof(entries));
	num_entries = cursor = 0;
	nic_direct_pending = false;
}
