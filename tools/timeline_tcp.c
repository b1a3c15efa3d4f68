/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timeline_tcp.c - polycm timeline: TCP connections of programs are between nodes.  One process writes
 * all of their lines, who carries them (polycm carry); nothing happens there, so it has no column.
 */
#include "config.h"

#include <string.h>

#include "polycm.h"
#include "timeline.h"

#define PREFIX "TCP_"

static bool is_of_tcp(const char *message)
{
	return !strncmp(message, PREFIX, strlen(PREFIX));
}

bool item_is_tcp(const struct item *item)
{
	return item_is_packet(item) && is_of_tcp(item->text);
}

/* Of the node's only process; else one of the node's own. */
static int column_of_node(struct timeline *timeline, const char *node, int host)
{
	const size_t len = strlen(node);
	int only = -1, column;
	bool is_one = true;

	for (int i = 0; i < timeline->num_columns; i++) {
		const struct column *one = &timeline->columns[i];

		if (one->host != host || one->untraced || one->kernel || strncmp(one->name, node, len) ||
		    (one->name[len] && one->name[len] != ','))
			continue;
		is_one = only < 0;
		only = i;
	}
	if (only >= 0 && is_one)
		return only;
	column = timeline_column(timeline, tool_strdup(node));
	if (column >= 0)
		timeline->columns[column].host = host;
	return column;
}

static void place(struct timeline *timeline, struct item *item)
{
	const char *from = item_text(item, "from"), *to = item_text(item, "to");
	const bool sends = item->kind == ITEM_SEND;

	item->column = column_of_node(timeline, sends ? from : to, item->host);
	item->peer = *to ? column_of_node(timeline, sends ? to : from, item->far) : -1;
}

void timeline_place_tcp(struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->num_items; i++) {
		struct item *item = &timeline->items[i];

		if (item_is_tcp(item))
			place(timeline, item);
		else if (item->kind == ITEM_FAULT && is_of_tcp(item_text(item, "what")) &&
			 *item_text(item, "from"))
			item->column = column_of_node(timeline, item_text(item, "from"), item->host);
	}
}

int timeline_tcp_column(const struct timeline *timeline, const struct item *change)
{
	bool carries = false;

	for (size_t i = 0; !carries && i < timeline->num_items; i++)
		carries = item_is_tcp(&timeline->items[i]) &&
			  timeline->items[i].process == change->process &&
			  timeline->items[i].file == change->file;
	for (int i = 0; carries && i < timeline->num_columns; i++)
		if (!strcmp(timeline->columns[i].name, item_text(change, "node")))
			return i;
	return -1;
}
