/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timeline_gone.c - polycm timeline: messages to a node whose program has ended.  A process of another
 * node takes them in its place, as a host's connection manager does, and has a line for each.  They
 * arrive where that node's program was.
 */
#include "config.h"

#include <string.h>

#include "timeline.h"

/* Of the node in "node, process 3"; 0: it is none of a process. */
static size_t node_len(const char *name)
{
	const char *end = strstr(name, ", process ");

	return end ? (size_t)(end - name) : 0;
}

/* Nothing happens there but that messages arrive. */
static bool only_receives(const struct timeline *timeline, int column)
{
	bool receives = false;

	for (size_t i = 0; i < timeline->num_items; i++) {
		if (timeline->items[i].column != column)
			continue;
		if (timeline->items[i].kind != ITEM_RECV)
			return false;
		receives = true;
	}
	return receives;
}

/* The only other one of the node; -1: there is none, or there are several. */
static int home_of(const struct timeline *timeline, int column)
{
	const struct column *columns = timeline->columns;
	const size_t len = node_len(columns[column].name);
	int home = -1;

	for (int i = 0; len && i < timeline->num_columns; i++) {
		if (i == column || columns[i].host != columns[column].host ||
		    node_len(columns[i].name) != len ||
		    strncmp(columns[i].name, columns[column].name, len) != 0)
			continue;
		if (home >= 0)
			return -1;
		home = i;
	}
	return home;
}

static void move(struct timeline *timeline, int from, int to)
{
	for (size_t i = 0; i < timeline->num_items; i++) {
		struct item *item = &timeline->items[i];

		if (item->column == from)
			item->column = to;
		if (item->peer == from)
			item->peer = to;
	}
	/* It is not shown, and other names need not differ from its. */
	timeline->columns[from].name[0] = '\0';
}

void timeline_place_gone(struct timeline *timeline)
{
	int home;

	for (int i = 0; i < timeline->num_columns; i++) {
		home = only_receives(timeline, i) ? home_of(timeline, i) : -1;
		if (home >= 0)
			move(timeline, i, home);
	}
}
