/* SPDX-License-Identifier: BSD-2-Clause */
/* shm/ring_name.c - see ring_name.h. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "ring_name.h"

#define UNFINISHED ".new"	/* behind the name of a ring that is being made */

void sim_ring_name_format(const struct sim_ring_name *name, char text[SIM_RING_NAME_MAX])
{
	snprintf(text, SIM_RING_NAME_MAX, "ring-%u.%u-%u.%u%s", name->from, name->from_generation,
		 name->to, name->to_generation, name->unfinished ? UNFINISHED : "");
}

static bool parse_ring_name(const char *text, struct sim_ring_name *ret_name)
{
	int end = 0;

	if (sscanf(text, "ring-%u.%u-%u.%u%n", &ret_name->from, &ret_name->from_generation,
		   &ret_name->to, &ret_name->to_generation, &end) != 4)
		return false;
	ret_name->unfinished = !strcmp(text + end, UNFINISHED);
	return ret_name->unfinished || !text[end];
}

bool sim_is_ring_of(const char *file, void *arg)
{
	const unsigned int *slot = arg;
	struct sim_ring_name name;

	return parse_ring_name(file, &name) &&
	       (name.to == *slot || (name.unfinished && name.from == *slot));
}

bool sim_is_ring_name(const char *file, void *arg)
{
	struct sim_ring_name name;

	(void)arg;
	return parse_ring_name(file, &name);
}
