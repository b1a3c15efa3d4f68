/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/cma_ids.c - the ids of this process: their list, their timer, their end, and
 * the start and end of the CM.  Engine lock held.
 */
#include "config.h"

#include <utlist.h>

#include "providers/soft/fabric/trace_lines.h"
#include "providers/soft/link/shm/shm.h"
#include "cma_internal.h"
#include "ibcm.h"
#include "iwcm.h"

#define PSN_MASK 0xffffffu

static struct sim_id *all_ids;
static unsigned int num_ids;
static uint32_t last_number;
static uint32_t inherited;		/* up to this number: of the process that forked us */
static bool forked;

static void resolved(struct sim_timer *timer)
{
	struct sim_id *id = sim_container(timer, struct sim_id, timer);

	if (id->state == CMA_ADDR_QUERY)
		cma_addr_done(id);
	else if (id->state == CMA_ROUTE_QUERY)
		cma_route_done(id);
}

static void describe_timer(const struct sim_timer *timer, struct sim_timer_text *ret_text)
{
	const struct sim_id *id = sim_container(timer, struct sim_id, timer);

	*ret_text = (struct sim_timer_text){
		/* Armed before the state changes, looked at afterwards. */
		.name = id->state == CMA_ADDR_RESOLVED || id->state == CMA_ROUTE_QUERY ?
			"resolve_route" : "resolve_addr",
		.node = id->node,
		.of = "id",
		.number = id->number,
	};
}

void cma_init(struct sim_id *id, struct polycm_id *core_id, enum rdma_port_space ps,
	      enum ibv_qp_type qp_type)
{
	id->id = core_id;
	id->state = CMA_IDLE;
	id->ps = id->bound_ps = ps;
	id->qp_type = qp_type;
	id->accepted = true;
	id->number = ++last_number;
	id->starting_psn = (uint32_t)sim_random() & PSN_MASK;
	sim_timer_init(&id->timer, resolved);
	DL_APPEND(all_ids, id);
	num_ids++;
}

void cma_drop(struct sim_id *id)
{
	sim_timer_disarm(&id->timer);
	cma_leave_all(id);
	DL_DELETE(all_ids, id);
	num_ids--;
}

struct sim_id *cma_first_id(void)
{
	return all_ids;
}

unsigned int sim_cma_live_ids(void)
{
	return num_ids;
}

bool cma_has_connection(const struct sim_id *id)
{
	switch (id->state) {
	case CMA_CONNECT:
	case CMA_DISCONNECT:
	case CMA_DESTROYING:
		return id->engine && id->ib;
	default:
		return false;
	}
}

bool cma_is_copy(const struct sim_id *id)
{
	return id->number <= inherited;
}

void cma_close(struct sim_id *id)
{
	enum cma_state state = id->state;

	if (state == CMA_DESTROYING)
		return;
	cma_set_state(id, CMA_DESTROYING);
	sim_timer_disarm(&id->timer);
	if (cma_is_copy(id))
		return;
	cma_leave_all(id);
	if (state == CMA_LISTEN)
		cma_unlisten(id);
	if (cma_has_connection(id))
		id->engine->close(id);
	cma_unbind(id);
}

uint64_t cma_delay;

void sim_cma_start(uint64_t delay)
{
	cma_delay = delay;
	last_number = inherited = 0;
	sim_trace_timers(resolved, describe_timer);
	cma_world_start();
	cma_multicast_start();
	sim_ibcm_start();
	iw_streams_start();
	sim_link_process_died = cma_process_died;
}

void sim_cma_stop(void)
{
	iw_streams_stop();
	sim_ibcm_stop();
}

/* Not those that a fork() left us a copy of: they are the parent's. */
void sim_cma_abandon_all(void)
{
	struct sim_id *id;

	DL_FOREACH(all_ids, id) {
		if (cma_is_copy(id))
			continue;
		cma_close(id);
		if (id->engine == &sim_iwcm_engine && id->iw)
			iw_stream_close(id->iw);
	}
}

void sim_cma_forked(void)
{
	inherited = last_number;
	forked = true;
}

bool sim_cma_has_own(void)
{
	return !forked || last_number > inherited;
}
