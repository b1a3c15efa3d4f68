/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timeline_text.c - polycm timeline in the terminal: a line of characters for
 * each row, times on the left, a vertical line for each column.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "polycm.h"
#include "timeline.h"

#define MIN_GUTTER 14		/* for the times */
#define MIN_SPACE 24		/* between columns */
#define MAX_WIDTH 400
#define LOST_AT 3 / 4		/* of the way */

#define LINE 0x2502u		/* | of a column */
#define DASH 0x2500u
#define CROSSING 0x253cu
#define TAIL_RIGHT 0x251cu
#define TAIL_LEFT 0x2524u
#define HEAD_RIGHT 0x25b6u
#define HEAD_LEFT 0x25c0u
#define DOTS 0x2504u
#define LOST 0x2717u
#define ELLIPSIS 0x2026u
#define BULLET 0x25cfu
#define FLASH 0x21afu
#define GAP_LINE 0x250au

enum colour { NONE, DIM, BOLD, RED, GREEN, YELLOW, BLUE, FAULT_COLOUR, NUM_COLOURS };

static const char *const escapes[NUM_COLOURS] = {
	[NONE] = "\033[0m",
	[DIM] = "\033[0;2m",
	[BOLD] = "\033[0;1m",
	[RED] = "\033[0;1;31m",
	[GREEN] = "\033[0;1;32m",
	[YELLOW] = "\033[0;33m",
	[BLUE] = "\033[0;36m",
	[FAULT_COLOUR] = "\033[0;1;35m",
};

struct canvas {
	const struct timeline *timeline;
	FILE *to;
	bool colours;
	int width;
	int gutter;			/* for the times */
	int x[TIMELINE_MAX_COLUMNS];
	uint32_t cell[MAX_WIDTH];
	uint8_t colour[MAX_WIDTH];
};

static void put(struct canvas *c, int x, uint32_t character, enum colour colour)
{
	if (x < 0 || x >= c->width)
		return;
	c->cell[x] = character;
	c->colour[x] = (uint8_t)colour;
}

/* Into so many cells, with an ellipsis if it is too long; returns where it ended. */
static int put_text(struct canvas *c, int x, int room, const char *text, enum colour colour)
{
	int len = timeline_length(text);

	for (int i = 0; *text && i < room; i++) {
		uint32_t character = timeline_character(&text);

		put(c, x++, len > room && i == room - 1 ? ELLIPSIS : character, colour);
	}
	return x;
}

static void clear(struct canvas *c, uint32_t line)
{
	for (int i = 0; i < c->width; i++)
		put(c, i, ' ', NONE);
	for (int i = 0; i < c->timeline->num_columns; i++)
		put(c, c->x[i], line, DIM);
}

static void put_utf8(FILE *to, uint32_t c)
{
	if (c >= 0x800) {
		putc((int)(0xe0 | c >> 12), to);
		putc((int)(0x80 | (c >> 6 & 0x3f)), to);
		putc((int)(0x80 | (c & 0x3f)), to);
	} else if (c >= 0x80) {
		putc((int)(0xc0 | c >> 6), to);
		putc((int)(0x80 | (c & 0x3f)), to);
	} else {
		putc((int)c, to);
	}
}

/* Without the blanks at the end. */
static void flush(struct canvas *c)
{
	enum colour now = NONE;
	int end = c->width;

	while (end > 0 && c->cell[end - 1] == ' ')
		end--;
	for (int i = 0; i < end; i++) {
		if (c->colours && c->cell[i] != ' ' && c->colour[i] != now) {
			now = (enum colour)c->colour[i];
			fputs(escapes[now], c->to);
		}
		put_utf8(c->to, c->cell[i]);
	}
	if (now != NONE)
		fputs(escapes[NONE], c->to);
	putc('\n', c->to);
}

static void put_time(struct canvas *c, uint64_t time)
{
	const char *text = timeline_time(time - c->timeline->start);

	put_text(c, c->gutter - 2 - timeline_length(text), c->gutter, text, DIM);
}

/* ------------------------------------------------------------------------
 * Rows.
 */

static char *label_of(const struct row *row)
{
	char *label = timeline_label(row);

	if (row->tag)
		tool_append(&label, " [%u]", row->tag);
	return label;
}

static enum colour colour_of(const struct row *row)
{
	if (row->lost)
		return RED;
	if (row->again || row->copy)
		return YELLOW;
	return row->style == STYLE_DATA ? NONE : BLUE;
}

/* From x to end, end not included; columns on the way are crossed. */
static void put_line(struct canvas *c, int x, int end, uint32_t dash, enum colour colour)
{
	int step = x < end ? 1 : -1;

	for (; x != end; x += step)
		put(c, x, c->cell[x] == LINE ? CROSSING : dash, colour);
}

/*
 * The arrow of a message, or of a part of it: `departs' has the tail at the
 * sender, `arrives' the head at the receiver.
 */
static void put_arrow(struct canvas *c, const struct row *row, int from, int to, bool departs,
		      bool arrives)
{
	int step = from < to ? 1 : -1, distance = abs(to - from);
	enum colour colour = colour_of(row);
	char *label = label_of(row);
	int room = distance - 8, whole = timeline_length(label), len = whole < room ? whole : room;
	int end = to;
	int stop = from + step * (distance * LOST_AT);
	int left, middle;

	if ((row->lost || row->open) && abs(stop - from) < len + 8)
		stop = from + step * (len + 8 < distance ? len + 8 : distance - 2);
	if (departs && (row->lost || row->open))
		end = stop;
	if (departs)
		put(c, from, step > 0 ? TAIL_RIGHT : TAIL_LEFT, colour);
	middle = departs && row->open ? end - step * (distance / 4) : end;
	put_line(c, from + step, middle, arrives || row->lost || row->open ? DASH : DOTS, colour);
	put_line(c, middle, end, DOTS, colour);
	if (!departs)
		put_line(c, from + step, from + step * (distance / 4), DOTS, colour);
	if (row->lost)
		put(c, end, LOST, RED);
	else if (arrives)
		put(c, to - step, step > 0 ? HEAD_RIGHT : HEAD_LEFT, colour);
	left = step > 0 ? from + 4 : from - 3 - len;
	if (!departs)
		left = step > 0 ? to - 4 - len : to + 4;
	put(c, left - 1, ' ', NONE);
	put_text(c, left, len, label, colour);
	put(c, left + len, ' ', NONE);
	free(label);
}

/* A message to a node that has no column, or to itself. */
static void put_stub(struct canvas *c, const struct row *row)
{
	char *label = label_of(row), *text;
	bool in = row->kind == ROW_ARRIVE;

	text = tool_printf("%s %s%s", in ? "\342\227\200" : "\342\226\266", label,
			   row->lost ? "  \342\234\227 nobody has it" : "");
	put_text(c, c->x[row->column] + 2, c->width - c->x[row->column] - 2, text, colour_of(row));
	free(label);
	free(text);
}

static void put_message(struct canvas *c, const struct row *row)
{
	int from, to;

	if (!timeline_ends(c->timeline, row, &from, &to))
		put_stub(c, row);
	else
		put_arrow(c, row, c->x[from], c->x[to], row->kind != ROW_ARRIVE,
			  row->kind == ROW_ARRIVE || (row->kind == ROW_MESSAGE && !row->open));
}

/* Right of its column, or left of the last one. */
static void put_note(struct canvas *c, const struct row *row)
{
	static const struct {
		enum colour colour;
		uint32_t mark;
	} styles[] = {
		[STYLE_PLAIN] = { NONE, 0 },
		[STYLE_EVENT] = { GREEN, BULLET },
		[STYLE_BAD_EVENT] = { RED, BULLET },
		[STYLE_STATE] = { DIM, 0 },
		[STYLE_TIMER] = { YELLOW, 0 },
		[STYLE_FAULT] = { FAULT_COLOUR, FLASH },
		[STYLE_DATA] = { NONE, 0 },
	};
	int num = c->timeline->num_columns, at = c->x[row->column];
	bool left = num > 1 && row->column == num - 1;
	int room = (left ? at - c->x[row->column - 1] : row->column + 1 < num ?
		    c->x[row->column + 1] - at : c->width - at) - 6;
	uint32_t mark = styles[row->style].mark;
	enum colour colour = styles[row->style].colour;
	int len = timeline_length(row->text) < room ? timeline_length(row->text) : room;
	int x = left ? at - 2 - len - (mark ? 2 : 0) : at + 2;

	if (mark && !left) {
		put(c, x, mark, colour);
		x += 2;
	}
	x = put_text(c, x, len, row->text, colour);
	if (mark && left)
		put(c, x + 1, mark, colour);
}

static void put_row(struct canvas *c, const struct row *row)
{
	if (row->kind == ROW_GAP) {
		int x = c->gutter - 2 - timeline_length(row->text);

		clear(c, GAP_LINE);
		put_text(c, x - 2, c->gutter, "+", DIM);
		put_text(c, x, c->gutter, row->text, DIM);
		flush(c);
		return;
	}
	clear(c, LINE);
	if (row->shows_time)
		put_time(c, row->time);
	if (row->kind == ROW_NOTE)
		put_note(c, row);
	else
		put_message(c, row);
	flush(c);
}

/* ------------------------------------------------------------------------
 * All of it.
 */

/* Over its column, as far as the edges allow. */
static void put_heading(struct canvas *c, int column, const char *text, enum colour colour)
{
	int num = c->timeline->num_columns, len = timeline_length(text);
	int room = num > 1 ? c->x[1] - c->x[0] - 2 : c->width - c->x[0];
	int x = c->x[column] - (len < room ? len : room) / 2;

	if (x < (column ? 0 : 2))
		x = column ? 0 : 2;
	if (x + len > c->width)
		x = c->width - (len < room ? len : room);
	put_text(c, x, room, text, colour);
}

static void put_head(struct canvas *c)
{
	bool about = false;

	clear(c, ' ');
	for (int i = 0; i < c->timeline->num_columns; i++) {
		put_heading(c, i, c->timeline->columns[i].name, BOLD);
		about |= *c->timeline->columns[i].about;
	}
	flush(c);
	if (!about)
		return;
	clear(c, ' ');
	for (int i = 0; i < c->timeline->num_columns; i++)
		put_heading(c, i, c->timeline->columns[i].about, DIM);
	flush(c);
}

static void put_notes(struct canvas *c, const struct rows *rows)
{
	char *note;

	for (unsigned int i = 0; (note = timeline_note(rows, i)); i++) {
		if (!i)
			putc('\n', c->to);
		tool_wrap(c->to, note, 0, c->width);
		free(note);
	}
}

/* As wide as the longest time, or gap with its sign, wants it. */
static int gutter_for(const struct timeline *timeline, const struct rows *rows)
{
	int gutter = MIN_GUTTER, wanted;

	for (size_t i = 0; i < rows->num; i++) {
		const struct row *row = &rows->rows[i];

		if (row->kind == ROW_GAP)
			wanted = timeline_length(row->text) + 2;
		else
			wanted = timeline_length(timeline_time(row->time - timeline->start));
		gutter = wanted + 2 > gutter ? wanted + 2 : gutter;
	}
	return gutter;
}

void timeline_text(const struct timeline *timeline, const struct rows *rows, FILE *to,
		   unsigned int width, bool colours)
{
	struct canvas c = { .timeline = timeline, .to = to, .colours = colours };
	int num = timeline->num_columns, space = 0;

	c.width = width > MAX_WIDTH ? MAX_WIDTH : (int)width;
	c.gutter = gutter_for(timeline, rows);
	if (num > 1)
		space = (c.width - c.gutter - 8) / (num - 1);
	if (num > 1 && space < MIN_SPACE)
		space = MIN_SPACE;
	for (int i = 0; i < num; i++)
		c.x[i] = c.gutter + i * space;
	/* Too narrow for so many: wider lines than no picture. */
	if (num && c.x[num - 1] + 8 > c.width)
		c.width = c.x[num - 1] + 8 > MAX_WIDTH ? MAX_WIDTH : c.x[num - 1] + 8;
	put_head(&c);
	for (size_t i = 0; i < rows->num; i++)
		put_row(&c, &rows->rows[i]);
	put_notes(&c, rows);
}
