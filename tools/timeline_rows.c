/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timeline_rows.c - polycm timeline: items become rows.  A message is one row,
 * at the time at which it was sent, unless something happens at its receiver
 * before it comes, or it takes long: then it is two.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "polycm.h"
#include "timeline.h"

#include <uthash.h>

#define GAP 1000000u		/* ns without a line that are shown as a gap */
#define MAX_NOTE 60u		/* characters of states in one row */
#define NS_MAX_LOOK 100000u	/* items to look through for an arrival */

/* Of a message that is two rows. */
struct flight {
	size_t row;		/* DEPART */
	unsigned int tag;
};

/* A message that may be sent again. */
struct message {
	char *key;
	unsigned int times;
	UT_hash_handle hh;
};

struct builder {
	const struct timeline *timeline;
	struct rows *rows;
	struct flight *flights;	/* of items that are sent; tag 0: in one row */
	struct message *messages;
	unsigned int last_tag;
	uint64_t last_time;
	bool many_ids[TIMELINE_MAX_COLUMNS];
	/* The row of states that more may be added to; num_rows where there is none. */
	size_t open_note[TIMELINE_MAX_COLUMNS];
	long long note_id[TIMELINE_MAX_COLUMNS], note_qpn[TIMELINE_MAX_COLUMNS];
};

/* ------------------------------------------------------------------------
 * Rows.
 */

static struct row *append(struct builder *b, enum row_kind kind, uint64_t time)
{
	struct rows *rows = b->rows;

	if (rows->num == rows->room) {
		rows->room = rows->room ? 2 * rows->room : 256;
		rows->rows = tool_realloc(rows->rows, rows->room, sizeof(*rows->rows));
	}
	rows->rows[rows->num] = (struct row){ .kind = kind, .time = time, .column = -1, .peer = -1 };
	return &rows->rows[rows->num++];
}

/* To a thousandth of its unit, without zeros at the end: "4.608 s". */
static char *gap_text(uint64_t ns)
{
	uint64_t part = ns >= 1000000000u ? 1000000u : 1000u;
	const char *text = timeline_time((ns + part / 2) / part * part), *unit = strchr(text, ' ');
	int len = (int)(unit - text);

	while (memchr(text, '.', (size_t)len) && strchr("0.", text[len - 1]))
		if (text[--len] == '.')
			break;
	return tool_printf("%.*s%s", len, text, unit);
}

static struct row *add(struct builder *b, enum row_kind kind, uint64_t time)
{
	bool other = !b->rows->num || time != b->last_time;
	struct row *row;

	if (b->rows->num && time > b->last_time && time - b->last_time >= GAP)
		append(b, ROW_GAP, time)->text = gap_text(time - b->last_time);
	b->last_time = time;
	row = append(b, kind, time);
	row->shows_time = other;
	return row;
}

static void close_note(struct builder *b, int column)
{
	if (column >= 0)
		b->open_note[column] = SIZE_MAX;
}

static struct row *note(struct builder *b, const struct item *item, enum row_style style, char *text)
{
	struct row *row = add(b, ROW_NOTE, item->time);

	row->style = style;
	row->column = item->column;
	row->text = text;
	close_note(b, item->column);
	return row;
}

/* States go on in the row of the last one, if nothing else has happened there meanwhile. */
static bool extend(struct builder *b, const struct item *item, const char *text, bool chain)
{
	size_t open = b->open_note[item->column];
	struct row *row;

	if (open >= b->rows->num)
		return false;
	row = &b->rows->rows[open];
	if (row->time != item->time || strlen(row->text) + strlen(text) > MAX_NOTE)
		return false;
	tool_append(&row->text, "%s%s", chain ? "\342\206\222" : " \302\267 ", text);
	return true;
}

/* The event of the same name follows and is shown instead. */
static bool has_event(const struct timeline *t, const struct item *item)
{
	const struct item *next = item + 1;

	return next < t->items + t->num_items && next->kind == ITEM_EVENT &&
	       next->time == item->time && !strcmp(next->text, item->text) &&
	       item_number(next, "id") == item_number(item, "id");
}

static void state(struct builder *b, const struct item *item)
{
	const char *of = item_text(item, "of");
	bool qp = !strcmp(of, "qp"), goes_on;
	long long id = qp ? -1 : item_number(item, "id"), qpn = qp ? item_number(item, "qpn") : -1;
	char *text, *tag;

	if (item->column < 0 || has_event(b->timeline, item))
		return;
	tag = qp ? tool_printf("QP %lld ", qpn) :
	      b->many_ids[item->column] ? tool_printf("id %lld: ", id) : tool_strdup("");
	text = tool_printf("%s%s%s", tag, !strcmp(of, "cm") ? "CM " : "", item->text);
	/* A row that goes on names its id or QP once. */
	goes_on = b->open_note[item->column] != SIZE_MAX &&
		  (qp ? b->note_qpn[item->column] == qpn : b->note_id[item->column] == id);
	if (!extend(b, item, goes_on ? text + strlen(tag) : text, goes_on && qp)) {
		note(b, item, STYLE_STATE, tool_strdup(text));
		b->open_note[item->column] = b->rows->num - 1;
	}
	b->note_qpn[item->column] = qpn;
	if (id >= 0)
		b->note_id[item->column] = id;
	free(text);
	free(tag);
}

static void timer(struct builder *b, const struct item *item)
{
	const char *action = item_text(item, "action");
	long long until = item_number(item, "until"), qpn = item_number(item, "qpn");
	char *whose;

	/* What is armed for its case mostly ends before it. */
	if (!b->timeline->all && (strcmp(action, "fired") || !strncmp(item->text, "resolve", 7) ||
				  !strcmp(item->text, "join_multicast")))
		return;
	if (item->column < 0)
		return;
	whose = qpn >= 0 ? tool_printf(" of QP %lld", qpn) :
		b->many_ids[item->column] ? tool_printf(" of id %lld", item_number(item, "id")) :
		tool_strdup("");
	if (!strcmp(action, "armed") && until >= 0)
		note(b, item, STYLE_TIMER,
		     tool_printf("timer %s%s: in %s", item->text, whose,
				 timeline_time((uint64_t)until > item->time ?
					       (uint64_t)until - item->time : 0)));
	else
		note(b, item, STYLE_TIMER,
		     tool_printf("timer %s%s %s", item->text, whose, action));
	free(whose);
}

/* ------------------------------------------------------------------------
 * Messages.
 */

/* Where it arrives, if that is asked for. */
static size_t arrival_of(const struct timeline *t, size_t sent)
{
	size_t other = t->items[sent].other;

	return other != TIMELINE_NONE && t->items[other].selected ? other : TIMELINE_NONE;
}

/* Does the receiver do something while the message is on its way? */
static bool is_split(const struct timeline *t, size_t sent, size_t arrives)
{
	const struct item *arrival = &t->items[arrives];

	if (arrival->time - t->items[sent].time >= TIMELINE_LATE || arrives - sent > NS_MAX_LOOK)
		return true;
	for (size_t i = sent + 1; i < arrives; i++) {
		const struct item *item = &t->items[i];

		if (item->selected && item->column == arrival->column &&
		    (item->kind == ITEM_SEND || item->kind == ITEM_EVENT ||
		     item->kind == ITEM_STATE))
			return true;
	}
	return false;
}

static bool is_copy(const struct item *item)
{
	return item->packet & ((1u << TIMELINE_COPY_BITS) - 1);
}

/* How often it was sent before; not the copy of a packet. */
static unsigned int count_message(struct builder *b, const struct item *item)
{
	struct message *message;
	unsigned int before;
	char *key;

	if (item_is_tcp(item))
		key = tool_printf("TCP/%llu", (unsigned long long)item->packet);
	/* ACKs and the like are repeated all the time; datagrams have no number. */
	else if (strstr(item->text, "ACK") || strstr(item->text, "NAK") || !strcmp(item->text, "UD"))
		return 0;
	else
		key = tool_printf("%s/%s/%s/%lld/%lld/%lld/%lld/%lld", item_text(item, "from"),
				  item_text(item, "to"), item->text, item_number(item, "local"),
				  item_number(item, "remote"), item_number(item, "qpn"),
				  item_number(item, "psn"), item_number(item, "offset"));
	HASH_FIND_STR(b->messages, key, message);
	if (!message) {
		message = tool_realloc(NULL, 1, sizeof(*message));
		*message = (struct message){ .key = key };
		HASH_ADD_KEYPTR(hh, b->messages, message->key, strlen(message->key), message);
		return 0;
	}
	free(key);
	before = is_copy(item) ? message->times : ++message->times;
	return before;
}

static bool is_data(const struct item *item)
{
	return item_number(item, "dst_qpn") >= 0 || !strcmp(item->text, "TCP_DATA");
}

/* A message of which the trace has one end. */
static void set_open(struct builder *b, struct row *row, const struct item *item)
{
	row->open = true;
	if (item->process < 0)
		return;		/* it was under way when the trace ended */
	if (row->peer >= 0 && !b->timeline->hosts[b->timeline->columns[row->peer].host].traced)
		b->rows->without_trace++;
	else if (row->peer >= 0 && b->timeline->columns[row->peer].untraced)
		b->rows->untraced++;
	else
		b->rows->unseen++;
}

static void send(struct builder *b, size_t i)
{
	const struct timeline *t = b->timeline;
	const struct item *item = &t->items[i];
	size_t arrives = arrival_of(t, i);
	unsigned int again = count_message(b, item);
	bool split;
	struct row *row;

	if (item->column < 0)
		return;
	split = arrives != TIMELINE_NONE && is_split(t, i, arrives);
	row = add(b, split ? ROW_DEPART : ROW_MESSAGE, item->time);
	row->style = is_data(item) ? STYLE_DATA : STYLE_PLAIN;
	row->column = item->column;
	row->peer = arrives != TIMELINE_NONE ? t->items[arrives].column : item->peer;
	row->text = timeline_message_text(item);
	row->again = again;
	row->copy = is_copy(item);
	row->lost = item->lost;
	if (item->other == TIMELINE_NONE && !item->lost)
		set_open(b, row, item);
	if (split) {
		row->tag = b->flights[i].tag = ++b->last_tag;
		b->flights[i].row = b->rows->num - 1;
	}
	close_note(b, row->column);
	close_note(b, row->peer);
}

/* Without a row of its own if the message's row has the arrow's head. */
static void receive(struct builder *b, size_t i)
{
	const struct timeline *t = b->timeline;
	const struct item *item = &t->items[i];
	size_t sent = item->other;
	bool shown = sent != TIMELINE_NONE && t->items[sent].selected;
	const struct flight *flight = shown ? &b->flights[sent] : NULL;
	struct row *row;

	if (item->column < 0 || (shown && !flight->tag && t->items[sent].other == i))
		return;
	row = add(b, ROW_ARRIVE, item->time);
	row->style = is_data(item) ? STYLE_DATA : STYLE_PLAIN;
	row->column = item->column;
	row->peer = shown ? t->items[sent].column : item->peer;
	row->text = timeline_message_text(item);
	row->other = TIMELINE_NONE;
	if (sent == TIMELINE_NONE)
		set_open(b, row, item);
	row->copy = is_copy(item);
	if (shown && flight->tag) {
		row->tag = flight->tag;
		row->other = flight->row;
		if (!row->copy)
			b->rows->rows[flight->row].other = b->rows->num - 1;
	}
	close_note(b, row->column);
}

/* ------------------------------------------------------------------------
 * All of it.
 */

static bool is_process(const char *name, long long process)
{
	const char *number = strstr(name, "process ");

	return number && strtoll(number + strlen("process "), NULL, 10) == process;
}

static int column_of_sender(const struct timeline *timeline, const char *node, long long process)
{
	size_t len = strlen(node);
	int first = -1;

	for (int i = 0; i < timeline->num_columns; i++) {
		const char *name = timeline->columns[i].name;

		if (strncmp(name, node, len) || (name[len] && name[len] != ','))
			continue;
		if (process < 0 || timeline->columns[i].process == process ||
		    is_process(name + len, process))
			return i;
		if (first < 0)
			first = i;
	}
	return first;
}

static void fault(struct builder *b, struct item item)
{
	const char *from = item_text(&item, "from");

	/* Beside the one who sends, if no node is named: the rule is asked there. */
	if (item.column < 0 && *from)
		item.column = column_of_sender(b->timeline, from, item.process);
	if (item.column < 0)
		item.column = 0;
	note(b, &item, STYLE_FAULT, timeline_fault_text(&item));
}

static bool is_bad(const struct item *item)
{
	static const char *const bad[] = {
		"ADDR_ERROR", "ROUTE_ERROR", "CONNECT_ERROR", "UNREACHABLE", "REJECTED",
		"DEVICE_REMOVAL", "MULTICAST_ERROR",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!strcmp(item->text, bad[i]))
			return true;
	return false;
}

static bool call_failed(const struct item *item)
{
	return json_integer_value(json_object_get(item->json, "result")) < 0;
}

static void one(struct builder *b, size_t i)
{
	const struct item *item = &b->timeline->items[i];

	switch (item->kind) {
	case ITEM_EVENT:
		if (item->column >= 0)
			note(b, item, is_bad(item) ? STYLE_BAD_EVENT : STYLE_EVENT,
			     timeline_event_text(item, b->many_ids[item->column]));
		break;
	case ITEM_CALL:
		if (item->column >= 0)
			note(b, item, call_failed(item) ? STYLE_BAD_EVENT : STYLE_PLAIN,
			     timeline_call_text(item, b->many_ids[item->column]));
		break;
	case ITEM_STATE:
		state(b, item);
		break;
	case ITEM_SEND:
		send(b, i);
		break;
	case ITEM_RECV:
		receive(b, i);
		break;
	case ITEM_TIMER:
		timer(b, item);
		break;
	case ITEM_FAULT:
		fault(b, *item);
		break;
	case ITEM_WORLD:
		if (item->column >= 0)
			note(b, item, STYLE_FAULT, timeline_world_text(item));
		break;
	case ITEM_ADDRESS:
	case ITEM_HOST:
	case ITEM_CLOCK:
		break;
	}
}

/* Numbers of ids are shown only in columns with several ids. */
static void look_for_ids(struct builder *b)
{
	long long first[TIMELINE_MAX_COLUMNS];

	for (int i = 0; i < TIMELINE_MAX_COLUMNS; i++)
		first[i] = -1;
	for (size_t i = 0; i < b->timeline->num_items; i++) {
		const struct item *item = &b->timeline->items[i];
		long long id = item_number(item, "id");

		if (!item->selected || item->column < 0 || id < 0)
			continue;
		if (first[item->column] >= 0 && first[item->column] != id)
			b->many_ids[item->column] = true;
		first[item->column] = id;
	}
}

void timeline_rows(const struct timeline *timeline, struct rows *ret_rows)
{
	struct builder b = { .timeline = timeline, .rows = ret_rows };
	struct message *message, *next_message;

	*ret_rows = (struct rows){ .rows = NULL };
	for (int i = 0; i < TIMELINE_MAX_COLUMNS; i++)
		b.open_note[i] = SIZE_MAX;
	b.flights = tool_realloc(NULL, timeline->num_items, sizeof(*b.flights));
	memset(b.flights, 0, timeline->num_items * sizeof(*b.flights));
	look_for_ids(&b);
	for (size_t i = 0; i < timeline->num_items; i++)
		if (timeline->items[i].selected)
			one(&b, i);
	free(b.flights);
	HASH_ITER(hh, b.messages, message, next_message) {
		HASH_DEL(b.messages, message);
		free(message->key);
		free(message);
	}
}

bool timeline_ends(const struct timeline *timeline, const struct row *row, int *ret_from,
		   int *ret_to)
{
	bool arrives = row->kind == ROW_ARRIVE;
	int from = arrives ? row->peer : row->column, to = arrives ? row->column : row->peer;

	/* Lost on its way to nobody: towards the neighbour. */
	if (row->lost && to < 0 && timeline->num_columns > 1)
		to = from ? from - 1 : from + 1;
	*ret_from = from;
	*ret_to = to;
	return from >= 0 && to >= 0 && from != to;
}

void timeline_rows_free(struct rows *rows)
{
	for (size_t i = 0; i < rows->num; i++)
		free(rows->rows[i].text);
	free(rows->rows);
}
