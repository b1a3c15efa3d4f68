/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timeline_select.c - polycm timeline: which lines belong to a connection or
 * pair of nodes, and the two sides of a node that talks to itself.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "polycm.h"
#include "timeline.h"

#define MAX_NAMES 64		/* of nodes, in an error */
#define NUM_MEMBERS (sizeof(node_members) / sizeof(node_members[0]))

static const char *const node_members[] = { "node", "from", "to" };

/* ------------------------------------------------------------------------
 * One connection.
 */

struct connection {
	struct number *ids, *comm_ids, *qpns;
};

static bool grow_packet(struct connection *c, const struct item *item)
{
	long long local = item_key(item, "local"), remote = item_key(item, "remote");
	long long id = item_key(item, "id"), mine = item->kind == ITEM_SEND ? local : remote;
	bool more = false;

	if (number_find(c->ids, id))
		more |= number_add(&c->comm_ids, mine, 0);
	if (number_find(c->comm_ids, local) || number_find(c->comm_ids, remote)) {
		more |= number_add(&c->comm_ids, local, 0);
		more |= number_add(&c->comm_ids, remote, 0);
		more |= number_add(&c->qpns, item_key(item, "qpn"), 0);
		if (number_find(c->comm_ids, mine))
			more |= number_add(&c->ids, id, 0);
	}
	return more;
}

static bool grow(struct connection *c, const struct timeline *timeline)
{
	bool more = false;

	for (size_t i = 0; i < timeline->num_items; i++)
		if (item_is_packet(&timeline->items[i]))
			more |= grow_packet(c, &timeline->items[i]);
	return more;
}

static bool belongs(const struct connection *c, const struct item *item, bool before)
{
	switch (item->kind) {
	case ITEM_EVENT:
		return number_find(c->ids, item_key(item, "id")) ||
		       number_find(c->ids, item_key(item, "child"));
	case ITEM_CALL:
	case ITEM_STATE:
	case ITEM_TIMER:
		return number_find(c->ids, item_key(item, "id")) ||
		       number_find(c->qpns, item_key(item, "qpn"));
	case ITEM_SEND:
	case ITEM_RECV:
		return number_find(c->comm_ids, item_key(item, "local")) ||
		       number_find(c->comm_ids, item_key(item, "remote")) ||
		       number_find(c->qpns, item_key(item, "qpn"));
	case ITEM_FAULT:
		return before || !*item_text(item, "what");	/* what happens to a packet follows it */
	default:
		return true;
	}
}

static int select_id(struct timeline *timeline, long long id)
{
	struct connection c = { NULL, NULL, NULL };
	bool before = false, any = false;

	for (size_t i = 0; i < timeline->num_hosts; i++)
		number_add(&c.ids, timeline_key((int)i, id), 0);
	while (grow(&c, timeline))
		;
	for (size_t i = 0; i < timeline->num_items; i++) {
		struct item *item = &timeline->items[i];

		before = item->selected = belongs(&c, item, before);
		any |= before && item->kind != ITEM_WORLD && item->kind != ITEM_FAULT;
	}
	number_drop(&c.ids);
	number_drop(&c.comm_ids);
	number_drop(&c.qpns);
	if (any)
		return 0;
	tool_error("%s: no line is about the id %lld", timeline->path, id);
	return -1;
}

/* ------------------------------------------------------------------------
 * Two nodes, or two columns.
 */

static bool is_named(const char *node, const char *name, size_t len)
{
	return strlen(node) == len && !memcmp(node, name, len);
}

static bool is_one_of(const char *node, const char *a, size_t a_len, const char *b)
{
	return !strcmp(node, b) || is_named(node, a, a_len);
}

/* "a, b, c": every node that a line names; long lists end early. */
static char *all_nodes(const struct timeline *timeline)
{
	const char *nodes[MAX_NAMES], *node;
	char *all = tool_strdup("");
	size_t num = 0, at;

	for (size_t i = 0; i < timeline->num_items; i++) {
		for (size_t j = 0; j < NUM_MEMBERS; j++) {
			node = item_text(&timeline->items[i], node_members[j]);
			for (at = 0; at < num && strcmp(nodes[at], node); at++)
				;
			if (at < num || !*node || num == MAX_NAMES)
				continue;
			nodes[num++] = node;
			tool_append(&all, "%s%s", *all ? ", " : "", num < MAX_NAMES ? node : "...");
		}
	}
	return all;
}

static bool is_node(const struct timeline *timeline, const char *name, size_t len)
{
	for (size_t i = 0; i < timeline->num_items; i++)
		for (size_t j = 0; j < NUM_MEMBERS; j++)
			if (is_named(item_text(&timeline->items[i], node_members[j]), name, len))
				return true;
	return false;
}

static int check_node(const struct timeline *timeline, const char *name, size_t len)
{
	char *all;

	if (is_node(timeline, name, len))
		return 0;
	all = all_nodes(timeline);
	tool_error("%s: no node is named '%.*s'; there are: %s", timeline->path, (int)len, name, all);
	free(all);
	return -1;
}

/* All columns of a node, or the one of that name: "host, process 1". */
static bool mark_columns(const struct timeline *timeline, const char *name, size_t len,
			 bool marked[TIMELINE_MAX_COLUMNS])
{
	bool any = false;

	for (int i = 0; i < timeline->num_columns; i++) {
		const char *column = timeline->columns[i].name;

		if (!strncmp(column, name, len) && (!column[len] || column[len] == ','))
			any = marked[i] = true;
	}
	return any;
}

/* "host, process 0; host, process 1": names have commas. */
static char *all_columns(const struct timeline *timeline)
{
	char *all = tool_strdup("");

	for (int i = 0; i < timeline->num_columns; i++)
		tool_append(&all, "%s%s", i ? "; " : "", timeline->columns[i].name);
	return all;
}

static void select_columns(struct timeline *timeline, const bool marked[TIMELINE_MAX_COLUMNS])
{
	bool before = false;

	for (size_t i = 0; i < timeline->num_items; i++) {
		struct item *item = &timeline->items[i];
		int far = item->other != TIMELINE_NONE ? timeline->items[item->other].column :
							 item->peer;
		bool here = item->column >= 0 && marked[item->column];

		if (item->column < 0)		/* what happens to a packet follows it */
			here = before && item->kind == ITEM_FAULT;
		else if (item_is_packet(item))
			here = here && (far < 0 || marked[far]);
		before = item->selected = item->selected && here;
	}
}

/* At the comma that stands between two of them. */
static int select_between_columns(struct timeline *timeline, const char *names)
{
	char *all;

	for (const char *comma = strchr(names, ','); comma; comma = strchr(comma + 1, ',')) {
		const char *b = comma + 1 + strspn(comma + 1, " ");
		bool marked[TIMELINE_MAX_COLUMNS] = { false };

		if (mark_columns(timeline, names, (size_t)(comma - names), marked) &&
		    mark_columns(timeline, b, strlen(b), marked)) {
			select_columns(timeline, marked);
			return 0;
		}
	}
	all = all_columns(timeline);
	tool_error("%s: '%s' is not two columns with a comma between; there are: %s", timeline->path,
		   names, all);
	free(all);
	return -1;
}

static int select_between_nodes(struct timeline *timeline, const char *names)
{
	const char *comma = strchr(names, ','), *b = comma + 1;
	size_t a_len = (size_t)(comma - names);

	if (check_node(timeline, names, a_len) || check_node(timeline, b, strlen(b)))
		return -1;
	for (size_t i = 0; i < timeline->num_items; i++) {
		struct item *item = &timeline->items[i];
		const char *from = item_text(item, "from"), *to = item_text(item, "to");

		if (*from || *to)
			item->selected = item->selected && is_one_of(from, names, a_len, b) &&
					 (!*to || is_one_of(to, names, a_len, b));
		else
			item->selected = item->selected &&
					 is_one_of(item_text(item, "node"), names, a_len, b);
	}
	return 0;
}

static int select_between(struct timeline *timeline, const char *names)
{
	bool many = strchr(strchr(names, ',') + 1, ',');

	if (many ? select_between_columns(timeline, names) : select_between_nodes(timeline, names))
		return -1;
	for (size_t i = 0; i < timeline->num_items; i++)
		if (timeline->items[i].selected)
			return 0;
	tool_error("%s: nothing happens between %s", timeline->path, names);
	return -1;
}

/* ------------------------------------------------------------------------
 * A node that talks to itself: two columns, for those who connect and those
 * who are connected to.
 */

struct sides {
	struct number *ids, *comm_ids, *qpns;	/* value: the column */
};

static bool begins(const struct item *item)
{
	return !strcmp(item->text, "REQ") || !strcmp(item->text, "SIDR_REQ") ||
	       !strcmp(item->text, "SYN");
}

static void learn(struct sides *sides, const struct item *item)
{
	struct number *side;

	if (item->kind == ITEM_EVENT && item_number(item, "child") > 0) {
		number_add(&sides->ids, item_key(item, "id"), 1);
		number_add(&sides->ids, item_key(item, "child"), 1);
	}
	if (item->kind == ITEM_STATE && !strcmp(item->text, "LISTEN"))
		number_add(&sides->ids, item_key(item, "id"), 1);
	if (item->kind != ITEM_SEND || item_number(item, "local") <= 0)
		return;
	number_add(&sides->comm_ids, item_key(item, "local"), begins(item) ? 0 : 1);
	side = number_find(sides->comm_ids, item_key(item, "local"));
	number_add(&sides->ids, item_key(item, "id"), side->value);
	if (strcmp(item->text, "DREQ"))		/* which names the peer's QP */
		number_add(&sides->qpns, item_key(item, "qpn"), side->value);
}

static int side_of(const struct sides *sides, const struct item *item)
{
	const struct number *side = number_find(sides->comm_ids, item_key(item, "local"));

	if (!side && item_is_packet(item))
		side = number_find(sides->comm_ids, item_key(item, "remote"));
	if (!number_find(sides->comm_ids, item_key(item, "local")) && side)
		return 1 - (int)side->value;	/* an answer that comes from no id */
	if (!side)
		side = number_find(sides->qpns, item_key(item, "qpn"));
	if (!side)
		side = number_find(sides->ids, item_key(item, "id"));
	return side ? (int)side->value : 0;
}

static void split(struct timeline *timeline)
{
	struct sides sides = { NULL, NULL, NULL };
	struct column *columns = timeline->columns;

	for (size_t i = 0; i < timeline->num_items; i++)
		learn(&sides, &timeline->items[i]);
	for (size_t i = 0; i < timeline->num_items; i++) {
		struct item *item = &timeline->items[i];
		int side = side_of(&sides, item);

		if (item->column < 0)
			continue;
		item->column = item->kind == ITEM_RECV ? 1 - side : side;
		if (item->peer >= 0)
			item->peer = 1 - item->column;
	}
	columns[1] = (struct column){
		.name = tool_printf("%s, passive", columns[0].name),
		.about = tool_strdup(columns[0].about),
		.first_id = -1,
	};
	free(columns[0].name);
	columns[0].name = tool_printf("%.*s, active", (int)strlen(columns[1].name) - 9,
				      columns[1].name);
	timeline->num_columns = 2;
	number_drop(&sides.ids);
	number_drop(&sides.comm_ids);
	number_drop(&sides.qpns);
}

/* One process of several has packets, but not both ends of any. */
static bool talks_to_itself(const struct timeline *timeline)
{
	if (timeline->num_columns != 1)
		return false;
	for (size_t i = 0; i < timeline->num_items; i++) {
		const struct item *item = &timeline->items[i];

		if (item_is_packet(item) && (item->process < 0 || item->other != TIMELINE_NONE))
			return true;
	}
	return false;
}

/* What a server does before a client connects. */
static bool is_listening(const struct item *item)
{
	return item->kind == ITEM_STATE && (!strcmp(item->text, "LISTEN") ||
					    !strcmp(item->text, "ADDR_BOUND"));
}

static void take_column(int column, int place[TIMELINE_MAX_COLUMNS], int *num)
{
	if (column >= 0 && place[column] < 0)
		place[column] = (*num)++;
}

/* Who acts first stands on the left; columns in which nothing is left go. */
static void order_columns(struct timeline *timeline)
{
	struct column old[TIMELINE_MAX_COLUMNS];
	int place[TIMELINE_MAX_COLUMNS], num = 0;

	memcpy(old, timeline->columns, sizeof(old));
	for (int i = 0; i < TIMELINE_MAX_COLUMNS; i++)
		place[i] = -1;
	for (size_t i = 0; i < timeline->num_items; i++) {
		const struct item *item = &timeline->items[i];

		if (item->selected && item->kind != ITEM_RECV && !is_listening(item)) {
			take_column(item->column, place, &num);
			take_column(item->peer, place, &num);
		}
	}
	for (size_t i = 0; i < timeline->num_items; i++) {
		if (timeline->items[i].selected) {
			take_column(timeline->items[i].column, place, &num);
			take_column(timeline->items[i].peer, place, &num);
		}
	}
	for (int i = 0; i < timeline->num_columns; i++) {
		if (place[i] >= 0) {
			timeline->columns[place[i]] = old[i];
		} else {
			free(old[i].name);
			free(old[i].about);
		}
	}
	timeline->num_columns = num;
	for (size_t i = 0; i < timeline->num_items; i++) {
		struct item *item = &timeline->items[i];

		item->column = item->selected && item->column >= 0 ? place[item->column] : -1;
		item->peer = item->selected && item->peer >= 0 ? place[item->peer] : -1;
	}
}

int timeline_select(struct timeline *timeline, long long id, const char *between)
{
	timeline_pair(timeline);
	if (talks_to_itself(timeline))
		split(timeline);
	timeline_find_peers(timeline);
	if (id >= 0 && select_id(timeline, id))
		return -1;
	if (between && select_between(timeline, between))
		return -1;
	if (timeline->cm)
		timeline_leave_out_data(timeline);
	if (timeline->until)
		timeline_keep_last(timeline);
	order_columns(timeline);
	return 0;
}
