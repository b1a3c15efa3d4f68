/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario_text.c - the text of a scenario file, and libconfig's view of it.
 *
 * libconfig parses a copy of the file in memory, so that whatever the path is,
 * or becomes meanwhile, cannot trouble its scanner.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core.h"
#include "scenario_read.h"

#define MAX_FILE ((size_t)1 << 20)
#define FIRST_SIZE ((size_t)1 << 13)

/* Most files are small: a megabyte of memory would be mapped and unmapped for each. */
static int read_all(int fd, char **ret_text, size_t *ret_len)
{
	char *text = NULL, *larger;
	size_t len = 0, size = 0;
	ssize_t n = 1;
	int r = 0;

	while (n && !r) {
		if (len == size) {
			size = size ? 2 * size : FIRST_SIZE;
			larger = realloc(text, size);
			if (!larger) {
				r = -ENOMEM;
				break;
			}
			text = larger;
		}
		n = read(fd, text + len, size - len);
		if (n < 0 && errno != EINTR)
			r = -errno;
		len += n > 0 ? (size_t)n : 0;
		if (len > MAX_FILE)
			r = -EFBIG;
	}
	if (r) {
		free(text);
		return r;
	}
	*ret_text = text;
	*ret_len = len;
	return 0;
}

static int load(const char *path, char **ret_text, size_t *ret_len)
{
	struct stat st;
	int fd, r;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		r = -errno;
	else if (fstat(fd, &st) < 0)
		r = -errno;
	else if (S_ISDIR(st.st_mode))
		r = -EISDIR;
	else
		r = read_all(fd, ret_text, ret_len);
	if (fd >= 0)
		close(fd);
	if (r < 0)
		sim_core->log(POLYCM_LOG_ERROR, NULL, "%s: %s", path, strerror(-r));
	return r;
}

#define SYNTAX_ERROR "syntax error"	/* in libconfig's words */

static int parse(struct scenario *scenario, const char *text, size_t len)
{
	const char *why, *told;
	unsigned int line;
	char expected[200];
	char *copy;

	if (memchr(text, '\0', len))
		return scenario_error(scenario, NULL, "not a text file");
	copy = malloc(len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, len);
	copy[len] = '\0';
	why = scenario_forbidden(copy, &line);
	if (!why && config_read_string(&scenario->config, copy) != CONFIG_TRUE) {
		told = config_error_text(&scenario->config);
		why = told ? told : SYNTAX_ERROR;
		line = (unsigned int)config_error_line(&scenario->config);
		if (!scenario_syntax(copy, !strcmp(why, SYNTAX_ERROR), &line, expected,
				     sizeof(expected)))
			why = expected;
	}
	if (why)
		sim_core->log(POLYCM_LOG_ERROR, NULL, "%s:%u: %s", scenario->path, line, why);
	free(copy);
	return why ? -EINVAL : 0;
}

int scenario_open(struct scenario *scenario, const char *text, size_t len)
{
	char *loaded = NULL;
	int r;

	config_init(&scenario->config);
	if (text)
		return parse(scenario, text, len);
	r = load(scenario->path, &loaded, &len);
	if (!r)
		r = parse(scenario, loaded, len);
	free(loaded);
	return r;
}
