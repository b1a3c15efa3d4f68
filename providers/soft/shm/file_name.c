/* SPDX-License-Identifier: BSD-2-Clause */
/* shm/file_name.c - see file_name.h. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "file_name.h"

#define UNFINISHED ".new"	/* behind the name of a file that is being made */

void sim_ring_name_format(const struct sim_ring_name *name, char text[SIM_FILE_NAME_MAX])
{
	snprintf(text, SIM_FILE_NAME_MAX, "ring-%u.%u-%u.%u%s", name->from, name->from_generation,
		 name->to, name->to_generation, name->unfinished ? UNFINISHED : "");
}

void sim_access_name_format(unsigned int slot, uint32_t generation, bool unfinished,
			    char text[SIM_FILE_NAME_MAX])
{
	snprintf(text, SIM_FILE_NAME_MAX, "access-%u.%u%s", slot, generation,
		 unfinished ? UNFINISHED : "");
}

/* What stands behind the numbers: nothing, or that it is unfinished. */
static bool parse_end(const char *end, bool *ret_unfinished)
{
	*ret_unfinished = !strcmp(end, UNFINISHED);
	return *ret_unfinished || !end[0];
}

static bool parse_ring_name(const char *text, struct sim_ring_name *ret_name)
{
	int end = 0;

	return sscanf(text, "ring-%u.%u-%u.%u%n", &ret_name->from, &ret_name->from_generation,
		      &ret_name->to, &ret_name->to_generation, &end) == 4 &&
	       parse_end(text + end, &ret_name->unfinished);
}

static bool parse_access_name(const char *text, unsigned int *ret_slot)
{
	uint32_t generation;
	bool unfinished;
	int end = 0;

	return sscanf(text, "access-%u.%u%n", ret_slot, &generation, &end) == 2 &&
	       parse_end(text + end, &unfinished);
}

bool sim_is_file_of(const char *file, void *arg)
{
	const unsigned int *slot = arg;
	struct sim_ring_name name;
	unsigned int of;

	if (parse_access_name(file, &of))
		return of == *slot;
	return parse_ring_name(file, &name) &&
	       (name.to == *slot || (name.unfinished && name.from == *slot));
}

bool sim_is_process_file(const char *file, void *unused)
{
	struct sim_ring_name name;
	unsigned int slot;

	(void)unused;
	return parse_ring_name(file, &name) || parse_access_name(file, &slot);
}
