/* SPDX-License-Identifier: BSD-2-Clause */
/* system_lines.c - the first line, or byte, in which two files differ, for people. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "system.h"

#define MOST_SHOWN 200u		/* of a line */

struct pair {
	FILE *files[2];
	char *lines[2];
	size_t sizes[2], lens[2];
};

/* Both from their beginnings; 0 or a negative errno. */
static int begin(struct pair *pair, int a, int b)
{
	*pair = (struct pair){ .files = { NULL, NULL } };
	for (int i = 0; i < 2; i++) {
		int fd = fcntl(i ? b : a, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

		pair->files[i] = fd < 0 ? NULL : fdopen(fd, "r");
		if (pair->files[i] && !fseek(pair->files[i], 0, SEEK_SET))
			continue;
		if (fd >= 0 && !pair->files[i])
			close(fd);
		return -errno;
	}
	return 0;
}

static void end(struct pair *pair)
{
	for (int i = 0; i < 2; i++) {
		free(pair->lines[i]);
		if (pair->files[i])
			fclose(pair->files[i]);
	}
}

/* The next line without its end: 1; behind the last one "(nothing)": 0; or a negative errno. */
static int next_line(struct pair *pair, int i)
{
	ssize_t len;

	errno = 0;
	len = getline(&pair->lines[i], &pair->sizes[i], pair->files[i]);
	if (len > 0) {
		pair->lens[i] = (size_t)len - (pair->lines[i][len - 1] == '\n');
		return 1;
	}
	if (!feof(pair->files[i]))
		return errno ? -errno : -EIO;
	free(pair->lines[i]);
	pair->lines[i] = tool_strdup("(nothing)");
	pair->sizes[i] = strlen(pair->lines[i]) + 1;
	pair->lens[i] = 0;
	return 0;
}

/* It does not matter whether the last line has its end. */
static int differ(struct pair *pair, unsigned int *ret_number)
{
	for (*ret_number = 1; ; (*ret_number)++) {
		const int more[] = { next_line(pair, 0), next_line(pair, 1) };

		if (more[0] < 0 || more[1] < 0)
			return more[0] < 0 ? more[0] : more[1];
		if (more[0] != more[1] || pair->lens[0] != pair->lens[1] ||
		    memcmp(pair->lines[0], pair->lines[1], pair->lens[0]) != 0)
			return 0;
		if (!more[0]) {
			*ret_number = 0;
			return 0;
		}
	}
}

/* For people: how it begins.  It goes to a terminal, and may be anything. */
static const char *shown(char *line)
{
	size_t len;

	for (len = 0; line[len] && line[len] != '\n' && len < MOST_SHOWN; len++)
		if (((unsigned char)line[len] < ' ' && line[len] != '\t') ||
		    (unsigned char)line[len] > '~')
			line[len] = '?';
	line[len] = '\0';
	return line;
}

int system_differ(int a, int b, unsigned int *ret_number, char **ret_lines)
{
	struct pair pair;
	int err = begin(&pair, a, b);

	*ret_number = 0;
	*ret_lines = NULL;
	if (!err)
		err = differ(&pair, ret_number);
	if (!err && *ret_number)
		*ret_lines = tool_printf("%s | %s", shown(pair.lines[0]), shown(pair.lines[1]));
	end(&pair);
	return err;
}

int system_differ_bytes(int a, int b, uint64_t *ret_at)
{
	struct pair pair;
	int err = begin(&pair, a, b), bytes[2] = { 0, 0 };

	for (*ret_at = 0; !err && bytes[0] == bytes[1] && bytes[0] != EOF; (*ret_at)++)
		for (int i = 0; i < 2; i++)
			bytes[i] = getc(pair.files[i]);
	for (int i = 0; !err && i < 2; i++)
		err = ferror(pair.files[i]) ? -EIO : 0;
	if (err || bytes[0] == bytes[1])
		*ret_at = 0;
	end(&pair);
	return err;
}
