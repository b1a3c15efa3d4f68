/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explore_words.c - polycm explore: by which words of a program two failures
 * are taken for the same.
 */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "explore.h"

#define NUM_LINES 4u
#define MANY_DIGITS 5u		/* an address, a process, a time: another one in each run */

/* polycm's own lines have ports, which the seed decides. */
static bool counts(const char *line)
{
	return line[strspn(line, " \t\n")] && strncmp(line, "polycm: ", 8);
}

void explore_blur(char *line)
{
	char *to = line;
	size_t len;

	while (*line) {
		len = !strncmp(line, "0x", 2) ? 2 + strspn(line + 2, "0123456789abcdefABCDEF") :
			isdigit((unsigned char)*line) ? strspn(line, "0123456789") : 0;
		if (len >= MANY_DIGITS) {
			*to++ = '#';
			line += len;
			continue;
		}
		for (len = len ? len : 1; len; len--)
			*to++ = *line++;
	}
	*to = '\0';
}

char *explore_last_words(const char *output)
{
	char *lines[NUM_LINES] = { NULL }, *line = NULL, *words;
	FILE *file = fopen(output, "re");
	unsigned int num = 0;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0) {
		if (!counts(line))
			continue;
		free(lines[num % NUM_LINES]);
		lines[num++ % NUM_LINES] = tool_strdup(line);
	}
	free(line);
	if (file)
		fclose(file);
	words = tool_strdup("");
	for (unsigned int i = 0; i < NUM_LINES; i++) {
		line = lines[(num + i) % NUM_LINES];
		if (!line)
			continue;
		explore_blur(line);
		tool_append(&words, "%s", line);
		free(line);
	}
	return words;
}
