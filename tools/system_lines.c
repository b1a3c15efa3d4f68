/* SPDX-License-Identifier: BSD-2-Clause */
/* system_lines.c - the first line in which two files differ, for people. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "system.h"

#define MOST_SHOWN 200u		/* of a line */

/* From its beginning; NULL: it cannot be read. */
static FILE *open_again(int is)
{
	int fd = dup(is);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

	if (file)
		rewind(file);
	else if (fd >= 0)
		close(fd);
	return file;
}

/* The next line without its end; "(nothing)" and false behind the last one. */
static bool next_line(FILE *file, char **line, size_t *size, size_t *ret_len)
{
	ssize_t len = getline(line, size, file);

	if (len > 0) {
		*ret_len = (size_t)len - ((*line)[len - 1] == '\n');
		return true;
	}
	free(*line);
	*line = tool_strdup("(nothing)");
	*size = strlen(*line) + 1;
	*ret_len = 0;
	return false;
}

/* The line in which they differ; 0: none.  It does not matter whether the last one has its end. */
static unsigned int differ(FILE *a, FILE *b, char *lines[2])
{
	size_t sizes[2] = { 0, 0 }, lens[2];
	bool more[2];

	for (unsigned int number = 1; ; number++) {
		more[0] = next_line(a, &lines[0], &sizes[0], &lens[0]);
		more[1] = next_line(b, &lines[1], &sizes[1], &lens[1]);
		if (more[0] != more[1] || lens[0] != lens[1] ||
		    memcmp(lines[0], lines[1], lens[0]) != 0)
			return number;
		if (!more[0])
			return 0;
	}
}

/* For people: how it begins. */
static int shown_len(const char *line)
{
	const size_t len = strcspn(line, "\n");

	return (int)(len < MOST_SHOWN ? len : MOST_SHOWN);
}

unsigned int system_differ(int a, int b, char **ret_lines)
{
	FILE *files[2] = { open_again(a), open_again(b) };
	char *lines[2] = { NULL, NULL };
	unsigned int number = files[0] && files[1] ? differ(files[0], files[1], lines) : 0;

	*ret_lines = NULL;
	if (number)
		*ret_lines = tool_printf("%.*s | %.*s", shown_len(lines[0]), lines[0],
					 shown_len(lines[1]), lines[1]);
	for (int i = 0; i < 2; i++) {
		free(lines[i]);
		if (files[i])
			fclose(files[i]);
	}
	return number;
}
