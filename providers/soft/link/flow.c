/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/flow.c - the settings of links, and flows.  A flow is one direction between two
 * nodes, with the settings of its link.
 */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include "shape_internal.h"
#include "providers/soft/shm/visit.h"

struct setting {
	struct setting *next;
	const struct sim_node *a, *b;		/* NULL: all */
	struct polycm_sim_link link;
};

bool sim_shape_on;

static struct setting *settings;		/* newest first */
static struct sim_flow *flows;
/*
 * Shared by the packets whose flows find no memory, so that they keep their order.  `link' is
 * that of the packet that asked last.
 */
static struct sim_flow stand_in;

static const struct polycm_sim_link *link_between(const struct sim_node *a, const struct sim_node *b)
{
	static struct polycm_sim_link unset;

	for (const struct setting *s = settings; s; s = s->next)
		if (((!s->a || s->a == a) && (!s->b || s->b == b)) ||
		    ((!s->a || s->a == b) && (!s->b || s->b == a)))
			return &s->link;
	unset.latency_ns = sim_is_virtual() ? SIM_LINK_LATENCY : 0;
	return &unset;
}

/* What is wrong with it, or NULL. */
static const char *wrong_link(const struct polycm_sim_link *link)
{
	if (link->latency_ns > SIM_LONGEST || link->jitter_ns > SIM_LONGEST)
		return "a latency or jitter of more than 73 years";
	if (!(link->loss >= 0 && link->loss <= 1))
		return "loss is not from 0 to 1";
	if (!(link->duplication >= 0 && link->duplication <= 1))
		return "duplication is not from 0 to 1";
	if (!(link->reordering >= 0 && link->reordering <= 1))
		return "reordering is not from 0 to 1";
	return NULL;
}

/* Drop the settings that the newest one replaces. */
static void drop_covered(void)
{
	const struct setting *newest = settings;
	struct setting **at = &settings->next, *s;

	while ((s = *at)) {
		if ((!newest->a && !newest->b) || (newest->a == s->a && newest->b == s->b) ||
		    (newest->a == s->b && newest->b == s->a)) {
			*at = s->next;
			free(s);
		} else {
			at = &s->next;
		}
	}
}

int sim_shape_set(const struct sim_node *a, const struct sim_node *b,
		  const struct polycm_sim_link *given, char *ret_why, size_t why_size)
{
	struct polycm_sim_link link = { 0 };
	struct sim_flow *flow, *next;
	struct setting *setting;
	const char *wrong = "the size of the link is not set";

	if (given->size >= offsetof(struct polycm_sim_link, jitter_ns)) {
		memcpy(&link, given, given->size < sizeof(link) ? given->size : sizeof(link));
		wrong = wrong_link(&link);
	}
	if (wrong) {
		snprintf(ret_why, why_size, "%s", wrong);
		return -EINVAL;
	}
	setting = calloc(1, sizeof(*setting));
	if (!setting)
		return -ENOMEM;
	setting->a = a;
	setting->b = b;
	setting->link = link;
	setting->next = settings;
	settings = setting;
	drop_covered();
	sim_shape_on = true;
	sim_visit_close(SIM_CLOSED_LINKS, true);
	HASH_ITER(hh, flows, flow, next)
		flow->link = *link_between(flow->key.from, flow->key.to);
	return 0;
}

bool sim_shape_exchange(const struct sim_node *a, const struct sim_node *b, uint64_t *ret_delay)
{
	const struct polycm_sim_link *link;

	*ret_delay = 0;
	if (!sim_shape_on)
		return true;
	link = link_between(a, b);
	*ret_delay = 2 * link->latency_ns;
	return !sim_chance(link->loss) && !sim_chance(link->loss);
}

/* ------------------------------------------------------------------------
 * Flows.
 */

static struct sim_flow *make_flow(const struct sim_flow_key *key)
{
	struct sim_flow *flow = calloc(1, sizeof(*flow));

	if (!flow)
		return NULL;
	flow->key = *key;
	/* Behind the packets that shared `stand_in': some may be of this flow. */
	flow->last = stand_in.last;
	flow->free_at = stand_in.free_at;
	HASH_ADD(hh, flows, key, sizeof(*key), flow);
	if (flow->hh.tbl)
		return flow;
	free(flow);
	return NULL;
}

struct sim_flow *sim_flow_of(const struct sim_frame *frame)
{
	const struct sim_node *from = frame->from->device->node, *to = frame->to->device->node;
	struct sim_flow_key key;
	struct sim_flow *flow;

	memset(&key, 0, sizeof(key));
	key.from = from;
	key.to = to;
	HASH_FIND(hh, flows, &key, sizeof(key), flow);
	if (flow)
		return flow;
	flow = make_flow(&key);
	if (!flow) {
		flow = &stand_in;
		flow->key = key;
	}
	flow->link = *link_between(from, to);
	return flow;
}

void sim_flows_forget(void)
{
	struct sim_flow *flow, *next;
	struct setting *setting;

	while ((setting = settings)) {
		settings = setting->next;
		free(setting);
	}
	sim_shape_on = false;
	sim_visit_close(SIM_CLOSED_LINKS, false);
	HASH_ITER(hh, flows, flow, next) {
		HASH_DELETE(hh, flows, flow);
		free(flow);
	}
	memset(&stand_in, 0, sizeof(stand_in));
}
