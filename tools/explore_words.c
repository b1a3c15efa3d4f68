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
#define MAX_PROGRAMS 64u
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

/* All numbers become #. */
static void leave_numbers_out(char *line)
{
	char *to = line;

	while (*line) {
		if (!isdigit((unsigned char)*line)) {
			*to++ = *line++;
			continue;
		}
		line += strspn(line, "0123456789abcdefABCDEFx.");
		*to++ = '#';
	}
	*to = '\0';
}

static char *last_lines(const char *output)
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
		tool_append(&words, "%s", line);
		free(line);
	}
	return words;
}

/* The text behind "[server] ", of which *ret_len is the length with the blank; NULL: no program's. */
static const char *text_behind(const char *line, size_t *ret_len)
{
	const char *end = *line == '[' ? strstr(line, "] ") : NULL;

	*ret_len = end ? (size_t)(end + 2 - line) : 0;
	return end ? end + 2 : NULL;
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_of_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* That word, wherever it is in the text, becomes #. */
static void leave_word_out(char *text, const char *word, size_t len)
{
	char *from = text, *to = text;

	while (*from) {
		const bool begins = from == text || !is_of_word(from[-1]);

		if (begins && !strncmp(from, word, len) && !is_of_word(from[len])) {
			*to++ = '#';
			from += len;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
}

/* "served one": which client it was depends on who came first. */
static void leave_names_out(char *const *lines, size_t num)
{
	size_t len, of_name;

	for (size_t i = 0; i < num; i++) {
		char *text = lines[i];

		(void)text_behind(text, &len);
		for (size_t j = 0; j < num; j++) {
			(void)text_behind(lines[j], &of_name);
			leave_word_out(text + len, lines[j] + 1, of_name - strlen("[] "));
		}
	}
}

/* Of each program, whichever spoke last. */
static char *last_line_of_each(const char *output)
{
	char *lines[MAX_PROGRAMS] = { NULL }, *line = NULL, *words = tool_strdup("");
	FILE *file = fopen(output, "re");
	size_t size = 0, num = 0, len, i;
	const char *text;

	while (file && getline(&line, &size, file) > 0) {
		text = text_behind(line, &len);
		if (!text || !counts(text))
			continue;
		for (i = 0; i < num && strncmp(lines[i], line, len) != 0; i++)
			;
		if (i == MAX_PROGRAMS)
			continue;
		num += i == num;
		free(lines[i]);
		lines[i] = tool_strdup(line);
	}
	free(line);
	if (file)
		fclose(file);
	qsort(lines, num, sizeof(lines[0]), compare_lines);
	leave_names_out(lines, num);
	for (i = 0; i < num; i++) {
		tool_append(&words, "%s", lines[i]);
		free(lines[i]);
	}
	return words;
}

char *explore_last_words(const struct explore *explore, const char *output)
{
	char *words = explore->is_system ? last_line_of_each(output) : last_lines(output);

	leave_numbers_out(words);
	return words;
}
