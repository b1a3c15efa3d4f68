/* SPDX-License-Identifier: BSD-2-Clause */
/* link/shape_links.c - what was said about links: between which nodes, and how they are. */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shape_internal.h"

struct setting {
	struct setting *next;
	const struct sim_node *a, *b;		/* NULL: all */
	struct polycm_sim_link link;
};

bool sim_shape_on;

static struct setting *settings;		/* newest first */

const struct polycm_sim_link *sim_shape_link(const struct sim_node *a, const struct sim_node *b)
{
	static struct polycm_sim_link untold;

	for (const struct setting *s = settings; s; s = s->next)
		if (((!s->a || s->a == a) && (!s->b || s->b == b)) ||
		    ((!s->a || s->a == b) && (!s->b || s->b == a)))
			return &s->link;
	untold.latency_ns = sim_is_virtual() ? SIM_LINK_LATENCY : 0;
	return &untold;
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

/* The newest setting leaves nothing to the others that it covers. */
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
	sim_flows_follow_links();
	return 0;
}

bool sim_shape_exchange(const struct sim_node *a, const struct sim_node *b, uint64_t *ret_delay)
{
	const struct polycm_sim_link *link;

	*ret_delay = 0;
	if (!sim_shape_on)
		return true;
	link = sim_shape_link(a, b);
	*ret_delay = 2 * link->latency_ns;
	return !sim_chance(link->loss) && !sim_chance(link->loss);
}

void sim_shape_forget_links(void)
{
	struct setting *setting;

	while ((setting = settings)) {
		settings = setting->next;
		free(setting);
	}
	sim_shape_on = false;
}
