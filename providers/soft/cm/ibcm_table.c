/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/ibcm_table.c - finds communication ids: by our number, by the peer's number
 * and CA (a repeated request), by the peer's QP and CA (a stale connection).
 *
 * The node is part of the peer's keys: each host has a CM of its own, and a
 * fabric in one process has several hosts.
 */
#include "config.h"

#include "ibcm.h"
#include "table.h"

#define LINK(table) offsetof(struct ibcm, next[table])

static struct cm_table tables[IBCM_TABLES] = {
	[IBCM_BY_LOCAL] = { .link = LINK(IBCM_BY_LOCAL), .number = offsetof(struct ibcm, local_id) },
	[IBCM_BY_REMOTE] = { .link = LINK(IBCM_BY_REMOTE),
			     .number = offsetof(struct ibcm, remote_id) },
	[IBCM_BY_QPN] = { .link = LINK(IBCM_BY_QPN), .number = offsetof(struct ibcm, remote_qpn) },
};

int ibcm_table_reserve(void)
{
	int r = 0;

	for (int i = 0; !r && i < IBCM_TABLES; i++)
		r = cm_table_reserve(&tables[i]);
	return r;
}

void ibcm_table_add(struct ibcm *cm, enum ibcm_table table)
{
	cm_table_add(&tables[table], cm);
	cm->in_tables |= (uint8_t)(1u << table);
}

void ibcm_table_remove(struct ibcm *cm, enum ibcm_table table)
{
	if (!(cm->in_tables & 1u << table))
		return;
	cm_table_remove(&tables[table], cm);
	cm->in_tables &= (uint8_t)~(1u << table);
}

struct ibcm *ibcm_find_local(uint32_t local_id)
{
	return cm_table_first(&tables[IBCM_BY_LOCAL], local_id);
}

void ibcm_table_prefetch(uint32_t local_id)
{
	const struct ibcm *cm = cm_table_guess(&tables[IBCM_BY_LOCAL], local_id);

	if (cm)
		ibcm_prefetch(cm);
}

static inline struct ibcm *find(enum ibcm_table which, uint32_t number, const struct sim_node *node,
				uint64_t ca_guid, bool sidr)
{
	const struct cm_table *table = &tables[which];
	struct ibcm *cm = cm_table_first(table, number);

	while (cm && (cm->remote_ca_guid != ca_guid || cm->id->node != node ||
		      (cm->id->qp_type == IBV_QPT_UD) != sidr))
		cm = cm_table_next(table, cm);
	return cm;
}

struct ibcm *ibcm_find_remote(const struct sim_node *node, uint32_t remote_id, uint64_t ca_guid,
			      bool sidr)
{
	return find(IBCM_BY_REMOTE, remote_id, node, ca_guid, sidr);
}

struct ibcm *ibcm_find_qpn(const struct sim_node *node, uint32_t remote_qpn, uint64_t ca_guid)
{
	return find(IBCM_BY_QPN, remote_qpn, node, ca_guid, false);
}

unsigned int ibcm_table_count(enum ibcm_table table)
{
	return (unsigned int)tables[table].count;
}

void ibcm_table_free(void)
{
	for (int i = 0; i < IBCM_TABLES; i++)
		cm_table_free(&tables[i]);
}
