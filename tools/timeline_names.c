/* SPDX-License-Identifier: BSD-2-Clause */
/* timeline_names.c - polycm timeline: columns are named after what their processes run. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "polycm.h"
#include "timeline.h"

/* "host, process 0" becomes "host, rping (process 0)". */
static void name_columns(struct timeline *timeline)
{
	for (int i = 0; i < timeline->num_columns; i++) {
		char *name = timeline->columns[i].name, *number = strrchr(name, ','), *longer;
		long long process;

		if (!number || sscanf(number, ", process %lld", &process) != 1)
			continue;
		for (size_t j = 0; j < timeline->num_programs; j++) {
			const struct program *program = &timeline->programs[j];

			if (program->process != process ||
			    timeline->files[program->file].host != timeline->columns[i].host)
				continue;
			longer = tool_printf("%.*s, %s (process %lld)", (int)(number - name), name,
					     program->name, process);
			free(name);
			timeline->columns[i].name = longer;
			timeline->columns[i].process = process;
			break;
		}
	}
}

/* Without the number of the process, if no other column is of a program of that name on the node. */
static void shorten_names(struct timeline *timeline)
{
	struct column *columns = timeline->columns;
	size_t lengths[TIMELINE_MAX_COLUMNS];
	const char *number;

	for (int i = 0; i < timeline->num_columns; i++) {
		number = columns[i].process < 0 ? NULL : strstr(columns[i].name, " (process ");
		lengths[i] = number ? (size_t)(number - columns[i].name) : 0;
	}
	for (int i = 0; i < timeline->num_columns; i++) {
		bool is_only = lengths[i];

		for (int j = 0; j < timeline->num_columns; j++)
			is_only &= i == j || lengths[i] != lengths[j] ||
				   strncmp(columns[i].name, columns[j].name, lengths[i]) != 0;
		if (is_only)
			columns[i].name[lengths[i]] = '\0';
	}
}

void timeline_name_columns(struct timeline *timeline)
{
	name_columns(timeline);
	shorten_names(timeline);
}
