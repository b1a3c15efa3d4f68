/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timeline_svg.c - polycm timeline as a picture: self-contained SVG.  Every
 * row has a height of its own, so texts do not overlap; what is too wide for
 * its place is cut.  It has a background, so that it reads on any page, and
 * dark colours where the reader prefers them.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "polycm.h"
#include "timeline.h"

#define ROW 24
#define TOP 96			/* headings */
#define BOTTOM 28
#define GUTTER 130		/* of the times */
#define SPACE 460		/* between columns */
#define MARGIN 110		/* right of the last one */
#define SLANT 8			/* a message arrives a little further down */
#define CHAR 7.3		/* width of a character */
#define HEADING_CHAR 8.6

static const char style[] =
	"  .page { fill: #ffffff; stroke: #d0d7de }\n"
	"  .head { fill: #f6f8fa; stroke: #afb8c1 }\n"
	"  .column { stroke: #afb8c1; stroke-width: 2 }\n"
	"  .gap { fill: #ffffff }\n"
	"  .dots { stroke: #afb8c1; stroke-width: 2; stroke-dasharray: 2 4 }\n"
	"  .stripe { fill: #f6f8fa }\n"
	"  text { font: 12px ui-monospace, \"DejaVu Sans Mono\", Menlo, Consolas, monospace; "
	"fill: #1f2328; white-space: pre }\n"
	"  .title { font: bold 14px ui-monospace, \"DejaVu Sans Mono\", Menlo, Consolas, monospace; "
	"text-anchor: middle }\n"
	"  .about { fill: #59636e; text-anchor: middle; font-size: 11px }\n"
	"  .time { fill: #59636e; text-anchor: end; font-size: 11px }\n"
	"  .state { fill: #59636e }\n"
	"  .event { fill: #116329; font-weight: bold }\n"
	"  .bad { fill: #a40e26; font-weight: bold }\n"
	"  .timer { fill: #7d4e00 }\n"
	"  .fault { fill: #8a1c8f; font-weight: bold }\n"
	"  .halo { fill: #fbefff; stroke: #c297d8 }\n"
	"  .label { fill: #0a4d9e; font-weight: bold }\n"
	"  .label.data { fill: #1f2328; font-weight: normal }\n"
	"  .label.again { fill: #7d4e00 }\n"
	"  .label.lost { fill: #a40e26 }\n"
	"  .arrow { stroke: #0a4d9e; stroke-width: 1.6; fill: none }\n"
	"  .arrow.data { stroke: #59636e; stroke-width: 1.2 }\n"
	"  .arrow.again { stroke: #9a6700 }\n"
	"  .arrow.lost { stroke: #cf222e; stroke-dasharray: 6 4 }\n"
	"  .tip { fill: #0a4d9e }\n"
	"  .tip.data { fill: #59636e }\n"
	"  .tip.again { fill: #9a6700 }\n"
	"  .cross { stroke: #cf222e; stroke-width: 2.5 }\n"
	"  .end { text-anchor: end }\n"
	"  .dot { fill: #1a7f37 }\n"
	"  .dot.bad { fill: #cf222e }\n"
	"  @media (prefers-color-scheme: dark) {\n"
	"    .page, .gap { fill: #0d1117 }\n"
	"    .page { stroke: #3d444d }\n"
	"    .head, .stripe { fill: #151b23 }\n"
	"    .head, .column, .dots { stroke: #656c76 }\n"
	"    text, .label.data { fill: #f0f6fc }\n"
	"    .about, .time, .state { fill: #9198a1 }\n"
	"    .event { fill: #56d364 } .bad, .label.lost { fill: #ff7b72 }\n"
	"    .timer, .label.again { fill: #e3b341 } .fault { fill: #e2a5f4 }\n"
	"    .halo { fill: #2d1b36; stroke: #8a5a9e }\n"
	"    .label { fill: #79c0ff } .arrow { stroke: #79c0ff } .tip { fill: #79c0ff }\n"
	"    .arrow.data { stroke: #9198a1 } .tip.data { fill: #9198a1 }\n"
	"    .arrow.again { stroke: #e3b341 } .tip.again { fill: #e3b341 }\n"
	"    .arrow.lost, .cross { stroke: #ff7b72 }\n"
	"    .dot { fill: #56d364 } .dot.bad { fill: #ff7b72 }\n"
	"  }\n";

struct picture {
	const struct timeline *timeline;
	const struct rows *rows;
	FILE *to;
	int x[TIMELINE_MAX_COLUMNS];
	int width, height;
};

/* ------------------------------------------------------------------------
 * Text.
 */

/* As many characters as fit, as XML has them. */
static void put_text(FILE *to, const char *text, int room)
{
	int len = timeline_length(text);

	for (int i = 0; *text && i < room; i++) {
		uint32_t c = timeline_character(&text);

		if (len > room && i == room - 1)
			c = 0x2026;
		if (c == '<' || c == '>' || c == '&' || c == '"' || c > 0x7e)
			fprintf(to, "&#%u;", c >= 0xd800 && (c < 0xe000 || c > 0xfffd) ? '?' : c);
		else
			putc((int)c, to);
	}
}

static void text(struct picture *p, const char *class, double x, int y, double space,
		 const char *words)
{
	fprintf(p->to, "<text class=\"%s\" x=\"%.0f\" y=\"%d\">", class, x, y);
	put_text(p->to, words, (int)(space / CHAR));
	fputs("</text>\n", p->to);
}

static int y_of(size_t row)
{
	return TOP + (int)row * ROW + ROW / 2;
}

/* ------------------------------------------------------------------------
 * Rows.
 */

static const char *class_of(const struct row *row)
{
	if (row->lost)
		return "lost";
	if (row->again || row->copy)
		return "again";
	return row->style == STYLE_DATA ? "data" : "cm";
}

static void put_tip(struct picture *p, const char *class, int x, int y, int step)
{
	fprintf(p->to, "<path class=\"tip %s\" d=\"M%d %d l%d -5 v10 z\"/>\n", class, x, y, -9 * step);
}

static void put_cross(struct picture *p, double x, double y)
{
	fprintf(p->to, "<path class=\"cross\" d=\"M%.0f %.0f l10 10 m-10 0 l10 -10\"/>\n", x - 5, y - 5);
}

/* The words lie on the line's first half, over it. */
static void put_label(struct picture *p, const struct row *row, int from, int to, int y)
{
	char *label = timeline_label(row), class[32];
	int step = from < to ? 1 : -1;

	(void)snprintf(class, sizeof(class), "label %s%s", class_of(row), step > 0 ? "" : " end");
	text(p, class, from + 14.0 * step, y, abs(to - from) - 40.0, label);
	free(label);
}

static void put_line(struct picture *p, const struct row *row, int from, int y, int to, int end_y)
{
	const char *class = class_of(row);
	int step = from < to ? 1 : -1;

	if (row->open && row->kind == ROW_ARRIVE) {
		from += (to - from) / 2;
		y += (end_y - y) / 2;
	} else if (row->lost || row->open) {
		double part = row->lost ? 0.72 : 0.5;
		double x = from + (to - from) * part, at = y + (end_y - y) * part;

		fprintf(p->to, "<path class=\"arrow %s\" d=\"M%d %d L%.0f %.0f\"/>\n", class, from, y,
			x, at);
		if (row->lost)
			put_cross(p, x, at);
		return;
	}
	fprintf(p->to, "<path class=\"arrow %s\" d=\"M%d %d L%d %d\"/>\n", class, from, y,
		to - 8 * step, end_y);
	put_tip(p, class, to, end_y, step);
}

static void put_message(struct picture *p, size_t i)
{
	const struct row *row = &p->rows->rows[i];
	int from, to, y = y_of(i);
	bool paired = row->kind != ROW_MESSAGE && row->other < p->rows->num;

	if (row->kind == ROW_ARRIVE && paired && !row->copy)
		return;		/* the line of its other part ends here */
	if (!timeline_ends(p->timeline, row, &from, &to)) {
		char *label = timeline_label(row);
		int x = p->x[row->column];

		text(p, "label", x + 14.0, y + 4, p->width - x - 20.0, label);
		if (row->lost)
			put_cross(p, x + 24.0 + timeline_length(label) * CHAR, y);
		free(label);
		return;
	}
	put_line(p, row, p->x[from], y + 4, p->x[to],
		 paired && row->kind == ROW_DEPART ? y_of(row->other) : y + 4 + SLANT);
	put_label(p, row, p->x[from], p->x[to], y);
}

static void put_note(struct picture *p, size_t i)
{
	static const char *const classes[] = {
		[STYLE_PLAIN] = "state", [STYLE_EVENT] = "event", [STYLE_BAD_EVENT] = "bad",
		[STYLE_STATE] = "state", [STYLE_TIMER] = "timer", [STYLE_FAULT] = "fault",
		[STYLE_DATA] = "state",
	};
	const struct row *row = &p->rows->rows[i];
	int num = p->timeline->num_columns, x = p->x[row->column], y = y_of(i);
	bool left = num > 1 && row->column == num - 1;
	bool event = row->style == STYLE_EVENT || row->style == STYLE_BAD_EVENT;
	double space = num > 1 ? SPACE - 40.0 : p->width - x - 20.0;
	double need = timeline_length(row->text) * CHAR, wide = need < space ? need : space;
	char class[32];

	if (event)
		fprintf(p->to, "<circle class=\"dot %s\" cx=\"%d\" cy=\"%d\" r=\"5\"/>\n",
			row->style == STYLE_BAD_EVENT ? "bad" : "good", x, y);
	if (row->style == STYLE_FAULT)
		fprintf(p->to, "<rect class=\"halo\" x=\"%.0f\" y=\"%d\" width=\"%.0f\" height=\"%d\" "
			"rx=\"4\"/>\n", left ? x - 20 - wide : x + 8.0, y - 10, wide + 12, 20);
	(void)snprintf(class, sizeof(class), "%s%s", classes[row->style], left ? " end" : "");
	text(p, class, left ? x - 14.0 : x + 14.0, y + 4, space, row->text);
}

static void put_gap(struct picture *p, size_t i)
{
	int y = y_of(i);

	fprintf(p->to, "<rect class=\"gap\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
		GUTTER - 6, y - ROW / 2 + 4, p->width - GUTTER, ROW - 4);
	for (int column = 0; column < p->timeline->num_columns; column++)
		fprintf(p->to, "<path class=\"dots\" d=\"M%d %d v%d\"/>\n", p->x[column],
			y - ROW / 2 + 4, ROW - 4);
	fprintf(p->to, "<text class=\"time\" x=\"%d\" y=\"%d\">+ ", GUTTER - 30, y + 6);
	put_text(p->to, p->rows->rows[i].text, 20);
	fputs("</text>\n", p->to);
}

static void put_time(struct picture *p, size_t i)
{
	const struct row *row = &p->rows->rows[i];

	if (!row->shows_time)
		return;
	text(p, "time", GUTTER - 30.0, y_of(i) + 4, GUTTER,
	     timeline_time(row->time - p->timeline->start));
}

/* ------------------------------------------------------------------------
 * All of it.
 */

static void put_heading(struct picture *p, int i)
{
	const struct column *column = &p->timeline->columns[i];
	double space = p->timeline->num_columns > 1 ? SPACE - 40.0 : SPACE;
	double wide = timeline_length(column->name) * HEADING_CHAR + 40;
	double about = timeline_length(column->about) * CHAR;
	double half, x = p->x[i];

	wide = wide > about + 24 ? wide : about + 24;
	wide = wide > space ? space : wide;
	half = wide / 2;
	/* Over its column, but on the page. */
	if (x - half < 10)
		x = 10 + half;
	if (x + half > p->width - 10)
		x = p->width - 10 - half;
	fprintf(p->to, "<rect class=\"head\" x=\"%.0f\" y=\"16\" width=\"%.0f\" height=\"52\" "
		"rx=\"6\"/>\n", x - half, wide);
	text(p, "title", x, *column->about ? 38 : 47, wide - 16, column->name);
	if (*column->about)
		text(p, "about", x, 57, wide - 16, column->about);
}

void timeline_svg(const struct timeline *timeline, const struct rows *rows, FILE *to)
{
	struct picture p = { .timeline = timeline, .rows = rows, .to = to };
	int num = timeline->num_columns, num_notes = 0;
	char *note;

	for (int i = 0; i < num; i++)
		p.x[i] = GUTTER + i * SPACE + 60;
	p.width = (num ? p.x[num - 1] : GUTTER) + (num > 1 ? MARGIN : SPACE);
	for (; (note = timeline_note(rows, (unsigned int)num_notes)); num_notes++)
		free(note);
	p.height = TOP + ((int)rows->num + num_notes) * ROW + BOTTOM;
	fprintf(to, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" role=\"img\">\n<title>", p.width, p.height, p.width, p.height);
	put_text(to, timeline->path, 1000);
	fprintf(to, "</title>\n<style>\n%s</style>\n"
		"<rect class=\"page\" x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n",
		style, p.width - 1, p.height - 1);
	for (int i = 0; i < num; i++) {
		fprintf(to, "<path class=\"column\" d=\"M%d 68 V%d\"/>\n", p.x[i],
			p.height - BOTTOM / 2 - num_notes * ROW);
		put_heading(&p, i);
	}
	for (size_t i = 0; i < rows->num; i++)
		if (rows->rows[i].kind == ROW_GAP)
			put_gap(&p, i);
	for (size_t i = 0; i < rows->num; i++) {
		if (rows->rows[i].kind == ROW_GAP)
			continue;
		put_time(&p, i);
		if (rows->rows[i].kind == ROW_NOTE)
			put_note(&p, i);
		else
			put_message(&p, i);
	}
	for (int i = 0; i < num_notes; i++) {
		note = timeline_note(rows, (unsigned int)i);
		text(&p, "state", 20, y_of(rows->num + (size_t)i) + 4 + BOTTOM / 2,
		     p.width - 40, note);
		free(note);
	}
	fputs("</svg>\n", to);
}
