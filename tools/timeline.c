/* SPDX-License-Identifier: BSD-2-Clause */
/* timeline.c - polycm timeline: its options, and what goes where. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "polycm.h"
#include "timeline.h"

#define DEFAULT_WIDTH 80u
#define MIN_WIDTH 60u
#define MANY_ROWS 500u

enum { SVG, ID, BETWEEN, ALL, CM, NUM_OPTIONS };

void timeline_usage(FILE *to)
{
	fputs("usage: polycm timeline [OPTION]... TRACE...\n"
	      "\n"
	      "Draws a trace of the simulator (polycm run --trace) as a ladder diagram: each\n"
	      "node has a column, time runs downwards, each message is an arrow.\n"
	      "Traces of several hosts become one diagram.  TRACE - is standard input.\n"
	      "\n"
	      "  --svg FILE      write an SVG picture; - is standard output\n"
	      "  --id N          only the connection of the id with this number\n"
	      "  --between A,B   only these two nodes or columns\n"
	      "  --all           also timers that are started and cancelled\n"
	      "  --cm            connection management only, no data\n", to);
}

/* COLUMNS, the terminal's, or what terminals had. */
static unsigned int width_of_output(void)
{
	const char *columns = getenv("COLUMNS");
	unsigned long width = columns ? strtoul(columns, NULL, 10) : 0;
	struct winsize size;

	if (!width && isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		width = size.ws_col;
	if (!width || width > 100000)
		width = DEFAULT_WIDTH;
	return width < MIN_WIDTH ? MIN_WIDTH : (unsigned int)width;
}

static bool wants_colours(void)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && (!no || !*no) && (!term || strcmp(term, "dumb"));
}

static int write_svg(const struct timeline *timeline, const struct rows *rows, const char *path)
{
	bool standard = !strcmp(path, "-");
	FILE *file = standard ? stdout : fopen(path, "we");
	int failed;

	if (!file) {
		tool_error("%s: %m", path);
		return EXIT_FAILURE;
	}
	timeline_svg(timeline, rows, file);
	if (standard)
		return 0;
	failed = ferror(file);
	failed |= fclose(file);
	if (failed)
		tool_error("%s: %m", path);
	return failed ? EXIT_FAILURE : 0;
}

static void add_notes(const struct timeline *timeline, const struct rows *rows)
{
	for (size_t i = 0; i < timeline->num_files; i++) {
		const struct file *file = &timeline->files[i];

		if (file->truncated)
			tool_error("%s: the last line is cut off and left out", file->path);
		if (file->skipped)
			tool_error("%s: %u lines of kinds that this version does not know are left out",
				   file->path, file->skipped);
	}
	if (rows->num > MANY_ROWS)
		tool_error("%s: %zu rows; --cm, --id N or --between A,B shows fewer", timeline->path,
			   rows->num);
}

static int draw(struct timeline *timeline, long long id, const char *const *values)
{
	struct rows rows;
	int status = 0;

	if (timeline_select(timeline, id, values[BETWEEN]))
		return EXIT_FAILURE;
	timeline_rows(timeline, &rows);
	add_notes(timeline, &rows);
	if (values[SVG])
		status = write_svg(timeline, &rows, values[SVG]);
	else
		timeline_text(timeline, &rows, stdout, width_of_output(), wants_colours());
	timeline_rows_free(&rows);
	return status;
}

static int parse_id(const char *text, long long *ret_id)
{
	char *end;

	errno = 0;
	*ret_id = strtoll(text, &end, 10);
	if (!errno && end != text && !*end && *ret_id > 0)
		return 0;
	tool_error("--id: '%s' is no number of an id", text);
	return STATUS_USAGE;
}

static int check_between(const char *text)
{
	const char *comma = strchr(text, ',');

	if (comma && comma != text && comma[1])
		return 0;
	tool_error("--between: '%s' is not two nodes or columns with a comma between", text);
	return STATUS_USAGE;
}

int timeline_command(int argc, char **argv)
{
	static const struct option options[] = {
		{ "svg", required_argument, NULL, SVG },
		{ "id", required_argument, NULL, ID },
		{ "between", required_argument, NULL, BETWEEN },
		{ "all", no_argument, NULL, ALL },
		{ "cm", no_argument, NULL, CM },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const char *values[NUM_OPTIONS] = { NULL };
	struct timeline timeline = { .path = NULL };
	long long id = -1;
	int status = tool_options(argc, argv, ":h", options, timeline_usage, values);

	tool_open_standard_files();
	if (status >= 0)
		return status;
	if ((values[ID] && parse_id(values[ID], &id)) ||
	    (values[BETWEEN] && check_between(values[BETWEEN])))
		return STATUS_USAGE;
	if (optind == argc) {
		tool_error("timeline: no trace is given; 'polycm help timeline' tells more");
		return STATUS_USAGE;
	}
	timeline.all = values[ALL];
	timeline.cm = values[CM];
	status = timeline_read(&timeline, argv + optind, (size_t)(argc - optind)) ? EXIT_FAILURE : 0;
	if (!status && !timeline.num_items) {
		tool_error("%s: nothing happens in this trace", timeline.path);
		status = EXIT_FAILURE;
	}
	if (!status)
		status = draw(&timeline, id, values);
	timeline_free(&timeline);
	return status;
}
