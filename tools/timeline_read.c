/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timeline_read.c - polycm timeline: the lines of traces, checked, and the
 * columns that they belong to.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "polycm.h"
#include "timeline.h"

static const struct {
	const char *name;
	enum item_kind kind;
	const char *text;	/* the member that says what it is */
} kinds[] = {
	{ "event", ITEM_EVENT, "event" },
	{ "call", ITEM_CALL, "call" },
	{ "state", ITEM_STATE, "state" },
	{ "send", ITEM_SEND, "message" },
	{ "recv", ITEM_RECV, "message" },
	{ "timer", ITEM_TIMER, "timer" },
	{ "fault", ITEM_FAULT, "action" },
	{ "address", ITEM_ADDRESS, "address" },
	{ "node", ITEM_WORLD, "node" },
	{ "port", ITEM_WORLD, "node" },
	{ "device", ITEM_WORLD, "node" },
	{ "mac", ITEM_WORLD, "node" },
	{ "host", ITEM_HOST, "host" },
	{ "clock", ITEM_CLOCK, "host" },
};

const char *item_text(const struct item *item, const char *name)
{
	const char *text = json_string_value(json_object_get(item->json, name));

	return text ? text : "";
}

long long item_number(const struct item *item, const char *name)
{
	const json_t *value = json_object_get(item->json, name);

	return json_is_integer(value) ? json_integer_value(value) : -1;
}

/* ------------------------------------------------------------------------
 * Columns.
 */

int timeline_column(struct timeline *timeline, char *name)
{
	int i;

	for (i = 0; i < timeline->num_columns; i++)
		if (!strcmp(timeline->columns[i].name, name))
			break;
	if (i < timeline->num_columns || i == TIMELINE_MAX_COLUMNS) {
		free(name);
		return i < TIMELINE_MAX_COLUMNS ? i : -1;
	}
	timeline->columns[i] = (struct column){ .name = name, .about = tool_strdup(""), .first_id = -1 };
	timeline->columns[i].process = -1;
	return timeline->num_columns++;
}

/* A column of a host. */
static int host_column(struct timeline *timeline, char *name, int host)
{
	int column = timeline_column(timeline, name);

	if (column >= 0)
		timeline->columns[column].host = host;
	return column;
}

/* The node, and on a shared fabric the process. */
static int find_column(struct timeline *timeline, const char *node, int host, long long process)
{
	return host_column(timeline, process < 0 ? tool_strdup(node) :
			   tool_printf("%s, process %lld", node, process), host);
}

/*
 * A line about another host than the writer's: where no process answers, the writer does what the
 * kernel there would do.
 */
static int foreign_column(struct timeline *timeline, const char *node, int host)
{
	bool traced = timeline->hosts[host].traced;
	int column = host_column(timeline, tool_printf("%s, %s", node, traced ? "kernel" : "not traced"),
				 host);

	if (column >= 0) {
		timeline->columns[column].untraced = !traced;
		timeline->columns[column].kernel = traced;
	}
	return column;
}

static void add_about(struct column *column, const struct item *item)
{
	const char *device = item_text(item, "device");

	if (strcmp(item_text(item, "action"), "added") || strstr(column->about, item->text) ||
	    strlen(column->about) > 60)
		return;
	if (!strstr(column->about, device))
		tool_append(&column->about, "%s%s %s", *column->about ? ", " : "", device,
			    item_text(item, "transport"));
	tool_append(&column->about, " %s", item->text);
}

/* Something that happens to a node, and a process that says so. */
static bool is_change(const struct item *item)
{
	return item->process >= 0 && (item->kind == ITEM_WORLD ||
				      (item->kind == ITEM_FAULT && *item_text(item, "node")));
}

static void place(struct timeline *timeline, struct item *item)
{
	bool packet = item_is_packet(item);
	const char *here = item_text(item, packet ? item->kind == ITEM_SEND ? "from" : "to" : "node");
	const char *there = item_text(item, item->kind == ITEM_SEND ? "to" : "from");

	item->column = item->peer = -1;
	if (item->kind == ITEM_HOST || item->kind == ITEM_CLOCK)
		return;
	if (item->kind == ITEM_ADDRESS && item->process >= 0)
		return;		/* of all processes alike */
	if (is_change(item) || (item->process >= 0 && item_is_tcp(item)))
		return;		/* see place_changes(), timeline_place_tcp() */
	if (*here && item->host != item->writer)
		item->column = foreign_column(timeline, here, item->host);
	else if (*here)
		item->column = find_column(timeline, here, item->host, item->process);
	/* The other process is known when it has received it. */
	if (packet && *there && item->process < 0)
		item->peer = find_column(timeline, there, item->far, -1);
	if (item->kind == ITEM_ADDRESS && item->column >= 0)
		add_about(&timeline->columns[item->column], item);
}

static int named_column(const struct timeline *timeline, const char *name, size_t len)
{
	for (int i = 0; i < timeline->num_columns; i++)
		if (!strncmp(timeline->columns[i].name, name, len) &&
		    (!timeline->columns[i].name[len] || timeline->columns[i].name[len] == ','))
			return i;
	return -1;
}

/* Is it the end of a message that another process may have traced? */
static bool is_in_packet(const struct timeline *timeline, const char *node)
{
	for (size_t i = 0; i < timeline->num_items; i++) {
		const struct item *item = &timeline->items[i];

		if (item_is_packet(item) &&
		    (!strcmp(item_text(item, "from"), node) || !strcmp(item_text(item, "to"), node)))
			return true;
	}
	return false;
}

/* Of a node that no process of the trace does anything on. */
static int column_of_nobody(struct timeline *timeline, const char *node)
{
	int column;

	if (!is_in_packet(timeline, node))
		return timeline_column(timeline, tool_strdup(node));
	column = timeline_column(timeline, tool_printf("%s, not traced", node));
	if (column >= 0)
		timeline->columns[column].untraced = true;
	return column;
}

/*
 * On a shared fabric, all processes trace what happens to a node.  It is shown in the
 * columns of processes on that node, or once if there are none.  What a rule does to a
 * node is traced only by the process whose rule matched, perhaps on another node.
 */
static void place_changes(struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->num_items; i++) {
		struct item *item = &timeline->items[i];
		const char *node = item_text(item, "node");
		char *name;
		int first;

		/* Each host's processes tell what happens to that host. */
		if (!is_change(item) || item->host != item->writer)
			continue;
		name = tool_printf("%s, process %lld", node, item->process);
		first = named_column(timeline, node, strlen(node));
		item->column = named_column(timeline, name, strlen(name));
		if (item->column < 0 && first < 0)
			item->column = column_of_nobody(timeline, node);
		else if (item->column < 0)
			item->column = item->kind == ITEM_FAULT ? first :
				       timeline_tcp_column(timeline, item);
		free(name);
	}
}

/* ------------------------------------------------------------------------
 * Programs.
 */

#define THEN ", then "
#define SENDER_SHIFT 32		/* in the number of a packet */
#define LIFE_SHIFT 42
#define MAX_LIVES 32u

/* Is it one of "rping, then ucmatose"? */
static bool has_name(const char *names, const char *name)
{
	size_t len = strlen(name);

	for (const char *next; names; names = next ? next + strlen(THEN) : NULL) {
		next = strstr(names, THEN);
		if (next ? (size_t)(next - names) == len && !strncmp(names, name, len) :
			   !strcmp(names, name))
			return true;
	}
	return false;
}

/* A number is given again when its process has ended. */
static void add_program(struct timeline *timeline, const struct item *item)
{
	const char *name = item_text(item, "program");
	struct program *program;

	for (size_t i = 0; i < timeline->num_programs; i++) {
		program = &timeline->programs[i];
		if (program->file != item->file || program->process != item->process)
			continue;
		program->lives++;
		if (!has_name(program->name, name))
			tool_append(&program->name, THEN "%s", name);
		return;
	}
	timeline->programs = tool_realloc(timeline->programs, timeline->num_programs + 1,
					  sizeof(*timeline->programs));
	timeline->programs[timeline->num_programs++] = (struct program){
		.file = item->file,
		.process = item->process,
		.lives = 1,
		.name = tool_strdup(name),
	};
}

/*
 * On a shared network the sender's number is in that of a packet, and who has the number next counts
 * from 1 again.
 */
static uint64_t packet_of(const struct timeline *timeline, const struct item *item)
{
	long long packet = item_number(item, "packet");
	unsigned int lives = 1;

	for (size_t i = 0; packet > 0 && item->process >= 0 && i < timeline->num_programs; i++)
		if (timeline->programs[i].file == item->file &&
		    timeline->programs[i].process == packet >> SENDER_SHIFT)
			lives = timeline->programs[i].lives;
	return (uint64_t)packet + ((uint64_t)((lives - 1) % MAX_LIVES) << LIFE_SHIFT);
}

/* ------------------------------------------------------------------------
 * Lines.
 */

static int complain(const struct file *file, unsigned int number, const char *what)
{
	tool_error("%s:%u: %s", file->path, number, what);
	return -1;
}

static int find_kind(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			return (int)i;
	return -1;
}

/* Takes json over.  0: it is an item now, or of a kind that we do not know. */
static int add(struct timeline *timeline, json_t *json, unsigned int number)
{
	struct file *file = &timeline->files[timeline->num_files - 1];
	struct item item = {
		.json = json, .process = -1, .selected = true, .line = number,
		.file = timeline->num_files - 1,
	};
	const char *kind = item_text(&item, "kind");
	long long time = item_number(&item, "time");
	int i;

	if (time < 0 || time > (long long)TIMELINE_MAX_TIME || !*kind)
		return complain(file, number, "no line of a trace: it has no time or no kind");
	i = find_kind(kind);
	item.process = item_number(&item, "process");
	if (i < 0) {
		if (!strcmp(kind, "process"))
			add_program(timeline, &item);
		else
			file->skipped++;
		json_decref(json);
		return 0;
	}
	item.kind = kinds[i].kind;
	item.text = item_text(&item, kinds[i].text);
	item.time = (uint64_t)time;
	item.packet = packet_of(timeline, &item);
	if (!*item.text) {
		tool_error("%s:%u: a line of kind %s without \"%s\"", file->path, number, kind,
			   kinds[i].text);
		return -1;
	}
	if (timeline->num_items == timeline->room) {
		timeline->room = timeline->room ? 2 * timeline->room : 256;
		timeline->items = tool_realloc(timeline->items, timeline->room, sizeof(item));
	}
	timeline->items[timeline->num_items++] = item;
	return 0;
}

static int read_line(struct timeline *timeline, const char *text, size_t len, unsigned int number)
{
	struct file *file = &timeline->files[timeline->num_files - 1];
	json_error_t error;
	json_t *json;

	if (strspn(text, " \t\r\n") == len)
		return 0;
	json = json_loadb(text, len, 0, &error);
	if (!json && text[len - 1] != '\n') {
		file->truncated = true;	/* whoever wrote it was interrupted */
		return 0;
	}
	if (!json) {
		tool_error("%s:%u: no JSON: %s", file->path, number, error.text);
		return -1;
	}
	if (!json_is_object(json)) {
		json_decref(json);
		return complain(file, number, "no line of a trace: it is no JSON object");
	}
	if (add(timeline, json, number)) {
		json_decref(json);
		return -1;
	}
	return 0;
}

static int read_file(struct timeline *timeline, const char *path)
{
	bool standard = !strcmp(path, "-");
	FILE *file = standard ? stdin : fopen(path, "re");
	unsigned int number = 0;
	char *text = NULL;
	size_t size = 0;
	ssize_t len;
	int r = 0;

	if (!file) {
		tool_error("%s: %m", path);
		return -1;
	}
	timeline->files[timeline->num_files++] = (struct file){
		.path = standard ? "standard input" : path,
	};
	while (!r && (len = getline(&text, &size, file)) > 0)
		r = read_line(timeline, text, (size_t)len, ++number);
	if (!r && ferror(file)) {
		tool_error("%s: %m", path);
		r = -1;
	}
	free(text);
	if (!standard)
		fclose(file);
	return r;
}

/* ------------------------------------------------------------------------
 * All of them.
 */

/* Each line gets its column; those that only say who is who go. */
static void place_items(struct timeline *timeline)
{
	size_t kept = 0;

	for (size_t i = 0; i < timeline->num_items; i++) {
		struct item *item = &timeline->items[i];

		place(timeline, item);
		if (item->kind == ITEM_ADDRESS || item->kind == ITEM_HOST || item->kind == ITEM_CLOCK) {
			json_decref(item->json);
			continue;
		}
		/* Virtual time begins at 0; real time begins with the trace. */
		if (item->process >= 0 && (!kept || item->time < timeline->start))
			timeline->start = item->time;
		timeline->items[kept++] = *item;
	}
	timeline->num_items = kept;
}

/* Lines of several processes come in the order in which they were written. */
static int by_time(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

static void sort(struct timeline *timeline)
{
	for (size_t i = 1; i < timeline->num_items; i++) {
		if (timeline->items[i].time < timeline->items[i - 1].time) {
			qsort(timeline->items, timeline->num_items, sizeof(struct item), by_time);
			return;
		}
	}
}

int timeline_read(struct timeline *timeline, char *const *paths, size_t num)
{
	timeline->files = tool_realloc(NULL, num, sizeof(*timeline->files));
	for (size_t i = 0; i < num; i++)
		if (read_file(timeline, paths[i]))
			return -1;
	timeline->path = num > 1 ? "these traces" : timeline->files[0].path;
	timeline_hosts(timeline);
	timeline_number_packets(timeline);
	timeline_clocks(timeline);
	place_items(timeline);
	timeline_place_tcp(timeline);
	timeline_place_gone(timeline);
	place_changes(timeline);
	timeline_name_columns(timeline);
	sort(timeline);
	return 0;
}

void timeline_free(struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->num_programs; i++)
		free(timeline->programs[i].name);
	free(timeline->programs);
	for (size_t i = 0; i < timeline->num_items; i++)
		json_decref(timeline->items[i].json);
	free(timeline->items);
	for (int i = 0; i < timeline->num_columns; i++) {
		free(timeline->columns[i].name);
		free(timeline->columns[i].about);
	}
	for (size_t i = 0; i < timeline->num_files; i++)
		free(timeline->files[i].node);
	for (size_t i = 0; i < timeline->num_hosts; i++) {
		free(timeline->hosts[i].id);
		free(timeline->hosts[i].name);
	}
	free(timeline->files);
	free(timeline->hosts);
}
