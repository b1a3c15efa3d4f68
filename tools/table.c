/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.c - text in columns, and in lines of a width.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "polycm.h"

#define GAP 2

void tool_wrap(FILE *to, const char *text, int indent, int width)
{
	int column = indent, len;

	for (; *text; text += len + (int)strspn(text + len, " ")) {
		len = (int)strcspn(text, " ");
		if (column > indent && column + 1 + len > width) {
			fprintf(to, "\n%*s", indent, "");
			column = indent;
		}
		column += fprintf(to, "%s%.*s", column > indent ? " " : "", len, text);
	}
	putc('\n', to);
}

void table_row(struct table *table, const char *const *cells, size_t num)
{
	char **row = tool_realloc(NULL, num + 1, sizeof(*row));
	size_t i;

	for (i = 0; i < num; i++)
		row[i] = tool_strdup(cells[i] ? cells[i] : "");
	row[num] = NULL;
	table->rows = tool_realloc(table->rows, table->num_rows + 1, sizeof(*table->rows));
	table->rows[table->num_rows++] = row;
}

/* The last cell of a row may be as long as it likes. */
static size_t column_width(const struct table *table, size_t column)
{
	size_t width = 0, i, n;

	for (i = 0; i < table->num_rows; i++) {
		char **row = table->rows[i];

		for (n = 0; row[n] && n < column; n++)
			;
		if (row[n] && row[n + 1] && strlen(row[n]) > width)
			width = strlen(row[n]);
	}
	return width;
}

static void print_row(char **row, const size_t *widths, int indent)
{
	size_t blanks = (size_t)indent, n;

	for (n = 0; row[n]; n++) {
		/* Blanks come before the next cell that has text, so no line ends with any. */
		if (row[n][0]) {
			printf("%*s%s", (int)blanks, "", row[n]);
			blanks = 0;
		}
		blanks += GAP;
		if (widths[n] > strlen(row[n]))
			blanks += widths[n] - strlen(row[n]);
	}
	putchar('\n');
}

void table_print(struct table *table, int indent)
{
	size_t columns = 0, i, n, *widths;

	for (i = 0; i < table->num_rows; i++) {
		for (n = 0; table->rows[i][n]; n++)
			;
		if (n > columns)
			columns = n;
	}
	widths = tool_realloc(NULL, columns + 1, sizeof(*widths));
	for (n = 0; n < columns; n++)
		widths[n] = column_width(table, n);

	for (i = 0; i < table->num_rows; i++) {
		print_row(table->rows[i], widths, indent);
		for (n = 0; table->rows[i][n]; n++)
			free(table->rows[i][n]);
		free(table->rows[i]);
	}
	free(widths);
	free(table->rows);
	*table = (struct table){ 0 };
}
